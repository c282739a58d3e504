//! A real capture, damaged in every way in which a crash or a disk damages files: undamaged parts are read, and damaged
//! ones are reported with their position.

use std::fs;
use std::ops::Range;
use std::path::Path;

use gputrail_capture::Reader;
use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;

use crate::command::{TestDir, well};
use crate::random::Random;

/// Size of the file's header, without which a file is not a capture.
const FILE_HEADER: u64 = 64;
/// Size of a chunk's header.
const CHUNK_HEADER: u64 = 48;
/// Number of captures that are damaged in each way.
const TRIES: u64 = 300;

/// A run of records: the position of its chunk in the file, and the records.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    span: Range<u64>,
    lane: u32,
    records: Vec<u8>,
}

/// The runs of a capture, and the positions at which it could not be read.
fn read(capture: &Path) -> (Vec<Run>, Vec<u64>) {
    let reader = Reader::open(capture).unwrap_or_else(|error| panic!("{error}"));
    let mut chunks = reader.chunks();
    let mut runs = Vec::new();
    while let Some(chunk) = chunks.next() {
        let records: Vec<&[u8]> = chunk.records().map(|record| record.bytes()).collect();
        let records = records.concat();
        runs.push(Run {
            span: chunk.file_offset..chunk.file_offset + CHUNK_HEADER + records.len() as u64,
            lane: chunk.lane,
            records,
        });
    }
    let findings = reader.findings().iter().chain(chunks.findings());
    (runs, findings.map(|finding| finding.offset).collect())
}

/// A capture of several threads in small blocks, and its bytes.
fn capture(dir: &TestDir) -> Vec<u8> {
    let lives = dir.program("lives");
    let options = ["-q", "--capture", "--buffers", "1M", "--buffer-size", "4K"];
    let arguments = ["400", "threads", "4"];
    well(&mut dir.record_with(&options, Driver::Threaded, &lives, &arguments));
    fs::read(dir.join("run.gputrail")).expect("the capture was kept")
}

#[test]
fn damage_costs_the_chunks_it_hits_and_is_reported_where_it_is() {
    needs!(damage_costs_the_chunks_it_hits_and_is_reported_where_it_is:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let whole = capture(&dir);
    let (runs, findings) = read(&dir.join("run.gputrail"));
    assert!(runs.len() > 50, "{} chunks are few", runs.len());
    assert_eq!(findings, [0; 0]);

    let damaged = dir.join("damaged.gputrail");
    let mut random = Random::new();
    for attempt in 0..TRIES {
        let at = FILE_HEADER + random.up_to(whole.len() as u64 - FILE_HEADER - 1);
        let mut bytes = whole.clone();
        // One bit, or a hole: zeros, as a disk returns for a sector that was never written.
        let hole = match attempt % 2 {
            0 => {
                bytes[at as usize] ^= 1 << random.up_to(7);
                at..at + 1
            }
            _ => {
                let length = 1 + random.up_to(10_000);
                let end = (at + length).min(whole.len() as u64);
                bytes[at as usize..end as usize].fill(0);
                at..end
            }
        };
        if bytes == whole {
            continue;
        }
        fs::write(&damaged, bytes).expect("the file can be written");
        let (read, findings) = read(&damaged);
        let hit = |run: &&Run| run.span.start < hole.end && hole.start < run.span.end;
        let spared: Vec<&Run> = runs.iter().filter(|run| !hit(run)).collect();
        let read: Vec<&Run> = read.iter().filter(|run| !hit(run)).collect();
        assert_eq!(read, spared, "{hole:?}");
        assert!(!findings.is_empty(), "{hole:?} was not noticed");
        // The positions of chunks of names are not known here.
        let chunk = runs.iter().find(|run| run.span.contains(&hole.start));
        let chunk = chunk.map_or(0, |run| run.span.start);
        let near = |offset: &&u64| (chunk..=hole.end).contains(*offset);
        assert!(
            findings.iter().any(|at| near(&at)),
            "{hole:?}: {findings:?}"
        );
    }

    let ended = run(&mut dir.gputrail(["convert", "damaged.gputrail", "-o", "rest.pftrace"]));
    assert!(ended.stderr.contains("at byte"), "{}", ended.stderr);
}

#[test]
fn a_capture_cut_at_any_byte_is_read_up_to_its_last_whole_chunk() {
    needs!(a_capture_cut_at_any_byte_is_read_up_to_its_last_whole_chunk:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let whole = capture(&dir);
    let (runs, _) = read(&dir.join("run.gputrail"));
    let cut = dir.join("cut.gputrail");
    let mut random = Random::new();
    let anywhere = (0..TRIES).map(|_| random.up_to(whole.len() as u64 - FILE_HEADER));
    let anywhere: Vec<u64> = anywhere.map(|at| FILE_HEADER + at).collect();
    // And around the ends of chunks, where errors matter most.
    let edges = runs.iter().rev().take(20);
    let edges = edges.flat_map(|run| run.span.end - 9..=run.span.end + 9);
    for length in anywhere.into_iter().chain(edges) {
        let length = length.min(whole.len() as u64);
        fs::write(&cut, &whole[..length as usize]).expect("the file can be written");
        let (read, findings) = read(&cut);
        let left: Vec<Run> = runs
            .iter()
            .filter(|run| run.span.end <= length)
            .cloned()
            .collect();
        assert_eq!(read, left, "cut at {length}");
        let torn = runs.iter().find(|run| run.span.contains(&length));
        if let Some(torn) = torn.filter(|torn| torn.span.start < length) {
            assert!(
                findings.contains(&torn.span.start),
                "cut at {length}: {findings:?}"
            );
        }
    }
}
