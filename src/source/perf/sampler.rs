//! The sampler of a process: its thread, its rounds, and what it writes.

use super::book::{Book, Counted, Enqueued, Held, Note, Notes, Verdict};
use super::clocks::{Clocks, Span};
use super::event::SampleClock;
use super::mappings::{Mappings, Place};
use super::ring::RingRecord;
use super::source::SampleSource;
use super::threads::{Threads, Told};
use crate::capture::names::Names;
use crate::collect::correlation::HostThread;
use crate::collect::process;
use crate::collect::sampling::lines::Lines;
use crate::collect::sampling::{Configuration, Deliver, Delivery, Refusal, Request, Sampler};
use crate::platform::sync::{Signal, lock_std};
use crate::record::*;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The longest time between two rounds.
const ROUND: Duration = Duration::from_millis(100);
/// The first one: threads are made, and kernels loaded, when a program begins.
const FIRST_ROUND: Duration = Duration::from_millis(10);
/// Rounds that a ring holds, if the thread runs all the time: whoever drains it may lose its core for a while.
const ROUNDS_IN_RING: u64 = 4;
/// Bytes of a sample in a ring.
const SAMPLE_BYTES: u64 = 40;
const RINGS: std::ops::RangeInclusive<usize> = 4 << 10..=256 << 10;
/// Places outside of kernels that a note names.
const MAX_LOCATIONS: usize = 40;

/// Whether the process's sampler is on.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// The process's sampler. Its agents share it, since they share the processors.
pub struct HostSampler {
    source: SampleSource,
    notes: Notes,
    state: Mutex<State>,
    wake: Signal,
}

#[derive(Default)]
struct State {
    /// What the agents are configured to do, all of them the same.
    request: Option<Request>,
    configured: Vec<AgentId>,
    started: HashMap<AgentId, Delivery>,
    run: Option<Run>,
    /// Tells a thread of an earlier run to end.
    generation: u64,
}

/// What there is while something is sampled.
struct Run {
    threads: Threads,
    mappings: Mappings,
    book: Book,
    notes: Vec<Note>,
    interval: u64,
    clock: SampleClock,
    /// The agent that code objects are said to be for.
    agent: AgentId,
    clocks: Clocks,
    names: Names,
    lines: Lines,
    elsewhere: HashMap<Arc<str>, u64>,
    /// Of those agents that want them: samples by dispatch and address, until the dispatch completes.
    folded: HashMap<WorkId, HashMap<(CodeObjectId, u64, KernelId), u64>>,
    /// Samples in kernels whose dispatch is not known.
    unknown: u64,
    /// The thread that drains.
    drainer: u32,
}

/// One agent of the sampler.
struct HostAgent {
    sampler: Arc<HostSampler>,
    agent: AgentId,
}

impl Default for HostSampler {
    fn default() -> Self {
        HostSampler::new()
    }
}

impl HostSampler {
    /// A sampler of this process.
    pub fn new() -> HostSampler {
        IS_ON.store(false, Ordering::Relaxed);
        HostSampler {
            source: SampleSource::requested(),
            notes: Notes::default(),
            state: Mutex::default(),
            wake: Signal::default(),
        }
    }

    /// What the sampling service gets to know of `agent`.
    pub fn agent(self: &Arc<Self>, agent: AgentId) -> Arc<dyn Sampler> {
        Arc::new(HostAgent {
            sampler: self.clone(),
            agent,
        })
    }

    /// Whether anything is sampled in this process: what a source asks before it puts a note down.
    #[inline(always)]
    pub fn is_any_on() -> bool {
        IS_ON.load(Ordering::Relaxed)
    }

    /// A kernel was put into a queue. Never waits.
    pub(crate) fn note(&self, note: Note) {
        self.notes.put(note);
    }

    /// The process ends: writes everything that waits, with what was sampled outside of kernels.
    pub fn finish(&self) {
        let mut state = self.state();
        self.round(&mut state, true);
        self.end(&mut state);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock_std(&self.state)
    }

    fn start(self: &Arc<Self>, agent: AgentId, to: Delivery) {
        let mut state = self.state();
        state.started.insert(agent, to);
        let (Some(request), Some(board)) = (state.request, process::board()) else {
            return;
        };
        if state.run.is_some() {
            return;
        }
        let mut run = Run::new(self.source, request.interval, agent, board.names().clone());
        run.mappings.read_all(0, agent, &run.names);
        run.threads.look(0);
        state.run = Some(run);
        state.generation += 1;
        let generation = state.generation;
        drop(state);
        IS_ON.store(true, Ordering::Relaxed);
        let sampler = self.clone();
        // Without a thread, rounds are made when somebody flushes.
        let _ = crate::platform::internal_thread::spawn(move || sampler.run(generation));
    }

    fn stop(&self, agent: AgentId) {
        let mut state = self.state();
        self.round(&mut state, true);
        state.started.remove(&agent);
        if state.started.is_empty() {
            self.end(&mut state);
        }
    }

    /// Nothing is sampled any more.
    fn end(&self, state: &mut State) {
        IS_ON.store(false, Ordering::Relaxed);
        state.generation += 1;
        if let Some(run) = state.run.take() {
            run.say_what_went_wrong(self.notes.lost());
        }
        self.wake.raise();
    }

    fn flush(&self) {
        self.round(&mut self.state(), false);
    }

    fn run(&self, generation: u64) {
        let me = crate::platform::system::thread_id();
        let mut pause = FIRST_ROUND;
        loop {
            let seen = self.wake.value();
            let mut state = self.state();
            if state.generation != generation {
                return;
            }
            if let Some(run) = &mut state.run {
                run.drainer = me;
            }
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.round(&mut state, false))) {
                // It may be anything, and may panic when it is dropped.
                std::mem::forget(panic);
                self.end(&mut state);
                return;
            }
            drop(state);
            self.wake.wait(seen, pause);
            pause = ROUND.min(pause * 2);
        }
    }

    /// Takes what there is, and writes what is known. `all`: also what waits for completions.
    fn round(&self, state: &mut State, all: bool) {
        let State { run, started, .. } = state;
        let (Some(run), Some(thread)) = (run, process::current()) else {
            return;
        };
        // In a signal handler that interrupted a write it cannot be borrowed: the next round does it.
        thread.with(|host| run.round(&self.notes, started, host, all));
    }
}

impl fmt::Debug for HostSampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostSampler").finish_non_exhaustive()
    }
}

impl Run {
    fn new(source: SampleSource, interval: u64, agent: AgentId, names: Names) -> Run {
        let samples = ROUNDS_IN_RING * ROUND.as_nanos() as u64 / interval.max(1);
        let ring = (samples * SAMPLE_BYTES).clamp(*RINGS.start() as u64, *RINGS.end() as u64);
        let clock = SampleClock::MonotonicRaw;
        Run {
            threads: Threads::new(source, interval, clock, ring as usize),
            mappings: Mappings::default(),
            book: Book::default(),
            notes: Vec::new(),
            interval,
            clock,
            agent,
            clocks: Clocks::new(names.clone()),
            names,
            lines: Lines::default(),
            elsewhere: HashMap::new(),
            folded: HashMap::new(),
            unknown: 0,
            drainer: 0,
        }
    }

    fn round(
        &mut self,
        notes: &Notes,
        started: &HashMap<AgentId, Delivery>,
        host: &mut HostThread,
        all: bool,
    ) {
        // First the notes: see `book`.
        notes.take(&mut self.notes);
        self.threads.look(self.drainer);
        self.take_samples();
        self.book.sort();
        let mut waiting = std::mem::take(&mut self.notes);
        for note in waiting.drain(..) {
            match note {
                Note::Enqueued(enqueued) => {
                    if started.contains_key(&enqueued.agent) {
                        let names = &self.names;
                        self.book
                            .enqueued(enqueued, || kernel_name(names, enqueued.kernel));
                    }
                }
                Note::Completed { work, start, end } => {
                    self.completed(work, (start, end), started, host);
                }
            }
        }
        self.notes = waiting;
        if all || self.book.is_full() {
            self.give_all(started, host);
        }
        if all {
            for counted in self.book.unfinished() {
                self.write_totals(&counted, started, host);
            }
        }
    }

    /// Takes what the rings hold, and finds out where it is.
    fn take_samples(&mut self) {
        let Run {
            threads,
            mappings,
            book,
            elsewhere,
            names,
            agent,
            clock,
            ..
        } = self;
        let mut samples = Vec::new();
        threads.drain(|told| match told {
            Told::Record(RingRecord::Sample(taken)) => samples.push(taken),
            Told::Record(RingRecord::Mapped {
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
            Told::Record(_) => {}
            Told::Gap(from, to, lost) => book.gap(from, to, lost),
        });
        let mut has_read = false;
        if !threads.tells_mappings() && !samples.is_empty() {
            mappings.read_all(clock.now(), *agent, names);
        }
        for taken in samples {
            let mut place = mappings.find(taken.address, taken.time);
            if place.is_none() && !has_read {
                // Mapped by a thread that was not sampled when it did.
                has_read = true;
                mappings.read_all(clock.now(), *agent, names);
                place = mappings.find(taken.address, u64::MAX);
            }
            match place {
                Some(Place::Kernel(code, offset)) => book.hold(Held {
                    time: taken.time,
                    offset,
                    thread: taken.thread,
                    cpu: taken.cpu,
                    code,
                }),
                Some(Place::Elsewhere(name)) => *elsewhere.entry(name).or_default() += 1,
                None => *elsewhere.entry(mappings.unknown()).or_default() += 1,
            }
        }
    }

    fn completed(
        &mut self,
        work: WorkId,
        times: (u64, u64),
        started: &HashMap<AgentId, Delivery>,
        host: &mut HostThread,
    ) {
        let agent = self.book.agent_of(work);
        let span = Span {
            device: times,
            samples: agent.map_or(times, |agent| self.clocks.by_clock_of_samples(agent, times)),
        };
        let (mappings, names, folded) = (&mut self.mappings, &self.names, &mut self.folded);
        let counted = self
            .book
            .completed(work, span.samples, |mut held, verdict| {
                held.time = span.to_device(held.time);
                give(held, verdict, mappings, names, folded, started, host)
            });
        if let Some(counted) = counted.filter(|counted| counted.enqueued.is_recorded) {
            self.write_totals(&counted, started, host);
        }
    }

    fn give_all(&mut self, started: &HashMap<AgentId, Delivery>, host: &mut HostThread) {
        let (mappings, names, folded) = (&mut self.mappings, &self.names, &mut self.folded);
        let unknown = &mut self.unknown;
        self.book.give_all(|held, verdict| {
            *unknown += u64::from(matches!(verdict, Verdict::Unknown));
            give(held, verdict, mappings, names, folded, started, host)
        });
    }

    fn write_totals(
        &mut self,
        counted: &Counted,
        started: &HashMap<AgentId, Delivery>,
        host: &mut HostThread,
    ) {
        let Enqueued {
            work,
            correlation,
            agent,
            ..
        } = counted.enqueued;
        let Some(to) = started.get(&agent).filter(|_| counted.total > 0) else {
            return;
        };
        for ((code_object, offset, kernel), samples) in
            self.folded.remove(&work).unwrap_or_default()
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

    /// Says in the capture what was sampled outside of kernels, and what is missing.
    fn say_what_went_wrong(self, notes_lost: u64) {
        let names = &self.names;
        let mut places: Vec<_> = self.elsewhere.into_iter().collect();
        places.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        for (place, samples) in places.into_iter().take(MAX_LOCATIONS) {
            names.note(
                NoteKind::SAMPLES_ELSEWHERE,
                &format!("{samples} samples in {place}"),
            );
        }
        let say = |count: u64, what: &str| {
            if count > 0 {
                names.note(NoteKind::OTHER, &format!("PC sampling: {count} {what}"));
            }
        };
        say(
            self.unknown,
            "samples in kernels belong to no dispatch that is known",
        );
        say(
            self.book.lost_elsewhere,
            "samples were lost that belong to no dispatch",
        );
        say(
            self.book.forgotten + notes_lost,
            "dispatches were too many to be remembered: their samples belong to none",
        );
        say(
            self.threads.damaged,
            "rings of perf events could not be read",
        );
        say(
            self.threads.throttled,
            "times the kernel held sampling back: a longer interval avoids that",
        );
        say(self.mappings.not_kept, "code objects could not be kept");
        if let Some(why) = self.threads.why_refused() {
            let what = format!("threads could not be sampled: {why}");
            say(self.threads.refused().max(1) as u64, &what);
        }
    }
}

/// Writes a sample to who wants it. `false` if there was no room for it.
fn give(
    held: Held,
    verdict: Verdict<'_>,
    mappings: &mut Mappings,
    names: &Names,
    folded: &mut HashMap<WorkId, HashMap<(CodeObjectId, u64, KernelId), u64>>,
    started: &HashMap<AgentId, Delivery>,
    host: &mut HostThread,
) -> bool {
    let mut sample = HostTrapSample::blank();
    let never = Absent::EXEC_MASK
        .with(Absent::WORKGROUP)
        .with(Absent::WAVE_IN_GROUP);
    sample.time = DeviceTime(held.time);
    (sample.code_object, sample.offset) = (held.code.id, held.offset.0);
    sample.hardware = HardwareId::of_cpu(held.cpu as u16);
    sample.thread = ThreadId(held.thread);
    sample.absent = never;
    let to = match verdict {
        Verdict::LeftOut => return true,
        Verdict::Of(dispatch, kernel) => {
            let enqueued = &dispatch.enqueued;
            mappings.belongs(&held.code, kernel, names);
            (sample.correlation, sample.external) = (enqueued.correlation, enqueued.external);
            (sample.work, sample.agent, sample.kernel) = (enqueued.work, enqueued.agent, kernel);
            let Some(to) = started.get(&enqueued.agent) else {
                return true;
            };
            if to.deliver == Deliver::Aggregates {
                let at = (sample.code_object, sample.offset, kernel);
                *folded
                    .entry(enqueued.work)
                    .or_default()
                    .entry(at)
                    .or_default() += 1;
                return true;
            }
            to
        }
        Verdict::Unknown => {
            sample.absent = never
                .with(Absent::DISPATCH)
                .with(Absent::CORRELATION)
                .with(Absent::EXTERNAL)
                .with(Absent::KERNEL);
            // Which of several agents it was, nobody knows.
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

impl Sampler for HostAgent {
    fn configurations(&self) -> Vec<Configuration> {
        if let Some(active) = self.sampler.state().request {
            return vec![Configuration::active(active)];
        }
        self.sampler.source.possible()
    }

    fn configure(&self, request: &Request) -> Result<(), Refusal> {
        // Now, and not when the first kernel runs, is the time to say that it does not work.
        let source = self.sampler.source;
        source
            .permitted(request.interval)
            .map_err(Refusal::System)?;
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

    fn start(&self, to: Delivery) {
        self.sampler.start(self.agent, to);
    }

    fn stop(&self) {
        self.sampler.stop(self.agent);
    }

    fn flush(&self) {
        self.sampler.flush();
    }
}
