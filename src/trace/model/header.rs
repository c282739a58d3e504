//! The machine and the clocks of a trace.

use gputrail_record::Nanos;

/// The beginning of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceHeader {
    /// A number that identifies this recording.
    pub identity: u64,
    /// The system clocks at the beginning.
    pub clocks: SystemClocks,
    /// The machine.
    pub machine: Machine,
    /// Ends of operations in which other recordings take part, too.
    pub shared: Vec<SharedEvent>,
}

/// The end of an operation in which several recordings take part: in all of them at nearly the same time.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SharedEvent {
    /// Equal in all recordings that take part.
    pub key: u64,
    /// When it ended.
    pub end: Nanos,
}

/// The machine of a recording. Unknown properties are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Its name.
    pub host: String,
    /// Kernel name, as `uname -s` prints it.
    pub system: String,
    /// Kernel release.
    pub release: String,
    /// Kernel version.
    pub version: String,
    /// Instruction set.
    pub architecture: String,
    /// Number of processors; 0 if unknown.
    pub processors: u32,
}

impl Machine {
    /// The machine that this program runs on.
    pub fn this() -> Machine {
        let kernel = |file: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/kernel/{file}"));
            text.unwrap_or_default().trim().to_owned()
        };
        Machine {
            host: kernel("hostname"),
            system: kernel("ostype"),
            release: kernel("osrelease"),
            version: kernel("version"),
            architecture: std::env::consts::ARCH.to_owned(),
            processors: std::thread::available_parallelism().map_or(0, |count| count.get() as u32),
        }
    }
}

/// The system clocks, read at one instant, ns. 0 stands for an unknown time.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemClocks {
    /// CLOCK_BOOTTIME, the clock of the trace.
    pub boottime: Nanos,
    /// CLOCK_MONOTONIC.
    pub monotonic: Nanos,
    /// CLOCK_MONOTONIC_RAW.
    pub monotonic_raw: Nanos,
    /// CLOCK_REALTIME.
    pub realtime: Nanos,
}
