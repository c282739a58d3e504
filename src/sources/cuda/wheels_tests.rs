//! Tests against NVIDIA's own libraries and headers, from the wheels of PyPI that `tools/test install` fetches. There is
//! no GPU and no driver: nothing is recorded here.

use super::ffi::{self, Cupti};
use super::functions::{self, ARGUMENTS};
use super::graphs::GraphData;
use super::inner::LaunchConfig;
use super::records::{FIELDS, Strides};
use super::sampling::ffi as sampling;
use core::mem::offset_of;
use gputrail_harness::machine::{Need, tools};
use gputrail_harness::needs;
use gputrail_harness::program::run;
use gputrail_record::Domain;
use libloading::os::unix::Library;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library, with the sizes of the records of [`KINDS`] and the number of its functions.
pub(super) type Known = (&'static str, [usize; KINDS.len()], [usize; 2]);

const KINDS: [u32; 14] = [
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
    ffi::JIT,
    ffi::EXTERNAL_CORRELATION,
    ffi::FUNCTION,
];

/// The libraries that answer without a driver. Newer ones refuse.
pub(super) const LIBRARIES: [Known; 4] = [
    (
        "11.8.87/nvidia/cuda_cupti/lib/libcupti.so.11.8",
        [200, 88, 40, 88, 96, 120, 72, 40, 24, 64, 40, 64, 24, 32],
        [676, 433],
    ),
    (
        "12.1.105/nvidia/cuda_cupti/lib/libcupti.so.12",
        [208, 88, 40, 88, 96, 120, 72, 40, 24, 64, 40, 64, 24, 32],
        [711, 444],
    ),
    (
        "12.9.79/nvidia/cuda_cupti/lib/libcupti.so.12",
        [208, 96, 56, 88, 96, 128, 72, 56, 56, 104, 40, 72, 24, 32],
        [783, 486],
    ),
    (
        "13.0.85/nvidia/cu13/lib/libcupti.so.13",
        [216, 96, 56, 88, 96, 128, 80, 56, 56, 104, 40, 72, 24, 32],
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

/// A name without the versions in it: `cudaMemAdvise` for `cudaMemAdvise_v2`.
fn base(name: &str) -> String {
    let mut parts = name.split("_v");
    let mut base = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
        if rest.len() == part.len() {
            base.push_str("_v");
        }
        base.push_str(rest);
    }
    base
}

#[test]
fn functions_have_the_numbers_of_the_c_header_in_every_version() {
    needs!(functions_have_the_numbers_of_the_c_header_in_every_version: Need::Cupti);
    let header = include_str!("../../../include/gputrail.h");
    for (path, ..) in LIBRARIES {
        // SAFETY: libcupti, whose constructors need no driver.
        let library = unsafe { Library::new(tools().join("cupti").join(path)) }.unwrap();
        let cupti = Cupti::of(&library);
        for (domain, prefix) in [
            (Domain::CUDA_DRIVER, "GPUTRAIL_CUDA_DRIVER_"),
            (Domain::CUDA_RUNTIME, "GPUTRAIL_CUDA_RUNTIME_"),
        ] {
            let constants = header.lines().filter_map(|line| {
                let (name, value) = line.trim().strip_prefix(prefix)?.split_once(" = 0x")?;
                let value = u32::from_str_radix(value.trim_end_matches(','), 16).ok()?;
                assert_eq!(value >> 16, u32::from(domain.0), "{name}");
                Some((value as u16, name))
            });
            let constants: std::collections::HashMap<u16, &str> = constants.collect();
            let mut known = 0;
            for (number, name) in functions::names(&cupti, domain) {
                // Functions that the newest headers no longer name have no constant.
                let Some(constant) = constants.get(&number) else {
                    continue;
                };
                known += 1;
                // Renamed before programs could call it.
                let is_renamed = name == "cuStreamCreateForCaptureToCig";
                assert!(
                    is_renamed || base(name) == base(constant),
                    "{path}: {number} is {name}, not {constant}"
                );
            }
            assert!(known > 400, "{path}: {known}");
        }
        // Its threads and handlers go on.
        std::mem::forget(library);
    }
}

/// Compiles a C program with the headers of the newest version, and returns the lines that it prints.
pub(super) fn ask_headers(body: &str) -> Vec<String> {
    ask_headers_of(&include(), body)
}

/// The same with CUPTI's headers in the folder `headers`. Those of CUDA itself are of the newest version.
pub(super) fn ask_headers_of(headers: &Path, body: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    // A header of C that includes one of C++, without need.
    std::fs::write(folder.path().join("string"), "").unwrap();
    let (source, program) = (folder.path().join("ask.c"), folder.path().join("ask"));
    let text = format!(
        "#include <stddef.h>\n#include <stdio.h>\n#include <cuda.h>\n#include <cupti.h>\n\
         #include <cupti_pcsampling.h>\n\
         #include <nvperf_host.h>\n#include <nvperf_cuda_host.h>\n{RANGES}int main(void) {{\n{body}return 0;\n}}\n"
    );
    std::fs::write(&source, text).unwrap();
    let compiler = Command::new("cc")
        .arg("-I")
        .arg(headers)
        .arg("-I")
        .arg(include())
        .arg("-I")
        .arg(folder.path())
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .status();
    assert!(compiler.unwrap().success());
    let ended = run(&mut Command::new(&program)).well();
    ended.text().lines().map(str::to_owned).collect()
}

/// The headers of the profiler host and range profiler interface, where they are.
const RANGES: &str = "#if __has_include(<cupti_range_profiler.h>)\n#include <stdbool.h>\n#include <cupti_target.h>\n\
     #include <cupti_profiler_target.h>\n\
     #include <cupti_profiler_host.h>\n#include <cupti_range_profiler.h>\n#endif\n";

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
        "CreatedStream",
        "CUpti_ActivityStream",
        &[
            ("context", "contextId"),
            ("stream", "streamId"),
            ("priority", "priority"),
            ("flag", "flag"),
            ("correlation", "correlationId"),
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
    (
        "Jit",
        "CUpti_ActivityJit2",
        &[
            ("entry", "jitEntryType"),
            ("operation", "jitOperationType"),
            ("device", "deviceId"),
            ("start", "start"),
            ("end", "end"),
            ("correlation", "correlationId"),
            ("cache_path", "cachePath"),
        ],
    ),
    (
        "FunctionOf",
        "CUpti_ActivityFunction",
        &[
            ("id", "id"),
            ("context", "contextId"),
            ("module", "moduleId"),
            ("index", "functionIndex"),
            ("name", "name"),
        ],
    ),
    (
        "External",
        "CUpti_ActivityExternalCorrelation",
        &[
            ("external_kind", "externalKind"),
            ("id", "externalId"),
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
        let structure = if name.starts_with("cuda") {
            // The version of the runtime is part of the name.
            let begin = format!("struct {name}_v");
            let after = header.split(&begin).nth(1);
            let version = after.and_then(|rest| rest.split('_').next());
            format!(
                "{name}_v{}_params",
                version.unwrap_or_else(|| panic!("{name}"))
            )
        } else {
            format!("{name}_params")
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

/// The members of CUPTI's structures for sampling.
const SAMPLING_MEMBERS: &[Members] = &[
    (
        "ContextParams",
        "CUpti_PCSamplingEnableParams",
        &[("size", "size"), ("private", "pPriv"), ("context", "ctx")],
    ),
    (
        "ContextParams",
        "CUpti_PCSamplingDisableParams",
        &[("size", "size"), ("private", "pPriv"), ("context", "ctx")],
    ),
    (
        "DataParams",
        "CUpti_PCSamplingGetDataParams",
        &[("context", "ctx"), ("data", "pcSamplingData")],
    ),
    (
        "ReasonCountParams",
        "CUpti_PCSamplingGetNumStallReasonsParams",
        &[("context", "ctx"), ("count", "numStallReasons")],
    ),
    (
        "ReasonParams",
        "CUpti_PCSamplingGetStallReasonsParams",
        &[
            ("context", "ctx"),
            ("count", "numStallReasons"),
            ("numbers", "stallReasonIndex"),
            ("names", "stallReasons"),
        ],
    ),
    (
        "ConfigurationParams",
        "CUpti_PCSamplingConfigurationInfoParams",
        &[
            ("context", "ctx"),
            ("count", "numAttributes"),
            ("attributes", "pPCSamplingConfigurationInfo"),
        ],
    ),
    (
        "Attribute",
        "CUpti_PCSamplingConfigurationInfo",
        &[
            ("what", "attributeType"),
            ("status", "attributeStatus"),
            ("value", "attributeData"),
        ],
    ),
    (
        "Data",
        "CUpti_PCSamplingData",
        &[
            ("size", "size"),
            ("capacity", "collectNumPcs"),
            ("total", "totalSamples"),
            ("dropped", "droppedSamples"),
            ("count", "totalNumPcs"),
            ("remaining", "remainingNumPcs"),
            ("range", "rangeId"),
            ("pcs", "pPcData"),
            ("foreign", "nonUsrKernelsTotalSamples"),
            ("is_full", "hardwareBufferFull"),
        ],
    ),
    (
        "Pc",
        "CUpti_PCSamplingPCData",
        &[
            ("size", "size"),
            ("crc", "cubinCrc"),
            ("offset", "pcOffset"),
            ("function_index", "functionIndex"),
            ("function", "functionName"),
            ("reason_count", "stallReasonCount"),
            ("reasons", "stallReason"),
            ("correlation", "correlationId"),
        ],
    ),
    (
        "Reason",
        "CUpti_PCSamplingStallReason",
        &[
            ("number", "pcSamplingStallReasonIndex"),
            ("samples", "samples"),
        ],
    ),
    (
        "LineParams",
        "CUpti_GetSassToSourceCorrelationParams",
        &[
            ("size", "size"),
            ("cubin", "cubin"),
            ("function", "functionName"),
            ("cubin_size", "cubinSize"),
            ("line", "lineNumber"),
            ("offset", "pcOffset"),
            ("file", "fileName"),
            ("folder", "dirName"),
        ],
    ),
    (
        "CrcParams",
        "CUpti_GetCubinCrcParams",
        &[
            ("size", "size"),
            ("cubin_size", "cubinSize"),
            ("cubin", "cubin"),
            ("crc", "cubinCrc"),
        ],
    ),
    (
        "Resource",
        "CUpti_ResourceData",
        &[
            ("context", "context"),
            ("handle", "resourceHandle"),
            ("descriptor", "resourceDescriptor"),
        ],
    ),
    (
        "Module",
        "CUpti_ModuleResourceData",
        &[
            ("id", "moduleId"),
            ("cubin_size", "cubinSize"),
            ("cubin", "pCubin"),
        ],
    ),
];

#[test]
fn the_structures_of_sampling_are_those_of_the_headers() {
    needs!(the_structures_of_sampling_are_those_of_the_headers: Need::Cupti, Need::Program("cc"));
    let (mut body, mut expected) = (String::new(), Vec::new());
    for (ours, structure, members) in SAMPLING_MEMBERS {
        for (field, member) in *members {
            let found = sampling::FIELDS
                .iter()
                .find(|of| (of.0, of.1) == (*ours, *field));
            let (_, _, offset) = found.unwrap_or_else(|| panic!("{ours}.{field}"));
            writeln!(
                body,
                "printf(\"{structure}.{field} %zu\\n\", offsetof({structure}, {member}));"
            )
            .unwrap();
            expected.push(format!("{structure}.{field} {offset}"));
        }
    }
    // The sizes that are told to the library, and numbers.
    let sizes = [
        (
            "CUpti_PCSamplingEnableParamsSize",
            size_of::<sampling::ContextParams>(),
        ),
        (
            "CUpti_PCSamplingGetDataParamsSize",
            size_of::<sampling::DataParams>(),
        ),
        (
            "CUpti_PCSamplingGetNumStallReasonsParamsSize",
            size_of::<sampling::ReasonCountParams>(),
        ),
        (
            "CUpti_PCSamplingGetStallReasonsParamsSize",
            size_of::<sampling::ReasonParams>(),
        ),
        (
            "CUpti_PCSamplingConfigurationInfoParamsSize",
            size_of::<sampling::ConfigurationParams>(),
        ),
        (
            "CUpti_GetSassToSourceCorrelationParamsSize",
            size_of::<sampling::LineParams>(),
        ),
        (
            "CUpti_GetCubinCrcParamsSize",
            size_of::<sampling::CrcParams>(),
        ),
        (
            "sizeof(CUpti_PCSamplingConfigurationInfo)",
            size_of::<sampling::Attribute>(),
        ),
        (
            "sizeof(CUpti_PCSamplingStallReason)",
            size_of::<sampling::Reason>(),
        ),
        (
            "(size_t)CUPTI_STALL_REASON_STRING_SIZE",
            sampling::NAME_BYTES,
        ),
    ];
    let offset = |bytes: usize| bytes as u32;
    let numbers = [
        (
            "CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING",
            ffi::CONTEXT_DESTROYED,
        ),
        ("CUPTI_CB_DOMAIN_SYNCHRONIZE", ffi::SYNCHRONIZE),
        ("CUPTI_CB_DOMAIN_STATE", ffi::STATE),
        ("CUPTI_CBID_STATE_WARNING", ffi::WARNING),
        ("CUPTI_CBID_RESOURCE_STREAM_CREATED", ffi::STREAM_CREATED),
        (
            "CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING",
            ffi::STREAM_DESTROYED,
        ),
        (
            "CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED",
            ffi::STREAM_SYNCHRONIZED,
        ),
        (
            "CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED",
            ffi::CONTEXT_SYNCHRONIZED,
        ),
        ("CUPTI_ACTIVITY_KIND_JIT", ffi::JIT),
        (
            "CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION",
            ffi::EXTERNAL_CORRELATION,
        ),
        ("CUPTI_CBID_RESOURCE_MODULE_LOADED", ffi::MODULE_LOADED),
        ("CUPTI_CBID_RESOURCE_MODULE_PROFILED", ffi::MODULE_PROFILED),
        ("CUPTI_CBID_RESOURCE_GRAPH_CREATED", ffi::GRAPH_CREATED),
        (
            "CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING",
            ffi::GRAPH_DESTROYED,
        ),
        ("CUPTI_CBID_RESOURCE_GRAPH_CLONED", ffi::GRAPH_CLONED),
        (
            "CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED",
            ffi::GRAPH_NODE_CREATED,
        ),
        (
            "CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING",
            ffi::GRAPH_NODE_DESTROYED,
        ),
        (
            "CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED",
            ffi::GRAPH_DEPENDENCY_CREATED,
        ),
        (
            "CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_DESTROY_STARTING",
            ffi::GRAPH_DEPENDENCY_DESTROYED,
        ),
        (
            "CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED",
            ffi::GRAPH_INSTANTIATED,
        ),
        (
            "CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING",
            ffi::GRAPH_EXECUTABLE_DESTROYED,
        ),
        (
            "CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED",
            ffi::GRAPH_NODE_CLONED,
        ),
        (
            "offsetof(CUpti_GraphData, graph)",
            offset(offset_of!(GraphData, graph)),
        ),
        (
            "offsetof(CUpti_GraphData, originalGraph)",
            offset(offset_of!(GraphData, original_graph)),
        ),
        (
            "offsetof(CUpti_GraphData, node)",
            offset(offset_of!(GraphData, node)),
        ),
        (
            "offsetof(CUpti_GraphData, originalNode)",
            offset(offset_of!(GraphData, original_node)),
        ),
        (
            "offsetof(CUpti_GraphData, nodeType)",
            offset(offset_of!(GraphData, node_type)),
        ),
        (
            "offsetof(CUpti_GraphData, dependency)",
            offset(offset_of!(GraphData, dependency)),
        ),
        (
            "offsetof(CUpti_GraphData, graphExec)",
            offset(offset_of!(GraphData, executable)),
        ),
        (
            "CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING",
            ffi::MODULE_UNLOADED,
        ),
        (
            "CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD",
            sampling::SAMPLING_PERIOD,
        ),
        (
            "CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON",
            sampling::STALL_REASONS,
        ),
        (
            "CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE",
            sampling::COLLECTION_MODE,
        ),
        (
            "CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_OUTPUT_DATA_FORMAT",
            sampling::OUTPUT_FORMAT,
        ),
        (
            "CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER",
            sampling::DATA_BUFFER,
        ),
        (
            "CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED",
            sampling::KERNEL_SERIALIZED as u32,
        ),
        (
            "CUPTI_PC_SAMPLING_OUTPUT_DATA_FORMAT_PARSED",
            sampling::PARSED as u32,
        ),
    ];
    let numbers = numbers.map(|(name, number)| (name, number as usize));
    for (name, number) in sizes.into_iter().chain(numbers) {
        writeln!(body, "printf(\"{name} %zu\\n\", (size_t)({name}));").unwrap();
        expected.push(format!("{name} {number}"));
    }
    assert_eq!(ask_headers(&body), expected);
}

#[test]
fn the_structures_that_have_grown_are_as_large_as_each_version_has_them() {
    needs!(the_structures_that_have_grown_are_as_large_as_each_version_has_them:
        Need::Cupti, Need::Program("cc"));
    let body = "printf(\"%d %zu %zu\\n\", CUPTI_API_VERSION, sizeof(CUpti_PCSamplingData), \
                sizeof(CUpti_PCSamplingPCData));";
    for (library, ..) in LIBRARIES {
        let library = tools().join("cupti").join(library);
        let folder = library.parent().and_then(Path::parent).unwrap();
        let answer = ask_headers_of(&folder.join("include"), body).concat();
        let numbers: Vec<usize> = answer
            .split(' ')
            .map(|number| number.parse().unwrap())
            .collect();
        let [version, data, pc] = numbers[..] else {
            panic!("{answer}");
        };
        let sizes = sampling::StructureSizes::of(version as u32);
        // CUDA 12.1 has the version of 11.8, whose smaller structure both take.
        assert!(
            sizes.data == data || version == 18 && sizes.data < data,
            "{answer}"
        );
        assert_eq!(sizes.pc, pc, "{answer}");
    }
}

#[test]
fn the_libraries_take_our_structures() {
    needs!(the_libraries_take_our_structures: Need::Cupti);
    for (path, ..) in LIBRARIES {
        // SAFETY: libcupti, whose constructors need no driver.
        let library = unsafe { Library::new(tools().join("cupti").join(path)) }.unwrap();
        let cupti = Cupti::of(&library);
        let crc = |bytes: &[u8], size| {
            let mut params = sampling::CrcParams {
                size,
                cubin_size: bytes.len(),
                cubin: bytes.as_ptr(),
                crc: 0,
            };
            // SAFETY: the structure states the bytes of the cubin, and `size` is not more than its own.
            let status = unsafe { ffi::call!(cupti, cuptiGetCubinCrc(&raw mut params)) };
            (status, params.crc)
        };
        let whole = size_of::<sampling::CrcParams>();
        let (one, other) = (crc(&[1; 64], whole), crc(&[2; 64], whole));
        assert_eq!((one.0, other.0), (Some(0), Some(0)), "{path}");
        assert_ne!(one.1, other.1, "{path}");
        assert_ne!(crc(&[1; 64], whole - 8).0, Some(0), "{path}");
        let all = [
            cupti.cuptiPCSamplingEnable.is_some(),
            cupti.cuptiPCSamplingDisable.is_some(),
            cupti.cuptiPCSamplingGetData.is_some(),
            cupti.cuptiPCSamplingGetNumStallReasons.is_some(),
            cupti.cuptiPCSamplingGetStallReasons.is_some(),
            cupti.cuptiPCSamplingSetConfigurationAttribute.is_some(),
            cupti.cuptiGetSassToSourceCorrelation.is_some(),
            cupti.cuptiGetDeviceId.is_some(),
        ];
        assert_eq!(all, [true; 8], "{path}");
        std::mem::forget(library);
    }
}

#[test]
fn the_configuration_of_a_launch_lies_where_the_headers_put_it() {
    needs!(the_configuration_of_a_launch_lies_where_the_headers_put_it: Need::Cupti, Need::Program("cc"));
    let members = ["gridDimX", "blockDimX", "sharedMemBytes", "hStream"];
    let lines: String = members
        .iter()
        .map(|member| format!("printf(\"%zu\\n\", offsetof(CUlaunchConfig, {member}));\n"))
        .collect();
    let expected = [
        offset_of!(LaunchConfig, grid),
        offset_of!(LaunchConfig, block),
        offset_of!(LaunchConfig, shared),
        offset_of!(LaunchConfig, stream),
    ];
    assert_eq!(ask_headers(&lines), expected.map(|at| at.to_string()));
}
