//! The header in `include/`: against the structures and numbers that the library is made from, and those against AMD's own headers, of
//! which PyPI's triton has some.
//!
//! The compiler is asked by static assertions.

use crate::hip::{self, ARGUMENT_BYTES, HipData, HipRecord, functions};
use core::mem::offset_of;
use gputrail_harness::machine::{Need, tools};
use gputrail_harness::needs;
use gputrail_harness::program::run;
use gputrail_rocprofiler::*;
use std::collections::HashSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Fields whose names C cannot have, or that are several bit fields there: the name in C, if there is one.
const OTHER_FIELDS: [(&str, &str, Option<&str>); 7] = [
    ("rocprofiler_agent_cache_t", "type_", Some("type")),
    ("rocprofiler_agent_io_link_t", "type_", Some("type")),
    ("rocprofiler_agent_v0_t", "type_", Some("type")),
    ("rocprofiler_counter_info_v0_t", "flags", None),
    ("rocprofiler_counter_info_v1_t", "flags", None),
    (
        "rocprofiler_pc_sampling_record_host_trap_v0_t",
        "wave",
        None,
    ),
    (
        "rocprofiler_pc_sampling_record_stochastic_v0_t",
        "issue",
        None,
    ),
];

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

/// The headers below a folder, as they are included.
fn headers(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut folders = vec![folder.join("rocprofiler-sdk")];
    while let Some(of) = folders.pop() {
        for entry in std::fs::read_dir(of).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "h") {
                let path = path.strip_prefix(folder).unwrap();
                all.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    all.sort();
    all
}

/// Has a compiler check `text`.
fn compile(compiler: &[&str], includes: &Path, text: &str) {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join(match compiler[0] {
        "c++" => "asserted.cpp",
        _ => "asserted.c",
    });
    std::fs::write(&source, text).unwrap();
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).arg("-I").arg(includes);
    command.arg("-D__HIP_PLATFORM_AMD__=1");
    run(command.arg("-fsyntax-only").arg(&source)).well();
}

const C11: &[&str] = &["cc", "-std=c11", "-Wall", "-Wextra", "-Werror"];
const CPP17: &[&str] = &["c++", "-std=c++17", "-Wall", "-Wextra", "-Werror"];

/// A structure: its name, its bytes, and the offsets of its fields.
type Structure = (String, usize, Vec<(String, usize)>);

/// The structures with the fields that C can be asked about.
fn structures() -> Vec<Structure> {
    let mut all: Vec<Structure> = Vec::new();
    for layout in layouts() {
        let fields = layout.fields.iter().filter_map(|(field, offset)| {
            let is = |(name, one, _): &&(&str, &str, Option<&str>)| {
                (*name, *one) == (layout.name, *field)
            };
            let name = match OTHER_FIELDS.iter().find(is) {
                Some((_, _, name)) => (*name)?,
                None => field,
            };
            Some((name.to_owned(), *offset))
        });
        all.push((layout.name.to_owned(), layout.size, fields.collect()));
    }
    // All of these have the layout that has the name of HIP's.
    let api = all
        .iter()
        .find(|(name, ..)| name == "rocprofiler_buffer_tracing_hip_api_record_t");
    let api = api.unwrap().clone();
    for same in ["hsa", "marker", "rccl"] {
        let name = format!("rocprofiler_buffer_tracing_{same}_api_record_t");
        all.push((name, api.1, api.2.clone()));
    }
    type Layout<'a> = (&'a str, usize, &'a [(&'a str, usize)]);
    let more: [Layout<'_>; 9] = [
        (
            "rocprofiler_kernel_dispatch_info_t",
            size_of::<KernelDispatchInfo>(),
            &[
                ("dispatch_id", offset_of!(KernelDispatchInfo, dispatch_id)),
                ("grid_size", offset_of!(KernelDispatchInfo, grid_size)),
                (
                    "reserved_padding",
                    offset_of!(KernelDispatchInfo, reserved_padding),
                ),
            ],
        ),
        (
            "rocprofiler_record_header_t",
            size_of::<RecordHeader>(),
            &[
                ("kind", offset_of!(RecordHeader, kind)),
                ("payload", offset_of!(RecordHeader, payload)),
            ],
        ),
        (
            "rocprofiler_correlation_id_t",
            size_of::<CorrelationId>(),
            &[("ancestor", offset_of!(CorrelationId, ancestor))],
        ),
        (
            "rocprofiler_async_correlation_id_t",
            size_of::<AsyncCorrelationId>(),
            &[("external", offset_of!(AsyncCorrelationId, external))],
        ),
        (
            "rocprofiler_client_id_t",
            size_of::<ClientId>(),
            &[("handle", offset_of!(ClientId, handle))],
        ),
        (
            "rocprofiler_tool_configure_result_t",
            size_of::<ToolConfigureResult>(),
            &[("tool_data", offset_of!(ToolConfigureResult, tool_data))],
        ),
        (
            "rocprofiler_callback_tracing_hip_api_data_t",
            offset_of!(HipData, made),
            &[
                ("args", offset_of!(HipData, arguments)),
                ("retval", offset_of!(HipData, result)),
            ],
        ),
        (
            "rocprofiler_buffer_tracing_hip_api_ext_record_t",
            size_of::<HipRecord>(),
            &[
                ("args", offset_of!(HipRecord, arguments)),
                ("retval", offset_of!(HipRecord, result)),
            ],
        ),
        ("rocprofiler_hip_api_args_t", ARGUMENT_BYTES, &[]),
    ];
    for (name, size, fields) in more {
        let fields = fields.iter().map(|(name, at)| ((*name).to_owned(), *at));
        all.push((name.to_owned(), size, fields.collect()));
    }
    all
}

/// The arguments of functions of HIP, as fields of their union.
fn arguments() -> Vec<(String, usize)> {
    let mut all = Vec::new();
    for function in functions::FUNCTIONS {
        let name = function.name.to_str().unwrap();
        for (at, parameter) in function.places() {
            let parameter = parameter.name.to_str().unwrap();
            all.push((format!("{name}.{parameter}"), at));
        }
    }
    all
}

/// The numbers, by their names in C.
fn numbers() -> Vec<(String, i32)> {
    let mut all = Vec::new();
    macro_rules! numbers {
        ($($type:ident $prefix:literal;)*) => {
            $(for (number, name) in $type::ALL {
                all.push((format!("{}{}", $prefix, name.to_str().unwrap()), number.0));
            })*
        };
    }
    numbers! {
        Status "ROCPROFILER_STATUS_";
        BufferCategory "ROCPROFILER_BUFFER_CATEGORY_";
        AgentType "ROCPROFILER_AGENT_TYPE_";
        CallbackPhase "ROCPROFILER_CALLBACK_PHASE_";
        CallbackTracingKind "ROCPROFILER_CALLBACK_TRACING_";
        BufferTracingKind "ROCPROFILER_BUFFER_TRACING_";
        CodeObjectOperation "ROCPROFILER_CODE_OBJECT_";
        HipStreamOperation "ROCPROFILER_HIP_STREAM_";
        MemoryCopyOperation "ROCPROFILER_MEMORY_COPY_";
        MemoryAllocationOperation "ROCPROFILER_MEMORY_ALLOCATION_";
        KernelDispatchOperation "ROCPROFILER_KERNEL_DISPATCH_";
        ScratchMemoryOperation "ROCPROFILER_SCRATCH_MEMORY_";
        RuntimeInitializationOperation "ROCPROFILER_RUNTIME_INITIALIZATION_";
        PcSamplingMethod "ROCPROFILER_PC_SAMPLING_METHOD_";
        PcSamplingUnit "ROCPROFILER_PC_SAMPLING_UNIT_";
        BufferPolicy "ROCPROFILER_BUFFER_POLICY_";
        CounterInfoVersion "ROCPROFILER_COUNTER_INFO_";
        CounterRecordKind "ROCPROFILER_COUNTER_RECORD_";
        CounterFlag "ROCPROFILER_COUNTER_FLAG_";
        PcSamplingRecordKind "ROCPROFILER_PC_SAMPLING_RECORD_";
        RuntimeLibrary "ROCPROFILER_";
        InterceptTable "ROCPROFILER_";
        AgentVersion "ROCPROFILER_AGENT_INFO_";
        ExternalCorrelationRequestKind "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_";
        PcSamplingConfigurationFlags "ROCPROFILER_PC_SAMPLING_CONFIGURATION_FLAGS_";
        PcSamplingInstructionType "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_";
        PcSamplingInstructionNotIssuedReason "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_";
        ScratchAllocFlag "ROCPROFILER_SCRATCH_ALLOC_FLAG_";
        KfdEventPageMigrateOperation "ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_";
        KfdEventPageFaultOperation "ROCPROFILER_KFD_EVENT_PAGE_FAULT_";
        KfdEventQueueOperation "ROCPROFILER_KFD_EVENT_QUEUE_";
        KfdEventUnmapFromGpuOperation "ROCPROFILER_KFD_EVENT_UNMAP_FROM_GPU_";
        KfdPageMigrateOperation "ROCPROFILER_KFD_PAGE_MIGRATE_";
        KfdPageFaultOperation "ROCPROFILER_KFD_PAGE_FAULT_";
        KfdQueueOperation "ROCPROFILER_KFD_QUEUE_";
        MarkerCoreApi "ROCPROFILER_MARKER_CORE_API_ID_";
        MarkerControlApi "ROCPROFILER_MARKER_CONTROL_API_ID_";
        MarkerNameApi "ROCPROFILER_MARKER_NAME_API_ID_";
        MarkerCoreRangeApi "ROCPROFILER_MARKER_CORE_RANGE_API_ID_";
    }
    for (prefix, operations) in [
        ("ROCPROFILER_HIP_RUNTIME_API_ID_", hip::runtime_operations()),
        (
            "ROCPROFILER_HIP_COMPILER_API_ID_",
            hip::compiler_operations(),
        ),
    ] {
        for (number, name) in operations {
            all.push((format!("{prefix}{}", name.to_str().unwrap()), number));
        }
    }
    all
}

/// A file that includes `headers` and asserts what `is_there` has, and the number of assertions.
fn asserted(headers: &[String], is_there: impl Fn(&str) -> bool) -> (String, usize) {
    let mut text = String::from("#include <assert.h>\n#include <stddef.h>\n");
    for header in headers {
        writeln!(text, "#include <{header}>").unwrap();
    }
    let mut count = 0;
    let mut assert = |what: String| {
        writeln!(text, "static_assert({what}, \"\");").unwrap();
        count += 1;
    };
    for (name, size, fields) in structures() {
        if is_there(&name) {
            assert(format!("sizeof({name}) == {size}"));
            for (field, at) in fields {
                assert(format!("offsetof({name}, {field}) == {at}"));
            }
        }
    }
    for (argument, at) in arguments() {
        let (function, _) = argument.split_once('.').unwrap();
        if is_there("rocprofiler_hip_api_args_t") && is_there(function) {
            assert(format!(
                "offsetof(rocprofiler_hip_api_args_t, {argument}) == {at}"
            ));
        }
    }
    for (name, number) in numbers() {
        if is_there(&name) {
            assert(format!("{name} == {number}"));
        }
    }
    (text, count)
}

#[test]
fn each_header_compiles_alone_and_after_all_others() {
    needs!(each_header_compiles_alone_and_after_all_others: Need::Program("cc"), Need::Program("c++"));
    let all = headers(&include());
    assert!(all.len() > 30, "{all:?}");
    for compiler in [C11, CPP17] {
        for header in &all {
            compile(compiler, &include(), &format!("#include <{header}>\n"));
        }
        let backwards = all.iter().rev();
        let text: String = backwards.map(|one| format!("#include <{one}>\n")).collect();
        compile(compiler, &include(), &text);
    }
}

#[test]
fn structures_and_numbers_are_those_of_the_header() {
    needs!(structures_and_numbers_are_those_of_the_header: Need::Program("cc"), Need::Program("c++"));
    let (text, count) = asserted(&headers(&include()), |_| true);
    assert!(count > 1400, "{count} assertions");
    for compiler in [C11, CPP17] {
        compile(compiler, &include(), &text);
    }
}

#[test]
fn structures_and_numbers_are_those_of_amds_headers() {
    needs!(structures_and_numbers_are_those_of_amds_headers: Need::RocprofilerHeaders, Need::Program("c++"));
    let folder = tools().join("rocprofiler-headers");
    let all = headers(&folder);
    let mut known = String::new();
    for header in &all {
        let text = std::fs::read_to_string(folder.join(header)).unwrap();
        // Functions that depend on the version of HIP may be missing.
        let sure = text.split("#if HIP_RUNTIME_API_TABLE_STEP_VERSION").next();
        known += sure.unwrap_or_default();
    }
    // The first word of a line: an enumerator, or the name behind the fields of a type.
    let is_of_name = |one: char| one.is_ascii_alphanumeric() || one == '_';
    let declared: HashSet<&str> = known
        .lines()
        .filter_map(|line| {
            let line = line.trim().trim_start_matches(['}', ' ']);
            line.split(|one| !is_of_name(one)).next()
        })
        .collect();
    // The ends of enumerations differ between versions.
    let is_there = |name: &str| declared.contains(name) && !name.ends_with("_LAST");
    let (text, count) = asserted(&all, is_there);
    assert!(count > 600, "{count} assertions of {}", all.len());
    compile(&["c++", "-std=c++17", "-w"], &folder, &text);
}
