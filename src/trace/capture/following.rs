//! Follows the capture of a process that still runs, so that its trace is ready when the process ends.
//!
//! This works for most recordings: one process, and agents that are known before much has been recorded and whose
//! clocks are clocks of the system. Times are converted by snapshots that are taken after the records were written, so
//! they lie between snapshots as they do when a capture is read at the end. Wherever the whole capture would have given
//! other results, the trace is made again from the start.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::captures::{Options, Snapshots, begin, host_clock};
use super::process::ProcessStream;
use super::{Report, StreamOutput};
use crate::model::{Consumer, Indices, ProcessIndex, Stream};
use gputrail_buffer::clock::{self, ClockDomain, HostClock};
use gputrail_capture::{FileHeader, Follower, Metadata, Step};
use gputrail_record::{AgentId, ClockSnapshot, Kind, RecordRef, Records, ThreadId};

/// Minimum time between two readings of the clocks; it grows in long recordings.
const SPACING: Duration = Duration::from_millis(20);
/// In long recordings the time between two readings is this fraction of the recording's length.
const SHARE: u32 = 128;
/// Maximum size of the records that wait for an agent to be named.
const MAX_WAITING: usize = 4 << 20;

/// The outcome of following a capture.
#[derive(Debug)]
pub enum FollowOutcome {
    /// The stream is complete, as [`Captures`](super::Captures) would have produced it.
    Whole(Box<Report>),
    /// The stream must be produced again from the whole capture, for this reason.
    StartOver(&'static str),
}

/// A capture that is still growing. Its process runs on this machine.
///
/// [`advance`](Following::advance) reads a part of what has been written; when the capture is complete,
/// [`finish`](Following::finish) reads the rest. Between any two calls it may move to another thread.
pub struct Following<'a> {
    path: PathBuf,
    follower: Option<Follower>,
    consumer: Box<dyn Consumer + 'a>,
    options: &'a Options,
    state: FollowedState,
}

#[expect(clippy::large_enum_variant, reason = "there is one")]
enum FollowedState {
    /// Names have come; records wait for an agent to be named.
    Waiting(Beginning),
    /// Records are being passed on.
    Running(RunningStream),
    /// The whole capture would have given another result, for this reason.
    Over(&'static str),
}

/// The beginning of the capture.
#[derive(Default)]
struct Beginning {
    metadata: Metadata,
    /// Records of calls before the first agent was named: for each run, the thread and its number of bytes in
    /// `records`.
    threads: Vec<(ThreadId, usize)>,
    records: Vec<u8>,
}

impl<'a> Following<'a> {
    /// Follows the capture at `path`, and passes it on to `consumer`.
    pub fn new(path: &Path, options: &'a Options, consumer: impl Consumer + 'a) -> Following<'a> {
        Following {
            path: path.to_owned(),
            follower: None,
            consumer: Box::new(consumer),
            options,
            state: FollowedState::Waiting(Beginning::default()),
        }
    }

    /// Reads the next part of the capture; `false` if there is none at present. Errors are the consumer's.
    pub fn advance(&mut self) -> io::Result<bool> {
        match self.step() {
            Ok(more) => Ok(more),
            Err(FollowStop::StartOver(why)) => {
                self.state = FollowedState::Over(why);
                Ok(false)
            }
            Err(FollowStop::Failed(error)) => Err(error),
        }
    }

    /// Passes on the values that were held back for records that come late, because nothing is being recorded. Called
    /// when there is no further part; if one comes all the same, its work is counted from the time that the counters
    /// have reached.
    pub fn flush(&mut self) -> io::Result<()> {
        let FollowedState::Running(running) = &mut self.state else {
            return Ok(());
        };
        running.output(&mut *self.consumer, self.options, |process, output| {
            process.flush(output)
        })
    }

    /// Reads the rest of a capture that is complete, and ends the stream.
    pub fn finish(mut self) -> io::Result<FollowOutcome> {
        while self.advance()? {}
        let consumer = &mut *self.consumer;
        let has_gaps = self.follower.as_ref().is_some_and(Follower::has_gaps);
        match self.state {
            FollowedState::Over(why) => Ok(FollowOutcome::StartOver(why)),
            FollowedState::Running(running) => running.finish(consumer, self.options, has_gaps),
            FollowedState::Waiting(beginning) if beginning.threads.is_empty() => {
                Ok(FollowOutcome::StartOver("nothing was recorded"))
            }
            // There were calls, but no agent.
            FollowedState::Waiting(beginning) => {
                let header = *self.follower.expect("it has brought records").header();
                match beginning.begin(&header, consumer, self.options) {
                    Ok(running) => running.finish(consumer, self.options, has_gaps),
                    Err(FollowStop::StartOver(why)) => Ok(FollowOutcome::StartOver(why)),
                    Err(FollowStop::Failed(error)) => Err(error),
                }
            }
        }
    }

    fn step(&mut self) -> Result<bool, FollowStop> {
        if let FollowedState::Over(_) = self.state {
            return Ok(false);
        }
        let Some(follower) = self.follower.as_mut() else {
            return self.open();
        };
        let header = *follower.header();
        let step = follower
            .step()
            .map_err(|_| FollowStop::StartOver("the capture is damaged"))?;
        let (consumer, options) = (&mut *self.consumer, self.options);
        match (step, &mut self.state) {
            (Step::Nothing, _) => return Ok(false),
            (Step::Metadata(records), FollowedState::Running(running)) => {
                for record in records {
                    running.learn(consumer, options, &record)?;
                }
            }
            (Step::Metadata(records), FollowedState::Waiting(beginning)) => {
                records.for_each(|record| beginning.metadata.add(&record));
            }
            (Step::Records(chunk), FollowedState::Running(running)) => {
                running.records(consumer, options, chunk.thread, chunk.records())?;
            }
            (Step::Records(chunk), FollowedState::Waiting(beginning)) => {
                let bytes = chunk.bytes();
                beginning.threads.push((chunk.thread, bytes.len()));
                beginning.records.extend_from_slice(bytes);
                if beginning.is_ready() {
                    let beginning = std::mem::take(beginning);
                    self.state = FollowedState::Over("it could not begin");
                    self.state =
                        FollowedState::Running(beginning.begin(&header, consumer, options)?);
                }
            }
            (_, FollowedState::Over(_)) => return Ok(false),
        }
        Ok(true)
    }

    fn open(&mut self) -> Result<bool, FollowStop> {
        let opened = Follower::open(&self.path);
        let follower = opened.map_err(|_| FollowStop::StartOver("the capture cannot be read"))?;
        if follower
            .as_ref()
            .is_some_and(|follower| follower.header().tick_source != clock::init().code())
        {
            return Err(FollowStop::StartOver(
                "the process has a tick source of its own",
            ));
        }
        self.follower = follower;
        Ok(self.follower.is_some())
    }
}

impl Beginning {
    /// Agents that come after the stream has begun force a new start, so it waits for a while.
    fn is_ready(&self) -> bool {
        !self.metadata.agents.is_empty() || self.records.len() >= MAX_WAITING
    }

    /// Begins the stream with the records that were waiting.
    fn begin(
        self,
        header: &FileHeader,
        consumer: &mut dyn Consumer,
        options: &Options,
    ) -> Result<RunningStream, FollowStop> {
        let mut running = RunningStream::begin(header, self.metadata, consumer, options)?
            .ok_or(FollowStop::StartOver("the process has no clock yet"))?;
        let mut records = &self.records[..];
        for (thread, length) in self.threads {
            let own;
            (own, records) = records.split_at(length);
            running.records(consumer, options, thread, Records::new(own))?;
        }
        Ok(running)
    }
}

/// The reason to stop before the end.
enum FollowStop {
    StartOver(&'static str),
    Failed(io::Error),
}

impl From<io::Error> for FollowStop {
    fn from(error: io::Error) -> FollowStop {
        FollowStop::Failed(error)
    }
}

/// A stream that has begun.
struct RunningStream {
    process: ProcessStream<'static>,
    report: Report,
    indices: Indices,
    header: FileHeader,
    snapshots: Snapshots,
    /// Clock snapshots taken here, after the records that they convert were written.
    own: Vec<ClockSnapshot>,
    began: Instant,
    latest_reading: Option<Instant>,
    /// The clock domain of each agent, as recognised so far.
    domains: Vec<(AgentId, ClockDomain)>,
}

impl RunningStream {
    /// Begins the stream of a process with `metadata`. `None` if its times cannot be converted yet.
    fn begin(
        header: &FileHeader,
        metadata: Metadata,
        consumer: &mut dyn Consumer,
        options: &Options,
    ) -> Result<Option<RunningStream>, FollowStop> {
        let mut snapshots = Snapshots::default();
        let clocks: Vec<_> = metadata
            .snapshots
            .iter()
            .filter_map(|snapshot| snapshots.next(snapshot))
            .collect();
        if clocks.is_empty() {
            return Ok(None);
        }
        let own = vec![clock::snapshot()];
        let Some(host) = host(header, &metadata, &own) else {
            return Ok(None);
        };
        let agents = begin(&[(header, &metadata)], &clocks, options, consumer)?.remove(0);
        let mut output = StreamOutput {
            stream: Stream::new(consumer),
            options,
            report: Report {
                processes: 1,
                ..Report::default()
            },
        };
        let names = Cow::Owned(metadata);
        let process = ProcessStream::new(names, ProcessIndex(0), host, agents, &mut output)?;
        Ok(Some(RunningStream {
            domains: process.domains(),
            process,
            report: output.report,
            indices: output.stream.indices,
            header: *header,
            snapshots,
            own,
            began: Instant::now(),
            latest_reading: None,
        }))
    }

    /// Runs `pass_on` with the stream.
    fn output(
        &mut self,
        consumer: &mut dyn Consumer,
        options: &Options,
        pass_on: impl FnOnce(&mut ProcessStream<'static>, &mut StreamOutput<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut output = StreamOutput {
            stream: Stream {
                consumer,
                indices: self.indices,
            },
            options,
            report: std::mem::take(&mut self.report),
        };
        let done = pass_on(&mut self.process, &mut output);
        (self.report, self.indices) = (output.report, output.stream.indices);
        done
    }

    fn learn(
        &mut self,
        consumer: &mut dyn Consumer,
        options: &Options,
        record: &RecordRef<'_>,
    ) -> Result<(), FollowStop> {
        match record.kind() {
            Kind::AGENT => return Err(FollowStop::StartOver("a device was found late")),
            Kind::CLOCK_SNAPSHOT => {
                let clocks = record
                    .read()
                    .and_then(|snapshot| self.snapshots.next(&snapshot));
                clocks.map_or(Ok(()), |clocks| consumer.clocks(&clocks))?;
            }
            _ if self.process.is_renamed_by(record) => {
                return Err(FollowStop::StartOver("an object got its name late"));
            }
            _ => {}
        }
        self.process.learn(record);
        if self.process.metadata().left_out > 0 {
            // The trace that is made at the end counts them.
            return Err(FollowStop::StartOver("there are more names than fit"));
        }
        if let Some(note) = record.read() {
            self.output(consumer, options, |process, output| {
                process.switched(output, &note)
            })?;
        }
        Ok(())
    }

    fn records(
        &mut self,
        consumer: &mut dyn Consumer,
        options: &Options,
        thread: ThreadId,
        mut records: Records<'_>,
    ) -> Result<(), FollowStop> {
        let spacing = SPACING.max(self.began.elapsed() / SHARE);
        if self
            .latest_reading
            .is_none_or(|latest| latest.elapsed() >= spacing)
        {
            self.read_clocks()?;
        }
        self.output(consumer, options, |process, output| {
            records.try_for_each(|record| process.record(output, thread, &record))
        })?;
        Ok(())
    }

    /// Reads the clocks, and converts times with these readings from now on.
    fn read_clocks(&mut self) -> Result<(), FollowStop> {
        self.latest_reading = Some(Instant::now());
        self.own.push(clock::snapshot());
        let host = host(&self.header, self.process.metadata(), &self.own);
        self.process
            .set_host(host.ok_or(FollowStop::StartOver("the clocks contradict each other"))?);
        let domains = self.process.domains();
        for (agent, domain) in &domains {
            let earlier = self.domains.iter().find(|(known, _)| known == agent);
            let earlier = earlier.map_or(ClockDomain::Unknown, |(_, domain)| *domain);
            let changed = earlier != ClockDomain::Unknown && earlier != *domain;
            if changed || *domain == ClockDomain::Own {
                return Err(FollowStop::StartOver(
                    "a device's clock is fitted better at the end",
                ));
            }
        }
        self.domains = domains;
        Ok(())
    }

    fn finish(
        mut self,
        consumer: &mut dyn Consumer,
        options: &Options,
        has_gaps: bool,
    ) -> io::Result<FollowOutcome> {
        self.process.may_lack_completions |= has_gaps;
        match self.read_clocks() {
            Err(FollowStop::StartOver(why)) => return Ok(FollowOutcome::StartOver(why)),
            Err(FollowStop::Failed(error)) => return Err(error),
            Ok(()) => {}
        }
        self.output(consumer, options, |process, output| {
            process.finish(output)?;
            output.stream.consumer.finish()
        })?;
        if self.report.estimated > 0 {
            return Ok(FollowOutcome::StartOver(
                "a device's clock was read after its work",
            ));
        }
        Ok(FollowOutcome::Whole(Box::new(self.report)))
    }
}

fn host(header: &FileHeader, metadata: &Metadata, own: &[ClockSnapshot]) -> Option<HostClock> {
    let snapshots = [&metadata.snapshots, own].concat();
    host_clock(header, &snapshots).ok().map(|(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::super::Captures;
    use super::*;
    use crate::model::Producer;
    use gputrail_buffer::clock::SystemClock;
    use gputrail_capture::{Reader, Writer};
    use gputrail_collect::recorder::{Recorder, RecorderOptions};
    use gputrail_record::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    const OPERATION: Operation = Operation {
        domain: Domain::SIM,
        number: 1,
    };
    use gputrail_record::Domain;

    /// The device's clock.
    fn device_now() -> DeviceTime {
        DeviceTime(SystemClock::MonotonicRaw.read().0)
    }

    fn name_agent(recorder: &Recorder) -> AgentId {
        let mut agent = Agent::blank();
        agent.name = recorder.names().string("device");
        let agent = recorder.names().agent(agent);
        let mut pair = ClockPair::blank();
        pair.before = clock::now_ordered();
        pair.device = device_now();
        (pair.after, pair.agent) = (clock::now_ordered(), agent);
        recorder.names().clock_pair(pair);
        agent
    }

    /// Calls that launch kernels, with a flush now and then.
    fn work(recorder: &Recorder, agent: AgentId) {
        let mut host = recorder.host_thread(ThreadId(1), true).unwrap();
        for n in 0..2000 {
            let call = host.enter(OPERATION, 1000, clock::now());
            let (mut dispatch, mut completion) = (KernelDispatch::blank(), Completion::blank());
            dispatch.work.id = host.new_work();
            (dispatch.work.correlation, dispatch.work.agent) = (call.correlation, agent);
            (dispatch.work.enqueued, dispatch.grid) = (call.start, [64, 1, 1]);
            (completion.work, completion.agent) = (dispatch.work.id, agent);
            completion.correlation = call.correlation;
            (completion.start, completion.end) = (device_now(), device_now());
            (completion.queued, completion.submitted) = (completion.start, completion.start);
            host.write(dispatch);
            host.exit(
                &call,
                clock::now(),
                0,
                gputrail_collect::correlation::Extra::NONE,
            );
            host.write(completion);
            if n % 100 == 0 {
                recorder.flush();
            }
        }
    }

    /// Records `program` while a trace is made of it; returns the outcome and the capture.
    fn made_ahead(
        program: impl FnOnce(&Recorder),
    ) -> (FollowOutcome, tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.gputrail");
        let options = RecorderOptions::default();
        let file_header = Recorder::file_header(options.ticks, ProcessId(7));
        let writer = Writer::create(&path, &file_header).unwrap();
        let recorder = Recorder::start(&options, None, writer).unwrap();
        let running = AtomicBool::new(true);
        let options = Options::default();
        let mut nobody = ();
        let mut following = Following::new(&path, &options, &mut nobody);
        let ahead = std::thread::scope(|scope| {
            let beside = scope.spawn(|| {
                while running.load(Ordering::Acquire) {
                    if !following.advance().unwrap() {
                        std::thread::yield_now();
                    }
                }
                following
            });
            program(&recorder);
            recorder.finish().unwrap();
            running.store(false, Ordering::Release);
            let mut following = beside.join().unwrap();
            while following.advance().unwrap() {}
            following.flush().unwrap();
            following.finish().unwrap()
        });
        (ahead, directory, path)
    }

    #[test]
    fn a_trace_made_ahead_equals_one_made_at_the_end() {
        let (ahead, _directory, path) = made_ahead(|recorder| {
            let agent = name_agent(recorder);
            work(recorder, agent);
            recorder.names().note(NoteKind::OTHER, "late");
        });
        let FollowOutcome::Whole(ahead) = ahead else {
            panic!("{ahead:?}");
        };
        let captures = [Reader::open(&path).unwrap()];
        let options = Options::default();
        let end = Captures::new(&captures, &options).produce(&mut ()).unwrap();
        assert_eq!(
            (ahead.calls, ahead.kernels, ahead.before_enqueue),
            (2000, 2000, 0)
        );
        let without_clocks = |report: &Report| Report {
            clamped: 0,
            clocks: Vec::new(),
            ..report.clone()
        };
        assert_eq!(without_clocks(&ahead), without_clocks(&end));
    }

    #[test]
    fn a_device_that_is_found_late_starts_the_trace_over() {
        let (ahead, _directory, _path) = made_ahead(|recorder| {
            let agent = name_agent(recorder);
            work(recorder, agent);
            let late = name_agent(recorder);
            work(recorder, late);
        });
        assert!(
            matches!(ahead, FollowOutcome::StartOver("a device was found late")),
            "{ahead:?}"
        );
    }

    #[test]
    fn calls_from_before_the_first_device_wait_for_it() {
        for devices in [0, 1] {
            let (ahead, _directory, _path) = made_ahead(|recorder| {
                let mut host = recorder.host_thread(ThreadId(2), true).unwrap();
                for _ in 0..10 {
                    let call = host.enter(OPERATION, 1000, clock::now());
                    host.exit(
                        &call,
                        clock::now(),
                        0,
                        gputrail_collect::correlation::Extra::NONE,
                    );
                    recorder.flush();
                }
                for _ in 0..devices {
                    let agent = name_agent(recorder);
                    work(recorder, agent);
                }
            });
            let FollowOutcome::Whole(report) = ahead else {
                panic!("{ahead:?}");
            };
            assert_eq!(report.calls, 10 + devices * 2000);
        }
    }

    #[test]
    fn a_recording_without_records_has_no_trace_ahead() {
        let (ahead, _directory, _path) = made_ahead(|_| {});
        assert!(matches!(ahead, FollowOutcome::StartOver(_)), "{ahead:?}");
    }
}
