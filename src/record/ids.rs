//! Typed numbers: identities and times. None of them is a bare integer in a public signature.

use bytemuck::{Pod, Zeroable};

macro_rules! number {
    ($($(#[$meta:meta])* $name:ident($int:ty);)*) => {$(
        $(#[$meta])*
        #[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Pod, Zeroable)]
        #[repr(transparent)]
        pub struct $name(pub $int);

        impl $name {
            /// Nothing: not known, or not there.
            pub const NONE: $name = $name(0);

            /// Whether it names something.
            pub const fn is_some(self) -> bool {
                self.0 != 0
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

number! {
    /// Host time in ticks of the capture's tick source. 0 is not known.
    Ticks(u64);
    /// Time of an agent's own clock, in that clock's unit (nanoseconds in OpenCL). 0 is not known.
    DeviceTime(u64);
    /// Nanoseconds, of the clock or the span that the context names.
    Nanos(u64);

    /// An API call, unique in its process. Asynchronous work carries the id of the call that caused it.
    CorrelationId(u64);
    /// An id of the client's own, pushed and popped per thread and kind.
    ExternalId(u64);
    /// A piece of asynchronous work on an agent, unique in its process. For kernels this is
    /// what rocprofiler-sdk calls the dispatch id.
    WorkId(u64);

    /// A string of the names store.
    StringId(u32);
    /// An agent of this process, from 1.
    AgentId(u32);
    /// A context of a runtime, from 1.
    ContextId(u32);
    /// A queue, from 1.
    QueueId(u32);
    /// A stream, from 1.
    StreamId(u32);
    /// An event object, from 1.
    EventId(u32);
    /// A module or program, from 1.
    ModuleId(u32);
    /// A kernel symbol, from 1.
    KernelId(u32);
    /// A code object, from 1.
    CodeObjectId(u32);
    /// A line of source code, from 1.
    SourceLocatorId(u32);
    /// A thread of the operating system (gettid), or of the simulator.
    ThreadId(u32);
    /// A process.
    ProcessId(u32);
}

impl core::ops::Sub for Ticks {
    type Output = u64;

    fn sub(self, earlier: Ticks) -> u64 {
        self.0.wrapping_sub(earlier.0)
    }
}
