//! Chrome trace events, named as PyTorch's profiler names them, so that its tools read them too.
//!
//! Slices, calls, instants, flows, counters of tracks and device work are written; samples, counters of agents and notes have
//! no place in this format and are counted in [`ChromeWriter::left_out`]. Viewers of JSON move device work that overlaps on one
//! stream to other rows, or drop it.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::json::{quote, write_value};
use super::ranks::{NO_RANK, rank_of};
use crate::record::Nanos;
use crate::trace::model::{
    Agent, AgentIndex, Argument, Call, Consumer, CounterIndex, CounterValue, FlowPoint, Instant,
    Note, Parent, Process, ProcessIndex, Samples, Slice, SliceEnd, StackSamples, TraceHeader,
    Track, TrackIndex, TrackKind, Value, Work, WorkKind,
};

/// Thread ids of tracks that belong to no thread count from here.
const FIRST_TRACK: u64 = 1 << 40;
/// Bytes that are written at a time.
const BUFFER: usize = 1 << 16;
/// Most flows that have begun and not ended.
const MAX_FLOWS: usize = 1 << 20;

/// Writes the stream as JSON.
pub struct ChromeWriter<W: Write> {
    out: W,
    text: String,
    /// Whether an event has been written.
    begun: bool,
    /// Process ids.
    processes: Vec<u32>,
    tracks: Vec<Place>,
    /// Flows that have begun.
    flows: HashSet<u64>,
    left_out: u64,
    /// Rank of the processes; several have none in common.
    ranks: Vec<i64>,
}

/// Where the events of a track stand.
#[derive(Clone, Debug)]
struct Place {
    pid: u64,
    tid: u64,
    name: String,
}

impl<W: Write + Send> ChromeWriter<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> ChromeWriter<W> {
        ChromeWriter {
            out,
            text: String::new(),
            begun: false,
            processes: Vec::new(),
            tracks: Vec::new(),
            flows: HashSet::new(),
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

    fn place(&self, track: TrackIndex) -> io::Result<Place> {
        let place = self.tracks.get(track.0 as usize).cloned();
        place.ok_or_else(|| io::Error::other("an event refers to a track that was not declared"))
    }

    /// Begins an event with its phase and place.
    fn event(&mut self, ph: &str, place: (u64, u64)) {
        self.text.push_str(if self.begun { ",\n" } else { "\n" });
        self.begun = true;
        let (pid, tid) = place;
        let _ = write!(self.text, "{{\"ph\":\"{ph}\",\"pid\":{pid},\"tid\":{tid}");
    }

    fn time(&mut self, name: &str, nanos: u64) {
        let _ = write!(
            self.text,
            ",\"{name}\":{}.{:03}",
            nanos / 1000,
            nanos % 1000
        );
    }

    fn string(&mut self, name: &str, value: &str) {
        let _ = write!(self.text, ",\"{name}\":");
        quote(&mut self.text, value);
    }

    fn arguments<'v>(&mut self, list: impl IntoIterator<Item = (&'v str, Value<'v>)>) {
        let mut separator = ",\"args\":{";
        for (name, value) in list {
            self.text.push_str(separator);
            separator = ",";
            quote(&mut self.text, name);
            self.text.push(':');
            write_value(&mut self.text, value);
        }
        if separator == "," {
            self.text.push('}');
        }
    }

    fn close(&mut self) -> io::Result<()> {
        self.text.push('}');
        if self.text.len() >= BUFFER {
            self.out.write_all(self.text.as_bytes())?;
            self.text.clear();
        }
        Ok(())
    }

    fn metadata(
        &mut self,
        place: (u64, u64),
        name: &str,
        value: (&str, Value<'_>),
    ) -> io::Result<()> {
        self.event("M", place);
        self.string("name", name);
        self.arguments([value]);
        self.close()
    }

    /// The points of flows in a slice that begins at `time`.
    fn flow_points(&mut self, place: (u64, u64), time: u64, flows: &[FlowPoint]) -> io::Result<()> {
        for point in flows {
            let id = point.flow.0;
            let ph = match (self.flows.contains(&id), point.last) {
                (false, false) => "s",
                (true, false) => "t",
                (_, true) => "f",
            };
            match ph {
                "s" if self.flows.len() < MAX_FLOWS => drop(self.flows.insert(id)),
                "f" => drop(self.flows.remove(&id)),
                _ => {}
            }
            self.flow(ph, place, time, "flow", id)?;
        }
        Ok(())
    }

    fn flow(
        &mut self,
        ph: &str,
        place: (u64, u64),
        time: u64,
        name: &str,
        id: u64,
    ) -> io::Result<()> {
        self.event(ph, place);
        self.time("ts", time);
        let _ = write!(self.text, ",\"id\":{id},\"bp\":\"e\"");
        self.string("cat", name);
        self.string("name", name);
        self.close()
    }

    /// A slice, whole or its begin.
    fn begin_slice(
        &mut self,
        place: (u64, u64),
        (name, category): (&str, &str),
        start: Nanos,
        end: Option<Nanos>,
    ) {
        match end {
            Some(end) => {
                self.event("X", place);
                self.time("ts", start.0);
                self.time("dur", end.0.saturating_sub(start.0));
            }
            None => {
                self.event("B", place);
                self.time("ts", start.0);
            }
        }
        self.string("cat", category);
        self.string("name", name);
    }
}

fn named<'v>(list: &'v [Argument<'v>]) -> impl Iterator<Item = (&'v str, Value<'v>)> {
    list.iter().map(|argument| (argument.name, argument.value))
}

impl<W: Write + Send> Consumer for ChromeWriter<W> {
    fn begin(&mut self, header: &TraceHeader) -> io::Result<()> {
        self.text.push_str("{\"displayTimeUnit\":\"ns\"");
        if !header.machine.host.is_empty() {
            self.string("host_name", &header.machine.host);
        }
        self.text.push_str(",\"traceEvents\":[");
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
            pid.map_or(FIRST_TRACK, |pid| u64::from(*pid))
        };
        let (mut pid, mut tid) = match (track.kind, track.parent) {
            (TrackKind::Thread(process, thread), _) => (pid(process), u64::from(thread.0)),
            (_, Parent::Process(process)) => (pid(process), FIRST_TRACK + u64::from(index.0)),
            (_, Parent::Track(parent)) => {
                let parent = self.place(parent)?;
                (parent.pid, FIRST_TRACK + u64::from(index.0))
            }
            (_, Parent::Trace) => (FIRST_TRACK, FIRST_TRACK + u64::from(index.0)),
        };
        if matches!(track.kind, TrackKind::Counter(_)) {
            tid = 0;
            pid = pid.min(FIRST_TRACK);
        }
        self.tracks.push(Place {
            pid,
            tid,
            name: track.name.to_owned(),
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
        let Place { pid, tid, .. } = self.place(call.track)?;
        let function = call.function;
        let category = function.category.as_deref().or(function.domain.name());
        let end = call.end.filter(|_| !call.open);
        let label = (&*function.name, category.unwrap_or("other"));
        self.begin_slice((pid, tid), label, call.start, end);
        let correlation = call.correlation.is_some();
        let correlation = correlation.then_some(("correlation", Value::Uint(call.correlation.0)));
        let external = call.external.is_some();
        let external = external.then_some(("External id", Value::Uint(call.external.0)));
        let error = call.error.map(|code| ("error", Value::Int(code.into())));
        let names = function.parameters.iter().map(|parameter| &*parameter.name);
        let arguments = names.zip(call.arguments.iter().copied());
        let own = [correlation, external, error].into_iter().flatten();
        self.arguments(own.chain(arguments));
        self.close()?;
        for event in call.submitted {
            self.flow("s", (pid, tid), call.start.0, "ac2g", event.0)?;
        }
        self.flow_points((pid, tid), call.start.0, call.flows)
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let Place { pid, tid, .. } = self.place(slice.track)?;
        let end = slice.end.filter(|_| !slice.open);
        let label = (slice.name, slice.category);
        self.begin_slice((pid, tid), label, slice.start, end);
        self.arguments(named(slice.arguments));
        self.close()?;
        self.flow_points((pid, tid), slice.start.0, slice.flows)
    }

    fn end(&mut self, track: TrackIndex, end: Nanos) -> io::Result<()> {
        let Place { pid, tid, .. } = self.place(track)?;
        self.event("E", (pid, tid));
        self.time("ts", end.0);
        self.close()
    }

    fn end_slice(&mut self, end: &SliceEnd<'_>) -> io::Result<()> {
        let Place { pid, tid, .. } = self.place(end.track)?;
        // Ahead of the end, so that the slice is still around it.
        self.flow_points((pid, tid), end.time.0, end.flows)?;
        self.event("E", (pid, tid));
        self.time("ts", end.time.0);
        self.arguments(named(end.arguments));
        self.close()
    }

    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()> {
        let Place { pid, tid, .. } = self.place(instant.track)?;
        self.event("i", (pid, tid));
        self.time("ts", instant.time.0);
        self.string("s", "t");
        self.string("cat", instant.category);
        self.string("name", instant.name);
        self.arguments(named(instant.arguments));
        self.close()?;
        self.flow_points((pid, tid), instant.time.0, instant.flows)
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
            WorkKind::Unknown => "gpu_work",
        };
        let device = match work.agent {
            AgentIndex::UNKNOWN => 0,
            AgentIndex(index) => u64::from(index),
        };
        let place = (device, u64::from(work.stream));
        let end = work.duration.map(|duration| Nanos(start.0 + duration));
        let label = (work.stage.name, category);
        self.begin_slice(place, label, start, end.or(Some(start)));
        let correlation = work.correlation.0;
        let mut list = vec![
            ("device", Value::Uint(device)),
            ("stream", Value::Uint(work.stream.into())),
        ];
        let known = [
            ("correlation", correlation),
            ("bytes", work.bytes),
            ("registers per thread", work.resources.registers.into()),
        ];
        let known = known.into_iter().filter(|(_, value)| *value != 0);
        list.extend(known.map(|(name, value)| (name, Value::Uint(value))));
        let [grid, block] = match work.launch {
            Some(launch) => {
                let groups = launch.workgroups().unwrap_or_default();
                [groups, launch.workgroup].map(|[x, y, z]| format!("[{x},{y},{z}]"))
            }
            None => Default::default(),
        };
        if work.launch.is_some() {
            list.extend([("grid", Value::Json(&grid)), ("block", Value::Json(&block))]);
        }
        if let Some(why) = work.unfinished {
            list.push(("unfinished", Value::Text(why)));
        }
        self.arguments(list.into_iter().chain(named(work.arguments)));
        self.close()?;
        match work.event {
            Some(event) if work.enqueued.is_some() => {
                self.flow("f", place, start.0, "ac2g", event.0)
            }
            _ => Ok(()),
        }
    }

    fn value(&mut self, track: TrackIndex, time: Nanos, value: CounterValue) -> io::Result<()> {
        let Place { pid, name, .. } = self.place(track)?;
        self.event("C", (pid, 0));
        self.time("ts", time.0);
        self.string("name", &name);
        let value = match value {
            CounterValue::Int(value) => Value::Int(value),
            CounterValue::Double(value) => Value::Double(value),
        };
        self.arguments([("value", value)]);
        self.close()
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
        self.text.push_str("\n]");
        if let [rank] = self.ranks[..]
            && rank != NO_RANK
        {
            let _ = write!(self.text, ",\"distributedInfo\":{{\"rank\":{rank}}}");
        }
        self.text.push_str("}\n");
        self.out.write_all(self.text.as_bytes())?;
        self.text.clear();
        self.out.flush()
    }
}
