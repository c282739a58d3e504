//! The objects that handles name. A handle is a number that no other object of the process has had, so that one of a
//! destroyed object, or of an object of another class, is recognised.

use super::buffer::Buffer;
use super::callback::CallbackFormat;
use super::status::Failure;
use super::{Answer, callback, library, tools};
use gputrail_collect::context::{CallbackThread, Context, CounterPool, PoolEntry, Subscriber};
use gputrail_collect::counting::CounterSet;
use gputrail_collect::process;
use gputrail_interface::c::{
    BufferHandle, CallbackThreadHandle, ContextHandle, Status, SubscriberHandle, ToolHandle,
};
use std::cell::Cell;
use std::sync::{Arc, Weak};

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

    fn missing(&self, handle: u64) -> Failure {
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
        Failure::new(self.class.missing(), text)
    }
}

/// The user of the library that an object belongs to: a tool, or the program. Callbacks run as the owner of the object
/// that they belong to; threads of a tool's own count as the program's.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Owner(ToolHandle);

thread_local! {
    /// The owner of the callback that the thread is in, and the [generation](process::generation) of the process that
    /// called back: a forked child has another one, and has left its parent's callbacks.
    static OWNER: Cell<(Owner, u64)> = const { Cell::new((Owner::PROGRAM, NO_PROCESS)) };
}

/// The generation of no process.
const NO_PROCESS: u64 = u64::MAX;

impl Owner {
    /// The program, which has called `gputrail_initialise` itself.
    pub const PROGRAM: Owner = Owner(ToolHandle { handle: 0 });

    pub fn tool(tool: ToolHandle) -> Owner {
        Owner(tool)
    }

    /// The owner of the callback that the thread is in; else the program.
    pub fn current() -> Owner {
        Self::calling().unwrap_or_default()
    }

    /// The owner of the callback that the thread is in.
    pub fn calling() -> Option<Owner> {
        let (owner, of) = OWNER.try_with(Cell::get).ok()?;
        (of == process::generation()).then_some(owner)
    }

    /// Calls a function of this owner's. An exception must not leave it: it would unwind our frames.
    pub fn run<R>(self, function: impl FnOnce() -> R) -> R {
        let now = (self, process::generation());
        let before = OWNER.try_with(|owner| owner.replace(now));
        let unwound = tools::Unwound(self.0);
        let result = function();
        std::mem::forget(unwound);
        if let Ok(before) = before {
            let _ = OWNER.try_with(|owner| owner.set(before));
        }
        result
    }

    /// The calling thread leaves the callbacks that it is in, to which it never returns: it ends the process.
    pub fn leave_callbacks() {
        let none = (Owner::PROGRAM, NO_PROCESS);
        let _ = OWNER.try_with(|owner| owner.set(none));
    }
}

/// A subscriber and the context that it belongs to.
pub(super) struct Subscribed {
    pub context: ContextHandle,
    pub subscriber: Subscriber,
    /// The format of the records in its callbacks.
    pub format: Arc<CallbackFormat>,
}

/// A set of counters that can be chosen for a kernel.
pub(super) struct ChosenSet {
    pub set: Arc<CounterSet>,
    /// The entry of a pool that the set is; `None` if the tool has created it.
    pub entry: Option<(Weak<CounterPool>, PoolEntry)>,
}

pub(super) fn context(id: ContextHandle) -> Answer<Arc<Context>> {
    library::state()?.contexts.get(id.handle)
}

pub(super) fn buffer(id: BufferHandle) -> Answer<Arc<Buffer>> {
    library::state()?.buffers.get(id.handle)
}

pub(super) fn subscriber(id: SubscriberHandle) -> Answer<Arc<Subscribed>> {
    library::state()?.subscribers.get(id.handle)
}

pub(super) fn thread(id: CallbackThreadHandle) -> Answer<Arc<CallbackThread>> {
    library::state()?.threads.get(id.handle)
}

/// Waits until nobody else uses `object`, which has been taken off the list, and drops it. From within a callback it
/// does not wait: whoever uses it last drops it.
pub(super) fn destroy<T>(mut object: Arc<T>) {
    while !(callback::is_inside() || callback::has_left()) {
        match Arc::try_unwrap(object) {
            Ok(last) => return drop(last),
            Err(used) => object = used,
        }
        std::thread::yield_now();
    }
}
