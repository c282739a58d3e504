//! A whole process under pressure, in a process of its own: threads that call, come and go and flush; signals whose
//! handlers call too, in the middle of anything; children that are forked meanwhile and record on; subscribers that
//! come and go, also from within callbacks. What was written is delivered or dropped, exactly, in the process and in
//! each child.

use super::{Delivered, Dice, SharedDelivered, times};
use crate::context::*;
use crate::operations::OperationInfo;
use crate::process;
use crate::source::Source;
use crate::switchboard::{Observed, ReportedPart};
use gputrail_buffer::BlockView;
use gputrail_interface::operations::Phase;
use gputrail_record::{Domain, OperationGroup};
use std::cell::Cell;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const CHILD: &str = "GPUTRAIL_STRESS_PROCESS";
const NAME: &str =
    "context::stress::process::calls_of_handlers_children_and_subscribers_are_delivered_or_dropped";
const THREADS: u32 = 64;
const LIVES: u32 = 2;
const CALLS: u32 = 150;
const FORKS: u32 = 6;
/// Calls of a forked child.
const OF_CHILD: u64 = 2000;
const CALL: Operation = Operation {
    domain: Domain::SIM,
    number: 1,
};

/// A source with one operation.
struct OneCall;

impl Source for OneCall {
    fn domain(&self) -> Domain {
        Domain::SIM
    }

    fn operations(&self) -> Vec<OperationInfo> {
        vec![OperationInfo {
            operation: CALL,
            name: "simCall",
            group: OperationGroup::OTHER,
            arguments: &[],
            keeps_arguments: false,
            observed: Observed::No,
        }]
    }
}

/// Calls whose exit was seen: a record for each buffer that wanted the call.
static EXITS: AtomicU64 = AtomicU64::new(0);
/// Calls that a handler made in the middle of a write.
static INTERRUPTED: AtomicU64 = AtomicU64::new(0);
/// Calls that handlers made.
static HANDLED: AtomicU64 = AtomicU64::new(0);
/// Numbers of callbacks of an enter, and of an exit.
static CALLBACKS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A call of the program, with `inside` in it, as a source sees it.
#[inline(never)]
fn call(inside: impl FnOnce()) {
    let frame = 0u8;
    let interest = process::interest(CALL);
    let thread = process::current().filter(|thread| !thread.state().is_in_callback());
    let (false, Some(thread)) = (interest.is_none(), thread) else {
        return inside();
    };
    let stack_pointer = &raw const frame as usize;
    let enter = |host: &mut crate::correlation::HostThread| {
        host.enter_wanted(CALL, interest, stack_pointer, gputrail_buffer::clock::now)
    };
    let Some(call) = thread.with(enter) else {
        count(&INTERRUPTED);
        return inside();
    };
    let board = process::board().expect("it goes on");
    let (state, place) = (thread.state(), (call.depth, ReportedPart::Call));
    let subscribers = interest.subscribers();
    if !subscribers.is_none() {
        let enter = CallbackArguments::new(CALL, "call", Phase::Enter);
        board.notify_within(state, place, subscribers, &enter);
    }
    inside();
    let exit = |host: &mut crate::correlation::HostThread| {
        host.exit(
            &call,
            gputrail_buffer::clock::now(),
            0,
            crate::correlation::Extra::NONE,
        )
    };
    match thread.with(exit) {
        Some(_) => count(&EXITS),
        None => count(&INTERRUPTED),
    }
    if !subscribers.is_none() {
        let exit = CallbackArguments::new(CALL, "call", Phase::Exit);
        board.notify_exit(state, place, &exit);
        board.end_within(state, place);
    }
}

thread_local! {
    /// The thread has made its first calls: a handler's need no memory, of which the interrupted code may be in the
    /// middle.
    static READY: Cell<bool> = const { Cell::new(false) };
}

extern "C" fn on_signal(_: libc::c_int) {
    if READY.get() {
        count(&HANDLED);
        call(|| {});
    }
}

/// The first calls of a thread, before signals may come.
fn first_calls() {
    gputrail_buffer::platform::sync::with_signals_blocked(|| call(|| call(|| call(|| {}))));
    READY.set(true);
}

fn buffer(policy: Policy, kilobytes: usize) -> (RecordBuffer, SharedDelivered) {
    let delivered = SharedDelivered::default();
    let into = delivered.clone();
    let options = BufferOptions {
        pool_bytes: kilobytes << 10,
        block_bytes: 4096,
        watermark: 500,
        policy,
        period: Duration::from_millis(2),
        threads: 256,
        callback_thread: None,
        blocks_ahead: 0,
    };
    let deliver = move |view: &BlockView<'_>| {
        into.lock().unwrap().take(view.lane, view.records());
        // Calls of a tool's own callback are recorded too, and must not wait for the thread on which they are made.
        if view.lane % 16 == 3 && READY.get() {
            call(|| {});
        }
    };
    (RecordBuffer::create(options, deliver).unwrap(), delivered)
}

/// Checks that all written records were delivered or dropped.
fn check(buffer: RecordBuffer, delivered: &SharedDelivered, written: u64) {
    let _ = buffer.flush();
    let dropped = buffer.dropped_in_total();
    drop(buffer);
    let delivered: &Delivered = &delivered.lock().unwrap();
    let all = delivered.calls + dropped.total();
    assert_eq!(all, written, "{} dropped", dropped.total());
    assert_eq!(dropped.total(), dropped.of(Kind::API));
    assert_eq!(delivered.lost, dropped.total(), "reported");
    assert!(delivered.missing() <= dropped.total());
}

/// The code of a forked child: it goes on recording, with buffers of its own. Returns its exit code.
fn child() -> i32 {
    let recorded = std::panic::catch_unwind(|| {
        EXITS.store(0, Ordering::Relaxed);
        let (buffer, delivered) = buffer(Policy::Discard, 64);
        let context = Context::new().unwrap();
        context
            .trace_to(&buffer, RecordSelection::kinds(&[Kind::API]))
            .unwrap();
        context.start().unwrap();
        (0..OF_CHILD).for_each(|_| call(|| {}));
        context.stop().unwrap();
        assert_eq!(EXITS.load(Ordering::Relaxed), OF_CHILD);
        check(buffer, &delivered, OF_CHILD);
    });
    i32::from(recorded.is_err())
}

fn fork() {
    // SAFETY: the child calls what forked children of a program that is recorded call, and ends by _exit.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let code = child();
        // SAFETY: ends the child.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    loop {
        // SAFETY: our own child, and a place for its status.
        match unsafe { libc::waitpid(pid, &mut status, 0) } {
            -1 => continue,
            waited => break assert_eq!(waited, pid),
        }
    }
    assert_eq!(status, 0, "a child failed");
}

/// Sends a signal to some thread that takes it, again and again.
fn send_signals() {
    // SAFETY: a handler that calls what handlers of programs call, and a timer.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(
            libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut()),
            0
        );
        let often = libc::timeval {
            tv_sec: 0,
            tv_usec: 100,
        };
        let timer = libc::itimerval {
            it_interval: often,
            it_value: often,
        };
        assert_eq!(
            libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()),
            0
        );
    }
}

/// Subscribes and unsubscribes, from outside and from within callbacks, while calls are in flight.
fn come_and_go(running: &AtomicBool) {
    let told = |callback: &mut CallbackArguments<'_>| {
        let which = usize::from(callback.phase == Phase::Exit);
        count(&CALLBACKS[which]);
    };
    while running.load(Ordering::Relaxed) {
        let context = Context::new().unwrap();
        let inner = Context::new().unwrap();
        let mut operations = OperationSet::default();
        operations.set(CALL, true);
        let within = operations.clone();
        let first = context.call_back(operations.clone(), told);
        let second = context.call_back(operations, move |callback| {
            told(callback);
            // From within a callback: a subscriber that comes, and goes at once.
            let context = Context::new().unwrap();
            if let Ok(subscriber) = context.call_back(within.clone(), told) {
                let _ = context.start();
                drop(subscriber);
            }
        });
        let (Ok(first), Ok(second)) = (first, second) else {
            continue;
        };
        context.start().unwrap();
        for on in [false, true, false, true] {
            std::thread::yield_now();
            context.enable_callback(&first, CALL, on).unwrap();
            context.enable_all_callbacks(&second, on).unwrap();
        }
        drop((second, inner, first, context));
    }
}

fn under_pressure() {
    assert_eq!(
        process::attach_with(&OneCall, |_| None),
        process::AttachOutcome::Now
    );
    let context = Context::new().unwrap();
    let mut kept = Vec::new();
    for (policy, kilobytes) in [
        (Policy::Discard, 512),
        (Policy::Lossless, 1024),
        (Policy::Discard, 8192),
    ] {
        let (buffer, delivered) = buffer(policy, kilobytes);
        context
            .trace_to(&buffer, RecordSelection::kinds(&[Kind::API]))
            .unwrap();
        kept.push((buffer, delivered));
    }
    context.start().unwrap();
    // The callback threads have every signal blocked, and this one has none: the workers are to be interrupted.
    let (running, forks) = (AtomicBool::new(true), AtomicU64::new(0));
    gputrail_buffer::platform::sync::with_signals_blocked(|| {
        send_signals();
        std::thread::scope(|scope| {
            let (kept, running, forks) = (&kept, &running, &forks);
            for _ in 0..2 {
                scope.spawn(move || come_and_go(running));
            }
            let workers: Vec<_> = (1..=THREADS)
                .map(|number| scope.spawn(move || lives(number, kept, forks)))
                .collect();
            let ended = workers.into_iter().map(|worker| worker.join().is_err());
            let panicked: Vec<bool> = ended.collect();
            running.store(false, Ordering::Relaxed);
            assert!(panicked.iter().all(|panicked| !panicked));
        });
        // SAFETY: ends the timer.
        unsafe { libc::setitimer(libc::ITIMER_REAL, &std::mem::zeroed(), std::ptr::null_mut()) };
    });
    assert!(forks.load(Ordering::Relaxed) >= u64::from(FORKS));
    assert!(HANDLED.load(Ordering::Relaxed) > 0 && CALLBACKS[0].load(Ordering::Relaxed) > 0);
    for (buffer, _) in &kept {
        buffer.flush().unwrap();
    }
    context.stop().unwrap();
    let written = EXITS.load(Ordering::Relaxed);
    let least = u64::from(THREADS * LIVES * CALLS * times());
    assert!(written + INTERRUPTED.load(Ordering::Relaxed) >= least);
    for (buffer, delivered) in kept {
        check(buffer, &delivered, written);
    }
}

/// The lives of one worker: each is a thread of its own.
fn lives(number: u32, kept: &[(RecordBuffer, SharedDelivered)], forks: &AtomicU64) {
    for life in 0..LIVES * times() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut dice = Dice(u64::from(number * 1000 + life + 1));
                first_calls();
                unblock_alarms();
                for made in 0..CALLS {
                    call(|| match dice.roll(8) {
                        0 => call(|| {}),
                        1 => std::thread::yield_now(),
                        _ => {}
                    });
                    if dice.roll(100) == 0 {
                        kept[dice.roll(3) as usize].0.flush().unwrap();
                    }
                    if made == CALLS / 2 && number <= FORKS && life == 0 {
                        count(forks);
                        gputrail_buffer::platform::sync::with_signals_blocked(fork);
                    }
                }
                // The system's cleanup at the end of a thread must not be interrupted by calls that need memory.
                READY.set(false);
            });
        });
    }
}

/// Unblocks signals on the thread, which inherited a mask that blocks them.
fn unblock_alarms() {
    // SAFETY: a set of signals, which is filled in.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&mut set, libc::SIGALRM);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
    }
}

#[test]
fn calls_of_handlers_children_and_subscribers_are_delivered_or_dropped() {
    if std::env::var_os(CHILD).is_some() {
        return under_pressure();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let ended = command
        .args(["--exact", NAME, "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let text = said(&ended.stdout) + &said(&ended.stderr);
    assert!(
        ended.status.success() && text.contains("1 passed"),
        "{text}"
    );
}
