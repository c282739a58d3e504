//! Ticks: host time as the hot path reads it.
//!
//! A process has one tick source, chosen by [`init`] or by the first [`now`] and never changed, so that all ticks of a
//! capture are comparable. It is the cheapest clock that never stops and never changes its rate: the processor's
//! counter if the kernel itself uses it, otherwise CLOCK_MONOTONIC.

use super::SystemClock;
use crate::platform::environment::variable;
use gputrail_record::Ticks;
use std::ffi::{OsStr, OsString};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The environment variable that chooses the tick source: `tsc`, `counter` or `monotonic`.
pub const CLOCK_VARIABLE: &str = "GPUTRAIL_CLOCK";

/// The clock that [`Ticks`] count.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum TickSource {
    /// The time-stamp counter of x86 processors, read by `rdtsc`.
    Tsc,
    /// CLOCK_MONOTONIC, in nanoseconds.
    Monotonic,
    /// The virtual counter of aarch64 processors, `cntvct_el0`.
    Counter,
    /// The simulator's virtual CLOCK_BOOTTIME, in nanoseconds. Never the source of [`now`].
    Virtual,
}

/// The value of [`CLOCK_VARIABLE`] is not a tick source of this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{CLOCK_VARIABLE} is {0:?}, expected \"monotonic\"{other}",
    other = if cfg!(target_arch = "x86_64") { " or \"tsc\"" }
        else if cfg!(target_arch = "aarch64") { " or \"counter\"" } else { "" }
)]
pub struct UnknownTickSource(pub OsString);

impl TickSource {
    /// The source that [`CLOCK_VARIABLE`] requests, or the best of this machine. An unknown value is ignored here;
    /// [`TickSource::requested`] reports it.
    pub fn choose() -> TickSource {
        match TickSource::requested() {
            Ok(Some(source)) => source,
            _ => hardware().unwrap_or(TickSource::Monotonic),
        }
    }

    /// The source that [`CLOCK_VARIABLE`] requests, or `None` if it is unset.
    pub fn requested() -> Result<Option<TickSource>, UnknownTickSource> {
        match variable(CLOCK_VARIABLE) {
            Some(value) => TickSource::parse(&value).map(Some),
            None => Ok(None),
        }
    }

    fn parse(value: &OsStr) -> Result<TickSource, UnknownTickSource> {
        match value.to_str() {
            Some("monotonic") => Ok(TickSource::Monotonic),
            Some("tsc") if cfg!(target_arch = "x86_64") => Ok(TickSource::Tsc),
            Some("counter") if cfg!(target_arch = "aarch64") => Ok(TickSource::Counter),
            _ => Err(UnknownTickSource(value.into())),
        }
    }

    /// The number of the source in a capture's header, never 0.
    pub const fn code(self) -> u32 {
        match self {
            TickSource::Tsc => 1,
            TickSource::Monotonic => 2,
            TickSource::Counter => 3,
            TickSource::Virtual => 4,
        }
    }

    /// The source with this number.
    pub const fn from_code(code: u32) -> Option<TickSource> {
        match code {
            1 => Some(TickSource::Tsc),
            2 => Some(TickSource::Monotonic),
            3 => Some(TickSource::Counter),
            4 => Some(TickSource::Virtual),
            _ => None,
        }
    }

    /// The name of the source for users.
    pub const fn name(self) -> &'static str {
        match self {
            TickSource::Tsc => "time-stamp counter",
            TickSource::Monotonic => "CLOCK_MONOTONIC",
            TickSource::Counter => "virtual counter",
            TickSource::Virtual => "virtual time",
        }
    }
}

/// The code of this process's tick source, or 0 before it is chosen.
static SOURCE: AtomicU32 = AtomicU32::new(0);

/// Chooses this process's tick source if that has not been done, and returns it.
pub fn init() -> TickSource {
    if let Some(source) = TickSource::from_code(SOURCE.load(Relaxed)) {
        return source;
    }
    let chosen = TickSource::choose();
    // Relaxed: the code is all that is published; no other memory depends on it.
    match SOURCE.compare_exchange(0, chosen.code(), Relaxed, Relaxed) {
        Ok(_) => chosen,
        // Another thread was first, and ticks may have been read from its source.
        Err(code) => TickSource::from_code(code).unwrap_or(TickSource::Monotonic),
    }
}

/// Reads the time: one load, one predictable branch and the counter. The first call of the process chooses the source,
/// which takes some tens of microseconds; [`init`] does that ahead of time.
///
/// The processor may execute the read a little earlier or later than its position in the program;
/// see [`now_ordered`].
#[inline(always)]
pub fn now() -> Ticks {
    #[cfg(target_arch = "x86_64")]
    if SOURCE.load(Relaxed) == TickSource::Tsc.code() {
        // SAFETY: rdtsc reads a register and touches nothing else.
        return Ticks(unsafe { core::arch::x86_64::_rdtsc() });
    }
    #[cfg(target_arch = "aarch64")]
    if SOURCE.load(Relaxed) == TickSource::Counter.code() {
        return counter();
    }
    now_slow()
}

/// Reads the time after all preceding and before all following instructions. Takes about twice as long as
/// [`now`]: for snapshots and pairs, not for records.
#[inline]
pub fn now_ordered() -> Ticks {
    fence();
    let now = now();
    fence();
    now
}

/// Reads the time in ticks of `source`, which another process may use.
pub fn now_of(source: TickSource) -> Ticks {
    match source {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: rdtsc reads a register and touches nothing else.
        TickSource::Tsc => Ticks(unsafe { core::arch::x86_64::_rdtsc() }),
        #[cfg(target_arch = "aarch64")]
        TickSource::Counter => counter(),
        _ => Ticks(SystemClock::Monotonic.read().0),
    }
}

/// Like [`now_of`], after all preceding and before all following instructions.
pub(crate) fn now_ordered_of(source: TickSource) -> Ticks {
    fence();
    let now = now_of(source);
    fence();
    now
}

/// Waits until all preceding instructions have completed.
#[inline(always)]
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: lfence orders instructions and touches nothing; every x86-64 processor has it (SSE2).
    unsafe {
        core::arch::x86_64::_mm_lfence()
    };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: isb orders instructions and touches nothing.
    unsafe {
        core::arch::asm!("isb", options(nostack, preserves_flags))
    };
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn counter() -> Ticks {
    let ticks: u64;
    // SAFETY: Linux lets user space read the virtual counter; reading touches nothing else.
    unsafe {
        core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags))
    };
    Ticks(ticks)
}

#[cold]
#[inline(never)]
fn now_slow() -> Ticks {
    match init() {
        TickSource::Monotonic | TickSource::Virtual => Ticks(SystemClock::Monotonic.read().0),
        // The source has just been chosen: this call takes the fast path.
        TickSource::Tsc | TickSource::Counter => now(),
    }
}

/// The processor's counter, if it is invariant and the kernel keeps time by it: the kernel checks and monitors that it
/// is synchronized between cores.
fn hardware() -> Option<TickSource> {
    let source = if cfg!(target_arch = "x86_64") {
        ("tsc", TickSource::Tsc)
    } else if cfg!(target_arch = "aarch64") {
        ("arch_sys_counter", TickSource::Counter)
    } else {
        return None;
    };
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let current = std::fs::read_to_string(path).ok()?;
    (current.trim() == source.0 && invariant()).then_some(source.1)
}

/// Whether the processor's counter runs at one rate in every power state.
fn invariant() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::__cpuid;
        #[allow(unused_unsafe)] // a safe function in newer Rust
        // SAFETY: every x86-64 processor has cpuid; asking changes nothing.
        let (leaves, power) = unsafe { (__cpuid(0x8000_0000).eax, __cpuid(0x8000_0007).edx) };
        leaves >= 0x8000_0007 && power & 1 << 8 != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    true // the architecture of aarch64 demands it
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_survives_its_code() {
        for code in 1..=4 {
            assert_eq!(TickSource::from_code(code).unwrap().code(), code);
        }
        assert_eq!(TickSource::from_code(0), None);
        assert_eq!(TickSource::from_code(5), None);
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn the_counter_is_invariant_where_the_kernel_says_so() {
        let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let mut flags = processors.lines().filter(|line| line.starts_with("flags"));
        let flags = flags.next().unwrap().split_whitespace();
        assert_eq!(
            invariant(),
            flags.into_iter().any(|flag| flag == "nonstop_tsc")
        );
    }

    #[test]
    fn the_source_never_changes() {
        let source = init();
        assert_ne!(source, TickSource::Virtual);
        assert_eq!(init(), source);
    }

    #[test]
    fn ticks_never_run_backwards() {
        let mut last = now_ordered();
        assert!(last.is_some());
        for _ in 0..1000 {
            let next = now_ordered();
            assert!(last <= next);
            last = next;
        }
    }

    #[test]
    fn ticks_agree_between_threads() {
        let before = now_ordered();
        let there = std::thread::spawn(now_ordered).join().unwrap();
        let after = now_ordered();
        assert!(before <= there && there <= after);
    }

    #[test]
    fn an_unknown_source_is_named_with_what_was_expected() {
        let error = TickSource::parse(OsStr::new("sundial")).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("GPUTRAIL_CLOCK") && message.contains("sundial"),
            "{message}"
        );
        assert!(message.contains("monotonic"), "{message}");
    }
}
