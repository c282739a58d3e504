//! Declarations ahead of all events: the trace, processes, devices; and the tracks of lanes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;

use serde_json::Value as Json;

use crate::import::chrome::collect::{Collected, LaneKey, MAX_DEVICES, MetadataNames};
use crate::import::chrome::devices::NamedDevices;
use crate::import::chrome::ids::{Id, ProcessText};
use crate::import::chrome::strings::Strings;
use crate::import::{InputFile, InputFormat};
use gputrail_record::{Domain, Nanos, ProcessId, ThreadId};
use gputrail_trace::model::{
    Agent, AgentIndex, LATEST, Machine, Parent, Process, ProcessIndex, Stream, SystemClocks,
    TraceHeader, Track, TrackIndex, TrackKind, UNKNOWN_DEVICE,
};

/// Ids of processes and threads that the file gives none the system could have.
const INVENTED: u32 = 0x6000_0000;
/// Times after this are those of day, ns: 2001-09-09.
const TIME_OF_DAY: i128 = 1_000_000_000_000_000_000;
/// The name of a row of events that name no thread.
const NO_THREAD: &str = "events of no thread";
/// Longest value of a field that becomes an attribute of the trace.
const MAX_ATTRIBUTE: usize = 4096;

/// The threads and rows that lanes stand for, and the tracks that have been declared.
#[derive(Debug)]
pub(super) struct Declared {
    /// Offset that is added to the times of the file.
    shift: i128,
    lanes: Vec<Declaration>,
    processes: BTreeMap<Id, ProcessIndex>,
    /// The first process of each rank that is named in the text of an id.
    ranks: HashMap<String, ProcessIndex>,
    /// Tracks of processes that have a text for their id.
    groups: HashMap<Id, TrackIndex>,
    /// The process of device work whose call is not in the file.
    pub main: Option<ProcessIndex>,
    /// The API of queues.
    pub api: Domain,
    /// Number of agents.
    pub agents: u32,
}

/// A lane.
#[derive(Debug)]
struct Declaration {
    parent: Parent,
    /// The thread, of lanes of threads.
    thread: Option<(ProcessIndex, ThreadId)>,
    name: String,
    order: Option<i32>,
    /// The device and stream, of lanes of devices.
    device: Option<(i64, i64)>,
    /// The words in front of the names of its counters.
    counters: String,
    /// The first row.
    track: Option<TrackIndex>,
}

/// A time of the file, in the clock of the trace.
fn nanos(time: i64, shift: i128) -> Nanos {
    Nanos((i128::from(time) + shift).clamp(0, LATEST.into()) as u64)
}

impl Declared {
    /// A time of the file, in the clock of the trace.
    pub fn time(&self, time: i64) -> Nanos {
        nanos(time, self.shift)
    }

    /// The process and thread of a lane, if it is one of a thread.
    pub fn thread(&self, lane: usize) -> Option<(ProcessIndex, ThreadId)> {
        self.lanes[lane].thread
    }

    /// The process of a lane, if it has one.
    pub fn process(&self, lane: usize) -> Option<ProcessIndex> {
        match (self.lanes[lane].thread, self.lanes[lane].parent) {
            (Some((process, _)), _) | (None, Parent::Process(process)) => Some(process),
            _ => None,
        }
    }

    /// The process with an id of the file.
    pub fn process_of(&self, pid: Id) -> Option<ProcessIndex> {
        self.processes.get(&pid).copied()
    }

    /// The device and stream of a lane.
    pub fn device(&self, lane: usize) -> Option<(i64, i64)> {
        self.lanes[lane].device
    }

    /// The words in front of the names of counters of the lane.
    pub fn counters(&self, lane: usize) -> &str {
        &self.lanes[lane].counters
    }

    /// The parent of the tracks beside the lane.
    pub fn parent(&self, lane: usize) -> Parent {
        self.lanes[lane].parent
    }

    /// Declares the track of row `row` of a lane.
    pub fn row(
        &mut self,
        stream: &mut Stream<'_>,
        lane: usize,
        row: usize,
    ) -> io::Result<TrackIndex> {
        let lane = &mut self.lanes[lane];
        let track = match (lane.thread, lane.track) {
            (Some((process, thread)), None) => Track {
                parent: Parent::Process(process),
                name: &lane.name,
                kind: TrackKind::Thread(process, thread),
                order: lane.order,
            },
            (Some(_), Some(first)) => Track {
                parent: Parent::Track(first),
                name: "overlapping",
                kind: TrackKind::Slices,
                order: None,
            },
            (None, _) => Track {
                parent: lane.parent,
                name: &lane.name,
                kind: TrackKind::Slices,
                order: lane.order,
            },
        };
        let track = stream.new_track(&track)?;
        if row == 0 {
            lane.track = Some(track);
        }
        Ok(track)
    }
}

/// Declares the trace, its processes and its devices.
pub(super) fn declare<'s>(
    source: &InputFile,
    collected: &mut Collected<'_>,
    mut stream: Stream<'s>,
) -> io::Result<(Stream<'s>, Declared)> {
    collected.devices = NamedDevices::find(collected);
    let fields = parsed(&collected.fields);
    let field = |name: &str| fields.iter().find(|(known, _)| *known == name);
    let field = |name: &str| field(name).map(|(_, value)| value);
    let latest = i128::from(LATEST);
    let last = i128::from(collected.last.unwrap_or(0));
    let told = field("baseTimeNanoseconds").and_then(whole);
    let fits = |base: &i128| base.unsigned_abs() <= latest.unsigned_abs() && last + base <= latest;
    let base = told.filter(fits);
    if base != told {
        let reason =
            "baseTimeNanoseconds, which puts events beyond 146 years: not added to their times";
        collected.report.remark(collected.file, reason, None);
    }
    let first = i128::from(collected.first.unwrap_or(0)) + base.unwrap_or(0);
    let is_object = source.head().trim_ascii_start().starts_with(b"{");
    if !collected.is_whole && is_object && base.is_none() && first <= TIME_OF_DAY {
        let reason = "file that is cut or damaged: its end, where PyTorch writes the base of all times (baseTimeNanoseconds), could not be read; times count from an unknown begin, and are not placed beside other files";
        collected.report.remark(collected.file, reason, None);
    }
    let base = base.unwrap_or(0);
    let shift = match first {
        0.. => base,
        // The clock of a trace has no negative times.
        _ => {
            let reason = format!("file with negative times: all are moved by {} ns", -first);
            collected.report.remark(collected.file, reason, None);
            base - first
        }
    };
    let start = Nanos(u64::try_from(first.max(0)).unwrap_or(u64::MAX));
    let mut hasher = DefaultHasher::new();
    (source.head(), source.length()).hash(&mut hasher);
    let host = ["host_name", "hostname"].into_iter().find_map(field);
    stream.consumer.begin(&TraceHeader {
        identity: hasher.finish(),
        clocks: SystemClocks {
            boottime: start,
            realtime: if first > TIME_OF_DAY {
                start
            } else {
                Nanos::NONE
            },
            ..SystemClocks::default()
        },
        machine: Machine {
            host: host.and_then(Json::as_str).unwrap_or("").to_owned(),
            ..Machine::default()
        },
        shared: std::mem::take(&mut collected.operations).shared(|time| nanos(time, shift)),
    })?;
    let short = collected.fields.iter();
    let short = short.filter(|(_, value)| value.len() <= MAX_ATTRIBUTE);
    let mut attributes: Vec<_> = short.cloned().collect();
    for (name, _) in collected
        .fields
        .iter()
        .filter(|(_, value)| value.len() > MAX_ATTRIBUTE)
    {
        if name != "deviceProperties" {
            let reason = format!("field {name:?} beside the events, longer than 4 KiB");
            collected.report.unrepresented(collected.file, reason, None);
        }
    }
    attributes.extend([
        (
            "format".to_owned(),
            InputFormat::ChromeTrace.name().to_owned(),
        ),
        ("source".to_owned(), source.name().display().to_string()),
    ]);
    stream.consumer.attributes(&attributes)?;

    let agents = agents(collected, field("deviceProperties"));
    stream.consumer.agents(AgentIndex(0), &agents)?;
    let rank = field("distributedInfo")
        .and_then(|info| info.get("rank"))
        .and_then(whole);
    let rank = rank.filter(|_| !collected.has_other_ranks);
    let rank = rank.map_or(String::new(), |rank| format!("rank {rank}"));

    let mut declared = Declared {
        shift,
        lanes: Vec::new(),
        processes: BTreeMap::new(),
        ranks: HashMap::new(),
        groups: HashMap::new(),
        main: None,
        api: match () {
            () if collected.has_hip => Domain::HIP,
            () if !collected.writers.intercept.devices.is_empty() => Domain::OPENCL,
            () if collected.writers.has_own_api() => Domain(0),
            () => Domain::CUDA_RUNTIME,
        },
        agents: agents.len() as u32,
    };
    declare_processes(collected, &mut declared, &mut stream, &rank)?;
    for number in 0..collected.lanes.len() {
        let declaration = declaration(number, collected, &mut declared, &mut stream)?;
        declared.lanes.push(declaration);
    }
    Ok((stream, declared))
}

/// The fields beside the events that are JSON.
fn parsed(fields: &[(String, String)]) -> Vec<(&str, Json)> {
    fields
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), serde_json::from_str(value).ok()?)))
        .collect()
}

fn whole(value: &Json) -> Option<i128> {
    match value {
        Json::String(text) => text.trim().parse().ok(),
        value => value.as_i64().map(i128::from),
    }
}

/// The rank and the name in the id of a process.
fn text_of<'c>(collected: &'c Collected<'_>, pid: Id) -> ProcessText<'c> {
    if let Some(device) = collected.devices.of_process(pid) {
        return ProcessText {
            rank: "",
            number: Some(device),
        };
    }
    match pid {
        Id::Number(number) => ProcessText {
            rank: "",
            number: u32::try_from(number).ok(),
        },
        Id::Text(text) => ProcessText::of(collected.strings.text(text)),
    }
}

/// Whether a process of the file is a device: it has work, and no calls.
fn is_device(collected: &Collected<'_>, pid: Id) -> bool {
    let activity = collected.activity.get(&pid).copied().unwrap_or_default();
    let labels = collected
        .processes
        .get(&pid)
        .and_then(|one| one.labels.as_deref());
    let labelled = labels.is_some_and(|labels| labels.starts_with("GPU"));
    let labelled = labelled && text_of(collected, pid).number.is_some();
    let labelled = labelled || collected.devices.is_npu(pid);
    activity.host == 0 && (activity.device > 0 || labelled) && !collected.writers.has_host(pid)
}

/// The devices: those that the file describes, and all that have work.
fn agents(collected: &Collected<'_>, properties: Option<&Json>) -> Vec<Agent> {
    let described = properties.and_then(Json::as_array);
    let described: BTreeMap<i64, &Json> = described
        .into_iter()
        .flatten()
        .filter_map(|device| Some((device.get("id")?.as_i64()?, device)))
        .collect();
    let devices = collected.activity.keys();
    let devices = devices.filter(|pid| is_device(collected, **pid));
    let working = devices.filter_map(|pid| text_of(collected, *pid).number.map(i64::from));
    let named = collected
        .last_device
        .and_then(|last| i64::try_from(last).ok());
    let ids = described.keys().copied().chain(working).chain(named);
    let count = ids.filter(|id| (0..MAX_DEVICES as i64).contains(id)).max();
    let count = count.map_or(0, |last| last + 1);
    let agent = |id: i64| {
        let properties = described.get(&id).and_then(|device| device.as_object());
        let text = |value: &Json| match value {
            Json::String(text) => text.clone(),
            value => value.to_string(),
        };
        let name = properties.and_then(|all| all.get("name")).map(text);
        let model = collected.devices.model(id).map(str::to_owned);
        let name = name.or(model).unwrap_or_default();
        let attributes = properties.into_iter().flatten();
        let attributes = attributes.filter(|(key, _)| *key != "name" && *key != "id");
        Agent {
            title: collected.devices.title(id),
            attributes: attributes
                .map(|(key, value)| (key.clone(), text(value)))
                .collect(),
            model: name.clone(),
            name,
            ..Agent::default()
        }
    };
    (0..count).map(agent).collect()
}

/// Whether the events of an id are those of a process. Texts are names of rows, unless a process has an id in them, or calls.
fn is_process(collected: &Collected<'_>, pid: Id) -> bool {
    let has_calls = collected
        .activity
        .get(&pid)
        .is_some_and(|activity| activity.host > 0);
    let is_named = match pid {
        Id::NO_PROCESS => false,
        Id::Number(_) => true,
        Id::Text(_) => text_of(collected, pid).number.is_some(),
    };
    has_calls || is_named && !is_device(collected, pid)
}

/// Declares the processes that have events, in the order that the file gives.
fn declare_processes(
    collected: &Collected<'_>,
    declared: &mut Declared,
    stream: &mut Stream<'_>,
    rank: &str,
) -> io::Result<()> {
    let none = MetadataNames::default();
    let described = |pid: &Id| collected.processes.get(pid).unwrap_or(&none);
    let mut pids: Vec<Id> = collected.activity.keys().copied().collect();
    pids.retain(|pid| is_process(collected, *pid));
    // Work of devices only: it needs a process all the same, for each rank.
    let ranks: HashSet<&str> = pids
        .iter()
        .map(|pid| text_of(collected, *pid).rank)
        .collect();
    let has_rank =
        |pid: &Id| matches!(pid, Id::Text(_)) && text_of(collected, *pid).number.is_some();
    let has_ranks = pids.iter().any(has_rank);
    let mut alone: BTreeMap<&str, Id> = BTreeMap::new();
    let activity = collected.activity.keys();
    for pid in activity.filter(|pid| is_device(collected, **pid)) {
        let rank = text_of(collected, *pid).rank;
        if pids.is_empty() || has_ranks && !rank.is_empty() && !ranks.contains(rank) {
            alone.entry(rank).or_insert(*pid);
        }
    }
    pids.extend(alone.into_values());
    pids.sort_by_key(|pid| (described(pid).order.unwrap_or(0), *pid));
    let mut used = HashSet::new();
    for (place, pid) in (0..).zip(&pids) {
        let text = text_of(collected, *pid);
        let described = described(pid);
        let known = text.number.filter(|id| (1..INVENTED).contains(id));
        let known = known.filter(|id| used.insert(*id));
        let index = ProcessIndex(place);
        let is_rank = |labels: &&str| labels.starts_with("rank ");
        let own_rank = described.labels.as_deref().filter(is_rank);
        let name = match (&described.name, &described.labels) {
            (Some(name), Some(labels)) if labels != "CPU" && own_rank.is_none() => {
                format!("{name} {labels}")
            }
            (Some(name), _) => name.clone(),
            (None, Some(labels)) => labels.clone(),
            (None, None) => match *pid {
                Id::Number(number) => format!("process {number}"),
                Id::NONE => "process without an id".to_owned(),
                Id::Text(text) => collected.strings.text(text).to_owned(),
            },
        };
        let of_text = match text.rank {
            rank if text.number.is_none() || rank.is_empty() => String::new(),
            rank if rank.bytes().all(|byte| byte.is_ascii_digit()) => format!("rank {rank}"),
            rank => rank.to_owned(),
        };
        let rank = if of_text.is_empty() { rank } else { &of_text };
        stream.consumer.process(
            index,
            &Process {
                pid: ProcessId(known.unwrap_or(INVENTED + place)),
                name: &name,
                rank: own_rank.unwrap_or(rank),
                command: &[],
                order: described.order,
            },
        )?;
        declared.processes.insert(*pid, index);
        if !text.rank.is_empty() {
            let rank = text.rank.to_owned();
            declared.ranks.entry(rank).or_insert(index);
        }
    }
    let most = pids.iter().max_by_key(|pid| collected.activity[*pid].host);
    declared.main = most.map(|pid| declared.processes[pid]);
    Ok(())
}

/// The track below which lanes of a process stand that has a text for its id.
fn group(
    pid: Id,
    collected: &Collected<'_>,
    declared: &mut Declared,
    stream: &mut Stream<'_>,
) -> io::Result<Parent> {
    let Id::Text(text) = pid else {
        return Ok(Parent::Trace);
    };
    let described = collected.processes.get(&pid);
    let name = match described.and_then(|process| process.name.as_deref()) {
        Some(name) => name,
        None => collected.strings.text(text),
    };
    if name.is_empty() {
        return Ok(Parent::Trace);
    }
    if let Some(track) = declared.groups.get(&pid) {
        return Ok(Parent::Track(*track));
    }
    let track = stream.new_track(&Track {
        parent: Parent::Trace,
        name,
        kind: TrackKind::Slices,
        order: None,
    })?;
    declared.groups.insert(pid, track);
    Ok(Parent::Track(track))
}

fn show(id: Id, strings: &Strings) -> String {
    match id {
        Id::Number(number) => number.to_string(),
        Id::Text(text) => strings.text(text).to_owned(),
    }
}

/// The declaration of a lane, with the parent of its tracks.
fn declaration(
    number: usize,
    collected: &Collected<'_>,
    declared: &mut Declared,
    stream: &mut Stream<'_>,
) -> io::Result<Declaration> {
    let strings = &collected.strings;
    let mut declaration = Declaration {
        parent: Parent::Trace,
        thread: None,
        name: String::new(),
        order: None,
        device: None,
        counters: String::new(),
        track: None,
    };
    match collected.lanes[number] {
        LaneKey::Rest => declaration.name = "further threads".to_owned(),
        LaneKey::Async { pid, name } => {
            declaration.parent = match declared.processes.get(&pid) {
                Some(process) => Parent::Process(*process),
                None => group(pid, collected, declared, stream)?,
            };
            declaration.name = strings.text(name).to_owned();
        }
        LaneKey::Thread { pid, tid, category } => {
            let described = collected.threads.get(&(pid, tid));
            declaration.order = described.and_then(|thread| thread.order);
            let name = described.and_then(|thread| thread.name.clone());
            let name = name.map(|name| name.trim_end().to_owned());
            if is_device(collected, pid) {
                let text = text_of(collected, pid);
                let home = collected.correlations.home_of_device(pid);
                let home = home.and_then(|home| declared.process_of(home));
                let home = home.or(declared.process_of(pid));
                let home = home.or(declared.ranks.get(text.rank).copied());
                let home = home.or(declared.main).map(Parent::Process);
                declaration.parent = home.unwrap_or(Parent::Trace);
                let stream = name.unwrap_or_else(|| format!("stream {}", show(tid, strings)));
                let mut category = strings.text(category);
                if collected.devices.is_npu(pid) {
                    let title = text
                        .number
                        .map(|number| collected.devices.title(number.into()));
                    declaration.counters = title.unwrap_or_default() + " ";
                    let process = collected.processes.get(&pid);
                    let process = process.and_then(|process| process.name.as_deref());
                    if category.is_empty() {
                        category = process.unwrap_or_default();
                    }
                }
                let device = match text.number {
                    Some(device) => collected.devices.title(device.into()),
                    None => UNKNOWN_DEVICE.to_owned(),
                };
                declaration.name = match tid {
                    Id::Number(..0) => format!("{device} · {category}"),
                    _ => format!("{device} · {stream} · {category}"),
                };
                let device = text.number.map_or(-1, i64::from);
                let tid = match tid {
                    Id::Number(tid) => tid,
                    Id::Text(text) => {
                        let number = ProcessText::of(strings.text(text)).number;
                        number.map_or(-1, i64::from)
                    }
                };
                declaration.device = Some((device, tid));
                declaration.order = None;
                return Ok(declaration);
            }
            match declared.processes.get(&pid) {
                Some(process) => {
                    // Viewers show larger ids as negative ones.
                    let known = match tid {
                        Id::Number(tid) => i32::try_from(tid).ok().filter(|tid| *tid > 0),
                        Id::Text(_) => None,
                    };
                    let known = known.map(i32::unsigned_abs);
                    let name = match (name, known) {
                        (Some(name), _) => name,
                        (None, Some(_)) => String::new(),
                        (None, None) if tid == Id::NONE => NO_THREAD.to_owned(),
                        (None, None) => format!("thread {}", show(tid, strings)),
                    };
                    let tid = known.unwrap_or(INVENTED + number as u32);
                    declaration.parent = Parent::Process(*process);
                    declaration.thread = Some((*process, ThreadId(tid)));
                    declaration.name = name;
                }
                None => {
                    declaration.parent = group(pid, collected, declared, stream)?;
                    let shown = show(tid, strings);
                    declaration.name = match name {
                        Some(name) => name,
                        None if pid == Id::NO_PROCESS => format!("no process · thread {shown}"),
                        None => shown,
                    };
                    if declaration.name.is_empty() {
                        declaration.name = NO_THREAD.to_owned();
                    }
                }
            }
        }
    }
    Ok(declaration)
}
