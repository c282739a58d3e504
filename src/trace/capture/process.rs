//! A process whose records are passed on: its names and clocks, its threads, and what waits for other records.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;

use super::StreamOutput;
use super::announced::Announced;
use super::counters::{CountedKernels, HeldCounters};
use super::devices::Devices;
use super::environment::Environments;
use super::functions::Functions;
use super::join::{FoundWork, WorkJoin};
use super::links::{Links, LinksOfCall};
use super::memory::UsedMemory;
use super::off::OffTimes;
use super::ranges::Ranges;
use super::sampling::{ProcessSamples, Ready};
use super::thread_markers::ThreadMarkers;
use crate::model::nesting::{Nested, Nesting};
use crate::model::{
    AgentIndex, Consumer, Parent, Process, ProcessIndex, Track, TrackIndex, TrackKind,
};
use gputrail_buffer::clock::{self, HostClock};
use gputrail_capture::Metadata;
use gputrail_code::call_stacks::CallStackNames;
use gputrail_record::number_map::NumberMap;
use gputrail_record::{
    self as record, AgentId, Api, Arguments, CallStackId, CorrelationId, ExternalId, Kind, Nanos,
    Note, Operation, ProcessId, RecordRef, StringId, ThreadId, flags,
};

/// A thread: its tracks, and the records that wait for the end of its outermost call.
#[derive(Debug)]
pub(super) struct ThreadTracks {
    pub id: ThreadId,
    pub track: TrackIndex,
    pub overhead: Option<TrackIndex>,
    pub nesting: Nesting<TimedCall>,
    pub links: Links,
    pub arguments: NumberMap<CorrelationId, Arguments>,
    pub markers: ThreadMarkers,
}

/// A call with its times in nanoseconds.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct TimedCall {
    pub correlation: CorrelationId,
    pub ancestor: CorrelationId,
    pub external: ExternalId,
    pub operation: Operation,
    pub stack: CallStackId,
    /// The return code, if the source flagged the call as failed: a code alone may be an ordinary answer, such as "not
    /// ready".
    pub error: Option<i32>,
    pub start: Nanos,
    /// `None` if the call did not end.
    pub end: Option<Nanos>,
}

impl TimedCall {
    #[inline]
    pub fn new(record: &Api, start: Nanos, end: Option<Nanos>) -> TimedCall {
        TimedCall {
            correlation: record.correlation,
            ancestor: record.ancestor,
            external: record.external,
            operation: record.operation,
            stack: record.stack,
            error: record
                .header
                .has(flags::FAILED)
                .then_some(record.return_code),
            start,
            end,
        }
    }
}

impl Nested for TimedCall {
    fn id(&self) -> u64 {
        self.correlation.0
    }

    fn parent(&self) -> u64 {
        self.ancestor.0
    }

    fn start(&self) -> Nanos {
        self.start
    }

    fn end(&self) -> Option<Nanos> {
        self.end
    }
}

/// A process whose records are passed on.
pub(super) struct ProcessStream<'a> {
    pub(super) metadata: Cow<'a, Metadata>,
    pub(super) index: ProcessIndex,
    pub(super) wants_calls: bool,
    pub(super) host: HostClock,
    /// The latest time so far, for records without a time of their own.
    pub(super) latest: Nanos,
    /// When the recording began.
    pub(super) began: Nanos,
    /// Whether completions of work may be missing although the work completed.
    pub(super) may_lack_completions: bool,
    pub(super) functions: Functions,
    pub(super) call_stacks: CallStackNames,
    pub(super) threads: Vec<ThreadTracks>,
    /// The index of each thread in `threads`.
    places: NumberMap<ThreadId, usize>,
    /// The index of the latest thread: records of one thread come many at a time.
    current: usize,
    pub(super) devices: Devices,
    pub(super) join: WorkJoin,
    pub(super) memory: UsedMemory,
    pub(super) environments: Environments,
    pub(super) found: Vec<FoundWork>,
    pub(super) links_of_call: LinksOfCall,
    pub(super) ranges: Ranges,
    pub(super) sampling: ProcessSamples,
    pub(super) ready: Ready,
    pub(super) counters: HeldCounters,
    pub(super) counted: CountedKernels,
    pub(super) off: OffTimes,
    /// Work that calls have announced and whose records have not come.
    pub(super) announced: Announced,
}

/// Declares a process.
pub(super) fn declare(
    consumer: &mut dyn Consumer,
    index: ProcessIndex,
    pid: ProcessId,
    metadata: &Metadata,
) -> io::Result<()> {
    let text = |id: Option<StringId>| id.map_or("", |id| metadata.string(id));
    let process = metadata.process;
    let executable = text(process.map(|process| process.executable));
    let command = text(process.map(|process| process.command));
    let command: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
    consumer.process(
        index,
        &Process {
            pid,
            name: match text(process.map(|process| process.name)) {
                "" => executable.rsplit('/').next().unwrap_or(executable),
                name => name,
            },
            rank: text(process.map(|process| process.rank)),
            command: &command,
            order: None,
        },
    )
}

impl<'a> ProcessStream<'a> {
    pub fn new(
        metadata: Cow<'a, Metadata>,
        index: ProcessIndex,
        host: HostClock,
        agents: HashMap<AgentId, AgentIndex>,
        output: &mut StreamOutput<'_>,
    ) -> io::Result<ProcessStream<'a>> {
        let consumer = &mut *output.stream.consumer;
        let times = metadata.snapshots.iter().map(|snapshot| snapshot.boottime);
        let began = times
            .filter(|time| time.is_some())
            .min()
            .unwrap_or(Nanos(1));
        let notes = metadata.notes.clone();
        let mut stream = ProcessStream {
            devices: Devices::new(&metadata, index, &host, agents),
            sampling: ProcessSamples::new(&metadata, index),
            counters: HeldCounters::new(&metadata),
            counted: CountedKernels::new(),
            metadata,
            began,
            may_lack_completions: false,
            index,
            wants_calls: consumer.wants_calls(),
            host,
            latest: began,
            functions: Functions::default(),
            call_stacks: CallStackNames::default(),
            threads: Vec::new(),
            places: NumberMap::default(),
            current: 0,
            join: WorkJoin::default(),
            memory: UsedMemory::default(),
            environments: Environments::default(),
            found: Vec::new(),
            links_of_call: LinksOfCall::default(),
            ranges: Ranges::new(index),
            ready: Ready::new(),
            off: OffTimes::default(),
            announced: Announced::default(),
        };
        for note in &notes {
            stream.switched(output, note)?;
        }
        Ok(stream)
    }

    /// The names store as far as it has been read.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Whether a record of the names store gives a name to something that has been passed on under another one.
    pub fn is_renamed_by(&self, record: &RecordRef<'_>) -> bool {
        let queue_name = |queue: &record::Queue| self.metadata.queues.get(&queue.id);
        match record.kind() {
            Kind::PROCESS => {
                let (new, old) = (record.read::<record::Process>(), self.metadata.process);
                new.zip(old).is_some_and(|(new, old)| new.name != old.name)
            }
            Kind::CONTEXT => {
                let new = record.read();
                new.is_some_and(|context| self.devices.has_shown_context(&context))
            }
            Kind::QUEUE => record.read().is_some_and(|new: record::Queue| {
                queue_name(&new).is_some_and(|old| old.name != new.name)
                    && self.devices.has_shown_queue(new.id)
            }),
            _ => false,
        }
    }

    /// Adds a record of the names store.
    pub fn learn(&mut self, record: &RecordRef<'_>) {
        self.metadata.to_mut().add(record);
        self.sampling.learn(record);
        if let Some(note) = record.view::<Note>() {
            self.counters.learn(note.what);
        }
        self.devices.learn(record.kind());
    }

    /// Converts times with `host` and the present readings of the agents' clocks from now on.
    pub fn set_host(&mut self, host: HostClock) {
        self.devices.set_clocks(&self.metadata, &host);
        self.host = host;
    }

    /// The clock domain of each agent that is in use.
    pub fn domains(&self) -> Vec<(AgentId, clock::ClockDomain)> {
        self.devices.domains()
    }

    #[inline]
    pub(super) fn time_or_latest(&self, time: Nanos) -> Nanos {
        if time.is_some() { time } else { self.latest }
    }

    #[inline(always)]
    pub(super) fn thread(
        &mut self,
        output: &mut StreamOutput<'_>,
        id: ThreadId,
    ) -> io::Result<&mut ThreadTracks> {
        let place = self.thread_place(output, id)?;
        Ok(&mut self.threads[place])
    }

    #[inline(always)]
    pub(super) fn thread_place(
        &mut self,
        output: &mut StreamOutput<'_>,
        id: ThreadId,
    ) -> io::Result<usize> {
        match self.threads.get(self.current) {
            Some(current) if current.id == id => Ok(self.current),
            _ => self.turn_to(output, id),
        }
    }

    #[inline(never)]
    fn turn_to(&mut self, output: &mut StreamOutput<'_>, id: ThreadId) -> io::Result<usize> {
        self.current = match self.places.get(&id) {
            Some(place) => *place,
            None => self.add_thread(output, id)?,
        };
        Ok(self.current)
    }

    fn add_thread(&mut self, output: &mut StreamOutput<'_>, id: ThreadId) -> io::Result<usize> {
        let name = self.metadata.threads.get(&id).map(|thread| thread.name);
        let track = output.stream.new_track(&Track {
            parent: Parent::Process(self.index),
            name: name.map_or("", |name| self.metadata.string(name)),
            kind: TrackKind::Thread(self.index, id),
            order: None,
        })?;
        self.threads.push(ThreadTracks {
            id,
            track,
            overhead: None,
            nesting: Nesting::default(),
            links: Links::default(),
            arguments: NumberMap::default(),
            markers: ThreadMarkers::default(),
        });
        self.places.insert(id, self.threads.len() - 1);
        Ok(self.threads.len() - 1)
    }
}

/// The thread that a record names, or else that of its lane.
pub(super) fn known_or(named: ThreadId, lane: ThreadId) -> ThreadId {
    if named.is_some() { named } else { lane }
}
