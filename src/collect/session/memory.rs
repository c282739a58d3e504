//! The memory of a process, which the parent owns: made, and read when the process is gone.

use super::{ProcessEnd, signal_name};
use crate::recorder::FIRST_BLOCKS;
use gputrail_buffer::platform::sync::lock_std;
use gputrail_buffer::{Collector, Layout, Mapping, MappingError};
use gputrail_capture::queue::{ChunkQueue, QUEUE_BYTES, QueueReader};
use gputrail_capture::{self as capture, Cause, Writer};
use gputrail_record::NoteKind;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Mutex;

/// How the memory shows in /proc/PID/maps.
const MAPS_NAME: &[u8] = b"/memfd:gputrail-pool";

/// The memory for a process: a pool, and behind it the queue of its metadata. No process has it yet.
pub(super) struct ProcessPool {
    pub file: OwnedFd,
    pub mapping: Mapping,
    pub metadata: QueueReader,
}

/// Makes a pool. All of its pages exist from the start and it cannot shrink: touching it never
/// kills whoever maps it.
pub(super) fn make(layout: &Layout) -> io::Result<ProcessPool> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let name = "gputrail-pool";
    let file = match rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        // A kernel before 6.3.
        Err(Errno::INVAL) => rustix::fs::memfd_create(name, flags)?,
        result => result?,
    };
    let pool_bytes = layout.total_bytes() as u64;
    let bytes = pool_bytes + QUEUE_BYTES as u64;
    rustix::fs::ftruncate(&file, bytes)?;
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    let queue = ChunkQueue::map(file.as_raw_fd(), pool_bytes)?;
    let mapping = Mapping::create(file.as_raw_fd(), *layout).map_err(|error| match error {
        MappingError::Map { source, .. } => source,
        other => io::Error::other(other),
    })?;
    // Pages of blocks that are soon in use come zeroed here, and not in the program's time.
    mapping.populate(0..(2 * FIRST_BLOCKS).min(layout.blocks()));
    Ok(ProcessPool {
        file,
        mapping,
        metadata: QueueReader::new(queue),
    })
}

/// Takes to the capture what a process left in its memory, and says there how it ended.
pub(super) fn save(
    collector: &Collector,
    mapping: &Mapping,
    metadata: &Mutex<QueueReader>,
    writer: &Writer,
    end: ProcessEnd,
) {
    let (kind, text) = match end {
        ProcessEnd::Finished => {
            collector.finish();
            capture::write_open_calls(mapping, writer);
            // An error stays with the writer.
            let _ = writer.end();
            return;
        }
        ProcessEnd::Died(Some(signal)) => (
            NoteKind::DIED,
            format!("killed by signal {signal} ({})", signal_name(signal)),
        ),
        ProcessEnd::Exited(code) => (
            NoteKind::EXITED,
            format!(
                "the process ended with exit code {code} without ending its recording, by _exit or quick_exit"
            ),
        ),
        ProcessEnd::Died(None) => (
            NoteKind::EXITED,
            "the process ended without ending its recording".into(),
        ),
        ProcessEnd::Replaced => (
            NoteKind::REPLACED,
            "the process became another program by exec".into(),
        ),
        ProcessEnd::Running => (
            NoteKind::ENDED_EARLY,
            "still running when the recording ended".into(),
        ),
    };
    collector.stop();
    capture::recover(mapping, writer, &Cause { kind, text });
    // A process that still runs may have named what was found last.
    lock_std(metadata).drain(writer);
}

/// Whether a process still has a pool of ours in its memory. One that cannot be looked at has, and so has one with no
/// memory at all: it has not become another program, it is ending.
pub(super) fn still_mapped(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/maps")).map_or(true, |maps| {
        let mut windows = maps.windows(MAPS_NAME.len());
        maps.is_empty() || windows.any(|window| window == MAPS_NAME)
    })
}

/// Appends a note to the capture at `path`, which nobody writes any more.
pub(super) fn note(path: &Path, what: NoteKind, words: &str) -> io::Result<()> {
    let file = File::options().append(true).open(path)?;
    let writer = capture::Writer::resume(file.into())?;
    capture::note(&writer, what, words);
    writer
        .error()
        .map_or(Ok(()), |(error, _)| Err(io::Error::other(error)))
}
