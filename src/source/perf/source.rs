//! The mechanism that samples a thread: a perf event or, on request, a POSIX timer that sends it signals.

use super::event::{ThreadEvent, explain};
use super::ring::RingRecord;
use super::threads::ThreadData;
use super::timer::{self, ThreadTimer};
use crate::collect::sampling::Configuration;
use crate::record::{SamplingMethod, SamplingUnit};
use std::io;

/// The shortest interval of perf events. A sample takes some microseconds.
const SHORTEST: u64 = 50_000;
/// The longest interval.
const LONGEST: u64 = 1_000_000_000;
/// Size of the ring of the event that tests for permission.
const SMALL_RING: usize = 4 << 10;

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
        match std::env::var_os(Self::VARIABLE) {
            Some(source) if source == Self::TIMER => SampleSource::Timers,
            _ => SampleSource::PerfEvents,
        }
    }

    /// The configurations that an agent on the host's processors supports.
    pub fn possible(self) -> Vec<Configuration> {
        let min = match self {
            SampleSource::PerfEvents => SHORTEST,
            SampleSource::Timers if !timer::CAN_READ => return Vec::new(),
            SampleSource::Timers => timer::shortest(),
        };
        vec![Configuration {
            method: SamplingMethod::HOST_TRAP,
            unit: SamplingUnit::TIME,
            min,
            max: LONGEST,
            power_of_two: false,
        }]
    }

    /// Checks whether the system permits this mechanism. The error names the remedy.
    pub fn permitted(self, interval: u64) -> Result<(), String> {
        match self {
            SampleSource::PerfEvents => ThreadEvent::open(0, interval, SMALL_RING)
                .map(drop)
                .map_err(|error| explain(&error)),
            // Timers need no permission; opening one reports a missing signal.
            SampleSource::Timers => Ok(()),
        }
    }

    /// Explains why a thread cannot be sampled, and the remedy.
    pub fn explain(self, error: &io::Error) -> String {
        match (self, error.raw_os_error()) {
            (SampleSource::PerfEvents, _) => explain(error),
            (SampleSource::Timers, Some(libc::EAGAIN)) => {
                "no timer can be made: raise the limit of pending signals (ulimit -i)".to_owned()
            }
            (SampleSource::Timers, _) => format!("timers: {error}"),
        }
    }

    /// Samples `thread` of this process every `interval` ns of its CPU time.
    pub(super) fn open(self, thread: u32, interval: u64, ring: usize) -> io::Result<ThreadSampler> {
        Ok(match self {
            SampleSource::PerfEvents => {
                ThreadSampler::Event(ThreadEvent::open(thread, interval, ring)?)
            }
            SampleSource::Timers => ThreadSampler::Timer(ThreadTimer::open(thread, interval)?),
        })
    }
}

/// The sampler of one thread, which is sampled until this is dropped.
pub(super) enum ThreadSampler {
    Event(ThreadEvent),
    Timer(ThreadTimer),
}

impl ThreadSampler {
    /// Reports everything sample since `last`. Returns `true` if the ring contained a malformed record.
    pub fn drain(
        &mut self,
        scratch: &mut Vec<u8>,
        last: &mut u64,
        mut report: impl FnMut(ThreadData<'_>),
    ) -> bool {
        match self {
            ThreadSampler::Event(event) => event.drain(scratch, |mut records| {
                for record in records.by_ref() {
                    match record {
                        RingRecord::Sample(sample) => *last = sample.time,
                        RingRecord::Lost { count, time } => {
                            report(ThreadData::Gap {
                                from: *last,
                                to: time,
                                lost: count,
                            });
                            *last = time;
                            continue;
                        }
                        _ => {}
                    }
                    report(ThreadData::Record(record));
                }
                records.is_damaged()
            }),
            ThreadSampler::Timer(timer) => {
                let (lost, now) = timer.drain(|sample| {
                    *last = sample.time;
                    report(ThreadData::Record(RingRecord::Sample(sample)));
                });
                if lost > 0 {
                    report(ThreadData::Gap {
                        from: *last,
                        to: now,
                        lost,
                    });
                    *last = now;
                }
                false
            }
        }
    }
}
