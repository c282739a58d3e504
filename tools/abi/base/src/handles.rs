//! Objects that programs have handles of. A handle is a number that no other object has had, so that one of an object that
//! is gone is recognised.

use crate::lock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

/// The objects of one type.
pub struct Handles<T>(LazyLock<Mutex<HashMap<usize, Arc<T>>>>);

impl<T> Handles<T> {
    /// No objects.
    #[allow(clippy::new_without_default, reason = "it is for statics alone")]
    pub const fn new() -> Handles<T> {
        Handles(LazyLock::new(Mutex::default))
    }

    /// A handle for an object: never 0.
    pub fn number() -> usize {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed) << 4
    }

    /// Adds an object with its handle.
    pub fn add(&self, handle: usize, object: Arc<T>) {
        lock(&self.0).insert(handle, object);
    }

    /// The object of a handle.
    pub fn get(&self, handle: usize) -> Option<Arc<T>> {
        lock(&self.0).get(&handle).cloned()
    }

    /// Whether this `is` so of any object.
    pub fn any(&self, is: impl Fn(&T) -> bool) -> bool {
        let all: Vec<Arc<T>> = lock(&self.0).values().cloned().collect();
        all.iter().any(|object| is(object))
    }

    /// Removes the object of a handle. It is dropped by the caller, outside of the lock.
    pub fn remove(&self, handle: usize) -> Option<Arc<T>> {
        lock(&self.0).remove(&handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_of_objects_that_are_gone_are_no_others() {
        static ALL: Handles<&str> = Handles::new();
        let (first, second) = (Handles::<&str>::number(), Handles::<&str>::number());
        ALL.add(first, Arc::new("first"));
        assert_eq!(ALL.remove(first).as_deref(), Some(&"first"));
        ALL.add(second, Arc::new("second"));
        assert_ne!(first, second);
        assert_eq!((ALL.get(first), ALL.get(0)), (None, None));
        assert!(ALL.any(|object| *object == "second"));
    }
}
