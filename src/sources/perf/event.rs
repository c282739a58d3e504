//! Perf events of single threads. The kernel's CPU clock samples the program counter of a running thread into a ring
//! that the drain thread reads. It sends no signal.
//!
//! A mapped event needs no open file: the mapping keeps it alive. The program's descriptor table therefore contains
//! none of ours, forked children inherit none, and a program that closes unknown descriptors closes none. Forked
//! children do not inherit the mapping either: the kernel excludes those of perf events. The crates perf-event-open and
//! perf-event2 keep the descriptor open for as long as the ring lives.

use super::ring::RingRecords;
use gputrail_buffer::clock::SystemClock;
use memmap2::{MmapOptions, MmapRaw};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The clock that stamps samples: PoCL uses it for the times of its devices.
pub(super) const SAMPLE_CLOCK: SystemClock = SystemClock::MonotonicRaw;

/// The current time of [`SAMPLE_CLOCK`], in nanoseconds. Async-signal-safe.
pub fn sample_time() -> u64 {
    SAMPLE_CLOCK.read().0
}

/// `struct perf_event_attr`, version 6.
#[repr(C)]
#[derive(Default)]
pub(super) struct PerfAttributes {
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

const _: () = assert!(size_of::<PerfAttributes>() == 112);

/// `PERF_TYPE_SOFTWARE`
pub(super) const TYPE_SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
/// Instruction pointer, thread, time, CPU.
const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 7;
/// exclude_kernel, exclude_hv, mmap, task (fork and exit), watermark, sample_id_all, use_clockid.
const FLAGS: u64 = 1 << 5 | 1 << 6 | 1 << 8 | 1 << 13 | 1 << 14 | 1 << 18 | 1 << 25;
const FLAG_CLOEXEC: u64 = 1 << 3;
/// All threads, or all processors.
const EVERY: i32 = -1;

impl PerfAttributes {
    /// An event that counts and takes no samples.
    pub(super) fn counting(kind: u32, config: u64, read_format: u64, flags: u64) -> PerfAttributes {
        PerfAttributes {
            kind,
            config,
            read_format,
            flags,
            ..PerfAttributes::default()
        }
    }

    /// The event with the words `config1` and `config2`.
    pub(super) fn with_further(self, config1: u64, config2: u64) -> PerfAttributes {
        PerfAttributes {
            config1,
            config2,
            ..self
        }
    }

    /// Opens the event for `thread` of this process (0: the caller), in the group of `leader`.
    pub(super) fn open(self, thread: u32, leader: Option<BorrowedFd<'_>>) -> io::Result<OwnedFd> {
        self.open_for((thread as libc::pid_t, EVERY), leader)
    }

    /// Opens the event for all that runs on a processor.
    pub(super) fn open_on_processor(self, cpu: u32) -> io::Result<OwnedFd> {
        self.open_for((EVERY, cpu as libc::c_int), None)
    }

    /// Opens the event for a thread and a processor, each of which may be [`EVERY`].
    fn open_for(
        mut self,
        (thread, cpu): (libc::pid_t, libc::c_int),
        leader: Option<BorrowedFd<'_>>,
    ) -> io::Result<OwnedFd> {
        self.size = size_of::<PerfAttributes>() as u32;
        // SAFETY: the attributes have the size that they state.
        let file = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const self,
                thread,
                cpu,
                leader.map_or(-1, |leader| leader.as_raw_fd()),
                FLAG_CLOEXEC,
            )
        };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call returned a new descriptor.
        Ok(unsafe { OwnedFd::from_raw_fd(file as i32) })
    }
}

/// Offsets of head and tail in the first page of the mapping.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// The perf event of one thread, which is sampled until this is dropped.
pub struct ThreadEvent {
    /// The control page, followed by the ring.
    memory: MmapRaw,
    page: usize,
    /// Size of the ring, a power of two.
    ring: usize,
}

impl ThreadEvent {
    /// Samples `thread` of this process (0: the caller) every `interval` ns of its CPU time, into a ring of `ring`
    /// bytes, or fewer if the limit of locked memory is reached.
    pub fn open(thread: u32, interval: u64, ring: usize) -> io::Result<Self> {
        let attributes = PerfAttributes {
            kind: TYPE_SOFTWARE,
            config: CPU_CLOCK,
            period: interval,
            sample_type: SAMPLE_TYPE,
            flags: FLAGS,
            wakeup: u32::MAX,
            clock: libc::CLOCK_MONOTONIC_RAW,
            ..PerfAttributes::default()
        };
        let file = attributes.open(thread, None)?;
        let page = rustix::param::page_size();
        let mut ring = ring.next_power_of_two().max(page);
        loop {
            match MmapOptions::new().len(page + ring).map_raw(&file) {
                Ok(memory) => return Ok(ThreadEvent { memory, page, ring }),
                // The limit of locked memory is reached.
                Err(error) if error.raw_os_error() == Some(libc::EPERM) && ring > page => ring /= 2,
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes the records in the ring and passes them to `read`.
    pub fn drain<R>(
        &mut self,
        scratch: &mut Vec<u8>,
        read: impl FnOnce(RingRecords<'_>) -> R,
    ) -> R {
        let head = self.end(HEAD).load(Ordering::Relaxed);
        // Pairs with the kernel's barrier before it moves the head: the records before it are complete.
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
        // Release: all reads happen before the kernel may overwrite the records.
        self.end(TAIL).store(head, Ordering::Release);
        result
    }

    /// The head or tail of the ring.
    fn end(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: within the first page, aligned, and accessed atomically by both sides.
        unsafe { AtomicU64::from_ptr(self.memory.as_mut_ptr().add(offset).cast()) }
    }
}

/// The value of the setting that restricts perf events, as text.
fn paranoid_level() -> String {
    const SETTING: &str = "/proc/sys/kernel/perf_event_paranoid";
    let level = std::fs::read_to_string(SETTING).unwrap_or_default();
    level.trim().to_owned()
}

/// Explains why an event of the whole machine cannot be opened, and the remedy.
pub(super) fn explain_machine(error: &io::Error) -> String {
    let level = paranoid_level();
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) if !level.parse().is_ok_and(|level: i32| level < 1) => {
            format!(
                "the system forbids events of the whole machine (kernel.perf_event_paranoid is {level}): allow them with `sysctl \
             kernel.perf_event_paranoid=0`, or give the program CAP_PERFMON"
            )
        }
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::EINVAL | libc::EOPNOTSUPP) => {
            format!("the kernel does not count this event, although it describes it: {error}")
        }
        _ => explain(error),
    }
}

/// Explains why a perf event cannot be opened, and the remedy.
pub fn explain(error: &io::Error) -> String {
    let level = paranoid_level();
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
        let before = sample_time();
        let mut event = ThreadEvent::open(0, 100_000, 1 << 16).unwrap_or_else(|error| {
            panic!("{}", explain(&error));
        });
        let files = std::fs::read_dir("/proc/self/fd").unwrap().count();
        let mut taken = Vec::new();
        let mut scratch = Vec::new();
        // Until there are samples: the rate depends on the machine.
        while taken.len() < 50 {
            spin(1 << 20);
            event.drain(&mut scratch, |records| {
                taken.extend(records.filter_map(|record| match record {
                    RingRecord::Sample(taken) => Some(taken),
                    _ => None,
                }));
            });
        }
        let after = sample_time();
        let thread = gputrail_buffer::platform::system::thread_id();
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
        let mut event = ThreadEvent::open(0, 50_000, 4096).unwrap();
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
    fn errors_name_the_setting_that_forbids_the_event() {
        let says = |errno| explain(&io::Error::from_raw_os_error(errno));
        assert!(says(libc::EACCES).contains("kernel.perf_event_paranoid"));
        assert!(says(libc::ENOSYS).contains("perf_event_open"));
        assert!(says(libc::EMFILE).contains("ulimit -n"));
        let says = |errno| explain_machine(&io::Error::from_raw_os_error(errno));
        assert!(says(libc::EACCES).contains("kernel.perf_event_paranoid"));
        assert!(says(libc::ENODEV).contains("does not count this event"));
        assert!(says(libc::EMFILE).contains("ulimit -n"));
    }
}
