//! Tables of other profilers: CSV and JSON of any bytes or of any fields, and databases of any bytes or of any values.
#![no_main]

use gputrail_analysis::hotspots::HotspotAnalysis;
use gputrail_analysis::summary::Summary;
use gputrail_convert::import::Inputs;
use gputrail_fuzz::databases::database_of;
use gputrail_fuzz::file_of;
use gputrail_trace::model::Producer;
use gputrail_trace::perfetto::Exporter;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

/// The beginnings of tables of rocprofv3 and rocprof.
const HEADERS: [&str; 7] = [
    "Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp",
    "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp",
    "Correlation_Id,Dispatch_Id,Agent_Id,Process_Id,Kernel_Name,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp",
    "Sample_Timestamp,Exec_Mask,Dispatch_Id,Instruction,Instruction_Comment,Correlation_Id,Wave_Issued_Instruction,Instruction_Type,Stall_Reason,Wave_Count",
    "Kind,Operation,Agent_Id,Allocation_Size,Address,Correlation_Id,Start_Timestamp,End_Timestamp",
    "Index,KernelName,gpu-id,queue-id,pid,tid,grd,wgr,vgpr,obj,SQ_WAVES,BeginNs,EndNs",
    "Kind,Direction,Stream_Id,Source_Agent_Id,Destination_Agent_Id,Correlation_Id,Start_Timestamp,End_Timestamp",
];

/// Tables of databases.
const TABLES: [(&str, &str); 21] = [
    ("StringIds", "id, value"),
    (
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        "start, end, globalTid, correlationId, nameId, returnValue",
    ),
    (
        "CUPTI_ACTIVITY_KIND_KERNEL",
        "start, end, deviceId, contextId, streamId, correlationId, globalPid, shortName, graphNodeId, gridX, blockX",
    ),
    (
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        "start, end, deviceId, streamId, correlationId, globalPid, bytes, copyKind",
    ),
    (
        "NVTX_EVENTS",
        "start, end, eventType, text, textId, globalTid, domainId, category",
    ),
    ("GPU_METRICS", "timestamp, typeId, metricId, value"),
    ("CUDNN_EVENTS", "start, end, globalTid, nameId, other"),
    ("rocpd_string_1", "id, string"),
    ("rocpd_event_1", "id, category_id, stack_id, correlation_id"),
    ("rocpd_region_1", "pid, tid, start, end, name_id, event_id"),
    (
        "rocpd_kernel_dispatch_1",
        "pid, tid, agent_id, kernel_id, dispatch_id, queue_id, stream_id, start, end, event_id",
    ),
    ("rocpd_pmc_event_1", "event_id, pmc_id, value"),
    ("StringTable", "_id_, value"),
    (
        "CUPTI_ACTIVITY_KIND_DRIVER",
        "cbid, start, end, processId, threadId, correlationId",
    ),
    (
        "CUPTI_ACTIVITY_KIND_MARKER",
        "flags, timestamp, id, objectKind, objectId, name",
    ),
    (
        "CUPTI_ACTIVITY_KIND_ENVIRONMENT",
        "deviceId, timestamp, environmentKind, data",
    ),
    (
        "CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER",
        "counterKind, value, start, end, address, srcId, dstId, processId",
    ),
    ("KERN", "KernelName, pid, BeginNs, EndNs, SQ_WAVES"),
    ("HIP", "Name, pid, tid, BeginNs, EndNs, args"),
    ("OPS", "Name, pid, tid, BeginNs, EndNs"),
    ("rocTX", "Name, pid, tid, BeginNs, EndNs"),
];

fn csv(input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut file = input.choose(&HEADERS)?.as_bytes().to_vec();
    while !input.is_empty() {
        file.push(*input.choose(b"\n\n,,,,,,\"0123456789")?);
        if input.ratio(1, 4)? {
            let count = input.int_in_range(0..=16)?;
            file.extend_from_slice(input.bytes(count)?);
        }
    }
    Ok(file)
}

/// Lists of rocprofv3's JSON, and the fields of their elements.
const LISTS: [&str; 14] = [
    "metadata",
    "agents",
    "counters",
    "strings.buffer_records",
    "strings.marker_api",
    "strings.pc_sample_instructions",
    "kernel_symbols",
    "callback_records.counter_collection",
    "buffer_records.kernel_dispatch",
    "buffer_records.hip_api",
    "buffer_records.memory_copy",
    "buffer_records.memory_allocation",
    "buffer_records.pc_sample_stochastic",
    "buffer_records.kfd",
];
const FIELDS: [&str; 22] = [
    "kind",
    "operation",
    "operations",
    "key",
    "value",
    "id",
    "handle",
    "pid",
    "command",
    "name",
    "kernel_id",
    "dispatch_id",
    "start_timestamp",
    "end_timestamp",
    "dispatch_info",
    "agent_id",
    "correlation_id",
    "internal",
    "record",
    "records",
    "inst_index",
    "timestamp",
];

/// A value of JSON, with objects and lists up to a depth.
fn json_value(input: &mut Unstructured<'_>, json: &mut Vec<u8>, depth: u32) -> Result<()> {
    match input.int_in_range(0..=if depth > 3 { 5 } else { 8 })? {
        0 => json.extend_from_slice(b"null"),
        1 => json.extend_from_slice(format!("{:?}", input.arbitrary::<f32>()?).as_bytes()),
        2 => json.extend_from_slice(format!("{:?}", input.arbitrary::<&str>()?).as_bytes()),
        3 => json.extend_from_slice(format!("{}", input.arbitrary::<u64>()?).as_bytes()),
        4 | 5 => json.extend_from_slice(format!("{}", input.int_in_range(0..=9)?).as_bytes()),
        6 => {
            json.push(b'[');
            for _ in 0..input.int_in_range(0..=3)? {
                json_value(input, json, depth + 1)?;
                json.push(b',');
            }
            json.extend_from_slice(b"0]");
        }
        _ => {
            json.push(b'{');
            for _ in 0..input.int_in_range(0..=6)? {
                json.extend_from_slice(format!("{:?}:", input.choose(&FIELDS)?).as_bytes());
                json_value(input, json, depth + 1)?;
                json.push(b',');
            }
            json.extend_from_slice(b"\"size\":1}");
        }
    }
    Ok(())
}

fn json(input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut json = b"{\"rocprofiler-sdk-tool\":[{".to_vec();
    while !input.is_empty() {
        let list = *input.choose(&LISTS)?;
        let (field, nested) = list.split_once('.').unwrap_or((list, ""));
        json.extend_from_slice(format!("\"{field}\":").as_bytes());
        if !nested.is_empty() {
            json.extend_from_slice(format!("{{\"{nested}\":").as_bytes());
        }
        json.push(b'[');
        for _ in 0..input.int_in_range(0..=4)? {
            json_value(input, &mut json, 0)?;
            json.push(b',');
            if input.ratio(1, 16)? {
                json.extend_from_slice(input.bytes(3)?);
            }
        }
        json.extend_from_slice(if nested.is_empty() { b"0]," } else { b"0]}," });
    }
    json.extend_from_slice(b"\"end\":0}]}");
    Ok(json)
}

fn database(input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let is_rocpd = input.ratio(1, 2)?;
    let tables = TABLES
        .iter()
        .filter(|(name, _)| name.starts_with("rocpd") == is_rocpd);
    database_of(input, tables)
}

fuzz_target!(|data: &[u8]| {
    let mut input = Unstructured::new(data);
    let made = match input.int_in_range(0..=3) {
        Ok(0) => Ok(data.get(1..).unwrap_or_default().to_vec()),
        Ok(1) => csv(&mut input),
        Ok(2) => json(&mut input),
        _ => database(&mut input),
    };
    let Ok(bytes) = made else { return };
    let (_file, path) = file_of(&bytes);
    let Ok(inputs) = Inputs::open(&[path]) else {
        return;
    };
    let mut consumers = (
        Exporter::new(std::io::sink()),
        (Summary::default(), HotspotAnalysis::default()),
    );
    let report = inputs
        .produce(&mut consumers)
        .expect("all that is read can be written");
    for finding in &report.findings {
        assert!(!finding.found.is_empty());
        assert!(
            finding
                .offset
                .is_none_or(|offset| offset <= bytes.len() as u64)
        );
    }
    let (_, (summary, hotspots)) = consumers;
    let _ = (summary.functions(), summary.kernels(), summary.gpus());
    let _ = hotspots.report();
});
