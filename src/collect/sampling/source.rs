//! The mechanism that samples the host's processors, as the environment of the program selects it.

use gputrail_buffer::platform::environment::variable;
use gputrail_interface::sampling::Configuration;
use gputrail_record::{SamplingMethod, SamplingUnit};

/// The shortest interval of perf events. A sample takes some microseconds.
const SHORTEST: u64 = 50_000;
/// The longest interval.
const LONGEST: u64 = 1_000_000_000;
/// Whether a handler of a timer's signals can read the program counter on this architecture.
const CAN_READ: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// The mechanism that takes samples.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum SampleSource {
    /// Perf events, which do not send signals.
    #[default]
    PerfEvents,
    /// POSIX timers. Their signals may interrupt system calls of the program, and their rate is limited by the kernel's
    /// tick, usually 250 Hz.
    Timers,
}

impl SampleSource {
    /// The environment variable that selects the mechanism.
    pub const VARIABLE: &str = "GPUTRAIL_SAMPLING_SOURCE";
    /// Its value for [`SampleSource::Timers`].
    pub const TIMER: &str = "timer";

    /// The mechanism selected by the environment.
    pub fn requested() -> SampleSource {
        match variable(Self::VARIABLE) {
            Some(source) if source == Self::TIMER => SampleSource::Timers,
            _ => SampleSource::PerfEvents,
        }
    }

    /// The configurations that an agent on the host's processors supports.
    pub fn possible(self) -> Vec<Configuration> {
        let min = match self {
            SampleSource::PerfEvents => SHORTEST,
            SampleSource::Timers if !CAN_READ => return Vec::new(),
            SampleSource::Timers => shortest_timer(),
        };
        vec![Configuration {
            method: SamplingMethod::HOST_TRAP,
            unit: SamplingUnit::TIME,
            min,
            max: LONGEST,
            power_of_two: false,
        }]
    }
}

/// The shortest interval of timers: the kernel checks them once per tick.
pub fn shortest_timer() -> u64 {
    use rustix::time::{ClockId, clock_getres};
    let tick = clock_getres(ClockId::MonotonicCoarse);
    (tick.tv_sec as u64) * 1_000_000_000 + tick.tv_nsec as u64
}
