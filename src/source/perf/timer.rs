//! POSIX timers on the processor time of single threads, for where perf events are forbidden: only on request, since they send
//! the program signals. A signal may interrupt a system call of the program's, and timers are no faster than the
//! kernel's tick.
//!
//! The signal is a real-time signal that nobody handled; once taken it stays ours, since one that is still on its way
//! would otherwise end the process. If the program begins to handle it itself, sampling ends. Timers are neither
//! inherited by forked children nor by a program that takes this one's place.

use super::event::SampleClock;
use super::ring::Taken;
use crate::buffer::signal_ring::SignalRing;
use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Threads that have a slot at a time.
const SLOTS: usize = 1024;

/// The signal, or 0.
static SIGNAL: AtomicI32 = AtomicI32::new(0);
/// Where handlers find the slot that a signal names: slots are never freed.
static TABLE: [AtomicPtr<Slot>; SLOTS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];
/// Who makes timers.
static MAKING: Mutex<()> = Mutex::new(());

/// What the handler of one thread writes to.
struct Slot {
    /// The thread: a signal that reaches another one is none of its.
    thread: AtomicU32,
    ring: SignalRing,
}

/// A timer of one thread, until this is dropped.
pub struct ThreadTimer {
    timer: libc::timer_t,
    slot: &'static Slot,
    clock: SampleClock,
}

// SAFETY: a timer is the process's, its id a number to the kernel.
unsafe impl Send for ThreadTimer {}

/// The shortest interval that timers can keep: the kernel looks at them once a tick.
pub fn shortest() -> u64 {
    let tick = resolution(libc::CLOCK_MONOTONIC_COARSE);
    tick.map_or(10_000_000, |tick| tick.as_nanos() as u64)
}

fn resolution(clock: libc::clockid_t) -> Option<Duration> {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: a place for the answer, which is there if the call says so.
    let time = unsafe {
        if libc::clock_getres(clock, time.as_mut_ptr()) != 0 {
            return None;
        }
        time.assume_init()
    };
    Some(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// Whether this processor's program counter can be read from a handler.
pub const CAN_READ: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// The signal, taken if it has not been.
fn signal() -> io::Result<i32> {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => {}
        taken => return Ok(taken),
    }
    for signal in (libc::SIGRTMIN()..=libc::SIGRTMAX()).rev() {
        if handler_of(signal)? == libc::SIG_DFL {
            // SAFETY: zeros are an empty set, and no flags.
            let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
            action.sa_sigaction = on_signal as *const () as usize;
            // What is interrupted goes on where the kernel can do that; the program may have little stack.
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

/// The address of the function that handles `signal`, or what happens without one.
fn handler_of(signal: i32) -> io::Result<usize> {
    let mut now = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a place for the answer, which is there if the call says so.
    unsafe {
        match libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) {
            0 => Ok(now.assume_init().sa_sigaction),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Whether the program has begun to handle the signal itself.
pub fn is_taken_away() -> bool {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => false,
        signal => handler_of(signal).ok() != Some(on_signal as *const () as usize),
    }
}

/// The clock of a thread's processor time, as the kernel numbers them.
fn clock_of(thread: u32) -> libc::clockid_t {
    const OF_THREAD: libc::clockid_t = 4;
    const TIME_THAT_IT_RAN: libc::clockid_t = 2;
    (!(thread as libc::clockid_t) << 3) | OF_THREAD | TIME_THAT_IT_RAN
}

impl ThreadTimer {
    /// Samples `thread` of this process every `interval` ns that it runs.
    pub fn open(thread: u32, interval: u64, clock: SampleClock) -> io::Result<ThreadTimer> {
        let signal = signal()?;
        let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, slot) =
            slot_for(thread).ok_or_else(|| io::Error::other("too many threads have had timers"))?;
        // SAFETY: zeros are valid for it.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_notify_thread_id = thread as i32;
        event.sigev_signo = signal;
        event.sigev_value.sival_ptr = number as *mut libc::c_void;
        let mut timer: libc::timer_t = std::ptr::null_mut();
        // SAFETY: a clock's number, what happens, and a place for the id.
        if unsafe { libc::timer_create(clock_of(thread), &raw mut event, &raw mut timer) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let timer = ThreadTimer { timer, slot, clock };
        // What an earlier timer of the thread left is none of this one's.
        timer.slot.ring.drain(drop);
        let every = libc::timespec {
            tv_sec: (interval / 1_000_000_000) as libc::time_t,
            tv_nsec: (interval % 1_000_000_000) as libc::c_long,
        };
        let times = libc::itimerspec {
            it_interval: every,
            it_value: every,
        };
        // SAFETY: our timer, and its times.
        match unsafe { libc::timer_settime(timer.timer, 0, &raw const times, std::ptr::null_mut()) }
        {
            0 => Ok(timer),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Takes out what has come, and hands it to `take`: the samples lost since the last time, and when that was found
    /// out.
    pub fn drain(&self, mut take: impl FnMut(Taken)) -> (u64, u64) {
        let thread = self.slot.thread.load(Ordering::Relaxed);
        let lost = self.slot.ring.drain(|[address, time, cpu]| {
            take(Taken {
                address,
                thread,
                time,
                cpu: cpu as u32,
            });
        });
        (lost, self.clock.now())
    }
}

impl Drop for ThreadTimer {
    fn drop(&mut self) {
        // SAFETY: our timer, for the last time. A signal that is on its way finds the slot, which stays.
        unsafe { libc::timer_delete(self.timer) };
    }
}

/// A slot for a thread: the one that it had, one whose thread is gone, or a new one.
fn slot_for(thread: u32) -> Option<(usize, &'static Slot)> {
    let mut gone = None;
    for (number, place) in TABLE.iter().enumerate() {
        // SAFETY: null, or a slot, which is never freed.
        let Some(slot) = (unsafe { place.load(Ordering::Acquire).as_ref() }) else {
            if gone.is_some() {
                break;
            }
            let slot = Box::leak(Box::new(Slot {
                thread: AtomicU32::new(thread),
                ring: SignalRing::new(),
            }));
            place.store(slot, Ordering::Release);
            return Some((number, slot));
        };
        let of = slot.thread.load(Ordering::Relaxed);
        if of == thread {
            return Some((number, slot));
        }
        // A thread that there is no more runs no handler.
        if gone.is_none() && !std::path::Path::new(&format!("/proc/self/task/{of}")).exists() {
            gone = Some((number, slot));
        }
    }
    let (number, slot) = gone?;
    slot.thread.store(thread, Ordering::Relaxed);
    Some((number, slot))
}

/// A thread has run for the interval. Everything here is async-signal-safe: loads and stores, and calls that the kernel
/// answers without touching memory of the C library's.
extern "C" fn on_signal(_: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: what the kernel hands to a handler with SA_SIGINFO.
    let (number, context) = unsafe {
        if (*info).si_code != libc::SI_TIMER {
            return;
        }
        let number = (*info).si_value().sival_ptr as usize;
        (number, &*context.cast::<libc::ucontext_t>())
    };
    let Some(place) = TABLE.get(number) else {
        return;
    };
    // SAFETY: null, or a slot, which is never freed.
    let Some(slot) = (unsafe { place.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    // SAFETY: the number of the calling thread, and where its last error stands: neither can fail.
    let (thread, error) = unsafe { (libc::gettid(), libc::__errno_location()) };
    if slot.thread.load(Ordering::Relaxed) != thread as u32 {
        return;
    }
    // SAFETY: the thread's own, valid while it runs.
    let before = unsafe { *error };
    let time = SampleClock::MonotonicRaw.now();
    // SAFETY: takes nothing.
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
        let clock = SampleClock::MonotonicRaw;
        let interval = shortest();
        let (told, hears) = std::sync::mpsc::channel();
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let waits = std::thread::spawn(move || {
            told.send(thread()).unwrap();
            let _ = wait.recv();
        });
        let other = ThreadTimer::open(hears.recv().unwrap(), interval, clock).unwrap();
        let mine = ThreadTimer::open(thread(), interval, clock).unwrap();
        let before = clock.now();
        let mut taken = Vec::new();
        while taken.len() < 10 {
            spin();
            mine.drain(|sample| taken.push(sample));
        }
        let after = clock.now();
        assert!(taken.iter().all(|sample| sample.thread == thread()));
        assert!(taken.is_sorted_by_key(|sample| sample.time));
        assert!(
            taken
                .iter()
                .all(|sample| (before..after).contains(&sample.time))
        );
        other.drain(|sample| panic!("{sample:?}"));
        assert!(!is_taken_away());
        drop((mine, other));
        end.send(()).unwrap();
        waits.join().unwrap();
        // A later one of the same thread finds its slot again, empty.
        let again = ThreadTimer::open(thread(), 1_000_000_000, clock).unwrap();
        again.drain(|sample| panic!("{sample:?}"));
    }
}
