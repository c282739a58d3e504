//! Objects that programs have handles of. A handle is a number that no other object has had, so that one of an object that
//! is gone is recognised.

use crate::types::Handle;
use gputrail_abi::lock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

/// The objects of one type.
pub struct Handles<T>(LazyLock<Mutex<HashMap<usize, Arc<T>>>>);

impl<T> Handles<T> {
    pub const fn new() -> Handles<T> {
        Handles(LazyLock::new(Mutex::default))
    }

    /// A number for an object.
    pub fn number() -> usize {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed) << 4
    }

    /// Adds an object with its number.
    pub fn add(&self, number: usize, object: Arc<T>) {
        lock(&self.0).insert(number, object);
    }

    /// The object of a handle.
    pub fn get(&self, handle: Handle) -> Option<Arc<T>> {
        lock(&self.0).get(&handle.addr()).cloned()
    }

    /// Whether this `is` so of any object.
    pub fn any(&self, is: impl Fn(&T) -> bool) -> bool {
        let all: Vec<Arc<T>> = lock(&self.0).values().cloned().collect();
        all.iter().any(|object| is(object))
    }

    /// Removes the object of a handle.
    pub fn remove(&self, handle: Handle) -> Option<Arc<T>> {
        lock(&self.0).remove(&handle.addr())
    }
}

/// The handle of an object with this number.
pub fn handle(number: usize) -> Handle {
    std::ptr::without_provenance_mut(number)
}
