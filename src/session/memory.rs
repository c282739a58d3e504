//! The memory of a process's pool, which the parent owns: made, and read when the process is gone.

use super::{End, signal_name};
use crate::buffer::{Collector, Layout, Mapping, MappingError, Policy};
use crate::capture::{self, Cause, Writer};
use crate::record::NoteKind;
use crate::recorder::FIRST_BLOCKS;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::Path;

/// How the memory shows in /proc/PID/maps.
pub(super) const MAPS_NAME: &[u8] = b"/memfd:gputrail-pool";

/// A pool that no process has yet.
pub(super) struct Pool {
    pub file: OwnedFd,
    pub mapping: Mapping,
    pub bytes: u64,
}

/// Memory of blocks that is there from the start, where lanes wait for more.
const FIRST: usize = 2 << 20;

/// Makes a pool. The pages of all blocks that are in it exist, and it cannot shrink: touching it never
/// kills whoever maps it. Where lanes can wait for more, it has few blocks at first, and [`grow`] adds others.
pub(super) fn make(layout: &Layout, policy: Policy) -> io::Result<Pool> {
    let first = match policy {
        Policy::Lossless => ((FIRST / layout.block_bytes()).max(4) as u32).min(layout.blocks()),
        Policy::Discard | Policy::Overwrite => layout.blocks(),
    };
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let name = "gputrail-pool";
    let file = match rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        // A kernel before 6.3.
        Err(Errno::INVAL) => rustix::fs::memfd_create(name, flags)?,
        result => result?,
    };
    let bytes = layout.total_bytes() as u64;
    rustix::fs::ftruncate(&file, bytes)?;
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, layout.bytes_of(first))?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    let mapping =
        Mapping::create_with(file.as_raw_fd(), *layout, first).map_err(|error| match error {
            MappingError::Map { source, .. } => source,
            other => io::Error::other(other),
        })?;
    // Pages of blocks that are soon in use come zeroed here, and not in the program's time.
    mapping.populate(0..(2 * FIRST_BLOCKS).min(first));
    Ok(Pool {
        file,
        mapping,
        bytes,
    })
}

/// Twice as many blocks as there are, or as many as there can be. Where there is no memory for them, lanes wait.
pub(super) fn grow(file: &OwnedFd, mapping: &Mapping) {
    let (layout, there) = (mapping.layout(), mapping.there());
    let end = there.saturating_mul(2).min(layout.blocks());
    let start = layout.bytes_of(there);
    let more = layout.bytes_of(end) - start;
    if more > 0 && rustix::fs::fallocate(file, FallocateFlags::empty(), start, more).is_ok() {
        mapping.add_blocks(end);
    }
}

/// Takes to the capture what a process left in its pool, and says there how it ended.
pub(super) fn save(collector: &Collector, mapping: &Mapping, writer: &Writer, end: End) {
    let (what, words) = match end {
        End::Finished => {
            collector.finish();
            // An error stays with the writer.
            let _ = writer.end();
            return;
        }
        End::Died(Some(signal)) => (
            NoteKind::DIED,
            format!("killed by signal {signal} ({})", signal_name(signal)),
        ),
        End::Exited(code) => (
            NoteKind::DIED,
            format!(
                "the process ended with exit code {code} without ending its recording, by _exit or quick_exit"
            ),
        ),
        End::Died(None) => (
            NoteKind::DIED,
            "the process ended without ending its recording".into(),
        ),
        End::Replaced => (
            NoteKind::DIED,
            "the process became another program by exec".into(),
        ),
        End::Running => (
            NoteKind::ENDED_EARLY,
            "still running when the recording ended".into(),
        ),
    };
    collector.stop();
    capture::recover(mapping, writer, &Cause { what, words });
}

/// Appends a note to the capture at `path`: its recording ended early, for the reason in `words`.
pub(super) fn note(path: &Path, words: &str) -> io::Result<()> {
    let file = File::options().append(true).open(path)?;
    let writer = capture::Writer::resume(file.into())?;
    capture::note(&writer, NoteKind::ENDED_EARLY, words);
    writer
        .error()
        .map_or(Ok(()), |(error, _)| Err(io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;
    use crate::record::{Api, ThreadId};

    fn allocated(pool: &Pool) -> u64 {
        rustix::fs::fstat(&pool.file).unwrap().st_blocks as u64 * 512
    }

    #[test]
    fn a_pool_has_all_memory_from_the_start_where_lanes_do_not_wait() {
        let layout = Layout::new(8 << 20, 64 << 10, 8).unwrap();
        for policy in [Policy::Discard, Policy::Overwrite] {
            let pool = make(&layout, policy).unwrap();
            assert!(allocated(&pool) >= pool.bytes);
            assert_eq!(pool.mapping.there(), 128);
        }
    }

    #[test]
    fn where_they_do_it_grows_and_no_block_is_in_it_that_has_no_memory() {
        let layout = Layout::new(8 << 20, 64 << 10, 64).unwrap();
        let pool = make(&layout, Policy::Lossless).unwrap();
        let program = Mapping::open(pool.file.as_raw_fd(), pool.bytes as usize).unwrap();
        let program = Buffer::new(program, Policy::Discard);
        let mut lanes = Vec::new();
        for there in [32, 64, 128, 128] {
            assert_eq!(pool.mapping.there(), there);
            assert!(allocated(&pool) >= layout.bytes_of(there));
            assert!(allocated(&pool) < layout.bytes_of(there) + (1 << 20));
            // Somebody takes all that there is.
            while program.empty_blocks() > 0 {
                let mut lane = program.lane(ThreadId(1)).unwrap();
                while program.empty_blocks() > 0 && lane.write(Api::blank()) {}
                lanes.push(lane);
            }
            grow(&pool.file, &pool.mapping);
        }
        assert_eq!(program.empty_blocks(), 0);
        // The smallest there is.
        let pool = make(&Layout::new(8192, 4096, 1).unwrap(), Policy::Lossless).unwrap();
        assert_eq!(pool.mapping.there(), 2);
        grow(&pool.file, &pool.mapping);
        assert_eq!(pool.mapping.there(), 2);
    }
}
