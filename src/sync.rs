//! The atomics and locks that the hand-overs are made of: the standard library's, or loom's when
//! the crate is built with `--cfg loom` to check every interleaving of them.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicU32, AtomicU64, Ordering, fence},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicU32, AtomicU64, Ordering, fence},
};

/// Locks one of the standard library's mutexes, also when a thread panicked while it held it.
#[cfg(not(loom))]
pub(crate) fn lock_std<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Locks `mutex`, also when a thread panicked while it held it: what these locks guard is valid
/// between any two statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
