//! Databases built after both generations of the schema.

use std::path::PathBuf;

use rusqlite::Connection;
use tempfile::TempDir;

use crate::import::log::StreamLog;
use crate::import::{InputFormat, Inputs, Report};
use gputrail_trace::model::{Call, Consumer, Producer, Value, Work};

/// The tables that both generations have.
const COMMON: &str = "
CREATE TABLE rocpd_metadata (id integer PRIMARY KEY, tag varchar(4096), value varchar(4096));
CREATE TABLE rocpd_string (id integer PRIMARY KEY, string varchar(4096));
INSERT INTO rocpd_string VALUES (1, ''), (2, 'hipLaunchKernel'), (3, 'KernelExecution'), (4, 'void nn::gemm<float>(float*)'),
    (5, 'hipMemcpyAsync'), (6, 'CopyHostToDevice'), (7, 'UserMarker'), (8, 'step 3'), (9, 'hipGraphLaunch'), (10, 'Task'),
    (11, '_Z3addPf.kd'), (12, 'hcc_activity_callback'), (13, 'count=2'), (14, 'SQ_WAVES'), (15, 'main'), (16, 'forward'),
    (17, 'hipExtModuleLaunchKernel'), (18, 'aten::mm'), (19, 'hip'), (20, 'ptr=0x7f | size=0x10');
CREATE TABLE rocpd_api_ops (id integer PRIMARY KEY, api_id integer, op_id integer);
INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (101, 201), (102, 202), (103, 203), (103, 204), (104, 205);
CREATE TABLE rocpd_kernelapi (api_ptr_id integer PRIMARY KEY, stream varchar(18), gridX integer, gridY integer, gridZ integer,
    workgroupX integer, workgroupY integer, workgroupZ integer, groupSegmentSize integer, privateSegmentSize integer, kernelName_id integer);
INSERT INTO rocpd_kernelapi VALUES (101, '0x0', 16, 2, 1, 256, 1, 1, 64, 8, 4), (104, '0x55', 1024, 1, 1, 256, 1, 1, 0, 0, 11);
CREATE TABLE rocpd_copyapi (api_ptr_id integer PRIMARY KEY, stream varchar(18), size integer, width integer, height integer, kind integer,
    dst varchar(18), src varchar(18), dstDevice integer, srcDevice integer, sync bool, pinned bool);
INSERT INTO rocpd_copyapi VALUES (102, '0x0', 4096, '', '', 1, '0x7f00', '0x5500', 0, 0, 0, 1);
CREATE TABLE rocpd_monitor (id integer PRIMARY KEY, deviceType varchar(16), deviceId integer, monitorType varchar(16), start integer,
    \"end\" integer, value varchar(255));
INSERT INTO rocpd_monitor (deviceType, deviceId, monitorType, start, \"end\", value) VALUES
    ('gpu', 2, 'sclk', 1000, 1500, '134'), ('gpu', 2, 'sclk', 1500, 1900, '2100'), ('gpu', 2, 'power', 1000, 1900, '95.5');
";

/// The second generation, with the tables that tools add.
const SECOND: &str = "
INSERT INTO rocpd_metadata (tag, value) VALUES ('schema_version', '2');
CREATE TABLE rocpd_op (id integer PRIMARY KEY, gpuId integer, queueId integer, sequenceId integer, completionSignal varchar(18),
    start integer, \"end\" integer, description_id integer, opType_id integer);
INSERT INTO rocpd_op VALUES (201, 2, 0, 0, '', 1110, 1150, 4, 3), (202, 2, 0, 0, '', 1210, 1220, 1, 6),
    (203, 2, 0, 0, '', 1310, 1320, 11, 10), (204, 2, 0, 0, '', 1320, 1330, 11, 10), (205, 2, 0, 0, '', 1410, 1420, 11, 3);
CREATE TABLE rocpd_api (id integer PRIMARY KEY, pid integer, tid integer, start integer, \"end\" integer, apiName_id integer, args_id integer);
INSERT INTO rocpd_api VALUES (101, 42, 43, 1100, 1105, 2, 1), (102, 42, 43, 1200, 1205, 5, 20), (103, 42, 43, 1300, 1305, 9, 1),
    (104, 42, 43, 1400, 1405, 17, 1), (105, 42, 43, 1000, 1600, 7, 8), (106, 42, 43, 1050, 1050, 7, 8), (107, 42, 44, 1700, 1800, 12, 13);
CREATE TABLE ext_autogradapi (api_ptr_id integer PRIMARY KEY, autogradName_id integer, seq integer, op_id integer, sizes varchar(4096),
    input_op_ids varchar(4096));
INSERT INTO ext_autogradapi VALUES (101, 18, '', 7, '[[2, 3]]', '');
CREATE TABLE ext_callstack (id integer PRIMARY KEY, parent_id integer, child_id integer, depth integer, cpu_time integer, gpu_time integer);
INSERT INTO ext_callstack (parent_id, child_id, depth) VALUES (105, 101, 1), (105, 102, 1);
";

/// The third generation, in which calls have a domain, and texts that do not repeat stand in a table of their own.
const THIRD: &str = "
INSERT INTO rocpd_metadata (tag, value) VALUES ('gpu_stride', '1000'), ('pid_stride', '10000000'), ('schema_version', '3');
CREATE TABLE rocpd_ustring (id integer PRIMARY KEY, string varchar(4096));
INSERT INTO rocpd_ustring VALUES (1, 'step 3'), (2, 'ptr=0x7f | size=0x10'), (3, 'count=2');
CREATE TABLE rocpd_op (id integer PRIMARY KEY, gpuId integer, queueId integer, sequenceId integer, start integer, \"end\" integer,
    description_id integer, opType_id integer);
INSERT INTO rocpd_op VALUES (201, 2, 0, 0, 1110, 1150, 4, 3), (202, 2, 0, 0, 1210, 1220, 1, 6), (203, 2, 0, 0, 1310, 1320, 11, 10),
    (204, 2, 0, 0, 1320, 1330, 11, 10), (205, 2, 0, 0, 1410, 1420, 11, 3);
CREATE TABLE rocpd_api (id integer PRIMARY KEY, pid integer, tid integer, start integer, \"end\" integer, apiName_id integer,
    category_id integer, domain_id integer, args_id integer);
INSERT INTO rocpd_api VALUES (101, 42, 43, 1100, 1105, 2, 1, 19, 0), (102, 42, 43, 1200, 1205, 5, 1, 19, 2), (103, 42, 43, 1300, 1305, 9, 1, 19, 0),
    (104, 42, 43, 1400, 1405, 17, 1, 19, 0), (105, 42, 43, 1000, 1600, 7, 1, 7, 1), (106, 42, 43, 1050, 1050, 7, 1, 7, 1),
    (107, 42, 44, 1700, 1800, 12, 1, 1, 3);
CREATE TABLE rocpd_counter (id integer PRIMARY KEY, value real, op_id integer, name_id integer);
INSERT INTO rocpd_counter (value, op_id, name_id) VALUES (128, 201, 14);
CREATE TABLE rocpd_stackframe (id integer PRIMARY KEY, api_ptr_id integer, depth integer, name_id integer);
INSERT INTO rocpd_stackframe (api_ptr_id, depth, name_id) VALUES (101, 1, 15), (101, 0, 16);
";

/// A database with these tables.
fn database(schemas: &[&str]) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("trace.rpd");
    let connection = Connection::open(&path).unwrap();
    for schema in schemas {
        connection.execute_batch(schema).unwrap();
    }
    (folder, path)
}

fn read(schemas: &[&str]) -> (StreamLog, Report) {
    let (_folder, path) = database(schemas);
    let mut log = StreamLog::default();
    let inputs = Inputs::open(&[path]).unwrap();
    assert_eq!(inputs.recordings()[0].format(), InputFormat::Rpd);
    let report = inputs.produce(&mut log).unwrap();
    (log, report)
}

#[test]
fn calls_work_markers_and_clocks_of_both_generations_are_there() {
    for (schema, more) in [(SECOND, ""), (THIRD, " SQ_WAVES=128")] {
        let (log, report) = read(&[COMMON, schema]);
        assert!(report.is_sound(), "{:?}", report.findings);
        assert!(
            report.unrepresented.is_empty(),
            "{:?}",
            report.unrepresented
        );
        assert_eq!(log.of("process "), ["42 process"]);
        assert_eq!(
            log.of("call "),
            [
                "hipLaunchKernel 1100..1105 submitted [1]",
                "hipMemcpyAsync 1200..1205 submitted [2]",
                "hipGraphLaunch 1300..1305 submitted [3, 4]",
                "hipExtModuleLaunchKernel 1400..1405 submitted [5]",
            ]
        );
        assert_eq!(
            log.of("work "),
            [
                &format!("queue 0: nn::gemm<float> 1110..1150 stream_handle=0x0{more}")[..],
                "queue 0: copy host to device 1210..1220 stream_handle=0x0 destination=0x7f00 source=0x5500 pinned=Int(1)",
                "queue 0: _Z3addPf 1310..1320 type=Task",
                "queue 0: _Z3addPf 1320..1330 type=Task",
                "queue 0: _Z3addPf 1410..1420 stream_handle=0x55",
            ]
        );
        assert_eq!(log.of("slice markers: "), ["step 3 1000..1600"]);
        assert_eq!(log.of("instant "), ["step 3 1050"]);
        assert!(
            log.lines
                .iter()
                .any(|line| line.ends_with("hcc_activity_callback 1700..1800"))
        );
        assert_eq!(
            log.of("value GPU 2 sclk (MHz) "),
            ["1000 Int(134)", "1500 Int(2100)", "1900 Int(2100)"]
        );
        assert_eq!(
            log.of("value GPU 2 power "),
            ["1000 Double(95.5)", "1900 Double(95.5)"]
        );
        assert_eq!(report.counts.kernels, 4);
    }
}

/// Details that the lines of a [`StreamLog`] leave out: launches and sizes of work, and arguments of calls.
#[derive(Default)]
struct Details(Vec<String>);

impl Consumer for Details {
    gputrail_trace::leave_out!(
        clocks attributes agents process track queue counters slice end instant value counter_values samples stack
        stack_samples loss note
    );

    fn call(&mut self, call: &Call<'_>) -> std::io::Result<()> {
        let names = call.function.parameters.iter().map(|one| &*one.name);
        let arguments = names.zip(call.arguments).map(|(name, value)| match value {
            Value::Text(text) => format!(" {name}={text}"),
            other => format!(" {name}={other:?}"),
        });
        let arguments: String = arguments.collect();
        self.0.push(format!("{}{arguments}", call.function.name));
        Ok(())
    }

    fn work(&mut self, work: &Work<'_>) -> std::io::Result<()> {
        let launch = work.launch.map(|launch| (launch.grid, launch.workgroup));
        let resources = work.resources;
        self.0.push(format!(
            "{} {launch:?} local {} private {} bytes {}",
            work.stage.name, resources.static_local, resources.private, work.bytes
        ));
        Ok(())
    }
}

/// The details of a database whose names begin with `name`.
fn details(schemas: &[&str], name: &str) -> Vec<String> {
    let (_folder, path) = database(schemas);
    let mut details = Details::default();
    Inputs::open(&[path])
        .unwrap()
        .produce(&mut details)
        .unwrap();
    let lines = details.0.into_iter();
    lines.filter(|line| line.starts_with(name)).collect()
}

#[test]
fn sizes_of_launches_are_workgroups_unless_the_function_or_the_recorder_counts_work_items() {
    let of_sdk = "INSERT INTO rocpd_string VALUES (30, 'RocprofDataSource::buffer_callback')";
    for (more, items) in [("", "[4096, 2, 1]"), (of_sdk, "[16, 2, 1]")] {
        assert_eq!(
            details(&[COMMON, SECOND, more], "nn::gemm"),
            [format!(
                "nn::gemm<float> Some(({items}, [256, 1, 1])) local 64 private 8 bytes 0"
            )]
        );
        assert_eq!(
            details(&[COMMON, SECOND, more], "_Z3addPf"),
            [
                "_Z3addPf None local 0 private 0 bytes 0",
                "_Z3addPf None local 0 private 0 bytes 0",
                "_Z3addPf Some(([1024, 1, 1], [256, 1, 1])) local 0 private 0 bytes 0",
            ]
        );
    }
    assert_eq!(
        details(&[COMMON, SECOND], "copy"),
        ["copy host to device None local 0 private 0 bytes 4096"]
    );
}

#[test]
fn what_tools_add_about_calls_becomes_their_arguments() {
    assert_eq!(
        details(&[COMMON, SECOND], "hipLaunchKernel"),
        ["hipLaunchKernel autogradName_id=aten::mm op_id=Int(7) sizes=[[2, 3]]"]
    );
    assert_eq!(
        details(&[COMMON, THIRD], "hipLaunchKernel"),
        ["hipLaunchKernel stack=forward < main"]
    );
    for schema in [SECOND, THIRD] {
        assert_eq!(
            details(&[COMMON, schema], "hipMemcpyAsync"),
            ["hipMemcpyAsync args=ptr=0x7f | size=0x10"]
        );
    }
    let (_, report) = read(&[COMMON, SECOND]);
    let derived = report.remarks.iter().find(|one| one.count == 2);
    let derived = derived.unwrap().reason.as_ref();
    assert!(derived.starts_with("rows of tables that follow from the others"));
}

#[test]
fn a_long_text_of_many_calls_is_whole_once() {
    let more = "UPDATE rocpd_string SET string = printf('%.*c', 5000, 'x') WHERE id = 1;
        INSERT INTO rocpd_api VALUES (900, 42, 43, 1900, 1905, 5, 1);";
    let lengths = |name| {
        let lines = details(&[COMMON, SECOND, more], name);
        lines.iter().map(String::len).collect::<Vec<_>>()
    };
    // The text is that of four calls; the first is another one.
    assert_eq!(
        lengths("hipGraphLaunch"),
        ["hipGraphLaunch args=".len() + 4096]
    );
    let (_, report) = read(&[COMMON, SECOND, more]);
    let cut = report
        .remarks
        .iter()
        .find(|one| one.reason.contains("more than 4 KiB"));
    assert_eq!(cut.unwrap().count, 3);
}

#[test]
fn databases_of_several_machines_keep_them_apart() {
    let moved = THIRD
        .replace("42, 43", "10000042, 10000043")
        .replace("(201, 2,", "(201, 1002,");
    let (log, report) = read(&[COMMON, &moved]);
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(
        log.of("process "),
        ["42 process of machine 1", "42 process"]
    );
    assert_eq!(log.of("call ").len(), 4);
}

#[test]
fn what_has_no_call_or_no_place_is_said() {
    let (log, report) = read(&[
        COMMON,
        SECOND,
        "DELETE FROM rocpd_api WHERE id = 102;
        UPDATE rocpd_api SET start = 'soon' WHERE id = 105;
        INSERT INTO rocpd_api (id) VALUES (950);
        UPDATE rocpd_monitor SET value = 'hot' WHERE monitorType = 'power';
        CREATE TABLE rocpd_future (id integer, op_id integer);
        INSERT INTO rocpd_future VALUES (1, 2), (3, 4);",
    ]);
    let findings: Vec<_> = report.findings.iter().map(|one| &one.found[..]).collect();
    assert_eq!(
        findings,
        [
            "\"soon\" in row 4 of rocpd_api, column start",
            "NULL in row 7 of rocpd_api, column pid",
            "\"hot\" in row 3 of rocpd_monitor, column value",
        ]
    );
    let lost = report
        .unrepresented
        .iter()
        .map(|one| (one.count, &*one.reason));
    assert_eq!(
        lost.collect::<Vec<_>>(),
        [(2, "rows of rocpd_future, which is not known")]
    );
    // The copy is there, in the only process.
    assert_eq!(log.of("work ").len(), 5);
    assert_eq!(log.of("call ").len(), 3);
}

#[test]
fn work_on_cuda_has_its_context_and_its_stream() {
    let (log, report) = read(&["
CREATE TABLE rocpd_string (id integer PRIMARY KEY, string varchar(4096));
INSERT INTO rocpd_string VALUES (1, ''), (2, 'cudaLaunchKernel'), (3, 'ConcurrentKernel'), (4, 'add(float*)'), (5, 'Memcpy'), (6, 'cudaMemcpy'),
    (7, 'cuLaunchKernel');
CREATE TABLE rocpd_api (id integer PRIMARY KEY, pid integer, tid integer, start integer, \"end\" integer, apiName_id integer, args_id integer);
INSERT INTO rocpd_api VALUES (1, 42, 42, 100, 110, 2, 1), (2, 42, 42, 200, 210, 6, 1), (3, 42, 42, 300, 310, 7, 1);
CREATE TABLE rocpd_op (id integer PRIMARY KEY, gpuId integer, queueId integer, sequenceId integer, start integer, \"end\" integer,
    description_id integer, opType_id integer);
INSERT INTO rocpd_op VALUES (1, 0, 1, 7, 120, 130, 4, 3), (2, 0, 1, 13, 202, 208, 1, 5);
CREATE TABLE rocpd_api_ops (id integer PRIMARY KEY, api_id integer, op_id integer);
INSERT INTO rocpd_api_ops VALUES (1, 1, 1), (2, 2, 2);
CREATE TABLE rocpd_copyapi (api_ptr_id integer PRIMARY KEY, size integer, kind integer);
INSERT INTO rocpd_copyapi VALUES (2, 64, 2);
"]);
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(
        log.of("work "),
        [
            "stream 7: add 120..130",
            "stream 13: copy device to host 202..208"
        ]
    );
    assert_eq!(log.of("call ").len(), 3);
}
