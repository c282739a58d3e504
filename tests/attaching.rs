//! Sources that attach from several threads at once, while one of them begins the recording.

use gputrail_collect::operations::OperationInfo;
use gputrail_collect::process::{self, AttachOutcome};
use gputrail_collect::source::Source;
use gputrail_collect::switchboard::Switchboard;
use gputrail_record::Domain;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock};

/// A source that counts nothing: it says when it begins.
struct Quiet(Domain, OnceLock<Mutex<Sender<Domain>>>);

impl Source for Quiet {
    fn domain(&self) -> Domain {
        self.0
    }

    fn operations(&self) -> Vec<OperationInfo> {
        Vec::new()
    }

    fn begin(&self, _: &Switchboard) -> std::io::Result<()> {
        let begun = self.1.get().unwrap().lock().unwrap();
        begun.send(self.0).map_err(std::io::Error::other)
    }
}

static FIRST: Quiet = Quiet(Domain::SIM, OnceLock::new());
static SECOND: Quiet = Quiet(Domain::OPENCL, OnceLock::new());
/// What the beginning of the recording waits for, and what it says before.
static WAITS: OnceLock<(Mutex<Receiver<()>>, Sender<()>)> = OnceLock::new();

#[test]
fn a_source_that_arrives_while_a_recording_takes_long_to_begin_is_attached_by_the_thread_that_begins_it()
 {
    let (begun, begins) = channel();
    for source in [&FIRST, &SECOND] {
        let _ = source.1.set(Mutex::new(begun.clone()));
    }
    let (go_on, waits) = channel();
    let (waiting, is_waiting) = channel();
    assert!(WAITS.set((Mutex::new(waits), waiting)).is_ok());
    // Sources observe where there is a tool.
    process::begin_for_tool().unwrap();
    let first = std::thread::spawn(|| {
        process::attach_with(&FIRST, |_| {
            let (waits, waiting) = WAITS.get().unwrap();
            waiting.send(()).unwrap();
            waits.lock().unwrap().recv().unwrap();
            None
        })
    });
    is_waiting.recv().unwrap();
    assert_eq!(process::attach(&SECOND), AttachOutcome::Later);
    go_on.send(()).unwrap();
    assert_eq!(first.join().unwrap(), AttachOutcome::Now);
    let begun: Vec<Domain> = begins.try_iter().collect();
    assert_eq!(begun, [Domain::SIM, Domain::OPENCL]);
    assert_eq!(process::attach(&SECOND), AttachOutcome::Before);
}
