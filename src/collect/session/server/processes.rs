//! The processes of a session: those that are recorded, and what is left of them.

use super::ending::ProcessEnd;
use crate::session::memory;
use crate::session::message::{Reason, Refusal};
use gputrail_buffer::clock::TickSource;
use gputrail_buffer::{Buffer, Collector};
use gputrail_capture::Writer;
use gputrail_capture::queue::QueueReader;
use gputrail_record::{NoteKind, count};
use rustix::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

/// Maximum number of processes that were not recorded that are named.
const NAMED: usize = 8;

/// A process that was recorded.
#[derive(Clone, Debug)]
pub struct ProcessCapture {
    /// Number in the session, from 1.
    pub process: u32,
    /// Its process id.
    pub pid: u32,
    /// Why it came.
    pub reason: Reason,
    /// The file with its records.
    pub path: PathBuf,
    /// The end of the process.
    pub end: ProcessEnd,
    /// The system's error number and the length of the capture when it could not grow any more.
    pub capture_error: Option<(i32, u64)>,
    /// Other losses in the capture, if any.
    pub lost: Option<String>,
}

impl ProcessCapture {
    /// Where the capture could take no more, notes that in the capture itself, for the trace. To be
    /// called when there is room again.
    pub fn note_early_end(&self) -> std::io::Result<()> {
        let Some((errno, bytes)) = self.capture_error else {
            return Ok(());
        };
        let reason = std::io::Error::from_raw_os_error(errno);
        let words = format!("the capture ended at byte {bytes}: {reason}");
        memory::note(&self.path, NoteKind::ENDED_EARLY, &words)
    }
}

/// The result of a session.
#[derive(Clone, Debug, Default)]
pub struct SessionResult {
    /// The processes in the order in which they came.
    pub processes: Vec<ProcessCapture>,
    /// Processes that asked and got nothing, with the reason.
    pub refused: Vec<(u32, Refusal)>,
    /// Whether the session began switched off and stayed so.
    pub was_never_on: bool,
    /// Whether processes could not even ask, because gputrail or the system had too many open files.
    pub ran_out_of_files: bool,
}

impl SessionResult {
    /// Why processes were not recorded: a sentence for each reason, with the number of processes and some of their ids.
    pub fn refusals(&self) -> Vec<String> {
        let mut reasons: Vec<(Refusal, Vec<u32>)> = Vec::new();
        for &(pid, refusal) in &self.refused {
            match reasons.iter_mut().find(|(known, _)| *known == refusal) {
                Some((_, pids)) => pids.push(pid),
                None => reasons.push((refusal, vec![pid])),
            }
        }
        let sentence = |(refusal, pids): (Refusal, Vec<u32>)| {
            let verb = if pids.len() == 1 { "was" } else { "were" };
            let named: Vec<String> = pids.iter().take(NAMED).map(u32::to_string).collect();
            let others = if pids.len() > NAMED { ", ..." } else { "" };
            let (number, named) = (pids.len() as u64, named.join(", "));
            format!(
                "{} {verb} not recorded ({named}{others}): {refusal}",
                count(number, "process")
            )
        };
        reasons.into_iter().map(sentence).collect()
    }

    /// Notes in the capture of the first process, for the trace, which processes were not recorded.
    pub fn note_refusals(&self) -> std::io::Result<()> {
        let Some(first) = self.processes.first() else {
            return Ok(());
        };
        let note = |words: String| memory::note(&first.path, NoteKind::MISSING, &words);
        self.refusals().into_iter().try_for_each(note)
    }
}

/// A process that records into memory of ours.
pub(in crate::session) struct Live {
    pub capture: ProcessCapture,
    pub buffer: Buffer,
    pub ticks: TickSource,
    /// The names and clocks that the process has described.
    pub metadata: Arc<Mutex<QueueReader>>,
    pub writer: Writer,
    /// The number of records in the capture.
    pub records: Arc<AtomicU64>,
    pub collector: Collector,
    /// `None` when the system could give none; then the connection's end has to do.
    pub pidfd: Option<OwnedFd>,
    pub connection: Option<OwnedFd>,
}
