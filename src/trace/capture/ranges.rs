//! The ranges of a process that may overlap: started ranges and counted ones, in rows in which they do not; and what a marker
//! says, of whatever kind.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;

use super::counters;
use crate::model::{
    CounterUnit, CounterValue, EventArgument, Parent, ProcessIndex, Slice, SliceEnd, Stream, Track,
    TrackIndex, TrackKind, Value, category,
};
use gputrail_capture::Metadata;
use gputrail_record::{
    self as record, AgentId, CorrelationId, Marker, MarkerKind, Nanos, PayloadKind, StringId,
};

/// Maximum number of records of started ranges that are held, over all threads: of ranges that are open, and of ranges
/// that have ended.
const MAX_HELD: usize = 1 << 17;
/// Maximum number of rows of overlapping ranges.
const MAX_ROWS: usize = 256;
/// Maximum number of counters of a process.
const MAX_COUNTERS: usize = 1 << 12;

/// Ends of ranges that do not fit their begins.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct UnbalancedEnds {
    /// Pops of ranges that were not pushed in the recording.
    pub pops: u64,
    /// Pushed ranges that were not popped in the recording.
    pub pushes: u64,
    /// Started ranges that did not end.
    pub starts: u64,
    /// Ends of ranges that were not started in the recording.
    pub ends: u64,
}

/// The ranges of a process that may overlap.
#[derive(Debug)]
pub(super) struct Ranges {
    process: ProcessIndex,
    /// By id, the started ranges. Lanes are read one after the other, so of two ends of a range the later one may be read
    /// first: a range that has ended is held until the recording ends or there is no room for others.
    held: HashMap<u64, HeldRange>,
    /// The number of records in `held`, and the limit for those of ranges that have no other edge there: with the other
    /// edges there are twice as many at most.
    records: usize,
    limit: usize,
    /// The number of ranges in `held` whose end is there.
    ended: usize,
    rows: Vec<RangeRow>,
    /// Tracks of counters, by domain and name.
    counters: HashMap<(StringId, StringId), TrackIndex>,
    pub unbalanced: UnbalancedEnds,
    /// The number of ranges that ended on another thread than they began on.
    pub moved: u64,
}

/// The start and the end of a started range, as far as they have been read.
#[derive(Debug, Default)]
struct HeldRange {
    start: Option<RangeEdge>,
    end: Option<RangeEdge>,
}

/// The start or the end of a started range.
#[derive(Debug)]
pub(super) struct RangeEdge {
    pub marker: Marker,
    pub time: Nanos,
    pub fields: Vec<Marker>,
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
struct RangeRow {
    of: RowOf,
    track: TrackIndex,
    from: Nanos,
    to: Nanos,
}

impl Ranges {
    /// The ranges of `process`.
    pub fn new(process: ProcessIndex) -> Ranges {
        Ranges::with_limit(process, MAX_HELD)
    }

    fn with_limit(process: ProcessIndex, limit: usize) -> Ranges {
        Ranges {
            process,
            held: HashMap::new(),
            records: 0,
            limit,
            ended: 0,
            rows: Vec::new(),
            counters: HashMap::new(),
            unbalanced: UnbalancedEnds::default(),
            moved: 0,
        }
    }

    /// Adds the start or the end of a range. Of several ends, the earliest is the range's.
    pub fn add(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        edge: RangeEdge,
    ) -> io::Result<()> {
        let is_end = edge.marker.what == MarkerKind::END;
        let other = self.held.get(&edge.marker.id).is_some_and(|range| {
            let other = if is_end { &range.start } else { &range.end };
            other.is_some()
        });
        let limit = if other { self.limit * 2 } else { self.limit };
        // All ranges are looked at: there are enough that have ended to be worth it.
        if self.records + edge.records() > limit && self.ended > self.limit / 32 {
            self.pass_on_earlier_half(stream, metadata)?;
        }
        let surplus = if is_end {
            &mut self.unbalanced.ends
        } else {
            &mut self.unbalanced.starts
        };
        if self.records + edge.records() > limit {
            *surplus += 1;
            return Ok(());
        }
        let range = self.held.entry(edge.marker.id).or_default();
        let known = if is_end {
            &mut range.end
        } else {
            &mut range.start
        };
        self.records += edge.records();
        let other = match known {
            Some(known) if edge.time < known.time => std::mem::replace(known, edge),
            Some(_) => edge,
            None => {
                *known = Some(edge);
                self.ended += usize::from(is_end);
                return Ok(());
            }
        };
        self.records -= other.records();
        *surplus += 1;
        Ok(())
    }

    /// Makes room: passes on those of the ranges that have ended that ended earlier than half of them.
    fn pass_on_earlier_half(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
    ) -> io::Result<()> {
        let mut ends: Vec<Nanos> = self.held.values().filter_map(HeldRange::ended).collect();
        let half = ends.len() / 2;
        let Some((_, median, _)) = (half < ends.len()).then(|| ends.select_nth_unstable(half))
        else {
            return Ok(());
        };
        let median = *median;
        let is_early = |range: &HeldRange| range.ended().is_some_and(|end| end <= median);
        self.pass_on_where(stream, metadata, is_early)
    }

    /// Passes on the ranges that `is_wanted`, in the order of their starts, and counts the ends among them that have no start.
    fn pass_on_where(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        is_wanted: impl Fn(&HeldRange) -> bool,
    ) -> io::Result<()> {
        let mut wanted = Vec::new();
        for (_, range) in self.held.extract_if(|_, range| is_wanted(range)) {
            self.records -= range.records();
            self.ended -= usize::from(range.end.is_some());
            match range.start {
                Some(start) => wanted.push((start, range.end)),
                None => self.unbalanced.ends += 1,
            }
        }
        wanted.sort_unstable_by_key(|(start, _)| (start.time, start.marker.id));
        for (mut start, end) in wanted {
            let from = start.time;
            let to = end.as_ref().map(|end| end.time.max(from));
            if let Some(end) = end {
                self.moved += u64::from(start.marker.thread != end.marker.thread);
                start.fields.extend(end.fields);
            }
            let of = RowOf::Domain(start.marker.domain);
            let track = self.row(stream, metadata, of, from, to.unwrap_or(Nanos(u64::MAX)))?;
            let described = start.described(metadata);
            described.begin(stream, track, from, to, false)?;
        }
        Ok(())
    }

    /// Passes on a sample of a counter.
    pub fn counter(
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

    /// Passes on the ranges that are held: those that have ended, and then the others.
    pub fn finish(&mut self, stream: &mut Stream<'_>, metadata: &Metadata) -> io::Result<()> {
        self.pass_on_where(stream, metadata, |range| range.end.is_some())?;
        self.unbalanced.starts += self.held.len() as u64;
        self.pass_on_where(stream, metadata, |_| true)
    }

    /// Passes on a range that was counted on an agent, with its values.
    pub fn counted(
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
        let names = counters::ValueNames::of(metadata, values);
        let agent = EventArgument {
            name: "agent",
            value: Value::Text(agent_name(metadata, first.agent)),
        };
        let arguments: Vec<EventArgument<'_>> = std::iter::once(agent)
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
        let free = |row: &&mut RangeRow| row.of == of && (from >= row.to || to <= row.from);
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
        self.rows.push(RangeRow {
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
pub(super) fn track_name<'a>(what: &'a str, metadata: &Metadata, domain: StringId) -> Cow<'a, str> {
    match metadata.string(domain) {
        "" => Cow::Borrowed(what),
        domain => Cow::Owned(format!("{what}: {domain}")),
    }
}

/// A marker with its values.
pub(super) struct DescribedMarker<'a> {
    pub metadata: &'a Metadata,
    pub marker: &'a Marker,
    pub fields: &'a [Marker],
}

impl HeldRange {
    /// When it ended, if its end has been read.
    fn ended(&self) -> Option<Nanos> {
        self.end.as_ref().map(|end| end.time)
    }

    /// The number of its records.
    fn records(&self) -> usize {
        let edges = [&self.start, &self.end].into_iter().flatten();
        edges.map(RangeEdge::records).sum()
    }
}

impl RangeEdge {
    /// The number of its records.
    fn records(&self) -> usize {
        1 + self.fields.len()
    }

    fn described<'a>(&'a self, metadata: &'a Metadata) -> DescribedMarker<'a> {
        DescribedMarker {
            metadata,
            marker: &self.marker,
            fields: &self.fields,
        }
    }
}

impl DescribedMarker<'_> {
    /// Passes on the begin of a range.
    pub fn begin(
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
    pub fn end(&self, stream: &mut Stream<'_>, track: TrackIndex, time: Nanos) -> io::Result<()> {
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
    fn values<'a>(&'a self, arguments: &mut Vec<EventArgument<'a>>) {
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
            arguments.push(EventArgument { name, value });
        }
    }

    /// Calls `pass_on` with the name, the category and the arguments.
    pub fn pass_on(
        &self,
        pass_on: impl FnOnce(&str, &str, &[EventArgument<'_>]) -> io::Result<()>,
    ) -> io::Result<()> {
        let (metadata, marker) = (self.metadata, self.marker);
        let mut arguments = Vec::new();
        if marker.domain.is_some() {
            arguments.push(EventArgument {
                name: "domain",
                value: Value::Text(metadata.string(marker.domain)),
            });
        }
        self.values(&mut arguments);
        if marker.what == MarkerKind::RESOURCE {
            arguments.push(EventArgument {
                name: "identifier",
                value: Value::Pointer(marker.id),
            });
        }
        let color;
        if marker.color != 0 {
            color = format!("#{:08x}", marker.color);
            arguments.push(EventArgument {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Consumer;
    use gputrail_record::ThreadId;

    /// The slices of ranges: track, start and end.
    #[derive(Debug, Default)]
    struct Slices(Vec<(TrackIndex, u64, Option<u64>)>);

    impl Consumer for Slices {
        crate::leave_out!(
            clocks attributes agents process track queue counters call end instant work value counter_values samples
            stack stack_samples loss note
        );

        fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
            let end = slice.end.map(|end| end.0);
            self.0.push((slice.track, slice.start.0, end));
            Ok(())
        }
    }

    impl Slices {
        fn times(&self) -> Vec<(u64, Option<u64>)> {
            self.0.iter().map(|(_, from, to)| (*from, *to)).collect()
        }
    }

    fn edge(what: MarkerKind, id: u64, thread: u32, time: u64) -> RangeEdge {
        let marker = Marker {
            what,
            id,
            thread: ThreadId(thread),
            ..Marker::blank()
        };
        RangeEdge {
            marker,
            time: Nanos(time),
            fields: Vec::new(),
        }
    }

    /// The slices and the rest of `edges`, which are read in this order, with room for `limit` records.
    fn read(limit: usize, edges: Vec<RangeEdge>) -> (Slices, Ranges) {
        let (mut slices, metadata) = (Slices::default(), Metadata::default());
        let mut ranges = Ranges::with_limit(ProcessIndex(0), limit);
        let mut stream = Stream::new(&mut slices);
        for edge in edges {
            ranges.add(&mut stream, &metadata, edge).unwrap();
            assert!(ranges.records <= 2 * limit);
        }
        ranges.finish(&mut stream, &metadata).unwrap();
        (slices, ranges)
    }

    #[test]
    fn a_range_ends_with_the_earlier_of_two_ends_in_whatever_order_lanes_are_read() {
        const START: MarkerKind = MarkerKind::START;
        const END: MarkerKind = MarkerKind::END;
        let edges = [(START, 1, 10), (END, 2, 40), (END, 1, 30)];
        let orders = [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ];
        for order in orders {
            let edges = order.map(|place| {
                let (what, thread, time) = edges[place];
                edge(what, 7, thread, time)
            });
            let (slices, ranges) = read(MAX_HELD, edges.into());
            assert_eq!(slices.times(), [(10, Some(30))], "{order:?}");
            let UnbalancedEnds { starts, ends, .. } = ranges.unbalanced;
            assert_eq!((ranges.moved, starts, ends), (0, 0, 1), "{order:?}");
        }
    }

    #[test]
    fn a_range_that_ended_long_ago_makes_room_for_others() {
        let mut edges = Vec::new();
        for id in 0..100 {
            edges.push(edge(MarkerKind::START, id, 1, 10 * id + 1));
            edges.push(edge(MarkerKind::END, id, 1, 10 * id + 5));
        }
        // It begins first and ends last.
        edges.insert(0, edge(MarkerKind::START, 1000, 1, 1));
        edges.push(edge(MarkerKind::END, 1000, 2, 2000));
        let (slices, ranges) = read(8, edges);
        let mut times = slices.times();
        times.sort();
        let mut expected: Vec<_> = (0..100)
            .map(|id| (10 * id + 1, Some(10 * id + 5)))
            .collect();
        expected.insert(1, (1, Some(2000)));
        assert_eq!(times, expected);
        assert_eq!((ranges.moved, ranges.records), (1, 0));
    }

    #[test]
    fn ranges_for_which_there_is_no_room_are_counted() {
        let starts = (0..10).map(|id| edge(MarkerKind::START, id, 1, id + 1));
        let (slices, ranges) = read(4, starts.collect());
        assert_eq!(slices.times().len(), 4);
        assert_eq!((ranges.unbalanced.starts, ranges.records), (10, 0));
    }

    #[test]
    fn ranges_that_are_all_open_end_although_there_is_no_room_for_others() {
        let starts = (0..6).map(|id| edge(MarkerKind::START, id, 1, id + 1));
        let ends = (0..6).map(|id| edge(MarkerKind::END, id, 1, id + 10));
        let (slices, ranges) = read(4, starts.chain(ends).collect());
        let mut times = slices.times();
        times.sort();
        let expected: Vec<_> = (0..4).map(|id| (id + 1, Some(id + 10))).collect();
        assert_eq!(times, expected);
        let UnbalancedEnds { starts, ends, .. } = ranges.unbalanced;
        assert_eq!((starts, ends, ranges.records, ranges.ended), (2, 2, 0, 0));
    }

    #[test]
    fn ends_without_starts_make_room_for_others() {
        let ends = (0..6).map(|id| edge(MarkerKind::END, id, 1, id + 1));
        let range = [(MarkerKind::START, 20), (MarkerKind::END, 30)];
        let range = range.map(|(what, time)| edge(what, 10, 1, time));
        let (slices, ranges) = read(4, ends.chain(range).collect());
        assert_eq!(slices.times(), [(20, Some(30))]);
        let UnbalancedEnds { starts, ends, .. } = ranges.unbalanced;
        assert_eq!((starts, ends, ranges.records, ranges.ended), (0, 6, 0, 0));
    }

    #[test]
    fn values_take_room_as_other_records_do() {
        let mut with_values = edge(MarkerKind::START, 1, 1, 1);
        with_values.fields = vec![Marker::blank(); 3];
        let edges = vec![with_values, edge(MarkerKind::START, 2, 1, 2)];
        let (slices, ranges) = read(4, edges);
        assert_eq!(slices.times(), [(1, None)]);
        assert_eq!(ranges.unbalanced.starts, 2);
    }
}
