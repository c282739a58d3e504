//! Spans and events of `tracing` itself, on threads and on an executor, against a library that notes its calls.

use super::library::{Library, Options};
use super::*;
use std::collections::HashMap;
use std::ffi::{CStr, c_int};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread::{self, ThreadId};
use tracing::{Instrument, info, info_span, warn};
use tracing_subscriber::prelude::*;

/// A call of the library.
#[derive(Clone, Debug, PartialEq)]
enum Call {
    Mark(String, String, Option<u64>),
    Push(String),
    Pop,
    Start(String, u64),
    End(u64),
}
use Call::*;

static CALLS: Mutex<Vec<(ThreadId, Call)>> = Mutex::new(Vec::new());
static RANGES: AtomicU64 = AtomicU64::new(0);

fn note(call: Call) -> c_int {
    let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
    calls.push((thread::current().id(), call));
    0
}

fn name(options: *const Options) -> (String, String, Option<u64>) {
    // SAFETY: the layer's options, with texts that end with a zero.
    unsafe { (*options).read() }
}

unsafe extern "C" fn mark(options: *const Options) -> c_int {
    let (name, category, payload) = name(options);
    note(Mark(name, category, payload))
}

unsafe extern "C" fn push(options: *const Options) -> c_int {
    call_back();
    note(Push(name(options).0))
}

unsafe extern "C" fn pop() -> c_int {
    call_back();
    note(Pop)
}

thread_local! {
    /// Work that the library does in its next call, such as a tool's callback.
    static CALLBACK: RefCell<Option<fn()>> = const { RefCell::new(None) };
}

fn call_back() {
    if let Some(callback) = CALLBACK.take() {
        callback();
    }
}

unsafe extern "C" fn start(options: *const Options, number: *mut u64) -> c_int {
    let range = RANGES.fetch_add(1, Ordering::Relaxed) + 1;
    // SAFETY: a place for the number.
    unsafe { *number = range };
    note(Start(name(options).0, range))
}

unsafe extern "C" fn end(number: u64) -> c_int {
    note(End(number))
}

impl Options {
    /// The name, the category and the payload.
    unsafe fn read(&self) -> (String, String, Option<u64>) {
        let [name, category] = self.texts().map(|text| {
            // SAFETY: the caller's promise.
            let text = unsafe { CStr::from_ptr(text) };
            text.to_str().unwrap().to_owned()
        });
        (name, category, self.payload_bits())
    }
}

/// Runs `work` with `layer`; returns the calls by thread, in order of their first call.
fn calls_of(layer: Layer, work: impl FnOnce()) -> Vec<Vec<Call>> {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone: MutexGuard<'_, ()> = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    library::use_instead(Library {
        mark,
        push,
        pop,
        start,
        end,
    });
    CALLS.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let subscriber = tracing_subscriber::registry().with(layer);
    tracing::subscriber::with_default(subscriber, work);
    let calls = std::mem::take(&mut *CALLS.lock().unwrap_or_else(PoisonError::into_inner));
    let mut threads: Vec<ThreadId> = Vec::new();
    let mut by_thread: HashMap<ThreadId, Vec<Call>> = HashMap::new();
    for (thread, call) in calls {
        if !threads.contains(&thread) {
            threads.push(thread);
        }
        by_thread.entry(thread).or_default().push(call);
    }
    threads
        .into_iter()
        .map(|thread| by_thread.remove(&thread).unwrap())
        .collect()
}

fn pushed(name: &str) -> Call {
    Push(name.into())
}

#[test]
fn spans_are_ranges_and_events_are_marks_with_their_first_number() {
    let [calls] = &calls_of(layer(), || {
        let step = info_span!("step", label = "x", number = 7_u64, other = 8_u64);
        let _entered = step.enter();
        info!(loss = 0.25, "batch {} done", 3);
        warn!(first = 1_u64, payload = 2_u64, "named");
        info!(only = true);
    })[..] else {
        panic!("one thread");
    };
    assert_eq!(calls[0], pushed("step"));
    assert_eq!(
        calls[1],
        Mark(
            "batch 3 done".into(),
            "INFO".into(),
            Some(0.25_f64.to_bits())
        )
    );
    assert_eq!(calls[2], Mark("named".into(), "WARN".into(), Some(2)));
    let Mark(name, _, None) = &calls[3] else {
        panic!("{:?}", calls[3]);
    };
    assert!(name.starts_with("event "), "{name}");
    assert_eq!(calls[4..], [Pop]);
}

#[test]
fn fields_are_in_the_name_if_asked_for_also_those_that_are_recorded_later() {
    let calls = calls_of(layer().fields(true), || {
        let step = info_span!("step", number = 7, late = tracing::field::Empty);
        step.in_scope(|| {});
        step.record("late", "now");
        step.record("number", 8);
        step.in_scope(|| {});
    });
    let expected = [
        pushed("step{number=7}"),
        Pop,
        pushed("step{late=\"now\", number=8}"),
        Pop,
    ];
    assert_eq!(calls, [expected]);
}

#[test]
fn spans_that_are_exited_out_of_order_leave_ranges_that_nest() {
    let calls = calls_of(layer(), || {
        let (outer, inner) = (info_span!("outer"), info_span!("inner"));
        let entered_outer = outer.enter();
        let entered_inner = inner.enter();
        drop(entered_outer);
        drop(entered_inner);
        // Entered twice by the same thread.
        outer.in_scope(|| outer.in_scope(|| {}));
    });
    let [outer, inner] = ["outer", "inner"].map(pushed);
    let expected = [
        outer.clone(),
        inner.clone(),
        Pop,
        Pop,
        inner,
        Pop,
        outer.clone(),
        outer,
        Pop,
        Pop,
    ];
    assert_eq!(calls, [expected]);
}

#[test]
fn a_callback_of_the_library_may_enter_and_exit_spans() {
    let calls = calls_of(layer(), || {
        let (outer, inner) = (info_span!("outer"), info_span!("inner"));
        let in_callback = || CALLBACK.set(Some(|| info_span!("in a callback").in_scope(|| {})));
        let entered_outer = outer.enter();
        in_callback();
        let entered_inner = inner.enter();
        in_callback();
        drop(entered_outer);
        drop(entered_inner);
    });
    let [outer, inner, callback] = ["outer", "inner", "in a callback"].map(pushed);
    let expected = [
        outer,
        callback.clone(),
        Pop,
        inner.clone(),
        callback,
        Pop,
        Pop,
        Pop,
        inner,
        Pop,
    ];
    assert_eq!(calls, [expected]);
}

#[test]
fn a_lifetime_begins_with_the_creation_and_ends_with_the_last_handle() {
    let calls = calls_of(layer().lifetimes(true), || {
        let span = info_span!("request");
        let other = span.clone();
        span.in_scope(|| {});
        drop(span);
        info!("waits");
        drop(other);
    });
    let [calls] = &calls[..] else {
        panic!("one thread");
    };
    let Start(name, number) = &calls[0] else {
        panic!("{calls:?}");
    };
    assert_eq!(name, "request");
    assert_eq!(calls[1..3], [pushed("request"), Pop]);
    assert_eq!(calls[4..], [End(*number)]);
}

/// Waits until it was polled this often.
struct Polls(u32);

impl Future for Polls {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> Poll<()> {
        match self.0 {
            0 => Poll::Ready(()),
            _ => {
                self.0 -= 1;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

#[test]
fn tasks_of_an_executor_are_ranges_while_they_are_polled_on_whichever_thread() {
    const TASKS: usize = 20;
    const POLLS: u32 = 50;
    let calls = calls_of(layer().lifetimes(true), || {
        let dispatch = tracing_core::dispatcher::get_default(Clone::clone);
        let executor = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(4)
            .on_thread_start(move || {
                // For as long as the thread lives.
                std::mem::forget(tracing_core::dispatcher::set_default(&dispatch));
            })
            .enable_time()
            .build()
            .unwrap();
        executor.block_on(async {
            let task = || async {
                Polls(POLLS).await;
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                info!("done");
                Polls(1).instrument(info_span!("last")).await;
            };
            let spawn = |_| tokio::spawn(task().instrument(info_span!("task")));
            let tasks: Vec<_> = (0..TASKS).map(spawn).collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
    });
    let all = || calls.iter().flatten();
    let mut open: HashMap<u64, bool> = HashMap::new();
    for call in all() {
        match call {
            Start(name, number) if name == "task" => drop(open.insert(*number, false)),
            End(number) => drop(open.insert(*number, true)),
            _ => {}
        }
    }
    assert_eq!(open.values().filter(|ended| **ended).count(), 2 * TASKS);
    let polls = all().filter(|call| **call == pushed("task")).count();
    assert!(polls >= TASKS * POLLS as usize, "{polls} polls");
    for calls in &calls {
        let mut depth = 0_i32;
        for call in calls {
            depth += match call {
                Push(_) => 1,
                Pop => -1,
                _ => 0,
            };
            assert!((0..=3).contains(&depth), "{calls:?}");
        }
        assert_eq!(depth, 0);
    }
    let done = |call: &&Call| matches!(call, Mark(name, ..) if name == "done");
    assert_eq!(all().filter(done).count(), TASKS);
}
