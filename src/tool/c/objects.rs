//! Handles: C names contexts, buffers, subscribers and so on by a number that no other object of the process has had, so
//! that a handle of a destroyed object, or of an object of another class, is recognised.

use super::status::{Failure, Status};
use super::{Answer, callback, library};
use crate::collect::context::{CallbackThread, Context, RecordBuffer, Subscriber};
use bytemuck::{Pod, Zeroable};
use std::sync::Arc;

/// Declares the handles of the API's objects: the type of the handle, the number of the class (the highest byte of each
/// of its handles), the name for messages, and the status for a handle of no object.
macro_rules! handles {
    ($($(#[$meta:meta])* $handle:ident: $class:ident = $number:literal, $name:literal, $missing:ident;)*) => {
        $(
            $(#[$meta])*
            #[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
            #[repr(C)]
            pub struct $handle {
                /// A number that no other object of the process has had; 0: no object.
                pub handle: u64,
            }
        )*

        /// The class of the object that a handle names.
        #[derive(Copy, Clone, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub(super) enum Class {
            $($class = $number,)*
        }

        impl Class {
            /// The class of a handle.
            fn of(handle: u64) -> Option<Class> {
                [$(Class::$class),*].into_iter().find(|class| *class as u64 == handle >> 56)
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

handles! {
    /// A context: a set of services that are started and stopped together.
    ContextHandle: Context = 1, "context", NO_SUCH_CONTEXT;
    /// A buffer.
    BufferHandle: Buffer = 2, "buffer", NO_SUCH_BUFFER;
    /// A subscriber: a function that is called back.
    SubscriberHandle: Subscriber = 3, "subscriber", NO_SUCH_SUBSCRIBER;
    /// A tool that gputrail has loaded.
    ToolHandle: Tool = 4, "tool", NO_SUCH_TOOL;
    /// A timeline, which joins enqueue records and completions.
    TimelineHandle: Timeline = 5, "timeline", NO_SUCH_TIMELINE;
    /// A flight recorder.
    FlightHandle: Flight = 6, "flight recorder", NO_SUCH_FLIGHT;
    /// A thread that delivers records.
    CallbackThreadHandle: CallbackThread = 7, "callback thread", NO_SUCH_THREAD;
    /// A function that is called around the creation of the library's threads.
    WatchHandle: Watch = 8, "watch", NO_SUCH_WATCH;
}

/// The objects of one class, by id.
pub(super) struct Objects<T> {
    class: Class,
    objects: Vec<(u64, Arc<T>)>,
}

impl<T> Objects<T> {
    pub fn new(class: Class) -> Objects<T> {
        Objects {
            class,
            objects: Vec::new(),
        }
    }

    pub fn insert(&mut self, id: u64, object: Arc<T>) {
        self.objects.push((id, object));
    }

    pub fn get(&self, id: u64) -> Answer<Arc<T>> {
        let found = self.objects.iter().find(|(of, _)| *of == id);
        found
            .map(|(_, object)| object.clone())
            .ok_or_else(|| self.missing(id))
    }

    pub fn remove(&mut self, id: u64) -> Answer<Arc<T>> {
        let place = self.objects.iter().position(|(of, _)| *of == id);
        place
            .map(|place| self.objects.swap_remove(place).1)
            .ok_or_else(|| self.missing(id))
    }

    pub fn has(&self, id: u64) -> bool {
        self.objects.iter().any(|(of, _)| *of == id)
    }

    pub fn all(&self) -> Vec<Arc<T>> {
        self.objects
            .iter()
            .map(|(_, object)| object.clone())
            .collect()
    }

    /// Takes those off the list that `gone` says.
    pub fn take_if(&mut self, gone: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let taken = self.objects.extract_if(.., |(_, object)| gone(object));
        taken.map(|(_, object)| object).collect()
    }

    pub fn take_all(&mut self) -> Vec<Arc<T>> {
        std::mem::take(&mut self.objects)
            .into_iter()
            .map(|(_, object)| object)
            .collect()
    }

    fn missing(&self, id: u64) -> Failure {
        let class = self.class.name();
        let text = match Class::of(id) {
            Some(other) if other != self.class => {
                format!("{id:#x} is the id of a {}, not of a {class}", other.name())
            }
            Some(_) => format!("the {class} {id:#x} has been destroyed"),
            None => format!("{id:#x} is the id of nothing"),
        };
        Failure::new(self.class.missing(), text)
    }
}

/// A subscriber and the context that it belongs to.
pub(super) struct Subscribed {
    pub context: ContextHandle,
    pub subscriber: Subscriber,
}

pub(super) fn context(id: ContextHandle) -> Answer<Arc<Context>> {
    library::state()?.contexts.get(id.handle)
}

pub(super) fn buffer(id: BufferHandle) -> Answer<Arc<RecordBuffer>> {
    library::state()?.buffers.get(id.handle)
}

pub(super) fn subscriber(id: SubscriberHandle) -> Answer<Arc<Subscribed>> {
    library::state()?.subscribers.get(id.handle)
}

pub(super) fn thread(id: CallbackThreadHandle) -> Answer<Arc<CallbackThread>> {
    library::state()?.threads.get(id.handle)
}

/// Waits until nobody else uses `object`, which has been taken off the list, and drops it. From within a
/// callback it does not wait: whoever uses it last drops it.
pub(super) fn destroy<T>(mut object: Arc<T>) {
    while !callback::is_inside() {
        match Arc::try_unwrap(object) {
            Ok(last) => return drop(last),
            Err(used) => object = used,
        }
        std::thread::yield_now();
    }
}
