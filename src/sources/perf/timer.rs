//! POSIX timers on the CPU time of single threads, for systems that forbid perf events. Used only on request, since
//! their signals may interrupt system calls of the program. Their rate is limited by the kernel's tick.
//!
//! The signal is a real-time signal without a handler. It stays reserved once chosen, since a pending one without a
//! handler would kill the process. If the program installs its own handler, sampling ends. Timers are inherited neither
//! by forked children nor across exec.

use super::event::sample_time;
use super::ring::RingSample;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_buffer::signal_ring::SignalRing;
use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

/// The most threads with a slot.
const SLOTS: usize = 1024;

/// The signal, or 0 before it is chosen.
static SIGNAL: AtomicI32 = AtomicI32::new(0);
/// The slots, by the number in the signal's value. Slots are never freed.
static TABLE: [AtomicPtr<TimerSlot>; SLOTS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];
/// Held while a timer is created.
static CREATING: PerProcess<()> = PerProcess::new();

/// The destination of one thread's signal handler.
struct TimerSlot {
    /// The thread. A handler on another thread ignores the signal.
    thread: AtomicU32,
    ring: SignalRing,
}

/// The timer of one thread, which is sampled until this is dropped.
pub struct ThreadTimer {
    timer: libc::timer_t,
    slot: &'static TimerSlot,
}

// SAFETY: a timer belongs to the process, and its id is a number.
unsafe impl Send for ThreadTimer {}

/// The signal, which the first call chooses and reserves.
fn signal() -> io::Result<i32> {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => {}
        taken => return Ok(taken),
    }
    for signal in (libc::SIGRTMIN()..=libc::SIGRTMAX()).rev() {
        if handler_of(signal)? == libc::SIG_DFL {
            // SAFETY: zeros are an empty signal set and no flags.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            action.sa_sigaction = on_signal as *const () as usize;
            // SA_RESTART: interrupted system calls continue where possible. SA_ONSTACK: the
            // program's stack may be small.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
            // SAFETY: the handler is async-signal-safe.
            if unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } != 0 {
                return Err(io::Error::last_os_error());
            }
            SIGNAL.store(signal, Ordering::Relaxed);
            return Ok(signal);
        }
    }
    Err(io::Error::other(
        "the program handles every real-time signal itself: none is left for timers",
    ))
}

/// The handler of `signal`.
fn handler_of(signal: i32) -> io::Result<usize> {
    let mut now = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: the pointer is valid, and the result is initialised if the call succeeds.
    unsafe {
        match libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) {
            0 => Ok(now.assume_init().sa_sigaction),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Whether the program has installed its own handler for the signal.
pub fn is_overridden() -> bool {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => false,
        signal => handler_of(signal).ok() != Some(on_signal as *const () as usize),
    }
}

/// The CPU-time clock of a thread, in the kernel's encoding.
fn clock_of(thread: u32) -> libc::clockid_t {
    const OF_THREAD: libc::clockid_t = 4;
    const TIME_THAT_IT_RAN: libc::clockid_t = 2;
    (!(thread as libc::clockid_t) << 3) | OF_THREAD | TIME_THAT_IT_RAN
}

impl ThreadTimer {
    /// Samples `thread` of this process every `interval` ns of its CPU time.
    pub fn open(thread: u32, interval: u64) -> io::Result<ThreadTimer> {
        let signal = signal()?;
        let _creating = CREATING.lock();
        let (number, slot) =
            slot_for(thread).ok_or_else(|| io::Error::other("too many threads have had timers"))?;
        // SAFETY: zeros are a valid value.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_notify_thread_id = thread as i32;
        event.sigev_signo = signal;
        event.sigev_value.sival_ptr = number as *mut libc::c_void;
        let mut timer: libc::timer_t = std::ptr::null_mut();
        // SAFETY: all three pointers are valid for the call.
        if unsafe { libc::timer_create(clock_of(thread), &raw mut event, &raw mut timer) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let timer = ThreadTimer { timer, slot };
        // Discard samples of an earlier timer of this thread.
        timer.slot.ring.drain(drop);
        let every = libc::timespec {
            tv_sec: (interval / 1_000_000_000) as libc::time_t,
            tv_nsec: (interval % 1_000_000_000) as libc::c_long,
        };
        let times = libc::itimerspec {
            it_interval: every,
            it_value: every,
        };
        // SAFETY: the timer is valid.
        match unsafe { libc::timer_settime(timer.timer, 0, &raw const times, std::ptr::null_mut()) }
        {
            0 => Ok(timer),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Passes each sample to `take`. Returns the number of samples lost since the last call, and
    /// the current time.
    pub fn drain(&self, mut take: impl FnMut(RingSample)) -> (u64, u64) {
        let thread = self.slot.thread.load(Ordering::Relaxed);
        let lost = self.slot.ring.drain(|[address, time, cpu]| {
            take(RingSample {
                address,
                thread,
                time,
                cpu: cpu as u32,
            });
        });
        (lost, sample_time())
    }
}

impl Drop for ThreadTimer {
    fn drop(&mut self) {
        // SAFETY: the timer is not used afterwards. A pending signal finds the slot, which is never freed.
        unsafe { libc::timer_delete(self.timer) };
    }
}

/// A slot for a thread: its previous one, one of a thread that has exited, or a new one.
fn slot_for(thread: u32) -> Option<(usize, &'static TimerSlot)> {
    let mut reusable = None;
    for (number, entry) in TABLE.iter().enumerate() {
        // SAFETY: null, or a slot, which is never freed.
        let Some(slot) = (unsafe { entry.load(Ordering::Acquire).as_ref() }) else {
            if reusable.is_some() {
                break;
            }
            let slot = Box::leak(Box::new(TimerSlot {
                thread: AtomicU32::new(thread),
                ring: SignalRing::new(),
            }));
            entry.store(slot, Ordering::Release);
            return Some((number, slot));
        };
        let of = slot.thread.load(Ordering::Relaxed);
        if of == thread {
            return Some((number, slot));
        }
        // A thread that has exited runs no handler.
        if reusable.is_none() && !std::path::Path::new(&format!("/proc/self/task/{of}")).exists() {
            reusable = Some((number, slot));
        }
    }
    let (number, slot) = reusable?;
    slot.thread.store(thread, Ordering::Relaxed);
    Some((number, slot))
}

/// The signal handler, called when a thread has run for the interval. It is async-signal-safe: it uses atomics and
/// system calls only.
extern "C" fn on_signal(_: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes valid pointers to a handler with SA_SIGINFO.
    let (number, context) = unsafe {
        if (*info).si_code != libc::SI_TIMER {
            return;
        }
        let number = (*info).si_value().sival_ptr as usize;
        (number, &*context.cast::<libc::ucontext_t>())
    };
    let Some(entry) = TABLE.get(number) else {
        return;
    };
    // SAFETY: null, or a slot, which is never freed.
    let Some(slot) = (unsafe { entry.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    // SAFETY: neither call can fail or has preconditions.
    let (thread, error) = unsafe { (libc::gettid(), libc::__errno_location()) };
    if slot.thread.load(Ordering::Relaxed) != thread as u32 {
        return;
    }
    // SAFETY: errno of this thread, valid while it runs.
    let before = unsafe { *error };
    let time = sample_time();
    // SAFETY: no preconditions.
    let cpu = unsafe { libc::sched_getcpu() };
    slot.ring
        .put([program_counter(context), time, u64::from(cpu.max(0) as u32)]);
    // SAFETY: as above.
    unsafe { *error = before };
}

#[cfg(target_arch = "x86_64")]
fn program_counter(context: &libc::ucontext_t) -> u64 {
    context.uc_mcontext.gregs[libc::REG_RIP as usize] as u64
}

#[cfg(target_arch = "aarch64")]
fn program_counter(context: &libc::ucontext_t) -> u64 {
    context.uc_mcontext.pc
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn program_counter(_: &libc::ucontext_t) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spin() {
        let mut sum = 0u64;
        for number in 0..20_000_000u64 {
            sum = std::hint::black_box(sum.wrapping_add(number));
        }
    }

    #[test]
    fn a_thread_that_runs_is_sampled_and_one_that_waits_is_not() {
        let thread = || rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let interval = gputrail_collect::sampling::shortest_timer();
        let (sender, receiver) = std::sync::mpsc::channel();
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let waits = std::thread::spawn(move || {
            sender.send(thread()).unwrap();
            let _ = wait.recv();
        });
        let other = ThreadTimer::open(receiver.recv().unwrap(), interval).unwrap();
        let mine = ThreadTimer::open(thread(), interval).unwrap();
        let before = sample_time();
        let mut taken = Vec::new();
        while taken.len() < 10 {
            spin();
            mine.drain(|sample| taken.push(sample));
        }
        let after = sample_time();
        assert!(taken.iter().all(|sample| sample.thread == thread()));
        assert!(taken.is_sorted_by_key(|sample| sample.time));
        assert!(
            taken
                .iter()
                .all(|sample| (before..after).contains(&sample.time))
        );
        other.drain(|sample| panic!("{sample:?}"));
        assert!(!is_overridden());
        drop((mine, other));
        end.send(()).unwrap();
        waits.join().unwrap();
        // A later timer of the same thread finds its slot empty.
        let again = ThreadTimer::open(thread(), 1_000_000_000).unwrap();
        again.drain(|sample| panic!("{sample:?}"));
    }
}
