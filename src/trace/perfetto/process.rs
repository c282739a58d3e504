//! One capture on its way into the trace: record by record, onto the tracks of its process.

mod notes;

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};

use super::calls::{Calls, Step, TimedCall};
use super::convert::Making;
use super::devices::Devices;
use super::events::{Annotation, Event, Tie, TiedCall, Value};
use super::functions::{Function, Functions, OwnLabel, Words};
use super::join::{Enqueued, Found, Join, What};
use super::markers::{Ranges, ThreadMarkers};
use super::memory::Memory;
use super::observer::{Call, GpuIndex, ProcessIndex};
use super::sampling::{Ready, Sampling};
use super::ties::{Tied, Ties};
use super::waits::Entering;
use super::writer::{ProcessTrack, TraceWriter, Track};
use crate::capture::Metadata;
use crate::clock::{self, HostClock};
use crate::record::number_map::NumberMap;
use crate::record::{
    AgentId, Allocation, Api, ArgumentType, Arguments, Completion, CorrelationId, Dependency,
    ExternalId, KernelDispatch, Kind, Marker, MarkerKind, MemoryCopy, MemorySet, Nanos, Operation,
    OperationGroup, Overhead, ProcessId, QueueId, RecordRef, StringId, Synchronization, ThreadId,
    flags, queue_properties,
};

/// Most calls whose arguments one thread holds until the calls are seen.
const MAX_ARGUMENTS: usize = 1 << 16;

/// Pieces of work that have room to wait until they are told.
const MAX_READY: usize = 64;

/// A thread: its track, and what waits for the end of its outermost call.
#[derive(Debug)]
struct Thread {
    id: ThreadId,
    track: Track,
    overhead: Option<Track>,
    calls: Calls,
    ties: Ties,
    arguments: NumberMap<CorrelationId, Arguments>,
    markers: ThreadMarkers,
}

/// A process on its way into the trace.
pub(super) struct ProcessTrace<'a> {
    metadata: Cow<'a, Metadata>,
    index: ProcessIndex,
    /// Whether the observer wants to hear of calls.
    hears_calls: bool,
    track: ProcessTrack,
    notes: Track,
    host: HostClock,
    /// The latest time seen, where what has no time of its own is put.
    latest: Nanos,
    /// When the recording began.
    began: Nanos,
    words: Words,
    functions: Functions,
    threads: Vec<Thread>,
    /// Where each stands in `threads`.
    places: NumberMap<ThreadId, usize>,
    /// Where the latest one stands there: records of one thread come many at a time.
    current: usize,
    devices: Devices,
    join: Join,
    memory: Memory,
    found: Vec<Found>,
    tied: Tied,
    ranges: Ranges,
    sampling: Sampling,
    ready: Ready,
}

impl<'a> ProcessTrace<'a> {
    /// Describes the process and what its names store holds.
    pub fn new(
        metadata: Cow<'a, Metadata>,
        pid: ProcessId,
        index: ProcessIndex,
        host: HostClock,
        gpus: HashMap<AgentId, GpuIndex>,
        making: &mut Making<'_>,
    ) -> io::Result<ProcessTrace<'a>> {
        let writer = &mut making.writer;
        let words = Words::new(writer);
        let pid = pid.0;
        let text = |id: Option<StringId>| id.map_or("", |id| metadata.string(id));
        let process = metadata.process;
        let executable = text(process.map(|process| process.executable));
        let name = executable.rsplit('/').next().unwrap_or(executable);
        let command = text(process.map(|process| process.command));
        let arguments: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
        let rank = text(process.map(|process| process.rank));
        let (mut named, mut title) = (name.to_owned(), format!("{name} {pid}"));
        if !rank.is_empty() {
            // Behind the id, where it does not come between what people look for.
            named += &format!(" ({rank})");
            title += &format!(" ({rank})");
        }
        let track = writer.process(pid, &named, &arguments)?;
        let notes = writer.process_child(track, "gputrail")?;
        let sampling = Sampling::new(&metadata, track, name);
        let devices = Devices::new(&metadata, index, pid, title, &host, gpus, writer);
        let times = metadata.snapshots.iter().map(|snapshot| snapshot.boottime);
        let began = times
            .filter(|time| time.is_some())
            .min()
            .unwrap_or(Nanos(1));
        Ok(ProcessTrace {
            metadata,
            began,
            index,
            hears_calls: making.observer.hears_calls(),
            track,
            notes,
            host,
            latest: began,
            words,
            functions: Functions::default(),
            threads: Vec::new(),
            places: NumberMap::default(),
            current: 0,
            devices,
            join: Join::default(),
            memory: Memory::default(),
            found: Vec::new(),
            tied: Tied::default(),
            ranges: Ranges::default(),
            sampling,
            ready: Ready::new(),
        })
    }

    /// The process as far as it is known.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Takes in a record of the names store.
    pub fn learn(&mut self, record: &RecordRef<'_>) {
        self.metadata.to_mut().add(record);
        self.sampling.learn(record.kind());
        self.devices.learn(record.kind());
    }

    /// Tells time by `host` from now on, and by the agents' clocks read since.
    pub fn set_host(&mut self, host: HostClock) {
        self.devices.set_clocks(&self.metadata, &host);
        self.host = host;
    }

    /// The clock of each agent, as it is used now.
    pub fn domains(&self) -> Vec<(AgentId, clock::Domain)> {
        self.devices.domains()
    }

    fn time_or_latest(&self, time: Nanos) -> Nanos {
        if time.is_some() { time } else { self.latest }
    }

    /// Takes in one record of `thread`'s lane.
    #[inline]
    pub fn record(
        &mut self,
        making: &mut Making<'_>,
        thread: ThreadId,
        record: &RecordRef<'_>,
    ) -> io::Result<()> {
        match record.get() {
            // Most are calls.
            Some(call) => self.call(making, call),
            None => self.other(making, thread, record),
        }
    }

    /// Takes in a record that is no call, or one that cannot be taken where it lies.
    fn other(
        &mut self,
        making: &mut Making<'_>,
        thread: ThreadId,
        record: &RecordRef<'_>,
    ) -> io::Result<()> {
        match record.kind() {
            Kind::API => self.call(making, &read(record)),
            Kind::KERNEL_DISPATCH => {
                let record: Cow<'_, KernelDispatch> = read(record);
                self.enqueue(making, known_or(record.work.thread, thread), &*record)
            }
            Kind::MEMORY_COPY => {
                let record: Cow<'_, MemoryCopy> = read(record);
                self.enqueue(making, known_or(record.work.thread, thread), &*record)
            }
            Kind::MEMORY_SET => {
                let record: Cow<'_, MemorySet> = read(record);
                self.enqueue(making, known_or(record.work.thread, thread), &*record)
            }
            Kind::SYNCHRONIZATION => self.synchronization(making, thread, &read(record)),
            Kind::DEPENDENCY => self.dependency(making, thread, &read(record)),
            Kind::COMPLETION => {
                let completion: Cow<'_, Completion> = read(record);
                // Looked at where it is: what was just put together is not moved on.
                match &self.join.complete(&completion, &mut self.found) {
                    Some(work) => self.tell_work(making, work, &completion),
                    None => self.tell_found(making),
                }
            }
            Kind::ARGUMENTS => {
                let arguments: Cow<'_, Arguments> = read(record);
                if !making.options.arguments && self.enqueues(making, arguments.operation) {
                    return Ok(());
                }
                let thread = self.thread(&mut making.writer, thread)?;
                if thread.arguments.len() >= MAX_ARGUMENTS {
                    // Left behind by calls that were dropped.
                    thread.arguments.clear();
                }
                thread.arguments.insert(arguments.correlation, *arguments);
                Ok(())
            }
            Kind::MARKER => self.marker(making, thread, &read(record)),
            Kind::MEMORY_ALLOCATION => {
                let record: Cow<'_, Allocation> = read(record);
                let done = if record.end.is_some() {
                    record.end
                } else {
                    record.start
                };
                let time = self.time_or_latest(self.host.to_boottime(done));
                let Self {
                    memory,
                    devices,
                    track,
                    ..
                } = self;
                memory.add(&mut making.writer, *track, devices, &record, time)
            }
            Kind::OVERHEAD => self.overhead(making, thread, &read(record)),
            Kind::LOSS => self.loss(making, &read(record)),
            Kind::NOTE => self.note(&mut making.writer, &read(record)),
            kind if Sampling::takes(kind) => {
                let (metadata, devices) = (&self.metadata, &self.devices);
                let ready = &mut self.ready;
                self.sampling
                    .record(making, metadata, devices, record, ready)?;
                self.tell_ready(making)
            }
            _ => Ok(()),
        }
    }

    /// Tells what still waits.
    pub fn finish(&mut self, making: &mut Making<'_>) -> io::Result<()> {
        for place in 0..self.threads.len() {
            self.tell_calls(making, place, None)?;
        }
        self.ranges
            .finish(&mut making.writer, &self.words, &self.metadata, self.track)?;
        self.memory
            .finish(&mut making.writer, self.track, &self.devices)?;
        self.sampling.finish(
            making,
            &self.metadata,
            &self.devices,
            self.track,
            &mut self.ready,
        )?;
        self.tell_ready(making)?;
        self.join.finish(&mut self.found);
        let mut unfinished = std::mem::take(&mut self.found);
        let (metadata, host, end) = (&self.metadata, &self.host, self.cut());
        self.devices
            .tell_unfinished(making, metadata, host, &mut unfinished, end)?;
        self.devices.finish(&mut making.writer)?;
        making.report.clocks.extend(self.devices.clocks());
        self.introduce(&mut making.writer)?;
        // Last, for what has no time of its own is about the end.
        for note in &self.metadata.notes {
            self.note(&mut making.writer, note)?;
        }
        Ok(())
    }

    /// Tells what is held back for work that comes late.
    pub fn settle<W: Write>(&mut self, writer: &mut TraceWriter<W>) -> io::Result<()> {
        self.devices.settle(writer)?;
        writer.flush()
    }

    #[inline(always)]
    fn thread<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        id: ThreadId,
    ) -> io::Result<&mut Thread> {
        let place = self.thread_place(writer, id)?;
        Ok(&mut self.threads[place])
    }

    #[inline(always)]
    fn thread_place<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        id: ThreadId,
    ) -> io::Result<usize> {
        match self.threads.get(self.current) {
            Some(current) if current.id == id => Ok(self.current),
            _ => self.turn_to(writer, id),
        }
    }

    #[inline(never)]
    fn turn_to<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        id: ThreadId,
    ) -> io::Result<usize> {
        self.current = match self.places.get(&id) {
            Some(place) => *place,
            None => self.add_thread(writer, id)?,
        };
        Ok(self.current)
    }

    fn add_thread<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        id: ThreadId,
    ) -> io::Result<usize> {
        let name = self.metadata.threads.get(&id).map(|thread| thread.name);
        let name = name.map_or("", |name| self.metadata.string(name));
        let track = writer.thread(self.track, id.0, name)?;
        self.threads.push(Thread {
            id,
            track,
            overhead: None,
            calls: Calls::default(),
            ties: Ties::default(),
            arguments: NumberMap::default(),
            markers: ThreadMarkers::default(),
        });
        self.places.insert(id, self.threads.len() - 1);
        Ok(self.threads.len() - 1)
    }

    #[inline(never)]
    fn call(&mut self, making: &mut Making<'_>, record: &Api) -> io::Result<()> {
        let [start, end] = self.host.all_to_boottime([record.start, record.end]);
        let start = self.time_or_latest(start);
        let ended = record.end.is_some() && !record.header.has(flags::UNFINISHED);
        let end = ended.then(|| end.max(start));
        self.latest = self.latest.max(end.unwrap_or(start));
        making.report.calls += 1;
        if !ended {
            making.report.unfinished_calls += 1;
        }
        if record.header.has(flags::FAILED) {
            making.report.failed_calls += 1;
        }
        let place = self.thread_place(&mut making.writer, record.thread)?;
        let thread = &mut self.threads[place];
        if record.ancestor.is_some() || thread.calls.any_wait() {
            // Made here, where it is passed on: what is nowhere else in memory stays in registers.
            let call = TimedCall::new(record, start, end);
            return self.tell_calls(making, place, Some(call));
        }
        thread.ties.sort();
        self.tell_call(making, place, &TimedCall::new(record, start, end), end)?;
        self.threads[place].ties.forget_told();
        Ok(())
    }

    fn enqueues(&mut self, making: &mut Making<'_>, operation: Operation) -> bool {
        let writer = &mut making.writer;
        let place = self
            .functions
            .place(writer, &self.words, &self.metadata, operation);
        self.functions.at(place).group == OperationGroup::ENQUEUE
    }

    /// Writes the calls of a thread that wait for nothing any more, now that `call` has come or none will.
    #[inline(never)]
    fn tell_calls(
        &mut self,
        making: &mut Making<'_>,
        place: usize,
        call: Option<TimedCall>,
    ) -> io::Result<()> {
        self.threads[place].ties.sort();
        let mut calls = std::mem::take(&mut self.threads[place].calls);
        let tell = |step: Step<'_>| match step {
            Step::Begin(call) => self.tell_call(making, place, call, None),
            Step::End(time) => making.writer.end(self.threads[place].track, time.0),
        };
        let told = match call {
            Some(call) => calls.add(call, tell),
            None => calls.finish(tell),
        };
        self.threads[place].calls = calls;
        self.threads[place].ties.forget_told();
        told
    }

    /// Writes the begin of a call, and its end if that is the next of its thread.
    #[inline(always)]
    fn tell_call(
        &mut self,
        making: &mut Making<'_>,
        place: usize,
        call: &TimedCall,
        end: Option<Nanos>,
    ) -> io::Result<()> {
        let writer = &mut making.writer;
        let number = self
            .functions
            .place(writer, &self.words, &self.metadata, call.operation);
        let function = self.functions.at(number);
        let thread = &mut self.threads[place];
        if self.hears_calls {
            let call = observed(self.index, thread.id, function, call);
            making.observer.call(&call);
        }
        let tie = thread.ties.only(call.correlation);
        let bare = !call.failed
            && !call.external.is_some()
            && thread.arguments.is_empty()
            && (thread.ties.is_empty() || tie.is_some());
        let track = thread.track;
        match (&function.heading, end) {
            // Nothing stands beside most calls, or what they have enqueued.
            (Some(heading), Some(end)) if bare && making.writer.knows_heading(track, heading) => {
                let times = (call.start.0, end.0);
                let correlation = call.correlation.0;
                let tie = tie.map(|(event, waited)| Tie {
                    event,
                    waited,
                    api: function.api,
                });
                thread.ties.clear();
                making.writer.call(track, times, heading, correlation, tie)
            }
            _ => self.tell_more(making, place, number, *call, end),
        }
    }

    /// As [`ProcessTrace::tell_call`], of any call: with what stands beside it.
    #[inline(never)]
    fn tell_more(
        &mut self,
        making: &mut Making<'_>,
        place: usize,
        function: usize,
        call: TimedCall,
        end: Option<Nanos>,
    ) -> io::Result<()> {
        let function = self.functions.at(function);
        let thread = &mut self.threads[place];
        let mut tied = TiedCall {
            correlation: call.correlation.0,
            submitted: &[],
            waited: &[],
            api: None,
        };
        if !thread.ties.is_empty() {
            thread.ties.tell(call.correlation, &mut self.tied);
            tied.submitted = &self.tied.submitted;
            tied.waited = &self.tied.waited;
            tied.api = function.api.filter(|_| !self.tied.is_empty());
        }
        let error = call.failed.then_some(call.return_code);
        let bare = error.is_none() && !call.external.is_some() && thread.arguments.is_empty();
        let track = thread.track;
        match &function.heading {
            Some(heading) if bare && making.writer.knows_heading(track, heading) => {
                let start = call.start.0;
                making.writer.begin_call(track, start, heading, &tied)?;
            }
            _ => {
                let arguments = thread.arguments.remove(&call.correlation);
                let annotations = annotations(
                    &self.words,
                    &self.metadata,
                    function,
                    error,
                    call.external,
                    arguments,
                );
                let event = Event {
                    label: function.label.get(),
                    category: function.category,
                    correlation: Some(tied.correlation),
                    submitted: tied.submitted,
                    waited: tied.waited,
                    api: tied.api,
                    annotations: &annotations,
                };
                making.writer.begin(track, call.start.0, &event)?;
            }
        }
        match end {
            Some(end) => making.writer.end(track, end.0),
            None => Ok(()),
        }
    }

    #[inline(never)]
    fn enqueue(
        &mut self,
        making: &mut Making<'_>,
        thread: ThreadId,
        record: impl Into<Enqueued> + Copy,
    ) -> io::Result<()> {
        let work: Enqueued = record.into();
        self.sampling.enqueued(&work);
        let serial = self.join.enqueue(record, &mut self.found);
        let put = work.work;
        let event = self.devices.event(put.id, serial);
        self.devices.waits.enter(&Entering {
            work: put.id,
            event,
            queue: put.queue,
            enqueued: put.enqueued,
            after_all: matches!(
                work.what,
                What::Synchronization {
                    after_all: true,
                    ..
                }
            ),
            before_all: work.is_barrier() && self.is_out_of_order(put.queue),
        });
        self.tie(making, thread, put.correlation, event, false)?;
        self.tell_found(making)
    }

    fn is_out_of_order(&self, queue: QueueId) -> bool {
        let queue = self.metadata.queues.get(&queue);
        queue.is_some_and(|queue| queue.properties & queue_properties::OUT_OF_ORDER != 0)
    }

    fn dependency(
        &mut self,
        making: &mut Making<'_>,
        thread: ThreadId,
        record: &Dependency,
    ) -> io::Result<()> {
        let event = self.devices.event(record.waited_for, 0);
        if record.work.is_some() {
            self.devices.waits.add(record.work, event);
            return Ok(());
        }
        self.tie(making, thread, record.correlation, event, true)
    }

    fn synchronization(
        &mut self,
        making: &mut Making<'_>,
        thread: ThreadId,
        record: &Synchronization,
    ) -> io::Result<()> {
        let thread = known_or(record.work.thread, thread);
        if record.waited_for.is_some() {
            let event = self.devices.event(record.waited_for, 0);
            self.tie(making, thread, record.work.correlation, event, true)?;
        }
        if record.work.id.is_some() {
            self.enqueue(making, thread, record)?;
        }
        Ok(())
    }

    fn tie(
        &mut self,
        making: &mut Making<'_>,
        thread: ThreadId,
        call: CorrelationId,
        event: u64,
        waited: bool,
    ) -> io::Result<()> {
        let thread = self.thread(&mut making.writer, thread)?;
        thread.ties.add(call, event, waited);
        Ok(())
    }

    /// Tells work whose completion has come.
    #[inline(always)]
    fn tell_work(
        &mut self,
        making: &mut Making<'_>,
        work: &Enqueued,
        completion: &Completion,
    ) -> io::Result<()> {
        if self.sampling.concern(work) {
            let found = Found::Both(*work, *completion);
            self.sampling.found(found, &mut self.ready);
            return self.tell_ready(making);
        }
        let (metadata, host) = (&self.metadata, &self.host);
        self.devices
            .tell_complete(making, metadata, host, work, completion)
    }

    #[inline(always)]
    fn tell_found(&mut self, making: &mut Making<'_>) -> io::Result<()> {
        match self.found.is_empty() {
            true => Ok(()),
            false => self.tell_all_found(making),
        }
    }

    fn tell_all_found(&mut self, making: &mut Making<'_>) -> io::Result<()> {
        let mut found = std::mem::take(&mut self.found);
        for found in &found {
            match found {
                Found::Both(work, completion) => self.tell_work(making, work, completion)?,
                Found::Enqueued(_) | Found::Completed(_) => {
                    let (metadata, host) = (&self.metadata, &self.host);
                    self.devices
                        .tell(making, metadata, host, found.parts(), None, None)?;
                }
            }
        }
        found.clear();
        self.found = found;
        Ok(())
    }

    /// Tells work that waits for nothing any more.
    fn tell_ready(&mut self, making: &mut Making<'_>) -> io::Result<()> {
        for (found, samples) in self.ready.drain(..) {
            let (metadata, host) = (&self.metadata, &self.host);
            let samples = samples.as_ref();
            self.devices
                .tell(making, metadata, host, found.parts(), samples, None)?;
        }
        // Much of it comes at once, once.
        self.ready.shrink_to(MAX_READY);
        Ok(())
    }

    fn marker(
        &mut self,
        making: &mut Making<'_>,
        thread: ThreadId,
        marker: &Marker,
    ) -> io::Result<()> {
        let time = self.time_or_latest(self.host.to_boottime(marker.time));
        let writer = &mut making.writer;
        let place = self.thread_place(writer, known_or(marker.thread, thread))?;
        let (words, metadata) = (&self.words, &self.metadata);
        if matches!(marker.what, MarkerKind::START | MarkerKind::END) {
            let process = self.track;
            let ended = self
                .ranges
                .add(writer, words, metadata, process, marker, time)?;
            if let Some((name, from, to)) = ended {
                making.observer.range(metadata.string(name), from, to);
            }
            return Ok(());
        }
        let id = self.threads[place].id;
        match marker.what {
            MarkerKind::PUSH => {
                let name = metadata.string(marker.name);
                making.observer.range_begins(self.index, id, name, time);
            }
            MarkerKind::POP => making.observer.range_ends(self.index, id, time),
            _ => {}
        }
        let Thread { track, markers, .. } = &mut self.threads[place];
        markers.add(writer, words, metadata, *track, marker, time)
    }

    /// Overhead stands on a track of its own below the thread: it need not nest with calls.
    fn overhead(
        &mut self,
        making: &mut Making<'_>,
        thread: ThreadId,
        record: &Overhead,
    ) -> io::Result<()> {
        let thread = self.thread(&mut making.writer, known_or(record.thread, thread))?;
        let track = match thread.overhead {
            Some(track) => track,
            None => *thread
                .overhead
                .insert(making.writer.child(thread.track, "overhead")?),
        };
        let label = OwnLabel::new(&mut making.writer, record.what.name().unwrap_or("overhead"));
        let detail = self.metadata.string(record.detail);
        let annotations = [Annotation {
            name: self.words.detail,
            value: Value::Text(detail),
        }];
        let annotations = &annotations[..usize::from(!detail.is_empty())];
        let event = Event {
            category: self.words.overhead,
            correlation: record.correlation.is_some().then_some(record.correlation.0),
            ..self.own_event(&label, annotations)
        };
        let start = self.time_or_latest(self.host.to_boottime(record.start));
        making.writer.begin(track, start.0, &event)?;
        if record.end.is_some() {
            let end = self.host.to_boottime(record.end).max(start);
            making.writer.end(track, end.0)?;
        }
        Ok(())
    }
}

/// The thread that a record names, or that of the lane it stands in.
fn known_or(named: ThreadId, lane: ThreadId) -> ThreadId {
    if named.is_some() { named } else { lane }
}

#[inline]
pub(super) fn read<'r, R: crate::record::Record>(record: &RecordRef<'r>) -> Cow<'r, R> {
    record.view().expect("the kind was looked at")
}

fn observed<'f>(
    process: ProcessIndex,
    thread: ThreadId,
    function: &'f Function,
    call: &TimedCall,
) -> Call<'f> {
    Call {
        process,
        thread,
        function: function.number,
        name: &function.name,
        domain: function.domain,
        group: function.group,
        start: call.start,
        end: call.end,
        nested: call.ancestor.is_some(),
        failed: call.failed,
        return_code: call.return_code,
    }
}

/// What stands beside a call: why it failed, the caller's own id, its arguments.
#[inline(never)]
fn annotations<'m>(
    words: &Words,
    metadata: &'m Metadata,
    function: &Function,
    error: Option<i32>,
    external: ExternalId,
    arguments: Option<Arguments>,
) -> Vec<Annotation<'m>> {
    let mut annotations = Vec::new();
    if let Some(code) = error {
        annotations.push(Annotation {
            name: words.error,
            value: Value::Int(code.into()),
        });
    }
    if external.is_some() {
        annotations.push(Annotation {
            name: words.external,
            value: Value::Uint(external.0),
        });
    }
    if let Some(arguments) = arguments {
        annotate(&mut annotations, metadata, function, &arguments);
    }
    annotations
}

fn annotate<'m>(
    annotations: &mut Vec<Annotation<'m>>,
    metadata: &'m Metadata,
    function: &Function,
    arguments: &Arguments,
) {
    let count = (arguments.count as usize).min(arguments.values.len());
    for ((name, kind), value) in function.arguments.iter().zip(&arguments.values[..count]) {
        let value = match *kind {
            ArgumentType::SIGNED => Value::Int(*value as i64),
            ArgumentType::POINTER | ArgumentType::FLAGS => Value::Pointer(*value),
            ArgumentType::STRING => {
                Value::Text(u32::try_from(*value).map_or("", |id| metadata.string(StringId(id))))
            }
            ArgumentType::FLOAT => Value::Double(f64::from_bits(*value)),
            ArgumentType::BOOLEAN => Value::Bool(*value != 0),
            _ => Value::Uint(*value),
        };
        annotations.push(Annotation { name: *name, value });
    }
}
