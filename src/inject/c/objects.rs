//! The objects that handles name. A handle is a number that no other object of the process has had, so that one of a
//! destroyed object, or of an object of another class, is recognised.

use super::owner::Owner;
use super::status::FailedCall;
use super::{Answer, caller};
use gputrail_interface::c::Status;
use std::sync::Arc;

/// Bits of a handle below its class.
const NUMBER_BITS: u32 = 56;
const NUMBERS: u64 = (1 << NUMBER_BITS) - 1;

/// Declares the classes of objects: the number of the class (the highest byte of each of its handles), the name for
/// messages, and the status for a handle of no object.
macro_rules! classes {
    ($($class:ident = $number:literal, $name:literal, $missing:ident;)*) => {
        /// The class of the object that a handle names.
        #[derive(Copy, Clone, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub(super) enum Class {
            $($class = $number,)*
        }

        impl Class {
            /// The class of a handle.
            fn of(handle: u64) -> Option<Class> {
                [$(Class::$class),*].into_iter().find(|class| *class as u64 == handle >> NUMBER_BITS)
            }

            fn name(self) -> &'static str {
                match self {
                    $(Class::$class => $name,)*
                }
            }

            fn missing(self) -> Status {
                match self {
                    $(Class::$class => Status::$missing,)*
                }
            }
        }
    };
}

classes! {
    Context = 1, "context", NO_SUCH_CONTEXT;
    Buffer = 2, "buffer", NO_SUCH_BUFFER;
    Subscriber = 3, "subscriber", NO_SUCH_SUBSCRIBER;
    Tool = 4, "tool", NO_SUCH_TOOL;
    Timeline = 5, "timeline", NO_SUCH_TIMELINE;
    Flight = 6, "flight recorder", NO_SUCH_FLIGHT;
    CallbackThread = 7, "callback thread", NO_SUCH_THREAD;
    Watch = 8, "watch", NO_SUCH_WATCH;
    CounterGroup = 9, "group of counters", NO_SUCH_COUNTER_GROUP;
    CounterSet = 10, "set of counters", NO_SUCH_COUNTER_SET;
    CounterSessions = 11, "opened counters", NO_SUCH_COUNTER_SESSIONS;
    CounterPool = 12, "pool", NO_SUCH_COUNTER_POOL;
}

/// The objects of one class, by handle, each with its owner.
pub(super) struct Objects<T> {
    class: Class,
    /// Number of handles that have been issued.
    issued: u64,
    objects: Vec<(u64, Owner, Arc<T>)>,
}

impl<T> Objects<T> {
    pub fn new(class: Class) -> Objects<T> {
        Objects {
            class,
            issued: 0,
            objects: Vec::new(),
        }
    }

    /// A handle that no object has had.
    pub fn new_handle(&mut self) -> u64 {
        self.issued += 1;
        (self.class as u64) << NUMBER_BITS | self.issued & NUMBERS
    }

    /// Adds an object of the calling user.
    pub fn insert(&mut self, handle: u64, object: Arc<T>) {
        self.objects.push((handle, Owner::current(), object));
    }

    pub fn get(&self, handle: u64) -> Answer<Arc<T>> {
        let found = self.objects.iter().find(|(of, ..)| *of == handle);
        found
            .map(|(.., object)| object.clone())
            .ok_or_else(|| self.missing(handle))
    }

    pub fn remove(&mut self, handle: u64) -> Answer<Arc<T>> {
        let place = self.objects.iter().position(|(of, ..)| *of == handle);
        place
            .map(|place| self.objects.swap_remove(place).2)
            .ok_or_else(|| self.missing(handle))
    }

    /// The handle of the first object for which `is_it` holds.
    pub fn find(&self, is_it: impl Fn(&T) -> bool) -> Option<u64> {
        let mut all = self.objects.iter();
        let found = all.find(|(.., object)| is_it(object));
        found.map(|(handle, ..)| *handle)
    }

    pub fn has(&self, handle: u64) -> bool {
        self.objects.iter().any(|(of, ..)| *of == handle)
    }

    /// The objects of `owner`; of all owners for `None`.
    pub fn of(&self, owner: Option<Owner>) -> Vec<Arc<T>> {
        let all = self.objects.iter();
        let those = all.filter(|(_, of, _)| owner.is_none_or(|owner| owner == *of));
        those.map(|(.., object)| object.clone()).collect()
    }

    /// Takes the objects for which `gone` holds.
    pub fn take_if(&mut self, gone: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let taken = self.objects.extract_if(.., |(.., object)| gone(object));
        taken.map(|(.., object)| object).collect()
    }

    /// Takes the objects of `owner`; of all owners for `None`.
    pub fn take(&mut self, owner: Option<Owner>) -> Vec<Arc<T>> {
        let those = |of: &mut (u64, Owner, Arc<T>)| owner.is_none_or(|owner| owner == of.1);
        let taken = self.objects.extract_if(.., those);
        taken.map(|(.., object)| object).collect()
    }

    fn missing(&self, handle: u64) -> FailedCall {
        let class = self.class.name();
        let text = match Class::of(handle) {
            Some(other) if other != self.class => {
                format!(
                    "{handle:#x} is the handle of a {}, not of a {class}",
                    other.name()
                )
            }
            Some(_) if (1..=self.issued).contains(&(handle & NUMBERS)) => {
                format!("the {class} {handle:#x} has been destroyed")
            }
            _ => format!("no {class} has ever had the handle {handle:#x}"),
        };
        FailedCall::new(self.class.missing(), text)
    }
}

/// Waits until nobody else uses `object`, which has been taken off the list, and drops it. From within a callback it
/// does not wait: whoever uses it last drops it.
pub(super) fn destroy<T>(mut object: Arc<T>) {
    while !(caller::is_inside() || caller::has_left()) {
        match Arc::try_unwrap(object) {
            Ok(last) => return drop(last),
            Err(used) => object = used,
        }
        std::thread::yield_now();
    }
}
