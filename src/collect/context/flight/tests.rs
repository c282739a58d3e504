use super::*;
use crate::correlation::{Extra, HostThread};
use gputrail_capture::Reader;
use gputrail_record::{Agent, AgentId, Api, Domain, Kind, Operation, ThreadId};

const CALL: Operation = Operation {
    domain: Domain::SIM,
    number: 1,
};

struct Program {
    board: Arc<Switchboard>,
    host: HostThread,
    folder: tempfile::TempDir,
}

fn program() -> Program {
    let board = Switchboard::new();
    let host = HostThread::new(&board, ThreadId(1), true).unwrap();
    Program {
        board,
        host,
        folder: tempfile::tempdir().unwrap(),
    }
}

impl Program {
    fn options(&self) -> FlightOptions {
        FlightOptions {
            keep_bytes: 16 * 4096,
            block_bytes: 4096,
            threads: 8,
            selection: RecordSelection::kinds(&[Kind::API]),
            folder: self.folder.path().into(),
            ..FlightOptions::default()
        }
    }

    fn recorder(&self) -> FlightRecorder {
        FlightRecorder::start_on(&self.board, self.options()).unwrap()
    }

    fn call(&mut self, times: usize) {
        (0..times).for_each(|_| call(&mut self.host));
    }

    fn dump(&self, recorder: &FlightRecorder, name: &str) -> (Dump, Vec<(u32, u32)>) {
        let dump = recorder.dump(&self.folder.path().join(name)).unwrap();
        let records = records(&dump.path);
        (dump, records)
    }
}

fn call(host: &mut HostThread) {
    let call = host.enter(CALL, 1000, clock::now());
    host.exit(&call, clock::now(), 0, Extra::NONE);
}

/// Thread and sequence number of each call in a capture.
fn records(path: &Path) -> Vec<(u32, u32)> {
    let reader = Reader::open(path).unwrap();
    assert!(reader.ended() && reader.findings().is_empty());
    let (mut chunks, mut records) = (reader.chunks(), Vec::new());
    while let Some(chunk) = chunks.next() {
        let calls = chunk.records().filter_map(|record| record.read::<Api>());
        records.extend(calls.map(|api| (api.thread.0, api.header.sequence)));
    }
    records
}

/// Until something has triggered a dump.
fn first_triggered(recorder: &FlightRecorder) -> Dump {
    loop {
        if let Some(dump) = recorder.triggered().pop() {
            return dump;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_dump_has_what_was_recorded_last_and_the_program_goes_on() {
    let mut program = program();
    let recorder = program.recorder();
    program.call(10_000);
    let (dump, first) = program.dump(&recorder, "first");
    assert_eq!((dump.records, dump.dropped), (first.len() as u64, 0));
    assert!(first.len() < 16 * 64);
    assert!(first.len() > 8 * 64);
    let last = (10_000 - first.len() as u32)..10_000;
    assert!(first.iter().map(|(_, number)| *number).eq(last));
    program.call(1);
    let (_, second) = program.dump(&recorder, "second");
    assert_eq!(second.last(), Some(&(1, 10_000)));
}

#[test]
fn names_never_fall_out() {
    let mut program = program();
    let recorder = program.recorder();
    let name = program.board.names().string("the first agent");
    let agent = Agent {
        name,
        ..Agent::blank()
    };
    assert_eq!(program.board.names().agent(agent), AgentId(1));
    program.call(10_000);
    let (dump, _) = program.dump(&recorder, "dump");
    let reader = Reader::open(&dump.path).unwrap();
    assert_eq!(reader.metadata().string(name), "the first agent");
}

#[test]
fn records_of_an_ended_thread_are_kept_until_newer_ones_need_the_room() {
    let mut program = program();
    let recorder = program.recorder();
    let mut other = HostThread::new(&program.board, ThreadId(2), false).unwrap();
    (0..100).for_each(|_| call(&mut other));
    drop(other);
    program.call(100);
    let of =
        |records: &[(u32, u32)], thread| records.iter().filter(|(of, _)| *of == thread).count();
    let (_, early) = program.dump(&recorder, "early");
    assert_eq!((of(&early, 1), of(&early, 2)), (100, 100));
    program.call(10_000);
    let (_, late) = program.dump(&recorder, "late");
    assert_eq!(of(&late, 2), 0);
    assert_eq!(late.last(), Some(&(1, 10_099)));
}

#[test]
fn only_as_much_time_is_written_as_was_asked_for() {
    let mut program = program();
    let options = FlightOptions {
        keep_time: Some(Duration::ZERO),
        ..program.options()
    };
    let recorder = FlightRecorder::start_on(&program.board, options).unwrap();
    program.call(500);
    let (_, records) = program.dump(&recorder, "dump");
    // The block that is being filled was in use just now.
    assert_eq!(records.last(), Some(&(1, 499)));
    assert!(records.len() <= 64, "{}", records.len());
}

#[test]
fn a_slow_call_triggers_a_dump_that_has_it() {
    let mut program = program();
    let options = FlightOptions {
        slow_call: Some(Duration::from_secs(3600)),
        ..program.options()
    };
    let recorder = FlightRecorder::start_on(&program.board, options).unwrap();
    program.call(10);
    assert_eq!(recorder.triggered(), []);
    let slow = program.host.enter(CALL, 1000, Ticks(1));
    // How long a tick is, is measured again and again.
    let end = Ticks(2 * gputrail_buffer::clock::ticks_of(Duration::from_secs(3600)));
    program.host.exit(&slow, end, 0, Extra::NONE);
    let dump = first_triggered(&recorder);
    assert_eq!(records(&dump.path).last(), Some(&(1, 10)));
}

#[test]
fn a_signal_triggers_a_dump() {
    let mut program = program();
    let options = FlightOptions {
        signal: Some(libc::SIGUSR2),
        ..program.options()
    };
    let recorder = FlightRecorder::start_on(&program.board, options).unwrap();
    program.call(3);
    // SAFETY: the signal has a handler: the recorder's.
    unsafe { libc::raise(libc::SIGUSR2) };
    let dump = first_triggered(&recorder);
    assert_eq!(records(&dump.path), [(1, 0), (1, 1), (1, 2)]);
}

#[test]
fn a_signal_that_cannot_be_had_is_refused() {
    let program = program();
    for signal in [0, -1, 65, libc::SIGKILL] {
        let options = FlightOptions {
            signal: Some(signal),
            ..program.options()
        };
        let error = FlightRecorder::start_on(&program.board, options).unwrap_err();
        assert!(matches!(error, ToolError::Signal { .. }), "{error}");
    }
}

#[test]
fn a_dump_follows_no_link_and_goes_over_nothing() {
    let program = program();
    let recorder = program.recorder();
    let path = program.folder.path().join("there");
    std::fs::write(&path, "the program's").unwrap();
    let error = recorder.dump(&path).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&path).unwrap(), b"the program's");
}

#[test]
fn a_flight_recorder_of_the_parent_keeps_nothing_in_a_forked_child() {
    let program = program();
    let recorder = program.recorder();
    let path = program.folder.path().join("child.gputrail");
    // SAFETY: the child ends without going back; its copy of the recorder is the only one that it drops.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let failed = recorder.dump(&path).is_err() && recorder.triggered().is_empty();
            drop(std::ptr::read(&recorder));
            libc::_exit(i32::from(!failed));
        }
        let mut status = 0;
        libc::waitpid(child, &mut status, 0);
        assert_eq!(status, 0, "the child failed or was killed");
    }
    assert!(!path.exists());
    recorder.dump(&path).unwrap();
}
