//! Host threads in virtual time: each is a future, polled when its time has come.
//!
//! They are polled one at a time, in an order that depends only on virtual time and on the order of spawning. A
//! thread yields only where it waits: for time to pass, or for a [`SimGate`]. One thread of the system polls all of them, or
//! each has one of its own ([`Polling`]).

use super::system_thread::{Body, SystemThread, poll};
use super::time::Moment;
use gputrail_record::Nanos;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::task::Poll;

/// A thread of the executor.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TaskId(usize);

/// The threads of the system that poll the futures.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Polling {
    /// The thread that calls [`Executor::run`] polls all of them.
    OneThread,
    /// It polls the first one. Each of the others has a thread of its own.
    ThreadEach,
}

/// Runs threads in virtual time.
#[derive(Debug)]
pub(super) struct Executor {
    now: Cell<Moment>,
    /// The threads to poll, by time, equal times in the order of their requests.
    timers: RefCell<BinaryHeap<Reverse<(Moment, u64, TaskId)>>>,
    asked: Cell<u64>,
    /// The thread being polled.
    current: Cell<TaskId>,
    /// Threads that `run` has not started yet.
    spawned: RefCell<Vec<Spawned>>,
    tasks: Cell<usize>,
    polling: Polling,
}

struct Spawned {
    name: Box<str>,
    body: Body,
    service: bool,
}

/// A started thread.
struct Task {
    polled: Polled,
    service: bool,
}

/// A future, and what polls it.
enum Polled {
    Here(Body),
    There(SystemThread),
}

impl Task {
    fn start(spawned: Spawned, has_thread: bool) -> Result<Task, Halted> {
        let Spawned {
            name,
            body,
            service,
        } = spawned;
        let polled = if has_thread {
            Polled::There(
                SystemThread::start(&name, body).map_err(|error| Halted::NoThread {
                    name: name.into(),
                    reason: error.to_string(),
                })?,
            )
        } else {
            Polled::Here(body)
        };
        Ok(Task { polled, service })
    }

    /// Whether it has ended.
    fn poll(&mut self) -> Result<bool, Halted> {
        match &mut self.polled {
            Polled::Here(body) => Ok(poll(body)),
            Polled::There(thread) => thread.poll().ok_or(Halted::Forked),
        }
    }
}

impl std::fmt::Debug for Spawned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spawned")
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

/// A simulation that runs along with the threads.
pub(super) trait World {
    /// The time of its next event.
    fn next(&self) -> Option<Moment>;
    /// Processes all events up to `now`. It may open gates.
    fn advance(&self, now: Moment);
    /// Time has come to `now`, for the threads and the world.
    fn reach(&self, now: Moment) {
        let _ = now;
    }
}

/// The reason for which a run ended before its threads did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Halted {
    /// This many threads wait for something that will not happen.
    Stuck(usize),
    /// The system refused a thread.
    NoThread { name: String, reason: String },
    /// This is a forked child, which has none of the other threads.
    Forked,
}

impl Executor {
    pub(super) fn new(polling: Polling) -> Executor {
        Executor {
            polling,
            now: Cell::new(Moment::BEGIN),
            timers: RefCell::default(),
            asked: Cell::new(0),
            current: Cell::new(TaskId(0)),
            spawned: RefCell::default(),
            tasks: Cell::new(0),
        }
    }

    pub(super) fn now(&self) -> Moment {
        self.now.get()
    }

    /// Spawns a thread that starts now.
    pub(super) fn spawn(&self, name: &str, body: impl Future<Output = ()> + 'static) {
        self.add(name, Box::pin(body), false);
    }

    /// Spawns a service thread: [`Executor::run`] does not wait for its end.
    pub(super) fn spawn_service(&self, name: &str, body: impl Future<Output = ()> + 'static) {
        self.add(name, Box::pin(body), true);
    }

    fn add(&self, name: &str, body: Body, service: bool) {
        let task = TaskId(self.tasks.replace(self.tasks.get() + 1));
        let name = name.into();
        self.spawned.borrow_mut().push(Spawned {
            name,
            body,
            service,
        });
        self.wake(task, self.now());
    }

    fn wake(&self, task: TaskId, at: Moment) {
        let asked = self.asked.replace(self.asked.get() + 1);
        self.timers.borrow_mut().push(Reverse((at, asked, task)));
    }

    /// Runs until no events remain. At equal times the world comes first.
    pub(super) fn run(&self, world: &dyn World) -> Result<(), Halted> {
        let mut tasks: Vec<Option<Task>> = Vec::new();
        loop {
            for spawned in self.spawned.take() {
                let has_thread = self.polling == Polling::ThreadEach && !tasks.is_empty();
                tasks.push(Some(Task::start(spawned, has_thread)?));
            }
            let timer = self.timers.borrow().peek().map(|Reverse((at, ..))| *at);
            match (world.next(), timer) {
                (Some(event), timer) if timer.is_none_or(|timer| event <= timer) => {
                    self.now.set(event);
                    world.reach(event);
                    world.advance(event);
                }
                (_, Some(timer)) => {
                    world.reach(timer);
                    self.poll_next(&mut tasks)?;
                }
                (_, None) => break,
            }
        }
        match tasks.iter().flatten().filter(|task| !task.service).count() {
            0 => Ok(()),
            threads => Err(Halted::Stuck(threads)),
        }
    }

    fn poll_next(&self, tasks: &mut [Option<Task>]) -> Result<(), Halted> {
        let Some(Reverse((at, _, task))) = self.timers.borrow_mut().pop() else {
            return Ok(());
        };
        self.now.set(at);
        self.current.set(task);
        let slot = &mut tasks[task.0];
        if let Some(task) = slot
            && task.poll()?
        {
            *slot = None;
        }
        Ok(())
    }

    /// Suspends the calling thread for `span`.
    pub(super) async fn sleep(&self, span: Nanos) {
        let until = self.now() + span;
        if span.is_some() {
            self.wake(self.current.get(), until);
        }
        std::future::poll_fn(|_| {
            if self.now() >= until {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await
    }
}

/// A counter that only grows and that threads can wait for: the condition variable of the simulation.
#[derive(Clone, Debug, Default)]
pub(super) struct SimGate(Rc<GateState>);

#[derive(Debug, Default)]
struct GateState {
    count: Cell<u64>,
    waiting: RefCell<Vec<(u64, TaskId)>>,
}

impl SimGate {
    pub(super) fn count(&self) -> u64 {
        self.0.count.get()
    }

    /// Increments the count. Threads whose count is reached wake `delay` later.
    pub(super) fn open(&self, executor: &Executor, delay: Nanos) {
        let count = self.count() + 1;
        self.0.count.set(count);
        for (_, task) in self
            .0
            .waiting
            .borrow_mut()
            .extract_if(.., |(wanted, _)| *wanted <= count)
        {
            executor.wake(task, executor.now() + delay);
        }
    }

    /// Waits until the count is at least `wanted`.
    pub(super) async fn wait(&self, executor: &Executor, wanted: u64) {
        let mut listed = false;
        std::future::poll_fn(|_| {
            if self.count() >= wanted {
                return Poll::Ready(());
            }
            if !listed {
                listed = true;
                self.0
                    .waiting
                    .borrow_mut()
                    .push((wanted, executor.current.get()));
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl World for Nothing {
        fn next(&self) -> Option<Moment> {
            None
        }
        fn advance(&self, _: Moment) {}
    }

    type Log = Rc<RefCell<Vec<(u64, &'static str)>>>;

    fn note(executor: &Executor, log: &Log, what: &'static str) {
        log.borrow_mut()
            .push(((executor.now() - Moment::BEGIN).0, what));
    }

    #[test]
    fn threads_run_in_the_order_of_their_times() {
        let executor = Rc::new(Executor::new(Polling::OneThread));
        let log = Log::default();
        for (name, span) in [("slow", 30), ("quick", 10)] {
            let (inside, log) = (executor.clone(), log.clone());
            executor.spawn(name, async move {
                for _ in 0..2 {
                    inside.sleep(Nanos(span)).await;
                    note(&inside, &log, name);
                }
            });
        }
        assert_eq!(executor.run(&Nothing), Ok(()));
        assert_eq!(
            *log.borrow(),
            [(10, "quick"), (20, "quick"), (30, "slow"), (60, "slow")]
        );
    }

    #[test]
    fn a_gate_lets_through_once_its_count_is_reached() {
        let executor = Rc::new(Executor::new(Polling::OneThread));
        let (log, gate) = (Log::default(), SimGate::default());
        {
            let (executor, log, gate) = (executor.clone(), log.clone(), gate.clone());
            executor.clone().spawn("waiting", async move {
                gate.wait(&executor, 2).await;
                note(&executor, &log, "through");
                gate.wait(&executor, 1).await;
                note(&executor, &log, "open already");
            });
        }
        let (inside, opener) = (executor.clone(), gate.clone());
        executor.spawn("opening", async move {
            inside.sleep(Nanos(5)).await;
            opener.open(&inside, Nanos(1));
            inside.sleep(Nanos(5)).await;
            opener.open(&inside, Nanos(1));
        });
        assert_eq!(executor.run(&Nothing), Ok(()));
        assert_eq!(*log.borrow(), [(11, "through"), (11, "open already")]);
    }

    #[test]
    fn threads_that_nothing_can_wake_are_reported_and_services_are_not() {
        let executor = Rc::new(Executor::new(Polling::OneThread));
        for service in [true, false] {
            let inside = executor.clone();
            let body = async move { SimGate::default().wait(&inside, 1).await };
            if service {
                executor.spawn_service("service", body)
            } else {
                executor.spawn("thread", body)
            }
        }
        assert_eq!(executor.run(&Nothing), Err(Halted::Stuck(1)));
    }

    #[test]
    fn threads_of_their_own_take_turns_in_the_order_of_their_times() {
        let executor = Rc::new(Executor::new(Polling::ThreadEach));
        let (log, ids) = (Log::default(), Rc::new(RefCell::new(Vec::new())));
        for (name, span) in [("slow", 30), ("quick", 10)] {
            let (inside, log, ids) = (executor.clone(), log.clone(), ids.clone());
            executor.spawn(name, async move {
                for _ in 0..2 {
                    inside.sleep(Nanos(span)).await;
                    note(&inside, &log, name);
                    ids.borrow_mut().push((name, std::thread::current().id()));
                }
            });
        }
        let waits = executor.clone();
        let service = async move { SimGate::default().wait(&waits, 1).await };
        executor.spawn_service("service", service);
        assert_eq!(executor.run(&Nothing), Ok(()));
        assert_eq!(
            *log.borrow(),
            [(10, "quick"), (20, "quick"), (30, "slow"), (60, "slow")]
        );
        let ids = ids.borrow();
        let of = |name| ids.iter().filter(move |(of, _)| *of == name);
        let here = std::thread::current().id();
        assert!(of("slow").all(|(_, id)| *id == here));
        assert!(of("quick").all(|(_, id)| *id == ids[0].1 && *id != here));
        // The futures that have not ended are gone, and with them what they held.
        assert_eq!(Rc::strong_count(&executor), 1);
    }

    #[test]
    fn what_a_thread_panics_with_comes_out_of_the_run() {
        let executor = Executor::new(Polling::ThreadEach);
        executor.spawn("first", async {});
        executor.spawn("second", async { std::panic::resume_unwind(Box::new(7)) });
        let run = std::panic::AssertUnwindSafe(|| executor.run(&Nothing));
        let panic = std::panic::catch_unwind(run).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&7));
    }
}
