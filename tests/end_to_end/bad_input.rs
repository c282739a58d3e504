//! Malformed files: errors name the file and the byte at which it is malformed, and everything else in it is read.

use std::fs;

use gputrail_harness::program::run;

use crate::command::{TestDir, well};

/// The trace and the capture of a demo, and the bytes of both.
struct Demo {
    dir: TestDir,
    trace: Vec<u8>,
    capture: Vec<u8>,
}

impl Demo {
    fn new() -> Demo {
        let dir = TestDir::new();
        well(&mut dir.gputrail(["demo", "-q", "--capture", "-o", "run.pftrace"]));
        Demo {
            trace: fs::read(dir.join("run.pftrace")).expect("the trace"),
            capture: fs::read(dir.join("run.gputrail")).expect("the capture"),
            dir,
        }
    }

    /// The output of `gputrail info` about a file.
    fn holds(&self, file: &str) -> String {
        let ended = run(&mut self.dir.gputrail(["info", file]));
        assert!(ended.code() <= 1, "{file}: {}", ended.stderr);
        let text = ended.text();
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with("holds"));
        line.unwrap_or_else(|| panic!("{text}")).to_owned()
    }

    /// Checks that `gputrail check` finds `what` at byte `offset` of a trace of these bytes.
    #[track_caller]
    fn found(&self, trace: &[u8], offset: usize, what: &str) {
        fs::write(self.dir.join("bad.pftrace"), trace).expect("room");
        let ended = run(&mut self.dir.gputrail(["check", "bad.pftrace"]));
        let text = ended.text();
        assert_eq!(ended.code(), 1, "{text}{}", ended.stderr);
        let begin = format!("bad.pftrace: at byte {offset}: ");
        let found = |line: &str| line.starts_with(&begin) && line.contains(what);
        assert!(text.lines().any(found), "{begin}{what}: {text}");
    }

    /// [`found`](Demo::found) for bytes after the complete trace, which is read as if they were not there.
    #[track_caller]
    fn found_behind(&self, more: &[u8], what: &str) {
        self.found(&[&self.trace, more].concat(), self.trace.len(), what);
        assert_eq!(self.holds("bad.pftrace"), self.holds("run.pftrace"));
    }

    /// Checks that a command refuses a capture of these bytes with these words, and leaves no file.
    #[track_caller]
    fn refused(&self, capture: &[u8], words: &str) {
        fs::write(self.dir.join("bad.gputrail"), capture).expect("room");
        let ended = run(&mut self
            .dir
            .gputrail(["convert", "bad.gputrail", "-o", "out.pftrace"]));
        assert_eq!(ended.code(), 125, "{}", ended.stderr);
        let begin = "gputrail: bad.gputrail";
        let named = |line: &str| line.starts_with(begin) && line.contains(words);
        assert!(
            ended.stderr.lines().any(named),
            "{begin}: {words}: {}",
            ended.stderr
        );
        assert!(self.dir.files("out.pftrace").is_empty());
    }

    /// Checks that a trace is made of a capture of these bytes, with a message about `words` at byte `offset`.
    #[track_caller]
    fn converted_but_for(&self, capture: &[u8], offset: usize, words: &str) {
        fs::write(self.dir.join("bad.gputrail"), capture).expect("room");
        let ended = run(&mut self
            .dir
            .gputrail(["convert", "bad.gputrail", "-o", "rest.pftrace"]));
        assert_eq!(ended.code(), 1, "something was damaged: {}", ended.stderr);
        let at = format!("at byte {offset}: ");
        let told = |line: &str| {
            line.contains("bad.gputrail") && line.contains(&at) && line.contains(words)
        };
        assert!(
            ended.stderr.lines().any(told),
            "{at}{words}: {}",
            ended.stderr
        );
        assert!(
            !self.holds("rest.pftrace").contains(" 0 slices"),
            "the rest is there"
        );
    }

    /// The position of the first chunk in the second half of the capture.
    fn chunk(&self) -> usize {
        let middle = self.capture.len() / 2;
        let found = self.capture[middle..]
            .windows(4)
            .position(|bytes| bytes == b"GTCK");
        middle + found.expect("a chunk")
    }
}

/// A field of bytes; with number 1, a packet.
fn bytes(number: u64, contents: &[u8]) -> Vec<u8> {
    let mut field = varint(number << 3 | 2);
    field.extend(varint(contents.len() as u64));
    field.extend(contents);
    field
}

fn number(number: u64, value: u64) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

#[test]
fn a_trace_that_is_cut() {
    let demo = Demo::new();
    let middle = demo.trace.len() / 2;
    fs::write(demo.dir.join("bad.pftrace"), &demo.trace[..middle]).expect("room");
    let ended = run(&mut demo.dir.gputrail(["check", "bad.pftrace"]));
    let text = ended.text();
    let finding = text.lines().find(|line| line.contains("the trace was cut"));
    let finding = finding.unwrap_or_else(|| panic!("{text}"));
    assert!(
        finding.starts_with("bad.pftrace: at byte "),
        "where the packet begins: {finding}"
    );
    assert!(demo.holds("bad.pftrace").contains(" kernels"));
}

#[test]
fn a_trace_that_is_empty() {
    Demo::new().found(&[], 0, "the trace is empty");
}

#[test]
fn a_file_that_is_not_a_trace() {
    let letter = b"This is a letter, not a trace.";
    Demo::new().found(letter, 0, "this is not a Perfetto trace");
}

#[test]
fn a_trace_of_a_newer_version_is_read_but_for_what_is_new() {
    let demo = Demo::new();
    let new = bytes(1, &[bytes(3_000, b"new"), number(10, 77)].concat());
    fs::write(
        demo.dir.join("bad.pftrace"),
        [&demo.trace[..], &new].concat(),
    )
    .expect("room");
    well(&mut demo.dir.gputrail(["check", "bad.pftrace"]));
    assert_eq!(demo.holds("bad.pftrace"), demo.holds("run.pftrace"));
}

#[test]
fn a_group_that_is_compressed_wrongly() {
    let demo = Demo::new();
    let torn = bytes(1, &bytes(50, b"this is no zlib stream"));
    demo.found_behind(&torn, "a group whose compression is damaged");
}

#[test]
fn a_gzipped_trace_that_is_cut() {
    let demo = Demo::new();
    let plain = demo.dir.join("run.pftrace");
    well(std::process::Command::new("gzip").arg("-k").arg(&plain));
    let packed = fs::read(demo.dir.join("run.pftrace.gz")).expect("gzip made it");
    fs::write(
        demo.dir.join("bad.pftrace"),
        &packed[..packed.len() * 2 / 3],
    )
    .expect("room");
    let ended = run(&mut demo.dir.gputrail(["check", "bad.pftrace"]));
    assert_eq!(ended.code(), 1);
    let text = ended.text();
    let torn = |line: &str| line.contains("at byte ") && line.contains("the rest cannot be read");
    assert!(text.lines().any(torn), "{text}");
    assert!(demo.holds("bad.pftrace").contains(" kernels"));
}

#[test]
fn tracks_that_are_their_own_parents() {
    let demo = Demo::new();
    let track = |uuid, parent| {
        bytes(
            1,
            &bytes(60, &[number(1, uuid), number(5, parent)].concat()),
        )
    };
    let trace = [&demo.trace[..], &track(1, 2), &track(2, 1)].concat();
    demo.found(&trace, demo.trace.len(), "is its own ancestor");
    assert_eq!(demo.holds("bad.pftrace"), demo.holds("run.pftrace"));
}

#[test]
fn a_packet_of_an_absurd_length() {
    let absurd = [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f];
    Demo::new().found_behind(&absurd, "a packet of 4294967295 bytes");
}

#[test]
fn an_event_at_an_absurd_time() {
    let demo = Demo::new();
    let event = bytes(11, &[number(9, 3), number(11, 1), bytes(23, b"x")].concat());
    let packet = [
        number(8, u64::MAX),
        number(58, 6),
        number(10, 1),
        event.clone(),
    ];
    let trace = [&demo.trace[..], &bytes(1, &packet.concat())].concat();
    demo.found(
        &trace,
        demo.trace.len(),
        "an impossible time of 18446744073709551615 ns",
    );
}

#[test]
fn a_capture_that_is_cut() {
    let demo = Demo::new();
    let chunk = demo.chunk();
    demo.converted_but_for(&demo.capture[..chunk + 60], chunk, "the file was cut");
}

#[test]
fn a_capture_that_is_empty() {
    Demo::new().refused(&[], "is an empty file; expected one of: capture");
}

#[test]
fn a_capture_of_a_newer_version() {
    let demo = Demo::new();
    let mut newer = demo.capture.clone();
    newer[8] = 99;
    demo.refused(&newer, "capture of format version 99");
}

#[test]
fn a_file_that_is_not_a_capture() {
    let letter = b"This is a letter, and long enough for the header that a capture begins with.";
    Demo::new().refused(letter, "expected one of: capture");
}

#[test]
fn a_chunk_of_an_absurd_length() {
    let demo = Demo::new();
    let chunk = demo.chunk();
    let mut absurd = demo.capture.clone();
    absurd[chunk + 8..chunk + 12].fill(0xff);
    demo.converted_but_for(&absurd, chunk, "bytes outside of chunks");
}
