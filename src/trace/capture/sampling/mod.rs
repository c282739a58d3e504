//! The samples of a process: counts, stacks for a flame graph, counters of why waves waited, and the leading reasons
//! beside each kernel.
//!
//! Samples are folded as they stream by ([`aggregate`](gputrail_code::aggregate)). A kernel is passed on when its
//! completion is known; in a process that is sampled it is held back ([`Hold`]) until the totals of its samples have
//! come, too, but no longer than [`MAX_HELD`] others. All memory here is bounded.

mod counts;
mod executions;
mod places;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;

use super::devices::Devices;
use super::join::{EnqueueFields, FoundWork, WorkNature};
use super::{StreamOutput, read};
use crate::model::flame::{Flame, SampledQueue, Stack};
use crate::model::hold::Hold;
use crate::model::stalls::Stalls;
use crate::model::{ProcessIndex, RawSample, Samples, StackFrame, UNKNOWN_DEVICE, WorkSamples};
use counts::{NameSources, ProcessCounts};
use executions::ExecutionSums;
use gputrail_capture::Metadata;
use gputrail_capture::join::Enqueue as _;
use gputrail_capture::kernel_names::short_name;
use gputrail_code::aggregate::{Address, Aggregates, DispatchSamples, SampledKernels, WaveOutcome};
use gputrail_record::number_map::NumberMap;
use gputrail_record::{
    AgentId, CodeBytes, CodeObjectId, DeviceTime, HostTrapSample, InstructionCount, KernelId, Kind,
    Nanos, QueueId, RecordRef, SampleAggregate, SamplingTotals, StochasticSample, WorkId,
};
use places::{Places, kernel_name, line_name};

pub use crate::model::flame::MAX_SHOWN;

/// Maximum number of kernels that are held back until the totals of their samples come.
const MAX_HELD: usize = 1 << 15;
/// After this many kernels without a sample of any, kernels are no longer held back: code objects are named without
/// sampling, too.
const MAX_UNSAMPLED: usize = 1 << 14;
/// Maximum number of dispatches whose queue and kernel are kept.
const MAX_DISPATCHES: usize = 1 << 18;
/// Counts are passed on when this many entries have been collected ...
const MAX_ENTRIES: usize = 1 << 16;
/// ... or this many samples since the last time, or this share of all samples.
const SPACING: u64 = 1 << 14;
const SHARE: u64 = 32;

/// The samples of a dispatch.
#[derive(Clone, Debug, Default)]
struct DispatchOutcomes {
    samples: u64,
    /// The number of dropped samples.
    dropped: u64,
    outcomes: Vec<(WaveOutcome, u64)>,
}

impl DispatchOutcomes {
    fn add(&mut self, outcomes: Vec<(WaveOutcome, u64)>) {
        for (outcome, count) in outcomes {
            match self
                .outcomes
                .iter_mut()
                .find(|(known, _)| *known == outcome)
            {
                Some((_, sum)) => *sum += count,
                None => self.outcomes.push((outcome, count)),
            }
        }
    }

    fn of_work(&self) -> WorkSamples {
        let samples = WorkSamples::of(self.dropped, &self.outcomes);
        WorkSamples {
            samples: self.samples,
            ..samples
        }
    }
}

/// The fields of a dispatch that samples need.
#[derive(Copy, Clone, Debug)]
struct DispatchFields {
    queue: QueueId,
    kernel: KernelId,
    /// When it ran, if known.
    ran: Option<(DeviceTime, DeviceTime)>,
}

/// Samples that were counted by their source.
#[derive(Copy, Clone, Debug)]
struct CountedSamples {
    work: WorkId,
    agent: AgentId,
    stack: Stack,
    samples: u64,
}

/// When a kernel ran on an agent: from the start of the first to the end of the last dispatch since samples were last
/// spread over that time, and the queue of the last one.
#[derive(Copy, Clone, Debug)]
struct KernelRuns {
    start: DeviceTime,
    end: DeviceTime,
    queue: QueueId,
    /// Whether samples have been spread over this time.
    used: bool,
}

/// The samples of one process.
pub(super) struct ProcessSamples {
    process: ProcessIndex,
    /// Whether there are, or may be, samples.
    active: bool,
    /// Whether there have been samples.
    sampled: bool,
    aggregates: Aggregates,
    kernels: SampledKernels,
    flame: Flame,
    stalls: Stalls,
    places: Places,
    counts: ProcessCounts,
    executions: ExecutionSums,
    dispatches: NumberMap<WorkId, DispatchFields>,
    order: VecDeque<WorkId>,
    /// Agents that cannot identify the dispatches of samples: their kernels do not wait for any.
    without_dispatches: Vec<AgentId>,
    /// When kernels ran, for samples whose dispatch is not known.
    runs: NumberMap<(AgentId, KernelId), KernelRuns>,
    /// Samples that came as counts, until the time of their dispatch is known.
    counted: Vec<CountedSamples>,
    /// The time of the latest of them.
    latest: Option<(Nanos, Nanos)>,
    /// Kernels that wait for their samples.
    held: Hold<FoundWork, DispatchOutcomes>,
    samples: u64,
    /// Number of samples since counts were last passed on.
    pending: u64,
}

/// Work that may be passed on, with its samples if it has any.
pub(super) type Ready = Vec<(FoundWork, Option<WorkSamples>)>;

impl ProcessSamples {
    /// The sampling state of a process with `metadata`.
    pub fn new(metadata: &Metadata, process: ProcessIndex) -> ProcessSamples {
        ProcessSamples {
            process,
            active: !metadata.code_objects.is_empty(),
            sampled: false,
            aggregates: Aggregates::default(),
            kernels: SampledKernels::default(),
            flame: Flame::default(),
            stalls: Stalls::default(),
            places: Places::default(),
            counts: ProcessCounts::new(process),
            executions: ExecutionSums::default(),
            dispatches: NumberMap::default(),
            order: VecDeque::new(),
            without_dispatches: Vec::new(),
            runs: NumberMap::default(),
            counted: Vec::new(),
            latest: None,
            held: Hold::new(MAX_HELD),
            samples: 0,
            pending: 0,
        }
    }

    /// Reacts to a new record of the names store: code objects are named if there will be samples, and their bytes come
    /// again when there are more of them.
    pub fn learn(&mut self, record: &RecordRef<'_>) {
        self.active |= record.kind() == Kind::CODE_OBJECT;
        if record.kind() == Kind::CODE_BYTES
            && let Some(piece) = record.read::<CodeBytes>()
        {
            self.places.forget(piece.id);
        }
    }

    /// Whether [`ProcessSamples::record`] takes records of `kind`.
    pub fn takes(kind: Kind) -> bool {
        matches!(
            kind,
            Kind::PC_SAMPLE_HOST_TRAP
                | Kind::PC_SAMPLE_STOCHASTIC
                | Kind::PC_SAMPLE_INVALID
                | Kind::PC_SAMPLE_AGGREGATE
                | Kind::PC_SAMPLING_TOTALS
                | Kind::INSTRUCTION_COUNT
        )
    }

    /// Notes the enqueue of a kernel.
    #[inline(always)]
    pub fn enqueued(&mut self, work: &EnqueueFields) {
        if self.active
            && let WorkNature::Kernel { kernel, .. } = work.what
        {
            self.remember(work.work.id, work.work.queue, kernel);
        }
    }

    fn remember(&mut self, work: WorkId, queue: QueueId, kernel: KernelId) {
        if self.order.len() >= MAX_DISPATCHES
            && let Some(oldest) = self.order.pop_front()
        {
            self.dispatches.remove(&oldest);
        }
        let dispatch = DispatchFields {
            queue,
            kernel,
            ran: None,
        };
        if self.dispatches.insert(work, dispatch).is_none() {
            self.order.push_back(work);
        }
    }

    /// Whether completed work waits for samples: kernels do, and what follows them in their command buffers, whose parts
    /// stay together.
    #[inline]
    pub fn concern(&self, work: &EnqueueFields) -> bool {
        self.active && (work.is_kernel() || work.is_shared() && self.held.holds(work.work.id))
    }

    /// Adds work that [waits for samples](ProcessSamples::concern). Work that no longer needs to wait is moved to
    /// `ready`.
    pub fn found(&mut self, found: FoundWork, ready: &mut Ready) {
        let FoundWork::Both(work, completion) = &found else {
            return;
        };
        let (agent, ran) = (work.work.agent, (completion.start, completion.end));
        if let Some(dispatch) = self.dispatches.get_mut(&work.work.id) {
            dispatch.ran = Some(ran);
            let dispatch = *dispatch;
            self.note_run(agent, &dispatch, ran);
        }
        if self.without_dispatches.contains(&agent) {
            return ready.push((found, None));
        }
        if let Some((found, samples)) = self.held.add(work.work.id, work.serial, found) {
            ready.push((found, Some(samples.of_work())));
            return;
        }
        if !self.sampled && self.held.len() > MAX_UNSAMPLED {
            self.active = false;
            self.dispatches = NumberMap::default();
            self.order = VecDeque::new();
            ready.extend(self.held.take_all().map(|found| (found, None)));
            return;
        }
        if self.held.is_over_limit() {
            self.take_oldest(ready);
        }
    }

    /// Notes when a kernel ran.
    fn note_run(
        &mut self,
        agent: AgentId,
        dispatch: &DispatchFields,
        (start, end): (DeviceTime, DeviceTime),
    ) {
        if !end.is_some() {
            return;
        }
        let new = KernelRuns {
            start,
            end,
            queue: dispatch.queue,
            used: false,
        };
        let runs = self.runs.entry((agent, dispatch.kernel)).or_insert(new);
        *runs = if runs.used {
            new
        } else {
            KernelRuns {
                start: runs.start.min(start),
                end: runs.end.max(end),
                ..new
            }
        };
    }

    /// Moves the oldest waiting work to `ready`, with the samples that have come. Returns `false` if there is none.
    fn take_oldest(&mut self, ready: &mut Ready) -> bool {
        if let Some(oldest) = self.held.oldest()
            && let Some(dispatch) = self.aggregates.take(oldest)
        {
            self.fold(dispatch);
        }
        let Some((found, samples)) = self.held.take_oldest() else {
            return false;
        };
        ready.push((found, samples.map(|samples| samples.of_work())));
        true
    }

    fn fold(&mut self, dispatch: DispatchSamples) {
        self.kernels.fold(&dispatch);
        if dispatch.work.is_some() {
            let known = self.held.data(dispatch.work);
            known.samples = known.samples.saturating_add(dispatch.samples());
            known.add(dispatch.outcomes());
        }
        self.aggregates.give_back(dispatch);
    }

    /// Adds a sample to the flame graph and to the single samples. `waves` were active.
    fn sample(
        &mut self,
        output: &mut StreamOutput<'_>,
        metadata: &Metadata,
        devices: &Devices,
        sample: &HostTrapSample,
        outcome: WaveOutcome,
        waves: u32,
    ) -> io::Result<()> {
        let place = Address {
            code_object: sample.code_object,
            offset: sample.offset,
        };
        let time = devices.time(sample.agent, sample.time);
        let stack = self.stack(sample.work, sample.kernel, place);
        if let Some(time) = time {
            self.flame.add(time, stack);
        }
        if output.options.raw_samples {
            output.report.single_samples += 1;
            let mut names = names(metadata, devices, &mut self.places);
            self.counts.agent(&names, sample.agent);
            self.counts.kernel_name(&names, sample.kernel);
            let address = self.counts.address(&mut names, place);
            self.counts.raw(RawSample {
                time: time.unwrap_or_default(),
                address,
                outcome,
                agent: sample.agent,
                kernel: sample.kernel,
                work: sample.work,
                correlation: sample.correlation,
                external: sample.external,
                exec_mask: sample.exec_mask,
                hardware: sample.hardware,
                workgroup: sample.workgroup,
                wave_in_group: sample.wave_in_group,
                wave_count: waves,
                absent: sample.absent,
            });
        }
        self.count(output, metadata, devices, 1)
    }

    /// Reads a record of samples. Work that no longer needs to wait is moved to `ready`.
    pub fn record(
        &mut self,
        output: &mut StreamOutput<'_>,
        metadata: &Metadata,
        devices: &Devices,
        record: &RecordRef<'_>,
        ready: &mut Ready,
    ) -> io::Result<()> {
        if record.kind() == Kind::INSTRUCTION_COUNT {
            let count: Cow<'_, InstructionCount> = read(record);
            let all = &mut output.report.executed_instructions;
            *all = all.saturating_add(count.executed);
            self.executions.add(&count);
            if self.executions.len() > MAX_ENTRIES {
                self.pass_on(output, metadata, devices)?;
            }
            return Ok(());
        }
        (self.active, self.sampled) = (true, true);
        match record.kind() {
            Kind::PC_SAMPLE_HOST_TRAP => {
                let sample: Cow<'_, HostTrapSample> = read(record);
                self.aggregates.host_trap(&sample);
                self.sample(
                    output,
                    metadata,
                    devices,
                    &sample,
                    WaveOutcome::HOST_TRAP,
                    0,
                )
            }
            Kind::PC_SAMPLE_STOCHASTIC => {
                let sample: Cow<'_, StochasticSample> = read(record);
                self.aggregates.stochastic(&sample);
                let outcome = WaveOutcome::of(&sample);
                if let Some(time) = devices.time(sample.agent, sample.time) {
                    self.stalls.add(sample.agent, time, &outcome);
                }
                let waves = sample.wave_count;
                self.sample(output, metadata, devices, sample.place(), outcome, waves)
            }
            Kind::PC_SAMPLE_AGGREGATE => {
                let record: Cow<'_, SampleAggregate> = read(record);
                self.aggregates.aggregate(&record);
                let place = Address {
                    code_object: record.code_object,
                    offset: record.offset,
                };
                self.counted.push(CountedSamples {
                    work: record.work,
                    agent: record.agent,
                    stack: self.stack(record.work, record.kernel, place),
                    samples: record.samples,
                });
                if self.counted.len() >= MAX_ENTRIES {
                    self.show_counted(devices);
                }
                if !record.work.is_some() && !self.without_dispatches.contains(&record.agent) {
                    self.without_dispatches.push(record.agent);
                    // Nothing more may come for kernels that wait.
                    ready.extend(self.held.take_all().map(|found| (found, None)));
                }
                self.count(output, metadata, devices, record.samples)
            }
            Kind::PC_SAMPLE_INVALID => {
                output.report.invalid_samples += 1;
                self.counts.next().invalid += 1;
                Ok(())
            }
            Kind::PC_SAMPLING_TOTALS => {
                self.totals(output, &read(record), ready);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn stack(&self, work: WorkId, kernel: KernelId, address: Address) -> Stack {
        let dispatch = self.dispatches.get(&work);
        Stack {
            queue: match dispatch {
                Some(dispatch) => SampledQueue::Known(dispatch.queue),
                None if work.is_some() => SampledQueue::OfDispatch(work),
                None => SampledQueue::Known(QueueId::NONE),
            },
            kernel,
            address: Some(address),
        }
    }

    /// Adds the samples that came as counts to the flame graph, within the time in which their dispatch ran, or their
    /// kernel if the dispatch is not known; if that is unknown, beside the samples before.
    fn show_counted(&mut self, devices: &Devices) {
        for mut counted in std::mem::take(&mut self.counted) {
            let ran = if counted.work.is_some() {
                self.dispatches
                    .get(&counted.work)
                    .and_then(|dispatch| dispatch.ran)
            } else {
                let runs = self.runs.get_mut(&(counted.agent, counted.stack.kernel));
                runs.map(|runs| {
                    runs.used = true;
                    counted.stack.queue = SampledQueue::Known(runs.queue);
                    (runs.start, runs.end)
                })
            };
            let time = |time| devices.time(counted.agent, time);
            let ran = ran.and_then(|(start, end)| time(start).zip(time(end)));
            self.latest = ran.or(self.latest);
            if let Some(ran) = self.latest {
                self.flame.add_many(ran, counted.stack, counted.samples);
            }
        }
    }

    /// Counts samples that have been added, and passes on the counts when due.
    fn count(
        &mut self,
        output: &mut StreamOutput<'_>,
        metadata: &Metadata,
        devices: &Devices,
        samples: u64,
    ) -> io::Result<()> {
        output.report.samples = output.report.samples.saturating_add(samples);
        self.samples = self.samples.saturating_add(samples);
        self.pending = self.pending.saturating_add(samples);
        while let Some(dispatch) = self.aggregates.excess() {
            self.fold(dispatch);
        }
        if self.counts.is_full() {
            self.counts.flush_raw();
            if let Some(samples) = self.counts.take() {
                output.stream.consumer.samples(&samples)?;
            }
        }
        if self.pending >= SPACING.max(self.samples / SHARE) || self.kernels.entries() > MAX_ENTRIES
        {
            self.pass_on(output, metadata, devices)?;
        }
        Ok(())
    }

    fn totals(
        &mut self,
        output: &mut StreamOutput<'_>,
        totals: &SamplingTotals,
        ready: &mut Ready,
    ) {
        let report = &mut output.report;
        report.dropped_samples = report.dropped_samples.saturating_add(totals.dropped);
        let work = totals.work;
        self.counts.configuration(totals);
        let dispatch = self.aggregates.take(work);
        let sampled = dispatch.as_ref().map(|dispatch| dispatch.kernel);
        let enqueued = self.dispatches.get(&work).map(|dispatch| dispatch.kernel);
        self.kernels
            .totals(sampled.or(enqueued).unwrap_or_default(), totals);
        dispatch
            .into_iter()
            .for_each(|dispatch| self.fold(dispatch));
        if !work.is_some() {
            return;
        }
        let known = self.held.data(work);
        known.samples = totals.total.max(known.samples);
        known.dropped = totals.dropped;
        let complete = self.held.complete(work);
        ready.extend(complete.map(|(found, samples)| (found, Some(samples.of_work()))));
    }

    /// Passes on the counts since the last time.
    fn pass_on(
        &mut self,
        output: &mut StreamOutput<'_>,
        metadata: &Metadata,
        devices: &Devices,
    ) -> io::Result<()> {
        self.pending = 0;
        // Incomplete dispatches are passed on as far as they have been counted: the trace may be cut after this.
        while let Some(dispatch) = self.aggregates.oldest() {
            self.fold(dispatch);
        }
        let mut parts: Vec<Samples> = Vec::new();
        let mut names = names(metadata, devices, &mut self.places);
        for (agent, kernel, samples) in self.kernels.take() {
            self.counts
                .kernel(&mut names, (agent, kernel), &samples, &mut parts);
        }
        for (place, executions) in self.executions.take() {
            self.counts
                .executions(&mut names, place, executions, &mut parts);
        }
        parts.extend(self.counts.take());
        let consumer = &mut output.stream.consumer;
        parts.iter().try_for_each(|part| consumer.samples(part))
    }

    /// Passes on everything that is left; work that was held back is moved to `ready`.
    pub fn finish(
        &mut self,
        output: &mut StreamOutput<'_>,
        metadata: &Metadata,
        devices: &Devices,
        ready: &mut Ready,
    ) -> io::Result<()> {
        while self.take_oldest(ready) {}
        if self.samples == 0 && self.counts.is_empty() {
            return self.pass_on(output, metadata, devices);
        }
        self.show_counted(devices);
        let stream = &mut output.stream;
        let title = |agent| devices.title(agent).unwrap_or(UNKNOWN_DEVICE).to_owned();
        self.stalls.finish(stream, self.process, title)?;
        let ProcessSamples {
            flame,
            places,
            dispatches,
            ..
        } = self;
        flame.finish(stream, self.process, |stack| {
            let queue = match stack.queue {
                SampledQueue::Known(queue) => queue,
                SampledQueue::OfDispatch(work) => dispatches
                    .get(&work)
                    .map_or(QueueId::NONE, |dispatch| dispatch.queue),
            };
            frames(places, metadata, devices, queue, stack)
        })?;
        let one_of = self.flame.one_of();
        output.report.samples_shown_one_of = output.report.samples_shown_one_of.max(one_of);
        self.counts.next().shown_one_of = Some(one_of);
        self.counts.flush_raw();
        self.pass_on(output, metadata, devices)
    }
}

fn names<'a>(
    metadata: &'a Metadata,
    devices: &'a Devices,
    places: &'a mut Places,
) -> NameSources<'a> {
    NameSources {
        metadata,
        devices,
        places,
    }
}

/// The frames of a stack, outermost first: queue, kernel, inlined functions, line, instruction.
fn frames(
    places: &mut Places,
    metadata: &Metadata,
    devices: &Devices,
    queue: QueueId,
    stack: &Stack,
) -> Vec<StackFrame> {
    let of = |name: String, mapping: &str| StackFrame {
        name,
        mapping: mapping.to_owned(),
    };
    let kernel = kernel_name(metadata, stack.kernel);
    let mut frames = vec![of(devices.queue_title(metadata, queue), "device")];
    let Some(address) = stack.address else {
        frames.push(of(kernel, "kernel"));
        return frames;
    };
    let object = places.object(metadata, address).to_owned();
    let object = match (&object[..], address.code_object) {
        ("", CodeObjectId::NONE) => "no code object".to_owned(),
        ("", id) => format!("code object {id}"),
        (path, _) => path.to_owned(),
    };
    let known = places.resolve(metadata, address);
    // The kernel's own function is shown as the kernel.
    let functions: Vec<_> = known
        .frames
        .iter()
        .rev()
        .map(|frame| &frame.function)
        .collect();
    let own = functions
        .first()
        .is_some_and(|function| [&***function, short_name(function)].contains(&&kernel[..]));
    frames.push(of(kernel, &object));
    for function in functions.into_iter().skip(usize::from(own)) {
        frames.push(of(function.to_string(), &object));
    }
    if let Some(frame) = known.frames.first()
        && let (Some(file), Some(line)) = (&frame.file, frame.line)
    {
        frames.push(of(line_name(file, line), &object));
    }
    frames.push(match &known.instruction {
        Some(instruction) => of(format!("{instruction}  @{:#x}", address.offset), &object),
        None => of(format!("{:#x}", address.offset), &object),
    });
    frames
}
