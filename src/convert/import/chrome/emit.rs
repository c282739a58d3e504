//! Second pass: records in the order of time, passed on as events of the model.

mod declare;
mod detail;
mod lane;
mod work;

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};
use std::io;
use std::mem;
use std::path::Path;

use super::arguments;
use super::arrows::Arrows;
use super::ascend::COMMUNICATION;
use super::categories::is_call;
use super::collect::{Collected, LaneKey, NumberSet};
use super::correlations::Correlations;
use super::record::{EventRecord, NONE, RecordHead, StoredKind, flag};
use super::strings::Strings;
use crate::import::{InputFile, Report};
use declare::Declared;
use detail::Details;
use gputrail_record::number_map::NumberMap;
use gputrail_record::{ArgumentType, CorrelationId, Domain, ExternalId, Nanos, OperationGroup};
use gputrail_trace::model::{
    Call, Consumer, CounterUnit, CounterValue, EventArgument, Function, Instant, Parameter, Slice,
    SliceEnd, Stream, Track, TrackIndex, TrackKind, Value,
};
use lane::{BegunSlice, DelayedSlice, SliceLane};
use work::DeviceWork;

/// Most counters of a file.
const MAX_COUNTERS: usize = 1 << 16;
/// Most rows of a lane.
const MAX_ROWS: usize = 1 << 10;

/// Passes everything that was collected to `consumer`.
pub(super) fn emit(
    source: &InputFile,
    (mut collected, table): (Collected<'_>, &Path),
    arrows: Arrows,
    consumer: &mut dyn Consumer,
) -> io::Result<()> {
    let events = mem::take(&mut collected.events);
    let stream = Stream::new(consumer);
    let (stream, declared) = declare::declare(source, &mut collected, stream)?;
    let Collected {
        file,
        report,
        strings,
        correlations,
        lanes,
        begun_flows,
        has_derived,
        has_graphs,
        ..
    } = collected;
    let mut emitter = Emitter {
        file,
        report,
        strings,
        correlations,
        lanes: lanes.iter().map(|_| SliceLane::default()).collect(),
        declared,
        stream,
        functions: NumberMap::default(),
        function_list: Vec::new(),
        counters: HashMap::new(),
        work: DeviceWork::default(),
        begun_flows,
        has_derived,
        has_graphs,
        arrows,
        details: Details::new(table),
        ordinal: 0,
        lane_keys: lanes,
    };
    events.drain(|(time, _), bytes| emitter.record(time, EventRecord::read(bytes)))?;
    emitter.finish()
}

/// Passes records on.
pub(super) struct Emitter<'a> {
    file: &'a Path,
    report: &'a mut Report,
    strings: Strings,
    correlations: Correlations,
    lanes: Vec<SliceLane>,
    declared: Declared,
    stream: Stream<'a>,
    /// Places in `function_list`, by category, name and names of arguments.
    functions: NumberMap<u64, usize>,
    function_list: Vec<Function>,
    counters: HashMap<(u32, Box<str>, Box<str>), TrackIndex>,
    work: DeviceWork,
    /// Correlation ids at which arrows begin.
    begun_flows: NumberSet,
    /// Whether the file has the counters that are made of other events.
    has_derived: bool,
    /// Whether there are launches of graphs.
    has_graphs: bool,
    /// The points of arrows on slices.
    arrows: Arrows,
    /// Rows of tables about what begins at the time that the stream has come to.
    details: Details<'a>,
    /// The number of records before this one.
    ordinal: u64,
    lane_keys: Vec<LaneKey>,
}

impl Emitter<'_> {
    fn lost(&mut self, reason: &'static str, head: &RecordHead) {
        let offset = Some(head.offset);
        self.report.unrepresented(self.file, reason, offset);
    }

    fn record(&mut self, time: i64, record: EventRecord<'_>) -> io::Result<()> {
        self.details.go_to(time, self.report);
        match record.head.kind() {
            StoredKind::Slice => self.slice(time, record),
            StoredKind::Work => self.device_work(time, record),
            StoredKind::Instant => self.instant(time, record),
            StoredKind::Counter => self.counter(time, record),
            StoredKind::Flow => {
                self.flow(record.head);
                Ok(())
            }
            StoredKind::Detail => {
                let name = name_of(&self.strings, &record).to_owned();
                self.details.add(name, &record, self.report);
                Ok(())
            }
            // Pairs have been put together.
            StoredKind::Begin | StoredKind::End => Ok(()),
        }?;
        self.ordinal += 1;
        Ok(())
    }

    /// A slice takes its place, and the one before it on its lane goes on.
    fn slice(&mut self, start: i64, record: EventRecord<'_>) -> io::Result<()> {
        let number = record.head.lane as usize;
        let end = match record.head.duration {
            NONE => i64::MAX,
            duration => start.saturating_add_unsigned(duration),
        };
        self.pass_held(number, start)?;
        let mut id = record.head.id;
        let (mut submitted, mut waited) = (Vec::new(), Vec::new());
        if record.head.has(flag::CALL) {
            if id != NONE
                && let Some(thread) = self.declared.thread(number)
                && let LaneKey::Thread { pid, .. } = self.lane_keys[number]
            {
                let (work, start) = (&mut self.work, self.declared.time(start));
                self.correlations.claim(id, pid, |event| {
                    submitted.push(work::event_id(event));
                    work.called(event, thread, start);
                });
                if self.has_graphs && !submitted.is_empty() {
                    self.work.launched(id, thread, start);
                }
            }
            // A correlation id does not decide on the row.
            id = 0;
        }
        let mut correlation = None;
        let ties = self.arrows.ties(self.ordinal);
        if !ties.is_empty()
            && let Some(thread) = self.declared.thread(number)
        {
            let start = self.declared.time(start);
            for tie in ties {
                if tie.is_wait {
                    waited.push(work::event_id(tie.work));
                    continue;
                }
                submitted.push(work::event_id(tie.work));
                self.work.called(tie.work, thread, start);
                correlation = correlation.or(tie.correlation);
            }
        }
        let inner = record.head.has(flag::INNER);
        let place = self.place(number, (start, end), (id, inner))?;
        let Some(row) = place else {
            self.lost("slice that overlaps more than 1,000 others", &record.head);
            return Ok(());
        };
        let (mut flows, mut end_flows) = (Vec::new(), Vec::new());
        self.arrows.take(self.ordinal, (&mut flows, &mut end_flows));
        let lane = &mut self.lanes[number];
        let mut texts = mem::take(&mut lane.spare);
        texts.hold(&record);
        if self.strings.text(record.head.category) == COMMUNICATION {
            let name = name_of(&self.strings, &record);
            self.details.take(name, |args| texts.add(args));
        }
        lane.held = Some(DelayedSlice {
            row,
            start,
            end,
            head: record.head,
            texts,
            flows,
            end_flows,
            submitted,
            waited,
            correlation,
        });
        Ok(())
    }

    /// The row for a slice: the first one in which it nests. Slices with an id share a row with slices of that id only.
    fn place(
        &mut self,
        number: usize,
        (start, end): (i64, i64),
        (id, inner): (u64, bool),
    ) -> io::Result<Option<usize>> {
        let rows = self.lanes[number].rows.len();
        for row in 0..rows {
            self.close(number, row, start)?;
            let row_of = &self.lanes[number].rows[row];
            let fits = match (row_of.open.first(), row_of.open.last()) {
                (Some(outer), Some(last)) => {
                    (id == 0 || (inner && outer.id == id)) && end <= last.end
                }
                _ => true,
            };
            if fits {
                return Ok(Some(row));
            }
        }
        if rows >= MAX_ROWS {
            return Ok(None);
        }
        let track = self.declared.row(&mut self.stream, number, rows)?;
        self.lanes[number].add_row(track);
        Ok(Some(rows))
    }

    /// Ends the slices of a row that end by `time`.
    fn close(&mut self, number: usize, row: usize, time: i64) -> io::Result<()> {
        loop {
            let row = &mut self.lanes[number].rows[row];
            match row.open.last() {
                Some(open) if open.end <= time && open.end != i64::MAX => {}
                _ => return Ok(()),
            }
            let track = row.track;
            let open = row.open.pop().expect("it was just looked at");
            let end = self.declared.time(open.end);
            if open.flows.is_empty() {
                self.stream.consumer.end(track, end)?
            } else {
                self.stream.consumer.end_slice(&SliceEnd {
                    track,
                    time: end,
                    arguments: &[],
                    flows: &open.flows,
                })?
            }
        }
    }

    /// Passes on the slice that a lane holds back, now that something else begins at `next`.
    fn pass_held(&mut self, number: usize, next: i64) -> io::Result<()> {
        let Some(mut held) = self.lanes[number].held.take() else {
            return Ok(());
        };
        let is_open = held.end > next || held.end == i64::MAX || !held.end_flows.is_empty();
        let record = held.texts.record(held.head);
        self.write_slice(number, &held, &record, is_open)?;
        let lane = &mut self.lanes[number];
        if is_open {
            lane.rows[held.row].open.push(BegunSlice {
                end: held.end,
                id: held.head.id,
                flows: mem::take(&mut held.end_flows),
            });
        }
        lane.spare = held.texts;
        Ok(())
    }

    fn write_slice(
        &mut self,
        number: usize,
        held: &DelayedSlice,
        record: &EventRecord<'_>,
        open: bool,
    ) -> io::Result<()> {
        let track = self.lanes[number].rows[held.row].track;
        let start = self.declared.time(held.start);
        let end = match record.head.duration {
            NONE => None,
            _ => Some(self.declared.time(held.end)),
        };
        let mut list = Vec::new();
        arguments::read(record.args, &mut list);
        let category = self.strings.text(record.head.category);
        let thread = self.declared.thread(number);
        if let Some((process, thread)) = thread
            && (is_call(category) || !held.submitted.is_empty() || !held.waited.is_empty())
        {
            let mut correlation = None;
            list.retain(|argument| match (argument.name, argument.value) {
                ("correlation", Value::Uint(id)) => {
                    correlation = Some(id);
                    false
                }
                _ => true,
            });
            let correlation = held.correlation.or(correlation);
            let function = self.function(record, &list);
            let values: Vec<Value<'_>> = list.iter().map(|argument| argument.value).collect();
            self.stream.consumer.call(&Call {
                process,
                thread,
                track,
                function: &self.function_list[function],
                start,
                end,
                open,
                nested: !self.lanes[number].rows[held.row].open.is_empty(),
                correlation: CorrelationId(correlation.unwrap_or(0)),
                external: ExternalId::NONE,
                error: None,
                submitted: &held.submitted,
                waited: &held.waited,
                arguments: &values,
                flows: &held.flows,
            })?;
            return Ok(());
        }
        let name = name_of(&self.strings, record);
        self.stream.consumer.slice(&Slice {
            track,
            name,
            category,
            start,
            end,
            open,
            correlation: CorrelationId::NONE,
            arguments: &list,
            flows: &held.flows,
        })
    }

    /// The place of a function in the list. Calls with other arguments are of another function.
    fn function(&mut self, record: &EventRecord<'_>, list: &[EventArgument<'_>]) -> usize {
        let mut hasher = self.functions.hasher().build_hasher();
        let own_name = record.own_name;
        (record.head.category, record.head.name, own_name).hash(&mut hasher);
        list.iter()
            .for_each(|argument| argument.name.hash(&mut hasher));
        let key = hasher.finish();
        if let Some(place) = self.functions.get(&key) {
            return *place;
        }
        let name = name_of(&self.strings, record);
        let category = self.strings.text(record.head.category);
        let function = Function {
            index: self.stream.new_function(),
            name: name.into(),
            domain: domain(category, name),
            category: Some(category.into()),
            group: OperationGroup::OTHER,
            parameters: list
                .iter()
                .map(|argument| Parameter {
                    name: argument.name.into(),
                    kind: ArgumentType::STRING,
                })
                .collect(),
        };
        self.function_list.push(function);
        let place = self.function_list.len() - 1;
        self.functions.insert(key, place);
        place
    }

    fn instant(&mut self, time: i64, record: EventRecord<'_>) -> io::Result<()> {
        let number = record.head.lane as usize;
        let id = record.head.id;
        let rows = &self.lanes[number].rows;
        let own = rows
            .iter()
            .position(|row| id != 0 && row.open.first().is_some_and(|open| open.id == id));
        let row = match (own, rows.is_empty()) {
            (Some(row), _) => row,
            (None, false) => 0,
            (None, true) => {
                let track = self.declared.row(&mut self.stream, number, 0)?;
                self.lanes[number].add_row(track);
                0
            }
        };
        let mut list = Vec::new();
        arguments::read(record.args, &mut list);
        let name = name_of(&self.strings, &record);
        let time = self.declared.time(time);
        self.stream.consumer.instant(&Instant {
            track: self.lanes[number].rows[row].track,
            name,
            category: self.strings.text(record.head.category),
            time,
            arguments: &list,
            flows: &[],
        })?;
        if name == "[memory]" && !self.has_derived {
            self.memory(number, time, &list)?;
        }
        Ok(())
    }

    /// The counters of a memory event of PyTorch.
    fn memory(&mut self, number: usize, time: Nanos, list: &[EventArgument<'_>]) -> io::Result<()> {
        let whole = |wanted: &str| {
            let found = list.iter().find(|argument| argument.name == wanted);
            match found?.value {
                Value::Uint(value) => i64::try_from(value).ok(),
                Value::Int(value) => Some(value),
                _ => None,
            }
        };
        let device = match (whole("Device Type"), whole("Device Id")) {
            (Some(0), _) | (None, None) => "CPU".to_owned(),
            (_, id) => format!("GPU {}", id.unwrap_or(0)),
        };
        for (argument, what) in [
            ("Total Allocated", "allocated"),
            ("Total Reserved", "reserved"),
        ] {
            if let Some(value) = whole(argument) {
                let name = format!("{device} memory {what}");
                let track = self.counter_track(number, &name, "", CounterUnit::Bytes)?;
                if let Some(track) = track {
                    let value = CounterValue::Int(value);
                    self.stream.consumer.derived_value(track, time, value)?;
                }
            }
        }
        Ok(())
    }

    fn counter_track(
        &mut self,
        number: usize,
        name: &str,
        series: &str,
        unit: CounterUnit,
    ) -> io::Result<Option<TrackIndex>> {
        let key = (number as u32, name.into(), series.into());
        if let Some(track) = self.counters.get(&key) {
            return Ok(Some(*track));
        }
        if self.counters.len() >= MAX_COUNTERS {
            return Ok(None);
        }
        let title = match (name, series) {
            (one, "") | ("", one) => one.to_owned(),
            (name, series) => format!("{name} · {series}"),
        };
        let title = self.declared.counters(number).to_owned() + &title;
        let parent = self.declared.parent(number);
        let track = self.stream.new_track(&Track {
            parent,
            name: &title,
            kind: TrackKind::Counter(unit),
            order: None,
        })?;
        self.counters.insert(key, track);
        Ok(Some(track))
    }

    fn counter(&mut self, time: i64, record: EventRecord<'_>) -> io::Result<()> {
        let number = record.head.lane as usize;
        let mut list = Vec::new();
        arguments::read(record.args, &mut list);
        let name = name_of(&self.strings, &record).to_owned();
        let is_derived = record.head.has(flag::DERIVED);
        if is_derived && self.has_derived && name.is_empty() {
            // Values of a range, which the file has as counters, too.
            return Ok(());
        }
        let single = list.len() == 1;
        let time = self.declared.time(time);
        for EventArgument {
            name: series,
            value,
        } in list
        {
            let known = match value {
                Value::Uint(value) => Some(match i64::try_from(value) {
                    Ok(value) => CounterValue::Int(value),
                    Err(_) => CounterValue::Double(value as f64),
                }),
                Value::Int(value) => Some(CounterValue::Int(value)),
                Value::Double(value) => Some(CounterValue::Double(value)),
                Value::Text(text) => {
                    let number = text.trim().parse::<f64>().ok();
                    let finite = number.filter(|number| number.is_finite());
                    finite.map(CounterValue::Double)
                }
                _ => None,
            };
            let Some(value) = known else {
                self.lost("value of a counter that is no number", &record.head);
                continue;
            };
            let series = if single && !name.is_empty() {
                ""
            } else {
                series
            };
            match self.counter_track(number, &name, series, CounterUnit::Unspecified)? {
                Some(track) if is_derived => {
                    self.stream.consumer.derived_value(track, time, value)?;
                }
                Some(track) => self.stream.consumer.value(track, time, value)?,
                None => self.lost("value of a counter beyond the first 65,536", &record.head),
            }
        }
        Ok(())
    }

    /// Counts a point of an arrow between a call and its work. Other arrows have been given their slices.
    fn flow(&mut self, head: RecordHead) {
        if !head.has(flag::BY_CORRELATION) {
            return;
        }
        if self.correlations.has_work(head.id) {
            // The work names its call.
            self.report.arrows += 1;
        } else if !self.begun_flows.contains(&head.id) {
            // Kineto writes them for calls that enqueue nothing, too.
            self.report.loose_arrows += 1;
        }
    }

    fn finish(mut self) -> io::Result<()> {
        for number in 0..self.lanes.len() {
            self.pass_held(number, i64::MAX)?;
            for row in 0..self.lanes[number].rows.len() {
                self.close(number, row, i64::MAX)?;
            }
        }
        self.details.go_to(i64::MAX, self.report);
        self.stream.consumer.finish()
    }
}

/// The name of a record.
fn name_of<'r>(strings: &'r Strings, record: &EventRecord<'r>) -> &'r str {
    if record.head.has(flag::OWN_NAME) {
        record.own_name
    } else {
        strings.text(record.head.name)
    }
}

/// The API of a call.
fn domain(category: &str, name: &str) -> Domain {
    match category {
        _ if name.starts_with("hip") => Domain::HIP,
        _ if name.starts_with("hsa_") => Domain::HSA,
        "opencl" => Domain::OPENCL,
        "sim" => Domain::SIM,
        "cuda_driver" => Domain::CUDA_DRIVER,
        "cuda_runtime" | "Runtime" => Domain::CUDA_RUNTIME,
        _ => Domain(0),
    }
}
