//! Markers, ranges and named external ids. Pushed ranges nest on a track of their thread for each domain whose ranges
//! nest by themselves, external ids on one track for each kind; started ranges are placed in rows of the process in
//! which they do not overlap.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::io;

use super::Output;
use super::counters;
use super::process::{ProcessStream, known_or};
use crate::capture::Metadata;
use crate::record::{
    self, AgentId, CorrelationId, ExternalId, ExternalKind, Marker, MarkerKind, Nanos, PayloadKind,
    StringId, ThreadId, count,
};
use crate::trace::model::{
    Argument, CounterUnit, CounterValue, Instant, Note, Parent, ProcessIndex, Slice, SliceEnd,
    Stream, Track, TrackIndex, TrackKind, Value, category,
};

/// Maximum number of ranges that are open at a time, over all threads.
const MAX_OPEN: usize = 1 << 16;
/// Maximum number of ranges of which it is known that they have ended.
const MAX_ENDED: usize = 256;
/// Maximum number of rows of overlapping ranges.
const MAX_ROWS: usize = 256;

/// Maximum number of domains of a thread whose ranges have tracks of their own.
const MAX_DOMAINS: usize = 1 << 10;
/// Maximum number of values of one marker.
const MAX_FIELDS: usize = 256;
/// Maximum number of counters of a process.
const MAX_COUNTERS: usize = 1 << 12;

/// The markers of one thread.
#[derive(Debug, Default)]
pub(super) struct ThreadMarkers {
    /// By domain, the ranges that nest by themselves; by no domain, those that nest in each other.
    domains: Vec<(StringId, NestedRanges)>,
    external: Vec<ExternalTrack>,
    /// Values of the next marker.
    fields: Vec<Marker>,
}

/// Pushed ranges that nest in each other.
#[derive(Debug, Default)]
struct NestedRanges {
    track: Option<TrackIndex>,
    /// The levels of open ranges; 0 where they have none.
    open: Vec<u32>,
    /// When the latest marker was recorded.
    latest: Nanos,
}

impl NestedRanges {
    /// Ends the innermost range, which ended without a record: with the last marker inside of it.
    fn end_unrecorded(
        &mut self,
        stream: &mut Stream<'_>,
        track: TrackIndex,
        unbalanced: &mut Unbalanced,
    ) -> io::Result<()> {
        self.open.pop();
        unbalanced.pushes += 1;
        stream.consumer.end_slice(&SliceEnd {
            track,
            time: self.latest,
            arguments: &[Argument {
                name: "end",
                value: Value::Text("not recorded: the last marker inside"),
            }],
            flows: &[],
        })
    }
}

/// Ends of ranges that do not fit their begins.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Unbalanced {
    /// Pops of ranges that were not pushed in the recording.
    pops: u64,
    /// Pushed ranges that were not popped in the recording.
    pushes: u64,
    /// Started ranges that did not end.
    starts: u64,
    /// Ends of ranges that were not started in the recording.
    ends: u64,
}

/// The external ids of one kind.
#[derive(Debug)]
struct ExternalTrack {
    kind: ExternalKind,
    track: Option<TrackIndex>,
    /// For each pushed id, whether it has a slice.
    pushed: Vec<bool>,
}

/// The ranges of a process that may overlap.
#[derive(Debug)]
pub(super) struct Ranges {
    process: ProcessIndex,
    started: HashMap<u64, Started>,
    rows: Vec<Row>,
    /// Tracks of counters, by domain and name.
    counters: HashMap<(StringId, StringId), TrackIndex>,
    unbalanced: Unbalanced,
    /// The number of ranges that ended on another thread than they began on.
    moved: u64,
    /// The latest ranges that have ended. Lanes are read one after the other, so that of two ends of a range the later one
    /// may come first.
    ended: VecDeque<EndedRange>,
}

/// One end of a started range.
#[derive(Debug)]
struct Started {
    marker: Marker,
    time: Nanos,
    fields: Vec<Marker>,
}

/// The ranges of a row.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum RowOf {
    /// Started ranges of a domain.
    Domain(StringId),
    /// Ranges that were counted on an agent.
    Counted(AgentId),
}

/// A row, and the time span of its ranges.
#[derive(Debug)]
struct Row {
    of: RowOf,
    track: TrackIndex,
    from: Nanos,
    to: Nanos,
}

impl ProcessStream<'_> {
    /// Passes on a marker.
    pub(super) fn marker(
        &mut self,
        output: &mut Output<'_>,
        thread: ThreadId,
        marker: &Marker,
    ) -> io::Result<()> {
        let time = self.time_or_latest(self.host.to_boottime(marker.time));
        output.report.marker_records += 1;
        output.report.markers += u64::from(matches!(
            marker.what,
            MarkerKind::PUSH | MarkerKind::START | MarkerKind::INSTANT
        ));
        let place = self.thread_place(output, known_or(marker.thread, thread))?;
        let (stream, metadata) = (&mut output.stream, &self.metadata);
        let thread = &mut self.threads[place];
        let fields = match marker.what {
            MarkerKind::FIELD => {
                if thread.markers.fields.len() < MAX_FIELDS {
                    thread.markers.fields.push(*marker);
                }
                return Ok(());
            }
            _ => std::mem::take(&mut thread.markers.fields),
        };
        match marker.what {
            MarkerKind::START | MarkerKind::END => {
                let started = Started {
                    marker: *marker,
                    time,
                    fields,
                };
                self.ranges.add(stream, metadata, started)
            }
            MarkerKind::COUNTER => self.ranges.counter(stream, metadata, marker, time),
            MarkerKind::EXTERNAL_PUSH | MarkerKind::EXTERNAL_POP => {
                thread
                    .markers
                    .external(stream, metadata, thread.track, marker, time)
            }
            _ => {
                let kind = TrackKind::ThreadRanges(self.index, thread.id);
                let described = Described {
                    metadata,
                    marker,
                    fields: &fields,
                };
                let unbalanced = &mut self.ranges.unbalanced;
                let place = (thread.track, kind);
                thread
                    .markers
                    .add(stream, place, &described, time, unbalanced)
            }
        }
    }

    /// Passes on what is left of the markers when the recording ends.
    pub(super) fn finish_markers(&mut self, output: &mut Output<'_>) -> io::Result<()> {
        self.ranges.finish(&mut output.stream, &self.metadata)?;
        let mut unbalanced = self.ranges.unbalanced;
        for thread in &self.threads {
            let open = thread.markers.domains.iter();
            let open: usize = open.map(|(_, ranges)| ranges.open.len()).sum();
            unbalanced.pushes += open as u64;
        }
        let facts = [
            (unbalanced.pushes, "pushed range", "did not end"),
            (unbalanced.starts, "started range", "did not end"),
            (unbalanced.pops, "pop", "had no pushed range"),
            (unbalanced.ends, "end", "had no started range"),
            (
                self.ranges.moved,
                "started range",
                "ended on another thread",
            ),
        ];
        let facts = facts.iter().filter(|(number, ..)| *number > 0);
        let facts: Vec<String> = facts
            .map(|(number, one, what)| format!("{} {what}", count(*number, one)))
            .collect();
        match facts.is_empty() {
            true => Ok(()),
            false => self.detail(
                output,
                self.latest,
                Note::UNBALANCED_MARKERS,
                &facts.join("; "),
            ),
        }
    }
}

impl ThreadMarkers {
    /// Adds a marker of the thread, or a range that is pushed or popped there.
    fn add(
        &mut self,
        stream: &mut Stream<'_>,
        (parent, kind): (TrackIndex, TrackKind),
        described: &Described<'_>,
        time: Nanos,
        unbalanced: &mut Unbalanced,
    ) -> io::Result<()> {
        let marker = described.marker;
        let (level, is_of_domain) = match marker.what {
            // Its id is the handle.
            MarkerKind::RESOURCE => (1, true),
            _ => (marker.level(), marker.nests_in_its_domain()),
        };
        let domain = match is_of_domain {
            true => marker.domain,
            false => StringId::NONE,
        };
        let ranges = self.ranges(domain);
        let track = match (ranges.track, marker.what) {
            (Some(track), _) => track,
            // The range was pushed before the recording.
            (None, MarkerKind::POP) => {
                unbalanced.pops += 1;
                return Ok(());
            }
            (None, _) => *ranges.track.insert(stream.new_track(&Track {
                parent: Parent::Track(parent),
                name: &track_name("markers", described.metadata, domain),
                kind,
                order: None,
            })?),
        };
        let ended = match marker.what {
            MarkerKind::PUSH | MarkerKind::POP if marker.id != u64::MAX => {
                marker.ended_unrecorded() as usize
            }
            _ => 0,
        };
        for _ in 0..ended.min(ranges.open.len()) {
            ranges.end_unrecorded(stream, track, unbalanced)?;
        }
        // Ranges of this level and below have ended, too.
        let has_ended = |open: &u32| match marker.what {
            MarkerKind::PUSH => level != 0 && *open >= level,
            MarkerKind::POP => level != 0 && *open > level,
            _ => false,
        };
        while ranges.open.last().is_some_and(has_ended) {
            ranges.end_unrecorded(stream, track, unbalanced)?;
        }
        ranges.latest = time;
        match marker.what {
            MarkerKind::PUSH => {
                ranges.open.push(level);
                described.begin(stream, track, time, None, true)
            }
            MarkerKind::POP => {
                // The range may have been pushed before the recording, or never.
                if ranges.open.last() != Some(&level) {
                    unbalanced.pops += 1;
                    return Ok(());
                }
                ranges.open.pop();
                described.end(stream, track, time)
            }
            MarkerKind::INSTANT | MarkerKind::RESOURCE => {
                described.pass_on(|name, category, arguments| {
                    stream.consumer.instant(&Instant {
                        track,
                        name,
                        category,
                        time,
                        arguments,
                        flows: &[],
                    })
                })
            }
            _ => Ok(()),
        }
    }

    /// The pushed ranges of a domain.
    fn ranges(&mut self, domain: StringId) -> &mut NestedRanges {
        let known = self.domains.iter().position(|(of, _)| *of == domain);
        let place = known.unwrap_or_else(|| {
            if self.domains.len() < MAX_DOMAINS {
                self.domains.push((domain, NestedRanges::default()));
            }
            self.domains.len() - 1
        });
        &mut self.domains[place].1
    }

    /// Adds an external id that is pushed or popped. Ids with a name have slices.
    fn external(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        parent: TrackIndex,
        marker: &Marker,
        time: Nanos,
    ) -> io::Result<()> {
        let kind = ExternalKind(marker.external_kind.into());
        // The ranges themselves are shown.
        if metadata.is_of_ranges(kind) {
            return Ok(());
        }
        let external = self.external_track(kind);
        if marker.what == MarkerKind::EXTERNAL_POP {
            return match (external.pushed.pop(), external.track) {
                (Some(true), Some(track)) => stream.consumer.end(track, time),
                _ => Ok(()),
            };
        }
        let name = metadata.external_name(kind, ExternalId(marker.id));
        external.pushed.push(name.is_some());
        let Some(name) = name else {
            return Ok(());
        };
        let track = match external.track {
            Some(track) => track,
            None => *external.track.insert(stream.new_track(&Track {
                parent: Parent::Track(parent),
                name: &kind_title(metadata, kind),
                kind: TrackKind::Slices,
                order: None,
            })?),
        };
        stream.consumer.slice(&Slice {
            track,
            name: metadata.string(name),
            category: category::MARKER,
            start: time,
            end: None,
            open: true,
            correlation: CorrelationId::NONE,
            arguments: &[Argument {
                name: "external_id",
                value: Value::Uint(marker.id),
            }],
            flows: &[],
        })
    }

    fn external_track(&mut self, kind: ExternalKind) -> &mut ExternalTrack {
        let place = self.external.iter().position(|known| known.kind == kind);
        let place = place.unwrap_or_else(|| {
            self.external.push(ExternalTrack {
                kind,
                track: None,
                pushed: Vec::new(),
            });
            self.external.len() - 1
        });
        &mut self.external[place]
    }
}

/// A range that has ended.
#[derive(Debug)]
struct EndedRange {
    id: u64,
    began_on: ThreadId,
    time: Nanos,
    moved: bool,
}

impl Ranges {
    /// The ranges of `process`.
    pub fn new(process: ProcessIndex) -> Ranges {
        Ranges {
            process,
            started: HashMap::new(),
            rows: Vec::new(),
            counters: HashMap::new(),
            unbalanced: Unbalanced::default(),
            moved: 0,
            ended: VecDeque::new(),
        }
    }

    /// Counts a second end of a range, and returns whether it is one. The range ends with the earlier one.
    fn ends_again(&mut self, one: &Started) -> bool {
        let mut ended = self.ended.iter_mut();
        let Some(range) = ended.rfind(|range| range.id == one.marker.id) else {
            return false;
        };
        self.unbalanced.ends += 1;
        if one.time < range.time {
            self.moved -= u64::from(range.moved);
            (range.time, range.moved) = (one.time, one.marker.thread != range.began_on);
            self.moved += u64::from(range.moved);
        }
        true
    }

    /// Adds the start or the end of a range, and passes the range on when both have come.
    fn add(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        one: Started,
    ) -> io::Result<()> {
        let id = one.marker.id;
        // The two ends may come from different threads, in either order.
        match self.started.remove(&id) {
            Some(other) if other.marker.what != one.marker.what => {
                let (mut start, end) = match one.marker.what {
                    MarkerKind::END => (other, one),
                    _ => (one, other),
                };
                let (from, to) = (start.time, end.time.max(start.time));
                let moved = start.marker.thread != end.marker.thread;
                self.moved += u64::from(moved);
                if self.ended.len() == MAX_ENDED {
                    self.ended.pop_front();
                }
                self.ended.push_back(EndedRange {
                    id,
                    began_on: start.marker.thread,
                    time: end.time,
                    moved,
                });
                start.fields.extend(end.fields);
                let of = RowOf::Domain(start.marker.domain);
                let track = self.row(stream, metadata, of, from, to)?;
                start
                    .described(metadata)
                    .begin(stream, track, from, Some(to), false)
            }
            Some(other) => {
                // A second end: the range ends with the first one.
                self.unbalanced.ends += 1;
                self.started.insert(id, other);
                Ok(())
            }
            None if one.marker.what == MarkerKind::END && self.ends_again(&one) => Ok(()),
            None => {
                match one.marker.what {
                    _ if self.started.len() < MAX_OPEN => _ = self.started.insert(id, one),
                    MarkerKind::START => self.unbalanced.starts += 1,
                    _ => self.unbalanced.ends += 1,
                }
                Ok(())
            }
        }
    }

    /// Passes on a sample of a counter.
    fn counter(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        marker: &Marker,
        time: Nanos,
    ) -> io::Result<()> {
        let value = match marker.payload_kind {
            PayloadKind::FLOAT => CounterValue::Double(f64::from_bits(marker.payload)),
            _ => CounterValue::Int(marker.payload as i64),
        };
        let key = (marker.domain, marker.name);
        let track = match self.counters.get(&key) {
            Some(track) => *track,
            None if self.counters.len() >= MAX_COUNTERS => return Ok(()),
            None => {
                let (unit, suffix) = match metadata.string(marker.category) {
                    "" => (CounterUnit::Unspecified, String::new()),
                    "%" | "percent" => (CounterUnit::Percent, String::new()),
                    "B" | "bytes" => (CounterUnit::Bytes, String::new()),
                    unit => (CounterUnit::Unspecified, format!(" ({unit})")),
                };
                let name = match metadata.string(marker.domain) {
                    "" => format!("{}{suffix}", metadata.string(marker.name)),
                    domain => format!("{domain}: {}{suffix}", metadata.string(marker.name)),
                };
                let track = stream.new_track(&Track {
                    parent: Parent::Process(self.process),
                    name: &name,
                    kind: TrackKind::Counter(unit),
                    order: None,
                })?;
                self.counters.insert(key, track);
                track
            }
        };
        stream.consumer.value(track, time, value)
    }

    /// Passes on the ranges that have not ended.
    fn finish(&mut self, stream: &mut Stream<'_>, metadata: &Metadata) -> io::Result<()> {
        let mut open: Vec<_> = self.started.drain().map(|(_, started)| started).collect();
        let ends = open.len();
        open.retain(|one| one.marker.what == MarkerKind::START);
        self.unbalanced.ends += (ends - open.len()) as u64;
        self.unbalanced.starts += open.len() as u64;
        open.sort_unstable_by_key(|one| (one.time, one.marker.id));
        for one in &open {
            let forever = Nanos(u64::MAX);
            let of = RowOf::Domain(one.marker.domain);
            let track = self.row(stream, metadata, of, one.time, forever)?;
            let described = one.described(metadata);
            described.begin(stream, track, one.time, None, false)?;
        }
        Ok(())
    }

    /// Passes on a range that was counted on an agent, with its values.
    pub(super) fn counted(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        (start, end): (Nanos, Nanos),
        values: &[record::CounterValue],
    ) -> io::Result<()> {
        let Some(first) = values.first() else {
            return Ok(());
        };
        let track = self.row(stream, metadata, RowOf::Counted(first.agent), start, end)?;
        let names = counters::Names::of(metadata, values);
        let agent = Argument {
            name: "agent",
            value: Value::Text(agent_name(metadata, first.agent)),
        };
        let arguments: Vec<Argument<'_>> = std::iter::once(agent)
            .chain(names.arguments(values))
            .collect();
        stream.consumer.slice(&Slice {
            track,
            name: metadata.string(first.range),
            category: category::COUNTED_RANGE,
            start,
            end: Some(end),
            open: false,
            correlation: CorrelationId::NONE,
            arguments: &arguments,
            flows: &[],
        })
    }

    /// A row of these ranges that is free from `from` to `to`.
    fn row(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        of: RowOf,
        from: Nanos,
        to: Nanos,
    ) -> io::Result<TrackIndex> {
        let full = self.rows.len() >= MAX_ROWS;
        let free = |row: &&mut Row| row.of == of && (from >= row.to || to <= row.from);
        let found = match self.rows.iter_mut().find(free) {
            Some(row) => Some(row),
            // Too many at once: overlapping ranges may look nested.
            None if full => self.rows.last_mut(),
            None => None,
        };
        if let Some(row) = found {
            (row.from, row.to) = (row.from.min(from), row.to.max(to));
            return Ok(row.track);
        }
        let (name, kind) = match of {
            RowOf::Domain(domain) => (track_name("ranges", metadata, domain), TrackKind::Ranges),
            RowOf::Counted(agent) => {
                let agent = agent_name(metadata, agent);
                (format!("counted: {agent}").into(), TrackKind::Slices)
            }
        };
        let track = stream.new_track(&Track {
            parent: Parent::Process(self.process),
            name: &name,
            kind,
            order: None,
        })?;
        self.rows.push(Row {
            of,
            track,
            from,
            to,
        });
        Ok(track)
    }
}

fn agent_name(metadata: &Metadata, agent: AgentId) -> &str {
    let agent = metadata.agents.get(&agent);
    agent.map_or("", |agent| metadata.string(agent.name))
}

/// The name of a track with the markers of a domain; readers of traces know it by `what`.
fn track_name<'a>(what: &'a str, metadata: &Metadata, domain: StringId) -> Cow<'a, str> {
    match metadata.string(domain) {
        "" => Cow::Borrowed(what),
        domain => Cow::Owned(format!("{what}: {domain}")),
    }
}

fn kind_title(metadata: &Metadata, kind: ExternalKind) -> String {
    // The name of id 0 is the name of the kind.
    match (kind.name(), metadata.external_name(kind, ExternalId::NONE)) {
        (Some(name), _) => format!("external ids: {name}"),
        (None, Some(name)) => format!("external ids: {}", metadata.string(name)),
        (None, None) => format!("external ids: kind {}", kind.0),
    }
}

/// A marker with its values.
struct Described<'a> {
    metadata: &'a Metadata,
    marker: &'a Marker,
    fields: &'a [Marker],
}

impl Started {
    fn described<'a>(&'a self, metadata: &'a Metadata) -> Described<'a> {
        Described {
            metadata,
            marker: &self.marker,
            fields: &self.fields,
        }
    }
}

impl Described<'_> {
    /// Passes on the begin of a range.
    fn begin(
        &self,
        stream: &mut Stream<'_>,
        track: TrackIndex,
        start: Nanos,
        end: Option<Nanos>,
        open: bool,
    ) -> io::Result<()> {
        self.pass_on(|name, category, arguments| {
            stream.consumer.slice(&Slice {
                track,
                name,
                category,
                start,
                end,
                open,
                correlation: CorrelationId::NONE,
                arguments,
                flows: &[],
            })
        })
    }

    /// Passes on the end of a pushed range.
    fn end(&self, stream: &mut Stream<'_>, track: TrackIndex, time: Nanos) -> io::Result<()> {
        if self.fields.is_empty() && self.marker.payload_kind == PayloadKind::NONE {
            return stream.consumer.end(track, time);
        }
        let mut arguments = Vec::new();
        self.values(&mut arguments);
        stream.consumer.end_slice(&SliceEnd {
            track,
            time,
            arguments: &arguments,
            flows: &[],
        })
    }

    /// Adds the values of the marker.
    fn values<'a>(&'a self, arguments: &mut Vec<Argument<'a>>) {
        let fields = self.fields.iter();
        let fields = fields.map(|field| (self.metadata.string(field.name), field));
        for (name, value) in fields.chain([("payload", self.marker)]) {
            let bits = value.payload;
            let value = match value.payload_kind {
                PayloadKind::UNSIGNED => Value::Uint(bits),
                PayloadKind::SIGNED => Value::Int(bits as i64),
                PayloadKind::FLOAT => Value::Double(f64::from_bits(bits)),
                PayloadKind::POINTER => Value::Pointer(bits),
                PayloadKind::TEXT => Value::Text(self.metadata.string(StringId(bits as u32))),
                _ => continue,
            };
            arguments.push(Argument { name, value });
        }
    }

    /// Calls `pass_on` with the name, the category and the arguments.
    fn pass_on(
        &self,
        pass_on: impl FnOnce(&str, &str, &[Argument<'_>]) -> io::Result<()>,
    ) -> io::Result<()> {
        let (metadata, marker) = (self.metadata, self.marker);
        let mut arguments = Vec::new();
        if marker.domain.is_some() {
            arguments.push(Argument {
                name: "domain",
                value: Value::Text(metadata.string(marker.domain)),
            });
        }
        self.values(&mut arguments);
        if marker.what == MarkerKind::RESOURCE {
            arguments.push(Argument {
                name: "identifier",
                value: Value::Pointer(marker.id),
            });
        }
        let color;
        if marker.color != 0 {
            color = format!("#{:08x}", marker.color);
            arguments.push(Argument {
                name: "color",
                value: Value::Text(&color),
            });
        }
        let category = match metadata.string(marker.category) {
            "" => category::MARKER,
            category => category,
        };
        pass_on(metadata.string(marker.name), category, &arguments)
    }
}
