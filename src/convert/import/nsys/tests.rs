//! Databases built after the documented schemas of several versions.

use std::path::PathBuf;

use rusqlite::Connection;
use tempfile::TempDir;

use crate::import::log::StreamLog;
use crate::import::{Inputs, OpenError, Report};
use gputrail_analysis::summary::Summary;
use gputrail_record::Nanos;
use gputrail_trace::model::Producer;

/// Process 1234 and its thread 1235, as global ids.
const PROCESS: i64 = 1234 << 24;
const THREAD: i64 = PROCESS | 1235;
/// When the session began.
const START: i64 = 1_700_000_000_000_000_000;

/// A database in a file.
struct File {
    folder: TempDir,
    connection: Connection,
}

impl File {
    /// With the tables of `schema`.
    fn new(schema: &str) -> File {
        let folder = TempDir::new().unwrap();
        let connection = Connection::open(folder.path().join("report.sqlite")).unwrap();
        connection
            .execute_batch("PRAGMA journal_mode = OFF")
            .unwrap();
        connection.execute_batch(schema).unwrap();
        File { folder, connection }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("report.sqlite")
    }

    fn read(self) -> (StreamLog, Report) {
        let path = self.path();
        drop(self.connection);
        let mut log = StreamLog::default();
        let report = Inputs::open(&[path]).unwrap().produce(&mut log).unwrap();
        (log, report)
    }

    fn summary(self) -> Summary {
        let path = self.path();
        drop(self.connection);
        let mut summary = Summary::default();
        Inputs::open(&[path])
            .unwrap()
            .produce(&mut summary)
            .unwrap();
        summary
    }
}

/// The tables of 2024.6 (schema 3.16) that matter here, with rows.
fn recent() -> String {
    format!(
        "
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'saxpy'), (3, 'void saxpy<float>(float*)'),
    (4, 'main thread'), (5, 'cudaMemcpyAsync_v3020'), (6, 'poll'), (7, 'step'), (8, 'NCCL'), (9, 'cuInit'),
    (10, 'cudnnConvolutionForward');
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
INSERT INTO ThreadNames VALUES (4, 0, {THREAD});
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
INSERT INTO PROCESSES VALUES ({PROCESS}, 1234, '/usr/bin/train');
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES ({START}, '', '');
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, totalMemory INTEGER,
    smCount INTEGER, chipName TEXT, computeMajor INTEGER, computeMinor INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (0, 3, 'NVIDIA H200', '0000:18:00.0', 1000, 132, 'GH100', 9, 0);
CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, uuid TEXT, numMultiprocessors INTEGER);
INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (3, 0, 1234, '', 132);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.16.1');
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100, 200, 0, {THREAD}, 1, 1, 0, NULL), (210, 240, 0, {THREAD}, 2, 5, 700, NULL),
    (50, 60, 1, {THREAD}, 3, 9, 0, NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER,
    registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,
    blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
    dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL,
    gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (300, 400, 0, 1, NULL, 7, 1, {PROCESS}, 3, 2, 2, 1, 0, 32, 4, 2, 1, 256, 1, 1, 64, 0, 0, 0, 9, 0, NULL, 0);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL,
    copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (410, 430, 0, 1, 7, 2, {PROCESS}, 4096, 1, 0, 2);
CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable'), (2, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device');
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER,
    color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER,
    int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText TEXT, binaryData TEXT);
INSERT INTO NVTX_EVENTS (start, end, eventType, text, textId, globalTid, domainId, uint64Value) VALUES
    (10, NULL, 75, NULL, 8, {THREAD}, 5, NULL), (90, 500, 59, NULL, 7, {THREAD}, 0, NULL), (95, 450, 59, 'forward', NULL, {THREAD}, 5, 42),
    (100, 700, 60, 'epoch', NULL, {THREAD}, 0, NULL), (120, NULL, 34, 'mark', NULL, {THREAD}, 0, NULL);
CREATE TABLE OSRT_API (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER,
    nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, nestingLevel INTEGER, callchainId INTEGER NOT NULL);
INSERT INTO OSRT_API VALUES (215, 230, 0, {THREAD}, 6, 1, 0, 0);
CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER NOT NULL, sourceId INTEGER NOT NULL, typeName TEXT NOT NULL, metricId INTEGER NOT NULL, metricName TEXT NOT NULL);
INSERT INTO TARGET_INFO_GPU_METRICS VALUES (256, 0, 'GH100', 4, 'SMs Active [Throughput %]');
CREATE TABLE GPU_METRICS (rawTimestamp INTEGER NOT NULL, timestamp INTEGER NOT NULL, typeId INTEGER NOT NULL, metricId INTEGER NOT NULL, value INTEGER NOT NULL);
INSERT INTO GPU_METRICS VALUES (0, 100, 256, 4, 80), (0, 200, 256, 4, 90);
CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, address INTEGER NOT NULL, pc INTEGER NOT NULL, bytes INTEGER NOT NULL, memKind INTEGER NOT NULL,
    memoryOperationType INTEGER NOT NULL, name TEXT, correlationId INTEGER);
INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (70, {PROCESS}, 0, 1, 4096, 0, 1000, 2, 0, NULL, 1), (600, {PROCESS}, 0, 1, 4096, 0, 1000, 2, 1, NULL, 1);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, syncType INTEGER NOT NULL, eventId INTEGER NOT NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (250, 480, 0, 1, 7, 4, {PROCESS}, 3, 4294967295);
CREATE TABLE CUDNN_EVENTS (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER NOT NULL);
INSERT INTO CUDNN_EVENTS VALUES (92, 99, 0, {THREAD}, 10);
CREATE TABLE SCHED_EVENTS (start INT NOT NULL, cpu INT NOT NULL, isSchedIn INT NOT NULL, globalTid INT NOT NULL);
INSERT INTO SCHED_EVENTS VALUES (1, 0, 1, {THREAD}), (2, 0, 0, {THREAD});
"
    )
}

/// A time of the session.
fn at(time: i64) -> i64 {
    START + time
}

#[test]
fn calls_work_ranges_and_counters_of_a_recent_export_are_all_there() {
    let (log, report) = File::new(&recent()).read();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(log.of("process "), ["1234 train"]);
    let call = |name: &str, start: i64, end: i64, work: &str| {
        format!("{name} {}..{} submitted [{work}]", at(start), at(end))
    };
    assert_eq!(
        log.of("call "),
        [
            call("cuInit", 50, 60, ""),
            call("cudaLaunchKernel", 100, 200, "1"),
            call("cudaMemcpyAsync", 210, 240, "2"),
        ]
    );
    assert_eq!(
        log.of("work "),
        [
            format!(
                "stream 7: saxpy {}..{} grid_id=Int(9) launch_type=Int(1)",
                at(300),
                at(400)
            ),
            format!(
                "stream 7: copy host to device {}..{} source=Pageable destination=Device",
                at(410),
                at(430)
            ),
        ]
    );
    let slice = |track: &str, name: &str, start: i64, end: i64| {
        format!("{track}: {name} {}..{}", at(start), at(end))
    };
    assert_eq!(
        log.of("slice "),
        [
            slice("markers", "step", 90, 500),
            slice("CUDNN_EVENTS", "cudnnConvolutionForward", 92, 99),
            slice("markers", "forward", 95, 450),
            slice("ranges", "epoch", 100, 700),
            slice("main thread", "poll", 215, 230),
            slice(
                "CUDA synchronization",
                "synchronization of type 3",
                250,
                480
            ),
        ]
    );
    let instants: Vec<_> = log
        .of("instant ")
        .iter()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(instants, ["allocation", "mark", "deallocation"]);
    assert_eq!(
        log.of("value GPU 0 SMs Active [Throughput %] "),
        [
            format!("{} Int(80)", at(100)),
            format!("{} Int(90)", at(200))
        ]
    );
    assert_eq!(
        log.of("value GPU 3 memory in use "),
        [
            format!("{} Int(1000)", at(70)),
            format!("{} Int(0)", at(600))
        ]
    );
    assert_eq!(report.unrepresented.len(), 1);
    assert_eq!(report.unrepresented[0].count, 2);
    assert!(report.unrepresented[0].reason.contains("SCHED_EVENTS"));
}

#[test]
fn the_summary_of_an_export_has_geometry_errors_and_devices() {
    let summary = File::new(&recent()).summary();
    let kernels = summary.kernels();
    assert_eq!(
        (&kernels[0].name[..], kernels[0].times.total),
        ("saxpy", 100)
    );
    assert_eq!(kernels[0].latency.total, 200);
    let failures = summary.failures();
    assert_eq!(
        (&failures[0].name[..], failures[0].code),
        ("cudaMemcpyAsync", 700)
    );
    let gpus = summary.gpus();
    assert_eq!(
        (&gpus[0].name[..], gpus[0].kernels),
        ("NVIDIA H200", Nanos(100))
    );
    let step = summary
        .ranges()
        .into_iter()
        .find(|range| range.name == "step")
        .unwrap();
    assert_eq!((step.calls, step.work), (2, 2));
}

#[test]
fn an_old_export_lacks_tables_and_columns() {
    // 2020: no processes, no device table, no names beside the ids, and no demangled name.
    let (log, report) = File::new(&format!(
        "
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel'), (2, 'saxpy');
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT NOT NULL, end INT NOT NULL, globalTid INT, correlationId INT, nameId INT NOT NULL, returnValue INT NOT NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100, 200, {THREAD}, 1, 1, 0);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, contextId INT NOT NULL,
    streamId INT NOT NULL, correlationId INT, globalPid INT, demangledName INT NOT NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (300, 400, 0, 1, 7, 1, {PROCESS}, 2);
"
    ))
    .read();
    assert!(report.is_sound(), "{:?}", report.findings);
    let base = 1_000_000_000_000_u64;
    assert_eq!(
        log.of("call "),
        [format!(
            "cudaLaunchKernel {}..{} submitted [1]",
            base + 100,
            base + 200
        )]
    );
    assert_eq!(
        log.of("work "),
        [format!("stream 7: saxpy {}..{}", base + 300, base + 400)]
    );
    assert_eq!(log.of("process "), ["1234 process"]);
}

#[test]
fn nodes_of_graphs_share_rows_however_many_streams_they_ran_on() {
    let nodes: Vec<String> = (0..200)
        .map(|node| {
            let start = 1000 + 10 * node;
            // Two run at a time, each on a stream of its own.
            format!(
                "({start}, {}, 0, 1, {}, 1, {PROCESS}, 1, {})",
                start + 15,
                100 + node,
                node + 1
            )
        })
        .collect();
    let (log, report) = File::new(&format!(
        "
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'node');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT,
    globalPid INT, shortName INT, graphNodeId INT);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES {};
",
        nodes.join(", ")
    ))
    .read();
    assert!(report.is_sound());
    assert_eq!(log.of("work ").len(), 200);
    assert_eq!(log.queues, ["CUDA graphs", "CUDA graphs row 2"]);
}

#[test]
fn values_of_other_types_are_findings_and_the_rest_is_converted() {
    let (log, report) = File::new(&format!(
        "
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'saxpy');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, correlationId, globalPid, shortName, registersPerThread);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (300, 400, 0, 1, 7, 1, {PROCESS}, 1, 8),
    ('soon', 400, 0, 1, 7, 1, {PROCESS}, 1, 8), (NULL, 400, 0, 1, 7, 1, {PROCESS}, 1, 8), (300, 4.5, 0, 1, 7, 1, {PROCESS}, 1, 8),
    (300, 400, 0, 1, 7, -1, {PROCESS}, 1, 8), (300, 400, 0, 1, 7, 1, {PROCESS}, 1, 99999999999),
    ({}, 400, 0, 1, 7, 1, {PROCESS}, 1, 8), (0, 0, 0, 1, 7, 1, {PROCESS}, 1, 8), (500, 600, 0, 1, 7, 1, {PROCESS}, 77, 8);
",
        i64::MIN
    ))
    .read();
    let findings: Vec<_> = report
        .findings
        .iter()
        .map(|one| one.found.clone())
        .collect();
    assert_eq!(
        findings,
        [
            "\"soon\" in row 2 of CUPTI_ACTIVITY_KIND_KERNEL, column start",
            "NULL in row 3 of CUPTI_ACTIVITY_KIND_KERNEL, column start",
            "4.5 in row 4 of CUPTI_ACTIVITY_KIND_KERNEL, column end",
            "-1 in row 5 of CUPTI_ACTIVITY_KIND_KERNEL, column correlationId",
            "99999999999 in row 6 of CUPTI_ACTIVITY_KIND_KERNEL, column registersPerThread",
            "-9223372036854775808 in row 7 of CUPTI_ACTIVITY_KIND_KERNEL, column start",
        ]
    );
    assert_eq!(log.of("work ").len(), 3);
    assert!(
        report
            .remarks
            .iter()
            .any(|one| one.reason.contains("not measured") && one.count == 1)
    );
}

#[test]
fn a_database_that_is_cut_is_read_as_far_as_it_goes() {
    let file = File::new(&recent());
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
        INSERT INTO OSRT_API SELECT 1000 + 10 * i, 1005 + 10 * i, 0, 0, 6, 0, 0, 0 FROM n";
    file.connection.execute_batch(rows).unwrap();
    let path = file.path();
    let length = std::fs::metadata(&path).unwrap().len();
    let folder = file.folder;
    drop(file.connection);
    let handle = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    handle.set_len(length / 2 / 4096 * 4096).unwrap();
    let mut log = StreamLog::default();
    let report = Inputs::open(&[&path]).unwrap().produce(&mut log).unwrap();
    assert!(!report.is_sound());
    assert!(log.of("slice ").len() > 1000, "{}", log.of("slice ").len());
    assert!(
        report
            .findings
            .iter()
            .any(|one| one.found.contains("rows of OSRT_API")),
        "{:?}",
        report.findings
    );
    drop(folder);
}

#[test]
fn views_and_virtual_tables_of_a_file_are_not_run() {
    let (log, report) = File::new(
        "
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, i AS end, 59 AS eventType FROM n;
",
    )
    .read();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert!(log.lines.is_empty());
}

#[test]
fn another_database_is_named_with_its_tables() {
    let cases = [
        (
            "CREATE TABLE bookmarks (url TEXT); CREATE TABLE notes (text TEXT)",
            "is an SQLite database of unknown tables (bookmarks, notes); expected one of: capture, ",
        ),
        ("", "is an SQLite database without tables; "),
    ];
    for (schema, expected) in cases {
        let file = File::new(schema);
        file.connection
            .execute_batch("PRAGMA user_version = 1")
            .unwrap();
        let error = Inputs::open(&[file.path()]).unwrap_err();
        assert!(matches!(error, OpenError::Unknown { .. }));
        let error = error.to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn bytes_in_place_of_texts_cost_no_row() {
    let (log, report) = File::new(&format!(
        "
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, CAST(X'73617870ff79' AS TEXT));
CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, nameEnum INTEGER, value TEXT);
INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('GpuInfo', 1, CAST(X'0adf0108' AS TEXT)), ('Cpu', 2, X'00ff'),
    ('Hostname', 3, CAST(X'6e6f6465ff' AS TEXT));
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, correlationId, globalPid, shortName);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (300, 400, 0, 1, 7, 1, {PROCESS}, 1);
"
    ))
    .read();
    assert!(report.is_sound(), "{:?}", report.findings);
    let work = log.of("work ");
    assert!(work[0].starts_with("stream 7: saxp\u{fffd}y "), "{work:?}");
    // The name of the kernel and that of the machine: other values are not looked at.
    let mut remarks = report.remarks.iter();
    let replaced = remarks.find(|one| one.reason.contains("not UTF-8"));
    assert_eq!(replaced.unwrap().count, 2);
}

#[test]
fn an_export_between_these_has_graphs_waits_and_events_without_a_time() {
    // 2022 and 2023: names of enumerations, graphs as a whole, events of streams without a time, and metrics without a type.
    let (log, report) = File::new(&format!(
        "
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'cudaGraphLaunch_v10000'), (2, 'saxpy'), (3, 'void saxpy(float*)'), (4, 'cuStreamSynchronize');
CREATE TABLE ENUM_CUPTI_SYNC_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
INSERT INTO ENUM_CUPTI_SYNC_TYPE VALUES (3, 'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE', 'Stream synchronize');
CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER NOT NULL PRIMARY KEY, name TEXT);
INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (11, 'CUDA_MEMCPY_KIND_UVM_HTOD');
CREATE TABLE TARGET_INFO_GPU (vmId INT NOT NULL, id INT NOT NULL, name TEXT, busLocation TEXT, isDiscrete INT, l2CacheSize INT, totalMemory INT,
    memoryBandwidth INT, clockRate INT, smCount INT, pwGpuId INT, uuid TEXT, luid INT, chipName TEXT, cuDevice INT, ctxswDevPath TEXT, ctrlDevPath TEXT, revision INT);
INSERT INTO TARGET_INFO_GPU (vmId, id, name, smCount, uuid) VALUES (0, 0, 'NVIDIA A100', 108, 'GPU-1');
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT NOT NULL, end INT NOT NULL, eventClass INT NOT NULL, globalTid INT, correlationId INT, nameId INT NOT NULL, returnValue INT NOT NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100, 110, 0, {THREAD}, 1, 1, 0), (120, 130, 0, {THREAD}, 2, 1, 0), (140, 600, 0, {THREAD}, 3, 4, 0);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT NULL,
    correlationId INT, globalPid INT, demangledName INT NOT NULL, shortName INT NOT NULL, mangledName INT, launchType INT, cacheConfig INT,
    registersPerThread INT NOT NULL, gridX INT NOT NULL, gridY INT NOT NULL, gridZ INT NOT NULL, blockX INT NOT NULL, blockY INT NOT NULL, blockZ INT NOT NULL,
    staticSharedMemory INT NOT NULL, dynamicSharedMemory INT NOT NULL, localMemoryPerThread INT NOT NULL, localMemoryTotal INT NOT NULL, gridId INT NOT NULL,
    sharedMemoryExecuted INT, graphNodeId INT, sharedMemoryLimitConfig INT);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
    (200, 300, 0, 1, 13, 1, {PROCESS}, 3, 2, 2, 1, 0, 32, 1, 1, 1, 64, 1, 1, 0, 0, 0, 0, 7, 0, 4294967297, 0),
    (0, 0, 0, 1, 14, 1, {PROCESS}, 3, 2, 2, 1, 0, 32, 1, 1, 1, 64, 1, 1, 0, 0, 0, 0, 8, 0, 4294967298, 0),
    (310, 305, 0, 1, 15, 1, {PROCESS}, 3, 2, 2, 1, 0, 32, 1, 1, 1, 64, 1, 1, 0, 0, 0, 0, 9, 0, 4294967299, 0);
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT NULL,
    correlationId INT, globalPid INT, graphId INT NOT NULL, graphExecId INT NOT NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (400, 500, 0, 1, 7, 2, {PROCESS}, 5, 6);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT NULL,
    correlationId INT, globalPid INT, bytes INT NOT NULL, copyKind INT NOT NULL, deprecatedSrcId INT, srcKind INT, dstKind INT, srcDeviceId INT,
    srcContextId INT, dstDeviceId INT, dstContextId INT, migrationCause INT, graphNodeId INT, virtualAddress INT);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, contextId, streamId, globalPid, bytes, copyKind, virtualAddress) VALUES (410, 420, 0, 1, 7, {PROCESS}, 65536, 11, 4096);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT NULL,
    correlationId INT, globalPid INT, value INT NOT NULL, bytes INT NOT NULL, graphNodeId INT, memKind INT);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (510, 520, 0, 1, 7, 0, {PROCESS}, 255, 1024, NULL, 2);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT NULL,
    correlationId INT, globalPid INT, syncType INT NOT NULL, eventId INT NOT NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (150, 590, 0, 1, 7, 3, {PROCESS}, 3, 4294967295);
CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT NULL, correlationId INT, globalPid INT, eventId INT NOT NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES (0, 1, 7, 4, {PROCESS}, 1), (0, 1, 7, 5, {PROCESS}, 2);
CREATE TABLE NVTX_EVENTS (start INT NOT NULL, end INT, eventType INT NOT NULL, rangeId INT, category INT, color INT, text TEXT, globalTid INT, endGlobalTid INT, textId INT, domainId INT);
INSERT INTO NVTX_EVENTS (start, eventType, text, globalTid, domainId) VALUES (10, 59, 'never popped', {THREAD}, 0);
"
    ))
    .read();
    assert!(report.is_sound(), "{:?}", report.findings);
    let base = 1_000_000_000_000_u64;
    let at = |start: u64, end: u64| format!("{}..{}", base + start, base + end);
    let mut work = log.of("work ");
    work.sort_unstable();
    assert_eq!(work.len(), 6, "{work:?}");
    for expected in [
        format!("CUDA graphs: saxpy {}", at(200, 300)),
        "CUDA graphs: saxpy -".to_owned(),
        format!("stream 7: CUDA graph 5 {}", at(400, 500)),
        format!(
            "stream 7 row 2: copy cuda_memcpy_kind_uvm_htod {}",
            at(410, 420)
        ),
        format!("stream 7: fill {}", at(510, 520)),
    ] {
        assert!(
            work.iter().any(|one| one.starts_with(&expected)),
            "{expected}: {work:?}"
        );
    }
    assert_eq!(
        log.of("slice CUDA synchronization: "),
        [format!("Stream synchronize {}", at(150, 590))]
    );
    assert_eq!(
        log.of("slice markers: "),
        [format!("never popped {}..0", base + 10)]
    );
    let lost: Vec<_> = report
        .unrepresented
        .iter()
        .map(|one| (one.count, &*one.reason))
        .collect();
    assert_eq!(
        lost,
        [(2, "CUDA events without a time, which was not collected")]
    );
    for part in ["not measured", "end before they start", "overlaps"] {
        let remark = report.remarks.iter().find(|one| one.reason.contains(part));
        assert_eq!(
            remark.map(|one| one.count),
            Some(1),
            "{part}: {:?}",
            report.remarks
        );
    }
}

#[test]
fn a_packed_database_says_what_the_plain_one_says() {
    let file = File::new(&recent());
    let plain = std::fs::read(file.path()).unwrap();
    let packed = file.folder.path().join("report.sqlite.gz");
    let gzip = std::fs::File::create(&packed).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(gzip, flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &plain).unwrap();
    gzip.finish().unwrap();
    let mut log = StreamLog::default();
    let report = Inputs::open(&[&packed]).unwrap();
    let report = report.produce(&mut log).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    let (expected, _) = file.read();
    assert!(expected.lines.len() > 5);
    assert_eq!(log.lines, expected.lines);
}
