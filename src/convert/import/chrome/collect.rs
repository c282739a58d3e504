//! First pass: events as sorted records, and what the file says about processes, threads and devices.

mod flows;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::Path;

use super::arguments::{StoredArguments, number_of_value};
use super::categories::{GRAPH, is_beside_work, is_call, is_operator, is_work};
use super::correlations::Correlations;
use super::decimal::{self, Decimal};
use super::devices::NamedDevices;
use super::event::{ChromeEvent, text};
use super::ids::Id;
use super::intercept;
use super::record::{NONE, RecordHead, StoredKind, flag, name_length};
use super::reworded::{self, Rewording, WriterState};
use super::scan::ScanVisitor;
use super::strings::Strings;
use crate::export::chrome::DERIVED;
use crate::import::shared::Operations;
use crate::import::{Allowance, Report};
use gputrail_trace::model::{LATEST, Value};
use gputrail_trace::sorter::{SortKey, Sorter};

/// Most lanes; further ones are put together.
const MAX_LANES: usize = 1 << 16;
/// Most processes, and most names of processes and of threads.
const MAX_PROCESSES: usize = 1 << 16;
/// Most devices.
pub(super) const MAX_DEVICES: u64 = 1 << 10;
/// Longest duration, ns: 30 days. Longer ones are known errors of clocks.
const MAX_DURATION: i128 = 30 * 24 * 3600 * 1_000_000_000;

/// Second part of the keys of counters.
const COUNTER: u64 = 2 << 62;

/// The purpose of a lane.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum LaneKey {
    /// Slices and instants of a thread. Those of a device have a lane for each category.
    Thread { pid: Id, tid: Id, category: u32 },
    /// Slices that belong to no thread, by their name.
    Async { pid: Id, name: u32 },
    /// All events for which there were too many lanes.
    Rest,
}

/// Names and order of a process or thread, from the file's metadata.
#[derive(Debug, Default)]
pub(super) struct MetadataNames {
    pub name: Option<String>,
    pub labels: Option<String>,
    pub order: Option<i32>,
}

/// The subject of the events of a process.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct ProcessActivity {
    /// Calls of device APIs, and operators.
    pub host: u64,
    /// Work of devices.
    pub device: u64,
    /// Other events.
    pub other: u64,
}

/// Everything that the first pass finds.
pub(super) struct Collected<'a> {
    pub file: &'a Path,
    pub report: &'a mut Report,
    pub strings: Strings,
    pub events: Sorter,
    pub pairs: Sorter,
    lane_numbers: HashMap<LaneKey, u32, foldhash::fast::RandomState>,
    pub lanes: Vec<LaneKey>,
    pub processes: BTreeMap<Id, MetadataNames>,
    pub threads: BTreeMap<(Id, Id), MetadataNames>,
    pub activity: BTreeMap<Id, ProcessActivity>,
    /// Of processes that have no entry in `activity`.
    rest: ProcessActivity,
    pub correlations: Correlations,
    /// Whether the file was read to the end of its content.
    pub is_whole: bool,
    /// Collective operations.
    pub operations: Operations,
    /// Fields beside the events.
    pub fields: Vec<(String, String)>,
    /// Correlation ids at which arrows begin.
    pub begun_flows: NumberSet,
    /// Whether there are arrows that correlation ids do not give, and such that events name.
    pub has_arrows: bool,
    pub has_bound_arrows: bool,
    /// Whether there are launches of graphs.
    pub has_graphs: bool,
    /// The last of the devices that work names.
    pub last_device: Option<u64>,
    /// JSON objects or arrays behind the first, and whether they name other ranks.
    documents: u32,
    pub has_other_ranks: bool,
    /// Earliest time, ns.
    pub first: Option<i64>,
    /// Latest time, ns.
    pub last: Option<i64>,
    /// Devices that metadata names, once the file has been read.
    pub devices: NamedDevices,
    /// Writers whose words are others.
    pub writers: WriterState,
    /// Whether a call of HIP is among the events.
    pub has_hip: bool,
    /// Whether the file has the counters that are made of other events.
    pub has_derived: bool,
    /// Buffer for arguments that are made of fields.
    extra: String,
    /// Buffer for the arguments of an event.
    arguments: StoredArguments,
}

/// A set of numbers that a file chooses.
pub(super) type NumberSet = HashSet<u64, foldhash::fast::RandomState>;

/// Arguments of device work that decide where it belongs.
#[derive(Debug, Default)]
struct WorkPlace {
    correlation: Option<u64>,
    device: Option<u64>,
    has_stream: bool,
}

/// The value of a time or duration.
fn microseconds(raw: &str) -> Option<Decimal> {
    // Without a look for escapes first.
    decimal::microseconds(raw).or_else(|| decimal::microseconds(text(raw).trim()))
}

impl WorkPlace {
    /// Looks at an argument.
    fn look(&mut self, name: &str, value: Value<'_>) {
        match name {
            "correlation" => self.correlation = number_of_value(value),
            "stream" => self.has_stream = true,
            "device" => {
                self.has_stream = true;
                self.device = number_of_value(value);
            }
            _ => {}
        }
    }
}

impl<'a> Collected<'a> {
    pub fn new(file: &'a Path, allowance: Allowance, report: &'a mut Report) -> Collected<'a> {
        let mut strings = Strings::default();
        // No name, and no category.
        strings.number("");
        Collected {
            file,
            report,
            strings,
            events: allowance.sorter(3, 4),
            pairs: allowance.sorter(1, 4),
            lane_numbers: HashMap::from_iter([(LaneKey::Rest, 0)]),
            lanes: vec![LaneKey::Rest],
            processes: BTreeMap::new(),
            threads: BTreeMap::new(),
            activity: BTreeMap::new(),
            rest: ProcessActivity::default(),
            correlations: Correlations::default(),
            is_whole: true,
            operations: Operations::default(),
            fields: Vec::new(),
            begun_flows: NumberSet::default(),
            has_arrows: false,
            has_bound_arrows: false,
            has_graphs: false,
            last_device: None,
            documents: 0,
            has_other_ranks: false,
            first: None,
            last: None,
            devices: NamedDevices::default(),
            writers: WriterState::default(),
            has_hip: false,
            has_derived: false,
            extra: String::new(),
            arguments: StoredArguments::default(),
        }
    }

    pub fn lost(&mut self, reason: impl Into<Cow<'static, str>>, offset: u64) {
        self.report.unrepresented(self.file, reason, Some(offset));
    }

    fn lane(&mut self, key: LaneKey, offset: u64) -> u32 {
        if let Some(lane) = self.lane_numbers.get(&key) {
            return *lane;
        }
        if self.lanes.len() >= MAX_LANES {
            let reason = "event of a thread beyond the first 65,536, put on one row";
            self.report.remark(self.file, reason, Some(offset));
            return 0;
        }
        self.lanes.push(key);
        let lane = self.lanes.len() as u32 - 1;
        self.lane_numbers.insert(key, lane);
        lane
    }

    /// The activity of a process; for those beyond the limit, whose events stand on one row, that of all of them.
    fn activity(&mut self, pid: Id, offset: u64) -> &mut ProcessActivity {
        match entry(&mut self.activity, pid) {
            Some(activity) => activity,
            None => {
                let reason = "event of a process beyond the first 65,536, which is not shown";
                self.report.remark(self.file, reason, Some(offset));
                &mut self.rest
            }
        }
    }

    pub fn id(&mut self, raw: Option<&str>) -> Id {
        let text = raw.map_or(Cow::Borrowed(""), text);
        match text.parse().or_else(|_| text.trim().parse()) {
            Ok(number) => Id::Number(number),
            Err(_) => Id::Text(self.strings.number(&text).unwrap_or(0)),
        }
    }

    /// The number of a category or name of a lane; that of the empty text if there are too many.
    fn number(&mut self, text: &str) -> u32 {
        self.strings.number(text).unwrap_or(0)
    }

    /// The time of an event, ns.
    fn time(&mut self, raw: Option<&str>, offset: u64) -> Option<i64> {
        let Some(raw) = raw else {
            self.lost("event without a time (ts)", offset);
            return None;
        };
        let Some(Decimal { nanos, exact }) = microseconds(raw) else {
            self.lost("event whose time (ts) is no number", offset);
            return None;
        };
        let time = i64::try_from(nanos).ok();
        let Some(time) = time.filter(|time| time.unsigned_abs() <= LATEST) else {
            self.lost("event whose time (ts) is beyond 146 years", offset);
            return None;
        };
        if !exact {
            self.report
                .remark(self.file, "time finer than 1 ns, rounded", Some(offset));
        }
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        self.last = self.last.max(Some(time));
        Some(time)
    }

    /// Adds a record with its name and arguments.
    pub fn add(
        &mut self,
        to_pairs: bool,
        key: SortKey,
        head: RecordHead,
        name: &str,
        args: &[&str],
    ) -> io::Result<()> {
        self.arguments.clear();
        args.iter()
            .for_each(|args| self.arguments.add(args, |_, _| {}));
        self.add_stored(to_pairs, key, head, name)
    }

    /// As [`Collected::add`], with the arguments that are stored.
    fn add_stored(
        &mut self,
        to_pairs: bool,
        key: SortKey,
        mut head: RecordHead,
        name: &str,
    ) -> io::Result<()> {
        let length = name_length(name);
        let mut own: [&[u8]; 2] = [&[], &[]];
        match self.strings.number(name) {
            Some(number) => head.name = number,
            None => {
                head.flags |= flag::OWN_NAME;
                own = [&length, name.as_bytes()];
            }
        }
        let [counts, values, texts] = self.arguments.parts();
        let parts = [
            bytemuck::bytes_of(&head),
            own[0],
            own[1],
            counts,
            values,
            texts,
        ];
        if to_pairs {
            self.pairs.add(key, &parts)
        } else {
            self.events.add(key, &parts)
        }
    }

    /// Fields that only some events have, as an object of arguments.
    fn extra(&mut self, event: &ChromeEvent<'_>, fields: &[(&str, Option<&str>)]) -> String {
        let mut extra = std::mem::take(&mut self.extra);
        extra.clear();
        let own = fields
            .iter()
            .filter_map(|(name, value)| Some((*name, (*value)?)));
        let further = event.further.iter().map(|(name, value)| (&**name, *value));
        let of_flow = [
            ("bind_id", event.bind_id),
            ("flow_in", event.flow_in),
            ("flow_out", event.flow_out),
        ];
        let of_flow = of_flow.into_iter();
        let of_flow = of_flow.filter_map(|(name, value)| Some((name, value?)));
        let of_flow = of_flow.filter(|_| flows::bound(event).is_none());
        for (name, value) in own.chain(further).chain(of_flow) {
            extra.push(if extra.is_empty() { '{' } else { ',' });
            extra += &serde_json::to_string(name).expect("a text becomes JSON");
            extra.push(':');
            extra += value;
        }
        if !extra.is_empty() {
            extra.push('}');
        }
        extra
    }

    /// A slice with its begin and duration.
    pub fn complete(&mut self, offset: u64, event: &ChromeEvent<'_>) -> io::Result<()> {
        let Some(start) = self.time(event.ts, offset) else {
            return Ok(());
        };
        let category = event.cat.map_or(Cow::Borrowed(""), text);
        let name = event.name.map_or(Cow::Borrowed(""), text);
        let args = event.args.unwrap_or("");
        let duration = event.dur.map(microseconds);
        let mut flags = 0;
        let duration = match duration {
            None => NONE,
            Some(Some(Decimal { nanos, exact })) if (0..=MAX_DURATION).contains(&nanos) => {
                if !exact {
                    let reason = "duration finer than 1 ns, rounded";
                    self.report.remark(self.file, reason, Some(offset));
                }
                nanos as u64
            }
            Some(_) => {
                let reason = "impossible duration: shown without an end, and not part of sums";
                self.report.remark(self.file, reason, Some(offset));
                flags |= flag::IMPOSSIBLE;
                NONE
            }
        };
        let (pid, tid) = (self.id(event.pid), self.id(event.tid));
        let mut known = WorkPlace::default();
        self.arguments.clear();
        self.arguments
            .add(args, |name, value| known.look(name, value));
        // Proton writes neither processes nor arguments of devices.
        let is_of_device = known.has_stream || known.correlation.is_some() || event.pid.is_none();
        let is_work = is_of_device && is_work(&category);
        let activity = self.activity(pid, offset);
        match &*category {
            _ if is_work => activity.device += 1,
            category if is_operator(category) || is_call(category) => {
                activity.host += 1;
                self.correlations.host(pid);
            }
            category if is_beside_work(category) => {}
            _ => activity.other += 1,
        }
        if is_work && start == 0 && matches!(duration, 0 | NONE) {
            self.lost(
                "device work without times (its start and end are 0)",
                offset,
            );
            return Ok(());
        }
        let number = self.number(&category);
        let own_lane = is_work || is_beside_work(&category);
        let key = LaneKey::Thread {
            pid,
            tid,
            category: if own_lane { number } else { 0 },
        };
        let mut head = RecordHead::new(StoredKind::Slice, self.lane(key, offset), offset);
        if is_work {
            if name.starts_with("nccl") && duration != NONE {
                self.operation(args, (start, start.saturating_add_unsigned(duration)));
            }
            head = head.with_kind(StoredKind::Work);
            self.has_graphs |= category == GRAPH;
            let device = known.device.filter(|device| *device < MAX_DEVICES);
            self.last_device = self.last_device.max(device);
            let correlation = known.correlation.filter(|_| category != GRAPH);
            head.id = self.correlations.work(pid, correlation).into();
        } else if is_call(&category) {
            self.has_hip |= name.starts_with("hip");
            flags |= flag::CALL;
            self.correlations.call(pid, known.correlation);
            head.id = known.correlation.unwrap_or(NONE);
        }
        head.category = number;
        head.duration = duration;
        head.flags = flags;
        let impossible = event.dur.filter(|_| flags & flag::IMPOSSIBLE != 0);
        let fields = [("id", event.id), ("impossible duration (us)", impossible)];
        let extra = self.extra(event, &fields);
        // Longer slices first, so that an outer one comes before those in it.
        let key = super::pairs::key(start, duration, 0);
        self.arguments.add(&extra, |_, _| {});
        self.add_stored(false, key, head, &name)?;
        self.extra = extra;
        self.bound_flow(start, head, event)?;
        if category == "cuda_profiler_range" {
            self.range_values(head, (start, duration), args)?;
        }
        Ok(())
    }

    /// A kernel of a collective operation, which other ranks have, too.
    fn operation(&mut self, args: &str, times: (i64, i64)) {
        let (mut sequence, mut texts) = (None, [const { String::new() }; 3]);
        super::arguments::each(args, |name, value| {
            let place = match name {
                "Collective name" => 0,
                "Process Group Name" => 1,
                "Process Group Ranks" => 2,
                "Seq" => {
                    sequence = super::arguments::number(value);
                    return;
                }
                _ => return,
            };
            texts[place] = text(value.get()).into_owned();
        });
        let [name, group, ranks] = &texts;
        self.operations.add(name, (group, ranks), sequence, times);
    }

    /// The numbers among the arguments of a profiler range, as counters that hold until the end of the range.
    fn range_values(
        &mut self,
        slice: RecordHead,
        (start, duration): (i64, u64),
        args: &str,
    ) -> io::Result<()> {
        let (mut values, mut zeros) = (String::new(), String::new());
        super::arguments::each(args, |name, value| {
            if value
                .get()
                .starts_with(|c: char| c == '-' || c.is_ascii_digit())
            {
                let name = serde_json::to_string(name).expect("a text becomes JSON");
                for (object, value) in [(&mut values, value.get()), (&mut zeros, "0")] {
                    object.push(if object.is_empty() { '{' } else { ',' });
                    object.extend([&*name, ":", value]);
                }
            }
        });
        if values.is_empty() || duration == NONE {
            return Ok(());
        }
        values.push('}');
        zeros.push('}');
        let mut head = RecordHead::new(StoredKind::Counter, slice.lane, slice.offset);
        head.flags = flag::DERIVED;
        let end = start.saturating_add_unsigned(duration);
        // Values of a range that begins where this one ends come behind its zeros.
        self.add(false, (start, COUNTER + 1), head, "", &[&values])?;
        self.add(false, (end, COUNTER), head, "", &[&zeros])
    }

    /// The begin or the end of a slice, or an instant of a slice that has an id.
    fn part(
        &mut self,
        offset: u64,
        event: &ChromeEvent<'_>,
        kind: StoredKind,
        has_id: bool,
    ) -> io::Result<()> {
        let Some(time) = self.time(event.ts, offset) else {
            return Ok(());
        };
        let category = event.cat.map_or(Cow::Borrowed(""), text);
        let name = event.name.map_or(Cow::Borrowed(""), text);
        let (pid, tid) = (self.id(event.pid), self.id(event.tid));
        self.activity(pid, offset).other += 1;
        let key = if has_id {
            LaneKey::Async {
                pid,
                name: self.number(&name),
            }
        } else {
            LaneKey::Thread {
                pid,
                tid,
                category: 0,
            }
        };
        let mut head = RecordHead::new(kind, self.lane(key, offset), offset);
        head.category = self.number(&category);
        let fields: &[(&str, Option<&str>)] = if has_id {
            head.id = self.async_id(pid, &category, &name, event);
            &[("id", event.id), ("id2", event.id2), ("tid", event.tid)]
        } else {
            &[("id", event.id)]
        };
        let extra = match kind {
            StoredKind::End => String::new(),
            _ => self.extra(event, fields),
        };
        let args = [event.args.unwrap_or(""), &extra];
        self.add(true, (time, 0), head, &name, &args)?;
        self.bound_flow(time, head, event)
    }

    fn instant(&mut self, offset: u64, event: &ChromeEvent<'_>) -> io::Result<()> {
        let Some(time) = self.time(event.ts, offset) else {
            return Ok(());
        };
        let category = event.cat.map_or(Cow::Borrowed(""), text);
        let name = event.name.map_or(Cow::Borrowed(""), text);
        let (pid, tid) = (self.id(event.pid), self.id(event.tid));
        self.activity(pid, offset).other += 1;
        let lane = LaneKey::Thread {
            pid,
            tid,
            category: 0,
        };
        let mut head = RecordHead::new(StoredKind::Instant, self.lane(lane, offset), offset);
        head.category = self.number(&category);
        let extra = self.extra(event, &[("id", event.id), ("scope", event.s)]);
        let args = [event.args.unwrap_or(""), &extra];
        self.add(false, (time, 1 << 62), head, &name, &args)?;
        self.bound_flow(time, head, event)
    }

    fn counter(&mut self, offset: u64, event: &ChromeEvent<'_>) -> io::Result<()> {
        let Some(time) = self.time(event.ts, offset) else {
            return Ok(());
        };
        let name = event.name.map_or(Cow::Borrowed(""), text);
        let name = match event.id.map(text) {
            Some(id) => Cow::Owned(format!("{name} [{id}]")),
            None => name,
        };
        let pid = self.id(event.pid);
        self.activity(pid, offset).other += 1;
        let tid = Id::Number(0);
        let lane = LaneKey::Thread {
            pid,
            tid,
            category: 0,
        };
        let mut head = RecordHead::new(StoredKind::Counter, self.lane(lane, offset), offset);
        if event.cat.is_some_and(|category| text(category) == DERIVED) {
            self.has_derived = true;
            head.flags = flag::DERIVED;
        }
        self.add(
            false,
            (time, COUNTER),
            head,
            &name,
            &[event.args.unwrap_or("")],
        )
    }

    fn metadata(&mut self, offset: u64, event: &ChromeEvent<'_>) {
        let (pid, tid) = (self.id(event.pid), self.id(event.tid));
        let name = event.name.map_or(Cow::Borrowed(""), text);
        let args = event.args.unwrap_or("");
        let argument = |wanted: &str| {
            let mut found = None;
            super::arguments::each(args, |name, value| {
                if name == wanted {
                    found = Some(text(value.get()).into_owned());
                }
            });
            found
        };
        let order = |value: Option<String>| value?.parse::<i64>().ok().map(saturate);
        let described = match &*name {
            "process_name" | "process_labels" | "process_sort_index" => {
                entry(&mut self.processes, pid)
            }
            "thread_name" | "thread_sort_index" => entry(&mut self.threads, (pid, tid)),
            intercept::START | intercept::END => {
                return self.of_intercept(pid, &name, argument("start_time"));
            }
            other => {
                let reason = format!("metadata event {other:?}");
                return self.lost(reason, offset);
            }
        };
        let Some(described) = described else {
            let reason = "name of a process or thread beyond the first 65,536";
            return self.lost(reason, offset);
        };
        match &*name {
            "process_name" | "thread_name" => {
                described.name = argument("name");
                let name = described.name.as_deref().unwrap_or_default();
                self.writers.unitrace.named(name);
            }
            "process_labels" => described.labels = argument("labels"),
            _ => described.order = order(argument("sort_index")),
        }
    }
}

/// The entry of `key`, unless it would be one more than [`MAX_PROCESSES`].
fn entry<K: Ord, V: Default>(map: &mut BTreeMap<K, V>, key: K) -> Option<&mut V> {
    let is_full = map.len() >= MAX_PROCESSES && !map.contains_key(&key);
    (!is_full).then(|| map.entry(key).or_default())
}

fn saturate(number: i64) -> i32 {
    number.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

impl ScanVisitor for Collected<'_> {
    fn event(&mut self, offset: u64, event: &ChromeEvent<'_>) -> io::Result<()> {
        let Some(ph) = event.ph.map(text) else {
            self.lost("object that is no event: it has no phase (ph)", offset);
            return Ok(());
        };
        match &*ph {
            "X" => match reworded::reword(self, event, offset) {
                Some(Rewording::Own(own)) => self.complete(offset, &own.of(event)),
                Some(Rewording::Part) => Ok(()),
                None => self.complete(offset, event),
            },
            "B" => self.part(offset, event, StoredKind::Begin, false),
            "E" => self.part(offset, event, StoredKind::End, false),
            "b" | "S" => self.part(offset, event, StoredKind::Begin, true),
            "e" | "F" => self.part(offset, event, StoredKind::End, true),
            "n" | "T" | "p" => self.part(offset, event, StoredKind::Instant, true),
            "i" | "I" | "R" | "c" | "N" | "O" | "D" | "P" | "v" | "V" => {
                self.instant(offset, event)
            }
            "C" => self.counter(offset, event),
            "s" => self.flow(offset, event, flag::FIRST),
            "t" => self.flow(offset, event, 0),
            "f" => self.flow(offset, event, flag::LAST),
            "M" => {
                self.metadata(offset, event);
                Ok(())
            }
            other => {
                let reason = format!("event of phase {other:?}");
                self.lost(reason, offset);
                Ok(())
            }
        }
    }

    fn field(&mut self, name: &str, value: &str) {
        const BASE: &str = "baseTimeNanoseconds";
        let known = self.fields.iter().find(|(known, _)| known == name);
        let is_other = match known {
            Some((_, known)) => known != value,
            None => name == BASE,
        };
        if self.documents > 0 && is_other {
            let of = self.documents + 1;
            if name == BASE {
                let found = format!("{BASE} {value} in object {of}, whose times count from there");
                let expected = "that of the first object: convert them one by one";
                self.report.finding(self.file, None, found, expected);
                return;
            }
            self.has_other_ranks |= name == "distributedInfo";
            let reason = format!("field {name:?} of a further object, other than in the first");
            return self.report.unrepresented(self.file, reason, None);
        }
        if self.documents == 0 || known.is_none() {
            self.fields.push((name.to_owned(), value.to_owned()));
        }
    }

    fn document(&mut self) {
        self.documents += 1;
    }

    fn long_field(&mut self, name: &str, offset: u64) {
        self.lost(
            format!("field {name:?} beside the events, longer than 1 MiB"),
            offset,
        );
    }

    fn damage(&mut self, offset: u64, found: String, expected: &'static str) {
        self.report
            .finding(self.file, Some(offset), found, expected);
    }
}
