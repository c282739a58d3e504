//! What becomes of the samples of a process: a flame graph, counters of why waves waited, the leading reasons beside each
//! kernel, and exact counts.
//!
//! Samples are folded as they stream by ([`aggregate`](crate::code::aggregate)). A kernel's slice is
//! written when its completion is known; of a process that is sampled it is held back until the totals of its
//! samples have come too, but no longer than [`MAX_HELD`] others. All memory here is bounded.

mod counts;
mod flame;
mod places;
mod raw;
mod stalls;

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::io;

use super::convert::Making;
use super::devices::Devices;
use super::join::{Enqueued, Found, What};
use super::schema::PcSamples;
use super::schema::trace_packet::Data;
use super::stages::short_name;
use super::writer::{ProcessTrack, SampleSequence};
use crate::capture::Metadata;
use crate::code::aggregate::{Address, Aggregates, DispatchSamples, Kernels, Outcome};
use crate::record::number_map::NumberMap;
use crate::record::{
    AgentId, CodeObjectId, DeviceTime, HostTrapSample, KernelId, Kind, Nanos, QueueId, RecordRef,
    SampleAggregate, SamplingMethod, SamplingTotals, StochasticSample, WorkId,
};
use counts::{Counts, Names};
use flame::{Flame, Named, Stack, Whose};
use places::{Places, kernel_name, line_name};
use raw::{RawSamples, Told};
use stalls::Stalls;

pub use flame::MAX_SHOWN;

/// Most kernels that are held back until the totals of their samples come.
const MAX_HELD: usize = 1 << 15;
/// After so many kernels without a sample of any, none are waited for: code objects are named without sampling, too.
const MAX_UNSAMPLED: usize = 1 << 14;
/// Most dispatches whose queue and kernel are remembered.
const MAX_DISPATCHES: usize = 1 << 18;
/// Exact counts are told when so many entries have come together ...
const MAX_ENTRIES: usize = 1 << 16;
/// ... or so many samples since the last time, or this share of all of them.
const SPACING: u64 = 1 << 14;
const SHARE: u64 = 32;
/// Leading reasons that are shown beside a kernel.
const LEADING: usize = 3;

/// What the samples of a dispatch say, for its slice.
#[derive(Clone, Debug, Default)]
pub(super) struct OfDispatch {
    /// How many there were.
    pub samples: u64,
    /// How many of these were dropped.
    pub dropped: u64,
    outcomes: Vec<(Outcome, u64)>,
    /// No more will come.
    complete: bool,
}

impl OfDispatch {
    fn add(&mut self, outcomes: Vec<(Outcome, u64)>) {
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

    /// What the waves did most, in words; empty if that is not known.
    pub fn leading(&self) -> String {
        let mut ways: Vec<(&'static str, u64)> = Vec::new();
        for (outcome, count) in &self.outcomes {
            let name = match outcome {
                outcome if outcome.method != SamplingMethod::STOCHASTIC => continue,
                outcome if outcome.issued() => "issued",
                outcome => outcome.reason.name().unwrap_or("other"),
            };
            match ways.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += count,
                None => ways.push((name, *count)),
            }
        }
        let all: u64 = ways.iter().map(|(_, count)| count).sum();
        ways.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        let share = |count: u64| (100 * count + all / 2) / all.max(1);
        let words = ways.iter().take(LEADING);
        let words = words.map(|(name, count)| format!("{name} {} %", share(*count)));
        words.collect::<Vec<_>>().join(", ")
    }
}

/// A dispatch, as far as samples need it.
#[derive(Copy, Clone, Debug)]
struct Dispatch {
    queue: QueueId,
    kernel: KernelId,
    /// When it ran, once that is known.
    ran: Option<(DeviceTime, DeviceTime)>,
}

/// Samples that were counted where they were taken.
#[derive(Copy, Clone, Debug)]
struct Counted {
    work: WorkId,
    agent: AgentId,
    stack: Stack,
    samples: u64,
}

/// The samples of one process on their way into the trace.
#[derive(Debug, Default)]
pub(super) struct Sampling {
    /// Whether there are, or may be, samples.
    active: bool,
    /// Whether there have been any.
    sampled: bool,
    aggregates: Aggregates,
    kernels: Kernels,
    flame: Flame,
    stalls: Stalls,
    places: Places,
    counts: Counts,
    raw: RawSamples,
    sequence: Option<SampleSequence>,
    process: Option<(u32, String)>,
    dispatches: NumberMap<WorkId, Dispatch>,
    order: VecDeque<WorkId>,
    /// What came as counts, until it is known when it was.
    counted: Vec<Counted>,
    /// When the latest of them was.
    latest: Option<(Nanos, Nanos)>,
    /// Kernels that wait for their samples; those of a command buffer share their work id.
    held: BTreeMap<(WorkId, u32), Found>,
    /// What is known of the samples of dispatches that wait for their slices.
    known: BTreeMap<WorkId, OfDispatch>,
    samples: u64,
    untold: u64,
}

/// Work that may be told, with its samples if it had some.
pub(super) type Ready = Vec<(Found, Option<OfDispatch>)>;

impl Sampling {
    /// For a process of which `metadata` is known.
    pub fn new(metadata: &Metadata, process: ProcessTrack, name: &str) -> Sampling {
        Sampling {
            active: !metadata.code_objects.is_empty(),
            process: Some((process.pid(), name.to_owned())),
            ..Sampling::default()
        }
    }

    /// Takes note of a record of the names store: code objects are named where there will be samples.
    pub fn learn(&mut self, kind: Kind) {
        self.active |= kind == Kind::CODE_OBJECT;
    }

    /// Whether `kind` is one that [`Sampling::record`] wants.
    pub fn takes(kind: Kind) -> bool {
        matches!(
            kind,
            Kind::PC_SAMPLE_HOST_TRAP
                | Kind::PC_SAMPLE_STOCHASTIC
                | Kind::PC_SAMPLE_INVALID
                | Kind::PC_SAMPLE_AGGREGATE
                | Kind::PC_SAMPLING_TOTALS
        )
    }

    /// A kernel was enqueued.
    #[inline(always)]
    pub fn enqueued(&mut self, work: &Enqueued) {
        if self.active
            && let What::Kernel { kernel, .. } = work.what
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
        let dispatch = Dispatch {
            queue,
            kernel,
            ran: None,
        };
        if self.dispatches.insert(work, dispatch).is_none() {
            self.order.push_back(work);
        }
    }

    /// Whether work that has completed waits for samples.
    #[inline]
    pub fn concern(&self, work: &Enqueued) -> bool {
        self.active && matches!(work.what, What::Kernel { .. })
    }

    /// Takes a kernel that [waits for samples](Sampling::concern); what may be told of it now, or of work that came
    /// before, goes to `ready`.
    pub fn found(&mut self, found: Found, ready: &mut Ready) {
        let Found::Both(work, completion) = &found else {
            return;
        };
        if let Some(dispatch) = self.dispatches.get_mut(&work.work.id) {
            dispatch.ran = Some((completion.start, completion.end));
        }
        let key = (work.work.id, work.serial);
        if self
            .known
            .get(&work.work.id)
            .is_some_and(|known| known.complete)
        {
            let known = self.known.remove(&work.work.id);
            ready.push((found, known));
            return;
        }
        self.held.insert(key, found);
        if !self.sampled && self.held.len() > MAX_UNSAMPLED {
            self.active = false;
            self.dispatches = NumberMap::default();
            self.order = VecDeque::new();
            let held = std::mem::take(&mut self.held).into_values();
            ready.extend(held.map(|found| (found, None)));
            return;
        }
        if self.held.len() > MAX_HELD
            && let Some(((work, _), found)) = self.held.pop_first()
        {
            let known = self.samples_of(work);
            ready.push((found, known));
        }
    }

    /// What is known of the samples of a dispatch by now.
    fn samples_of(&mut self, work: WorkId) -> Option<OfDispatch> {
        if let Some(dispatch) = self.aggregates.take(work) {
            self.fold(dispatch);
        }
        self.known.remove(&work)
    }

    fn fold(&mut self, dispatch: DispatchSamples) {
        self.kernels.fold(&dispatch);
        if dispatch.work.is_some() {
            if self.known.len() >= MAX_HELD {
                self.known.pop_first();
            }
            let known = self.known.entry(dispatch.work).or_default();
            known.samples = known.samples.saturating_add(dispatch.samples());
            known.add(dispatch.outcomes());
        }
        self.aggregates.give_back(dispatch);
    }

    /// Shows where a sample was taken, of `waves` waves.
    fn sample(
        &mut self,
        making: &mut Making<'_>,
        metadata: &Metadata,
        devices: &Devices,
        sample: &HostTrapSample,
        outcome: Outcome,
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
        if making.options.raw_samples {
            let mut names = names(metadata, devices, &mut self.places);
            self.counts.agent(&names, sample.agent);
            self.counts.kernel_name(&names, sample.kernel);
            let told = Told {
                time: time.unwrap_or_default(),
                address: self.counts.address(&mut names, place),
                outcome,
            };
            self.raw.add(told, sample, waves);
        }
        self.count(making, metadata, devices, 1)
    }

    /// Takes in a record of samples. `ready` is given work that may be told now.
    pub fn record(
        &mut self,
        making: &mut Making<'_>,
        metadata: &Metadata,
        devices: &Devices,
        record: &RecordRef<'_>,
        ready: &mut Ready,
    ) -> io::Result<()> {
        (self.active, self.sampled) = (true, true);
        match record.kind() {
            Kind::PC_SAMPLE_HOST_TRAP => {
                let sample: Cow<'_, HostTrapSample> = super::process::read(record);
                self.aggregates.host_trap(&sample);
                self.sample(making, metadata, devices, &sample, Outcome::HOST_TRAP, 0)
            }
            Kind::PC_SAMPLE_STOCHASTIC => {
                let sample: Cow<'_, StochasticSample> = super::process::read(record);
                self.aggregates.stochastic(&sample);
                let outcome = Outcome::of(&sample);
                if let Some(time) = devices.time(sample.agent, sample.time) {
                    self.stalls.add(sample.agent, time, &outcome);
                }
                let waves = sample.wave_count;
                self.sample(making, metadata, devices, sample.place(), outcome, waves)
            }
            Kind::PC_SAMPLE_AGGREGATE => {
                let record: Cow<'_, SampleAggregate> = super::process::read(record);
                self.aggregates.aggregate(&record);
                let place = Address {
                    code_object: record.code_object,
                    offset: record.offset,
                };
                self.counted.push(Counted {
                    work: record.work,
                    agent: record.agent,
                    stack: self.stack(record.work, record.kernel, place),
                    samples: record.samples,
                });
                if self.counted.len() >= MAX_ENTRIES {
                    self.show_counted(devices);
                }
                self.count(making, metadata, devices, record.samples)
            }
            Kind::PC_SAMPLE_INVALID => {
                making.report.invalid_samples += 1;
                let invalid = self.counts.next().invalid.get_or_insert_default();
                *invalid += 1;
                Ok(())
            }
            Kind::PC_SAMPLING_TOTALS => {
                self.totals(making, &super::process::read(record), ready);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn stack(&self, work: WorkId, kernel: KernelId, address: Address) -> Stack {
        let dispatch = self.dispatches.get(&work);
        Stack {
            whose: match dispatch {
                Some(dispatch) => Whose::Queue(dispatch.queue),
                None if work.is_some() => Whose::Dispatch(work),
                None => Whose::Queue(QueueId::NONE),
            },
            kernel,
            address: Some(address),
        }
    }

    /// Puts what came as counts into the flame graph, into the time when its dispatch ran. Where that is not known, it is
    /// put beside the one before.
    fn show_counted(&mut self, devices: &Devices) {
        for counted in std::mem::take(&mut self.counted) {
            let ran = self
                .dispatches
                .get(&counted.work)
                .and_then(|dispatch| dispatch.ran);
            let time = |time| devices.time(counted.agent, time);
            let ran = ran.and_then(|(start, end)| time(start).zip(time(end)));
            self.latest = ran.or(self.latest);
            if let Some(ran) = self.latest {
                self.flame.add_many(ran, counted.stack, counted.samples);
            }
        }
    }

    /// Takes note of samples that have been added, and tells counts when it is time.
    fn count(
        &mut self,
        making: &mut Making<'_>,
        metadata: &Metadata,
        devices: &Devices,
        samples: u64,
    ) -> io::Result<()> {
        making.report.samples = making.report.samples.saturating_add(samples);
        self.samples = self.samples.saturating_add(samples);
        self.untold = self.untold.saturating_add(samples);
        while let Some(dispatch) = self.aggregates.excess() {
            self.fold(dispatch);
        }
        if self.raw.is_full() || self.counts.is_full() {
            self.counts.next().raw = self.raw.take();
            let counts = self.counts.take();
            self.tell_all(making, counts)?;
        }
        if self.untold >= SPACING.max(self.samples / SHARE) || self.kernels.entries() > MAX_ENTRIES
        {
            self.tell(making, metadata, devices)?;
        }
        Ok(())
    }

    fn totals(&mut self, making: &mut Making<'_>, totals: &SamplingTotals, ready: &mut Ready) {
        let report = &mut making.report;
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
        if self.known.len() >= MAX_HELD {
            self.known.pop_first();
        }
        let known = self.known.entry(work).or_default();
        known.complete = true;
        known.samples = totals.total.max(known.samples);
        known.dropped = totals.dropped;
        let held = self.held.range((work, 0)..=(work, u32::MAX));
        let held: Vec<_> = held.map(|(key, _)| *key).collect();
        if held.is_empty() {
            return;
        }
        let known = self.known.remove(&work);
        for key in held {
            let found = self.held.remove(&key).expect("it was just seen");
            ready.push((found, known.clone()));
        }
    }

    /// Tells what was counted since the last time.
    fn tell(
        &mut self,
        making: &mut Making<'_>,
        metadata: &Metadata,
        devices: &Devices,
    ) -> io::Result<()> {
        self.untold = 0;
        // Dispatches that are not complete are told as far as they got: a trace may be cut after this.
        while let Some(dispatch) = self.aggregates.oldest() {
            self.fold(dispatch);
        }
        let mut full = Vec::new();
        let mut names = names(metadata, devices, &mut self.places);
        for (agent, kernel, samples) in self.kernels.take() {
            self.counts
                .kernel(&mut names, (agent, kernel), &samples, &mut |packet| {
                    full.push(packet);
                    Ok(())
                })?;
        }
        full.extend(self.counts.take());
        self.tell_all(making, full)
    }

    fn tell_all(
        &mut self,
        making: &mut Making<'_>,
        packets: impl IntoIterator<Item = PcSamples>,
    ) -> io::Result<()> {
        for mut packet in packets {
            let writer = &mut making.writer;
            let sequence = match &mut self.sequence {
                Some(sequence) => sequence,
                none => none.insert(writer.sample_sequence()),
            };
            if let Some((pid, name)) = self.process.take() {
                (packet.pid, packet.process) = (Some(pid as i32), Some(name));
            }
            making.observer.samples(sequence.number(), &packet);
            writer.sample_packet(sequence, None, Data::PcSamples(Box::new(packet)))?;
        }
        Ok(())
    }

    /// Tells all that is left; `ready` is given the work that was held back.
    pub fn finish(
        &mut self,
        making: &mut Making<'_>,
        metadata: &Metadata,
        devices: &Devices,
        process: ProcessTrack,
        ready: &mut Ready,
    ) -> io::Result<()> {
        while let Some(((work, _), found)) = self.held.pop_first() {
            let known = self.samples_of(work);
            ready.push((found, known));
        }
        if self.samples == 0 && self.counts.is_empty() {
            return Ok(());
        }
        self.show_counted(devices);
        self.stalls.write(&mut making.writer, process, devices)?;
        let Sampling {
            flame,
            places,
            dispatches,
            ..
        } = self;
        flame.write(&mut making.writer, process, |stack| {
            let queue = match stack.whose {
                Whose::Queue(queue) => queue,
                Whose::Dispatch(work) => dispatches
                    .get(&work)
                    .map_or(QueueId::NONE, |dispatch| dispatch.queue),
            };
            frames(places, metadata, devices, queue, stack)
        })?;
        let one_of = self.flame.one_of();
        making.report.samples_shown_one_of = making.report.samples_shown_one_of.max(one_of);
        self.counts.next().shown_one_of = Some(one_of);
        self.counts.next().raw = self.raw.take();
        self.tell(making, metadata, devices)
    }
}

fn names<'a>(metadata: &'a Metadata, devices: &'a Devices, places: &'a mut Places) -> Names<'a> {
    Names {
        metadata,
        devices,
        places,
    }
}

/// The frames of a stack, outermost first: queue, kernel, functions that were inlined, line, instruction.
fn frames(
    places: &mut Places,
    metadata: &Metadata,
    devices: &Devices,
    queue: QueueId,
    stack: &Stack,
) -> Vec<Named> {
    let of = |name: String, mapping: &str| Named {
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
    // The kernel's own function is the kernel.
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
