//! Typed ids and times: public signatures contain no bare integers.

use bytemuck::{Pod, Zeroable};

macro_rules! number {
    ($($(#[$meta:meta])* $name:ident($int:ty);)*) => {$(
        $(#[$meta])*
        #[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Pod, Zeroable)]
        #[repr(transparent)]
        pub struct $name(pub $int);

        impl $name {
            /// No value: unknown or absent.
            pub const NONE: $name = $name(0);

            /// Whether the value is known.
            pub const fn is_some(self) -> bool {
                self.0 != 0
            }
        }

        impl super::layout::FieldType for $name {
            const CLOCK: Option<super::layout::FieldClock> =
                super::layout::FieldClock::of_type(stringify!($name));
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
    /// Host time in ticks of the tick source; in joined records of tools, and in their callbacks, in nanoseconds of
    /// CLOCK_BOOTTIME. 0: unknown.
    Ticks(u64);
    /// Device time in the unit of the agent's clock (nanoseconds in OpenCL); in joined records of tools, and in their
    /// callbacks, in nanoseconds of CLOCK_BOOTTIME. 0: unknown.
    DeviceTime(u64);
    /// Nanoseconds, of a clock or a time span.
    Nanos(u64);

    /// The id of an API call, unique in its process. Asynchronous work carries the id of the call that caused it.
    CorrelationId(u64);
    /// An id chosen by the client, pushed and popped per thread and kind.
    ExternalId(u64);
    /// A piece of asynchronous work on an agent, unique in its process (rocprofiler-sdk: dispatch id, for kernels).
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
    /// A call stack of the host, from 1.
    CallStackId(u32);
    /// A program or library with host code, from 1.
    HostModuleId(u32);
    /// A line of source code, from 1.
    SourceLocatorId(u32);
    /// A thread of the operating system (gettid), or of the simulator.
    ThreadId(u32);
    /// A process.
    ProcessId(u32);
}

impl AgentId {
    /// In a request for a service of agents: all agents, also those that the process comes to know later.
    pub const ALL: AgentId = AgentId(u32::MAX);
}

impl core::ops::Sub for Ticks {
    type Output = u64;

    fn sub(self, earlier: Ticks) -> u64 {
        self.0.wrapping_sub(earlier.0)
    }
}
