//! Perf events of one thread that are read together.
//!
//! Reading an event takes its descriptor, other than sampling. The descriptors have high numbers, which programs do not
//! get by opening files, and are closed at an exec. A program that closes all descriptors closes them, too: the values are
//! invalid from then on.

use super::super::event::{Attributes, TYPE_SOFTWARE};
use super::host_event::HostEvent;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// `PERF_TYPE_HARDWARE`
const TYPE_HARDWARE: u32 = 0;
/// Total time enabled, total time running, all events of the group.
const READ_FORMAT: u64 = 1 | 1 << 1 | 1 << 3;
/// exclude_kernel, exclude_hv.
const USER_ONLY: u64 = 1 << 5 | 1 << 6;
/// The lowest number of our descriptors, where the limit of open files allows it.
const FIRST_DESCRIPTOR: u64 = 700;
/// The most events of a group.
pub(super) const MAX_EVENTS: usize = 16;

/// Events of one type of one thread.
pub(super) struct Group {
    /// The leader comes first.
    files: Vec<OwnedFd>,
}

/// What a group has counted.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct GroupReading {
    /// The time since the events were opened, ns.
    pub enabled: u64,
    /// The part of it in which they counted.
    pub running: u64,
    pub values: [u64; MAX_EVENTS],
}

impl Group {
    /// Opens `events`, at least one and at most [`MAX_EVENTS`], of `thread` of this process (0: the caller). Where the
    /// system forbids the kernel's part, those of the program alone are counted.
    pub fn open(thread: u32, events: &[&HostEvent]) -> io::Result<Group> {
        let mut files: Vec<OwnedFd> = Vec::with_capacity(events.len());
        for event in events.iter().take(MAX_EVENTS) {
            let open = |flags: u64| {
                let kind = match event.is_hardware {
                    true => TYPE_HARDWARE,
                    false => TYPE_SOFTWARE,
                };
                let attributes = Attributes::counting(kind, event.config, READ_FORMAT, flags);
                attributes.open(thread, files.first().map(AsFd::as_fd))
            };
            let forbidden = |error: &io::Error| {
                matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
            };
            let file = match open(0) {
                Err(error) if forbidden(&error) => open(USER_ONLY)?,
                opened => opened?,
            };
            files.push(moved_up(file));
        }
        Ok(Group { files })
    }

    /// Reads all events at once.
    pub fn read(&self) -> io::Result<GroupReading> {
        let Some(leader) = self.files.first() else {
            return Ok(GroupReading::default());
        };
        // The number of events, both times, the values.
        let mut words = [0u64; 3 + MAX_EVENTS];
        let bytes = bytemuck::bytes_of_mut(&mut words);
        let wanted = (3 + self.files.len()) * 8;
        let length = rustix::io::read(leader, &mut bytes[..wanted])?;
        if length != wanted || words[0] != self.files.len() as u64 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        let mut reading = GroupReading {
            enabled: words[1],
            running: words[2],
            ..GroupReading::default()
        };
        reading.values.copy_from_slice(&words[3..]);
        Ok(reading)
    }
}

/// The file with a high descriptor, if there is one.
fn moved_up(file: OwnedFd) -> OwnedFd {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let limit = limit.current.unwrap_or(u64::MAX);
    let first = FIRST_DESCRIPTOR.min(limit / 2) as i32;
    // SAFETY: a descriptor of ours; no memory is involved.
    let high = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, first) };
    match high {
        0.. => {
            // SAFETY: the call returned a new descriptor.
            unsafe { OwnedFd::from_raw_fd(high) }
        }
        _ => file,
    }
}
