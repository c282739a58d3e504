//! Handles: C names contexts, buffers, subscribers and so on by a number that no other object of the process has had.

use bytemuck::{Pod, Zeroable};

/// Declares the handles of the API's objects.
macro_rules! handles {
    ($($(#[$meta:meta])* $handle:ident;)*) => {
        $(
            $(#[$meta])*
            #[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
            #[repr(C)]
            pub struct $handle {
                /// A number that no other object of the process has had; 0: no object.
                pub handle: u64,
            }
        )*
    };
}

handles! {
    /// A context: a set of services that are started and stopped together.
    ContextHandle;
    /// A buffer.
    BufferHandle;
    /// A subscriber: a function that is called back.
    SubscriberHandle;
    /// A tool that gputrail has loaded.
    ToolHandle;
    /// A timeline, which joins enqueue records and completions.
    TimelineHandle;
    /// A flight recorder.
    FlightHandle;
    /// A thread that delivers records.
    CallbackThreadHandle;
    /// A function that is called around the creation of the library's threads.
    WatchHandle;
    /// A group of counters.
    CounterGroupHandle;
    /// A set of counters.
    CounterSetHandle;
    /// Counters that are opened for sessions.
    CounterSessionsHandle;
    /// A pool of entries that count one kernel each.
    CounterPoolHandle;
}
