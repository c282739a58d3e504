//! The exporter of the model to a Perfetto trace: it decides which track shows an event, and under which name.

mod calls;
mod work;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use super::events::{Annotation, Event, Label};
use super::names::Name;
use super::samples;
use super::schema::trace_packet::Data;
use super::stacks::StackTrack;
use super::work::{GpuContext, HardwareQueue, QueueDescription};
use super::writer::{Device, ProcessTrack, SampleSequence, TraceWriter, Track};
use crate::model;
use crate::model::{
    Agent, AgentIndex, Argument, Call, Consumer, CounterBlock, CounterDescription, CounterIndex,
    CounterValue, FlowPoint, Instant, Loss, Note, Parent, Process, ProcessIndex, Queue, QueueIndex,
    SamplerIndex, Samples, Slice, SliceEnd, StackFrame, StackIndex, StackSamples, SystemClocks,
    TraceHeader, TrackIndex, TrackKind, UNKNOWN_DEVICE, Value, Work, category,
};
use calls::KnownFunction;
use gputrail_record::{ContextId, CorrelationId, Nanos, ProcessId};

/// The output of a trace. A trait object, so that the code that makes traces is compiled once, with the library.
type Out<'a> = Box<dyn Write + Send + 'a>;

/// Writes the stream of the [model] as a Perfetto trace.
pub struct Exporter<'a> {
    writer: TraceWriter<Out<'a>>,
    compress: bool,
    words: Option<Words>,
    /// The agents by their indices: a trace has one list of them.
    agents: Vec<Agent>,
    processes: Vec<ProcessPlace>,
    tracks: Vec<TrackPlace>,
    queues: Vec<HardwareQueue>,
    /// The number of queues with each name.
    queue_names: HashMap<String, u32>,
    contexts: HashMap<(ProcessIndex, ContextId), GpuContext>,
    /// The functions, by index.
    functions: Vec<Option<KnownFunction>>,
    samplers: BTreeMap<SamplerIndex, SampleSequence>,
}

/// The tracks of a process in the trace.
struct ProcessPlace {
    pid: ProcessId,
    name: String,
    track: ProcessTrack,
    /// The track of notes about its recording.
    notes: Track,
    device: Device,
}

/// A track of the model in the trace.
enum TrackPlace {
    Events(Track),
    Samples(Box<StackTrack>),
}

/// The entry of a table that an event refers to.
fn declared<T>(entry: Option<T>) -> io::Result<T> {
    entry.ok_or_else(|| io::Error::other("an event refers to an index that was not declared"))
}

impl<'a> Exporter<'a> {
    /// A trace that is written to `out`.
    pub fn new(out: impl Write + Send + 'a) -> Exporter<'a> {
        Exporter {
            writer: TraceWriter::blank(Box::new(out)),
            compress: false,
            words: None,
            agents: Vec::new(),
            processes: Vec::new(),
            tracks: Vec::new(),
            queues: Vec::new(),
            queue_names: HashMap::new(),
            contexts: HashMap::new(),
            functions: Vec::new(),
            samplers: BTreeMap::new(),
        }
    }

    /// Sets whether the trace is compressed, in groups of packets that can be decompressed independently.
    pub fn compressed(self, compress: bool) -> Exporter<'a> {
        Exporter { compress, ..self }
    }

    /// The size of the trace so far, in bytes.
    pub fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    /// The number of bytes of complete packets in the file: the length to cut it to after an error.
    pub fn written(&self) -> u64 {
        self.writer.written()
    }

    fn words(&self) -> io::Result<&Words> {
        declared(self.words.as_ref())
    }

    fn place(&self, process: ProcessIndex) -> io::Result<&ProcessPlace> {
        declared(self.processes.get(process.0 as usize))
    }

    #[inline]
    fn events(&self, track: TrackIndex) -> io::Result<Track> {
        match self.tracks.get(track.0 as usize) {
            Some(TrackPlace::Events(track)) => Ok(*track),
            _ => declared(None),
        }
    }

    fn title(&self, agent: AgentIndex) -> &str {
        let agent = self.agents.get(agent.0 as usize);
        agent.map_or(UNKNOWN_DEVICE, |agent| &agent.title)
    }

    /// The arguments of an event, with numbers for their names.
    fn annotations<'v>(&mut self, arguments: &[Argument<'v>]) -> Vec<Annotation<'v>> {
        let annotation = |argument: &Argument<'v>| {
            Some(Annotation {
                name: self.writer.name(argument.name)?,
                value: argument.value,
            })
        };
        arguments.iter().filter_map(annotation).collect()
    }

    /// Calls `write` with an event that has no links to device work.
    fn event(
        &mut self,
        (name, category): (&str, &str),
        correlation: CorrelationId,
        (arguments, flows): (&[Argument<'_>], &[FlowPoint]),
        write: impl FnOnce(&mut TraceWriter<Out<'a>>, &Event<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let label = match self.writer.name(name) {
            Some(name) => Label::Name(name),
            None => Label::Text(name),
        };
        let annotations = self.annotations(arguments);
        let category = match self.writer.name(category) {
            Some(category) => category,
            None => self.words()?.marker,
        };
        let event = Event {
            label,
            category,
            correlation: correlation.is_some().then_some(correlation.0),
            submitted: &[],
            waited: &[],
            api: None,
            annotations: &annotations,
            flows,
        };
        write(&mut self.writer, &event)
    }
}

impl Consumer for Exporter<'_> {
    fn begin(&mut self, header: &TraceHeader) -> io::Result<()> {
        self.writer
            .begin_trace(header.identity, &header.clocks, &header.machine)?;
        if self.compress {
            self.writer.compress();
        }
        self.words = Some(Words::new(&mut self.writer));
        Ok(())
    }

    fn clocks(&mut self, clocks: &SystemClocks) -> io::Result<()> {
        self.writer.clocks(clocks)
    }

    fn attributes(&mut self, attributes: &[(String, String)]) -> io::Result<()> {
        self.writer.attributes(attributes)
    }

    fn agents(&mut self, first: AgentIndex, agents: &[Agent]) -> io::Result<()> {
        self.agents.truncate(first.0 as usize);
        self.agents.extend_from_slice(agents);
        self.writer.gpus(&self.agents)
    }

    fn process(&mut self, _: ProcessIndex, process: &Process<'_>) -> io::Result<()> {
        let mut name = process.name.to_owned();
        if !process.rank.is_empty() {
            // Behind the name, where it does not come between what people look for.
            name += &format!(" ({})", process.rank);
        }
        let track = self
            .writer
            .process(process.pid.0, &name, process.command, process.order)?;
        self.processes.push(ProcessPlace {
            pid: process.pid,
            name: process.name.to_owned(),
            track,
            notes: self.writer.process_child(track, "gputrail")?,
            device: self.writer.device(),
        });
        Ok(())
    }

    fn track(&mut self, _: TrackIndex, track: &model::Track<'_>) -> io::Result<()> {
        let parent = match track.parent {
            Parent::Track(parent) => Some(self.events(parent)?),
            _ => None,
        };
        let process = match track.parent {
            Parent::Process(process) => Some(self.place(process)?.track),
            _ => None,
        };
        let (writer, name) = (&mut self.writer, track.name);
        let place = match (track.kind, process, parent) {
            (TrackKind::Thread(process, thread), ..) => {
                let process = declared(self.processes.get(process.0 as usize))?;
                writer.thread(process.track, thread.0, name, track.order)?
            }
            (TrackKind::Samples, process, _) => {
                let samples = StackTrack::new(declared(process)?, name);
                self.tracks.push(TrackPlace::Samples(Box::new(samples)));
                return Ok(());
            }
            (TrackKind::Counter(unit), Some(process), _) => {
                writer.process_counter(process, name, unit)?
            }
            (TrackKind::Counter(unit), _, Some(parent)) => {
                writer.child_counter(parent, name, unit)?
            }
            (TrackKind::Counter(unit), None, None) => writer.global_counter(name, unit)?,
            (_, Some(process), _) => writer.process_child(process, name)?,
            (_, _, Some(parent)) => writer.child(parent, name)?,
            (_, None, None) => writer.global(name)?,
        };
        self.tracks.push(TrackPlace::Events(place));
        Ok(())
    }

    fn queue(&mut self, _: QueueIndex, queue: &Queue<'_>) -> io::Result<()> {
        let process = declared(self.processes.get(queue.process.0 as usize))?;
        let title = self.title(queue.agent);
        let mut name = format!("{title} · {} · {}", process.pid.0, queue.name);
        // Perfetto takes queues of one name for one queue.
        let uses = self.queue_names.entry(name.clone()).or_default();
        *uses += 1;
        if *uses > 1 {
            name += &format!(" ({uses})");
        }
        let gpu = match queue.agent {
            AgentIndex::UNKNOWN => 0,
            agent => agent.0,
        };
        let (pid, api) = (process.pid.0, work::context_api(queue.domain));
        let context = *self
            .contexts
            .entry((queue.process, queue.context))
            .or_insert_with(|| self.writer.context(pid, api));
        let order = if queue.out_of_order {
            "out of order"
        } else {
            "in order"
        };
        self.queues.push(self.writer.queue(QueueDescription {
            name,
            description: order.to_owned(),
            gpu,
            context,
            device: gpu,
        }));
        Ok(())
    }

    fn counters(&mut self, index: CounterIndex, block: &CounterBlock) -> io::Result<()> {
        let process = self.place(block.process)?;
        let title = self.title(block.agent);
        let named = |counter: &CounterDescription| CounterDescription {
            name: format!("{title} {} · {}", counter.name, process.pid.0),
            ..counter.clone()
        };
        let counters = block.counters.iter().map(named).collect();
        let block = CounterBlock {
            counters,
            ..block.clone()
        };
        self.writer.describe_counters(index, &block)
    }

    #[inline]
    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        self.write_call(call)
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let track = self.events(slice.track)?;
        let named = (slice.name, slice.category);
        self.event(
            named,
            slice.correlation,
            (slice.arguments, slice.flows),
            |writer, event| {
                writer.begin(track, slice.start.0, event)?;
                match slice.end {
                    Some(end) if !slice.open => writer.end(track, end.0),
                    _ => Ok(()),
                }
            },
        )
    }

    #[inline]
    fn end(&mut self, track: TrackIndex, end: Nanos) -> io::Result<()> {
        let track = self.events(track)?;
        self.writer.end(track, end.0)
    }

    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()> {
        let track = self.events(instant.track)?;
        let named = (instant.name, instant.category);
        let none = CorrelationId::NONE;
        let values = (instant.arguments, instant.flows);
        self.event(named, none, values, |writer, event| {
            writer.instant(track, instant.time.0, event)
        })
    }

    fn end_slice(&mut self, end: &SliceEnd<'_>) -> io::Result<()> {
        let track = self.events(end.track)?;
        let annotations = self.annotations(end.arguments);
        self.writer
            .end_with(track, end.time.0, &annotations, end.flows)
    }

    #[inline]
    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        self.write_work(work)
    }

    fn value(&mut self, track: TrackIndex, time: Nanos, value: CounterValue) -> io::Result<()> {
        let track = self.events(track)?;
        self.writer.value(track, time.0, value)
    }

    fn counter_values(
        &mut self,
        block: CounterIndex,
        time: Nanos,
        values: &[CounterValue],
    ) -> io::Result<()> {
        self.writer.counter_values(block, time.0, values)
    }

    fn samples(&mut self, samples: &Samples) -> io::Result<()> {
        let mut message = samples::message(samples);
        let sequence = match self.samplers.get_mut(&samples.sampler) {
            Some(sequence) => sequence,
            None => {
                let process = samples.process.map(|process| process.0 as usize);
                if let Some(process) = process.and_then(|place| self.processes.get(place)) {
                    message.pid = Some(process.pid.0 as i32);
                    message.process = Some(process.name.clone());
                }
                let sequence = self.writer.sample_sequence();
                self.samplers.entry(samples.sampler).or_insert(sequence)
            }
        };
        let data = Data::PcSamples(Box::new(message));
        self.writer.sample_packet(sequence, None, data)
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
            Some(TrackPlace::Samples(track)) => track.write(&mut self.writer, samples.samples),
            _ => declared(None),
        }
    }

    fn loss(&mut self, loss: &Loss) -> io::Result<()> {
        self.writer.lost(loss.count);
        let track = match (loss.track, loss.process) {
            (Some(track), _) => self.events(track)?,
            (None, Some(process)) => self.place(process)?.notes,
            (None, None) => return Ok(()),
        };
        let arguments = [
            ("kind", Value::Text(loss.kind.name().unwrap_or("mixed"))),
            ("count", Value::Uint(loss.count)),
            ("from", Value::Uint(loss.first.0)),
            ("to", Value::Uint(loss.last.0)),
        ];
        let arguments = arguments.map(|(name, value)| Argument { name, value });
        let named = ("records lost", OWN);
        let none = CorrelationId::NONE;
        self.event(named, none, (&arguments, &[]), |writer, event| {
            writer.instant(track, loss.time.0, event)
        })
    }

    fn note(&mut self, note: &Note<'_>) -> io::Result<()> {
        let track = self.place(note.process)?.notes;
        if note.reports_loss() {
            self.writer.ended_early();
        }
        let (named, none) = ((note.name, OWN), CorrelationId::NONE);
        self.event(named, none, (note.arguments, &[]), |writer, event| {
            writer.instant(track, note.time.0, event)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.writer.end_trace()
    }
}

/// The category of events about the recording.
const OWN: &str = "gputrail";

/// Names that always have a number, since they are the first to get one.
struct Words {
    other: Name,
    error: Name,
    external: Name,
    marker: Name,
}

impl Words {
    fn new(writer: &mut TraceWriter<Out<'_>>) -> Words {
        let mut name = |text| writer.name(text).expect("the first names fit");
        let other = name("other");
        name(OWN);
        name(category::OVERHEAD);
        let error = name("error");
        let external = name("external_id");
        let marker = name(category::MARKER);
        for text in [
            "domain",
            "payload",
            "color",
            "records lost",
            "not readable",
            "kind",
            "count",
            "from",
            "to",
            "detail",
            "recording",
            "version",
            "host",
            "command",
            "configuration",
            "clock",
        ] {
            name(text);
        }
        Words {
            other,
            error,
            external,
            marker,
        }
    }
}
