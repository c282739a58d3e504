//! Device work: kernels, copies and fills, tied to their calls.

use std::collections::HashMap;
use std::io;

use super::Emitter;
use crate::import::chrome::arguments;
use crate::import::chrome::categories::GRAPH;
use crate::import::chrome::decimal;
use crate::import::chrome::record::{EventRecord, NONE, flag};
use crate::import::chrome::reworded::{QUEUE_NAME, QUEUED_AT, SUBMITTED_AT};
use gputrail_record::number_map::NumberMap;
use gputrail_record::{ContextId, CorrelationId, Nanos, ThreadId};
use gputrail_trace::model::{
    AgentIndex, EventArgument, EventId, Launch, ProcessIndex, Queue, QueueIndex, Resources, Stage,
    StageId, Value, Work, WorkKind,
};

/// Most pieces of work that have a call and have not come, and most calls that may have launched graphs.
const MAX_WAITING: usize = 1 << 20;
/// Most names of work that stand in the records themselves.
const MAX_OWN_NAMES: usize = 1 << 16;

/// A queue, as the file tells queues apart: streams, and graphs, whose many streams have no meaning of their own.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum FileQueue {
    Stream(i64),
    Graph(u64),
    /// Launches of graphs, in this row of the file.
    Launches(usize),
}

/// The call that caused work.
#[derive(Copy, Clone, Debug)]
struct Caller {
    process: ProcessIndex,
    thread: ThreadId,
    start: Nanos,
}

/// Device work while it is passed on.
#[derive(Debug, Default)]
pub(super) struct DeviceWork {
    queues: HashMap<(ProcessIndex, i64, FileQueue), QueueIndex>,
    /// The calls of work that has not come, by its event id.
    callers: NumberMap<u32, Caller>,
    /// The calls of launches of graphs, by correlation id.
    launchers: NumberMap<u64, Caller>,
    own_names: HashMap<Box<str>, u64>,
}

/// The id of work in the stream.
pub(super) fn event_id(id: u32) -> EventId {
    EventId(u64::from(id) + 1)
}

impl DeviceWork {
    /// The call that causes work, which has not come yet.
    pub fn called(
        &mut self,
        event: u32,
        (process, thread): (ProcessIndex, ThreadId),
        start: Nanos,
    ) {
        if self.callers.len() < MAX_WAITING {
            let caller = Caller {
                process,
                thread,
                start,
            };
            self.callers.insert(event, caller);
        }
    }

    /// A call that causes the nodes of a graph.
    pub fn launched(
        &mut self,
        correlation: u64,
        (process, thread): (ProcessIndex, ThreadId),
        start: Nanos,
    ) {
        if self.launchers.len() < MAX_WAITING {
            let caller = Caller {
                process,
                thread,
                start,
            };
            self.launchers.insert(correlation, caller);
        }
    }
}

/// Arguments of work that have a place in the model.
#[derive(Debug, Default)]
struct ModelArguments {
    correlation: u64,
    device: Option<i64>,
    stream: Option<i64>,
    context: u64,
    graph: u64,
    grid: Option<[u64; 3]>,
    block: Option<[u32; 3]>,
    /// Of a launch whose workgroups the runtime has chosen.
    work_items: Option<[u64; 3]>,
    resources: Resources,
    bytes: u64,
    queue_name: Option<String>,
    /// Why it did not end, as `gputrail convert` writes it.
    unfinished: Option<String>,
}

fn signed(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Uint(number) => i64::try_from(*number).ok(),
        Value::Int(number) => Some(*number),
        Value::Text(text) => match text.trim().strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).ok(),
            None => text.trim().parse().ok(),
        },
        _ => None,
    }
}

fn sizes<T: TryFrom<u64> + Copy + Default>(value: &Value<'_>) -> Option<[T; 3]> {
    let Value::Json(text) = value else {
        return None;
    };
    let list: Vec<u64> = serde_json::from_str(text).ok()?;
    let mut sizes = [T::try_from(1).ok()?; 3];
    if list.is_empty() || list.len() > 3 {
        return None;
    }
    for (size, given) in sizes.iter_mut().zip(list) {
        *size = T::try_from(given).ok()?;
    }
    Some(sizes)
}

impl ModelArguments {
    /// Takes known values out of `list`. Those that another form does not hold exactly stay.
    fn take(list: &mut Vec<EventArgument<'_>>) -> ModelArguments {
        let mut known = ModelArguments::default();
        list.retain(|EventArgument { name, value }| {
            let number = signed(value);
            let unsigned = number.and_then(|number| u64::try_from(number).ok());
            let small = unsigned.and_then(|number| u32::try_from(number).ok());
            match *name {
                "correlation" => known.correlation = number.map_or(0, |number| number as u64),
                "device" => known.device = number,
                "stream" => known.stream = number,
                "registers per thread" => known.resources.registers = small.unwrap_or(0),
                "bytes" => known.bytes = unsigned.unwrap_or(0),
                "grid" => known.grid = sizes(value),
                "block" => known.block = sizes(value),
                "work-items" => known.work_items = sizes(value),
                // The sum of static and dynamic memory.
                "shared memory" => known.resources.static_local = small.unwrap_or(0),
                "context" => known.context = unsigned.unwrap_or(0),
                "graph id" => known.graph = unsigned.unwrap_or(0),
                QUEUE_NAME => {
                    if let Value::Text(name) = value {
                        known.queue_name = Some(name.to_string());
                    }
                }
                "unfinished" => {
                    if let Value::Text(why) = value {
                        known.unfinished = Some(why.to_string());
                    }
                }
                _ => return true,
            }
            let is_whole = match *name {
                "registers per thread" => small.is_some(),
                "bytes" => unsigned.is_some(),
                "grid" => known.grid.is_some(),
                "block" => known.block.is_some(),
                "work-items" => known.work_items.is_some(),
                "correlation" | "device" | "stream" => number.is_some(),
                QUEUE_NAME => known.queue_name.is_some(),
                "unfinished" => known.unfinished.is_some(),
                _ => false,
            };
            !is_whole
        });
        known
    }

    /// Takes the times at which work that began at `start` was queued and submitted out of `list`, if they are in order.
    fn queueing(list: &mut Vec<EventArgument<'_>>, start: i64) -> (Option<i64>, Option<i64>) {
        let time = |wanted: &str| {
            let found = list.iter().find(|argument| argument.name == wanted);
            let time = match found?.value {
                Value::Text(text) => decimal::microseconds(text),
                Value::Uint(whole) => decimal::microseconds(&whole.to_string()),
                _ => None,
            };
            i64::try_from(time?.nanos).ok()
        };
        let (queued, submitted) = (time(QUEUED_AT), time(SUBMITTED_AT));
        let last = submitted.unwrap_or(start);
        if last > start || queued.is_some_and(|queued| queued > last) {
            return (None, None);
        }
        list.retain(|argument| match argument.name {
            QUEUED_AT => queued.is_none(),
            SUBMITTED_AT => submitted.is_none(),
            _ => true,
        });
        (queued, submitted)
    }

    fn launch(&self) -> Option<Launch> {
        if let Some(grid) = self.work_items {
            let workgroup = [0; 3];
            return Some(Launch { grid, workgroup });
        }
        let (grid, block) = (self.grid?, self.block?);
        let mut items = grid;
        for (items, size) in items.iter_mut().zip(block) {
            *items = items.saturating_mul(u64::from(size));
        }
        Some(Launch {
            grid: items,
            workgroup: block,
        })
    }
}

impl Emitter<'_> {
    pub(super) fn device_work(&mut self, start: i64, record: EventRecord<'_>) -> io::Result<()> {
        let number = record.head.lane as usize;
        let mut args = std::borrow::Cow::Borrowed(record.args);
        let name = super::name_of(&self.strings, &record);
        self.details
            .take(name, |more| args.to_mut().extend_from_slice(more));
        let mut list = Vec::new();
        arguments::read(&args, &mut list);
        let known = ModelArguments::take(&mut list);
        let (queued, submitted) = ModelArguments::queueing(&mut list, start);
        let kind = match self.strings.text(record.head.category) {
            "gpu_memcpy" | "Memcpy" => WorkKind::Copy,
            "gpu_memset" | "Memset" => WorkKind::Set,
            "gpu_sync" => WorkKind::Synchronization,
            GRAPH => WorkKind::Graph,
            "gpu_work" => WorkKind::Unknown,
            _ => WorkKind::Kernel,
        };
        let (lane_device, lane_stream) = self.declared.device(number).unwrap_or((0, 0));
        let device = known.device.unwrap_or(lane_device);
        let stream = known.stream.unwrap_or(lane_stream);
        let event = u32::try_from(record.head.id).ok();
        let caller = match kind {
            WorkKind::Graph => self.work.launchers.get(&known.correlation).copied(),
            _ => event.and_then(|event| self.work.callers.remove(&event)),
        };
        if caller.is_none()
            && event.is_some_and(|event| self.correlations.is_unsure(event, known.correlation))
        {
            let reason = "device work whose correlation id calls of several processes have: tied to none of them";
            let offset = Some(record.head.offset);
            self.report.remark(self.file, reason, offset);
        }
        let home = event.and_then(|event| self.correlations.home(event));
        let home = home.and_then(|home| self.declared.process_of(home));
        let process = caller.map(|caller| caller.process);
        let process = process
            .or(home)
            .or(self.declared.process(number))
            .or(self.declared.main);
        let Some(process) = process else {
            self.lost("device work without a process", &record.head);
            return Ok(());
        };
        let key = match (kind, known.graph) {
            (WorkKind::Graph, _) => FileQueue::Launches(number),
            (_, 0) => FileQueue::Stream(stream),
            (_, graph) => FileQueue::Graph(graph),
        };
        let (name, context) = (known.queue_name.as_deref(), known.context);
        let queue = self.queue((process, device, key), name, context)?;
        let id = if record.head.has(flag::OWN_NAME) {
            self.work.own_name(record.own_name)
        } else {
            u64::from(record.head.name)
        };
        let begin = self.declared.time(start);
        let end = match record.head.duration {
            NONE => None,
            0 if known.unfinished.is_some() => None,
            duration => Some(self.declared.time(start.saturating_add_unsigned(duration))),
        };
        let unfinished = match (&known.unfinished, end) {
            (Some(why), _) => Some(&**why),
            (None, Some(_)) => None,
            (None, None) if record.head.has(flag::IMPOSSIBLE) => Some("its duration is impossible"),
            (None, None) => Some("the file has no duration"),
        };
        self.stream.consumer.work(&Work {
            process,
            thread: caller.map_or(ThreadId::NONE, |caller| caller.thread),
            correlation: CorrelationId(known.correlation),
            event: event.map(event_id),
            agent: self.declared.agent(device),
            queue,
            stream: stream as u32,
            stage: Stage {
                id: StageId((kind as u64) << 40 | id),
                kind,
                name: super::name_of(&self.strings, &record),
                demangled: "",
                architecture: "",
            },
            enqueued: caller
                .filter(|_| kind != WorkKind::Graph)
                .map(|caller| caller.start),
            queued: queued.map(|time| self.declared.time(time)),
            submitted: submitted.map(|time| self.declared.time(time)),
            interval: end.filter(|_| unfinished.is_none()).map(|end| (begin, end)),
            start: Some(begin),
            duration: end.map(|end| end.0 - begin.0),
            unfinished,
            launch: known.launch(),
            resources: known.resources,
            bytes: known.bytes,
            status: 0,
            waits: &[],
            samples: None,
            arguments: &list,
        })
    }

    fn queue(
        &mut self,
        (process, device, key): (ProcessIndex, i64, FileQueue),
        name: Option<&str>,
        context: u64,
    ) -> io::Result<QueueIndex> {
        if let Some(queue) = self.work.queues.get(&(process, device, key)) {
            return Ok(*queue);
        }
        let name = match key {
            FileQueue::Stream(stream) => match name {
                Some(name) => name.to_owned(),
                None => format!("stream {stream}"),
            },
            FileQueue::Graph(graph) => format!("graph {graph}"),
            FileQueue::Launches(_) => {
                let is_other = |(of, on, key): &&(ProcessIndex, i64, FileQueue)| {
                    (*of, *on) == (process, device) && matches!(key, FileQueue::Launches(_))
                };
                match self.work.queues.keys().filter(is_other).count() {
                    0 => "graph launches".to_owned(),
                    others => format!("graph launches ({})", others + 1),
                }
            }
        };
        let queue = self.stream.new_queue(&Queue {
            process,
            agent: self.declared.agent(device),
            context: ContextId(context as u32),
            domain: self.declared.api,
            name: &name,
            out_of_order: false,
        })?;
        self.work.queues.insert((process, device, key), queue);
        Ok(queue)
    }
}

impl DeviceWork {
    /// A number for a name that has none among the names of the file.
    fn own_name(&mut self, name: &str) -> u64 {
        // Behind the numbers of all others.
        const FIRST: u64 = 1 << 32;
        if let Some(number) = self.own_names.get(name) {
            return *number;
        }
        let number = FIRST + self.own_names.len() as u64;
        if self.own_names.len() < MAX_OWN_NAMES {
            self.own_names.insert(name.into(), number);
        }
        number
    }
}

impl super::Declared {
    /// The agent of a device.
    pub(super) fn agent(&self, device: i64) -> AgentIndex {
        match u32::try_from(device) {
            Ok(device) if device < self.agents => AgentIndex(device),
            _ => AgentIndex::UNKNOWN,
        }
    }
}
