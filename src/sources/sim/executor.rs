//! Host threads in virtual time: each is a future, polled when its time has come.
//!
//! One real thread runs everything, in an order that depends only on virtual time and on the order of spawning. A
//! thread yields only where it waits: for time to pass, or for a [`Gate`].

use super::time::Moment;
use crate::record::Nanos;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A thread of the executor.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TaskId(usize);

/// The future of a thread.
type Body = Pin<Box<dyn Future<Output = ()>>>;

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
}

struct Spawned {
    body: Body,
    service: bool,
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

/// All remaining threads wait for something that will not happen.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Stuck {
    /// The number of waiting threads.
    pub(super) threads: usize,
}

impl Executor {
    pub(super) fn new() -> Executor {
        Executor {
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
    pub(super) fn spawn(&self, body: impl Future<Output = ()> + 'static) {
        self.add(Box::pin(body), false);
    }

    /// Spawns a service thread: [`Executor::run`] does not wait for its end.
    pub(super) fn spawn_service(&self, body: impl Future<Output = ()> + 'static) {
        self.add(Box::pin(body), true);
    }

    fn add(&self, body: Body, service: bool) {
        let task = TaskId(self.tasks.replace(self.tasks.get() + 1));
        self.spawned.borrow_mut().push(Spawned { body, service });
        self.wake(task, self.now());
    }

    fn wake(&self, task: TaskId, at: Moment) {
        let asked = self.asked.replace(self.asked.get() + 1);
        self.timers.borrow_mut().push(Reverse((at, asked, task)));
    }

    /// Runs until no events remain. At equal times the world comes first.
    pub(super) fn run(&self, world: &dyn World) -> Result<(), Stuck> {
        let mut tasks: Vec<Option<Spawned>> = Vec::new();
        loop {
            tasks.extend(self.spawned.take().into_iter().map(Some));
            let timer = self.timers.borrow().peek().map(|Reverse((at, ..))| *at);
            match (world.next(), timer) {
                (Some(event), timer) if timer.is_none_or(|timer| event <= timer) => {
                    self.now.set(event);
                    world.reach(event);
                    world.advance(event);
                }
                (_, Some(timer)) => {
                    world.reach(timer);
                    self.poll_next(&mut tasks);
                }
                (_, None) => break,
            }
        }
        match tasks.iter().flatten().filter(|task| !task.service).count() {
            0 => Ok(()),
            threads => Err(Stuck { threads }),
        }
    }

    fn poll_next(&self, tasks: &mut [Option<Spawned>]) {
        let Some(Reverse((at, _, task))) = self.timers.borrow_mut().pop() else {
            return;
        };
        self.now.set(at);
        self.current.set(task);
        let slot = &mut tasks[task.0];
        let Some(Spawned { body, .. }) = slot else {
            return;
        };
        if body
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
        {
            *slot = None;
        }
    }

    /// Suspends the calling thread for `span`.
    pub(super) async fn sleep(&self, span: Nanos) {
        let until = self.now() + span;
        if span.is_some() {
            self.wake(self.current.get(), until);
        }
        std::future::poll_fn(|_| match self.now() >= until {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await
    }
}

/// A counter that only grows and that threads can wait for: the condition variable of the simulation.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate(Rc<GateState>);

#[derive(Debug, Default)]
struct GateState {
    count: Cell<u64>,
    waiting: RefCell<Vec<(u64, TaskId)>>,
}

impl Gate {
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
        let executor = Rc::new(Executor::new());
        let log = Log::default();
        for (name, span) in [("slow", 30), ("quick", 10)] {
            let (inside, log) = (executor.clone(), log.clone());
            executor.spawn(async move {
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
        let executor = Rc::new(Executor::new());
        let (log, gate) = (Log::default(), Gate::default());
        {
            let (executor, log, gate) = (executor.clone(), log.clone(), gate.clone());
            executor.clone().spawn(async move {
                gate.wait(&executor, 2).await;
                note(&executor, &log, "through");
                gate.wait(&executor, 1).await;
                note(&executor, &log, "open already");
            });
        }
        let (inside, opener) = (executor.clone(), gate.clone());
        executor.spawn(async move {
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
        let executor = Rc::new(Executor::new());
        for service in [true, false] {
            let inside = executor.clone();
            let body = async move { Gate::default().wait(&inside, 1).await };
            match service {
                true => executor.spawn_service(body),
                false => executor.spawn(body),
            }
        }
        assert_eq!(executor.run(&Nothing), Err(Stuck { threads: 1 }));
    }
}
