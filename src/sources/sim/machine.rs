//! The devices of the simulated machine: engines that execute work, and the hardware queues that feed them.
//!
//! A queue runs its commands one at a time in the order of submission. A command starts once it has arrived at the
//! device and the work that it depends on has ended. The queues of an engine (compute units, a copy engine, or a peer
//! link) share its capacity: each running command gets as much as it can use, up to an equal share, and more when
//! others end.
//!
//! The work of an engine may take turns instead ([`Machine::slice`]): each runs alone for a slice of time, is saved while the
//! others have theirs, and is restored.
//!
//! A command may have children, which it launches when half of its work is done, and waits for: it is saved, and does not
//! use the engine, until the last one has ended and it is restored.
//!
//! The duration of a kernel is determined only by its [`Demand`]. This module does not know about records, threads or
//! clocks.

use super::recent::Recent;
use super::time::Moment;
use gputrail_record::Nanos;
use std::collections::VecDeque;

/// An engine of a [`Machine`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct EngineIndex(usize);

/// A hardware queue of a [`Machine`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct QueueIndex(usize);

/// A command of a [`Machine`], numbered in the order of submission.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct WorkIndex(pub(super) usize);

/// The demand of a command on its engine, in the engine's unit: compute units, or bytes per nanosecond. Both fields
/// count thousandths, so that all arithmetic is exact.
#[derive(Copy, Clone, Debug)]
pub(super) struct Demand {
    /// Thousandths of the unit, times nanoseconds.
    pub(super) amount: u64,
    /// The largest usable share, in thousandths of the unit.
    pub(super) width: u64,
    /// The time from its start until it uses the engine: the latency of a link.
    pub(super) setup: Nanos,
}

/// A command to be submitted.
#[derive(Clone, Debug)]
pub(super) struct Command {
    pub(super) queue: QueueIndex,
    pub(super) demand: Demand,
    /// The time at which it arrives at the device.
    pub(super) arrives: Moment,
    /// The time that the queue takes to start it.
    pub(super) latency: Nanos,
    /// Submitted that must end before it starts.
    pub(super) after: Vec<WorkIndex>,
    /// The command that launches it, submitted before, which has not started.
    pub(super) parent: Option<WorkIndex>,
}

/// Running work was saved, or restored.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Preempted {
    pub(super) work: WorkIndex,
    pub(super) at: Moment,
    pub(super) saved: bool,
    pub(super) waits_for: WaitsFor,
}

/// What saved work waits for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum WaitsFor {
    /// The children that it has launched.
    Children,
    /// Its next turn.
    Turn,
}

/// A command that has ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Finished {
    pub(super) work: WorkIndex,
    pub(super) start: Moment,
    pub(super) end: Moment,
}

/// All devices, advanced together in virtual time.
#[derive(Debug, Default)]
pub(super) struct Machine {
    engines: Vec<Engine>,
    queues: Vec<Queue>,
    works: Recent<Submitted>,
    /// The use of watched engines; see [`Machine::watch`].
    spans: Vec<Span>,
    preempted: Vec<Preempted>,
}

/// A span of time in which the shares of an engine did not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) engine: EngineIndex,
    pub(super) from: Moment,
    pub(super) to: Moment,
    /// The running work and its shares, in thousandths of the engine's unit.
    pub(super) shares: Vec<(WorkIndex, u64)>,
}

#[derive(Debug)]
struct Engine {
    watched: bool,
    /// The length of a turn, if work takes turns.
    slice: Option<Nanos>,
    /// The work whose turn it is, and the end of the turn.
    turn: Option<(WorkIndex, Moment)>,
    capacity: u64,
    running: Vec<Running>,
    /// The time for which the `remaining` of running work is valid.
    updated: Moment,
}

#[derive(Debug)]
struct Running {
    work: WorkIndex,
    /// The rest of its [`Demand::setup`].
    setup: u64,
    remaining: u64,
    /// The rest at which it launches its children; 0 if it has none, or they have ended.
    launches_at: u64,
    /// Whether it waits for its children.
    saved: bool,
    /// Whether it waits for its turn.
    waits: bool,
    /// Whether it was saved when its turn was over.
    preempted: bool,
    /// Whether it has had a turn.
    has_run: bool,
    width: u64,
    /// Its current share, in `1 ..= width`.
    rate: u64,
}

#[derive(Debug)]
struct Queue {
    engine: EngineIndex,
    waiting: VecDeque<WorkIndex>,
    state: QueueState,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum QueueState {
    /// Idle since this moment.
    Idle(Moment),
    Running,
}

#[derive(Debug)]
struct Submitted {
    command: Command,
    start: Option<Moment>,
    end: Option<Moment>,
    /// Children that have not ended.
    children: u32,
    /// When it launched them.
    saved: Option<Moment>,
}

impl Machine {
    /// Adds an engine. `capacity` is in thousandths of its unit.
    pub(super) fn engine(&mut self, capacity: u64) -> EngineIndex {
        self.engines.push(Engine {
            watched: false,
            slice: None,
            turn: None,
            capacity,
            running: Vec::new(),
            updated: Moment::BEGIN,
        });
        EngineIndex(self.engines.len() - 1)
    }

    /// Starts recording the use of `engine` for [`Machine::take_spans`].
    pub(super) fn watch(&mut self, engine: EngineIndex) {
        self.engines[engine.0].watched = true;
    }

    /// Has the work of `engine` take turns of this length from now on.
    pub(super) fn slice(&mut self, engine: EngineIndex, slice: Nanos) {
        self.engines[engine.0].slice = Some(slice);
    }

    /// The use of the watched engines since the last call, in order of time.
    pub(super) fn take_spans(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.spans)
    }

    /// The work that was saved or restored since the last call, in order of time.
    pub(super) fn take_preempted(&mut self) -> Vec<Preempted> {
        std::mem::take(&mut self.preempted)
    }

    /// Adds a queue that feeds `engine`.
    pub(super) fn queue(&mut self, engine: EngineIndex) -> QueueIndex {
        self.queues.push(Queue {
            engine,
            waiting: VecDeque::new(),
            state: QueueState::Idle(Moment::BEGIN),
        });
        QueueIndex(self.queues.len() - 1)
    }

    /// The index of the next command.
    pub(super) fn next_index(&self) -> WorkIndex {
        self.works.next()
    }

    /// Submits a command. Its dependencies must have been submitted before, so deadlock is impossible.
    pub(super) fn submit(&mut self, command: Command) -> WorkIndex {
        let index = self.works.next();
        debug_assert!(command.after.iter().all(|&other| other < index));
        self.queues[command.queue.0].waiting.push_back(index);
        if let Some(parent) = command.parent {
            let parent = self.works.live_mut(parent);
            debug_assert!(parent.start.is_none());
            parent.children += 1;
        }
        let work = Submitted {
            command,
            start: None,
            end: None,
            children: 0,
            saved: None,
        };
        self.works.push(work, |work| work.end.is_some());
        index
    }

    /// The time of the next event, if nothing else is submitted.
    pub(super) fn next(&self) -> Option<Moment> {
        let starts = self.queues.iter().filter_map(|queue| self.start_of(queue));
        let ends = self.engines.iter().filter_map(Engine::next_change);
        starts.chain(ends).min()
    }

    /// Processes all events up to and including `until`, and appends the ended commands to `finished`, in order.
    pub(super) fn advance(&mut self, until: Moment, finished: &mut Vec<Finished>) {
        while let Some(now) = self.next().filter(|&next| next <= until) {
            self.end_work(now, finished);
            self.start_work(now);
        }
    }

    /// The time at which the first command of a queue starts, if it is known.
    fn start_of(&self, queue: &Queue) -> Option<Moment> {
        let QueueState::Idle(since) = queue.state else {
            return None;
        };
        let command = &self.works.live(*queue.waiting.front()?).command;
        let mut ready = since.max(command.arrives);
        if let Some(parent) = command.parent {
            ready = ready.max(self.works.live(parent).saved?);
        }
        for &other in &command.after {
            // Forgotten work ended before this command was submitted.
            if let Some(other) = self.works.get(other) {
                ready = ready.max(other.end?);
            }
        }
        Some(ready + command.latency)
    }

    fn end_work(&mut self, now: Moment, finished: &mut Vec<Finished>) {
        let mut parents = Vec::new();
        for (index, engine) in self.engines.iter_mut().enumerate() {
            if engine.watched && now > engine.updated && engine.running().next().is_some() {
                let shares = engine.running();
                self.spans.push(Span {
                    engine: EngineIndex(index),
                    from: engine.updated,
                    to: now,
                    shares: shares.map(|running| (running.work, running.rate)).collect(),
                });
            }
            engine.progress(now);
            for running in &mut engine.running {
                if running.remaining == running.launches_at
                    && !running.saved
                    && running.remaining > 0
                {
                    running.saved = true;
                    self.works.live_mut(running.work).saved = Some(now);
                    self.preempted.push(Preempted {
                        work: running.work,
                        at: now,
                        saved: true,
                        waits_for: WaitsFor::Children,
                    });
                }
            }
            for running in engine
                .running
                .extract_if(.., |running| running.remaining == 0)
            {
                let work = self.works.live_mut(running.work);
                work.end = Some(now);
                parents.extend(work.command.parent);
                self.queues[work.command.queue.0].state = QueueState::Idle(now);
                finished.push(Finished {
                    work: running.work,
                    start: work.start.expect("running work has started"),
                    end: now,
                });
            }
        }
        for parent in parents {
            self.child_ended(parent, now);
        }
    }

    /// A child of `work` has ended: after the last one `work` is restored.
    fn child_ended(&mut self, work: WorkIndex, now: Moment) {
        let parent = self.works.live_mut(work);
        parent.children -= 1;
        if parent.children > 0 {
            return;
        }
        let mut running = self.engines.iter_mut().flat_map(|one| &mut one.running);
        if let Some(running) = running.find(|running| running.work == work) {
            (running.saved, running.launches_at) = (false, 0);
        }
        self.preempted.push(Preempted {
            work,
            at: now,
            saved: false,
            waits_for: WaitsFor::Children,
        });
    }

    fn start_work(&mut self, now: Moment) {
        for index in 0..self.queues.len() {
            if self
                .start_of(&self.queues[index])
                .is_none_or(|start| start > now)
            {
                continue;
            }
            let queue = &mut self.queues[index];
            let work = queue.waiting.pop_front().expect("it has a start");
            queue.state = QueueState::Running;
            let state = self.works.live_mut(work);
            state.start = Some(now);
            let Demand {
                amount,
                width,
                setup,
            } = state.command.demand;
            let has_children = state.children > 0;
            let amount = amount.max(if has_children { 2 } else { 1 });
            let engine = &mut self.engines[queue.engine.0];
            let waits = engine.slice.is_some();
            engine.running.push(Running {
                waits,
                preempted: false,
                has_run: false,
                work,
                setup: setup.0,
                remaining: amount,
                launches_at: if has_children { amount / 2 } else { 0 },
                saved: false,
                width: width.max(1),
                rate: 1,
            });
        }
        for engine in &mut self.engines {
            engine.take_turns(now, &mut self.works, &mut self.preempted);
            engine.share();
        }
    }
}

impl Running {
    /// Whether it uses the engine.
    fn is_in_use(&self) -> bool {
        !self.saved && !self.waits
    }
}

impl Engine {
    /// The work that uses the engine.
    fn running(&self) -> impl Iterator<Item = &Running> {
        self.running.iter().filter(|running| running.is_in_use())
    }

    /// Gives the next work its turn if that of the present one is over, or that work has ended or waits for its children.
    fn take_turns(
        &mut self,
        now: Moment,
        works: &mut Recent<Submitted>,
        preempted: &mut Vec<Preempted>,
    ) {
        let Some(slice) = self.slice else {
            return;
        };
        let present = self.turn.map(|(work, _)| work);
        let mut all = self.running.iter();
        let goes_on = all.any(|one| Some(one.work) == present && !one.saved);
        if goes_on && self.turn.is_some_and(|(_, end)| end > now) {
            return;
        }
        // In the order of submission, in a circle.
        let ready = || {
            let ready = self.running.iter().filter(|one| !one.saved);
            ready
                .map(|one| one.work)
                .filter(move |work| Some(*work) != present)
        };
        let next = ready().filter(|work| Some(*work) > present).min();
        let next = next.or_else(|| ready().min());
        if goes_on && next.is_none() {
            return;
        }
        let mut note = |work, saved| {
            preempted.push(Preempted {
                work,
                at: now,
                saved,
                waits_for: WaitsFor::Turn,
            });
        };
        let mut all = self.running.iter_mut();
        if let Some(present) = all.find(|one| Some(one.work) == present) {
            present.waits = true;
            present.preempted = !present.saved;
            if present.preempted {
                note(present.work, true);
            }
        }
        let mut all = self.running.iter_mut();
        if let Some(next) = all.find(|one| Some(one.work) == next) {
            next.waits = false;
            if std::mem::take(&mut next.preempted) {
                note(next.work, false);
            }
            if !std::mem::replace(&mut next.has_run, true) {
                works.live_mut(next.work).start = Some(now);
            }
        }
        self.turn = next.map(|work| (work, now + slice));
    }

    /// The end of the present turn, if other work waits for its turn.
    fn turn_ends(&self) -> Option<Moment> {
        let mut all = self.running.iter();
        let waits = all.any(|one| one.waits && !one.saved);
        let (_, end) = self.turn.filter(|_| waits)?;
        Some(end.max(self.updated))
    }

    /// The time at which work ends, launches its children, or begins to use the engine.
    fn next_change(&self) -> Option<Moment> {
        let left = |running: &Running| match running.setup {
            0 => (running.remaining - running.launches_at).div_ceil(running.rate),
            setup => setup,
        };
        let change = self.running().map(left).min();
        let change = change.map(|left| self.updated + Nanos(left));
        change.into_iter().chain(self.turn_ends()).min()
    }

    fn progress(&mut self, now: Moment) {
        let span = (now - self.updated).0;
        let in_use = self.running.iter_mut().filter(|one| one.is_in_use());
        for running in in_use {
            match running.setup {
                0 => {
                    let rest = running.remaining.saturating_sub(running.rate * span);
                    running.remaining = rest.max(running.launches_at);
                }
                setup => running.setup = setup.saturating_sub(span),
            }
        }
        self.updated = now;
    }

    /// Divides the capacity: narrow work gets all that it can use, wide work shares the rest.
    fn share(&mut self) {
        let mut order: Vec<usize> = (0..self.running.len())
            .filter(|&index| self.running[index].setup == 0 && self.running[index].is_in_use())
            .collect();
        order.sort_by_key(|&index| self.running[index].width);
        let mut left = self.capacity;
        for (done, &index) in order.iter().enumerate() {
            let others = (order.len() - done) as u64;
            let running = &mut self.running[index];
            running.rate = running.width.min(left / others).max(1);
            left = left.saturating_sub(running.rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::random::{Purpose, Random};

    fn command(queue: QueueIndex, nanos: u64, width: u64, after: &[WorkIndex]) -> Command {
        Command {
            queue,
            demand: Demand {
                amount: nanos * width,
                width,
                setup: Nanos(0),
            },
            arrives: Moment::BEGIN,
            latency: Nanos(0),
            after: after.to_vec(),
            parent: None,
        }
    }

    /// Runs everything, and returns start and end of each command relative to the beginning.
    fn run(mut machine: Machine) -> Vec<(u64, u64)> {
        let mut finished = Vec::new();
        machine.advance(Moment(u64::MAX), &mut finished);
        finished.sort_by_key(|one| one.work);
        assert_eq!(WorkIndex(finished.len()), machine.works.next());
        let since = |moment: Moment| (moment - Moment::BEGIN).0;
        finished
            .iter()
            .map(|one| (since(one.start), since(one.end)))
            .collect()
    }

    #[test]
    fn a_queue_runs_one_work_after_the_other() {
        let mut machine = Machine::default();
        let engine = machine.engine(1_000);
        let queue = machine.queue(engine);
        machine.submit(command(queue, 50, 1_000, &[]));
        machine.submit(command(queue, 30, 1_000, &[]));
        assert_eq!(run(machine), [(0, 50), (50, 80)]);
    }

    #[test]
    fn work_uses_the_engine_after_its_setup() {
        let mut machine = Machine::default();
        let engine = machine.engine(1_000);
        let (one, two) = (machine.queue(engine), machine.queue(engine));
        machine.submit(command(one, 100, 1_000, &[]));
        let mut late = command(two, 30, 1_000, &[]);
        late.demand.setup = Nanos(20);
        machine.submit(late);
        // The first has the engine for 20, then each has half of it until the second ends.
        assert_eq!(run(machine), [(0, 130), (0, 80)]);
    }

    #[test]
    fn two_queues_of_one_engine_slow_each_other_down() {
        let mut machine = Machine::default();
        let engine = machine.engine(1_000);
        let (one, two) = (machine.queue(engine), machine.queue(engine));
        machine.submit(command(one, 100, 1_000, &[]));
        machine.submit(command(two, 50, 1_000, &[]));
        // Half each until 100, when the short one ends; the other one has 50 left.
        assert_eq!(run(machine), [(0, 150), (0, 100)]);
    }

    #[test]
    fn narrow_work_leaves_the_rest_to_wide_work() {
        let mut machine = Machine::default();
        let engine = machine.engine(1_000);
        let (one, two) = (machine.queue(engine), machine.queue(engine));
        machine.submit(command(one, 100, 1_000, &[]));
        machine.submit(command(two, 80, 200, &[]));
        // The narrow one runs at full speed; the wide one has 800 of 1000 for 80 ns, then everything.
        assert_eq!(run(machine), [(0, 116), (0, 80)]);
    }

    #[test]
    fn work_on_a_watched_engine_is_kept_with_its_share() {
        let mut machine = Machine::default();
        let engine = machine.engine(1_000);
        machine.watch(engine);
        let (one, two) = (machine.queue(engine), machine.queue(engine));
        let wide = machine.submit(command(one, 100, 1_000, &[]));
        let narrow = machine.submit(command(two, 80, 200, &[]));
        machine.advance(Moment(u64::MAX), &mut Vec::new());
        let span = |from: u64, to: u64, shares: &[(WorkIndex, u64)]| Span {
            engine,
            from: Moment::BEGIN + Nanos(from),
            to: Moment::BEGIN + Nanos(to),
            shares: shares.to_vec(),
        };
        let expected = [
            span(0, 80, &[(wide, 800), (narrow, 200)]),
            span(80, 116, &[(wide, 1_000)]),
        ];
        assert_eq!(machine.take_spans(), expected);
        assert!(machine.take_spans().is_empty());
    }

    #[test]
    fn a_parent_is_saved_at_half_of_its_work_until_its_children_have_ended() {
        let mut machine = Machine::default();
        let engine = machine.engine(1_000);
        machine.watch(engine);
        let (one, two) = (machine.queue(engine), machine.queue(engine));
        let parent = machine.submit(command(one, 100, 1_000, &[]));
        for nanos in [30, 20] {
            machine.submit(Command {
                parent: Some(parent),
                ..command(two, nanos, 1_000, &[])
            });
        }
        machine.submit(command(one, 10, 1_000, &[]));
        let mut finished = Vec::new();
        machine.advance(Moment(u64::MAX), &mut finished);
        let since = |moment: Moment| (moment - Moment::BEGIN).0;
        let mut times: Vec<_> = finished
            .iter()
            .map(|one| (one.work.0, since(one.start), since(one.end)))
            .collect();
        times.sort();
        let expected = [(0, 0, 150), (1, 50, 80), (2, 80, 100), (3, 150, 160)];
        assert_eq!(times, expected);
        let preempted: Vec<_> = machine
            .take_preempted()
            .iter()
            .map(|one| (one.work, since(one.at), one.saved))
            .collect();
        assert_eq!(preempted, [(parent, 50, true), (parent, 100, false)]);
        let used: Vec<_> = machine
            .take_spans()
            .iter()
            .map(|span| span.shares.len())
            .collect();
        assert_eq!(used, [1, 1, 1, 1, 1], "a saved parent uses nothing");
    }

    #[test]
    fn work_that_takes_turns_runs_alone_and_is_saved_while_others_run() {
        let mut machine = Machine::default();
        let engine = machine.engine(1_000);
        machine.slice(engine, Nanos(30));
        let (one, two) = (machine.queue(engine), machine.queue(engine));
        let long = machine.submit(command(one, 100, 1_000, &[]));
        let short = machine.submit(command(two, 50, 1_000, &[]));
        let mut finished = Vec::new();
        machine.advance(Moment(u64::MAX), &mut finished);
        let since = |moment: Moment| (moment - Moment::BEGIN).0;
        let times: Vec<_> = finished
            .iter()
            .map(|one| (one.work, since(one.start), since(one.end)))
            .collect();
        assert_eq!(times, [(short, 30, 110), (long, 0, 150)]);
        let preempted: Vec<_> = machine
            .take_preempted()
            .iter()
            .map(|one| (one.work, since(one.at), one.saved))
            .collect();
        let expected = [
            (long, 30, true),
            (short, 60, true),
            (long, 60, false),
            (long, 90, true),
            (short, 90, false),
            (long, 110, false),
        ];
        assert_eq!(preempted, expected);
    }

    #[test]
    fn parents_and_children_take_turns_with_other_work() {
        let mut machine = Machine::default();
        let engine = machine.engine(1_000);
        machine.slice(engine, Nanos(40));
        let queues = [(); 3].map(|()| machine.queue(engine));
        let parent = machine.submit(command(queues[0], 100, 1_000, &[]));
        machine.submit(Command {
            parent: Some(parent),
            ..command(queues[1], 30, 1_000, &[])
        });
        machine.submit(command(queues[2], 100, 1_000, &[]));
        // Nothing is lost or done twice: the engine is in use all the time.
        let times = run(machine);
        assert_eq!(times.iter().map(|(_, end)| *end).max(), Some(230));
        assert!(times.iter().all(|(start, end)| start < end));
    }

    #[test]
    fn engines_do_not_disturb_each_other() {
        let mut machine = Machine::default();
        let (compute, copy) = (machine.engine(1_000), machine.engine(1_000));
        let (one, two) = (machine.queue(compute), machine.queue(copy));
        machine.submit(command(one, 100, 1_000, &[]));
        machine.submit(command(two, 70, 1_000, &[]));
        assert_eq!(run(machine), [(0, 100), (0, 70)]);
    }

    #[test]
    fn work_waits_for_what_it_depends_on_and_blocks_its_queue() {
        let mut machine = Machine::default();
        let engine = machine.engine(4_000);
        let (one, two) = (machine.queue(engine), machine.queue(engine));
        let first = machine.submit(command(one, 100, 1_000, &[]));
        machine.submit(command(two, 10, 1_000, &[first]));
        machine.submit(command(two, 10, 1_000, &[]));
        assert_eq!(run(machine), [(0, 100), (100, 110), (110, 120)]);
    }

    #[test]
    fn work_starts_its_latency_after_it_has_arrived() {
        let mut machine = Machine::default();
        let engine = machine.engine(1_000);
        let queue = machine.queue(engine);
        machine.submit(Command {
            arrives: Moment::BEGIN + Nanos(40),
            latency: Nanos(5),
            ..command(queue, 10, 1_000, &[])
        });
        assert_eq!(run(machine), [(45, 55)]);
    }

    #[test]
    fn any_workload_ends_and_keeps_its_order() {
        for seed in 0..50 {
            let mut random = Random::fork(seed, Purpose::Device, 0);
            let mut machine = Machine::default();
            let engines: Vec<_> = (0..3)
                .map(|_| machine.engine(1 + random.below(5_000)))
                .collect();
            let queues: Vec<_> = (0..6).map(|n| machine.queue(engines[n % 3])).collect();
            let mut submitted = Vec::new();
            for n in 0..200 {
                let after = match n {
                    0 => vec![],
                    _ => (0..random.below(3))
                        .map(|_| WorkIndex(random.below(n) as usize))
                        .collect(),
                };
                let queue = random.below(6) as usize;
                submitted.push((queue, after.clone()));
                machine.submit(Command {
                    arrives: Moment::BEGIN + Nanos(random.below(20_000)),
                    latency: Nanos(random.below(50)),
                    ..command(
                        queues[queue],
                        random.below(900),
                        random.below(4_000),
                        &after,
                    )
                });
            }
            let times = run(machine);
            let mut last_of_queue = [0; 6];
            for ((queue, after), (start, end)) in submitted.iter().zip(&times) {
                assert!(start < end);
                assert!(*start >= last_of_queue[*queue], "seed {seed}");
                last_of_queue[*queue] = *end;
                for other in after {
                    assert!(*start >= times[other.0].1, "seed {seed}");
                }
            }
        }
    }
}
