//! Perf events of single threads: the kernel's CPU clock samples a thread's program counter while it runs, and writes
//! into a ring that we read now and then. Nothing interrupts the thread but the kernel, and no signal is sent.
//!
//! Once its ring is mapped, an event needs no open file: the mapping keeps it alive. So the program's table of open files
//! has none of ours, its forked children inherit none, and a program that closes whatever it finds closes none. A forked
//! child does not get the mapping either: the kernel keeps those of perf events out of children.

use super::ring::RingRecords;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The clock that stamps samples.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SampleClock {
    /// `CLOCK_MONOTONIC_RAW`: what PoCL stamps the work of its devices with.
    MonotonicRaw,
    /// `CLOCK_MONOTONIC`.
    Monotonic,
}

impl SampleClock {
    fn id(self) -> libc::clockid_t {
        match self {
            SampleClock::MonotonicRaw => libc::CLOCK_MONOTONIC_RAW,
            SampleClock::Monotonic => libc::CLOCK_MONOTONIC,
        }
    }

    /// What it shows, ns.
    pub fn now(self) -> u64 {
        // SAFETY: zeros are valid for it.
        let mut now: libc::timespec = unsafe { std::mem::zeroed() };
        // SAFETY: a clock that every Linux has, and a place for its time.
        unsafe { libc::clock_gettime(self.id(), &raw mut now) };
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}

/// `struct perf_event_attr` in its sixth version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
    branches: u64,
    user_registers: u64,
    user_stack: u32,
    clock: i32,
    interrupt_registers: u64,
    aux_watermark: u32,
    max_stack: u16,
    reserved: u16,
}

const _: () = assert!(size_of::<Attributes>() == 112);

const TYPE_SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
/// Instruction pointer, thread, time, CPU.
const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 7;
/// Not the kernel, not the hypervisor; executable mappings, forks and exits; rather bytes than records until somebody
/// is woken, of which there is nobody; thread, time and CPU in every record; the clock is ours to choose.
const FLAGS: u64 = 1 << 5 | 1 << 6 | 1 << 8 | 1 << 13 | 1 << 14 | 1 << 18 | 1 << 25;
const FLAG_CLOEXEC: u64 = 1 << 3;

/// Offsets of the ring's ends in its first page.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// One thread, being sampled until this is dropped.
pub struct ThreadEvent {
    /// A page of control, then the ring.
    memory: NonNull<u8>,
    page: usize,
    /// Bytes of the ring, a power of two.
    ring: usize,
}

// SAFETY: the mapping belongs to the process, and all of it but the kernel's end of the ring to whoever has this.
unsafe impl Send for ThreadEvent {}

impl ThreadEvent {
    /// Samples `thread` of this process, 0 being the calling one, every `interval` ns that it runs, into a ring of `ring`
    /// bytes or, where the system has no room for that, less.
    pub fn open(thread: u32, interval: u64, clock: SampleClock, ring: usize) -> io::Result<Self> {
        let attributes = Attributes {
            kind: TYPE_SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: CPU_CLOCK,
            period: interval,
            sample_type: SAMPLE_TYPE,
            flags: FLAGS,
            wakeup: u32::MAX,
            clock: clock.id(),
            ..Attributes::default()
        };
        // SAFETY: attributes of the size that they say.
        let file = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                thread as libc::pid_t,
                -1,
                -1,
                FLAG_CLOEXEC,
            )
        };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call made it for us.
        let file = unsafe { OwnedFd::from_raw_fd(file as i32) };
        let page = rustix::param::page_size();
        let mut ring = ring.next_power_of_two().max(page);
        loop {
            match map(&file, page + ring) {
                Ok(memory) => return Ok(ThreadEvent { memory, page, ring }),
                // What a user may lock into memory is used up: by others of ours, or by the program.
                Err(error) if error.raw_os_error() == Some(libc::EPERM) && ring > page => ring /= 2,
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes out what has come, and hands it to `read`.
    pub fn drain<R>(
        &mut self,
        scratch: &mut Vec<u8>,
        read: impl FnOnce(RingRecords<'_>) -> R,
    ) -> R {
        let head = self.end(HEAD).load(Ordering::Relaxed);
        // Pairs with the kernel's barrier before it moves the head: the records up to there are written.
        fence(Ordering::Acquire);
        let tail = self.end(TAIL).load(Ordering::Relaxed);
        let length = (head.wrapping_sub(tail) as usize).min(self.ring);
        let start = tail as usize & (self.ring - 1);
        let first = length.min(self.ring - start);
        scratch.clear();
        for (from, length) in [(start, first), (0, length - first)] {
            // SAFETY: within the ring; the kernel does not write between tail and head.
            let part = unsafe {
                std::slice::from_raw_parts(self.memory.as_ptr().add(self.page + from), length)
            };
            scratch.extend_from_slice(part);
        }
        let result = read(RingRecords::new(scratch));
        // Release: what was read has been read before the kernel may write there again.
        self.end(TAIL).store(head, Ordering::Release);
        result
    }

    /// One end of the ring.
    fn end(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: within the first page, aligned, and a number that both sides only load and store whole.
        unsafe { AtomicU64::from_ptr(self.memory.as_ptr().add(offset).cast()) }
    }
}

impl Drop for ThreadEvent {
    fn drop(&mut self) {
        // SAFETY: our mapping, for the last time.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.page + self.ring) };
    }
}

fn map(file: &OwnedFd, bytes: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    match NonNull::new(memory.cast()) {
        Some(memory) if memory.as_ptr() as isize != -1 => Ok(memory),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Says why perf events cannot be had, and what to change.
pub fn explain(error: &io::Error) -> String {
    const SETTING: &str = "/proc/sys/kernel/perf_event_paranoid";
    let level = std::fs::read_to_string(SETTING).unwrap_or_default();
    let level = level.trim();
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => match level.parse::<i32>() {
            Ok(level) if level > 2 => format!(
                "the system forbids perf events (kernel.perf_event_paranoid is {level}): allow them with `sysctl \
                 kernel.perf_event_paranoid=2`, or give the program CAP_PERFMON"
            ),
            _ => format!(
                "the system forbids perf events although kernel.perf_event_paranoid is {level}: a container's seccomp \
                 profile has to allow perf_event_open, or the memory that a user may lock is used up \
                 (kernel.perf_event_mlock_kb, ulimit -l)"
            ),
        },
        Some(libc::ENOSYS) => {
            "this system has no perf events (perf_event_open): another kernel, or a container's seccomp profile, has to \
             allow them"
                .to_owned()
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            "no file can be opened: raise the limit of open files (ulimit -n)".to_owned()
        }
        _ => format!("perf events: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::RingRecord;
    use super::*;

    fn spin(iterations: u64) -> u64 {
        let mut sum = 0u64;
        for i in 0..iterations {
            sum = std::hint::black_box(sum.wrapping_add(i));
        }
        sum
    }

    #[test]
    fn a_thread_that_runs_is_sampled_with_the_clocks_time() {
        let clock = SampleClock::MonotonicRaw;
        let before = clock.now();
        let mut event = ThreadEvent::open(0, 100_000, clock, 1 << 16).unwrap_or_else(|error| {
            panic!("{}", explain(&error));
        });
        let files = std::fs::read_dir("/proc/self/fd").unwrap().count();
        let mut taken = Vec::new();
        let mut scratch = Vec::new();
        // Until there is something: how long that takes is the machine's affair.
        while taken.len() < 50 {
            spin(1 << 20);
            event.drain(&mut scratch, |records| {
                taken.extend(records.filter_map(|record| match record {
                    RingRecord::Sample(taken) => Some(taken),
                    _ => None,
                }));
            });
        }
        let after = clock.now();
        let thread = crate::platform::system::thread_id();
        assert!(taken.iter().all(|taken| taken.thread == thread));
        assert!(
            taken
                .iter()
                .all(|taken| (before..after).contains(&taken.time))
        );
        assert!(taken.is_sorted_by_key(|taken| taken.time));
        drop(event);
        // It held no file open.
        assert!(std::fs::read_dir("/proc/self/fd").unwrap().count() <= files + 8);
    }

    #[test]
    fn a_ring_that_is_not_read_counts_what_it_loses() {
        let clock = SampleClock::MonotonicRaw;
        let mut event = ThreadEvent::open(0, 50_000, clock, 4096).unwrap();
        let mut scratch = Vec::new();
        let (mut lost, mut rounds) = (0, 0);
        while lost == 0 {
            spin(100 << 20);
            event.drain(&mut scratch, |records| {
                assert!(records.clone().count() <= 4096 / 32);
                lost += records
                    .map(|record| match record {
                        RingRecord::Lost { count, .. } => count,
                        _ => 0,
                    })
                    .sum::<u64>();
            });
            rounds += 1;
            assert!(rounds < 1000);
        }
    }

    #[test]
    fn what_is_forbidden_names_the_setting() {
        let says = |errno| explain(&io::Error::from_raw_os_error(errno));
        assert!(says(libc::EACCES).contains("kernel.perf_event_paranoid"));
        assert!(says(libc::ENOSYS).contains("perf_event_open"));
        assert!(says(libc::EMFILE).contains("ulimit -n"));
    }
}
