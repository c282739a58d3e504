//! Exports to Arrow, which pyarrow made after those of Nsight Systems.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::import::log::StreamLog;
use crate::import::{InputFormat, Inputs, Report};
use gputrail_trace::model::Producer;

const EXPORT: &[u8] = include_bytes!("../../../../tests/data/nsys/report.arrow");

fn read(path: &Path, format: InputFormat) -> (StreamLog, Report) {
    let inputs = Inputs::open(&[path]).unwrap();
    assert_eq!(inputs.recordings().len(), 1);
    assert_eq!(inputs.recordings()[0].format(), format);
    let mut log = StreamLog::default();
    let report = inputs.produce(&mut log).unwrap();
    for line in &mut log.lines {
        *line = line.replace("170000000000000", "");
    }
    (log, report)
}

fn read_bytes(bytes: &[u8]) -> (StreamLog, Report) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("report.arrow");
    fs::write(&path, bytes).unwrap();
    read(&path, InputFormat::NsightArrow)
}

fn assert_whole(log: &StreamLog, report: &Report) {
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
            "cudaLaunchKernel 1000..2000 submitted [1]",
            "cudaMemcpy 5000..9000 submitted [2]",
        ]
    );
    assert_eq!(
        log.of("work "),
        [
            "stream 7: scale 2500..4500",
            "stream 7: copy device to host 6000..8000",
        ]
    );
    assert_eq!(log.of("slice markers: "), ["step 0500..9500"]);
    assert_eq!(log.of("instant "), ["mark 0600"]);
}

/// The places where a table begins, and the end of the file.
fn begins() -> Vec<usize> {
    let end_of_table = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    let ends = EXPORT.windows(8).enumerate();
    let ends = ends.filter(|(_, bytes)| **bytes == end_of_table);
    std::iter::once(0)
        .chain(ends.map(|(at, _)| at + 8))
        .collect()
}

#[test]
fn a_file_of_all_tables_is_read() {
    let (log, report) = read_bytes(EXPORT);
    assert_whole(&log, &report);
}

#[test]
fn files_of_a_table_each_are_one_export() {
    let folder = TempDir::new().unwrap();
    for part in begins().windows(2) {
        let table = &EXPORT[part[0]..part[1]];
        let name = |name: &str| {
            table
                .windows(name.len())
                .any(|bytes| bytes == name.as_bytes())
        };
        let name = ["StringIds", "TARGET_INFO_SESSION_START_TIME", "NVTX_EVENTS"]
            .into_iter()
            .find(|one| name(one))
            .map_or_else(|| format!("CUPTI_{}", part[0]), str::to_owned);
        fs::write(folder.path().join(name + ".arrow"), table).unwrap();
    }
    let (log, report) = read(folder.path(), InputFormat::NsightArrowTable);
    assert_whole(&log, &report);
}

#[test]
fn files_that_were_cut_or_changed_are_read_as_far_as_they_go() {
    let mut random: u64 = 88_172_645_463_325_252;
    let first = begins()[1];
    for round in 0..600_u64 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut bytes = EXPORT.to_vec();
        // The first table tells the format.
        let place = first + random as usize % (bytes.len() - first);
        match round % 3 {
            0 => bytes.truncate(place),
            1 => bytes[place] ^= 1 << (random >> 60 & 7),
            _ => bytes[place..]
                .iter_mut()
                .take(16)
                .for_each(|byte| *byte = 0xff),
        }
        let (log, report) = read_bytes(&bytes);
        let is_cut = round % 3 == 0 && !begins().contains(&place);
        assert!(!is_cut || !report.is_sound(), "{round} {place}");
        assert!(log.of("work ").len() <= 2, "{round} {place}");
    }
}
