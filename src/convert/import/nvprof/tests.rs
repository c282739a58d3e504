//! Databases built after the schema that nvprof writes.

use std::path::PathBuf;

use rusqlite::Connection;
use tempfile::TempDir;

use crate::import::log::StreamLog;
use crate::import::{InputFormat, Inputs, Report};
use gputrail_trace::model::Producer;

/// Times are those of a day in 2017, to which rows add some nanoseconds.
const BEGIN: u64 = 1_496_933_427_000_000_000;

const SCHEMA: &str = "
CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL UNIQUE);
CREATE TABLE Version(version INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, cbid INT NOT NULL, start INT NOT NULL, end INT NOT NULL,
    processId INT NOT NULL, threadId INT NOT NULL, correlationId INT NOT NULL, returnValue INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_DRIVER(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, cbid INT NOT NULL, start INT NOT NULL, end INT NOT NULL,
    processId INT NOT NULL, threadId INT NOT NULL, correlationId INT NOT NULL, returnValue INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, cacheConfig BLOB NOT NULL,
    sharedMemoryConfig INT NOT NULL, registersPerThread INT NOT NULL, start INT NOT NULL, end INT NOT NULL, completed INT NOT NULL,
    deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT NULL, gridX INT NOT NULL, gridY INT NOT NULL, gridZ INT NOT NULL,
    blockX INT NOT NULL, blockY INT NOT NULL, blockZ INT NOT NULL, staticSharedMemory INT NOT NULL, dynamicSharedMemory INT NOT NULL,
    localMemoryPerThread INT NOT NULL, localMemoryTotal INT NOT NULL, correlationId INT NOT NULL, gridId INT NOT NULL, name INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, copyKind INT NOT NULL, srcKind INT NOT NULL,
    dstKind INT NOT NULL, flags INT NOT NULL, bytes INT NOT NULL, start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL,
    contextId INT NOT NULL, streamId INT NOT NULL, correlationId INT NOT NULL, runtimeCorrelationId INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value INT NOT NULL, bytes INT NOT NULL, start INT NOT NULL,
    end INT NOT NULL, deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT NULL, correlationId INT NOT NULL, flags INT NOT NULL,
    memoryKind INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, flags INT NOT NULL, timestamp INT NOT NULL, id INT NOT NULL,
    objectKind INT NOT NULL, objectId BLOB NOT NULL, name INT NOT NULL, domain INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER_DATA(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, flags INT NOT NULL, id INT NOT NULL,
    payloadKind INT NOT NULL, payload BLOB NOT NULL, color INT NOT NULL, category INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_NAME(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, objectKind INT NOT NULL, objectId BLOB NOT NULL, name INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_DEVICE(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, globalMemoryBandwidth INT NOT NULL, globalMemorySize INT NOT NULL,
    coreClockRate INT NOT NULL, numMultiprocessors INT NOT NULL, computeCapabilityMajor INT NOT NULL, computeCapabilityMinor INT NOT NULL,
    id INT NOT NULL, uuid BLOB NOT NULL, name INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, counterKind INT NOT NULL, value INT NOT NULL,
    start INT NOT NULL, end INT NOT NULL, address INT NOT NULL, srcId INT NOT NULL, dstId INT NOT NULL, streamId INT NOT NULL,
    processId INT NOT NULL, flags INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_OVERHEAD(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, overheadKind INT NOT NULL, objectKind INT NOT NULL,
    objectId BLOB NOT NULL, start INT NOT NULL, end INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_ENVIRONMENT(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, deviceId INT NOT NULL, timestamp INT NOT NULL,
    environmentKind INT NOT NULL, data BLOB NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_EVENT(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, id INT NOT NULL, value INT NOT NULL, domain INT NOT NULL,
    correlationId INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_METRIC(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, id INT NOT NULL, value BLOB NOT NULL, correlationId INT NOT NULL,
    flags INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, eventKind INT NOT NULL, lineNo INT NOT NULL,
    start INT NOT NULL, end INT NOT NULL, cuProcessId INT NOT NULL, cuThreadId INT NOT NULL, kernelName INT NOT NULL);
";

const ROWS: &str = "
INSERT INTO StringTable VALUES (1, '_Z5scaleIfEvPT_f'), (2, 'Made GPU'), (3, 'step'), (4, 'mark'), (5, 'my domain'), (6, 'worker'), (7, 'copies'),
    (8, 'scale_5_gpu');
INSERT INTO Version VALUES (17);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 211, B+100, B+150, 42, -2147483647, 7, 0), (2, 31, B+200, B+250, 42, -2147483647, 8, 11),
    (3, 9999, B+300, B+310, 42, 44, 9, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_DRIVER VALUES (1, 1, B+10, B+20, 42, 44, 1, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (1, x'00', 1, 32, B+160, B+190, B+190, 0, 1, 7, 4, 2, 1, 128, 1, 1, 64, 16, 8, 1024, 7, 5, 1);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1, 1, 1, 3, 1, 4096, B+210, B+220, 0, 1, 22, 8, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (1, 255, 512, B+230, B+240, 0, 1, 7, 9, 0, 3);
INSERT INTO CUPTI_ACTIVITY_KIND_NAME VALUES (1, 2, x'2a0000002c000000', 6), (2, 5, x'000000000100000016000000', 7);
INSERT INTO CUPTI_ACTIVITY_KIND_DEVICE VALUES (1, 900000, 16777216, 1530000, 80, 7, 0, 0, x'00', 2);
INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (1, 2, B+50, 1, 2, x'2a0000002c000000', 3, 5), (2, 1, B+60, 2, 2, x'2a0000002c000000', 4, 0),
    (3, 4, B+400, 1, 2, x'2a0000002c000000', 0, 0), (4, 4, B+500, 3, 2, x'2a0000002c000000', 0, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_MARKER_DATA VALUES (1, 2, 1, 4, x'ffffffffffffffff', 65280, 3);
INSERT INTO CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER VALUES (1, 2, 65536, B+320, B+330, 4096, 0, 4294967295, 0, 42, 0),
    (2, 3, 1, B+340, 0, 8192, 0, 0, 0, 42, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_OVERHEAD VALUES (1, 65536, 1, x'2a00000000000000', B+600, B+650);
INSERT INTO CUPTI_ACTIVITY_KIND_ENVIRONMENT VALUES (1, 0, B+30, 1, x'fa050000630300000000000000000000'), (2, 0, B+31, 3, x'a0860100e0930400');
INSERT INTO CUPTI_ACTIVITY_KIND_EVENT VALUES (1, 83886081, 640, 0, 7);
INSERT INTO CUPTI_ACTIVITY_KIND_METRIC VALUES (1, 5, x'0000000000000000', 7, 0);
INSERT INTO CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH VALUES (1, 19, 5, B+90, B+155, 42, 44, 8);
";

/// A database with these tables and rows.
fn database(rows: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("profile.nvprof");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    let rows = rows.replace("B+", &format!("{BEGIN}+"));
    connection.execute_batch(&rows).unwrap();
    (folder, path)
}

fn read(path: &PathBuf) -> (StreamLog, Report) {
    let mut log = StreamLog::default();
    let inputs = Inputs::open(&[path]).unwrap();
    assert_eq!(inputs.recordings()[0].format(), InputFormat::Nvprof);
    let report = inputs.produce(&mut log).unwrap();
    // Times as they stand in the rows.
    for line in &mut log.lines {
        *line = line.replace("1496933427000000", "");
    }
    (log, report)
}

#[test]
fn calls_work_markers_and_counters_are_there() {
    let (_folder, path) = database(ROWS);
    let (log, report) = read(&path);
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(log.of("process "), ["42 process"]);
    assert_eq!(
        log.of("call "),
        [
            "cuInit 010..020 submitted []",
            "cudaLaunchKernel 100..150 submitted [2]",
            "cudaMemcpy 200..250 submitted [3]",
            "CUDA function 9999 of the runtime 300..310 submitted [4]",
        ]
    );
    assert_eq!(
        log.of("work "),
        [
            "stream 7: scale<float> 160..190 grid_id=Int(5) local_memory_total=Int(1024) event 83886081=640",
            "stream 22 copies: copy host to device 210..220 source=pageable destination=device async=1",
            "stream 7: fill 230..240 value=Int(255) memory=device",
            "unified memory: copy device to host 320..330 address=Pointer(4096)",
        ]
    );
    assert_eq!(log.of("slice markers: "), ["step 050..400"]);
    assert_eq!(log.of("instant "), ["mark 060", "CPU page faults 340"]);
    assert_eq!(
        log.of("slice profiler overhead: "),
        ["buffer flush 600..650"]
    );
    assert_eq!(
        log.of("slice openacc launch: "),
        ["openacc launch 090..155"]
    );
    assert_eq!(log.of("value GPU 0 SM clock (MHz) "), ["030 Int(1530)"]);
    assert_eq!(log.of("value GPU 0 memory clock (MHz) "), ["030 Int(867)"]);
    assert_eq!(log.of("value GPU 0 power (mW) "), ["031 Int(100000)"]);
    let counted: Vec<_> = report
        .unrepresented
        .iter()
        .map(|one| (&*one.reason, one.count))
        .collect();
    assert_eq!(
        counted,
        [
            ("ends of ranges whose begin is not in the database", 1),
            (
                "rows of CUPTI_ACTIVITY_KIND_METRIC, which has no start and end",
                1
            ),
        ]
    );
}

#[test]
fn damaged_rows_are_told_and_the_others_are_read() {
    let damaged = [
        ("B+160, B+190, B+190", "'soon', B+190, B+190"),
        ("211, B+100, B+150, 42", "211, B+100, B+150, 'here'"),
        ("(1, 1, 1, 3, 1, 4096", "(1, 1, 1, 3, 1, -1"),
        ("x'a0860100e0930400'", "x'a086'"),
        ("83886081, 640", "83886081, 6.5"),
    ];
    for (right, wrong) in damaged {
        let (_folder, path) = database(&ROWS.replacen(right, wrong, 1));
        let (log, report) = read(&path);
        assert_eq!(report.findings.len(), 1, "{wrong}: {:?}", report.findings);
        assert!(log.of("call ").len() >= 3, "{wrong}");
        assert!(log.of("work ").len() >= 3, "{wrong}");
    }
}

#[test]
fn files_that_were_cut_or_changed_are_read_as_far_as_they_go() {
    let (folder, path) = database(ROWS);
    let whole = std::fs::read(&path).unwrap();
    let all = read(&path).0.lines;
    let other = folder.path().join("damaged.nvprof");
    let mut random: u64 = 88_172_645_463_325_252;
    for round in 0..300_u64 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut bytes = whole.clone();
        let place = random as usize % bytes.len();
        match round % 3 {
            0 => bytes.truncate(place),
            1 => bytes[place] ^= 1 << (random >> 60 & 7),
            _ => bytes[place..]
                .iter_mut()
                .take(512)
                .for_each(|byte| *byte = 0xff),
        }
        std::fs::write(&other, &bytes).unwrap();
        let Ok(inputs) = Inputs::open(&[&other]) else {
            continue;
        };
        let mut log = StreamLog::default();
        let report = inputs.produce(&mut log).unwrap();
        let is_told = !report.is_sound() || !report.unrepresented.is_empty();
        assert!(
            log.lines.len() >= all.len() || is_told,
            "{round} {place}: {:?}, {all:?}",
            log.lines
        );
    }
}
