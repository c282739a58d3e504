//! Databases built after both generations of the schema.

use rusqlite::Connection;
use tempfile::TempDir;

use crate::import::log::StreamLog;
use crate::import::{Inputs, Report};
use gputrail_trace::model::Producer;

/// Tables that both generations have, with the rows of one run; `ID` stands for the id of the run.
const COMMON: &str = "
CREATE TABLE `rocpd_metadataID` (id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, tag TEXT NOT NULL, value TEXT NOT NULL);
INSERT INTO `rocpd_metadataID` (tag, value) VALUES ('schema_version', '3');
CREATE TABLE `rocpd_stringID` (id INTEGER NOT NULL PRIMARY KEY, guid TEXT, string TEXT NOT NULL UNIQUE);
INSERT INTO `rocpd_stringID` (id, string) VALUES (1, 'hipLaunchKernel'), (2, 'HIP_RUNTIME_API'), (3, 'KERNEL_DISPATCH'),
    (4, 'MEMORY_COPY_HOST_TO_DEVICE'), (5, 'MARKER_CORE_API'), (6, 'step'), (7, '');
CREATE TABLE `rocpd_info_nodeID` (id INTEGER NOT NULL PRIMARY KEY, hostname TEXT, system_name TEXT, release TEXT, version TEXT, hardware_name TEXT);
INSERT INTO `rocpd_info_nodeID` VALUES (1, 'node7', 'Linux', '6.0', '#1', 'x86_64');
CREATE TABLE `rocpd_info_threadID` (id INTEGER NOT NULL PRIMARY KEY, nid INTEGER, pid INTEGER NOT NULL, tid INTEGER NOT NULL, name TEXT);
INSERT INTO `rocpd_info_threadID` VALUES (8, 1, PID, 8, 'worker');
CREATE TABLE `rocpd_info_agentID` (id INTEGER NOT NULL PRIMARY KEY, nid INTEGER, pid INTEGER NOT NULL, type TEXT, absolute_index INTEGER,
    logical_index INTEGER, type_index INTEGER, uuid INTEGER, name TEXT, model_name TEXT, vendor_name TEXT, product_name TEXT);
INSERT INTO `rocpd_info_agentID` VALUES (0, 1, PID, 'CPU', 0, 0, 0, 0, 'EPYC', '', 'AMD', 'EPYC'), (4, 1, PID, 'GPU', 4, 1, 0, 0, 'gfx90a', '', 'AMD', 'MI210');
CREATE TABLE `rocpd_info_queueID` (id INTEGER NOT NULL PRIMARY KEY, nid INTEGER, pid INTEGER NOT NULL, name TEXT);
INSERT INTO `rocpd_info_queueID` VALUES (1, 1, PID, 'Queue 0');
CREATE TABLE `rocpd_info_streamID` (id INTEGER NOT NULL PRIMARY KEY, nid INTEGER, pid INTEGER NOT NULL, name TEXT);
INSERT INTO `rocpd_info_streamID` VALUES (0, 1, PID, 'Default Stream');
CREATE TABLE `rocpd_info_pmcID` (id INTEGER NOT NULL PRIMARY KEY, nid INTEGER, pid INTEGER NOT NULL, name TEXT NOT NULL, symbol TEXT NOT NULL);
INSERT INTO `rocpd_info_pmcID` VALUES (5, 1, PID, 'SQ_WAVES', 'SQ_WAVES');
CREATE TABLE `rocpd_info_kernel_symbolID` (id INTEGER NOT NULL PRIMARY KEY, nid INTEGER, pid INTEGER, code_object_id INTEGER, kernel_name TEXT,
    display_name TEXT, sgpr_count INTEGER, arch_vgpr_count INTEGER, accum_vgpr_count INTEGER);
INSERT INTO `rocpd_info_kernel_symbolID` VALUES (9, 1, PID, 1, '_Z1fPi.kd', 'void f<int>(int*)', 16, 8, 0);
CREATE TABLE `rocpd_eventID` (id INTEGER NOT NULL PRIMARY KEY, category_id INTEGER, stack_id INTEGER, parent_stack_id INTEGER, correlation_id INTEGER);
INSERT INTO `rocpd_eventID` VALUES (1, 2, 11, 0, 0), (2, 3, 11, 11, 77), (3, 3, 12, 12, 0), (4, 5, 13, 0, 0), (5, 5, 14, 0, 0);
CREATE TABLE `rocpd_argID` (id INTEGER NOT NULL PRIMARY KEY, event_id INTEGER NOT NULL, position INTEGER NOT NULL, type TEXT NOT NULL, name TEXT NOT NULL, value TEXT);
INSERT INTO `rocpd_argID` VALUES (1, 4, 0, 'int', 'color', 'red');
CREATE TABLE `rocpd_pmc_eventID` (id INTEGER NOT NULL PRIMARY KEY, event_id INTEGER, pmc_id INTEGER NOT NULL, value REAL);
INSERT INTO `rocpd_pmc_eventID` VALUES (1, 2, 5, 100.0), (2, 2, 5, 28.0), (3, 1, 5, 1.0);
";

/// Rows have times and places of their own.
const OLDER: &str = "
CREATE TABLE `rocpd_regionID` (id INTEGER NOT NULL PRIMARY KEY, nid INTEGER, pid INTEGER NOT NULL, tid INTEGER NOT NULL, start BIGINT NOT NULL, end BIGINT NOT NULL, name_id INTEGER NOT NULL, event_id INTEGER);
INSERT INTO `rocpd_regionID` VALUES (1, 1, PID, 8, 100, 200, 1, 1), (2, 1, PID, 8, 90, 500, 6, 4), (3, 1, PID, 8, 95, 95, 6, 5);
CREATE TABLE `rocpd_kernel_dispatchID` (id INTEGER NOT NULL PRIMARY KEY, nid INTEGER, pid INTEGER NOT NULL, tid INTEGER, agent_id INTEGER NOT NULL, kernel_id INTEGER NOT NULL,
    dispatch_id INTEGER NOT NULL, queue_id INTEGER NOT NULL, stream_id INTEGER NOT NULL, start BIGINT NOT NULL, end BIGINT NOT NULL, private_segment_size INTEGER, group_segment_size INTEGER,
    workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER, grid_size_x INTEGER, grid_size_y INTEGER, grid_size_z INTEGER, region_name_id INTEGER, event_id INTEGER);
INSERT INTO `rocpd_kernel_dispatchID` VALUES (1, 1, PID, 8, 4, 9, 1, 1, 0, 300, 400, 0, 0, 64, 1, 1, 1024, 1, 1, 7, 2);
CREATE TABLE `rocpd_memory_copyID` (id INTEGER NOT NULL PRIMARY KEY, nid INTEGER, pid INTEGER NOT NULL, tid INTEGER, start BIGINT NOT NULL, end BIGINT NOT NULL, name_id INTEGER NOT NULL,
    dst_agent_id INTEGER, dst_address INTEGER, src_agent_id INTEGER, src_address INTEGER, size INTEGER NOT NULL, queue_id INTEGER, stream_id INTEGER, region_name_id INTEGER, event_id INTEGER);
INSERT INTO `rocpd_memory_copyID` VALUES (1, 1, PID, 8, 410, 420, 4, 4, 0, 0, 0, 4096, NULL, 0, NULL, 3);
CREATE TABLE `rocpd_memory_allocateID` (id INTEGER NOT NULL PRIMARY KEY, nid INTEGER, pid INTEGER NOT NULL, tid INTEGER, agent_id INTEGER, type TEXT, level TEXT, start BIGINT NOT NULL, end BIGINT NOT NULL, address INTEGER, size INTEGER NOT NULL, event_id INTEGER);
INSERT INTO `rocpd_memory_allocateID` VALUES (1, 1, PID, 8, 4, 'ALLOC', 'REAL', 10, 20, 4096, 1000, NULL);
";

/// Times stand in a table of their own, places in tracks.
const NEWER: &str = "
CREATE TABLE `rocpd_trackID` (id INTEGER NOT NULL PRIMARY KEY, nid INTEGER NOT NULL, ppid INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER, queue_id INTEGER, stream_id INTEGER, name_id INTEGER);
INSERT INTO `rocpd_trackID` VALUES (1, 1, 1, PID, 8, NULL, NULL, NULL, NULL), (2, 1, 1, PID, 8, 4, 1, 0, NULL), (3, 1, 1, PID, 8, NULL, NULL, 0, NULL), (4, 1, 1, PID, 8, 4, NULL, NULL, NULL);
CREATE TABLE `rocpd_timestampID` (id INTEGER NOT NULL PRIMARY KEY, value BIGINT NOT NULL, phase INTEGER, track_id INTEGER);
INSERT INTO `rocpd_timestampID` (id, value) VALUES (1, 100), (2, 200), (3, 90), (4, 500), (5, 95), (6, 300), (7, 400), (8, 410), (9, 420), (10, 10), (11, 20);
CREATE TABLE `rocpd_regionID` (id INTEGER NOT NULL PRIMARY KEY, track_id INTEGER NOT NULL, name_id INTEGER NOT NULL, start_id INTEGER NOT NULL, end_id INTEGER NOT NULL, event_id INTEGER);
INSERT INTO `rocpd_regionID` VALUES (1, 1, 1, 1, 2, 1), (2, 1, 6, 3, 4, 4), (3, 1, 6, 5, 5, 5);
CREATE TABLE `rocpd_kernel_dispatchID` (id INTEGER NOT NULL PRIMARY KEY, track_id INTEGER NOT NULL, kernel_id INTEGER NOT NULL, dispatch_id INTEGER NOT NULL, start_id INTEGER NOT NULL, end_id INTEGER NOT NULL,
    private_segment_size INTEGER, group_segment_size INTEGER, workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER, grid_size_x INTEGER, grid_size_y INTEGER, grid_size_z INTEGER, region_name_id INTEGER, event_id INTEGER);
INSERT INTO `rocpd_kernel_dispatchID` VALUES (1, 2, 9, 1, 6, 7, 0, 0, 64, 1, 1, 1024, 1, 1, 7, 2);
CREATE TABLE `rocpd_memory_copyID` (id INTEGER NOT NULL PRIMARY KEY, track_id INTEGER NOT NULL, start_id INTEGER NOT NULL, end_id INTEGER NOT NULL, name_id INTEGER NOT NULL, dst_agent_id INTEGER, dst_address INTEGER, src_agent_id INTEGER, src_address INTEGER, size INTEGER NOT NULL, region_name_id INTEGER, event_id INTEGER);
INSERT INTO `rocpd_memory_copyID` VALUES (1, 3, 8, 9, 4, 4, 0, 0, 0, 4096, NULL, 3);
CREATE TABLE `rocpd_memory_allocateID` (id INTEGER NOT NULL PRIMARY KEY, track_id INTEGER NOT NULL, type TEXT, level TEXT, start_id INTEGER NOT NULL, end_id INTEGER NOT NULL, name_id INTEGER NOT NULL, address INTEGER, size INTEGER NOT NULL, event_id INTEGER);
INSERT INTO `rocpd_memory_allocateID` VALUES (1, 4, 'ALLOC', 'REAL', 10, 11, 6, 4096, 1000, NULL);
";

/// The process, whose command line is `command`.
fn process(command: &str) -> String {
    format!(
        "CREATE TABLE `rocpd_info_processID` (id INTEGER NOT NULL PRIMARY KEY, nid INTEGER, ppid INTEGER, pid INTEGER NOT NULL, command TEXT);
        INSERT INTO `rocpd_info_processID` VALUES (PID, 1, 1, PID, '{}');",
        command.replace('\'', "''")
    )
}

/// A folder of databases: for each its name and its tables, with the id of the run and the process.
fn read(databases: &[(&str, &[String], &str, u32)]) -> (StreamLog, Report) {
    let folder = TempDir::new().unwrap();
    for (name, schemas, id, pid) in databases {
        let connection = Connection::open(folder.path().join(name)).unwrap();
        for schema in *schemas {
            let schema = schema
                .replace("ID`", &format!("{id}`"))
                .replace("PID", &pid.to_string());
            connection.execute_batch(&schema).unwrap();
        }
    }
    let mut log = StreamLog::default();
    let report = Inputs::open(&[folder.path()])
        .unwrap()
        .produce(&mut log)
        .unwrap();
    (log, report)
}

/// Checks the events that databases of both generations hold.
fn assert_run(log: &StreamLog, report: &Report, times: usize) {
    assert!(report.is_sound(), "{:?}", report.findings);
    // Each run has a kernel and a copy.
    let ids = (1..).step_by(2).take(times);
    let calls = ids.map(|work| format!("hipLaunchKernel 100..200 submitted [{work}]"));
    assert_eq!(log.of("call "), calls.collect::<Vec<_>>());
    let kernel = "default stream: f<int> 300..400 16 scalar registers dispatch_id=Int(1) kernel_id=Int(9) queue_id=Int(1) SQ_WAVES=128";
    let copy = "default stream: copy host to device 410..420 source=CPU 0 destination=GPU 0";
    let mut work = log.of("work ");
    work.sort_unstable();
    assert_eq!(work, [vec![copy; times], vec![kernel; times]].concat());
    assert_eq!(log.of("slice markers: "), vec!["step 90..500"; times]);
    assert_eq!(log.of("instant "), vec!["step 95"; times]);
    assert_eq!(
        log.of("slice memory allocation: "),
        vec!["alloc real 10..20"; times]
    );
    assert_eq!(
        log.of("value GPU 0 memory in use "),
        vec!["20 Int(1000)"; times]
    );
    let lost = &report.unrepresented;
    assert_eq!(
        lost.iter().map(|one| one.count).sum::<u64>(),
        times as u64,
        "{lost:?}"
    );
}

#[test]
fn both_generations_of_the_schema_say_the_same() {
    for schema in [OLDER, NEWER] {
        let tables = [
            COMMON.to_owned(),
            process("./vector-ops 1"),
            schema.to_owned(),
        ];
        let (log, report) = read(&[("42_results.db", &tables, "_0196_ab", 42)]);
        assert_eq!(log.of("process "), ["42 vector-ops"]);
        assert_run(&log, &report, 1);
    }
}

#[test]
fn a_quote_in_a_command_line_and_tables_without_an_id_harm_nothing() {
    let tables = [
        COMMON.to_owned(),
        process("sh -c \"echo 'it''s'\""),
        OLDER.to_owned(),
    ];
    let (log, report) = read(&[("42_results.db", &tables, "", 42)]);
    assert_eq!(log.of("process "), ["42 sh"]);
    assert_run(&log, &report, 1);
}

#[test]
fn a_process_that_the_database_lacks_is_named_unknown() {
    let tables = [COMMON.to_owned(), OLDER.to_owned()];
    let (log, report) = read(&[("42_results.db", &tables, "_a", 42)]);
    assert_eq!(log.of("process "), ["42 unknown process"]);
    assert_run(&log, &report, 1);
    assert!(
        report
            .remarks
            .iter()
            .any(|one| one.reason.contains("does not describe"))
    );
}

#[test]
fn the_databases_of_a_run_are_one_recording() {
    let older = [COMMON.to_owned(), process("a"), OLDER.to_owned()];
    let newer = [COMMON.to_owned(), process("b"), NEWER.to_owned()];
    let (log, report) = read(&[
        ("42_results.db", &older, "_1", 42),
        ("43_results.db", &newer, "_2", 43),
    ]);
    assert_eq!(log.of("process "), ["42 a", "43 b"]);
    assert_run(&log, &report, 2);
}

#[test]
fn a_time_that_is_missing_is_a_finding() {
    let tables = [
        COMMON.to_owned(),
        process("a"),
        NEWER.replace("(6, 300), ", ""),
    ];
    let (log, report) = read(&[("42_results.db", &tables, "_1", 42)]);
    assert_eq!(log.of("work ").len(), 1);
    assert_eq!(
        report.findings[0].found,
        "6 in row 1 of rocpd_kernel_dispatch_1, column start_id"
    );
}
