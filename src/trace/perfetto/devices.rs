//! The device work of one process: clocks, queues, and what is told of each piece of work.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io::{self, Write};

use super::convert::{Making, Report};
use super::directory::Directory;
use super::functions::context_api;
use super::gauges::{self, Gauges, Runs};
use super::join::{Enqueued, Found, What};
use super::observer::{DeviceWork, GpuIndex, ProcessIndex, WorkKind};
use super::place::{AgentView, Place};
use super::sampling::OfDispatch;
use super::stages::Stages;
use super::waits::Waits;
use super::work::{
    Detail, DetailValue, GpuContext, HardwareQueue, QueueDescription, Resources, Stage, Submission,
    Work,
};
use super::writer::{Device, TraceWriter};
use crate::capture::Metadata;
use crate::clock::{self, HostClock};
use crate::record::number_map::NumberMap;
use crate::record::{
    AgentId, ClockPair, Completion, ContextId, DeviceTime, Domain, Kind, Nanos, Queue, QueueId,
    StreamId, ThreadId, Unfinished, WorkId, queue_properties,
};
use crate::trace::model::join::Enqueue;

/// Bit of an event id that tells kernels of a command buffer, which share their work id.
const SHARED: u64 = 1 << 39;
/// Bits of an event id that belong to the process's own number.
const OWN_BITS: u32 = 40;

/// A queue of a device, as far as its work needs it.
struct Lane {
    hardware: HardwareQueue,
    /// Number of the stream that work without a stream of its own is shown under.
    stream: u32,
    /// When its latest work ended.
    latest: Nanos,
}

/// The devices and queues of one process.
pub(super) struct Devices {
    process: ProcessIndex,
    pid: u32,
    /// What its tracks are named after: name and id.
    title: String,
    device: Device,
    /// In the order of their ids.
    agents: Vec<AgentView>,
    contexts: NumberMap<ContextId, GpuContext>,
    lanes: Vec<Lane>,
    /// Directory in `lanes`.
    places: Directory<(QueueId, AgentId)>,
    queue_names: HashMap<String, u32>,
    stages: Stages,
    /// What work waits for.
    pub waits: Waits,
    gauges: Gauges,
}

impl Devices {
    pub fn new<W: Write>(
        metadata: &Metadata,
        process: ProcessIndex,
        pid: u32,
        title: String,
        host: &HostClock,
        gpus: HashMap<AgentId, GpuIndex>,
        writer: &mut TraceWriter<W>,
    ) -> Devices {
        let view = |agent: &crate::record::Agent| {
            let pairs = pairs(metadata, agent.id);
            AgentView::new(agent, metadata, gpus[&agent.id], host, &pairs)
        };
        Devices {
            process,
            pid,
            title,
            device: writer.device(),
            agents: metadata.agents.values().map(view).collect(),
            contexts: NumberMap::default(),
            lanes: Vec::new(),
            places: Directory::default(),
            queue_names: HashMap::new(),
            stages: Stages::default(),
            waits: Waits::default(),
            gauges: Gauges::default(),
        }
    }

    /// Tells the agents' clocks anew, by `host` and by all readings that `metadata` has now.
    pub fn set_clocks(&mut self, metadata: &Metadata, host: &HostClock) {
        for view in &mut self.agents {
            view.set_clock(host, &pairs(metadata, view.id));
        }
    }

    /// Takes note that the names store holds more than before.
    pub fn learn(&mut self, kind: Kind) {
        if matches!(kind, Kind::STRING | Kind::KERNEL_SYMBOL) {
            self.stages.clear();
        }
    }

    fn agent(&self, id: AgentId) -> Option<&AgentView> {
        let place = self.agents.binary_search_by_key(&id, |view| view.id).ok()?;
        Some(&self.agents[place])
    }

    /// What the clock of each agent is.
    pub fn domains(&self) -> Vec<(AgentId, clock::Domain)> {
        let domain = |view: &AgentView| (view.id, view.clock.domain());
        self.agents.iter().map(domain).collect()
    }

    /// The clock of each device, in words.
    pub fn clocks(&self) -> impl Iterator<Item = (ProcessIndex, GpuIndex, String)> {
        self.agents
            .iter()
            .map(|agent| (self.process, agent.gpu, agent.clock.describe()))
    }

    /// What the tracks of a device begin with; none if it is not known.
    pub fn title(&self, agent: AgentId) -> Option<&str> {
        self.agent(agent).map(|view| &view.title[..])
    }

    /// A time of an agent's clock, in the clock of the trace; none if it is not known.
    pub fn time(&self, agent: AgentId, time: DeviceTime) -> Option<Nanos> {
        let told = self.agent(agent)?.clock.to_boottime(time)?;
        told.is_some().then_some(told)
    }

    /// What a queue is called among those of the process: "GPU 0 . queue 1".
    pub fn queue_title(&self, metadata: &Metadata, id: QueueId) -> String {
        let record = metadata.queues.get(&id);
        let title = record.and_then(|queue| self.title(queue.agent));
        let title = title.unwrap_or("unknown device");
        format!("{title} . {}", queue_label(metadata, record))
    }

    /// The id of a piece of work in the trace: processes share one space there. `serial` tells the
    /// kernels of a command buffer apart.
    pub fn event(&self, work: WorkId, serial: u32) -> u64 {
        event(self.process, work, serial)
    }

    /// Tells a piece of work, as far as it is `known`. It lasts at least until `hangs`.
    #[inline(never)]
    pub fn tell(
        &mut self,
        making: &mut Making<'_>,
        metadata: &Metadata,
        host: &HostClock,
        known: (Option<&Enqueued>, Option<&Completion>),
        samples: Option<&OfDispatch>,
        hangs: Option<Nanos>,
    ) -> io::Result<()> {
        self.work(making, metadata, host, known, samples, hangs)
    }

    /// The same of most work: both its records have come, and there is nothing else to tell of it.
    pub fn tell_complete(
        &mut self,
        making: &mut Making<'_>,
        metadata: &Metadata,
        host: &HostClock,
        work: &Enqueued,
        completion: &Completion,
    ) -> io::Result<()> {
        let both = (Some(work), Some(completion));
        self.work(making, metadata, host, both, None, None)
    }

    /// Tells what had not completed at the end. Where the recording was `cut`, no earlier than that, the
    /// oldest of a queue is what the queue hung on: it lasts until then. The others stand behind it.
    pub fn tell_unfinished(
        &mut self,
        making: &mut Making<'_>,
        metadata: &Metadata,
        host: &HostClock,
        found: &mut [Found],
        cut: Option<Nanos>,
    ) -> io::Result<()> {
        let enqueued = |found: &Found| match found {
            Found::Both(work, _) | Found::Enqueued(work) => work.work.enqueued,
            Found::Completed(completion) => completion.completed,
        };
        found.sort_by_key(enqueued);
        let latest = self.lanes.iter().map(|lane| lane.latest).max();
        let end = cut.map(|cut| latest.map_or(cut, |latest| latest.max(cut)));
        let mut hanging = HashSet::new();
        for found in &*found {
            match found {
                Found::Enqueued(work) if hanging.insert((work.work.queue, work.work.agent)) => {
                    self.tell(making, metadata, host, (Some(work), None), None, end)?;
                }
                _ => self.tell(making, metadata, host, found.parts(), None, None)?,
            }
        }
        Ok(())
    }

    /// Tells the counters that are held back.
    pub fn finish<W: Write>(&mut self, writer: &mut TraceWriter<W>) -> io::Result<()> {
        self.gauges.finish(writer)
    }

    /// Tells what is held back for work that comes late.
    pub fn settle<W: Write>(&mut self, writer: &mut TraceWriter<W>) -> io::Result<()> {
        self.gauges.settle(writer)
    }

    /// What tells a piece of work: compiled for any, and for what there is most of.
    #[inline(always)]
    fn work(
        &mut self,
        making: &mut Making<'_>,
        metadata: &Metadata,
        host: &HostClock,
        (work, completion): (Option<&Enqueued>, Option<&Completion>),
        samples: Option<&OfDispatch>,
        hangs: Option<Nanos>,
    ) -> io::Result<()> {
        let agents = [
            work.map(|work| work.work.agent),
            completion.map(|completion| completion.agent),
        ];
        let mut known = agents.into_iter().flatten().filter_map(|id| {
            let place = self.agents.binary_search_by_key(&id, |view| view.id);
            place.ok()
        });
        let agent = known.next();
        let queue = work.map(|work| work.work.queue).unwrap_or_default();
        let lane = self.lane(&mut making.writer, metadata, queue, agent);
        let lane = &mut self.lanes[lane];

        let view = agent.map(|place| &self.agents[place]);
        let place = Place::new(view, host, work, completion, &mut making.report);
        let interval = place.interval();
        let called = self.stages.of(metadata, work);
        let kind = called.kind;
        let (launch, resources, bytes) = sizes(work);
        let status = completion.map_or(0, |completion| completion.status.min(0));
        let untracked = completion.is_none() && work.is_some_and(|work| work.is_untracked());
        count(&mut making.report, kind, interval, untracked);
        making.observer.work(&DeviceWork {
            process: self.process,
            gpu: view.map_or(GpuIndex::UNKNOWN, |view| view.gpu),
            kind,
            stage: called.number,
            name: called.name,
            thread: work.map_or(ThreadId::NONE, |work| work.work.thread),
            enqueued: place.enqueued,
            interval,
            unfinished: place.unfinished,
            bytes,
            launch,
            status,
        });
        if let (Some(view), Some(interval)) = (view, interval) {
            let runs = match kind {
                WorkKind::Kernel => Some(Runs::Kernel(groups(launch))),
                WorkKind::Copy if bytes > 0 => Some(Runs::Copy(bytes)),
                _ => None,
            };
            if let Some(runs) = runs {
                let gpu = gauges::Gpu {
                    index: view.gpu,
                    title: &view.title,
                    compute_units: view.compute_units,
                };
                let process = &self.title;
                self.gauges
                    .add(&mut making.writer, process, gpu, runs, interval)?;
            }
        }
        let Some(mut start) = place.begin() else {
            return Ok(());
        };
        let mut duration = place.duration();
        match (hangs, interval) {
            (Some(end), _) => {
                start = start.max(lane.latest);
                duration = Some(end.0.saturating_sub(start.0));
            }
            (None, Some((_, end))) => lane.latest = end.max(lane.latest),
            (None, None) => {}
        }

        let mut details = Details::default();
        details.number("bytes", (bytes > 0).then_some(bytes as i64));
        details.number("status", (status != 0).then_some(status.into()));
        let leading = samples.map(OfDispatch::leading).unwrap_or_default();
        if let Some(samples) = samples {
            details.number("samples", Some(samples.samples as i64));
            let dropped = samples.dropped as i64;
            details.number("samples dropped", (dropped > 0).then_some(dropped));
            if !leading.is_empty() {
                details.text("waves", &leading);
            }
        }
        let shared = work.is_some_and(|work| work.is_shared());
        let waits = match id_of(work, completion) {
            Some(id) => self.waits.take(id, shared),
            None => Vec::new(),
        };
        // Older versions show no arrows, and no event ids but those beside calls.
        let mut waits_for = String::new();
        for event in &waits {
            let comma = if waits_for.is_empty() { "" } else { ", " };
            write!(waits_for, "{comma}{event}").expect("a string can be written to");
        }
        if !waits.is_empty() {
            details.text("waits_for", &waits_for);
        }
        if interval.is_none() {
            details.text("unfinished", reason(work, completion, place.unfinished));
        }
        let (correlation, id, serial) = match (work, completion) {
            (Some(work), _) => (work.work.correlation, work.work.id, work.serial),
            (None, Some(completion)) => (completion.correlation, completion.work, 0),
            (None, None) => return Ok(()),
        };
        making.writer.submitted_work(
            self.device,
            &Work {
                event: event(self.process, id, serial),
                start: start.0,
                duration,
                queue: lane.hardware,
                stream: match work.map_or(StreamId::NONE, |work| work.work.stream) {
                    StreamId::NONE => lane.stream,
                    StreamId(stream) => stream,
                },
                stage: Stage {
                    number: called.number,
                    name: called.name,
                    demangled: called.demangled,
                    architecture: view.map_or("", |view| &view.architecture),
                    kernel: kind == WorkKind::Kernel,
                },
                launch,
                resources,
                correlation: correlation.0,
                waits: &waits,
                details: details.get(),
            },
            Submission {
                queued: place.queued.map(|time| since(start, time)),
                submitted: place.submitted.map(|time| since(start, time)),
            },
        )
    }

    /// The place of a queue on a device, by the device's place.
    #[inline(always)]
    fn lane<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        metadata: &Metadata,
        queue: QueueId,
        agent: Option<usize>,
    ) -> usize {
        let id = agent.map_or(AgentId::NONE, |place| self.agents[place].id);
        match self.places.get(queue.0, (queue, id)) {
            Some(lane) => lane,
            None => self.look_up(writer, metadata, queue, id),
        }
    }

    #[cold]
    fn look_up<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        metadata: &Metadata,
        queue: QueueId,
        agent: AgentId,
    ) -> usize {
        // What the names store does not hold is all one: the tables grow with names only.
        let known = metadata.queues.contains_key(&queue);
        let queue = if known { queue } else { QueueId::NONE };
        if let Some(lane) = self.places.get(queue.0, (queue, agent)) {
            return lane;
        }
        let lane = self.new_lane(writer, metadata, queue, agent);
        self.lanes.push(lane);
        self.places.insert((queue, agent), self.lanes.len() - 1);
        self.lanes.len() - 1
    }

    fn new_lane<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        metadata: &Metadata,
        id: QueueId,
        agent: AgentId,
    ) -> Lane {
        let record = metadata.queues.get(&id);
        let view = self.agent(agent);
        let properties = record.map_or(0, |queue| queue.properties);
        let label = queue_label(metadata, record);
        let title = view.map_or("unknown device", |view| &view.title);
        let gpu = view.map_or(0, |view| view.gpu.0);
        let domain = view.map_or(Domain::default(), |view| view.domain);
        let mut name = format!("{title} . {} . {label}", self.title);
        // Perfetto takes queues of one name for one queue.
        let uses = self.queue_names.entry(name.clone()).or_default();
        *uses += 1;
        if *uses > 1 {
            write!(name, " ({uses})").expect("a string can be written to");
        }
        let order = match properties & queue_properties::OUT_OF_ORDER {
            0 => "in order",
            _ => "out of order",
        };
        let context_id = record.map_or(ContextId::NONE, |queue| queue.context);
        let pid = self.pid;
        let context = *self
            .contexts
            .entry(context_id)
            .or_insert_with(|| writer.context(pid, context_api(domain)));
        let hardware = writer.queue(QueueDescription {
            name,
            description: order.to_owned(),
            gpu,
            context,
            device: gpu,
        });
        Lane {
            hardware,
            stream: record.map_or(0, |queue| queue.number),
            latest: Nanos::NONE,
        }
    }
}

fn event(process: ProcessIndex, work: WorkId, serial: u32) -> u64 {
    let own = match serial {
        0 => work.0 & (SHARED - 1),
        serial => SHARED | u64::from(serial),
    };
    u64::from(process.0) << OWN_BITS | own
}

/// What a queue is called on its device.
fn queue_label(metadata: &Metadata, record: Option<&Queue>) -> String {
    let own_name = record.map_or("", |queue| metadata.string(queue.name));
    match (own_name, record) {
        ("", Some(queue)) if queue.properties & queue_properties::COPY_ENGINE != 0 => {
            format!("copy engine {}", queue.number)
        }
        ("", Some(queue)) => format!("queue {}", queue.number),
        ("", None) => "unknown queue".to_owned(),
        (name, _) => name.to_owned(),
    }
}

/// The readings of an agent's clock.
fn pairs(metadata: &Metadata, agent: AgentId) -> Vec<ClockPair> {
    let its_own = |pair: &&ClockPair| pair.agent == agent;
    metadata.pairs.iter().filter(its_own).copied().collect()
}

fn count(report: &mut Report, kind: WorkKind, interval: Option<(Nanos, Nanos)>, untracked: bool) {
    match kind {
        WorkKind::Kernel => report.kernels += 1,
        WorkKind::Copy => report.copies += 1,
        WorkKind::Set => report.sets += 1,
        WorkKind::Synchronization => report.synchronizations += 1,
        WorkKind::Unknown => report.unknown_work += 1,
    }
    report.untracked += u64::from(interval.is_none() && untracked);
    report.unfinished += u64::from(interval.is_none() && !untracked);
}

fn sizes(work: Option<&Enqueued>) -> (Option<super::work::Launch>, Resources, u64) {
    match work.map(|work| work.what) {
        Some(What::Kernel {
            launch, resources, ..
        }) => (Some(launch), resources, 0),
        Some(What::Copy { bytes, .. } | What::Set { bytes }) => (None, Resources::default(), bytes),
        _ => (None, Resources::default(), 0),
    }
}

fn id_of(work: Option<&Enqueued>, completion: Option<&Completion>) -> Option<WorkId> {
    let of_completion = completion.map(|completion| completion.work);
    work.map(|work| work.work.id).or(of_completion)
}

/// Workgroups of a launch, if they are known.
fn groups(launch: Option<super::work::Launch>) -> Option<u64> {
    let groups = launch?.workgroups()?;
    let product = groups.iter().map(|groups| u64::from(*groups));
    Some(product.fold(1, u64::saturating_mul))
}

fn reason(
    work: Option<&Enqueued>,
    completion: Option<&Completion>,
    unfinished: Unfinished,
) -> &'static str {
    match (work, completion) {
        (Some(work), None) if work.is_untracked() => "its completion could not be tracked",
        (_, None) => "no completion was recorded",
        _ => unfinished.name().unwrap_or("not finished"),
    }
}

/// Nanoseconds from `start` to `time`: negative if it came before.
fn since(start: Nanos, time: Nanos) -> i64 {
    time.0.wrapping_sub(start.0) as i64
}

/// The few details of one piece of work, without allocating.
struct Details<'a> {
    list: [Detail<'a>; 7],
    count: usize,
}

impl Default for Details<'_> {
    fn default() -> Self {
        let none = Detail {
            name: "",
            value: DetailValue::Number(0),
        };
        Details {
            list: [none; 7],
            count: 0,
        }
    }
}

impl<'a> Details<'a> {
    fn number(&mut self, name: &'a str, value: Option<i64>) {
        if let Some(value) = value {
            self.add(name, DetailValue::Number(value));
        }
    }

    fn text(&mut self, name: &'a str, text: &'a str) {
        self.add(name, DetailValue::Text(text));
    }

    fn add(&mut self, name: &'a str, value: DetailValue<'a>) {
        self.list[self.count] = Detail { name, value };
        self.count += 1;
    }

    fn get(&self) -> &[Detail<'a>] {
        &self.list[..self.count]
    }
}
