//! The devices of the simulated machine: engines that execute work, and the hardware queues that feed them.
//!
//! A queue runs its commands one at a time in the order of submission. A command starts once it has arrived at the
//! device and the work that it depends on has ended. The queues of an engine (compute units, a copy engine, or a peer
//! link) share its capacity: each running command gets as much as it can use, up to an equal share, and more when
//! others end.
//!
//! The work of an engine may take turns instead ([`SimMachine::slice`]): each runs alone for a slice of time, is saved
//! while the others have theirs, and is restored.
//!
//! A command may have children, which it launches when half of its work is done, and waits for: it is saved, and does not
//! use the engine, until the last one has ended and it is restored.
//!
//! The duration of a kernel is determined only by its [`Demand`]. This module does not know about records, threads or
//! clocks.

use super::recent::{Recent, WorkIndex};
use super::time::Moment;
use gputrail_record::Nanos;
use std::collections::VecDeque;

/// An engine of a [`SimMachine`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct EngineIndex(usize);

/// A hardware queue of a [`SimMachine`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct QueueIndex(usize);

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
pub(super) struct SimCommand {
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
pub(super) struct FinishedCommand {
    pub(super) work: WorkIndex,
    pub(super) start: Moment,
    pub(super) end: Moment,
}

/// All devices, advanced together in virtual time.
#[derive(Debug, Default)]
pub(super) struct SimMachine {
    engines: Vec<Engine>,
    queues: Vec<SimQueue>,
    works: Recent<Submitted>,
    /// The use of watched engines; see [`SimMachine::watch`].
    spans: Vec<ShareSpan>,
    preempted: Vec<Preempted>,
}

/// A span of time in which the shares of an engine did not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShareSpan {
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
    running: Vec<RunningWork>,
    /// The time for which the `remaining` of running work is valid.
    updated: Moment,
}

#[derive(Debug)]
struct RunningWork {
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
struct SimQueue {
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
    command: SimCommand,
    start: Option<Moment>,
    end: Option<Moment>,
    /// Children that have not ended.
    children: u32,
    /// When it launched them.
    saved: Option<Moment>,
}

impl SimMachine {
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

    /// Starts recording the use of `engine` for [`SimMachine::take_spans`].
    pub(super) fn watch(&mut self, engine: EngineIndex) {
        self.engines[engine.0].watched = true;
    }

    /// Has the work of `engine` take turns of this length from now on.
    pub(super) fn slice(&mut self, engine: EngineIndex, slice: Nanos) {
        self.engines[engine.0].slice = Some(slice);
    }

    /// The use of the watched engines since the last call, in order of time.
    pub(super) fn take_spans(&mut self) -> Vec<ShareSpan> {
        std::mem::take(&mut self.spans)
    }

    /// The work that was saved or restored since the last call, in order of time.
    pub(super) fn take_preempted(&mut self) -> Vec<Preempted> {
        std::mem::take(&mut self.preempted)
    }

    /// Adds a queue that feeds `engine`.
    pub(super) fn queue(&mut self, engine: EngineIndex) -> QueueIndex {
        self.queues.push(SimQueue {
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
    pub(super) fn submit(&mut self, command: SimCommand) -> WorkIndex {
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
    pub(super) fn advance(&mut self, until: Moment, finished: &mut Vec<FinishedCommand>) {
        while let Some(now) = self.next().filter(|&next| next <= until) {
            self.end_work(now, finished);
            self.start_work(now);
        }
    }

    /// The time at which the first command of a queue starts, if it is known.
    fn start_of(&self, queue: &SimQueue) -> Option<Moment> {
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

    fn end_work(&mut self, now: Moment, finished: &mut Vec<FinishedCommand>) {
        let mut parents = Vec::new();
        for (index, engine) in self.engines.iter_mut().enumerate() {
            if engine.watched && now > engine.updated && engine.running().next().is_some() {
                let shares = engine.running();
                self.spans.push(ShareSpan {
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
                finished.push(FinishedCommand {
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
            engine.running.push(RunningWork {
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

impl RunningWork {
    /// Whether it uses the engine.
    fn is_in_use(&self) -> bool {
        !self.saved && !self.waits
    }
}

impl Engine {
    /// The work that uses the engine.
    fn running(&self) -> impl Iterator<Item = &RunningWork> {
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
        let left = |running: &RunningWork| match running.setup {
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
mod tests;
