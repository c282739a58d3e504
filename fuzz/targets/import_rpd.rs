//! A database of rocmProfileData with any values, and with some bytes changed.
#![no_main]

use gputrail_analysis::summary::Summary;
use gputrail_convert::import::Inputs;
use gputrail_fuzz::databases::database_of;
use gputrail_fuzz::file_of;
use gputrail_trace::model::Producer;
use gputrail_trace::perfetto::Exporter;
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

/// Tables of both generations of the schema, and of tools.
const TABLES: [(&str, &str); 14] = [
    ("rocpd_metadata", "tag, value"),
    ("rocpd_string", "id, string"),
    ("rocpd_ustring", "id, string"),
    (
        "rocpd_api",
        "id, pid, tid, start, end, apiName_id, category_id, domain_id, args_id",
    ),
    (
        "rocpd_hsaApi",
        "id, pid, tid, start, end, apiName_id, args_id, return",
    ),
    (
        "rocpd_op",
        "id, gpuId, queueId, sequenceId, completionSignal, start, end, description_id, opType_id",
    ),
    ("rocpd_api_ops", "api_id, op_id"),
    (
        "rocpd_kernelapi",
        "api_ptr_id, stream, gridX, gridY, gridZ, workgroupX, workgroupY, workgroupZ, groupSegmentSize, kernelName_id, codeObject_id",
    ),
    ("rocpd_kernelcodeobject", "id, vgpr, sgpr"),
    (
        "rocpd_copyapi",
        "api_ptr_id, stream, size, width, height, kind, dst, src, sync",
    ),
    (
        "rocpd_monitor",
        "deviceType, deviceId, monitorType, start, end, value",
    ),
    ("rocpd_counter", "op_id, name_id, value"),
    ("rocpd_stackframe", "api_ptr_id, depth, name_id"),
    ("ext_autogradapi", "api_ptr_id, autogradName_id, sizes"),
];

fuzz_target!(|data: &[u8]| {
    let mut input = Unstructured::new(data);
    let Ok(bytes) = database_of(&mut input, TABLES.iter()) else {
        return;
    };
    let (_file, path) = file_of(&bytes);
    // Changed bytes may hide the tables.
    let Ok(inputs) = Inputs::open(&[path]) else {
        return;
    };
    let mut consumers = (Exporter::new(std::io::sink()), Summary::default());
    let report = inputs
        .produce(&mut consumers)
        .expect("all that is read can be written");
    for finding in &report.findings {
        assert!(!finding.found.is_empty());
    }
});
