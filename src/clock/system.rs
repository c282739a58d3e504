//! The clocks that the operating system offers.

use crate::record::{ClockSnapshot, Nanos};

/// A clock of the operating system, in nanoseconds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum SystemClock {
    /// CLOCK_MONOTONIC: slewed by NTP, stands still while the machine sleeps.
    Monotonic,
    /// CLOCK_MONOTONIC_RAW: as the hardware counts; stands still while the machine sleeps.
    MonotonicRaw,
    /// CLOCK_BOOTTIME: CLOCK_MONOTONIC and the time slept. The trace's clock.
    Boottime,
    /// CLOCK_REALTIME: the time of day; may be set forward and back.
    Realtime,
}

impl SystemClock {
    /// Every system clock, the one to prefer first where several would do.
    pub const ALL: [SystemClock; 4] = [
        SystemClock::Monotonic,
        SystemClock::Boottime,
        SystemClock::MonotonicRaw,
        SystemClock::Realtime,
    ];

    /// What the clock shows now.
    #[cfg(target_os = "linux")]
    #[inline]
    pub fn read(self) -> Nanos {
        use rustix::time::{ClockId, clock_gettime};
        let time = clock_gettime(match self {
            SystemClock::Monotonic => ClockId::Monotonic,
            SystemClock::MonotonicRaw => ClockId::MonotonicRaw,
            SystemClock::Boottime => ClockId::Boottime,
            SystemClock::Realtime => ClockId::Realtime,
        });
        // Negative only for a time of day before 1970: as unknown.
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Nanos(seconds.saturating_mul(1_000_000_000) + time.tv_nsec as u64)
    }

    /// What the clock shows now. Elsewhere than on Linux, where there are no sources, one
    /// monotonic clock that starts with the process stands in for all but the time of day.
    #[cfg(not(target_os = "linux"))]
    pub fn read(self) -> Nanos {
        use std::sync::OnceLock;
        use std::time::{Instant, SystemTime, UNIX_EPOCH};
        static START: OnceLock<Instant> = OnceLock::new();
        let time = match self {
            SystemClock::Realtime => SystemTime::now().duration_since(UNIX_EPOCH).ok(),
            _ => Some(START.get_or_init(Instant::now).elapsed()),
        };
        Nanos(time.map_or(0, |time| time.as_nanos() as u64 + 1))
    }

    /// What the clock showed in `snapshot`.
    pub fn of(self, snapshot: &ClockSnapshot) -> Nanos {
        match self {
            SystemClock::Monotonic => snapshot.monotonic,
            SystemClock::MonotonicRaw => snapshot.monotonic_raw,
            SystemClock::Boottime => snapshot.boottime,
            SystemClock::Realtime => snapshot.realtime,
        }
    }

    /// Its name, as clock_gettime(2) spells it.
    pub const fn name(self) -> &'static str {
        match self {
            SystemClock::Monotonic => "CLOCK_MONOTONIC",
            SystemClock::MonotonicRaw => "CLOCK_MONOTONIC_RAW",
            SystemClock::Boottime => "CLOCK_BOOTTIME",
            SystemClock::Realtime => "CLOCK_REALTIME",
        }
    }
}
