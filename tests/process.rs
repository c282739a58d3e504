//! One process, its threads and its forked children: each records to its own capture, and no call is recorded twice.

use gputrail_buffer::clock;
use gputrail_capture::{Reader, Writer};
use gputrail_collect::correlation::Extra;
use gputrail_collect::operations::OperationInfo;
use gputrail_collect::process::{self, AttachOutcome};
use gputrail_collect::recorder::{Recorder, RecorderOptions};
use gputrail_collect::source::Source;
use gputrail_collect::switchboard::{Observed, Switchboard};
use gputrail_record::{Api, Domain, Operation, OperationGroup, ProcessId};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

static DIRECTORY: OnceLock<tempfile::TempDir> = OnceLock::new();

const OPERATION: Operation = Operation {
    domain: Domain::SIM,
    number: 1,
};

fn capture_of(process: u32) -> PathBuf {
    DIRECTORY
        .get()
        .unwrap()
        .path()
        .join(format!("{process}.gputrail"))
}

/// A source with one operation.
struct OneCall;

impl Source for OneCall {
    fn domain(&self) -> Domain {
        Domain::SIM
    }

    fn operations(&self) -> Vec<OperationInfo> {
        vec![OperationInfo {
            operation: OPERATION,
            name: "simCall",
            group: OperationGroup::OTHER,
            arguments: &[],
            keeps_arguments: false,
            observed: Observed::No,
        }]
    }
}

fn record(board: &Arc<Switchboard>) -> Option<Recorder> {
    let ticks = clock::init();
    let process = std::process::id();
    let header = Recorder::file_header(ticks, ProcessId(process));
    let writer = Writer::create(&capture_of(process), &header).ok()?;
    Recorder::start_on(board, &RecorderOptions::default(), None, writer).ok()
}

/// The work of a source around a call. `false` if the call was passed through.
fn call() -> bool {
    let frame = 0u8;
    let interest = process::interest(OPERATION);
    if interest.is_none() {
        return false;
    }
    let thread = process::current().unwrap();
    let call = thread
        .with(|host| host.enter_wanted(OPERATION, interest, &raw const frame as usize, clock::now))
        .unwrap();
    thread
        .with(|host| host.exit(&call, clock::now(), 0, Extra::NONE))
        .unwrap()
}

fn calls_in(path: &Path) -> usize {
    let reader = Reader::open(path).unwrap();
    let mut chunks = reader.chunks();
    let mut calls = 0;
    while let Some(chunk) = chunks.next() {
        calls += chunk
            .records()
            .filter_map(|record| record.read::<Api>())
            .count();
    }
    assert!(reader.ended(), "{}", path.display());
    calls
}

/// Runs `child` in a forked process and returns its id and exit status.
fn in_child(child: impl FnOnce() -> i32) -> (u32, i32) {
    // SAFETY: the child only calls what this library promises to work after fork, and leaves by _exit.
    unsafe {
        match libc::fork() {
            0 => libc::_exit(child()),
            pid => {
                let mut status = 0;
                assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
                (pid as u32, status)
            }
        }
    }
}

#[test]
fn a_process_its_threads_and_its_children_are_recorded_once_each() {
    DIRECTORY.set(tempfile::tempdir().unwrap()).unwrap();
    assert!(!call(), "nothing is recorded before the process attaches");
    assert_eq!(process::attach_with(&OneCall, record), AttachOutcome::Now);
    let again = process::attach_with(&OneCall, record);
    assert_eq!(again, AttachOutcome::Before, "a process attaches once");
    assert!(
        process::interest(Operation {
            domain: Domain::OPENCL,
            number: 2000
        })
        .is_none(),
        "only the domains named are recorded"
    );

    (0..1000).for_each(|_| assert!(call()));
    for _ in 0..50 {
        std::thread::spawn(|| (0..10).for_each(|_| assert!(call())))
            .join()
            .unwrap();
    }

    let (recorded, status) = in_child(|| {
        if !(0..500).all(|_| call()) {
            return 1;
        }
        let finished = process::end().is_some_and(|recorder| recorder.finish().is_ok());
        if finished && !call() { 0 } else { 2 }
    });
    assert_eq!(status, 0);
    assert_eq!(calls_in(&capture_of(recorded)), 500);

    let (silent, status) =
        in_child(|| i32::from(process::end().is_some() || process::recorder().is_some()));
    assert_eq!(status, 0, "a child that made no call has nothing to end");
    assert!(!capture_of(silent).exists());

    // A signal handler that interrupts a write finds the thread busy.
    let thread = process::current().unwrap();
    assert_eq!(thread.with(|_| thread.with(|_| ())), Some(None));
    assert_eq!(process::interrupted(), 1);

    (0..100).for_each(|_| assert!(call()));
    let recorder = process::end().unwrap();
    assert!(process::end().is_none());
    recorder.finish().unwrap();
    assert!(!call());
    assert_eq!(process::late_calls(), 1);
    assert_eq!(
        calls_in(&capture_of(std::process::id())),
        1000 + 50 * 10 + 100
    );
}
