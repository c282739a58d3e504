//! Files made after what rocprof 1 and roctracer write.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::import::damages;
use crate::import::log::StreamLog;
use crate::import::{InputFormat, Inputs, Report};
use gputrail_trace::model::Producer;

const TABLE: &str = "\"Index\",\"KernelName\",\"gpu-id\",\"queue-id\",\"queue-index\",\"pid\",\"tid\",\"grd\",\"wgr\",\"lds\",\"scr\",\"arch_vgpr\",\"accum_vgpr\",\"sgpr\",\"wave_size\",\"sig\",\"obj\",\"SQ_WAVES\",\"L2CacheHit\",\"DispatchNs\",\"BeginNs\",\"EndNs\",\"CompleteNs\",\"DurationNs\"
0,\"scale(float*, float, int) [clone .kd]\",1,0,2,42,43,65536,256,64,8,20,4,16,64,\"0x0\",\"0x7f7b\",1024,96.5,1000,1100,1200,1250,100
1,\"_Z3addPf.kd\",1,0,4,42,43,128,64,0,0,4,0,16,64,\"0x0\",\"0x7f7c\",None,12.0,1300,1400,1450,1460,50
";

const HIP: &str = "1000:1100 42:43 hipLaunchKernel(function_address(0x20), numBlocks(4), stream(nil)) kernel=scale(float*, float) :1
1200:1300 42:43 hipMemcpy(dst(0x7f), src(0x55), sizeBytes(64)) :2
";
const OPERATIONS: &str = "1050:1090 0:0 hcCommandKernel:1:42
1220:1280 0:0 CopyHostToDevice:2:42
1281:1282 0:1 hcCommandMarker:3:42
";
const MARKERS: &str = "900 42:43 0:0:\"begin\"
950 42:43 1:0:\"step 1\"
960 42:43 3:7:\"whole\"
1400 42:43 2:0:\"\"
1500 42:44 4:7:\"\"
";
const COPIES: &str = "2000:2100 async-copy:1:42
";
const HSA: &str = "1990:1995 42:43 hsa_amd_memory_async_copy(dst, src) :1
";

const EVENTS: &str = "{ \"traceEvents\":[{}
,{\"args\":{\"name\":\"CPU HIP API\"},\"ph\":\"M\",\"pid\":2,\"name\":\"process_name\",\"sort_index\":1}
,{\"args\":{\"name\":\"COPY\"},\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"sort_index\":2}
,{\"args\":{\"name\":\"GPU0\"},\"ph\":\"M\",\"pid\":6,\"name\":\"process_name\",\"sort_index\":3}
,{\"ph\":\"X\",\"name\":\"hipLaunchKernel\",\"pid\":\"2\",\"tid\":\"43\",\"ts\":\"10\",\"dur\":\"4\",
  \"args\":{
    \"BeginNs\":\"10100\",
    \"EndNs\":\"14900\",
    \"pid\":\"42\",
    \"tid\":\"43\",
    \"Name\":\"hipLaunchKernel\",
    \"args\":\"( kernel(scale(float*)) stream(0))\",
    \"Data\":\"\",
    \"DurationNs\":\"4800\"
  }
}
,{\"ph\":\"X\",\"name\":\"scale(float*)\",\"pid\":\"6\",\"tid\":\"0\",\"ts\":\"16\",\"dur\":\"3\",
  \"args\":{
    \"BeginNs\":\"16200\",
    \"EndNs\":\"19300\",
    \"dev-id\":\"0\",
    \"queue-id\":\"1\",
    \"Name\":\"scale(float*)\",
    \"pid\":\"42\",
    \"tid\":\"43\",
    \"stream-id\":\"0\",
    \"Data\":\"\",
    \"DurationNs\":\"3100\"
  }
}
,{\"ts\":12,\"ph\":\"s\",\"cat\":\"DataFlow\",\"id\":0,\"pid\":2,\"tid\":43,\"name\":\"dep\"}
,{\"ts\":16,\"ph\":\"t\",\"cat\":\"DataFlow\",\"id\":0,\"pid\":6,\"tid\":0,\"name\":\"dep\"}
],
\"otherData\": {
    \"Name\": \"gfx90a\"
  }
}";

fn files(files: &[(&str, &str)]) -> (TempDir, Vec<PathBuf>) {
    let folder = TempDir::new().unwrap();
    let paths = files.iter().map(|(name, text)| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    });
    let paths = paths.collect();
    (folder, paths)
}

fn read(paths: &[PathBuf], format: InputFormat) -> (StreamLog, Report) {
    let inputs = Inputs::open(paths).unwrap();
    assert_eq!(inputs.recordings().len(), 1);
    assert_eq!(inputs.recordings()[0].format(), format);
    let mut log = StreamLog::default();
    let report = inputs.produce(&mut log).unwrap();
    (log, report)
}

fn read_text(text: &str, format: InputFormat) -> (StreamLog, Report) {
    let (_folder, paths) = files(&[("results", text)]);
    read(&paths, format)
}

#[test]
fn kernels_of_the_table_have_their_counters() {
    for table in [
        TABLE.to_owned(),
        TABLE
            .replace('\"', "")
            .replace("scale(float*, float, int)", "scale"),
    ] {
        let (log, report) = read_text(&table, InputFormat::RocprofTable);
        assert!(report.is_sound(), "{:?}", report.findings);
        assert!(report.unrepresented.is_empty());
        assert_eq!(log.of("process "), ["42 process"]);
        assert_eq!(
            log.of("work "),
            [
                "queue 0: scale 1100..1200 4 accumulation registers 16 scalar registers grid_size=Int(65536) workgroup_size=Int(256) wave_size=Int(64) queue_index=Int(2) dispatched_ns=Int(1000) completed_ns=Int(1250) object=0x7f7b SQ_WAVES=1024 L2CacheHit=96.5",
                "queue 0: add 1400..1450 16 scalar registers grid_size=Int(128) workgroup_size=Int(64) wave_size=Int(64) queue_index=Int(4) dispatched_ns=Int(1300) completed_ns=Int(1460) object=0x7f7c L2CacheHit=12",
            ]
        );
    }
}

#[test]
fn lists_of_a_folder_are_one_recording() {
    let (_folder, paths) = files(&[
        ("async_copy_trace.txt", COPIES),
        ("hcc_ops_trace.txt", OPERATIONS),
        ("hip_api_trace.txt", HIP),
        ("hsa_api_trace.txt", HSA),
        ("roctx_trace.txt", MARKERS),
    ]);
    let (log, report) = read(&paths, InputFormat::Roctracer);
    assert!(report.is_sound(), "{:?}", report.findings);
    assert!(report.unrepresented.is_empty());
    assert_eq!(
        log.of("call "),
        [
            "hipLaunchKernel 1000..1100 submitted [1]",
            "hipMemcpy 1200..1300 submitted [2]",
            "hsa_amd_memory_async_copy 1990..1995 submitted [4]",
        ]
    );
    assert_eq!(
        log.of("work "),
        [
            "queue 0: scale 1050..1090",
            "queue 0: copy host to device 1220..1280",
            "queue 1: barrier 1281..1282",
            "copies of HSA: copy 2000..2100",
        ]
    );
    assert_eq!(log.of("instant "), ["begin 900"]);
    assert_eq!(log.of("slice markers: "), ["step 1 950..1400"]);
    assert_eq!(log.of("slice ranges: "), ["whole 960..1500"]);
}

#[test]
fn operations_of_older_versions_name_no_process() {
    let (_folder, paths) = files(&[
        ("hcc_ops_trace.txt", &OPERATIONS.replace(":42\n", "\n")),
        ("hip_api_trace.txt", HIP),
    ]);
    let (log, report) = read(&paths, InputFormat::Roctracer);
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(log.of("process "), ["42 process"]);
    assert_eq!(log.of("work ")[0], "queue 0: scale 1050..1090");
}

#[test]
fn trace_events_have_exact_times_and_arrows_tie_them() {
    let (log, report) = read_text(EVENTS, InputFormat::RocprofEvents);
    assert!(report.is_sound(), "{:?}", report.findings);
    assert!(
        report.unrepresented.is_empty(),
        "{:?}",
        report.unrepresented
    );
    assert_eq!(
        log.of("call "),
        ["hipLaunchKernel 10100..14900 submitted [1]"]
    );
    assert_eq!(
        log.of("work "),
        ["stream 0: scale 16200..19300 queue_id=Int(1)"]
    );
    assert_eq!((report.arrows, report.loose_arrows), (2, 0));
}

/// The tables of a database, as rocprof's Python makes them.
#[cfg(feature = "sqlite")]
const DATABASE: &str = "
CREATE TABLE rocTX (\"BeginNs\" INTEGER, \"EndNs\" INTEGER, \"pid\" INTEGER, \"tid\" INTEGER, \"Name\" TEXT, \"Index\" INTEGER,
    \"__section\" INTEGER, \"__lane\" INTEGER);
INSERT INTO rocTX VALUES (900, 901, 42, 43, 'begin', 0, 0, 43), (950, 1400, 42, 43, 'step 1', 1, 0, 43), (960, 1500, 42, 43, 'whole', 2, 0, 0);
CREATE TABLE HIP (\"BeginNs\" INTEGER, \"EndNs\" INTEGER, \"pid\" INTEGER, \"tid\" INTEGER, \"Name\" TEXT, \"args\" TEXT, \"Index\" INTEGER,
    \"Data\" TEXT, \"__section\" INTEGER, \"__lane\" INTEGER, DurationNs INTEGER);
INSERT INTO HIP VALUES (1000, 1100, 42, 43, 'hipLaunchKernel', '( kernel(scale(float*)) stream(0))', 1, '', 2, 43, 100),
    (1200, 1300, 42, 43, 'hipMemcpy', '( sizeBytes(64))', 2, '', 2, 43, 100);
CREATE TABLE HSA (\"BeginNs\" INTEGER, \"EndNs\" INTEGER, \"pid\" INTEGER, \"tid\" INTEGER, \"Name\" TEXT, \"args\" TEXT, \"Index\" INTEGER,
    \"Data\" TEXT, \"__section\" INTEGER, \"__lane\" INTEGER, DurationNs INTEGER);
INSERT INTO HSA VALUES (1010, 1020, 42, 43, 'hsa_queue_create', '(<agent>)', 1, '', 3, 43, 10), (1040, 1040, 42, 43, 'hsa_dispatch', '', 2, '', 3, 43, 0);
CREATE TABLE OPS (\"BeginNs\" INTEGER, \"EndNs\" INTEGER, \"dev-id\" INTEGER, \"queue-id\" INTEGER, \"Name\" TEXT, \"pid\" INTEGER, \"tid\" INTEGER,
    \"roctx-range\" TEXT, \"stream-id\" INTEGER, \"Index\" INTEGER, \"Data\" TEXT, \"__section\" INTEGER, \"__lane\" INTEGER);
INSERT INTO OPS VALUES (1050, 1090, 0, 1, 'scale(float*)', 42, 43, 'step 1', 2, 1, '', 6, 2), (1281, 1282, 0, 1, '\"<barrier packet>\"', 42, 43, '', 2, 3, '', 518, 2);
CREATE TABLE COPY (\"BeginNs\" INTEGER, \"EndNs\" INTEGER, \"dev-id\" INTEGER, \"queue-id\" INTEGER, \"Name\" TEXT, \"pid\" INTEGER, \"tid\" INTEGER,
    \"roctx-range\" TEXT, \"stream-id\" INTEGER, \"Index\" INTEGER, \"Data\" TEXT, \"__section\" INTEGER, \"__lane\" INTEGER);
INSERT INTO COPY VALUES (1220, 1280, 0, 0, 'CopyHostToDevice', 42, 43, 'CopyHostToDevice', 0, 2, '', 1, 0);
CREATE TABLE KERN (\"Index\" INTEGER, \"KernelName\" TEXT, \"gpu-id\" INTEGER, \"queue-id\" INTEGER, \"pid\" INTEGER, \"tid\" INTEGER, \"grd\" INTEGER,
    \"wgr\" INTEGER, \"lds\" INTEGER, \"scr\" INTEGER, \"vgpr\" INTEGER, \"sgpr\" INTEGER, \"SQ_WAVES\" INTEGER, \"DispatchNs\" INTEGER,
    \"BeginNs\" INTEGER, \"EndNs\" INTEGER, \"CompleteNs\" INTEGER);
INSERT INTO KERN VALUES (0, '\"scale(float*)\"', 0, 1, 42, 43, 512, 64, 0, 0, 8, 16, 8, 1040, 1050, 1090, 1095),
    (1, '\"other(int) [clone .kd]\"', 0, 1, 42, 43, 64, 64, 0, 0, 8, 16, '1.5', 1600, 1610, 1620, 1630);
";

#[cfg(feature = "sqlite")]
fn database(sql: &str) -> (TempDir, Vec<PathBuf>) {
    let (folder, _) = files(&[]);
    let path = folder.path().join("results.db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch(sql).unwrap();
    (folder, vec![path])
}

#[cfg(feature = "sqlite")]
#[test]
fn a_kernel_of_two_tables_of_a_database_is_one() {
    let (_folder, paths) = database(DATABASE);
    let (log, report) = read(&paths, InputFormat::RocprofDatabase);
    assert!(report.is_sound(), "{:?}", report.findings);
    assert!(
        report.unrepresented.is_empty(),
        "{:?}",
        report.unrepresented
    );
    assert_eq!(
        log.of("call "),
        [
            "hipLaunchKernel 1000..1100 submitted [2]",
            "hsa_queue_create 1010..1020 submitted []",
            "hipMemcpy 1200..1300 submitted [3]",
        ]
    );
    assert_eq!(
        log.of("work "),
        [
            "stream 2: scale 1050..1090 16 scalar registers grid_size=Int(512) workgroup_size=Int(64) dispatched_ns=Int(1040) completed_ns=Int(1095) queue_id=Int(1) roctx_range=step 1 SQ_WAVES=8",
            "stream 0: copy host to device 1220..1280",
            "stream 2: barrier 1281..1282 queue_id=Int(1)",
            "queue 1: other 1610..1620 16 scalar registers grid_size=Int(64) workgroup_size=Int(64) dispatched_ns=Int(1600) completed_ns=Int(1630) SQ_WAVES=1.5",
        ]
    );
    assert_eq!(log.of("instant "), ["begin 900", "hsa_dispatch 1040"]);
    assert_eq!(log.of("slice markers: "), ["step 1 950..1400"]);
    assert_eq!(log.of("slice ranges: "), ["whole 960..1500"]);
}

#[test]
fn damage_is_told_and_the_rest_is_read() {
    let table = [
        TABLE.replace("1100,1200", "soon,1200"),
        TABLE.replace("1024,96.5", "many,96.5"),
        TABLE.replace(",64,8,20", ",64,-8,20"),
        TABLE.replace("0,\"scale", "\"scale"),
        format!("{TABLE}2,\"cut\",1,0"),
    ];
    for text in table {
        let (log, report) = read_text(&text, InputFormat::RocprofTable);
        assert_eq!(report.findings.len(), 1, "{text}");
        assert!(!log.of("work ").is_empty(), "{text}");
    }
    let lists = [
        OPERATIONS.replace("hcCommandMarker:3:42", "hcCommandMarker"),
        OPERATIONS.replace("1220:1280", "1220:99999999999999999999"),
        OPERATIONS.replace("2:42\n", "2:42\n\u{fffd}\n"),
    ];
    for text in lists {
        let (log, report) = read_text(&text, InputFormat::Roctracer);
        assert_eq!(report.findings.len(), 1, "{text}");
        assert!(log.of("work ").len() >= 2, "{text}");
    }
    let (_, report) = read_text(
        &MARKERS.replace("1:0:\"step 1\"", "5:0:\"x\""),
        InputFormat::Roctracer,
    );
    assert_eq!(report.findings.len(), 2, "{:?}", report.findings);
    let events = [
        EVENTS.replace("\"16200\"", "\"x\""),
        EVENTS.replace("\"dev-id\":\"0\"", "\"dev-id\":\"-1\""),
        EVENTS[..EVENTS.find("otherData").unwrap()].to_owned(),
    ];
    for text in events {
        let (log, report) = read_text(&text, InputFormat::RocprofEvents);
        assert!(!report.is_sound(), "{text}");
        assert_eq!(log.of("call ").len(), 1);
    }
    let (_, report) = read_text(
        &EVENTS.replace("\"GPU0\"", "\"Q\""),
        InputFormat::RocprofEvents,
    );
    assert_eq!(report.unrepresented.len(), 1);
}

#[test]
fn what_damage_costs_is_said() {
    let tables = [TABLE, EVENTS].map(|text| damages::unsaid(text, false));
    let lists = [HIP, OPERATIONS, MARKERS, COPIES].map(|text| damages::unsaid(text, true));
    let unsaid = [tables.concat(), lists.concat()].concat();
    assert!(unsaid.is_empty(), "{unsaid:#?}");
}

#[test]
fn changed_files_make_no_panic() {
    let mut random: u64 = 88_172_645_463_325_252;
    for text in [TABLE, OPERATIONS, MARKERS, EVENTS] {
        for _ in 0..300 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let mut bytes = text.as_bytes().to_vec();
            let place = random as usize % bytes.len();
            bytes[place] = (random >> 32) as u8;
            if random >> 40 & 3 == 0 {
                bytes.truncate(place);
            }
            let folder = TempDir::new().unwrap();
            let path = folder.path().join("results");
            fs::write(&path, &bytes).unwrap();
            if let Ok(inputs) = Inputs::open(&[path]) {
                let _ = inputs.produce(&mut StreamLog::default()).unwrap();
            }
        }
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn of_a_folder_the_database_is_read_and_its_copies_are_named() {
    let (folder, _) = database(DATABASE);
    for (name, text) in [
        ("results.json", EVENTS),
        ("results.csv", TABLE),
        ("other.csv", TABLE),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let inputs = Inputs::open(&[folder.path()]).unwrap();
    let formats = inputs
        .recordings()
        .iter()
        .map(|recording| recording.format());
    let formats: Vec<_> = formats.collect();
    assert_eq!(
        formats,
        [InputFormat::RocprofTable, InputFormat::RocprofDatabase]
    );
    let report = inputs.produce(&mut StreamLog::default()).unwrap();
    assert_eq!(report.unread.len(), 2);
    assert!(report.unread[0].1.contains("results.db"));
}
