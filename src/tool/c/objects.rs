//! What C names by ids: contexts, buffers, subscribers. An id holds a number that no other object of the process
//! has had, so that ids of what is gone, and of something else, are told apart from those that hold.

use super::status::{Failure, Status};
use super::{Answer, callback, library};
use crate::collect::context::{CallbackThread, Context, RecordBuffer, Subscriber};
use std::sync::Arc;

/// A context. 0 is none.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct ContextHandle(pub u64);

/// A buffer. 0 is none.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct BufferHandle(pub u64);

/// A subscriber. 0 is none.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct SubscriberHandle(pub u64);

/// A timeline. 0 is none.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct TimelineHandle(pub u64);

/// A flight recorder. 0 is none.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct FlightHandle(pub u64);

/// A callback thread. 0 is none.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct ThreadHandle(pub u64);

/// A watch over the library's threads. 0 is none.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct WatchHandle(pub u64);

/// What kind of object an id names: the highest byte of the id.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Class {
    Context = 1,
    Buffer = 2,
    Subscriber = 3,
    Tool = 4,
    Timeline = 5,
    Flight = 6,
    Thread = 7,
    Watch = 8,
}

impl Class {
    fn of(id: u64) -> Option<Class> {
        use Class::*;
        [
            Context, Buffer, Subscriber, Tool, Timeline, Flight, Thread, Watch,
        ]
        .into_iter()
        .find(|class| *class as u64 == id >> 56)
    }

    fn name(self) -> &'static str {
        match self {
            Class::Context => "context",
            Class::Buffer => "buffer",
            Class::Subscriber => "subscriber",
            Class::Tool => "tool",
            Class::Timeline => "timeline",
            Class::Flight => "flight recorder",
            Class::Thread => "callback thread",
            Class::Watch => "watch",
        }
    }

    fn missing(self) -> Status {
        match self {
            Class::Context => Status::NO_SUCH_CONTEXT,
            Class::Buffer => Status::NO_SUCH_BUFFER,
            Class::Subscriber => Status::NO_SUCH_SUBSCRIBER,
            Class::Tool => Status::NO_SUCH_TOOL,
            Class::Timeline => Status::NO_SUCH_TIMELINE,
            Class::Flight => Status::NO_SUCH_FLIGHT,
            Class::Thread => Status::NO_SUCH_THREAD,
            Class::Watch => Status::NO_SUCH_WATCH,
        }
    }
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
    library::state()?.contexts.get(id.0)
}

pub(super) fn buffer(id: BufferHandle) -> Answer<Arc<RecordBuffer>> {
    library::state()?.buffers.get(id.0)
}

pub(super) fn subscriber(id: SubscriberHandle) -> Answer<Arc<Subscribed>> {
    library::state()?.subscribers.get(id.0)
}

pub(super) fn thread(id: ThreadHandle) -> Answer<Arc<CallbackThread>> {
    library::state()?.threads.get(id.0)
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
