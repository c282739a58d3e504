//! The clocks that the operating system offers.

use gputrail_record::{ClockSnapshot, Nanos};

/// A clock of the operating system, in nanoseconds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum SystemClock {
    /// CLOCK_MONOTONIC: slewed by NTP, stops during suspend.
    Monotonic,
    /// CLOCK_MONOTONIC_RAW: the hardware's rate, stops during suspend.
    MonotonicRaw,
    /// CLOCK_BOOTTIME: CLOCK_MONOTONIC plus the time suspended. The clock of traces.
    Boottime,
    /// CLOCK_REALTIME: the time of day, which may be set forward and back.
    Realtime,
}

impl SystemClock {
    /// Every system clock, in order of preference.
    pub const ALL: [SystemClock; 4] = [
        SystemClock::Monotonic,
        SystemClock::Boottime,
        SystemClock::MonotonicRaw,
        SystemClock::Realtime,
    ];

    /// Reads the clock.
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
        // Negative only for a time of day before 1970, which counts as unknown.
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Nanos(seconds.saturating_mul(1_000_000_000) + time.tv_nsec as u64)
    }

    /// Reads the clock. Platforms other than Linux have no sources; a monotonic clock that starts with the process
    /// stands in for all clocks but the time of day.
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

    /// The time of this clock in `snapshot`.
    pub fn of(self, snapshot: &ClockSnapshot) -> Nanos {
        match self {
            SystemClock::Monotonic => snapshot.monotonic,
            SystemClock::MonotonicRaw => snapshot.monotonic_raw,
            SystemClock::Boottime => snapshot.boottime,
            SystemClock::Realtime => snapshot.realtime,
        }
    }

    /// The clock's name as in clock_gettime(2).
    pub const fn name(self) -> &'static str {
        match self {
            SystemClock::Monotonic => "CLOCK_MONOTONIC",
            SystemClock::MonotonicRaw => "CLOCK_MONOTONIC_RAW",
            SystemClock::Boottime => "CLOCK_BOOTTIME",
            SystemClock::Realtime => "CLOCK_REALTIME",
        }
    }
}
