//! The functions of the simulated runtime: one table of their numbers, names, recorded arguments and
//! what they cost the thread that calls them.

use crate::names::Names;
use crate::record::{Domain, Nanos, Operation, OperationGroup};

/// Declares the functions: number, name, group, time on the host in nanoseconds, arguments.
macro_rules! functions {
    ($($variant:ident = $number:literal, $name:literal, $group:ident, $cost:literal, $arguments:literal;)*) => {
        /// A function of the simulated runtime.
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub(super) enum Function {
            $($variant = $number,)*
        }

        impl Function {
            /// All of them.
            pub(super) const ALL: &'static [Function] = &[$(Function::$variant),*];

            fn entry(self) -> (&'static str, OperationGroup, u64, &'static str) {
                match self {
                    $(Function::$variant => ($name, OperationGroup::$group, $cost, $arguments),)*
                }
            }
        }
    };
}

functions! {
    // The runtime itself.
    Init = 1, "simInit", OTHER, 1_900_000, "flags:flags";
    GetDeviceCount = 2, "simGetDeviceCount", QUERY, 700, "";
    SetDevice = 3, "simSetDevice", SET, 260, "device:int";
    DeviceGetAttribute = 4, "simDeviceGetAttribute", QUERY, 350, "attribute:int,device:int";
    MemGetInfo = 5, "simMemGetInfo", QUERY, 5_200, "";
    GetLastError = 6, "simGetLastError", QUERY, 120, "";
    DeviceSynchronize = 7, "simDeviceSynchronize", SYNCHRONIZE, 900, "";
    Shutdown = 8, "simShutdown", OTHER, 240_000, "";

    // Memory.
    Malloc = 16, "simMalloc", CREATE, 68_000, "bytes:uint";
    MallocHost = 17, "simMallocHost", CREATE, 410_000, "bytes:uint";
    Free = 18, "simFree", LIFETIME, 41_000, "memory:pointer";
    FreeHost = 19, "simFreeHost", LIFETIME, 120_000, "memory:pointer";
    MemcpyAsync = 20, "simMemcpyAsync", ENQUEUE, 3_100,
        "destination:pointer,source:pointer,bytes:uint,stream:uint";
    Memcpy = 21, "simMemcpy", ENQUEUE, 2_600, "destination:pointer,source:pointer,bytes:uint";
    MemcpyPeerAsync = 22, "simMemcpyPeerAsync", ENQUEUE, 3_600,
        "destination:pointer,source:pointer,bytes:uint,stream:uint";
    MemsetAsync = 23, "simMemsetAsync", ENQUEUE, 2_700, "memory:pointer,value:uint,bytes:uint,stream:uint";

    // Streams and events.
    StreamCreate = 32, "simStreamCreate", CREATE, 19_000, "priority:int";
    StreamDestroy = 33, "simStreamDestroy", LIFETIME, 9_000, "stream:uint";
    StreamSynchronize = 34, "simStreamSynchronize", SYNCHRONIZE, 800, "stream:uint";
    StreamWaitEvent = 35, "simStreamWaitEvent", ENQUEUE, 950, "stream:uint,event:uint";
    EventCreate = 36, "simEventCreate", CREATE, 1_500, "";
    EventDestroy = 37, "simEventDestroy", LIFETIME, 900, "event:uint";
    EventRecord = 38, "simEventRecord", ENQUEUE, 1_200, "event:uint,stream:uint";
    EventSynchronize = 39, "simEventSynchronize", SYNCHRONIZE, 700, "event:uint";
    EventQuery = 40, "simEventQuery", QUERY, 480, "event:uint";

    // Modules and kernels.
    ModuleLoad = 48, "simModuleLoad", BUILD, 1_400_000, "path:string";
    ModuleUnload = 49, "simModuleUnload", LIFETIME, 90_000, "module:uint";
    ModuleGetKernel = 50, "simModuleGetKernel", CREATE, 2_200, "module:uint,name:string";
    LaunchKernel = 51, "simLaunchKernel", ENQUEUE, 3_900,
        "kernel:uint,grid_x:uint,grid_y:uint,grid_z:uint,local_memory:uint,stream:uint";

    // Libraries on top, which call the functions above.
    BlasGemm = 64, "simBlasGemm", ENQUEUE, 1_600, "m:uint,n:uint,k:uint,stream:uint";
    AllReduce = 65, "simAllReduce", ENQUEUE, 2_800, "bytes:uint,devices:uint";
}

impl Function {
    /// The operation that records name it by.
    pub(super) const fn operation(self) -> Operation {
        Operation {
            domain: Domain::SIM,
            number: self as u16,
        }
    }

    /// How long a call takes on the host, waiting not counted.
    pub(super) fn cost(self) -> Nanos {
        Nanos(self.entry().2)
    }

    /// Whether its arguments are recorded.
    pub(super) fn has_arguments(self) -> bool {
        !self.entry().3.is_empty()
    }

    /// Names all functions.
    pub(super) fn name_all(names: &Names) {
        for function in Function::ALL {
            let (name, group, _, arguments) = function.entry();
            names.operation(function.operation(), name, arguments, group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ArgumentType;

    #[test]
    fn every_argument_has_a_name_and_a_type_that_readers_know() {
        for function in Function::ALL {
            let arguments = function.entry().3;
            for argument in arguments.split(',').filter(|one| !one.is_empty()) {
                let (name, kind) = argument.split_once(':').expect(argument);
                assert!(!name.is_empty());
                assert!(ArgumentType::from_name(kind).is_some(), "{argument}");
            }
        }
    }
}
