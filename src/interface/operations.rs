//! The operations that happen inside of API calls, and the phases of operations.
//!
//! The domains here reach subscribers only, in the middle of the calls that they are about: objects ([`resource`]), kernels
//! ([`kernel_dispatch`]), copies and fills ([`memory_copy`]), memory ([`memory_allocation`]), and waits ([`synchronization`]).
//! Each operation says the phases in which it is reported, and the record that its callbacks have; the C header and
//! `docs/operations.md` list them from here. Of objects that go, subscribers are told before they do; a code object comes with
//! its machine code.
//!
//! Numbers are part of the C API and of captures: they are never changed or used again.
//!
//! The split into an enqueue, with enter and exit, and a completion, which has the user data of its enqueue, is
//! rocprofiler-sdk's. CUPTI's resource and synchronize domains have the same events in fewer phases: subscribers get the
//! waits of CUDA as `Instant`, once they have ended.

use gputrail_record::{Domain, Operation};

/// The phase of an operation.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
pub enum Phase {
    /// A call begins (CUPTI: `CUPTI_API_ENTER`).
    Enter = 1,
    /// A call has returned (CUPTI: `CUPTI_API_EXIT`).
    Exit = 2,
    /// Work that was enqueued has completed.
    Complete = 3,
    /// An instantaneous event without further phases.
    Instant = 4,
}

/// Declares the operations of a domain that reaches subscribers only: number, name, phases, and the record of the
/// callbacks, if they have one.
macro_rules! callback_domains {
    ($($(#[$meta:meta])* $module:ident: $domain:ident {
        $($(#[$note:meta])* $operation:ident = $number:literal, $name:literal, $($phase:ident)|+ $(($record:ident))?;)*
    })*) => {
        $($(#[$meta])*
        pub mod $module {
            use gputrail_record::{Domain, Operation};

            $($(#[$note])*
            ///
            #[doc = concat!($("[`", stringify!($phase), "`](super::Phase::", stringify!($phase), ") "),+
                $(, "with [`", stringify!($record), "`](gputrail_record::", stringify!($record), ")")?)]
            pub const $operation: Operation = Operation { domain: Domain::$domain, number: $number };)*

            /// All of them, with their names.
            pub const ALL: &[(Operation, &str)] = &[$(($operation, $name)),*];
        })*

        /// The operations of a domain that reaches subscribers only, with their names; none of another domain.
        pub fn of(domain: Domain) -> &'static [(Operation, &'static str)] {
            match domain {
                $(Domain::$domain => $module::ALL,)*
                _ => &[],
            }
        }
    };
}

callback_domains! {
    /// Objects that come and go (CUPTI: `CUPTI_CB_DOMAIN_RESOURCE`; rocprofiler-sdk: code object and runtime
    /// initialization tracing).
    resource: RESOURCE {
        /// The runtime has been initialized: delivered in the program's first call that is observed. Reported by all
        /// sources.
        RUNTIME_INITIALIZED = 1, "runtime initialized", Instant;
        /// A context was created. Reported by all sources.
        CONTEXT_CREATED = 2, "context created", Instant (Context);
        /// A context is going to be destroyed: the program gives up its last reference. Reported by all sources.
        CONTEXT_DESTROYED = 3, "context destroyed", Instant (Context);
        /// A queue was created. Reported by OpenCL and the simulated GPU.
        QUEUE_CREATED = 4, "queue created", Instant (Queue);
        /// A queue is going to be destroyed. Reported by OpenCL and the simulated GPU.
        QUEUE_DESTROYED = 5, "queue destroyed", Instant (Queue);
        /// A module or program was made. Reported by all sources.
        MODULE_LOADED = 6, "module loaded", Instant (Module);
        /// A module or program is going away. Reported by all sources.
        MODULE_UNLOADED = 7, "module unloaded", Instant (Module);
        /// A module has got machine code for an agent. Reported by OpenCL and the simulated GPU.
        CODE_OBJECT_LOADED = 8, "code object loaded", Instant (CodeObject);
        /// Machine code is going away, or is going to be replaced by a new build. Reported by OpenCL and the simulated GPU.
        CODE_OBJECT_UNLOADED = 9, "code object unloaded", Instant (CodeObject);
        /// A kernel can be launched. Reported by all sources.
        KERNEL_SYMBOL_REGISTERED = 10, "kernel symbol registered", Instant (KernelSymbol);
        /// A kernel is going away. Reported by OpenCL and the simulated GPU.
        KERNEL_SYMBOL_UNREGISTERED = 11, "kernel symbol unregistered", Instant (KernelSymbol);
        /// A stream was created. Reported by CUDA and the simulated GPU.
        STREAM_CREATED = 12, "stream created", Instant (Stream);
        /// A stream is going to be destroyed. Reported by CUDA and the simulated GPU.
        STREAM_DESTROYED = 13, "stream destroyed", Instant (Stream);
        /// An agent is known from now on, and can be sampled if it is able to: told when the first context on it is
        /// created, before that context is told. Reported by OpenCL and the simulated GPU.
        AGENT_KNOWN = 14, "agent known", Instant (Agent);
        /// A graph was created. Reported by CUDA and the simulated GPU.
        GRAPH_CREATED = 15, "graph created", Instant (GraphChange);
        /// A graph is going to be destroyed. Reported by CUDA and the simulated GPU.
        GRAPH_DESTROYED = 16, "graph destroyed", Instant (GraphChange);
        /// A graph was cloned. Reported by CUDA.
        GRAPH_CLONED = 17, "graph cloned", Instant (GraphChange);
        /// A node was added to a graph. Reported by CUDA and the simulated GPU.
        GRAPH_NODE_CREATED = 18, "graph node created", Instant (GraphChange);
        /// A node of a graph is going to be removed. Reported by CUDA.
        GRAPH_NODE_DESTROYED = 19, "graph node destroyed", Instant (GraphChange);
        /// A node was cloned with its graph. Reported by CUDA and the simulated GPU.
        GRAPH_NODE_CLONED = 20, "graph node cloned", Instant (GraphChange);
        /// A node of a graph waits for another one from now on. Reported by CUDA and the simulated GPU.
        GRAPH_DEPENDENCY_CREATED = 21, "graph dependency created", Instant (GraphChange);
        /// A node of a graph will no longer wait for another one. Reported by CUDA.
        GRAPH_DEPENDENCY_DESTROYED = 22, "graph dependency destroyed", Instant (GraphChange);
        /// An executable graph was made of a graph. Reported by CUDA and the simulated GPU.
        GRAPH_INSTANTIATED = 23, "graph instantiated", Instant (GraphChange);
        /// An executable graph is going to be destroyed. Reported by CUDA and the simulated GPU.
        GRAPH_EXECUTABLE_DESTROYED = 24, "executable graph destroyed", Instant (GraphChange);
        /// An executable graph was put into a queue. Reported by the simulated GPU.
        GRAPH_LAUNCHED = 25, "graph launched", Instant (GraphChange);
        /// A kernel of a module is enqueued for the first time while kernels are sampled or counted: told before its
        /// enqueue (CUPTI: `CUPTI_CBID_RESOURCE_MODULE_PROFILED`). Reported by all sources.
        MODULE_PROFILED = 26, "module profiled", Instant (Module);
    }
    /// Kernels.
    kernel_dispatch: KERNEL_DISPATCH {
        /// A kernel is put into a queue. Kernels that kernels launch are in records only. Reported by all sources.
        ENQUEUE = 1, "kernel enqueue", Enter | Exit (KernelDispatch);
        /// The work has completed, or will not. Reported by all sources.
        COMPLETE = 2, "kernel complete", Complete (Completion);
        /// A pass of a kernel has run, which runs once for each pass that its counters need: told within the enqueue of the
        /// kernel, and on the simulated GPU when the kernel has completed (CUPTI: `cuptiKernelReplaySubscribeUpdate`).
        /// Reported by OpenCL and the simulated GPU.
        REPLAY = 3, "kernel replay", Instant;
    }
    /// Copies and fills.
    memory_copy: MEMORY_COPY {
        /// A copy, map or migration is put into a queue. Copies that no call makes, such as those of pages that move, are
        /// in records only. Reported by all sources.
        COPY_ENQUEUE = 1, "copy enqueue", Enter | Exit (MemoryCopy);
        /// The work has completed, or will not. Reported by all sources.
        COPY_COMPLETE = 2, "copy complete", Complete (Completion);
        /// A fill is put into a queue. Reported by all sources.
        FILL_ENQUEUE = 3, "fill enqueue", Enter | Exit (MemorySet);
        /// The work has completed, or will not. Reported by all sources.
        FILL_COMPLETE = 4, "fill complete", Complete (Completion);
    }
    /// Memory.
    memory_allocation: MEMORY_ALLOCATION {
        /// Memory is allocated. At enter, its address is not known, and its size only where the call names it. Reported by
        /// all sources.
        ALLOCATE = 1, "allocate", Enter | Exit (Allocation);
        /// Memory is freed: at enter it is still there. Reported by all sources.
        FREE = 2, "free", Enter | Exit (Allocation);
    }
    /// Waits: numbers as in [`SynchronizationType`](gputrail_record::SynchronizationType).
    synchronization: SYNCHRONIZATION {
        /// The host waits for events. Reported by OpenCL and the simulated GPU.
        EVENT_SYNCHRONIZE = 1, "wait for event", Enter | Exit (Synchronization);
        /// A queue is made to wait for events. Reported by the simulated GPU.
        STREAM_WAIT_EVENT = 2, "queue waits for event", Enter | Exit (Synchronization);
        /// The host waits for a queue; also in calls that wait for what they enqueue. Reported by all sources.
        STREAM_SYNCHRONIZE = 3, "wait for queue", Enter | Exit (Synchronization);
        /// The host waits for everything in a context. Reported by CUDA and the simulated GPU.
        CONTEXT_SYNCHRONIZE = 4, "wait for context", Enter | Exit (Synchronization);
        /// A barrier is put into a queue. Reported by OpenCL.
        BARRIER = 16, "barrier enqueue", Enter | Exit (Synchronization);
        /// A marker is put into a queue. Reported by OpenCL.
        MARKER = 17, "marker enqueue", Enter | Exit (Synchronization);
        /// Semaphores are waited for or signalled by a queue. Reported by OpenCL.
        SEMAPHORE = 18, "semaphore enqueue", Enter | Exit (Synchronization);
        /// A barrier, marker or semaphore operation has completed. Reported by OpenCL.
        COMPLETE = 32, "synchronization complete", Complete (Completion);
    }
}
