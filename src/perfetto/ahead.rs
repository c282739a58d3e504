//! A trace that is made while its program runs, so that it is there when the program ends.
//!
//! This works for what most recordings are: one process, devices known before its first block is full,
//! whose clocks are clocks of the system. Times are converted by snapshots that are taken after the
//! records were written, so they lie between snapshots as they do when a trace is made at the end.
//! Wherever it turns out that the end would have told otherwise, the answer is to start over.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use super::convert::{
    ConvertError, Making, Options, Report, Snapshots, describe, machine, seed_of,
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

/// How a trace that was made ahead turned out.
#[derive(Debug)]
pub enum Ahead {
    /// It is whole, as [`convert`](super::convert) would have made it.
    Whole(Box<Report>),
    /// It has to be made again from the whole capture, for this reason.
    StartOver(&'static str),
}

/// Makes a trace of the capture at `path` while it grows. `wait` is called when there is nothing to
/// read: it lets some time pass, and tells whether more may be written.
///
/// The capture's process runs on this machine.
pub fn follow<W: Write, O: Observer + ?Sized>(
    path: &Path,
    out: W,
    options: &Options,
    observer: &mut O,
    mut wait: impl FnMut() -> bool,
) -> Result<Ahead, ConvertError> {
    let mut follower = loop {
        match Follower::open(path) {
            Ok(Some(follower)) => break follower,
            Ok(None) if wait() => {}
            Ok(None) => return Ok(Ahead::StartOver("nothing was recorded")),
            Err(_) => return Ok(Ahead::StartOver("the capture cannot be read")),
        }
    };
    let header = *follower.header();
    if header.tick_source != clock::init().code() {
        return Ok(Ahead::StartOver("the process has a tick source of its own"));
    }
    let mut metadata = Metadata::default();
    let mut out = Some(out);
    let mut trace: Option<Trace<'_, W, O>> = None;
    let mut observer = Some(observer);
    let mut more = true;
    loop {
        let step = match follower.step() {
            Ok(step) => step,
            Err(_) => return Ok(Ahead::StartOver("the capture is damaged")),
        };
        let result = match (step, &mut trace) {
            (Step::Nothing, _) if more => {
                more = wait();
                continue;
            }
            (Step::Nothing, Some(_)) => break,
            (Step::Nothing, None) => return Ok(Ahead::StartOver("nothing was recorded")),
            (Step::Metadata(records), None) => {
                records.for_each(|record| metadata.add(&record));
                continue;
            }
            (Step::Metadata(records), Some(trace)) => trace.learn(records),
            (Step::Records(chunk), Some(trace)) => trace.records(chunk.thread, chunk.records()),
            (Step::Records(chunk), trace) => {
                let (Some(out), Some(observer)) = (out.take(), observer.take()) else {
                    unreachable!("a trace begins once");
                };
                let begun = Trace::begin(
                    &header,
                    std::mem::take(&mut metadata),
                    out,
                    options,
                    observer,
                )?;
                let Some(begun) = begun else {
                    return Ok(Ahead::StartOver("the process has no clock yet"));
                };
                trace.insert(begun).records(chunk.thread, chunk.records())
            }
        };
        if let Err(end) = result {
            return match end {
                Stop::StartOver(why) => Ok(Ahead::StartOver(why)),
                Stop::Failed(source) => {
                    let written = trace.map_or(0, |trace| trace.making.writer.written());
                    Err(ConvertError { written, source })
                }
            };
        }
    }
    trace.expect("the loop ends with one").finish()
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
struct Trace<'a, W, O: ?Sized> {
    making: Making<'a, W, O>,
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

impl<'a, W: Write, O: Observer + ?Sized> Trace<'a, W, O> {
    /// Begins the trace of a process of which `metadata` is known. `None`: its time cannot be told yet.
    fn begin(
        header: &FileHeader,
        metadata: Metadata,
        out: W,
        options: &'a Options,
        observer: &'a mut O,
    ) -> Result<Option<Trace<'a, W, O>>, ConvertError> {
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
        let start = |source| ConvertError { written: 0, source };
        let machine = machine(std::iter::once(&metadata), options);
        let mut writer = TraceWriter::new(out, seed_of(header), first, &machine).map_err(start)?;
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
        describe_all().map_err(start)?;
        let process = ProcessTrace::new(
            Cow::Owned(metadata),
            header.process,
            ProcessIndex(0),
            host,
            indices,
            &mut making,
        )
        .map_err(start)?;
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
    use crate::capture::{Reader, Writer};
    use crate::clock::SystemClock;
    use crate::record::*;
    use crate::recorder::{Recorder, RecorderOptions};
    use crate::summary::Summary;
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
            dispatch.work = host.new_work();
            (dispatch.correlation, dispatch.agent) = (call.correlation, agent);
            (dispatch.enqueued, dispatch.grid) = (call.start, [64, 1, 1]);
            (completion.work, completion.agent) = (dispatch.work, agent);
            completion.correlation = call.correlation;
            (completion.start, completion.end) = (device_now(), device_now());
            (completion.queued, completion.submitted) = (completion.start, completion.start);
            host.write(dispatch);
            host.exit(&call, clock::now(), 0, 0);
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
        let ahead = std::thread::scope(|scope| {
            let follower = scope.spawn(|| {
                let options = Options::default();
                let wait = || {
                    std::thread::yield_now();
                    running.load(Ordering::Acquire)
                };
                follow(
                    &path,
                    std::io::sink(),
                    &options,
                    &mut Summary::default(),
                    wait,
                )
                .unwrap()
            });
            program(&recorder);
            recorder.finish().unwrap();
            running.store(false, Ordering::Release);
            follower.join().unwrap()
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
    fn a_recording_without_records_has_no_trace_ahead() {
        let (ahead, _directory, _path) = made_ahead(|_| {});
        assert!(matches!(ahead, Ahead::StartOver(_)), "{ahead:?}");
    }
}
