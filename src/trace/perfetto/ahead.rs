//! A trace that is made while its program runs, so that it is there when the program ends.
//!
//! This works for what most recordings are: one process, devices that are known before it has recorded much,
//! whose clocks are clocks of the system. Times are converted by snapshots that are taken after the
//! records were written, so they lie between snapshots as they do when a trace is made at the end.
//! Wherever it turns out that the end would have told otherwise, the answer is to start over.

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::convert::{
    ConvertError, Making, Options, Out, Report, Snapshots, describe, machine, seed_of,
};
use super::gpus::Gpus;
use super::observer::{GpuIndex, Observer, ProcessIndex};
use super::process::ProcessTrace;
use super::writer::TraceWriter;
use crate::capture::{FileHeader, Follower, Metadata, Step};
use crate::clock::{self, Domain, HostClock};
use crate::record::{AgentId, ClockSnapshot, Kind, RecordRef, Records, ThreadId};

/// Time between two looks at the clocks, at least; longer in long recordings.
const SPACING: Duration = Duration::from_millis(20);
/// How much of the recording's length lies between two looks, once that is longer.
const SHARE: u32 = 128;
/// Bytes of records that wait for a device to be named, at most.
const PATIENCE: usize = 4 << 20;

/// How a trace that was made ahead turned out.
#[derive(Debug)]
pub enum Ahead {
    /// It is whole, as [`convert`](super::convert) would have made it.
    Whole(Box<Report>),
    /// It has to be made again from the whole capture, for this reason.
    StartOver(&'static str),
}

/// A trace of a capture that is still growing. Its process runs on this machine.
///
/// [`advance`](Following::advance) takes in a piece of what has been written; when no more will be,
/// [`finish`](Following::finish) takes in the rest. Between any two calls it may move to another thread.
pub struct Following<'a> {
    path: PathBuf,
    follower: Option<Follower>,
    state: State<'a>,
}

#[expect(clippy::large_enum_variant, reason = "there is one")]
enum State<'a> {
    /// Names have come, and records that wait for a device to be named.
    Waiting(Beginning<'a>),
    /// The trace is being made.
    Making(Trace<'a>),
    /// The end of the recording would have told otherwise.
    Over(&'static str),
}

/// What a trace begins with.
struct Beginning<'a> {
    out: Out<'a>,
    options: &'a Options,
    observer: &'a mut dyn Observer,
    metadata: Metadata,
    /// Records of calls from before the first device was named: a thread, and how many bytes of `records`
    /// are its own.
    threads: Vec<(ThreadId, usize)>,
    records: Vec<u8>,
}

impl<'a> Following<'a> {
    /// A trace of the capture at `path`, written to `out`.
    pub fn new(
        path: &Path,
        out: impl Write + Send + 'a,
        options: &'a Options,
        observer: &'a mut dyn Observer,
    ) -> Self {
        Following {
            path: path.to_owned(),
            follower: None,
            state: State::Waiting(Beginning {
                out: Box::new(out),
                options,
                observer,
                metadata: Metadata::default(),
                threads: Vec::new(),
                records: Vec::new(),
            }),
        }
    }

    /// Takes in the next piece of the capture; `false` if there is none, for now.
    pub fn advance(&mut self) -> Result<bool, ConvertError> {
        match self.step() {
            Ok(more) => Ok(more),
            Err(Stop::StartOver(why)) => {
                self.state = State::Over(why);
                Ok(false)
            }
            Err(Stop::Failed(source)) => {
                let written = match &self.state {
                    State::Making(trace) => trace.making.writer.written(),
                    _ => 0,
                };
                Err(ConvertError { written, source })
            }
        }
    }

    /// Tells what is held back for the sake of what comes late, for nobody records any more. To be called when there is no
    /// further piece; should one come all the same, its work is counted from where the counters have got to.
    pub fn settle(&mut self) -> Result<(), ConvertError> {
        let State::Making(trace) = &mut self.state else {
            return Ok(());
        };
        let settled = trace.process.settle(&mut trace.making.writer);
        settled.map_err(|source| ConvertError {
            written: trace.making.writer.written(),
            source,
        })
    }

    /// Takes in what is left of a capture that grows no more, and ends the trace.
    pub fn finish(mut self) -> Result<Ahead, ConvertError> {
        while self.advance()? {}
        match self.state {
            State::Over(why) => Ok(Ahead::StartOver(why)),
            State::Making(trace) => trace.finish(),
            State::Waiting(beginning) if beginning.threads.is_empty() => {
                Ok(Ahead::StartOver("nothing was recorded"))
            }
            // Calls, and no device.
            State::Waiting(beginning) => {
                let header = *self.follower.expect("it has brought records").header();
                match beginning.begin(&header) {
                    Ok(trace) => trace.finish(),
                    Err(Stop::StartOver(why)) => Ok(Ahead::StartOver(why)),
                    Err(Stop::Failed(source)) => Err(ConvertError { written: 0, source }),
                }
            }
        }
    }

    fn step(&mut self) -> Result<bool, Stop> {
        if let State::Over(_) = self.state {
            return Ok(false);
        }
        let Some(follower) = self.follower.as_mut() else {
            return self.open();
        };
        let header = *follower.header();
        let step = follower
            .step()
            .map_err(|_| Stop::StartOver("the capture is damaged"))?;
        match (step, &mut self.state) {
            (Step::Nothing, _) => return Ok(false),
            (Step::Metadata(records), State::Making(trace)) => trace.learn(records)?,
            (Step::Metadata(records), State::Waiting(beginning)) => {
                records.for_each(|record| beginning.metadata.add(&record));
            }
            (Step::Records(chunk), State::Making(trace)) => {
                trace.records(chunk.thread, chunk.records())?;
            }
            (Step::Records(chunk), State::Waiting(beginning)) => {
                let bytes = chunk.bytes();
                beginning.threads.push((chunk.thread, bytes.len()));
                beginning.records.extend_from_slice(bytes);
                if beginning.is_ready() {
                    let State::Waiting(beginning) =
                        std::mem::replace(&mut self.state, State::Over("it could not begin"))
                    else {
                        unreachable!("it was waiting");
                    };
                    self.state = State::Making(beginning.begin(&header)?);
                }
            }
            (_, State::Over(_)) => return Ok(false),
        }
        Ok(true)
    }

    fn open(&mut self) -> Result<bool, Stop> {
        let opened = Follower::open(&self.path);
        let follower = opened.map_err(|_| Stop::StartOver("the capture cannot be read"))?;
        if follower
            .as_ref()
            .is_some_and(|follower| follower.header().tick_source != clock::init().code())
        {
            return Err(Stop::StartOver("the process has a tick source of its own"));
        }
        self.follower = follower;
        Ok(self.follower.is_some())
    }
}

impl<'a> Beginning<'a> {
    /// Devices that come later than the trace's begin make it start over: there is some patience.
    fn is_ready(&self) -> bool {
        !self.metadata.agents.is_empty() || self.records.len() >= PATIENCE
    }

    /// Begins the trace, with the records that were waiting.
    fn begin(self, header: &FileHeader) -> Result<Trace<'a>, Stop> {
        let mut trace = Trace::begin(header, self.metadata, self.out, self.options, self.observer)?
            .ok_or(Stop::StartOver("the process has no clock yet"))?;
        let mut records = &self.records[..];
        for (thread, length) in self.threads {
            let own;
            (own, records) = records.split_at(length);
            trace.records(thread, Records::new(own))?;
        }
        Ok(trace)
    }
}

/// Why to stop before the end.
enum Stop {
    StartOver(&'static str),
    Failed(std::io::Error),
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Stop {
        Stop::Failed(error)
    }
}

/// The trace that is being made.
struct Trace<'a> {
    making: Making<'a>,
    process: ProcessTrace<'static>,
    header: FileHeader,
    thinned: Snapshots,
    /// Taken here, after the records that they serve were written.
    own: Vec<ClockSnapshot>,
    began: Instant,
    looked: Option<Instant>,
    /// What the agents' clocks were found to be.
    domains: Vec<(AgentId, Domain)>,
}

impl<'a> Trace<'a> {
    /// Begins the trace of a process of which `metadata` is known. `None`: its time cannot be told yet.
    fn begin(
        header: &FileHeader,
        metadata: Metadata,
        out: Out<'a>,
        options: &'a Options,
        observer: &'a mut dyn Observer,
    ) -> Result<Option<Trace<'a>>, Stop> {
        let mut thinned = Snapshots::default();
        let clocks: Vec<_> = metadata
            .snapshots
            .iter()
            .filter_map(|snapshot| thinned.next(snapshot))
            .collect();
        let Some((first, others)) = clocks.split_first() else {
            return Ok(None);
        };
        let own = vec![clock::snapshot()];
        let Some(host) = host(header, &metadata, &own) else {
            return Ok(None);
        };
        let machine = machine(std::iter::once(&metadata), options);
        let mut writer = TraceWriter::new(out, seed_of(header), first, &machine)?;
        if options.compress {
            writer.compress();
        }
        let mut making = Making {
            writer,
            options,
            observer,
            report: Report::default(),
        };
        let mut gpus = Gpus::default();
        let indices = gpus.add(&metadata);
        for (index, gpu) in (0..).zip(gpus.list()) {
            making.observer.gpu(GpuIndex(index), &gpu.name);
        }
        let mut describe_all = || {
            making.writer.gpus(gpus.list())?;
            others
                .iter()
                .try_for_each(|clocks| making.writer.clocks(clocks))?;
            describe(std::iter::once((header.process, &metadata)), &mut making)
        };
        describe_all()?;
        let process = ProcessTrace::new(
            Cow::Owned(metadata),
            header.process,
            ProcessIndex(0),
            host,
            indices,
            &mut making,
        )?;
        making.report.processes = 1;
        Ok(Some(Trace {
            domains: process.domains(),
            making,
            process,
            header: *header,
            thinned,
            own,
            began: Instant::now(),
            looked: None,
        }))
    }

    fn learn(&mut self, records: Records<'_>) -> Result<(), Stop> {
        for record in records {
            self.learn_one(&record)?;
        }
        Ok(())
    }

    fn learn_one(&mut self, record: &RecordRef<'_>) -> Result<(), Stop> {
        match record.kind() {
            Kind::AGENT => return Err(Stop::StartOver("a device was found late")),
            Kind::CLOCK_SNAPSHOT => {
                let clocks = record
                    .read()
                    .and_then(|snapshot| self.thinned.next(&snapshot));
                clocks.map_or(Ok(()), |clocks| self.making.writer.clocks(&clocks))?;
            }
            _ => {}
        }
        self.process.learn(record);
        Ok(())
    }

    fn records(&mut self, thread: ThreadId, records: Records<'_>) -> Result<(), Stop> {
        let spacing = SPACING.max(self.began.elapsed() / SHARE);
        if self.looked.is_none_or(|looked| looked.elapsed() >= spacing) {
            self.look_at_clocks()?;
        }
        for record in records {
            self.process.record(&mut self.making, thread, &record)?;
        }
        Ok(())
    }

    /// Tells time by what the clocks show now.
    fn look_at_clocks(&mut self) -> Result<(), Stop> {
        self.looked = Some(Instant::now());
        self.own.push(clock::snapshot());
        let host = host(&self.header, self.process.metadata(), &self.own);
        self.process
            .set_host(host.ok_or(Stop::StartOver("the clocks contradict each other"))?);
        let domains = self.process.domains();
        for (agent, domain) in &domains {
            let earlier = self.domains.iter().find(|(known, _)| known == agent);
            let earlier = earlier.map_or(Domain::Unknown, |(_, domain)| *domain);
            let changed = earlier != Domain::Unknown && earlier != *domain;
            if changed || *domain == Domain::Own {
                return Err(Stop::StartOver(
                    "a device's clock is fitted better at the end",
                ));
            }
        }
        self.domains = domains;
        Ok(())
    }

    fn finish(mut self) -> Result<Ahead, ConvertError> {
        match self.look_at_clocks() {
            Err(Stop::StartOver(why)) => return Ok(Ahead::StartOver(why)),
            Err(Stop::Failed(source)) => {
                let written = self.making.writer.written();
                return Err(ConvertError { written, source });
            }
            Ok(()) => {}
        }
        let Trace {
            mut making,
            mut process,
            ..
        } = self;
        let ended = process.finish(&mut making);
        let Making {
            mut writer,
            mut report,
            ..
        } = making;
        let written = writer.written();
        ended
            .and_then(|()| writer.end_trace())
            .map_err(|source| ConvertError { written, source })?;
        report.bytes = writer.bytes();
        if report.estimated > 0 {
            return Ok(Ahead::StartOver("a device's clock was read after its work"));
        }
        Ok(Ahead::Whole(Box::new(report)))
    }
}

fn host(header: &FileHeader, metadata: &Metadata, own: &[ClockSnapshot]) -> Option<HostClock> {
    let source = clock::TickSource::from_code(header.tick_source)?;
    let snapshots = [&metadata.snapshots, own].concat();
    HostClock::new(source, header.tick_frequency, &snapshots).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::summary::Summary;
    use crate::capture::{Reader, Writer};
    use crate::clock::SystemClock;
    use crate::collect::recorder::{Recorder, RecorderOptions};
    use crate::record::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    const OPERATION: Operation = Operation {
        domain: Domain::SIM,
        number: 1,
    };
    use crate::record::Domain;

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
                crate::collect::correlation::Extra::NONE,
            );
            host.write(completion);
            if n % 100 == 0 {
                recorder.flush();
            }
        }
    }

    /// Records `program` while a trace is made of it; the outcome and the capture.
    fn made_ahead(
        program: impl FnOnce(&Recorder),
    ) -> (Ahead, tempfile::TempDir, std::path::PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.gputrail");
        let options = RecorderOptions::default();
        let file_header = Recorder::file_header(options.ticks, ProcessId(7));
        let writer = Writer::create(&path, &file_header).unwrap();
        let recorder = Recorder::start(&options, None, writer).unwrap();
        let running = AtomicBool::new(true);
        let options = Options::default();
        let mut summary = Summary::default();
        let mut following = Following::new(&path, std::io::sink(), &options, &mut summary);
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
            following.settle().unwrap();
            following.finish().unwrap()
        });
        (ahead, directory, path)
    }

    #[test]
    fn a_trace_made_ahead_tells_what_one_made_at_the_end_tells() {
        let (ahead, _directory, path) = made_ahead(|recorder| {
            let agent = name_agent(recorder);
            work(recorder, agent);
            recorder.names().note(NoteKind::OTHER, "late");
        });
        let Ahead::Whole(ahead) = ahead else {
            panic!("{ahead:?}");
        };
        let captures = [Reader::open(&path).unwrap()];
        let options = Options::default();
        let end = super::super::convert(
            &captures,
            std::io::sink(),
            &options,
            &mut Summary::default(),
        )
        .unwrap();
        assert_eq!(
            (ahead.calls, ahead.kernels, ahead.before_enqueue),
            (2000, 2000, 0)
        );
        let without_clocks = |report: &Report| Report {
            bytes: 0,
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
            matches!(ahead, Ahead::StartOver("a device was found late")),
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
                        crate::collect::correlation::Extra::NONE,
                    );
                    recorder.flush();
                }
                for _ in 0..devices {
                    let agent = name_agent(recorder);
                    work(recorder, agent);
                }
            });
            let Ahead::Whole(report) = ahead else {
                panic!("{ahead:?}");
            };
            assert_eq!(report.calls, 10 + devices * 2000);
        }
    }

    #[test]
    fn a_recording_without_records_has_no_trace_ahead() {
        let (ahead, _directory, _path) = made_ahead(|_| {});
        assert!(matches!(ahead, Ahead::StartOver(_)), "{ahead:?}");
    }
}
