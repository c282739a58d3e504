//! Subscribers, by way of a program that makes calls of its own.

use super::*;
use crate::context::{Context, OperationSet, Subscriber};
use crate::correlation::{Extra, HostThread};
use gputrail_buffer::platform::sync::lock_std;
use gputrail_buffer::{Buffer, Collector, CollectorOptions, Layout, Mapping, Policy};
use gputrail_interface::operations::Phase;
use gputrail_record::{Domain, Kind, Operation, ThreadId, Ticks};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::Duration;

const fn operation(number: u16) -> Operation {
    let domain = Domain::SIM;
    Operation { domain, number }
}

const ONE: Operation = operation(1);
const TWO: Operation = operation(2);

/// A thread of a program.
struct Thread {
    host: HostThread,
    depth: usize,
}

impl Thread {
    fn new(board: &Arc<Switchboard>) -> Thread {
        let host = HostThread::new(board, ThreadId(1), true).unwrap();
        Thread { host, depth: 0 }
    }

    /// A call that does `inside`, told as a source tells it.
    fn call(&mut self, operation: Operation, inside: impl FnOnce(&mut Thread)) {
        let interest = self.host.board().interest(operation);
        if interest.is_none() || self.host.state().is_in_callback() {
            return inside(self);
        }
        self.depth += 1;
        let stack_pointer = 10_000 - self.depth;
        let call = self
            .host
            .enter_wanted(operation, interest, stack_pointer, || Ticks(1));
        let tell = |thread: &Thread, phase, return_code| {
            let mut callback = CallbackArguments::new(operation, "call", phase);
            callback.correlation = call.correlation;
            callback.return_code = return_code;
            let (board, state) = (thread.host.board(), thread.host.state());
            let place = (call.depth, ReportedPart::Call);
            board.notify_within(state, place, interest.subscribers(), &callback);
        };
        tell(self, Phase::Enter, None);
        inside(self);
        self.host.exit(&call, Ticks(2), 0, Extra::NONE);
        tell(self, Phase::Exit, Some(0));
        self.depth -= 1;
    }
}

fn nothing(_: &mut Thread) {}

/// A subscriber for everything that leaves what it hears in `heard`.
fn listen(
    board: &Arc<Switchboard>,
    call_back: impl Fn(&mut CallbackArguments<'_>) + Send + Sync + 'static,
) -> (Context, Subscriber) {
    let context = Context::on(board).unwrap();
    let subscriber = context.call_back(OperationSet::all(), call_back).unwrap();
    context.start().unwrap();
    (context, subscriber)
}

type Heard = Arc<Mutex<Vec<(Operation, Phase, u64)>>>;

#[test]
fn a_call_is_reported_at_enter_and_exit_with_the_user_data_of_its_enter() {
    let board = Switchboard::new();
    let heard = Heard::default();
    let into = heard.clone();
    let _subscribed = listen(&board, move |callback| {
        let told = (callback.operation, callback.phase, callback.user_data);
        lock_std(&into).push(told);
        callback.user_data += 7;
    });
    let mut thread = Thread::new(&board);
    thread.call(ONE, nothing);
    thread.call(TWO, nothing);
    assert_eq!(
        *lock_std(&heard),
        [
            (ONE, Phase::Enter, 0),
            (ONE, Phase::Exit, 7),
            (TWO, Phase::Enter, 0),
            (TWO, Phase::Exit, 7),
        ]
    );
}

#[test]
fn nested_calls_keep_their_user_data_apart_at_any_depth() {
    const DEEP: u64 = 300;
    let board = Switchboard::new();
    let wrong = Arc::new(AtomicUsize::new(0));
    let (count, entered) = (wrong.clone(), Mutex::new(Vec::new()));
    let _subscribed = listen(&board, move |callback| {
        let mut entered = lock_std(&entered);
        match callback.phase {
            Phase::Enter => {
                entered.push(callback.correlation.0);
                callback.user_data = callback.correlation.0;
            }
            _ => {
                let expected = entered.pop().unwrap();
                // The deepest share theirs: what they find is one of theirs.
                let shared = entered.len() >= 255;
                let fits = callback.user_data == expected || shared;
                count.fetch_add(usize::from(!fits), Ordering::Relaxed);
            }
        }
    });
    fn nest(thread: &mut Thread, left: u64) {
        if left > 0 {
            thread.call(ONE, |thread| nest(thread, left - 1));
        }
    }
    let mut thread = Thread::new(&board);
    nest(&mut thread, 5);
    nest(&mut thread, DEEP);
    assert_eq!(wrong.load(Ordering::Relaxed), 0);
}

#[test]
fn subscribers_have_user_data_of_their_own_and_cannot_change_the_callbacks_of_others() {
    let board = Switchboard::new();
    let heard = Heard::default();
    let _meddler = listen(&board, |callback| {
        callback.operation = TWO;
        callback.user_data = 99;
    });
    let into = heard.clone();
    let _subscribed = listen(&board, move |callback| {
        lock_std(&into).push((callback.operation, callback.phase, callback.user_data));
    });
    Thread::new(&board).call(ONE, nothing);
    assert_eq!(
        *lock_std(&heard),
        [(ONE, Phase::Enter, 0), (ONE, Phase::Exit, 0)]
    );
}

#[test]
fn a_callback_that_panics_harms_nobody_else_and_is_not_called_again() {
    let board = Switchboard::new();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    let (_context, panicking) = listen(&board, move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        // Without the message that a panic prints.
        std::panic::resume_unwind(Box::new(()));
    });
    let heard = Heard::default();
    let into = heard.clone();
    let _subscribed = listen(&board, move |callback| {
        lock_std(&into).push((callback.operation, callback.phase, callback.user_data));
    });
    let mut thread = Thread::new(&board);
    thread.call(ONE, nothing);
    thread.call(ONE, nothing);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert!(!panicking.is_subscribed());
    assert_eq!(lock_std(&heard).len(), 4);
}

#[test]
fn user_data_is_used_once_at_a_time_until_the_thread_leaves_its_callback() {
    let board = Switchboard::new();
    let thread = Thread::new(&board);
    let state = thread.host.state();
    // SAFETY: `thread` is used by this thread alone, and the use that is left does nothing afterwards.
    let uses = unsafe {
        state.with_user_data(0, ReportedPart::Call, |_| {
            let within = state.with_user_data(0, ReportedPart::Call, |_| ());
            state.leaves_callback();
            (within, state.with_user_data(0, ReportedPart::Call, |_| ()))
        })
    };
    assert_eq!(uses, Some((None, Some(()))));
}

#[test]
fn calls_made_by_a_callback_are_not_reported() {
    let board = Switchboard::new();
    let heard = Arc::new(AtomicUsize::new(0));
    // The callback makes calls on the thread that it is called on.
    struct Shared(*mut Thread);
    // SAFETY: used on one thread.
    unsafe impl Send for Shared {}
    // SAFETY: as above.
    unsafe impl Sync for Shared {}
    impl Shared {
        fn thread(&self) -> *mut Thread {
            self.0
        }
    }
    let mut thread = Thread::new(&board);
    let program = &raw mut thread;
    let shared = Shared(program);
    let count = heard.clone();
    let _subscribed = listen(&board, move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the thread outlives its calls; nothing of it is used while a callback runs.
        let thread = unsafe { &mut *shared.thread() };
        thread.call(ONE, nothing);
    });
    // SAFETY: as above.
    unsafe { &mut *program }.call(ONE, nothing);
    assert_eq!(heard.load(Ordering::Relaxed), 2);
}

#[test]
fn a_subscriber_that_leaves_in_its_own_callback_is_not_called_again() {
    let board = Switchboard::new();
    let mine = Arc::new(Mutex::new(None::<(Context, Subscriber)>));
    let calls = Arc::new(AtomicUsize::new(0));
    let (own, count) = (mine.clone(), calls.clone());
    let subscribed = listen(&board, move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        drop(lock_std(&own).take());
    });
    *lock_std(&mine) = Some(subscribed);
    let mut thread = Thread::new(&board);
    thread.call(ONE, nothing);
    thread.call(ONE, nothing);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

/// Says when the last owner has let go of it.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_data_of_a_subscriber_is_dropped_even_if_it_left_in_its_own_callback() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let board = Switchboard::new();
    let mine = Arc::new(Mutex::new(None::<(Context, Subscriber)>));
    let (own, owned) = (mine.clone(), Dropped(dropped.clone()));
    let subscribed = listen(&board, move |_| {
        let _ = &owned;
        drop(lock_std(&own).take());
    });
    *lock_std(&mine) = Some(subscribed);
    Thread::new(&board).call(ONE, nothing);
    // By the next who comes or goes.
    drop(listen(&board, |_| {}));
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
}

#[test]
fn unsubscribing_from_another_thread_waits_for_the_running_callback() {
    let board = Switchboard::new();
    let (began, begins) = mpsc::channel();
    let (release, wait) = mpsc::channel();
    let finished = Arc::new(AtomicBool::new(false));
    let (wait, done) = (Mutex::new(wait), finished.clone());
    let (_context, subscriber) = listen(&board, move |callback| {
        if callback.phase == Phase::Enter {
            began.send(()).unwrap();
            lock_std(&wait).recv().unwrap();
            done.store(true, Ordering::Relaxed);
        }
    });
    let inside = board.clone();
    let caller = std::thread::spawn(move || Thread::new(&inside).call(ONE, nothing));
    begins.recv().unwrap();
    let leaver = std::thread::spawn(move || {
        drop(subscriber);
        finished.load(Ordering::Relaxed)
    });
    std::thread::sleep(Duration::from_millis(20));
    release.send(()).unwrap();
    assert!(leaver.join().unwrap(), "the callback had returned");
    caller.join().unwrap();
}

#[test]
fn a_slow_callback_delays_its_own_thread_only() {
    let board = Switchboard::new();
    let (release, wait) = mpsc::channel::<()>();
    let (began, begins) = mpsc::channel();
    let wait = Mutex::new(wait);
    let _subscribed = listen(&board, move |callback| {
        if (callback.operation, callback.phase) == (ONE, Phase::Enter) {
            began.send(()).unwrap();
            let _ = lock_std(&wait).recv();
        }
    });
    let inside = board.clone();
    let slow = std::thread::spawn(move || Thread::new(&inside).call(ONE, nothing));
    begins.recv().unwrap();
    // All of this ends although the callback does not.
    let mut thread = Thread::new(&board);
    (0..1000).for_each(|_| thread.call(TWO, nothing));
    let other = listen(&board, |_| {});
    drop(other);
    drop(release);
    slow.join().unwrap();
}

#[test]
fn a_slot_that_is_reused_in_the_middle_of_a_call_gets_no_callback_of_that_call() {
    let board = Switchboard::new();
    let (context, first) = listen(&board, |callback| callback.user_data = 13);
    let slot = first.slot();
    let heard = Heard::default();
    let mut later = None;
    let mut thread = Thread::new(&board);
    thread.call(ONE, |_| {
        drop((context, first));
        let into = heard.clone();
        let second = listen(&board, move |callback| {
            lock_std(&into).push((callback.operation, callback.phase, callback.user_data));
        });
        assert_eq!(second.1.slot(), slot);
        later = Some(second);
    });
    assert_eq!(*lock_std(&heard), []);
    thread.call(TWO, nothing);
    assert_eq!(
        *lock_std(&heard),
        [(TWO, Phase::Enter, 0), (TWO, Phase::Exit, 0)]
    );
}

#[test]
fn subscribers_run_out_with_an_error_and_their_slots_are_used_again() {
    let board = Switchboard::new();
    for _ in 0..3 {
        let all: Vec<_> = (0..SUBSCRIBERS).map(|_| listen(&board, |_| {})).collect();
        let context = Context::on(&board).unwrap();
        let error = context.call_back(OperationSet::all(), |_| {}).unwrap_err();
        assert!(error.to_string().contains("subscribers"), "{error}");
        drop(all);
    }
}

#[test]
fn threads_call_while_others_subscribe_and_unsubscribe() {
    const CALLERS: usize = 4;
    const COMERS: usize = 3;
    const ROUNDS: usize = 100;
    let board = Switchboard::new();
    let (stop, ready) = (AtomicBool::new(false), Barrier::new(CALLERS + COMERS));
    // One who stays hears every call, once at each end.
    let balance = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let counts = balance.clone();
    let _stays = listen(&board, move |callback| {
        let count = match callback.phase {
            Phase::Enter => &counts.0,
            _ => &counts.1,
        };
        count.fetch_add(1, Ordering::Relaxed);
        let expected = match callback.phase {
            Phase::Enter => 0,
            _ => callback.correlation.0,
        };
        assert_eq!(callback.user_data, expected);
        callback.user_data = callback.correlation.0;
    });
    let after_the_end = AtomicUsize::new(0);
    let made: usize = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| {
                scope.spawn(|| {
                    let mut thread = Thread::new(&board);
                    let mut made = 0;
                    ready.wait();
                    while !stop.load(Ordering::Relaxed) {
                        thread.call(ONE, |thread| thread.call(TWO, nothing));
                        made += 2;
                    }
                    made
                })
            })
            .collect();
        let comers: Vec<_> = (0..COMERS)
            .map(|_| {
                scope.spawn(|| {
                    ready.wait();
                    for _ in 0..ROUNDS {
                        // 1 while subscribed, 2 afterwards; freed with the callback.
                        let gone = Arc::new(AtomicBool::new(false));
                        let seen = Arc::new(AtomicUsize::new(0));
                        let (over, late) = (gone.clone(), seen.clone());
                        let subscribed = listen(&board, move |callback| {
                            if over.load(Ordering::SeqCst) {
                                late.fetch_add(1, Ordering::Relaxed);
                            }
                            if callback.phase == Phase::Exit {
                                assert_eq!(callback.user_data, callback.correlation.0);
                            }
                            callback.user_data = callback.correlation.0;
                        });
                        let (context, subscriber) = subscribed;
                        context.enable_callback(&subscriber, ONE, false).unwrap();
                        context.enable_callback(&subscriber, ONE, true).unwrap();
                        let whole = subscriber.is_subscribed();
                        drop(subscriber);
                        gone.store(true, Ordering::SeqCst);
                        std::thread::yield_now();
                        let late = seen.load(Ordering::Relaxed) + usize::from(!whole);
                        after_the_end.fetch_add(late, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for comer in comers {
            comer.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        callers
            .into_iter()
            .map(|caller| caller.join().unwrap())
            .sum()
    });
    let (enters, exits) = (&balance.0, &balance.1);
    assert_eq!(enters.load(Ordering::Relaxed), made);
    assert_eq!(exits.load(Ordering::Relaxed), made);
    assert_eq!(
        after_the_end.load(Ordering::Relaxed),
        0,
        "nobody is called after leaving, and nobody's callback panicked"
    );
}

#[test]
fn the_state_of_every_callback_can_be_asked_and_set_at_once() {
    let board = Switchboard::new();
    let heard = Heard::default();
    let into = heard.clone();
    let (context, subscriber) = listen(&board, move |callback| {
        lock_std(&into).push((callback.operation, callback.phase, 0));
    });
    let mut thread = Thread::new(&board);
    context.enable_all_callbacks(&subscriber, false).unwrap();
    thread.call(ONE, nothing);
    let known = || {
        let domains = Domain::ALL.iter();
        domains.flat_map(|(domain, _)| crate::operations::of(*domain))
    };
    let enabled = context.enabled_callbacks(&subscriber).unwrap();
    assert!(known().all(|info| !enabled.has(info.operation)));
    context.enable_callback(&subscriber, TWO, true).unwrap();
    assert!(context.callback_is_enabled(&subscriber, TWO).unwrap());
    assert!(!context.callback_is_enabled(&subscriber, ONE).unwrap());
    thread.call(ONE, |thread| thread.call(TWO, nothing));
    assert_eq!(
        *lock_std(&heard),
        [(TWO, Phase::Enter, 0), (TWO, Phase::Exit, 0)]
    );
    context.enable_all_callbacks(&subscriber, true).unwrap();
    let enabled = context.enabled_callbacks(&subscriber).unwrap();
    assert!(known().all(|info| enabled.has(info.operation)));
    let nowhere = Operation {
        domain: Domain(999),
        number: 1,
    };
    let error = context.enable_callback(&subscriber, nowhere, true);
    assert!(matches!(
        error,
        Err(crate::context::ToolError::UnknownOperation(_))
    ));
    let foreign = Context::on(&board).unwrap();
    let error = foreign.enabled_callbacks(&subscriber).unwrap_err();
    assert!(matches!(error, crate::context::ToolError::NoSuchService));
}

#[test]
fn no_signal_handler_runs_while_its_thread_holds_the_switchboard() {
    static HELD: AtomicBool = AtomicBool::new(false);
    static WITHIN: AtomicUsize = AtomicUsize::new(0);
    static COUNTED: AtomicUsize = AtomicUsize::new(0);
    static BOARD: AtomicPtr<Switchboard> = AtomicPtr::new(std::ptr::null_mut());
    /// A handler whose call finds no lane.
    extern "C" fn handler(_: libc::c_int) {
        if HELD.load(Ordering::SeqCst) {
            WITHIN.fetch_add(1, Ordering::SeqCst);
            return; // and not for ever
        }
        // SAFETY: the test's, which is there while the handler is called.
        let board = unsafe { &*BOARD.load(Ordering::SeqCst) };
        board.count_lost(Kind::API);
        board.names().string("of the handler");
        COUNTED.fetch_add(1, Ordering::SeqCst);
    }
    let board = Switchboard::new();
    BOARD.store(Arc::as_ptr(&board).cast_mut(), Ordering::SeqCst);
    // A signal that nobody else here uses, and that does nothing by itself.
    let signal = libc::SIGURG;
    // SAFETY: a handler of this type, for a signal that is there.
    unsafe { libc::signal(signal, handler as *const () as libc::sighandler_t) };
    let interrupt = || {
        HELD.store(true, Ordering::SeqCst);
        // SAFETY: sends a signal to this thread.
        assert_eq!(unsafe { libc::raise(signal) }, 0);
        HELD.store(false, Ordering::SeqCst);
    };
    let state = board.state();
    interrupt();
    drop(state);
    board.names().while_locked(interrupt);
    // SAFETY: as it was.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    let (within, counted) = (
        WITHIN.load(Ordering::SeqCst),
        COUNTED.load(Ordering::SeqCst),
    );
    assert_eq!((within, counted), (0, 2));
}

/// Has the system refuse membarrier to the calling thread from now on, as a seccomp filter does that a program installs.
#[cfg(target_os = "linux")]
fn refuse_membarrier() -> bool {
    let statement = |code: u32, k: u32, jt: u8| libc::sock_filter {
        code: code as u16,
        jt,
        jf: 0,
        k,
    };
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut filter = [
        // The number of the system call is the first word.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        libc::sock_filter {
            jf: 1,
            ..statement(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                libc::SYS_membarrier as u32,
                0,
            )
        },
        statement(libc::BPF_RET | libc::BPF_K, refused, 0),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: a program of that many statements.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0
    }
}

#[cfg(target_os = "linux")]
#[test]
fn lanes_stay_with_their_threads_where_the_system_refuses_the_fence() {
    /// Whether the thread's lane was taken away with its buffer.
    fn is_taken(refused: bool) -> bool {
        let board = Switchboard::new();
        let buffer = small_buffer(4);
        let key = board.add_buffer(buffer.clone()).unwrap();
        let mut host = HostThread::new(&board, ThreadId(1), true).unwrap();
        assert!(host.open_lanes());
        assert!(!refused || refuse_membarrier());
        board.remove_buffer(key).unwrap();
        buffer.mapping().slot(0).lane.load(Ordering::Relaxed) == 0
    }
    assert!(is_taken(false));
    // In a process of its own, which the filter stays with.
    // SAFETY: the child ends without going back.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::_exit(i32::from(is_taken(true)));
        }
        let mut status = 0;
        libc::waitpid(child, &mut status, 0);
        assert_eq!(status, 0);
    }
}

fn small_buffer(blocks: usize) -> Buffer {
    let layout = Layout::new(blocks * 4096, 4096, 64).unwrap();
    Buffer::new(Mapping::anonymous(layout).unwrap(), Policy::Lossless)
}

#[test]
fn a_thread_that_waits_gets_a_block_that_an_idle_one_holds_partly_filled() {
    let board = Switchboard::new();
    let buffer = small_buffer(2);
    let collecting = CollectorOptions::default();
    let _collector = Collector::start(buffer.clone(), Vec::new(), collecting).unwrap();
    let key = board.add_buffer(buffer.clone()).unwrap();
    let mut hosts: Vec<HostThread> = (1..=8)
        .map(|id| HostThread::new(&board, ThreadId(id), false).unwrap())
        .collect();
    let mut record = gputrail_record::Overhead::blank();
    for _ in 0..3 {
        for (host, number) in hosts.iter_mut().zip(1..) {
            record.thread = ThreadId(number);
            host.write_to(key.buffers(), record);
        }
    }
    assert_eq!(buffer.dropped(), [0; gputrail_record::KINDS]);
}

#[test]
fn slow_calls_are_counted_while_the_table_has_a_watch() {
    let board = Switchboard::new();
    assert!(!board.slow_calls().are_there());
    let slow = board.watch_slow_calls(Duration::from_secs(1), || {});
    board.slow_calls().call_took(1);
    board.slow_calls().call_took(u64::MAX);
    assert_eq!(slow.count(), 1);
    slow.end();
    board.slow_calls().call_took(u64::MAX);
    assert!(!board.slow_calls().are_there());
}
