//! The mechanism that samples a thread: a perf event or, on request, a POSIX timer that sends it signals.

use super::event::{self, ThreadEvent};
use super::ring::{RingRecord, RingRecords};
use super::timer::ThreadTimer;
use gputrail_collect::agents::ConfigureError;
use gputrail_collect::sampling::SampleSource;
use std::io;

/// Size of the ring of the event that tests for permission.
const SMALL_RING: usize = 4 << 10;

/// The sampler of one thread, which is sampled until this is dropped.
pub(super) enum ThreadSampler {
    Event(ThreadEvent),
    Timer(ThreadTimer),
}

impl ThreadSampler {
    /// Samples `thread` of this process every `interval` ns of its CPU time.
    pub fn open(
        source: SampleSource,
        thread: u32,
        interval: u64,
        ring: usize,
    ) -> io::Result<ThreadSampler> {
        Ok(match source {
            SampleSource::PerfEvents => {
                ThreadSampler::Event(ThreadEvent::open(thread, interval, ring)?)
            }
            SampleSource::Timers => ThreadSampler::Timer(ThreadTimer::open(thread, interval)?),
        })
    }

    /// Reports everything sample since `last`. Returns `true` if the ring contained a malformed record.
    pub fn drain(
        &mut self,
        scratch: &mut Vec<u8>,
        last: &mut u64,
        mut report: impl FnMut(ThreadData<'_>),
    ) -> bool {
        match self {
            ThreadSampler::Event(event) => {
                event.drain(scratch, |records| read_ring(records, last, report))
            }
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

/// Data from a sampled thread.
#[derive(Clone, Copy)]
pub enum ThreadData<'a> {
    /// A record.
    Record(RingRecord<'a>),
    /// An interval in which samples were lost.
    Gap {
        /// Start, by the samples' clock.
        from: u64,
        /// End.
        to: u64,
        /// The number of lost samples.
        lost: u64,
    },
}

/// Checks whether a mechanism works. The error names the remedy.
pub fn permitted(source: SampleSource, interval: u64) -> Result<(), String> {
    try_once(source, interval).map_err(|error| event::explain(&error))
}

/// Checks whether a mechanism works. The error says whether the system forbids or lacks it, or it failed.
pub(super) fn check(source: SampleSource, interval: u64) -> Result<(), ConfigureError> {
    try_once(source, interval).map_err(|error| refused(&error))
}

fn try_once(source: SampleSource, interval: u64) -> io::Result<()> {
    match source {
        SampleSource::PerfEvents => ThreadEvent::open(0, interval, SMALL_RING).map(drop),
        // Timers need no permission; opening one reports a missing signal.
        SampleSource::Timers => Ok(()),
    }
}

/// Explains why a thread cannot be sampled, and the remedy.
pub(super) fn explain(source: SampleSource, error: &io::Error) -> String {
    match (source, error.raw_os_error()) {
        (SampleSource::PerfEvents, _) => event::explain(error),
        (SampleSource::Timers, Some(libc::EAGAIN)) => {
            "no timer can be made: raise the limit of pending signals (ulimit -i)".to_owned()
        }
        (SampleSource::Timers, _) => format!("timers: {error}"),
    }
}

/// The error of an event that cannot be opened: the system forbids or lacks perf events, or it failed for another reason.
fn refused(error: &io::Error) -> ConfigureError {
    let text = event::explain(error);
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM | libc::ENOSYS | libc::ENOENT | libc::EOPNOTSUPP) => {
            ConfigureError::System(text)
        }
        _ => ConfigureError::Failed(text),
    }
}

/// Reports the records of a ring since `last`. A malformed record ends the ring and is an invalid sample. Returns whether
/// there was one.
fn read_ring(
    mut records: RingRecords<'_>,
    last: &mut u64,
    mut report: impl FnMut(ThreadData<'_>),
) -> bool {
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
    let is_damaged = records.is_damaged();
    if is_damaged {
        report(ThreadData::Record(RingRecord::Invalid));
    }
    is_damaged
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of a ring: its type, the size that its header states, and words of its body.
    fn record(kind: u32, size: u16, body: &[u64]) -> Vec<u8> {
        let mut bytes = [&kind.to_ne_bytes()[..], &[0, 0], &size.to_ne_bytes()].concat();
        bytes.extend(body.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    #[test]
    fn a_sample_that_is_cut_and_a_ring_that_is_damaged_are_invalid_samples() {
        const SAMPLE: u32 = 9;
        let whole = record(SAMPLE, 40, &[0x7f00, 11 << 32, 500, 1]);
        // As the kernel would write a sample without its time and CPU, and one that claims more than there is.
        let cut = record(SAMPLE, 24, &[0x7f00, 11 << 32]);
        let damaged = record(SAMPLE, 400, &[0x7f00]);
        let read = |run: &[Vec<u8>]| {
            let (mut last, mut samples, mut invalid) = (0, 0, 0);
            let run = run.concat();
            let is_damaged = read_ring(RingRecords::new(&run), &mut last, |data| match data {
                ThreadData::Record(RingRecord::Sample(_)) => samples += 1,
                ThreadData::Record(RingRecord::Invalid) => invalid += 1,
                _ => panic!("only samples"),
            });
            (samples, invalid, last, is_damaged)
        };
        let run = [whole.clone(), cut.clone(), whole.clone()];
        assert_eq!(read(&run), (2, 1, 500, false));
        assert_eq!(read(&[whole, cut, damaged]), (1, 2, 500, true));
    }

    #[test]
    fn what_the_system_forbids_or_lacks_differs_from_what_fails() {
        let error = |errno| refused(&io::Error::from_raw_os_error(errno));
        for errno in [libc::EACCES, libc::EPERM, libc::ENOSYS] {
            assert!(matches!(error(errno), ConfigureError::System(_)), "{errno}");
        }
        for errno in [libc::EMFILE, libc::ENOMEM, libc::EIO] {
            assert!(matches!(error(errno), ConfigureError::Failed(_)), "{errno}");
        }
    }
}
