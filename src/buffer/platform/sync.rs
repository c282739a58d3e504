//! The atomics and locks used for hand-overs: those of the standard library, or loom's with `--cfg loom`, which checks
//! every interleaving.
//!
//! The locks are our own: they must be usable in a thread that handles a signal, must never be inherited locked by a forked
//! child, and must exist under loom.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(not(loom))]
use crate::platform::inside::Uncancelled;
#[cfg(not(loom))]
use crate::platform::system;
use std::time::Duration;

#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;

/// The standard library's cell with the interface of loom's.
#[cfg(not(loom))]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub fn with_mut<R>(&self, work: impl FnOnce(*mut T) -> R) -> R {
        work(self.0.get())
    }

    /// A pointer to the content.
    #[inline(always)]
    pub fn get_mut(&self) -> MutPtr<T> {
        // SAFETY: a reference to the content is never null.
        MutPtr(unsafe { std::ptr::NonNull::new_unchecked(self.0.get()) })
    }
}

#[cfg(loom)]
pub(crate) use loom::cell::MutPtr;

/// The result of [`UnsafeCell::get_mut`].
#[cfg(not(loom))]
pub(crate) struct MutPtr<T>(std::ptr::NonNull<T>);

#[cfg(not(loom))]
impl<T> MutPtr<T> {
    /// Passes the pointer to `work`.
    #[inline(always)]
    pub fn with<R>(&self, work: impl FnOnce(*mut T) -> R) -> R {
        work(self.0.as_ptr())
    }
}

/// Locks a mutex of the standard library, ignoring poisoning, with signals and cancellation blocked: a signal
/// handler might make a call that is recorded, and wait for its own thread.
///
/// This takes system calls, so it is not for the hot path.
#[cfg(not(loom))]
pub fn lock_std<T>(mutex: &std::sync::Mutex<T>) -> QuietGuard<'_, T> {
    let quiet = SignalsBlocked::begin();
    QuietGuard {
        guard: mutex
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner()),
        _quiet: quiet,
    }
}

/// A mutex that only [`lock_std`] locks.
#[cfg(not(loom))]
#[derive(Default)]
pub struct QuietMutex<T>(std::sync::Mutex<T>);

#[cfg(not(loom))]
impl<T> QuietMutex<T> {
    /// Locks it.
    pub fn lock(&self) -> QuietGuard<'_, T> {
        lock_std(&self.0)
    }

    /// Locks it, unless somebody else has.
    pub fn try_lock(&self) -> Option<QuietGuard<'_, T>> {
        let quiet = SignalsBlocked::begin();
        let guard = match self.0.try_lock() {
            Ok(guard) => guard,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => return None,
        };
        Some(QuietGuard {
            guard,
            _quiet: quiet,
        })
    }
}

/// The guard of a mutex whose holder is not interrupted by signals.
#[cfg(not(loom))]
pub struct QuietGuard<'a, T> {
    // Fields are dropped in this order.
    guard: std::sync::MutexGuard<'a, T>,
    _quiet: SignalsBlocked,
}

#[cfg(not(loom))]
impl<T> std::ops::Deref for QuietGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

#[cfg(not(loom))]
impl<T> std::ops::DerefMut for QuietGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// A per-process value behind a [`QuietMutex`]. A forked child starts with the default: it neither takes
/// the inherited lock, which may be held by a thread that does not exist in the child, nor reads the value, which that
/// thread may have been changing. Values of parent processes are never freed.
#[cfg(not(loom))]
pub struct PerProcess<T>(std::sync::atomic::AtomicPtr<OfProcess<T>>);

#[cfg(not(loom))]
struct OfProcess<T> {
    process: u32,
    value: QuietMutex<T>,
}

#[cfg(not(loom))]
impl<T: Default> PerProcess<T> {
    /// The default value, which is made when it is first locked.
    pub const fn new() -> PerProcess<T> {
        PerProcess(std::sync::atomic::AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Locks the value of this process.
    pub fn lock(&self) -> QuietGuard<'_, T> {
        self.value().lock()
    }

    /// Locks it, unless somebody else has.
    pub fn try_lock(&self) -> Option<QuietGuard<'_, T>> {
        self.value().try_lock()
    }

    fn value(&self) -> &QuietMutex<T> {
        let process = std::process::id();
        loop {
            let there = self.0.load(Ordering::Acquire);
            // SAFETY: null or a leaked box.
            if let Some(of_process) = unsafe { there.as_ref() }
                && of_process.process == process
            {
                return &of_process.value;
            }
            let new = Box::into_raw(Box::new(OfProcess {
                process,
                value: QuietMutex::default(),
            }));
            let stored = self
                .0
                .compare_exchange(there, new, Ordering::AcqRel, Ordering::Relaxed);
            if stored.is_err() {
                // SAFETY: created above and not shared.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }
}

#[cfg(not(loom))]
impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let there = *self.0.get_mut();
        // SAFETY: null or a leaked box, which nobody else refers to any more.
        if unsafe { there.as_ref() }.is_some_and(|there| there.process == std::process::id()) {
            // SAFETY: as above.
            drop(unsafe { Box::from_raw(there) });
        }
    }
}

/// A value that is created on first use and never freed. Unlike with `OnceLock`, no thread waits for another one to
/// create it, which a forked child may not have: several threads may create the value, and the first one is kept.
#[cfg(not(loom))]
pub struct OnceBox<T>(std::sync::atomic::AtomicPtr<T>);

#[cfg(not(loom))]
impl<T> OnceBox<T> {
    /// An empty one.
    pub const fn new() -> OnceBox<T> {
        OnceBox(std::sync::atomic::AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The value, if it has been made.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: null or a leaked box.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// The value, which `make` makes if there is none. Of values that several threads make at once, one stays.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.get() {
            return value;
        }
        let new = Box::into_raw(Box::new(make()));
        let none = std::ptr::null_mut();
        let stored = self
            .0
            .compare_exchange(none, new, Ordering::AcqRel, Ordering::Acquire);
        match stored {
            // SAFETY: the box was just leaked.
            Ok(_) => unsafe { &*new },
            Err(there) => {
                // SAFETY: created above and not shared.
                drop(unsafe { Box::from_raw(new) });
                // SAFETY: a leaked box.
                unsafe { &*there }
            }
        }
    }
}

#[cfg(not(loom))]
thread_local! {
    /// The number of live [`SignalsBlocked`] of the thread.
    static QUIET_DEPTH: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    /// The signal mask before the first of them.
    static BLOCKED_BEFORE: std::cell::Cell<Option<libc::sigset_t>> = const { std::cell::Cell::new(None) };
}

/// Blocks all signals and cancellation on the calling thread while it lives. Instances may be dropped in any order.
/// Threads spawned meanwhile inherit the signal mask.
#[cfg(not(loom))]
pub(crate) struct SignalsBlocked {
    _uncancelled: Uncancelled,
    /// Not `Send`: it belongs to its thread.
    _here: std::marker::PhantomData<*const ()>,
}

#[cfg(not(loom))]
impl SignalsBlocked {
    pub fn begin() -> SignalsBlocked {
        let depth = QUIET_DEPTH.get();
        if depth == 0 {
            // SAFETY: zeroed sets are valid for these calls to fill.
            let before = unsafe {
                let mut all: libc::sigset_t = std::mem::zeroed();
                let mut before: libc::sigset_t = std::mem::zeroed();
                libc::sigfillset(&mut all);
                libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
                before
            };
            BLOCKED_BEFORE.set(Some(before));
        }
        QUIET_DEPTH.set(depth + 1);
        SignalsBlocked {
            _uncancelled: Uncancelled::begin(),
            _here: std::marker::PhantomData,
        }
    }
}

#[cfg(not(loom))]
impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        let depth = QUIET_DEPTH.get() - 1;
        QUIET_DEPTH.set(depth);
        if depth == 0
            && let Some(before) = BLOCKED_BEFORE.take()
        {
            // SAFETY: the set was filled in by the system.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
        }
    }
}

/// Runs `work` with all signals blocked on the calling thread. Threads spawned meanwhile inherit the mask, so that
/// signals go to the program's own threads.
#[cfg(not(loom))]
pub fn with_signals_blocked<R>(work: impl FnOnce() -> R) -> R {
    let _blocked = SignalsBlocked::begin();
    work()
}

/// A futex: a number on which threads of one or several processes sleep.
#[cfg(not(loom))]
#[derive(Default)]
#[repr(transparent)]
pub struct Signal(AtomicU32);

#[cfg(not(loom))]
impl Signal {
    /// The current number.
    pub fn value(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Sleeps until the number is raised, or for `longest`. Returns at once if the number is not `seen`.
    pub fn wait(&self, seen: u32, longest: Duration) {
        system::sleep_on(&self.0, seen, longest);
    }

    /// Changes the number and wakes all sleepers.
    pub fn raise(&self) {
        self.0.fetch_add(1, Ordering::Release);
        system::wake(&self.0, u32::MAX >> 1);
    }
}

/// A futex under loom: comparing and falling asleep are one step.
#[cfg(loom)]
pub(crate) struct Signal {
    number: loom::sync::Mutex<u32>,
    raised: loom::sync::Condvar,
}

#[cfg(loom)]
impl Signal {
    pub fn new() -> Signal {
        Signal {
            number: loom::sync::Mutex::new(0),
            raised: loom::sync::Condvar::new(),
        }
    }

    pub fn value(&self) -> u32 {
        *self.number.lock().unwrap()
    }

    pub fn wait(&self, seen: u32, _: Duration) {
        let number = self.number.lock().unwrap();
        if *number == seen {
            drop(self.raised.wait(number));
        }
    }

    pub fn raise(&self) {
        *self.number.lock().unwrap() += 1;
        self.raised.notify_all();
    }
}

/// Yields to other threads.
pub fn pause() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::thread::yield_now();
}

/// The cheap half of an asymmetric fence between a hot path and a rare event. Either the stores before it are
/// visible after a later [`fence_heavy`], or the loads after it see the stores before that fence.
///
/// With membarrier the heavy half bears the whole cost; without it, both are full fences.
#[inline(always)]
pub fn fence_light() {
    if fence_light_is_free() {
        std::sync::atomic::compiler_fence(Ordering::SeqCst)
    } else {
        fence(Ordering::SeqCst)
    }
}

/// Whether [`fence_light`] is only a compiler fence.
#[inline(always)]
pub(crate) fn fence_light_is_free() -> bool {
    #[cfg(all(not(loom), target_os = "linux"))]
    return membarrier::is_there();
    #[cfg(not(all(not(loom), target_os = "linux")))]
    false
}

/// The expensive half; see [`fence_light`]. `false`: the system refused it, so that the fence has not reached other
/// threads.
#[must_use]
pub fn fence_heavy() -> bool {
    fence(Ordering::SeqCst);
    #[cfg(all(not(loom), target_os = "linux"))]
    return !membarrier::was_registered() || membarrier::expedite();
    #[cfg(not(all(not(loom), target_os = "linux")))]
    true
}

/// The system call by which one thread has all others of its process pass a full fence.
#[cfg(all(not(loom), target_os = "linux"))]
pub mod membarrier {
    use std::sync::atomic::{AtomicBool, Ordering};

    // <linux/membarrier.h>
    const PRIVATE_EXPEDITED: i32 = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;

    static THERE: AtomicBool = AtomicBool::new(false);
    /// Whether any light fence may have relied on it.
    static REGISTERED: AtomicBool = AtomicBool::new(false);

    /// Whether the process is registered, so that the call works.
    #[inline(always)]
    pub fn is_there() -> bool {
        THERE.load(Ordering::Relaxed)
    }

    /// Registers with the kernel. Must be called before threads rely on it, and again in forked children.
    pub fn register() {
        if command(REGISTER_PRIVATE_EXPEDITED) {
            REGISTERED.store(true, Ordering::SeqCst);
            THERE.store(true, Ordering::SeqCst);
        }
    }

    /// Whether a light fence may have relied on it, in this process or in one that it was forked from.
    pub fn was_registered() -> bool {
        REGISTERED.load(Ordering::Relaxed)
    }

    /// Interrupts every running thread of this process for a full fence. `false`: the system refuses it, as after a
    /// seccomp filter was installed; light fences are full ones from then on.
    pub fn expedite() -> bool {
        // A forked child registers anew.
        let done = command(PRIVATE_EXPEDITED)
            || command(REGISTER_PRIVATE_EXPEDITED) && command(PRIVATE_EXPEDITED);
        if !done {
            THERE.store(false, Ordering::SeqCst);
        }
        done
    }

    fn command(command: i32) -> bool {
        // SAFETY: membarrier takes three integers and accesses no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }
}
