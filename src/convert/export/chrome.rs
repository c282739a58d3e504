//! Chrome trace events, named as PyTorch's profiler names them, so that its tools read them too.
//!
//! Slices, calls, instants, flows, counters of tracks and device work are written; samples, counters of agents and notes have
//! no place in this format and are counted in [`ChromeWriter::left_out`].
//!
//! * Readers keep times in floating-point numbers. So times count from `baseTimeNanoseconds`, which stands ahead of all events.
//! * A slice is one complete event (`X`). An open one is held until it ends, and with it the events of its track that begin at
//!   the same time: they come behind it, since viewers nest slices of equal times by their order. Slices that do not end are
//!   begins (`B`).
//! * Device work stands on the row of its stream. Viewers drop what overlaps there, so such work takes a row of its own.
//! * Beyond 256 MiB of open slices, all slices are pairs of `B` and `E`. `s`, `t`, `f` are flows, at the begin of their slices or
//!   inside of their ends.
//!   `C` are counters of tracks; computed ones have the category `derived`. Of the fields beside the events, ranks stay.
//! * `s`, `f` of category `ac2g` lead from a call to its work; the id is the correlation id, an argument of both.
//! * Correlation ids tie calls to their work. The format has them once for all processes, so those of all but the first process
//!   get the number of the process in their upper bits, from 40 on. Calls without an id get one.
//! * Tracks that are no threads have thread ids from 0x70000000 on.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::device_rows::DeviceRows;
use gputrail_record::{CorrelationId, Domain, Nanos};
use gputrail_trace::json::{quote, write_value};
use gputrail_trace::model::{
    Agent, AgentIndex, Call, Consumer, CounterIndex, CounterValue, EventArgument, EventId, FlowId,
    FlowPoint, Instant, Note, Parent, Process, ProcessIndex, Samples, Slice, SliceEnd,
    StackSamples, TraceHeader, Track, TrackIndex, TrackKind, Value, Work, WorkKind,
};
use gputrail_trace::ranks::{NO_RANK, rank_of};

/// Thread ids of tracks that belong to no thread count from here: readers keep 32 bits.
const FIRST_TRACK: u64 = 0x7000_0000;
/// Process id of tracks that belong to no process.
const NO_PROCESS: u64 = 0x7fff_ffff;
/// Bytes that are written at a time.
const BUFFER: usize = 1 << 16;
/// Most flows that have begun and not ended, and most pieces of work that wait for the number of their call.
const MAX_FLOWS: usize = 1 << 20;
/// Maximum number of bytes of events that are held. Beyond it, open slices are written as their begins.
const MAX_HELD: usize = 256 << 20;
/// Times count from a multiple of this, ns: a number that people recognise.
const BASE: u64 = 1_000_000_000_000_000;
/// How much the earliest event may be before the first one that is written, ns.
const EARLIER: u64 = 3_600_000_000_000;
/// Bits of the correlation ids of one process.
const CORRELATION_BITS: u32 = 40;
/// Correlation ids of calls that have none and submit work are the number of the work, with this bit.
const OWN_CORRELATION: u64 = 1 << 52;

/// Category of counters that are made of other events: whoever reads them need not make them again.
pub(crate) const DERIVED: &str = "derived";

/// Writes the stream as JSON.
pub struct ChromeWriter<W: Write> {
    out: W,
    /// The fields ahead of the events, until they have been written.
    fields: Option<String>,
    /// Events that have not been written, each behind a comma.
    text: String,
    /// The event that is being made, and its flows.
    event: String,
    /// Whether an event has been written.
    begun: bool,
    /// The time from which times count, once there is one.
    base: Option<u64>,
    /// Process ids.
    processes: Vec<u32>,
    tracks: Vec<EventPlace>,
    /// Bytes of the events that are held, and their maximum.
    held: usize,
    most_held: usize,
    /// The numbers of flows, and whether the flow has begun, and the last number: readers do not take all ids.
    flows: HashMap<FlowId, (u64, bool)>,
    last_flow: u64,
    rows: DeviceRows,
    /// Correlation ids of work whose call has none.
    correlations: HashMap<EventId, u64>,
    left_out: u64,
    /// Rank of the processes; several have none in common.
    ranks: Vec<i64>,
}

/// The place of the events of a track.
#[derive(Debug)]
struct EventPlace {
    pid: u64,
    tid: u64,
    name: String,
    /// The open slices, outermost first.
    open: Vec<UnclosedSlice>,
}

/// An open slice.
#[derive(Debug)]
struct UnclosedSlice {
    start: u64,
    /// The event without its phase and end; `None` once its begin has been written.
    event: Option<String>,
    /// Whether the event ends within its arguments.
    has_arguments: bool,
    /// Events of the track that begin at the same time.
    followers: String,
}

impl UnclosedSlice {
    /// The slice as an event of this phase, and what follows it.
    fn finish(&mut self, ending: &str, more: &str) -> Option<String> {
        let mut text = self.event.take()?;
        if self.has_arguments {
            text.push('}');
        }
        text += ending;
        text += more;
        text += &std::mem::take(&mut self.followers);
        Some(text)
    }

    fn bytes(&self) -> usize {
        self.event.as_ref().map_or(0, String::len) + self.followers.len()
    }
}

impl<W: Write + Send> ChromeWriter<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> ChromeWriter<W> {
        ChromeWriter {
            out,
            fields: Some(String::new()),
            text: String::new(),
            event: String::new(),
            begun: false,
            base: None,
            processes: Vec::new(),
            tracks: Vec::new(),
            held: 0,
            most_held: MAX_HELD,
            flows: HashMap::new(),
            last_flow: 0,
            rows: DeviceRows::default(),
            correlations: HashMap::new(),
            left_out: 0,
            ranks: Vec::new(),
        }
    }

    /// Number of events that have no place in the format.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The output, once the stream has ended.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn track_mut(&mut self, track: TrackIndex) -> io::Result<&mut EventPlace> {
        let place = self.tracks.get_mut(track.0 as usize);
        place.ok_or_else(|| io::Error::other("an event refers to a track that was not declared"))
    }

    /// The process and thread id of a track.
    fn place(&mut self, track: TrackIndex) -> io::Result<(u64, u64)> {
        let place = self.track_mut(track)?;
        Ok((place.pid, place.tid))
    }

    /// Begins an event with its place.
    fn begin_event(&mut self, (pid, tid): (u64, u64)) {
        let _ = write!(self.event, ",\n{{\"pid\":{pid},\"tid\":{tid}");
    }

    /// Begins an event of a phase that is known.
    fn begin_phase(&mut self, ph: &str, place: (u64, u64)) {
        self.begin_event(place);
        let _ = write!(self.event, ",\"ph\":\"{ph}\"");
    }

    /// Adds a time.
    fn time(&mut self, nanos: u64) {
        let base = || nanos.saturating_sub(EARLIER) / BASE * BASE;
        let since = i128::from(nanos) - i128::from(*self.base.get_or_insert_with(base));
        let sign = if since < 0 { "-" } else { "" };
        let (micros, rest) = (since.unsigned_abs() / 1000, since.unsigned_abs() % 1000);
        let _ = write!(self.event, ",\"ts\":{sign}{micros}.{rest:03}");
    }

    fn string(&mut self, name: &str, value: &str) {
        let _ = write!(self.event, ",\"{name}\":");
        quote(&mut self.event, value);
    }

    /// Adds arguments, and leaves their object open if there are any.
    fn open_arguments<'v>(&mut self, list: impl IntoIterator<Item = (&'v str, Value<'v>)>) -> bool {
        let before = self.event.len();
        add_arguments(&mut self.event, list, ",\"args\":{");
        self.event.len() > before
    }

    fn arguments<'v>(&mut self, list: impl IntoIterator<Item = (&'v str, Value<'v>)>) {
        if self.open_arguments(list) {
            self.event.push('}');
        }
    }

    /// Ends an event that has nothing to do with open slices, and writes what has been made.
    fn write_event(&mut self) -> io::Result<()> {
        self.event.push('}');
        self.write_made()
    }

    fn write_made(&mut self) -> io::Result<()> {
        let made = std::mem::take(&mut self.event);
        self.write(&made)?;
        self.event = made;
        self.event.clear();
        Ok(())
    }

    /// Writes events, each of which stands behind a comma.
    fn write(&mut self, events: &str) -> io::Result<()> {
        let first = usize::from(!self.begun && !events.is_empty());
        self.begun |= !events.is_empty();
        self.text += &events[first..];
        if self.text.len() >= BUFFER && self.base.is_some() {
            self.write_text()
        } else {
            Ok(())
        }
    }

    fn write_text(&mut self) -> io::Result<()> {
        if let Some(fields) = self.fields.take() {
            let base = self.base.unwrap_or(0);
            write!(
                self.out,
                "{{\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":{base}{fields},\"traceEvents\":["
            )?;
        }
        self.out.write_all(self.text.as_bytes())?;
        self.text.clear();
        Ok(())
    }

    /// Gives what has been made its place: behind the open slice that begins at the same time, or in the file.
    fn deliver(&mut self, track: TrackIndex, time: u64) -> io::Result<()> {
        let made = std::mem::take(&mut self.event);
        self.place_events(track, time, &made)?;
        self.event = made;
        self.event.clear();
        Ok(())
    }

    fn place_events(&mut self, track: TrackIndex, time: u64, events: &str) -> io::Result<()> {
        match self.track_mut(track)?.open.last_mut() {
            Some(open) if open.start == time && open.event.is_some() => {
                open.followers += events;
                self.hold(events.len())
            }
            _ => self.write(events),
        }
    }

    /// Counts bytes that are held. If they are too many, open slices are written as their begins.
    fn hold(&mut self, bytes: usize) -> io::Result<()> {
        self.held += bytes;
        if self.held > self.most_held {
            self.write_begins()
        } else {
            Ok(())
        }
    }

    /// Writes the begins of all open slices.
    fn write_begins(&mut self) -> io::Result<()> {
        for track in 0..self.tracks.len() {
            for place in 0..self.tracks[track].open.len() {
                let open = &mut self.tracks[track].open[place];
                if let Some(begin) = open.finish(",\"ph\":\"B\"}", "") {
                    self.write(&begin)?;
                }
            }
        }
        self.held = 0;
        Ok(())
    }

    fn metadata(
        &mut self,
        place: (u64, u64),
        name: &str,
        value: (&str, Value<'_>),
    ) -> io::Result<()> {
        // Readers take an empty name for an error.
        if value.1 == Value::Text("") {
            return Ok(());
        }
        self.begin_phase("M", place);
        self.string("name", name);
        self.arguments([value]);
        self.write_event()
    }

    /// Makes the points of flows in a slice: at the first of two times inside of it, if the flow begins there, else at the second.
    fn make_flows(&mut self, place: (u64, u64), time: (u64, u64), flows: &[FlowPoint]) {
        for point in flows {
            let flow = point.flow;
            let known = self.flows.get(&flow).copied();
            let has_begun = known.is_some_and(|(_, has_begun)| has_begun);
            let ph = match (has_begun, point.last) {
                (false, false) => "s",
                (true, false) => "t",
                (_, true) => "f",
            };
            let id = known.map_or(self.last_flow + 1, |(id, _)| id);
            self.last_flow = id.max(self.last_flow);
            match ph {
                "f" if has_begun => drop(self.flows.remove(&flow)),
                // Slices of different tracks come in the order in which it is known how they nest: the end may come first.
                "s" | "f" if known.is_some() || self.flows.len() < MAX_FLOWS => {
                    self.flows.insert(flow, (id, ph == "s"));
                }
                _ => {}
            }
            let time = match ph {
                "s" => time.0,
                _ => time.1,
            };
            self.make_flow(ph, place, time, "flow", id);
        }
    }

    fn make_flow(&mut self, ph: &str, place: (u64, u64), time: u64, name: &str, id: u64) {
        self.begin_phase(ph, place);
        self.time(time);
        let _ = write!(self.event, ",\"id\":{id},\"bp\":\"e\"");
        self.string("cat", name);
        self.string("name", name);
        self.event.push('}');
    }

    /// Begins the event of a slice: all but its arguments and its end.
    fn begin_slice(&mut self, place: (u64, u64), (name, category): (&str, &str), start: Nanos) {
        self.begin_event(place);
        self.time(start.0);
        self.string("cat", category);
        self.string("name", name);
    }

    /// Ends the event of a slice, whose arguments are open if it has any. An open slice is held. Its flows are made behind it by
    /// `make_flows`.
    fn end_event(
        &mut self,
        (track, start): (TrackIndex, Nanos),
        (end, open): (Option<Nanos>, bool),
        has_arguments: bool,
        make_flows: impl FnOnce(&mut ChromeWriter<W>),
    ) -> io::Result<()> {
        if open {
            let event = std::mem::take(&mut self.event);
            make_flows(self);
            let followers = std::mem::take(&mut self.event);
            let open = UnclosedSlice {
                start: start.0,
                event: Some(event),
                has_arguments,
                followers,
            };
            let bytes = open.bytes();
            self.track_mut(track)?.open.push(open);
            return self.hold(bytes);
        }
        if has_arguments {
            self.event.push('}');
        }
        self.event += &ending(start.0, end);
        make_flows(self);
        self.deliver(track, start.0)
    }

    fn write_value(
        &mut self,
        track: TrackIndex,
        time: Nanos,
        value: CounterValue,
        category: &str,
    ) -> io::Result<()> {
        let (pid, _) = self.place(track)?;
        self.begin_phase("C", (pid, 0));
        self.time(time.0);
        if !category.is_empty() {
            self.string("cat", category);
        }
        self.event += ",\"name\":";
        quote(&mut self.event, &self.tracks[track.0 as usize].name);
        let value = match value {
            CounterValue::Int(value) => Value::Int(value),
            CounterValue::Double(value) => Value::Double(value),
        };
        self.arguments([("value", value)]);
        self.write_event()
    }

    /// The correlation id of a process in the file.
    fn correlation(&self, process: ProcessIndex, id: CorrelationId) -> Option<u64> {
        let fits = id.0 >> CORRELATION_BITS == 0;
        let upper = u64::from(process.0) << CORRELATION_BITS;
        id.is_some()
            .then_some(if fits { id.0 | upper } else { id.0 })
    }

    /// The correlation id of a call; one that has none and submits work gets one.
    fn correlation_of(&mut self, call: &Call<'_>) -> Option<u64> {
        let known = self.correlation(call.process, call.correlation);
        let (None, Some(first)) = (known, call.submitted.first()) else {
            return known;
        };
        let number = (first.0 % OWN_CORRELATION) | OWN_CORRELATION;
        for event in call.submitted {
            if self.correlations.len() < MAX_FLOWS {
                self.correlations.insert(*event, number);
            }
        }
        Some(number)
    }
}

/// The end of the event of a slice: a complete one, or a begin if it does not end.
fn ending(start: u64, end: Option<Nanos>) -> String {
    match end {
        Some(end) => {
            let duration = end.0.saturating_sub(start);
            let (micros, rest) = (duration / 1000, duration % 1000);
            format!(",\"ph\":\"X\",\"dur\":{micros}.{rest:03}}}")
        }
        None => ",\"ph\":\"B\"}".to_owned(),
    }
}

/// Adds arguments to a text, the first one behind `before`.
fn add_arguments<'v>(
    text: &mut String,
    list: impl IntoIterator<Item = (&'v str, Value<'v>)>,
    before: &str,
) {
    let mut separator = before;
    for (name, value) in list {
        text.push_str(separator);
        separator = ",";
        quote(text, name);
        text.push(':');
        write_value(text, value);
    }
}

/// The category of calls of an API, as PyTorch's profiler writes it where it knows the API.
fn category_of(domain: Domain) -> String {
    let name = domain.name().unwrap_or("other");
    name.replace(' ', "_")
}

fn named<'v>(list: &'v [EventArgument<'v>]) -> impl Iterator<Item = (&'v str, Value<'v>)> {
    list.iter().map(|argument| (argument.name, argument.value))
}

/// Sizes as a list of JSON.
fn in_list<N: std::fmt::Display>([x, y, z]: [N; 3]) -> String {
    format!("[{x},{y},{z}]")
}

impl<W: Write + Send> Consumer for ChromeWriter<W> {
    gputrail_trace::leave_out!(clocks attributes queue counters stack loss);

    fn begin(&mut self, header: &TraceHeader) -> io::Result<()> {
        if let Some(fields) = &mut self.fields
            && !header.machine.host.is_empty()
        {
            fields.push_str(",\"host_name\":");
            quote(fields, &header.machine.host);
        }
        Ok(())
    }

    fn agents(&mut self, first: AgentIndex, agents: &[Agent]) -> io::Result<()> {
        for (index, agent) in (u64::from(first.0)..).zip(agents) {
            let place = (index, 0);
            self.metadata(
                place,
                "process_labels",
                ("labels", Value::Text(&agent.title)),
            )?;
            self.metadata(place, "process_name", ("name", Value::Text(&agent.name)))?;
        }
        Ok(())
    }

    fn process(&mut self, _: ProcessIndex, process: &Process<'_>) -> io::Result<()> {
        self.processes.push(process.pid.0);
        let rank = rank_of(process);
        if !self.ranks.contains(&rank) {
            self.ranks.push(rank);
        }
        let place = (u64::from(process.pid.0), 0);
        self.metadata(place, "process_name", ("name", Value::Text(process.name)))?;
        let labels = match process.rank {
            "" => "CPU",
            rank => rank,
        };
        self.metadata(place, "process_labels", ("labels", Value::Text(labels)))?;
        if let Some(order) = process.order {
            let order = ("sort_index", Value::Int(order.into()));
            self.metadata(place, "process_sort_index", order)?;
        }
        Ok(())
    }

    fn track(&mut self, index: TrackIndex, track: &Track<'_>) -> io::Result<()> {
        let pid = |process: ProcessIndex| {
            let pid = self.processes.get(process.0 as usize);
            pid.map_or(NO_PROCESS, |pid| u64::from(*pid))
        };
        let (pid, mut tid) = match (track.kind, track.parent) {
            (TrackKind::Thread(process, thread), _) => (pid(process), u64::from(thread.0)),
            (_, Parent::Process(process)) => (pid(process), FIRST_TRACK + u64::from(index.0)),
            (_, Parent::Track(parent)) => {
                let (pid, _) = self.place(parent)?;
                (pid, FIRST_TRACK + u64::from(index.0))
            }
            (_, Parent::Trace) => (NO_PROCESS, FIRST_TRACK + u64::from(index.0)),
        };
        if matches!(track.kind, TrackKind::Counter(_)) {
            tid = 0;
        }
        self.tracks.push(EventPlace {
            pid,
            tid,
            name: track.name.to_owned(),
            open: Vec::new(),
        });
        if tid == 0 || track.name.is_empty() {
            return Ok(());
        }
        let place = (pid, tid);
        self.metadata(place, "thread_name", ("name", Value::Text(track.name)))?;
        if let Some(order) = track.order {
            let order = ("sort_index", Value::Int(order.into()));
            self.metadata(place, "thread_sort_index", order)?;
        }
        Ok(())
    }

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        let place = self.place(call.track)?;
        let function = call.function;
        let own = category_of(function.domain);
        let category = function.category.as_deref().unwrap_or(&own);
        self.begin_slice(place, (&function.name, category), call.start);
        let known = self.correlation_of(call);
        let correlation = known.map(|id| ("correlation", Value::Uint(id)));
        let external = call.external.is_some();
        let external = external.then_some(("External id", Value::Uint(call.external.0)));
        let error = call.error.map(|code| ("error", Value::Int(code.into())));
        let names = function.parameters.iter().map(|parameter| &*parameter.name);
        let arguments = names.zip(call.arguments.iter().copied());
        let own = [correlation, external, error].into_iter().flatten();
        let has_arguments = self.open_arguments(own.chain(arguments));
        // One arrow for all work of the call: they have one correlation id.
        let arrow = known.filter(|_| !call.submitted.is_empty());
        let position = (call.track, call.start);
        self.end_event(
            position,
            (call.end, call.open),
            has_arguments,
            |to: &mut ChromeWriter<W>| {
                if let Some(id) = arrow {
                    to.make_flow("s", place, call.start.0, "ac2g", id);
                }
                to.make_flows(place, (call.start.0, call.start.0), call.flows);
            },
        )
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let place = self.place(slice.track)?;
        self.begin_slice(place, (slice.name, slice.category), slice.start);
        let has_arguments = self.open_arguments(named(slice.arguments));
        let position = (slice.track, slice.start);
        self.end_event(
            position,
            (slice.end, slice.open),
            has_arguments,
            |to: &mut ChromeWriter<W>| {
                to.make_flows(place, (slice.start.0, slice.start.0), slice.flows)
            },
        )
    }

    fn end(&mut self, track: TrackIndex, end: Nanos) -> io::Result<()> {
        self.end_slice(&SliceEnd {
            track,
            time: end,
            arguments: &[],
            flows: &[],
        })
    }

    fn end_slice(&mut self, end: &SliceEnd<'_>) -> io::Result<()> {
        let place = self.place(end.track)?;
        // A slice that began before the recording is not there.
        let Some(mut open) = self.track_mut(end.track)?.open.pop() else {
            return Ok(());
        };
        let bytes = open.bytes();
        let Some(event) = &mut open.event else {
            // Ahead of the end, so that the slice is still around it.
            self.make_flows(place, (end.time.0, end.time.0), end.flows);
            self.begin_phase("E", place);
            self.time(end.time.0);
            self.arguments(named(end.arguments));
            return self.write_event();
        };
        let separator = if open.has_arguments {
            ","
        } else {
            ",\"args\":{"
        };
        add_arguments(event, named(end.arguments), separator);
        open.has_arguments |= !end.arguments.is_empty();
        self.held -= bytes;
        // Readers take a slice to have ended at its end.
        let inside = end.time.0.saturating_sub(1).max(open.start);
        self.make_flows(place, (open.start, inside), end.flows);
        let flows = std::mem::take(&mut self.event);
        let ending = ending(open.start, Some(end.time));
        match open.finish(&ending, &flows) {
            Some(events) => self.place_events(end.track, open.start, &events),
            None => Ok(()),
        }
    }

    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()> {
        let place = self.place(instant.track)?;
        self.begin_phase("i", place);
        self.time(instant.time.0);
        self.string("s", "t");
        self.string("cat", instant.category);
        self.string("name", instant.name);
        self.arguments(named(instant.arguments));
        self.event.push('}');
        self.make_flows(place, (instant.time.0, instant.time.0), instant.flows);
        self.deliver(instant.track, instant.time.0)
    }

    fn work(&mut self, work: &Work<'_>) -> io::Result<()> {
        let Some(start) = work.start else {
            self.left_out += 1;
            return Ok(());
        };
        let category = match work.stage.kind {
            WorkKind::Kernel => "kernel",
            WorkKind::Copy => "gpu_memcpy",
            WorkKind::Set => "gpu_memset",
            WorkKind::Synchronization => "gpu_sync",
            WorkKind::Graph => "gpu_graph",
            WorkKind::Unknown => "gpu_work",
        };
        let device = match work.agent {
            AgentIndex::UNKNOWN => 0,
            AgentIndex(index) => u64::from(index),
        };
        // Tools add durations up: what is only shown to run until the end has none.
        let end = work.measured().map_or(start.0, |(_, end)| end.0);
        let row = self
            .rows
            .row((device, work.stream, work.queue), (start.0, end));
        let place = (device, row.tid);
        if row.is_new {
            let more = if row.is_first { "" } else { " (overlapping)" };
            let name = match work.stage.kind {
                WorkKind::Graph => format!("graph launches{more}"),
                _ => format!("stream {}{more}", work.stream),
            };
            self.metadata(place, "thread_name", ("name", Value::Text(&name)))?;
        }
        self.begin_slice(place, (work.stage.name, category), start);
        let known = self.correlation(work.process, work.correlation);
        let own = work
            .event
            .and_then(|event| self.correlations.remove(&event));
        let correlation = known.or(own);
        let mut list = vec![
            ("device", Value::Uint(device)),
            ("stream", Value::Uint(work.stream.into())),
        ];
        let resources = &work.resources;
        let shared = u64::from(resources.static_local) + u64::from(resources.dynamic_local);
        let numbers = [
            ("correlation", correlation.unwrap_or(0)),
            ("bytes", work.bytes),
            ("registers per thread", resources.registers.into()),
            ("shared memory", shared),
        ];
        let has_shared = work.arguments.iter().any(|one| one.name == "shared memory");
        let numbers = numbers
            .into_iter()
            .filter(|(name, value)| *value != 0 && !(has_shared && *name == "shared memory"));
        list.extend(numbers.map(|(name, value)| (name, Value::Uint(value))));
        let sizes = work.launch.map(|launch| match launch.workgroups() {
            Some(groups) => [
                ("grid", in_list(groups)),
                ("block", in_list(launch.workgroup)),
            ],
            // The runtime has chosen the workgroups: their number is unknown.
            None => [
                ("work-items", in_list(launch.grid)),
                ("block", String::new()),
            ],
        });
        let sizes = sizes.iter().flatten().filter(|(_, size)| !size.is_empty());
        list.extend(sizes.map(|(name, size)| (*name, Value::Json(size))));
        if let Some(why) = work.unfinished {
            list.push(("unfinished", Value::Text(why)));
        }
        self.arguments(list.into_iter().chain(named(work.arguments)));
        self.event += &ending(start.0, Some(Nanos(end)));
        if let Some(id) = correlation.filter(|_| work.enqueued.is_some()) {
            self.make_flow("f", place, start.0, "ac2g", id);
        }
        self.write_made()
    }

    fn value(&mut self, track: TrackIndex, time: Nanos, value: CounterValue) -> io::Result<()> {
        self.write_value(track, time, value, "")
    }

    fn derived_value(
        &mut self,
        track: TrackIndex,
        time: Nanos,
        value: CounterValue,
    ) -> io::Result<()> {
        self.write_value(track, time, value, DERIVED)
    }

    fn counter_values(
        &mut self,
        _: CounterIndex,
        _: Nanos,
        values: &[CounterValue],
    ) -> io::Result<()> {
        self.left_out += values.len() as u64;
        Ok(())
    }

    fn derived_values(&mut self, _: CounterIndex, _: Nanos, _: &[CounterValue]) -> io::Result<()> {
        Ok(())
    }

    fn samples(&mut self, samples: &Samples) -> io::Result<()> {
        self.left_out += samples.raw.len() as u64;
        Ok(())
    }

    fn stack_samples(&mut self, samples: &StackSamples<'_>) -> io::Result<()> {
        self.left_out += samples.samples.len() as u64;
        Ok(())
    }

    fn note(&mut self, _: &Note<'_>) -> io::Result<()> {
        self.left_out += 1;
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write_begins()?;
        self.text.push_str("\n]");
        if let [rank] = self.ranks[..]
            && rank != NO_RANK
        {
            let _ = write!(self.text, ",\"distributedInfo\":{{\"rank\":{rank}}}");
        }
        self.text.push_str("}\n");
        self.write_text()?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
