//! The exporter of the model to a Perfetto trace: it decides which track shows an event, and under which name.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use super::calls::{self, SentFunctions};
use super::counters::CounterTrack;
use super::events::{Annotation, EventFields, EventLabel, EventTrack};
use super::names::{NumberedNames, Words};
use super::packets::WrittenSequence;
use super::rows::{self, RowName};
use super::samples;
use super::schema::trace_packet::Data;
use super::schema::track_event::Type;
use super::stacks::StackTrack;
use super::trace_file::{ProcessTrack, SampleSequence, TraceFile};
use super::work::{GpuContext, HardwareQueue, WorkTrack};
use crate::model;
use crate::model::{
    Agent, AgentIndex, Call, Consumer, CounterBlock, CounterDescription, CounterIndex,
    CounterValue, EventArgument, FlowPoint, Instant, Loss, Note, Parent, Process, ProcessIndex,
    Queue, QueueIndex, SamplerIndex, Samples, Slice, SliceEnd, StackFrame, StackIndex,
    StackSamples, SystemClocks, TraceHeader, TrackIndex, TrackKind, UNKNOWN_DEVICE, Value, Work,
    category,
};
use gputrail_record::{ContextId, CorrelationId, Nanos};

/// Writes the stream of the [model] as a Perfetto trace.
pub struct Exporter<'a> {
    file: TraceFile<'a>,
    compress: bool,
    names: NumberedNames,
    words: Option<Words>,
    /// The agents by their indices: a trace has one list of them.
    agents: Vec<Agent>,
    processes: Vec<ProcessPlace>,
    tracks: Vec<TrackPlace>,
    queues: Vec<HardwareQueue>,
    /// The first process that has rows on devices.
    first_on_devices: Option<ProcessIndex>,
    /// The number of queues with each name.
    rows: HashMap<String, u32>,
    contexts: HashMap<(ProcessIndex, ContextId), GpuContext>,
    /// Blocks of counters; `None` until they are described.
    counters: Vec<Option<CounterTrack>>,
    /// The number of counters of all blocks.
    last_counter: u32,
    functions: SentFunctions,
    samplers: BTreeMap<SamplerIndex, SampleSequence>,
}

/// The tracks of a process in the trace.
struct ProcessPlace {
    name: String,
    /// Its rank, if known.
    rank: Option<String>,
    track: ProcessTrack,
    /// The track of notes about its recording.
    notes: EventTrack,
    work: WorkTrack,
}

/// A track of the model in the trace.
enum TrackPlace {
    Events(EventTrack),
    Samples(Box<StackTrack>),
}

/// The argument with the color of a marker.
const COLOR: &str = "color";

/// The entry of a table that an event refers to.
fn declared<T>(entry: Option<T>) -> io::Result<T> {
    entry.ok_or_else(|| io::Error::other("an event refers to an index that was not declared"))
}

/// The track of events with an index.
#[inline]
fn events(tracks: &mut [TrackPlace], track: TrackIndex) -> io::Result<&mut EventTrack> {
    match tracks.get_mut(track.0 as usize) {
        Some(TrackPlace::Events(track)) => Ok(track),
        _ => declared(None),
    }
}

/// The place of an event that has no links to device work.
#[derive(Copy, Clone)]
enum UnlinkedPlace {
    Track(TrackIndex),
    /// The track of notes of a process.
    Notes(ProcessIndex),
}

impl<'a> Exporter<'a> {
    /// A trace that is written to `out`.
    pub fn new(out: impl Write + Send + 'a) -> Exporter<'a> {
        Exporter {
            file: TraceFile::new(Box::new(out)),
            compress: false,
            names: NumberedNames::default(),
            words: None,
            agents: Vec::new(),
            processes: Vec::new(),
            tracks: Vec::new(),
            queues: Vec::new(),
            first_on_devices: None,
            rows: HashMap::new(),
            contexts: HashMap::new(),
            counters: Vec::new(),
            last_counter: 0,
            functions: SentFunctions::default(),
            samplers: BTreeMap::new(),
        }
    }

    /// Sets whether the trace is compressed, in groups of packets that can be decompressed independently.
    pub fn compressed(self, compress: bool) -> Exporter<'a> {
        Exporter { compress, ..self }
    }

    /// The size of the trace so far, in bytes.
    pub fn bytes(&self) -> u64 {
        self.file.packets.total()
    }

    /// The number of bytes of complete packets in the file: the length to cut it to after an error.
    pub fn written(&self) -> u64 {
        self.file.packets.written()
    }

    fn place(&self, process: ProcessIndex) -> io::Result<&ProcessPlace> {
        declared(self.processes.get(process.0 as usize))
    }

    fn title(&self, agent: AgentIndex) -> &str {
        let agent = self.agents.get(agent.0 as usize);
        agent.map_or(UNKNOWN_DEVICE, |agent| &agent.title)
    }

    /// The process in the names of its rows on devices; empty for the first process that has such rows.
    fn row_process(&mut self, process: ProcessIndex) -> io::Result<String> {
        let is_first = *self.first_on_devices.get_or_insert(process) == process;
        let place = self.place(process)?;
        Ok(match &place.rank {
            Some(rank) => rank.clone(),
            None if is_first => String::new(),
            None => place.track.pid.0.to_string(),
        })
    }

    /// The number of a name, or its text if too many names have one.
    fn label<'v>(&mut self, name: &'v str) -> EventLabel<'v> {
        match self.names.intern(name) {
            Some(name) => EventLabel::Name(name),
            None => EventLabel::Text(name),
        }
    }

    /// The arguments of an event.
    fn annotations<'v>(&mut self, arguments: &[EventArgument<'v>]) -> Vec<Annotation<'v>> {
        let annotation = |argument: &EventArgument<'v>| Annotation {
            name: self.label(argument.name),
            value: argument.value,
            shared: None,
        };
        arguments.iter().map(annotation).collect()
    }

    /// Writes an event that has no links to device work.
    fn event(
        &mut self,
        place: UnlinkedPlace,
        (kind, time): (Type, Nanos),
        (name, category): (&str, &str),
        correlation: CorrelationId,
        (arguments, flows): (&[EventArgument<'_>], &[FlowPoint]),
    ) -> io::Result<()> {
        let label = self.label(name);
        let annotations = self.annotations(arguments);
        let category = match self.names.intern(category) {
            Some(category) => category,
            None => declared(self.words.as_ref())?.marker,
        };
        let color = arguments.iter().find(|argument| argument.name == COLOR);
        let color = color.and_then(|argument| match argument.value {
            Value::Text(color) => Some(Cow::Borrowed(color)),
            Value::Int(color) => Some(Cow::Owned(format!("#{:08x}", color as u32))),
            _ => None,
        });
        let event = EventFields {
            color: color.as_deref(),
            label,
            category,
            correlation: correlation.is_some().then_some(correlation.0),
            submitted: &[],
            waited: &[],
            api: None,
            annotations: &annotations,
            flows,
        };
        let track = match place {
            UnlinkedPlace::Track(track) => events(&mut self.tracks, track)?,
            UnlinkedPlace::Notes(process) => {
                &mut declared(self.processes.get_mut(process.0 as usize))?.notes
            }
        };
        let packets = &mut self.file.packets;
        track.event(packets, &self.names, kind, time.0, &event)
    }
}

impl Consumer for Exporter<'_> {
    fn begin(&mut self, header: &TraceHeader) -> io::Result<()> {
        self.file.begin(header)?;
        if self.compress {
            self.file.packets.compress();
        }
        self.words = Some(Words::new(&mut self.names));
        Ok(())
    }

    fn clocks(&mut self, clocks: &SystemClocks) -> io::Result<()> {
        self.file.clocks(clocks)
    }

    fn attributes(&mut self, attributes: &[(String, String)]) -> io::Result<()> {
        self.file.attributes(attributes)
    }

    fn agents(&mut self, first: AgentIndex, agents: &[Agent]) -> io::Result<()> {
        self.agents.truncate(first.0 as usize);
        self.agents.extend_from_slice(agents);
        self.file.agents(&self.agents)
    }

    fn process(&mut self, _: ProcessIndex, process: &Process<'_>) -> io::Result<()> {
        let mut name = process.name.to_owned();
        if !process.rank.is_empty() {
            // Behind the name, where it does not come between what people look for.
            name += &format!(" ({})", process.rank);
        }
        let track = self.file.process(process, &name)?;
        self.processes.push(ProcessPlace {
            name: process.name.to_owned(),
            rank: rows::rank(process.rank),
            track,
            notes: self.file.track(Some(track.uuid), "gputrail", None)?,
            work: WorkTrack::new(self.file.next_sequence()),
        });
        Ok(())
    }

    fn track(&mut self, _: TrackIndex, track: &model::Track<'_>) -> io::Result<()> {
        let process = match track.parent {
            Parent::Process(process) => Some(self.place(process)?.track),
            _ => None,
        };
        let parent = match track.parent {
            Parent::Track(parent) => Some(events(&mut self.tracks, parent)?.uuid()),
            _ => process.map(|process| process.uuid),
        };
        let name = track.name;
        let place = match track.kind {
            TrackKind::Thread(process, thread) => {
                let process = self.place(process)?.track;
                TrackPlace::Events(self.file.thread(process, thread, name, track.order)?)
            }
            TrackKind::Samples => {
                let samples = StackTrack::new(declared(process)?.pid, name);
                TrackPlace::Samples(Box::new(samples))
            }
            TrackKind::Counter(unit) => {
                TrackPlace::Events(self.file.track(parent, name, Some(unit))?)
            }
            _ => TrackPlace::Events(self.file.track(parent, name, None)?),
        };
        self.tracks.push(place);
        Ok(())
    }

    fn queue(&mut self, _: QueueIndex, queue: &Queue<'_>) -> io::Result<()> {
        let process = self.place(queue.process)?.track.pid;
        let mut name = RowName {
            device: self.title(queue.agent).to_owned(),
            process: self.row_process(queue.process)?,
            queue: queue.name.to_owned(),
        };
        // Perfetto takes queues of one name for one queue.
        let uses = self.rows.entry(name.padded()).or_default();
        *uses += 1;
        if *uses > 1 {
            name.queue += &format!(" ({uses})");
        }
        let gpu = match queue.agent {
            AgentIndex::UNKNOWN => 0,
            agent => agent.0,
        };
        let number = self.contexts.len() as u32;
        let context = *self
            .contexts
            .entry((queue.process, queue.context))
            .or_insert_with(|| GpuContext {
                number,
                process,
                api: calls::context_api(queue.domain),
            });
        self.queues.push(HardwareQueue {
            name: name.padded(),
            description: if queue.out_of_order {
                "out of order"
            } else {
                "in order"
            },
            gpu,
            context,
        });
        Ok(())
    }

    fn counters(&mut self, index: CounterIndex, block: &CounterBlock) -> io::Result<()> {
        let process = self.place(block.process)?.track.pid;
        let row_process = self.row_process(block.process)?;
        let title = self.title(block.agent);
        let named = |counter: &CounterDescription| CounterDescription {
            name: rows::counter_row(&format!("{title} {}", counter.name), &row_process),
            ..counter.clone()
        };
        let counters = block.counters.iter().map(named).collect();
        let block = CounterBlock {
            counters,
            ..block.clone()
        };
        let sequence = WrittenSequence::new(self.file.next_sequence());
        let (number, first) = (index.0 + 1, self.last_counter + 1);
        self.last_counter += block.counters.len() as u32;
        let packets = &mut self.file.packets;
        let track = CounterTrack::new(packets, sequence, (number, first), process, &block)?;
        let place = index.0 as usize;
        if place >= self.counters.len() {
            self.counters.resize_with(place + 1, || None);
        }
        self.counters[place] = Some(track);
        Ok(())
    }

    #[inline]
    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        let track = events(&mut self.tracks, call.track)?;
        let names = (&mut self.names, declared(self.words.as_ref())?);
        self.functions
            .write(&mut self.file.packets, names, track, call)
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let named = (slice.name, slice.category);
        let values = (slice.arguments, slice.flows);
        let begin = (Type::SliceBegin, slice.start);
        self.event(
            UnlinkedPlace::Track(slice.track),
            begin,
            named,
            slice.correlation,
            values,
        )?;
        match slice.end {
            Some(end) if !slice.open => self.end(slice.track, end),
            _ => Ok(()),
        }
    }

    #[inline]
    fn end(&mut self, track: TrackIndex, end: Nanos) -> io::Result<()> {
        events(&mut self.tracks, track)?.end(&mut self.file.packets, end.0)
    }

    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()> {
        let named = (instant.name, instant.category);
        let values = (instant.arguments, instant.flows);
        let at = (Type::Instant, instant.time);
        let none = CorrelationId::NONE;
        self.event(UnlinkedPlace::Track(instant.track), at, named, none, values)
    }

    fn end_slice(&mut self, end: &SliceEnd<'_>) -> io::Result<()> {
        let annotations = self.annotations(end.arguments);
        let track = events(&mut self.tracks, end.track)?;
        let packets = &mut self.file.packets;
        track.end_with(packets, &self.names, end.time.0, &annotations, end.flows)
    }

    #[inline]
    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        let (Some(start), Some(event)) = (work.start, work.event) else {
            return Ok(());
        };
        let process = declared(self.processes.get_mut(work.process.0 as usize))?;
        let queue = declared(self.queues.get(work.queue.0 as usize))?;
        let packets = &mut self.file.packets;
        process.work.work(packets, queue, (event, start), work)
    }

    fn value(&mut self, track: TrackIndex, time: Nanos, value: CounterValue) -> io::Result<()> {
        events(&mut self.tracks, track)?.value(&mut self.file.packets, time.0, value)
    }

    fn counter_values(
        &mut self,
        block: CounterIndex,
        time: Nanos,
        values: &[CounterValue],
    ) -> io::Result<()> {
        match self.counters.get_mut(block.0 as usize) {
            Some(Some(track)) => track.values(&mut self.file.packets, time.0, values),
            // A block that has not been described has no values.
            _ => Ok(()),
        }
    }

    fn samples(&mut self, samples: &Samples) -> io::Result<()> {
        let mut message = samples::message(samples);
        let sequence = match self.samplers.get_mut(&samples.sampler) {
            Some(sequence) => sequence,
            None => {
                let process = samples.process.map(|process| process.0 as usize);
                if let Some(process) = process.and_then(|place| self.processes.get(place)) {
                    message.pid = Some(process.track.pid.0 as i32);
                    message.process = Some(process.name.clone());
                }
                let sequence = self.file.sample_sequence();
                self.samplers.entry(samples.sampler).or_insert(sequence)
            }
        };
        let data = Data::PcSamples(Box::new(message));
        self.file.sample_packet(sequence, None, data)
    }

    fn stack(
        &mut self,
        track: TrackIndex,
        stack: StackIndex,
        frames: &[StackFrame],
    ) -> io::Result<()> {
        match self.tracks.get_mut(track.0 as usize) {
            Some(TrackPlace::Samples(samples)) => samples.stack(stack, frames),
            _ => declared(None)?,
        }
        Ok(())
    }

    fn stack_samples(&mut self, samples: &StackSamples<'_>) -> io::Result<()> {
        match self.tracks.get_mut(samples.track.0 as usize) {
            Some(TrackPlace::Samples(track)) => track.write(&mut self.file, samples.samples),
            _ => declared(None),
        }
    }

    fn loss(&mut self, loss: &Loss) -> io::Result<()> {
        self.file.lost = self.file.lost.saturating_add(loss.count);
        let place = match (loss.track, loss.process) {
            (Some(track), _) => UnlinkedPlace::Track(track),
            (None, Some(process)) => UnlinkedPlace::Notes(process),
            (None, None) => return Ok(()),
        };
        let arguments = [
            ("kind", Value::Text(loss.kind.name().unwrap_or("mixed"))),
            ("count", Value::Uint(loss.count)),
            ("from", Value::Uint(loss.first.0)),
            ("to", Value::Uint(loss.last.0)),
        ];
        let arguments = arguments.map(|(name, value)| EventArgument { name, value });
        let (named, none) = (("records lost", category::RECORDING), CorrelationId::NONE);
        let at = (Type::Instant, loss.time);
        self.event(place, at, named, none, (&arguments, &[]))
    }

    fn note(&mut self, note: &Note<'_>) -> io::Result<()> {
        self.file.ended_early |= note.reports_loss();
        let (named, none) = ((note.name, category::RECORDING), CorrelationId::NONE);
        let (place, at) = (
            UnlinkedPlace::Notes(note.process),
            (Type::Instant, note.time),
        );
        self.event(place, at, named, none, (note.arguments, &[]))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.packets.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.file.end()
    }
}
