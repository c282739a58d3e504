//! The sampler of a process: its drain thread, which works in rounds, and the records that it writes.

use super::attribution::{
    Attributed, Attribution, DispatchEvent, DispatchEvents, DispatchTotals, EnqueuedKernel,
    KernelSample,
};
use super::clocks::{Clocks, Execution};
use super::event::sample_time;
use super::mappings::{CodeLocation, Mappings};
use super::ring::RingRecord;
use super::source;
use super::source::ThreadData;
use super::threads::Threads;
use gputrail_buffer::platform::sync::{QuietGuard, Signal, lock_std};
use gputrail_capture::names::Names;
use gputrail_collect::agents::{ConfigureError, Provider};
use gputrail_collect::correlation::HostThread;
use gputrail_collect::process;
use gputrail_collect::sampling::lines::WrittenLines;
use gputrail_collect::sampling::{SampleDelivery, SampleSource};
use gputrail_interface::sampling::{Configuration, Deliver, Request};
use gputrail_record::*;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The longest pause between two rounds.
const ROUND: Duration = Duration::from_millis(100);
/// The first pause: programs create threads and load kernels when they start.
const FIRST_ROUND: Duration = Duration::from_millis(10);
/// The number of rounds that fit a ring of a thread that runs all the time: the drain thread may be
/// descheduled.
const ROUNDS_IN_RING: u64 = 4;
/// The size of a sample in a ring.
const SAMPLE_BYTES: u64 = 40;
const RINGS: std::ops::RangeInclusive<usize> = 4 << 10..=256 << 10;
/// The most mappings outside of kernels that are listed in notes.
const MAX_LOCATIONS: usize = 40;

/// Whether any agent of the process is sampled.
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);

/// The sampler of the process. Agents share it, since they share the processors.
pub struct HostSampler {
    source: SampleSource,
    events: DispatchEvents,
    state: Mutex<HostSamplerState>,
    wake: Signal,
}

#[derive(Default)]
struct HostSamplerState {
    /// The configuration, the same for all agents.
    request: Option<Request>,
    configured: Vec<AgentId>,
    started: HashMap<AgentId, SampleDelivery>,
    run: Option<ActiveRun>,
    /// Increased to end the drain thread.
    generation: u64,
}

/// The state while an agent is sampled.
struct ActiveRun {
    threads: Threads,
    mappings: Mappings,
    attribution: Attribution,
    events: Vec<DispatchEvent>,
    interval: u64,
    /// The agent named in code objects.
    agent: AgentId,
    clocks: Clocks,
    names: Names,
    lines: WrittenLines,
    elsewhere: HashMap<Arc<str>, u64>,
    /// Sample counts by dispatch and address until the dispatch completes, for agents that deliver
    /// aggregates.
    aggregates: HashMap<WorkId, HashMap<(CodeObjectId, u64, KernelId), u64>>,
    /// Samples in kernels without a known dispatch.
    unknown: u64,
    /// Samples that could not be read and are not written yet.
    invalid: u64,
    /// The thread id of the drain thread.
    drain_thread: u32,
}

/// One agent of the sampler.
struct SamplerAgent {
    sampler: Arc<HostSampler>,
    agent: AgentId,
}

impl Default for HostSampler {
    fn default() -> Self {
        HostSampler::new()
    }
}

impl HostSampler {
    /// Creates the sampler of this process.
    pub fn new() -> HostSampler {
        IS_ACTIVE.store(false, Ordering::Relaxed);
        HostSampler {
            source: SampleSource::requested(),
            events: DispatchEvents::default(),
            state: Mutex::default(),
            wake: Signal::default(),
        }
    }

    /// The interface of `agent` to the sampling service.
    pub fn agent(self: &Arc<Self>, agent: AgentId) -> Arc<dyn Provider<Request>> {
        Arc::new(SamplerAgent {
            sampler: self.clone(),
            agent,
        })
    }

    /// Whether any agent of this process is sampled. Sources check this before they report events.
    #[inline(always)]
    pub fn is_active() -> bool {
        IS_ACTIVE.load(Ordering::Relaxed)
    }

    /// Queues a dispatch event without waiting.
    pub(crate) fn report(&self, event: DispatchEvent) {
        self.events.push(event);
    }

    /// Ends sampling at process exit: writes all waiting samples and the notes.
    pub fn finish(&self) {
        let mut state = self.state();
        self.round(&mut state, true);
        self.end(&mut state);
    }

    fn state(&self) -> QuietGuard<'_, HostSamplerState> {
        lock_std(&self.state)
    }

    fn start(self: &Arc<Self>, agent: AgentId, to: SampleDelivery) {
        let mut state = self.state();
        state.started.insert(agent, to);
        let (Some(request), Some(board)) = (state.request, process::board()) else {
            return;
        };
        if state.run.is_some() {
            return;
        }
        let mut run = ActiveRun::new(self.source, request.interval, agent, board.names().clone());
        run.mappings.read_all(0, agent, &run.names);
        run.threads.scan(0);
        state.run = Some(run);
        state.generation += 1;
        let generation = state.generation;
        drop(state);
        IS_ACTIVE.store(true, Ordering::Relaxed);
        let sampler = self.clone();
        // If the thread cannot be created, flushing runs rounds.
        let _ = gputrail_buffer::platform::internal_thread::spawn(move || sampler.run(generation));
    }

    fn stop(&self, agent: AgentId) {
        let mut state = self.state();
        self.round(&mut state, true);
        state.started.remove(&agent);
        if state.started.is_empty() {
            self.end(&mut state);
        }
    }

    /// Ends sampling.
    fn end(&self, state: &mut HostSamplerState) {
        IS_ACTIVE.store(false, Ordering::Relaxed);
        state.generation += 1;
        if let Some(run) = state.run.take() {
            run.write_notes(self.events.lost());
        }
        self.wake.raise();
    }

    fn flush(&self) {
        self.round(&mut self.state(), false);
    }

    fn run(&self, generation: u64) {
        let me = gputrail_buffer::platform::system::thread_id();
        let mut pause = FIRST_ROUND;
        loop {
            let seen = self.wake.value();
            let mut state = self.state();
            if state.generation != generation {
                return;
            }
            if let Some(run) = &mut state.run {
                run.drain_thread = me;
            }
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.round(&mut state, false))) {
                // The payload may panic when it is dropped.
                std::mem::forget(panic);
                self.end(&mut state);
                return;
            }
            drop(state);
            self.wake.wait(seen, pause);
            pause = ROUND.min(pause * 2);
        }
    }

    /// Drains all samples and writes those that are attributed. `all` includes samples that wait
    /// for a completion.
    fn round(&self, state: &mut HostSamplerState, all: bool) {
        let HostSamplerState { run, started, .. } = state;
        let (Some(run), Some(thread)) = (run, process::current()) else {
            return;
        };
        // Not possible in a signal handler that interrupted a write: the next round does it.
        thread.with(|host| run.round(&self.events, started, host, all));
    }
}

impl fmt::Debug for HostSampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostSampler").finish_non_exhaustive()
    }
}

impl ActiveRun {
    fn new(source: SampleSource, interval: u64, agent: AgentId, names: Names) -> ActiveRun {
        let samples = ROUNDS_IN_RING * ROUND.as_nanos() as u64 / interval.max(1);
        let ring = (samples * SAMPLE_BYTES).clamp(*RINGS.start() as u64, *RINGS.end() as u64);
        ActiveRun {
            threads: Threads::new(source, interval, ring as usize),
            mappings: Mappings::default(),
            attribution: Attribution::default(),
            events: Vec::new(),
            interval,
            agent,
            clocks: Clocks::new(names.clone()),
            names,
            lines: WrittenLines::default(),
            elsewhere: HashMap::new(),
            aggregates: HashMap::new(),
            unknown: 0,
            invalid: 0,
            drain_thread: 0,
        }
    }

    fn round(
        &mut self,
        events: &DispatchEvents,
        started: &HashMap<AgentId, SampleDelivery>,
        host: &mut HostThread,
        all: bool,
    ) {
        // Events first: see `attribution`.
        events.take(&mut self.events);
        self.threads.scan(self.drain_thread);
        self.take_samples();
        self.write_invalid(started, host);
        self.attribution.sort();
        let mut waiting = std::mem::take(&mut self.events);
        for event in waiting.drain(..) {
            match event {
                DispatchEvent::Enqueued(enqueued) => {
                    if started.contains_key(&enqueued.agent) {
                        let names = &self.names;
                        self.attribution
                            .enqueue(enqueued, || kernel_name(names, enqueued.kernel));
                    }
                }
                DispatchEvent::Completed { work, start, end } => {
                    self.completed(work, (start, end), started, host);
                }
            }
        }
        self.events = waiting;
        if all || self.attribution.is_full() {
            self.emit_all(started, host);
        }
        if all {
            for counted in self.attribution.unfinished() {
                self.write_totals(&counted, started, host);
            }
        }
    }

    /// Drains the rings and locates the samples.
    fn take_samples(&mut self) {
        let ActiveRun {
            threads,
            mappings,
            attribution,
            elsewhere,
            names,
            agent,
            invalid,
            ..
        } = self;
        let mut samples = Vec::new();
        threads.drain(|data| match data {
            ThreadData::Record(RingRecord::Sample(taken)) => samples.push(taken),
            ThreadData::Record(RingRecord::Mapped {
                start,
                length,
                offset,
                path,
                time,
            }) => mappings.add(
                start,
                start.saturating_add(length),
                offset,
                path,
                time,
                *agent,
                names,
            ),
            ThreadData::Record(RingRecord::Invalid) => *invalid += 1,
            ThreadData::Record(_) => {}
            ThreadData::Gap { from, to, lost } => attribution.add_gap(from, to, lost),
        });
        let mut has_read = false;
        if !threads.reports_mappings() && !samples.is_empty() {
            mappings.read_all(sample_time(), *agent, names);
        }
        for taken in samples {
            let mut location = mappings.find(taken.address, taken.time);
            if location.is_none() && !has_read {
                // Mapped by a thread before it was sampled.
                has_read = true;
                mappings.read_all(sample_time(), *agent, names);
                location = mappings.find(taken.address, u64::MAX);
            }
            match location {
                Some(CodeLocation::Kernel(code, offset)) => attribution.add_sample(KernelSample {
                    time: taken.time,
                    offset,
                    thread: taken.thread,
                    cpu: taken.cpu,
                    code,
                }),
                Some(CodeLocation::Elsewhere(name)) => *elsewhere.entry(name).or_default() += 1,
                None => *elsewhere.entry(mappings.unknown()).or_default() += 1,
            }
        }
    }

    /// Writes a record for each sample that could not be read. It does not say in which kernel it was taken, or when: it is
    /// one of the first agent, since agents share the threads.
    fn write_invalid(&mut self, started: &HashMap<AgentId, SampleDelivery>, host: &mut HostThread) {
        let number = std::mem::take(&mut self.invalid);
        let Some(agent) = started.keys().min().filter(|_| number > 0) else {
            return;
        };
        let to = &started[agent];
        if to.deliver == Deliver::Aggregates {
            return;
        }
        let mut invalid = InvalidSample::blank();
        (invalid.agent, invalid.method) = (*agent, SamplingMethod::HOST_TRAP);
        for _ in 0..number {
            host.write_to(to.buffers, invalid);
        }
    }

    fn completed(
        &mut self,
        work: WorkId,
        times: (u64, u64),
        started: &HashMap<AgentId, SampleDelivery>,
        host: &mut HostThread,
    ) {
        let agent = self.attribution.agent_of(work);
        let execution = Execution {
            device: times,
            samples: agent.map_or(times, |agent| self.clocks.sample_times(agent, times)),
        };
        let (mappings, names, aggregates) = (&mut self.mappings, &self.names, &mut self.aggregates);
        let counted =
            self.attribution
                .complete(work, execution.samples, |mut sample_in_code, attributed| {
                    sample_in_code.time = execution.to_device(sample_in_code.time);
                    write_sample(
                        sample_in_code,
                        attributed,
                        mappings,
                        names,
                        aggregates,
                        started,
                        host,
                    )
                });
        if let Some(counted) = counted.filter(|counted| counted.enqueued.is_recorded) {
            self.write_totals(&counted, started, host);
        }
    }

    fn emit_all(&mut self, started: &HashMap<AgentId, SampleDelivery>, host: &mut HostThread) {
        let (mappings, names, aggregates) = (&mut self.mappings, &self.names, &mut self.aggregates);
        let unknown = &mut self.unknown;
        self.attribution.emit_all(|sample_in_code, attributed| {
            *unknown += u64::from(matches!(attributed, Attributed::Unknown));
            write_sample(
                sample_in_code,
                attributed,
                mappings,
                names,
                aggregates,
                started,
                host,
            )
        });
    }

    fn write_totals(
        &mut self,
        counted: &DispatchTotals,
        started: &HashMap<AgentId, SampleDelivery>,
        host: &mut HostThread,
    ) {
        let EnqueuedKernel {
            work,
            correlation,
            agent,
            ..
        } = counted.enqueued;
        let Some(to) = started.get(&agent).filter(|_| counted.total > 0) else {
            return;
        };
        for ((code_object, offset, kernel), samples) in
            self.aggregates.remove(&work).unwrap_or_default()
        {
            let mut aggregate = SampleAggregate::blank();
            (aggregate.correlation, aggregate.work) = (correlation, work);
            (aggregate.code_object, aggregate.offset) = (code_object, offset);
            (aggregate.kernel, aggregate.agent) = (kernel, agent);
            (aggregate.samples, aggregate.method) = (samples, SamplingMethod::HOST_TRAP);
            self.lines.of(&self.names, host, &mut aggregate);
            host.write_to(to.buffers, aggregate);
        }
        let mut totals = SamplingTotals::blank();
        (totals.correlation, totals.work, totals.agent) = (correlation, work, agent);
        (totals.total, totals.dropped) = (counted.total, counted.dropped);
        (totals.interval, totals.unit) = (self.interval, SamplingUnit::TIME);
        totals.method = SamplingMethod::HOST_TRAP;
        host.write_to(to.buffers, totals);
    }

    /// Writes notes about samples outside of kernels and about losses.
    fn write_notes(self, events_lost: u64) {
        let names = &self.names;
        let mut locations: Vec<_> = self.elsewhere.into_iter().collect();
        locations.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        for (location, samples) in locations.into_iter().take(MAX_LOCATIONS) {
            names.note(
                NoteKind::SAMPLES_ELSEWHERE,
                &format!("{} in {location}", count(samples, "sample")),
            );
        }
        let note = |number: u64, one: &str, fact: &str| {
            if number > 0 {
                let number = count(number, one);
                names.note(NoteKind::OTHER, &format!("PC sampling: {number} {fact}"));
            }
        };
        note(self.unknown, "sample", "in kernels of no known dispatch");
        note(
            self.attribution.lost_outside,
            "lost sample",
            "of no dispatch",
        );
        note(
            self.attribution.forgotten + events_lost,
            "dispatch",
            "over the limit of dispatches in flight: its samples belong to none",
        );
        note(
            self.threads.damaged,
            "ring",
            "of perf events contained malformed records",
        );
        note(
            self.threads.throttled,
            "time",
            "the kernel throttled sampling: use a longer interval",
        );
        note(
            self.mappings.not_stored,
            "code object",
            "could not be stored",
        );
        if let Some(why) = self.threads.why_refused() {
            let refused = self.threads.refused().max(1) as u64;
            note(refused, "thread", &format!("could not be sampled: {why}"));
        }
    }
}

/// Writes a sample to the buffers that record it. Returns `false` if it was dropped.
fn write_sample(
    sample_in_code: KernelSample,
    attributed: Attributed<'_>,
    mappings: &mut Mappings,
    names: &Names,
    aggregates: &mut HashMap<WorkId, HashMap<(CodeObjectId, u64, KernelId), u64>>,
    started: &HashMap<AgentId, SampleDelivery>,
    host: &mut HostThread,
) -> bool {
    let mut sample = HostTrapSample::blank();
    let never = Absent::EXEC_MASK
        .with(Absent::WORKGROUP)
        .with(Absent::WAVE_IN_GROUP);
    sample.time = DeviceTime(sample_in_code.time);
    (sample.code_object, sample.offset) = (sample_in_code.code.id, sample_in_code.offset.0);
    sample.hardware = HardwareId::of_cpu(sample_in_code.cpu as u16);
    sample.thread = ThreadId(sample_in_code.thread);
    sample.absent = never;
    let to = match attributed {
        Attributed::Unrecorded => return true,
        Attributed::To(dispatch, kernel) => {
            let enqueued = &dispatch.enqueued;
            mappings.set_module(&sample_in_code.code, kernel, names);
            (sample.correlation, sample.external) = (enqueued.correlation, enqueued.external);
            (sample.work, sample.agent, sample.kernel) = (enqueued.work, enqueued.agent, kernel);
            let Some(to) = started.get(&enqueued.agent) else {
                return true;
            };
            if to.deliver == Deliver::Aggregates {
                let at = (sample.code_object, sample.offset, kernel);
                *aggregates
                    .entry(enqueued.work)
                    .or_default()
                    .entry(at)
                    .or_default() += 1;
                return true;
            }
            to
        }
        Attributed::Unknown => {
            sample.absent = never
                .with(Absent::DISPATCH)
                .with(Absent::CORRELATION)
                .with(Absent::EXTERNAL)
                .with(Absent::KERNEL);
            // The agent is unknown.
            let Some((agent, to)) = started.iter().next() else {
                return true;
            };
            sample.agent = *agent;
            if to.deliver == Deliver::Aggregates {
                return true;
            }
            to
        }
    };
    host.write_to(to.buffers, sample)
}

fn kernel_name(names: &Names, kernel: KernelId) -> Option<Arc<str>> {
    let symbol = names.get::<KernelSymbol>(kernel.0)?;
    names.text(symbol.name).map(Arc::from)
}

impl Provider<Request> for SamplerAgent {
    fn configurations(&self) -> Vec<Configuration> {
        let possible = self.sampler.source.possible();
        match self.sampler.state().request {
            Some(active) => vec![Configuration::active(active, &possible)],
            None => possible,
        }
    }

    fn configure(&self, request: &Request) -> Result<(), ConfigureError> {
        // Configuring is the time to report that sampling does not work, not the first kernel.
        let source = self.sampler.source;
        source::check(source, request.interval)?;
        let mut state = self.sampler.state();
        state.request = Some(*request);
        state.configured.push(self.agent);
        Ok(())
    }

    fn release(&self) {
        let mut state = self.sampler.state();
        state.configured.retain(|agent| *agent != self.agent);
        if state.configured.is_empty() {
            state.request = None;
        }
    }

    fn start(&self, to: SampleDelivery) {
        self.sampler.start(self.agent, to);
    }

    fn stop(&self) {
        self.sampler.stop(self.agent);
    }

    fn flush(&self) {
        self.sampler.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_collect::context::{BufferOptions, Context, RecordBuffer};
    use gputrail_collect::switchboard::Switchboard;

    /// An agent whose delivery is kept at its start.
    #[derive(Default)]
    struct Started(Mutex<Option<SampleDelivery>>);

    impl Provider<Request> for Started {
        fn configurations(&self) -> Vec<Configuration> {
            SampleSource::PerfEvents.possible()
        }

        fn configure(&self, _: &Request) -> Result<(), ConfigureError> {
            Ok(())
        }

        fn release(&self) {}

        fn start(&self, to: SampleDelivery) {
            *lock_std(&self.0) = Some(to);
        }

        fn stop(&self) {}

        fn flush(&self) {}
    }

    #[test]
    fn samples_that_cannot_be_read_are_records_of_their_own() {
        let agent = AgentId(3);
        let board = Switchboard::new();
        let provider = Arc::new(Started::default());
        board
            .sampling()
            .offer(agent, "a processor", provider.clone());
        let got = Arc::new(Mutex::new(Vec::new()));
        let into = got.clone();
        let options = BufferOptions {
            pool_bytes: 1 << 16,
            block_bytes: 4096,
            threads: 8,
            ..BufferOptions::default()
        };
        let buffer = RecordBuffer::on(&board, options, move |batch| {
            let invalid = batch
                .records()
                .filter_map(|record| record.read::<InvalidSample>());
            lock_std(&into).extend(invalid);
        })
        .unwrap();
        let request = Request {
            method: SamplingMethod::HOST_TRAP,
            unit: SamplingUnit::TIME,
            interval: 100_000,
        };
        let context = Context::on(&board).unwrap();
        context
            .sample(&buffer, agent, request, Deliver::Samples)
            .unwrap();
        context.start().unwrap();
        let started = HashMap::from([(agent, lock_std(&provider.0).unwrap())]);
        let names = board.names().clone();
        let mut run = ActiveRun::new(SampleSource::PerfEvents, request.interval, agent, names);
        run.invalid = 2;
        let mut host = HostThread::new(&board, ThreadId(1), true).unwrap();
        run.write_invalid(&started, &mut host);
        run.write_invalid(&started, &mut host);
        buffer.flush().unwrap();
        let got: Vec<_> = lock_std(&got)
            .iter()
            .map(|one| (one.agent, one.method))
            .collect();
        assert_eq!(got, [(agent, SamplingMethod::HOST_TRAP); 2]);
    }
}
