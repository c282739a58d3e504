//! What takes the samples of a thread: a perf event of its own, or, on request, a timer that sends it signals.

use super::event::{SampleClock, ThreadEvent, explain};
use super::ring::RingRecord;
use super::threads::Told;
use super::timer::{self, ThreadTimer};
use crate::collect::sampling::Configuration;
use crate::record::{SamplingMethod, SamplingUnit};
use std::io;

/// The shortest interval of perf events: a sample takes some microseconds.
const SHORTEST: u64 = 50_000;
/// The longest interval.
const LONGEST: u64 = 1_000_000_000;
/// Bytes of the ring that is made to see whether one can be.
const SMALL_RING: usize = 4 << 10;

/// What takes samples.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum SampleSource {
    /// Perf events: nothing interrupts the program but the kernel.
    #[default]
    PerfEvents,
    /// POSIX timers: they send the program signals, which may interrupt its system calls, and are no faster than the
    /// kernel's tick, 250 Hz mostly.
    Timers,
}

impl SampleSource {
    /// The environment variable that says `timer` where timers are wanted.
    pub const VARIABLE: &str = "GPUTRAIL_SAMPLING_SOURCE";
    /// What it says then.
    pub const TIMER: &str = "timer";

    /// What the environment asks for.
    pub fn requested() -> SampleSource {
        match std::env::var_os(Self::VARIABLE) {
            Some(source) if source == Self::TIMER => SampleSource::Timers,
            _ => SampleSource::PerfEvents,
        }
    }

    /// What an agent can do that is a processor of the host.
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

    /// Whether the system lets this process do that; if not, what to change.
    pub fn permitted(self, interval: u64) -> Result<(), String> {
        match self {
            SampleSource::PerfEvents => {
                ThreadEvent::open(0, interval, SampleClock::MonotonicRaw, SMALL_RING)
                    .map(drop)
                    .map_err(|error| explain(&error))
            }
            // Whoever may run programs may have timers; that a signal is free shows where it is needed.
            SampleSource::Timers => Ok(()),
        }
    }

    /// Why a thread cannot be sampled, and what to change.
    pub fn explain(self, error: &io::Error) -> String {
        match (self, error.raw_os_error()) {
            (SampleSource::PerfEvents, _) => explain(error),
            (SampleSource::Timers, Some(libc::EAGAIN)) => {
                "no timer can be made: raise the limit of pending signals (ulimit -i)".to_owned()
            }
            (SampleSource::Timers, _) => format!("timers: {error}"),
        }
    }

    /// Samples `thread` of this process every `interval` ns that it runs.
    pub(super) fn open(
        self,
        thread: u32,
        interval: u64,
        clock: SampleClock,
        ring: usize,
    ) -> io::Result<ThreadSampler> {
        Ok(match self {
            SampleSource::PerfEvents => {
                ThreadSampler::Event(ThreadEvent::open(thread, interval, clock, ring)?)
            }
            SampleSource::Timers => {
                ThreadSampler::Timer(ThreadTimer::open(thread, interval, clock)?)
            }
        })
    }
}

/// One thread, being sampled until this is dropped.
pub(super) enum ThreadSampler {
    Event(ThreadEvent),
    Timer(ThreadTimer),
}

impl ThreadSampler {
    /// Takes out what has come since `last`, and tells it. `true`: there was something that is no record.
    pub fn drain(
        &mut self,
        scratch: &mut Vec<u8>,
        last: &mut u64,
        mut tell: impl FnMut(Told<'_>),
    ) -> bool {
        match self {
            ThreadSampler::Event(event) => event.drain(scratch, |mut records| {
                for record in records.by_ref() {
                    match record {
                        RingRecord::Sample(taken) => *last = taken.time,
                        RingRecord::Lost { count, time } => {
                            tell(Told::Gap(*last, time, count));
                            *last = time;
                            continue;
                        }
                        _ => {}
                    }
                    tell(Told::Record(record));
                }
                records.is_damaged()
            }),
            ThreadSampler::Timer(timer) => {
                let (lost, now) = timer.drain(|taken| {
                    *last = taken.time;
                    tell(Told::Record(RingRecord::Sample(taken)));
                });
                if lost > 0 {
                    tell(Told::Gap(*last, now, lost));
                    *last = now;
                }
                false
            }
        }
    }
}
