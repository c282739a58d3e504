//! Exports to a folder of Parquet files.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use tempfile::TempDir;

use crate::import::log::StreamLog;
use crate::import::{InputFormat, Inputs, Report};
use gputrail_trace::model::Producer;

/// The process 42, and its thread 43.
const PROCESS: i64 = 0x1_00002a_000000;
const THREAD: i64 = PROCESS + 43;

enum Column<'c> {
    Int(&'c str, &'c [i64]),
    Text(&'c str, &'c [&'c str]),
}

/// Writes a table.
fn write(folder: &Path, table: &str, columns: &[Column<'_>]) {
    let fields = columns.iter().map(|column| match column {
        Column::Int(name, _) => format!("required int64 {name};"),
        Column::Text(name, _) => format!("required binary {name} (UTF8);"),
    });
    let schema = format!("message schema {{ {} }}", fields.collect::<String>());
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let file = File::create(folder.join(format!("{table}.parquet"))).unwrap();
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
    let mut rows = writer.next_row_group().unwrap();
    for column in columns {
        let mut writer = rows.next_column().unwrap().unwrap();
        match column {
            Column::Int(_, values) => {
                writer
                    .typed::<Int64Type>()
                    .write_batch(values, None, None)
                    .unwrap();
            }
            Column::Text(_, values) => {
                let values: Vec<ByteArray> = values.iter().map(|text| (*text).into()).collect();
                writer
                    .typed::<ByteArrayType>()
                    .write_batch(&values, None, None)
                    .unwrap();
            }
        }
        writer.close().unwrap();
    }
    rows.close().unwrap();
    writer.close().unwrap();
}

/// An export as a folder.
fn export() -> TempDir {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    write(
        path,
        "StringIds",
        &[
            Column::Int("id", &[1, 2]),
            Column::Text("value", &["cudaLaunchKernel_v7000", "scale"]),
        ],
    );
    write(
        path,
        "TARGET_INFO_SESSION_START_TIME",
        &[Column::Int("utcEpochNs", &[1_700_000_000_000_000_000])],
    );
    write(
        path,
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        &[
            Column::Int("start", &[100]),
            Column::Int("end", &[110]),
            Column::Int("globalTid", &[THREAD]),
            Column::Int("correlationId", &[7]),
            Column::Int("nameId", &[1]),
        ],
    );
    write(
        path,
        "CUPTI_ACTIVITY_KIND_KERNEL",
        &[
            Column::Int("start", &[112, 140]),
            Column::Int("end", &[130, 160]),
            Column::Int("deviceId", &[0, 0]),
            Column::Int("contextId", &[1, 1]),
            Column::Int("streamId", &[7, 7]),
            Column::Int("correlationId", &[7, 8]),
            Column::Int("globalPid", &[PROCESS, PROCESS]),
            Column::Int("shortName", &[2, 2]),
        ],
    );
    write(
        path,
        "NVTX_EVENTS",
        &[
            Column::Int("start", &[90]),
            Column::Int("end", &[200]),
            Column::Int("eventType", &[59]),
            Column::Int("globalTid", &[THREAD]),
            Column::Text("text", &["step 1"]),
        ],
    );
    write(path, "SCHED_EVENTS", &[Column::Int("start", &[1, 2, 3])]);
    folder
}

fn read(folder: &Path) -> (StreamLog, Report) {
    let inputs = Inputs::open(&[folder]).unwrap();
    assert_eq!(inputs.recordings().len(), 1);
    assert_eq!(inputs.recordings()[0].format(), InputFormat::NsightParquet);
    let mut log = StreamLog::default();
    let report = inputs.produce(&mut log).unwrap();
    for line in &mut log.lines {
        *line = line.replace("1700000000000000", "");
    }
    (log, report)
}

#[test]
fn a_folder_of_tables_is_one_export() {
    let folder = export();
    let (log, report) = read(folder.path());
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(log.of("process "), ["42 process"]);
    assert_eq!(log.of("call "), ["cudaLaunchKernel 100..110 submitted [1]"]);
    assert_eq!(
        log.of("work "),
        ["stream 7: scale 112..130", "stream 7: scale 140..160"]
    );
    assert_eq!(log.of("slice markers: "), ["step 1 090..200"]);
    let counted: Vec<_> = report
        .unrepresented
        .iter()
        .map(|one| (&*one.reason, one.count))
        .collect();
    assert_eq!(
        counted,
        [("rows of SCHED_EVENTS, which has no start, end and name", 3)]
    );
}

#[test]
fn a_parquet_file_without_the_texts_beside_it_is_of_no_known_format() {
    let folder = export();
    fs::remove_file(folder.path().join("StringIds.parquet")).unwrap();
    assert!(Inputs::open(&[folder.path()]).is_err());
}

#[test]
fn damaged_files_are_told_and_the_other_tables_are_read() {
    let folder = export();
    let path = folder.path().join("CUPTI_ACTIVITY_KIND_KERNEL.parquet");
    let whole = fs::read(&path).unwrap();
    let mut random: u64 = 88_172_645_463_325_252;
    for round in 0..300_u64 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut bytes = whole.clone();
        // The magic number stays.
        let place = 4 + random as usize % (bytes.len() - 4);
        match round % 3 {
            0 => bytes.truncate(place),
            1 => bytes[place] ^= 1 << (random >> 60 & 7),
            _ => bytes[place..]
                .iter_mut()
                .take(16)
                .for_each(|byte| *byte = 0xff),
        }
        fs::write(&path, &bytes).unwrap();
        let (log, report) = read(folder.path());
        assert_eq!(log.of("call ").len(), 1, "{round}");
        let is_told = !report.is_sound() || round % 3 == 1;
        assert!(log.of("work ").len() == 2 || is_told, "{round} {place}");
    }
}

#[test]
fn the_table_of_texts_alone_is_no_export() {
    let folder = export();
    let texts = folder.path().join("StringIds.parquet");
    let (_, report) = read(&texts);
    let [finding] = &report.findings[..] else {
        panic!("{:?}", report.findings);
    };
    assert_eq!(finding.found, "the table of texts alone");
}
