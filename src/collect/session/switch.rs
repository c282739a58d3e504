//! The switch of a session: the word by which `gputrail record` turns the recording of all its processes on and off.
//!
//! The word lies in a page that every process of the session maps, and that `gputrail record` alone can write. A process
//! looks at it in each call that it observes, without a system call: the switch takes effect with the next call of each
//! thread. Processes that begin later find the word as it is then; forked children inherit the mapping.

use crate::session_switch::OFF;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

const PAGE: usize = 4096;

/// The switch, as its owner has it.
#[derive(Debug)]
pub(super) struct Switch {
    file: OwnedFd,
    memory: MmapRaw,
}

impl Switch {
    /// Makes a switch in this position.
    pub fn new(is_on: bool) -> io::Result<Switch> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let name = "gputrail-switch";
        let file = match rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
            // A kernel before 6.3.
            Err(Errno::INVAL) => rustix::fs::memfd_create(name, flags)?,
            result => result?,
        };
        rustix::fs::ftruncate(&file, PAGE as u64)?;
        let memory = MmapOptions::new().len(PAGE).map_raw(file.as_raw_fd())?;
        // Touches the page, so that no process is killed by it where memory is short.
        let switch = Switch { file, memory };
        switch.word().store(u32::from(!is_on), Ordering::Release);
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        // A kernel before 5.1 cannot forbid writing to processes.
        let sealed = rustix::fs::fcntl_add_seals(&switch.file, seals | SealFlags::FUTURE_WRITE);
        sealed.or_else(|_| rustix::fs::fcntl_add_seals(&switch.file, seals))?;
        Ok(switch)
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: the page is mapped for as long as `self`; any bytes are a valid number.
        unsafe { &*self.memory.as_ptr().cast() }
    }

    /// Whether it is on.
    pub fn is_on(&self) -> bool {
        self.word().load(Ordering::Relaxed) & OFF == 0
    }

    /// Turns it on or off. Processes notice each command, also one that leaves the switch as it is.
    pub fn turn(&self, on: bool) {
        let commands = self.word().load(Ordering::Relaxed) & !OFF;
        let position = if on { 0 } else { OFF };
        let word = commands.wrapping_add(OFF << 1) | position;
        self.word().store(word, Ordering::Release);
        gputrail_buffer::platform::system::wake(self.word(), u32::MAX >> 1);
    }
}

impl AsFd for Switch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Maps the switch in `file` for the rest of the process's life. `None` if it is none.
pub(super) fn map(file: &OwnedFd) -> Option<&'static AtomicU32> {
    let length = rustix::fs::fstat(file).ok()?.st_size;
    if length != PAGE as i64 {
        return None;
    }
    let memory = MmapOptions::new()
        .len(PAGE)
        .map_raw_read_only(file.as_raw_fd())
        .ok()?;
    let word = memory.as_ptr().cast();
    std::mem::forget(memory);
    // SAFETY: mapped for ever, and page aligned; any bytes are a valid number.
    Some(unsafe { &*word })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_sees_each_command_and_cannot_write_the_switch() {
        let switch = Switch::new(false).unwrap();
        let word = map(&switch.file).unwrap();
        let position = || word.load(Ordering::Acquire);
        assert_eq!(position() & OFF, OFF);
        for on in [true, true, false, false, true] {
            let before = position();
            switch.turn(on);
            assert_ne!(position(), before);
            assert_eq!((position() & OFF == 0, switch.is_on()), (on, on));
        }
        let writable = MmapOptions::new()
            .len(PAGE)
            .map_raw(switch.file.as_raw_fd());
        assert!(writable.is_err());
    }
}
