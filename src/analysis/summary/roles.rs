//! Roles of functions: by their groups where the recording tells them, else by their names.

use gputrail_record::OperationGroup;
use gputrail_trace::model::Function;

/// The role of a function in the questions that are asked of a recording.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FunctionRole {
    /// Launches a kernel or a graph.
    Launch,
    /// Waits for devices.
    Synchronize,
    /// Copies or fills, and returns when that is done.
    SynchronousCopy,
    /// Compiles, links or loads code.
    Build,
    /// Allocates or frees memory of devices.
    Allocate,
    /// Something else.
    Other,
}

/// Beginnings of names of functions that copy and wait, unless `Async` is in the name.
const COPIES: [&str; 6] = [
    "cudaMemcpy",
    "cudaMemset",
    "hipMemcpy",
    "hipMemset",
    "cuMemcpy",
    "cuMemset",
];

/// Parts of names of functions that wait.
const WAITS: [&str; 6] = [
    "Synchronize",
    "clFinish",
    "clWaitForEvents",
    "hsa_signal_wait",
    "StreamWaitValue",
    "WaitStream",
];

/// Parts of names of functions that launch.
const LAUNCHES: [&str; 5] = [
    "LaunchKernel",
    "LaunchCooperativeKernel",
    "GraphLaunch",
    "clEnqueueNDRangeKernel",
    "cuLaunchGrid",
];

/// Parts of names of functions that compile, link or load code.
const BUILDS: [&str; 9] = [
    "clBuildProgram",
    "clCompileProgram",
    "clLinkProgram",
    "ModuleLoad",
    "LinkComplete",
    "LibraryLoad",
    "CompileProgram",
    "hipModuleLoad",
    "GraphInstantiate",
];

/// Parts of names of functions that allocate or free.
const ALLOCATIONS: [&str; 8] = [
    "cudaMalloc",
    "cudaFree",
    "hipMalloc",
    "hipFree",
    "cuMemAlloc",
    "cuMemFree",
    "clCreateBuffer",
    "clCreateImage",
];

impl FunctionRole {
    /// The role of a function.
    pub fn of(function: &Function) -> FunctionRole {
        let name = &*function.name;
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        match function.group {
            OperationGroup::SYNCHRONIZE => return FunctionRole::Synchronize,
            OperationGroup::BUILD => return FunctionRole::Build,
            _ => {}
        }
        if COPIES.iter().any(|begin| name.starts_with(begin)) {
            return match name.contains("Async") {
                true => FunctionRole::Other,
                false => FunctionRole::SynchronousCopy,
            };
        }
        if has(&LAUNCHES) {
            FunctionRole::Launch
        } else if has(&BUILDS) {
            FunctionRole::Build
        } else if has(&ALLOCATIONS) {
            FunctionRole::Allocate
        } else if has(&WAITS) {
            FunctionRole::Synchronize
        } else {
            FunctionRole::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_follow_from_names_where_there_is_no_group() {
        let of = |name: &str| {
            FunctionRole::of(&Function {
                name: name.into(),
                ..Function::default()
            })
        };
        for (name, role) in [
            ("cudaLaunchKernel", FunctionRole::Launch),
            ("hipModuleLaunchKernel", FunctionRole::Launch),
            ("cudaDeviceSynchronize", FunctionRole::Synchronize),
            ("cudaMemcpy", FunctionRole::SynchronousCopy),
            ("cuMemcpyHtoD_v2", FunctionRole::SynchronousCopy),
            ("cudaMemcpyAsync", FunctionRole::Other),
            ("cuModuleLoadDataEx", FunctionRole::Build),
            ("hiprtcCompileProgram", FunctionRole::Build),
            ("cudaMalloc", FunctionRole::Allocate),
            ("clSetKernelArg", FunctionRole::Other),
        ] {
            assert_eq!(of(name), role, "{name}");
        }
    }
}
