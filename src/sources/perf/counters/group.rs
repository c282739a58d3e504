//! Perf events of one thread that are read together.
//!
//! Reading an event takes its descriptor, other than sampling. The descriptors have high numbers, which programs do not
//! get by opening files, and are closed at an exec. A program that closes all descriptors closes them, too: the values are
//! invalid from then on. What has the number then is the program's and is left alone: the kernel's id of an event tells.

use super::super::event::{PerfAttributes, TYPE_SOFTWARE};
use super::host_event::PerfEvent;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// `PERF_TYPE_HARDWARE`
const TYPE_HARDWARE: u32 = 0;
/// Total time enabled, total time running, all events of the group.
const READ_FORMAT: u64 = 1 | 1 << 1 | 1 << 3;
/// exclude_kernel, exclude_hv.
const USER_ONLY: u64 = 1 << 5 | 1 << 6;
/// disabled
const DISABLED: u64 = 1;
/// The lowest number of our descriptors, where the limit of open files allows it.
const FIRST_DESCRIPTOR: u64 = 700;
/// The most events of a group.
pub(super) const MAX_EVENTS: usize = 16;
/// `PERF_EVENT_IOC_ENABLE`, `PERF_EVENT_IOC_DISABLE`, and `PERF_IOC_FLAG_GROUP` as their argument.
const IOC_ENABLE: libc::Ioctl = 0x2400;
const IOC_DISABLE: libc::Ioctl = 0x2401;
const FLAG_GROUP: libc::c_ulong = 1;
/// `PERF_EVENT_IOC_ID`
const IOC_ID: libc::Ioctl = 0x8008_2407u32 as libc::Ioctl;

/// The number of files of events that are open.
static OPEN_FILES: AtomicU64 = AtomicU64::new(0);

/// Events of one type of one thread.
pub(super) struct PerfGroup {
    /// The leader comes first.
    files: Vec<EventFile>,
}

/// A reading of a group.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct GroupReading {
    /// The time since the events were opened, ns.
    pub enabled: u64,
    /// The part of it in which they counted.
    pub running: u64,
    pub values: [u64; MAX_EVENTS],
}

impl PerfGroup {
    /// Opens `events`, at least one and at most [`MAX_EVENTS`], of `thread` of this process (0: the caller). Where the
    /// system forbids the kernel's part, those of the program alone are counted.
    pub fn open(thread: u32, events: &[&PerfEvent]) -> io::Result<PerfGroup> {
        PerfGroup::open_with(thread, events, 0)
    }

    /// [`PerfGroup::open`], of events that count only while [`PerfGroup::count`] has them count.
    pub fn open_disabled(thread: u32, events: &[&PerfEvent]) -> io::Result<PerfGroup> {
        PerfGroup::open_with(thread, events, DISABLED)
    }

    /// Opens an event of a unit of the machine that is read on this processor: one of the type `kind`, with the words
    /// `config`, `config1` and `config2`. It counts whatever runs.
    pub fn open_on_processor(kind: u32, cpu: u32, config: [u64; 3]) -> io::Result<PerfGroup> {
        let attributes = PerfAttributes::counting(kind, config[0], READ_FORMAT, 0);
        let attributes = attributes.with_further(config[1], config[2]);
        let place = FileOfGroups::take()?;
        let file = attributes.open_on_processor(cpu)?;
        Ok(PerfGroup {
            files: vec![EventFile::new(moved_up(file)?, place)?],
        })
    }

    /// Has the events count, or stops them. The values stay.
    pub fn count(&self, counts: bool) {
        let request = if counts { IOC_ENABLE } else { IOC_DISABLE };
        if let Some(leader) = self.files.first().filter(|leader| leader.is_ours()) {
            // SAFETY: an event of ours; no memory is involved.
            unsafe { libc::ioctl(leader.file.as_raw_fd(), request, FLAG_GROUP) };
        }
    }

    fn open_with(thread: u32, events: &[&PerfEvent], leader_flags: u64) -> io::Result<PerfGroup> {
        let mut files: Vec<EventFile> = Vec::with_capacity(events.len());
        for event in events.iter().take(MAX_EVENTS) {
            // The members of a group follow its leader.
            let own = if files.is_empty() { leader_flags } else { 0 };
            let open = |flags: u64| {
                let flags = flags | own;
                let kind = if event.is_hardware {
                    TYPE_HARDWARE
                } else {
                    TYPE_SOFTWARE
                };
                let attributes = PerfAttributes::counting(kind, event.config, READ_FORMAT, flags);
                let leader = files.first().map(|leader| leader.file.as_fd());
                attributes.open(thread, leader)
            };
            let forbidden = |error: &io::Error| {
                matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
            };
            let place = FileOfGroups::take()?;
            let file = match open(0) {
                Err(error) if forbidden(&error) => open(USER_ONLY)?,
                opened => opened?,
            };
            files.push(EventFile::new(moved_up(file)?, place)?);
        }
        Ok(PerfGroup { files })
    }

    /// Reads all events at once.
    pub fn read(&self) -> io::Result<GroupReading> {
        let Some(leader) = self.files.first() else {
            return Ok(GroupReading::default());
        };
        if !leader.is_ours() {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        }
        // The number of events, both times, the values.
        let mut words = [0u64; 3 + MAX_EVENTS];
        let bytes = bytemuck::bytes_of_mut(&mut words);
        let wanted = (3 + self.files.len()) * 8;
        let length = rustix::io::read(&*leader.file, &mut bytes[..wanted])?;
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

/// The file of one event. Closed when dropped, unless its number has come to belong to another file.
struct EventFile {
    file: ManuallyDrop<OwnedFd>,
    /// The kernel's id of the event.
    id: u64,
    _place: FileOfGroups,
}

impl EventFile {
    fn new(file: OwnedFd, place: FileOfGroups) -> io::Result<EventFile> {
        Ok(EventFile {
            id: event_id(&file)?,
            file: ManuallyDrop::new(file),
            _place: place,
        })
    }

    /// Whether the number still belongs to the event.
    fn is_ours(&self) -> bool {
        event_id(&self.file).is_ok_and(|id| id == self.id)
    }
}

impl Drop for EventFile {
    fn drop(&mut self) {
        if self.is_ours() {
            // SAFETY: dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

/// The kernel's id of an event. An error if the file is none.
fn event_id(file: &OwnedFd) -> io::Result<u64> {
    let mut id = 0u64;
    // SAFETY: a place for the id, which files other than events do not write.
    match unsafe { libc::ioctl(file.as_raw_fd(), IOC_ID, &raw mut id) } {
        0 => Ok(id),
        _ => Err(io::Error::last_os_error()),
    }
}

/// One of the files that all groups together may have open.
struct FileOfGroups;

impl FileOfGroups {
    /// An error if they have a quarter of those that the process may open.
    fn take() -> io::Result<FileOfGroups> {
        let most = file_limit() / 4;
        let more = |open: u64| (open < most).then_some(open + 1);
        match OPEN_FILES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(FileOfGroups),
            Err(_) => Err(io::Error::from_raw_os_error(libc::EMFILE)),
        }
    }
}

impl Drop for FileOfGroups {
    fn drop(&mut self) {
        OPEN_FILES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The number of files that the process may open.
fn file_limit() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current.unwrap_or(u64::MAX)
}

/// The file with a high descriptor.
fn moved_up(file: OwnedFd) -> io::Result<OwnedFd> {
    let first = FIRST_DESCRIPTOR.min(file_limit() / 2) as i32;
    // SAFETY: a descriptor of ours; no memory is involved.
    let high = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, first) };
    match high {
        0.. => {
            // SAFETY: the call returned a new descriptor.
            Ok(unsafe { OwnedFd::from_raw_fd(high) })
        }
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::architecture::architecture;
    use super::super::host_event::{PerfEvent, TASK_CLOCK};
    use super::*;
    use std::os::fd::IntoRawFd;

    #[test]
    fn a_file_of_the_program_with_the_number_of_an_event_is_left_alone() {
        let architecture = architecture();
        let index = architecture.find(TASK_CLOCK).unwrap();
        let event = PerfEvent::of(&architecture, (index, gputrail_counters::Resolution::None));
        let group = PerfGroup::open(0, &[event.unwrap()]).unwrap();
        assert!(group.read().is_ok());
        let number = group.files[0].file.as_raw_fd();
        assert!(number >= FIRST_DESCRIPTOR.min(file_limit() / 2) as i32);
        let programs = std::fs::File::open("/proc/self/stat")
            .unwrap()
            .into_raw_fd();
        // SAFETY: both are open, and `number` belongs to the group alone.
        assert_eq!(unsafe { libc::dup2(programs, number) }, number);
        assert!(group.read().is_err());
        drop(group);
        let mut byte = 0u8;
        // SAFETY: one byte, and a file that is still open.
        let read = unsafe { libc::pread(number, (&raw mut byte).cast(), 1, 0) };
        assert_eq!(read, 1);
        for open in [programs, number] {
            // SAFETY: the test's own files.
            unsafe { libc::close(open) };
        }
    }
}
