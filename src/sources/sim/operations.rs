//! The functions of the simulated runtime: one table of numbers, names, recorded arguments and host time.

use gputrail_capture::names::Names;
use gputrail_collect::operations::OperationInfo;
use gputrail_collect::switchboard::{ArgumentInfo, Observed};
use gputrail_record::{ArgumentType, Domain, Nanos, Operation, OperationGroup};

/// The runtime's names of argument types.
const fn type_name(kind: ArgumentType) -> &'static str {
    match kind {
        ArgumentType::SIGNED => "int",
        ArgumentType::UNSIGNED => "uint",
        ArgumentType::POINTER => "pointer",
        ArgumentType::FLAGS => "flags",
        ArgumentType::STRING => "string",
        _ => "?",
    }
}

/// Declares the functions: number, name, group, time on the host in nanoseconds, arguments.
macro_rules! functions {
    ($($variant:ident = $number:literal, $name:literal, $group:ident, $cost:literal,
        [$($argument:ident: $kind:ident),*];)*) => {
        /// A function of the simulated runtime.
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub(super) enum SimFunction {
            $($variant = $number,)*
        }

        impl SimFunction {
            /// All functions.
            pub(super) const ALL: &'static [SimFunction] = &[$(SimFunction::$variant),*];

            fn entry(self) -> (&'static str, OperationGroup, u64, &'static [ArgumentInfo]) {
                match self {
                    $(SimFunction::$variant => ($name, OperationGroup::$group, $cost, const { &[$(ArgumentInfo {
                        name: stringify!($argument),
                        type_name: type_name(ArgumentType::$kind),
                        kept: Some(ArgumentType::$kind),
                    }),*] }),)*
                }
            }
        }
    };
}

functions! {
    // The runtime itself.
    Init = 1, "simInit", OTHER, 1_900_000, [flags: FLAGS];
    GetDeviceCount = 2, "simGetDeviceCount", QUERY, 700, [];
    SetDevice = 3, "simSetDevice", SET, 260, [device: SIGNED];
    DeviceGetAttribute = 4, "simDeviceGetAttribute", QUERY, 350, [attribute: SIGNED, device: SIGNED];
    MemGetInfo = 5, "simMemGetInfo", QUERY, 5_200, [];
    GetLastError = 6, "simGetLastError", QUERY, 120, [];
    DeviceSynchronize = 7, "simDeviceSynchronize", SYNCHRONIZE, 900, [];
    Shutdown = 8, "simShutdown", OTHER, 240_000, [];

    // Memory.
    Malloc = 16, "simMalloc", CREATE, 68_000, [bytes: UNSIGNED];
    MallocHost = 17, "simMallocHost", CREATE, 410_000, [bytes: UNSIGNED];
    Free = 18, "simFree", LIFETIME, 41_000, [memory: POINTER];
    FreeHost = 19, "simFreeHost", LIFETIME, 120_000, [memory: POINTER];
    MemcpyAsync = 20, "simMemcpyAsync", ENQUEUE, 3_100,
        [destination: POINTER, source: POINTER, bytes: UNSIGNED, stream: UNSIGNED];
    Memcpy = 21, "simMemcpy", ENQUEUE, 2_600, [destination: POINTER, source: POINTER, bytes: UNSIGNED];
    MemcpyPeerAsync = 22, "simMemcpyPeerAsync", ENQUEUE, 3_600,
        [destination: POINTER, source: POINTER, bytes: UNSIGNED, stream: UNSIGNED];
    MemsetAsync = 23, "simMemsetAsync", ENQUEUE, 2_700, [memory: POINTER, value: UNSIGNED, bytes: UNSIGNED, stream: UNSIGNED];
    MallocManaged = 24, "simMallocManaged", CREATE, 31_000, [bytes: UNSIGNED];

    // Streams and events.
    StreamCreate = 32, "simStreamCreate", CREATE, 19_000, [priority: SIGNED];
    StreamDestroy = 33, "simStreamDestroy", LIFETIME, 9_000, [stream: UNSIGNED];
    StreamSynchronize = 34, "simStreamSynchronize", SYNCHRONIZE, 800, [stream: UNSIGNED];
    StreamWaitEvent = 35, "simStreamWaitEvent", ENQUEUE, 950, [stream: UNSIGNED, event: UNSIGNED];
    EventCreate = 36, "simEventCreate", CREATE, 1_500, [];
    EventDestroy = 37, "simEventDestroy", LIFETIME, 900, [event: UNSIGNED];
    EventRecord = 38, "simEventRecord", ENQUEUE, 1_200, [event: UNSIGNED, stream: UNSIGNED];
    EventSynchronize = 39, "simEventSynchronize", SYNCHRONIZE, 700, [event: UNSIGNED];
    EventQuery = 40, "simEventQuery", QUERY, 480, [event: UNSIGNED];

    // Modules and kernels.
    ModuleLoad = 48, "simModuleLoad", BUILD, 1_400_000, [path: STRING];
    ModuleUnload = 49, "simModuleUnload", LIFETIME, 90_000, [module: UNSIGNED];
    ModuleGetKernel = 50, "simModuleGetKernel", CREATE, 2_200, [module: UNSIGNED, name: STRING];
    LaunchKernel = 51, "simLaunchKernel", ENQUEUE, 3_900,
        [kernel: UNSIGNED, grid_x: UNSIGNED, grid_y: UNSIGNED, grid_z: UNSIGNED, block_x: UNSIGNED, block_y: UNSIGNED,
            block_z: UNSIGNED, local_memory: UNSIGNED, stream: UNSIGNED];

    // Graphs.
    GraphCreate = 56, "simGraphCreate", CREATE, 1_900, [flags: FLAGS];
    GraphAddKernelNode = 57, "simGraphAddKernelNode", BUILD, 2_400, [graph: UNSIGNED, kernel: UNSIGNED];
    GraphInstantiate = 58, "simGraphInstantiate", BUILD, 46_000, [graph: UNSIGNED];
    GraphLaunch = 59, "simGraphLaunch", ENQUEUE, 7_200, [graph: UNSIGNED, stream: UNSIGNED];
    GraphExecDestroy = 60, "simGraphExecDestroy", LIFETIME, 6_500, [graph: UNSIGNED];
    GraphDestroy = 61, "simGraphDestroy", LIFETIME, 2_100, [graph: UNSIGNED];

    // Libraries on top, which call the functions above.
    BlasGemm = 64, "simBlasGemm", ENQUEUE, 1_600, [m: UNSIGNED, n: UNSIGNED, k: UNSIGNED, stream: UNSIGNED];
    AllReduce = 65, "simAllReduce", ENQUEUE, 2_800, [bytes: UNSIGNED, devices: UNSIGNED];
}

impl SimFunction {
    /// The operation that identifies the function in records.
    pub(super) const fn operation(self) -> Operation {
        Operation {
            domain: Domain::SIM,
            number: self as u16,
        }
    }

    /// The host time of a call, excluding waits.
    pub(super) fn cost(self) -> Nanos {
        Nanos(self.entry().2)
    }

    /// Whether its arguments are recorded.
    pub(super) fn has_arguments(self) -> bool {
        !self.entry().3.is_empty()
    }

    /// Names all functions.
    pub(super) fn name_all(names: &Names) {
        for function in SimFunction::ALL {
            let info = function.info();
            names.operation(info.operation, info.name, &info.signature(), info.group);
        }
    }

    /// The descriptions of all functions for subscribers.
    pub(super) fn infos() -> Vec<OperationInfo> {
        let all = SimFunction::ALL.iter();
        all.map(|function| function.info()).collect()
    }

    /// The description of the function for subscribers.
    pub(super) fn info(self) -> OperationInfo {
        let (name, group, _, arguments) = self.entry();
        OperationInfo {
            operation: self.operation(),
            name,
            group,
            arguments,
            keeps_arguments: !arguments.is_empty(),
            observed: Observed::No,
        }
    }
}
