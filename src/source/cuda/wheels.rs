//! Tests against NVIDIA's own libraries and headers, from the wheels of PyPI that `tools/test install` fetches. There is
//! no GPU and no driver: nothing is recorded here.

use super::ffi::{self, Cupti};
use super::functions::{self, ARGUMENTS};
use super::records::{FIELDS, Strides};
use crate::record::Domain;
use gputrail_harness::machine::{Need, tools};
use gputrail_harness::needs;
use gputrail_harness::program::run;
use libloading::os::unix::Library;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

/// A library, with the sizes of the records of [`KINDS`] and the number of its functions.
type Known = (&'static str, [usize; KINDS.len()], [usize; 2]);

const KINDS: [u32; 11] = [
    ffi::CONCURRENT_KERNEL,
    ffi::MEMCPY,
    ffi::OVERHEAD,
    ffi::MEMSET,
    ffi::MEMCPY_PEER,
    ffi::MEMORY,
    ffi::MEMORY_POOL,
    ffi::SYNCHRONIZATION,
    ffi::CUDA_EVENT,
    ffi::UNIFIED_MEMORY_COUNTER,
    ffi::ENVIRONMENT,
];

/// The libraries that answer without a driver. Newer ones refuse.
const LIBRARIES: [Known; 4] = [
    (
        "11.8.87/nvidia/cuda_cupti/lib/libcupti.so.11.8",
        [200, 88, 40, 88, 96, 120, 72, 40, 24, 64, 40],
        [676, 433],
    ),
    (
        "12.1.105/nvidia/cuda_cupti/lib/libcupti.so.12",
        [208, 88, 40, 88, 96, 120, 72, 40, 24, 64, 40],
        [711, 444],
    ),
    (
        "12.9.79/nvidia/cuda_cupti/lib/libcupti.so.12",
        [208, 96, 56, 88, 96, 128, 72, 56, 56, 104, 40],
        [783, 486],
    ),
    (
        "13.0.85/nvidia/cu13/lib/libcupti.so.13",
        [216, 96, 56, 88, 96, 128, 80, 56, 56, 104, 40],
        [806, 522],
    ),
];

#[test]
fn sizes_and_names_are_learnt_from_the_libraries_of_four_versions() {
    needs!(sizes_and_names_are_learnt_from_the_libraries_of_four_versions: Need::Cupti);
    for (path, sizes, counts) in LIBRARIES {
        // SAFETY: libcupti, whose constructors need no driver.
        let library = unsafe { Library::new(tools().join("cupti").join(path)) }.unwrap();
        let cupti = Cupti::of(&library);
        let strides = Strides::learn(&cupti);
        let of = KINDS.map(|kind| strides.of(kind));
        assert_eq!(of, sizes.map(Some), "{path}");
        let names = |domain| functions::names(&cupti, domain);
        let (driver, runtime) = (names(Domain::CUDA_DRIVER), names(Domain::CUDA_RUNTIME));
        assert_eq!([driver.len(), runtime.len()], counts, "{path}");
        assert!(driver.contains(&(307, "cuLaunchKernel")), "{path}");
        assert!(runtime.contains(&(211, "cudaLaunchKernel")), "{path}");
        // Every function whose arguments are known exists.
        for (name, _) in ARGUMENTS {
            let all = if name.starts_with("cuda") {
                &runtime
            } else {
                &driver
            };
            assert!(all.iter().any(|(_, of)| of == name), "{path}: {name}");
        }
        // Its threads and handlers go on.
        std::mem::forget(library);
    }
}

/// Compiles a C program with the headers of the newest version, and returns the lines that it prints.
fn ask_headers(body: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("ask.c"), folder.path().join("ask"));
    let text = format!(
        "#include <stddef.h>\n#include <stdio.h>\n#include <cuda.h>\n#include <cupti.h>\n\
         int main(void) {{\n{body}return 0;\n}}\n"
    );
    std::fs::write(&source, text).unwrap();
    let compiler = Command::new("cc")
        .arg("-I")
        .arg(include())
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .status();
    assert!(compiler.unwrap().success());
    let ended = run(&mut Command::new(&program)).well();
    ended.text().lines().map(str::to_owned).collect()
}

fn include() -> PathBuf {
    tools().join("cupti/13.5.25/nvidia/cu13/include")
}

/// A layout of ours, CUPTI's structure, and for each field the member that it is.
type Members = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// The members of CUPTI's structures that are read.
const MEMBERS: &[Members] = &[
    (
        "Kernel",
        "CUpti_ActivityKernel13",
        &[
            ("cache_config", "cacheConfig"),
            ("shared_memory_config", "sharedMemoryConfig"),
            ("registers", "registersPerThread"),
            ("start", "start"),
            ("end", "end"),
            ("device", "deviceId"),
            ("context", "contextId"),
            ("stream", "streamId"),
            ("grid", "gridX"),
            ("block", "blockX"),
            ("static_shared", "staticSharedMemory"),
            ("dynamic_shared", "dynamicSharedMemory"),
            ("local_per_thread", "localMemoryPerThread"),
            ("local_total", "localMemoryTotal"),
            ("correlation", "correlationId"),
            ("grid_id", "gridId"),
            ("name", "name"),
            ("queued", "queued"),
            ("submitted", "submitted"),
            ("launch_type", "launchType"),
            ("carveout_is_requested", "isSharedMemoryCarveoutRequested"),
            ("carveout_requested", "sharedMemoryCarveoutRequested"),
            ("shared_executed", "sharedMemoryExecuted"),
            ("graph_node", "graphNodeId"),
            ("graph", "graphId"),
            ("channel", "channelID"),
            ("local_total_64", "localMemoryTotal_v2"),
        ],
    ),
    (
        "Copy",
        "CUpti_ActivityMemcpy7",
        &[
            ("copy_kind", "copyKind"),
            ("source_kind", "srcKind"),
            ("destination_kind", "dstKind"),
            ("flags", "flags"),
            ("bytes", "bytes"),
            ("start", "start"),
            ("end", "end"),
            ("device", "deviceId"),
            ("context", "contextId"),
            ("stream", "streamId"),
            ("correlation", "correlationId"),
            ("graph_node", "graphNodeId"),
            ("graph", "graphId"),
        ],
    ),
    (
        "PeerCopy",
        "CUpti_ActivityMemcpyPtoP4",
        &[
            ("copy_kind", "copyKind"),
            ("bytes", "bytes"),
            ("start", "start"),
            ("device", "deviceId"),
            ("stream", "streamId"),
            ("source_device", "srcDeviceId"),
            ("destination_device", "dstDeviceId"),
            ("correlation", "correlationId"),
            ("graph", "graphId"),
        ],
    ),
    (
        "Set",
        "CUpti_ActivityMemset5",
        &[
            ("value", "value"),
            ("bytes", "bytes"),
            ("start", "start"),
            ("end", "end"),
            ("device", "deviceId"),
            ("stream", "streamId"),
            ("correlation", "correlationId"),
            ("flags", "flags"),
            ("memory_kind", "memoryKind"),
            ("graph", "graphId"),
        ],
    ),
    (
        "Memory",
        "CUpti_ActivityMemory4",
        &[
            ("operation", "memoryOperationType"),
            ("memory_kind", "memoryKind"),
            ("correlation", "correlationId"),
            ("address", "address"),
            ("bytes", "bytes"),
            ("timestamp", "timestamp"),
            ("device", "deviceId"),
            ("stream", "streamId"),
        ],
    ),
    (
        "MemoryPool",
        "CUpti_ActivityMemoryPool3",
        &[
            ("operation", "memoryPoolOperationType"),
            ("correlation", "correlationId"),
            ("device", "deviceId"),
            ("address", "address"),
            ("bytes", "size"),
            ("timestamp", "timestamp"),
        ],
    ),
    (
        "Synchronization",
        "CUpti_ActivitySynchronization2",
        &[
            ("what", "type"),
            ("start", "start"),
            ("end", "end"),
            ("correlation", "correlationId"),
            ("context", "contextId"),
            ("stream", "streamId"),
            ("event", "cudaEventId"),
        ],
    ),
    (
        "CudaEvent",
        "CUpti_ActivityCudaEvent3",
        &[
            ("correlation", "correlationId"),
            ("context", "contextId"),
            ("stream", "streamId"),
            ("event", "eventId"),
            ("device", "deviceId"),
            ("timestamp", "deviceTimestamp"),
        ],
    ),
    (
        "UnifiedMemory",
        "CUpti_ActivityUnifiedMemoryCounter3",
        &[
            ("what", "counterKind"),
            ("value", "value"),
            ("start", "start"),
            ("end", "end"),
            ("address", "address"),
            ("source", "srcId"),
            ("destination", "dstId"),
            ("flags", "flags"),
        ],
    ),
    (
        "Environment",
        "CUpti_ActivityEnvironment",
        &[
            ("device", "deviceId"),
            ("timestamp", "timestamp"),
            ("what", "environmentKind"),
            ("values", "data"),
        ],
    ),
    (
        "Overhead",
        "CUpti_ActivityOverhead3",
        &[
            ("overhead_kind", "overheadKind"),
            ("object", "objectId"),
            ("start", "start"),
            ("end", "end"),
            ("correlation", "correlationId"),
        ],
    ),
];

#[test]
fn fields_lie_where_the_headers_put_them() {
    needs!(fields_lie_where_the_headers_put_them: Need::Cupti, Need::Program("cc"));
    let (mut body, mut expected) = (String::new(), Vec::new());
    for (layout, structure, members) in MEMBERS {
        for (field, member) in *members {
            let ours = FIELDS.iter().find(|of| (of.0, of.1) == (*layout, *field));
            let (_, _, offset, _) = ours.unwrap_or_else(|| panic!("{layout}.{field}"));
            writeln!(
                body,
                "printf(\"{layout}.{field} %zu\\n\", offsetof({structure}, {member}));"
            )
            .unwrap();
            expected.push(format!("{layout}.{field} {offset}"));
        }
    }
    assert_eq!(ask_headers(&body), expected);
}

#[test]
fn arguments_lie_where_the_headers_put_them() {
    needs!(arguments_lie_where_the_headers_put_them: Need::Cupti, Need::Program("cc"));
    let header = include().join("generated_cuda_runtime_api_meta.h");
    let header = std::fs::read_to_string(header).unwrap();
    let (mut body, mut expected) = (String::new(), Vec::new());
    for (name, arguments) in ARGUMENTS {
        let structure = match name.starts_with("cuda") {
            false => format!("{name}_params"),
            true => {
                // The version of the runtime is part of the name.
                let begin = format!("struct {name}_v");
                let after = header.split(&begin).nth(1);
                let version = after.and_then(|rest| rest.split('_').next());
                format!(
                    "{name}_v{}_params",
                    version.unwrap_or_else(|| panic!("{name}"))
                )
            }
        };
        let places = functions::places(arguments);
        for ((argument, _), (offset, _)) in arguments.iter().zip(places) {
            writeln!(
                body,
                "printf(\"{name}.{argument} %zu\\n\", offsetof({structure}, {argument}));"
            )
            .unwrap();
            expected.push(format!("{name}.{argument} {offset}"));
        }
    }
    assert_eq!(ask_headers(&body), expected);
}
