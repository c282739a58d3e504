//! The device work of one process: clocks, queues, and what each piece of work is called.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{self, Write};

use super::convert::Making;
use super::functions::context_api;
use super::join::{Enqueued, Found, What};
use super::observer::{DeviceWork, GpuIndex, Observer, ProcessIndex, WorkKind};
use super::work::{
    Detail, DetailValue, GpuContext, HardwareQueue, QueueDescription, Resources, Stage, Work,
};
use super::writer::{Device, TraceWriter};
use crate::capture::Metadata;
use crate::clock::{AgentClock, Causality, HostClock, clamp};
use crate::record::{
    AgentId, AgentKind, ClockPair, Completion, ContextId, CorrelationId, DeviceTime, Domain, Nanos,
    QueueId, StreamId, Unfinished, WorkId, queue_properties,
};

/// Bit of an event id that tells kernels of a command buffer, which share their work id.
const SHARED: u64 = 1 << 39;
/// Bits of an event id that belong to the process's own number.
const OWN_BITS: u32 = 40;

/// A device as one process sees it.
#[derive(Debug)]
struct AgentView {
    gpu: GpuIndex,
    clock: AgentClock,
    /// How far work may seem to start before its enqueue.
    bound: Nanos,
    architecture: String,
    domain: Domain,
    /// What its tracks begin with: "GPU 0".
    title: String,
}

/// Times of a completion, as far as they are known.
#[derive(Copy, Clone, Debug, Default)]
struct Times {
    queued: Option<Nanos>,
    submitted: Option<Nanos>,
    start: Option<Nanos>,
    end: Option<Nanos>,
}

/// The devices and queues of one process.
pub(super) struct Devices<'a> {
    metadata: &'a Metadata,
    process: ProcessIndex,
    pid: u32,
    name: &'a str,
    device: Device,
    agents: BTreeMap<AgentId, AgentView>,
    contexts: HashMap<ContextId, GpuContext>,
    queues: HashMap<(QueueId, AgentId), HardwareQueue>,
    queue_names: HashMap<String, u32>,
}

impl<'a> Devices<'a> {
    pub fn new<W: Write>(
        metadata: &'a Metadata,
        process: ProcessIndex,
        pid: u32,
        name: &'a str,
        host: &HostClock,
        gpus: HashMap<AgentId, GpuIndex>,
        writer: &mut TraceWriter<W>,
    ) -> Devices<'a> {
        let mut pairs: HashMap<AgentId, Vec<ClockPair>> = HashMap::new();
        for pair in &metadata.pairs {
            pairs.entry(pair.agent).or_default().push(*pair);
        }
        let view = |agent: &crate::record::Agent| {
            let gpu = gpus[&agent.id];
            let clock = AgentClock::new(host, pairs.get(&agent.id).map_or(&[], |pairs| pairs));
            let title = match agent.kind {
                AgentKind::CPU => "CPU device",
                AgentKind::ACCELERATOR => "Accelerator",
                _ => "GPU",
            };
            AgentView {
                gpu,
                bound: Nanos(clock.error_bound().0.saturating_add(host.error_bound().0)),
                clock,
                architecture: metadata.string(agent.architecture).to_owned(),
                domain: agent.domain,
                title: format!("{title} {}", gpu.0),
            }
        };
        Devices {
            metadata,
            process,
            pid,
            name,
            device: writer.device(),
            agents: metadata
                .agents
                .values()
                .map(|agent| (agent.id, view(agent)))
                .collect(),
            contexts: HashMap::new(),
            queues: HashMap::new(),
            queue_names: HashMap::new(),
        }
    }

    /// The clock of each device, in words.
    pub fn clocks(&self) -> impl Iterator<Item = (ProcessIndex, GpuIndex, String)> {
        self.agents
            .values()
            .map(|agent| (self.process, agent.gpu, agent.clock.describe()))
    }

    /// The id of a piece of work in the trace: processes share one space there. `serial` tells the
    /// kernels of a command buffer apart.
    pub fn event(&self, work: WorkId, serial: u32) -> u64 {
        let own = match serial {
            0 => work.0 & (SHARED - 1),
            serial => SHARED | u64::from(serial),
        };
        (u64::from(self.process.0) + 1) << OWN_BITS | own
    }

    /// Tells a piece of work.
    pub fn tell<W: Write, O: Observer + ?Sized>(
        &mut self,
        making: &mut Making<'_, W, O>,
        host: &HostClock,
        found: &Found,
    ) -> io::Result<()> {
        match found {
            Found::Both(work, completion) => self.work(making, host, Some(work), Some(completion)),
            Found::Enqueued(work) => self.work(making, host, Some(work), None),
            Found::Completed(completion) => self.work(making, host, None, Some(completion)),
        }
    }

    fn work<W: Write, O: Observer + ?Sized>(
        &mut self,
        making: &mut Making<'_, W, O>,
        host: &HostClock,
        work: Option<&Enqueued>,
        completion: Option<&Completion>,
    ) -> io::Result<()> {
        let agent = work.map_or(AgentId::NONE, |work| work.agent);
        let agent = match completion {
            Some(completion) if !agent.is_some() => completion.agent,
            _ => agent,
        };
        let queue_id = work.map_or(QueueId::NONE, |work| work.queue);
        let queue = self.queue(&mut making.writer, queue_id, agent);
        let enqueued = work
            .map(|work| host.to_boottime(work.enqueued))
            .filter(|time| time.is_some());
        let view = self.agents.get(&agent);
        let mut times = completion.map_or(Times::default(), |completion| {
            times(view, host, completion, &mut making.report.estimated)
        });
        if let (Some(enqueued), Some(start)) = (enqueued, times.start) {
            let clamped = clamp(enqueued, start, view.map_or(Nanos(0), |view| view.bound));
            match clamped.what {
                Causality::Kept => {}
                Causality::Clamped => making.report.clamped += 1,
                Causality::Violated => making.report.before_enqueue += 1,
            }
            times.start = Some(clamped.start);
        }
        let unfinished = match (completion, times.start, times.end) {
            (Some(completion), Some(_), Some(_)) => completion.unfinished,
            (Some(completion), ..) if completion.unfinished == Unfinished::NO => {
                Unfinished::NO_TIMES
            }
            (Some(completion), ..) => completion.unfinished,
            (None, ..) => Unfinished::AT_END,
        };
        let learnt = completion.map(|completion| host.to_boottime(completion.completed));
        let learnt = learnt.filter(|time| time.is_some());
        // Without a start the work stands where it was enqueued, or at least learnt of.
        let start = times.start.or(enqueued).or(learnt).unwrap_or(Nanos(1));
        let end = times.end.or(learnt.filter(|_| times.start.is_some()));
        let interval =
            (unfinished == Unfinished::NO).then(|| (start, end.unwrap_or(start).max(start)));

        let (kind, stage, name) = self.stage(work);
        let architecture = view.map_or("", |view| &view.architecture);
        let report = &mut making.report;
        match kind {
            WorkKind::Kernel => report.kernels += 1,
            WorkKind::Copy => report.copies += 1,
            WorkKind::Set => report.sets += 1,
            WorkKind::Synchronization => report.synchronizations += 1,
            WorkKind::Unknown => report.unknown_work += 1,
        }
        report.unfinished += u64::from(interval.is_none());
        let (launch, resources, bytes) = sizes(work);
        let status = completion.map_or(0, |completion| completion.status.min(0));
        if let Some(view) = view {
            making.observer.work(&DeviceWork {
                process: self.process,
                gpu: view.gpu,
                kind,
                stage,
                name: &name,
                enqueued,
                interval,
                unfinished,
                bytes,
                launch,
                status,
            });
        }

        // Named as OpenCL's profiling does, in nanoseconds against the start: short, for there are many.
        let mut details = Details::default();
        details.number("queued", times.queued.map(|time| since(start, time)));
        details.number("submit", times.submitted.map(|time| since(start, time)));
        details.number("bytes", (bytes > 0).then_some(bytes as i64));
        details.number("status", (status != 0).then_some(status.into()));
        if interval.is_none() {
            details.text("unfinished", reason(work, completion, unfinished));
        }
        let correlation = match (work, completion) {
            (Some(work), _) => work.correlation,
            (None, Some(completion)) => completion.correlation,
            (None, None) => CorrelationId::NONE,
        };
        let id = match (work, completion) {
            (Some(work), _) => self.event(work.work, work.serial),
            (None, Some(completion)) => self.event(completion.work, 0),
            (None, None) => 0,
        };
        let demangled = self.demangled(work);
        making.writer.work(
            self.device,
            &Work {
                event: id,
                start: start.0,
                duration: end.map(|end| end.0.saturating_sub(start.0)),
                queue,
                stream: self.stream(work, queue_id),
                stage: Stage {
                    number: stage,
                    name: &name,
                    demangled,
                    architecture,
                    kernel: kind == WorkKind::Kernel,
                },
                launch,
                resources,
                correlation: correlation.0,
                waits: &[],
                details: details.get(),
            },
        )
    }

    /// What a piece of work is, as kind, number and name.
    fn stage(&self, work: Option<&Enqueued>) -> (WorkKind, u64, std::borrow::Cow<'a, str>) {
        let number = |family: u64, member: u64| family << 32 | member;
        match work.map(|work| work.what) {
            Some(What::Kernel { kernel, .. }) => {
                let name = self.metadata.kernels.get(&kernel);
                let name = name.map_or("", |symbol| self.metadata.string(symbol.name));
                let name = match name {
                    "" => format!("kernel {kernel}").into(),
                    name => name.into(),
                };
                (WorkKind::Kernel, number(1, kernel.0.into()), name)
            }
            Some(What::Copy { transfer, .. }) => {
                let name = transfer.name().unwrap_or("copy").into();
                (WorkKind::Copy, number(2, transfer.0.into()), name)
            }
            Some(What::Set { .. }) => (WorkKind::Set, number(3, 0), "fill".into()),
            Some(What::Synchronization(what)) => {
                let name = what.name().unwrap_or("synchronization").into();
                (WorkKind::Synchronization, number(4, what.0.into()), name)
            }
            None => (
                WorkKind::Unknown,
                number(5, 0),
                "work without its enqueue".into(),
            ),
        }
    }

    fn demangled(&self, work: Option<&Enqueued>) -> &'a str {
        let Some(What::Kernel { kernel, .. }) = work.map(|work| work.what) else {
            return "";
        };
        let symbol = self.metadata.kernels.get(&kernel);
        symbol.map_or("", |symbol| self.metadata.string(symbol.demangled))
    }

    /// Number of the stream that a piece of work is shown under: its own, or its queue's.
    fn stream(&self, work: Option<&Enqueued>, queue: QueueId) -> u32 {
        match work.map_or(StreamId::NONE, |work| work.stream) {
            StreamId::NONE => self
                .metadata
                .queues
                .get(&queue)
                .map_or(0, |queue| queue.number),
            StreamId(stream) => stream,
        }
    }

    fn queue<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        id: QueueId,
        agent: AgentId,
    ) -> HardwareQueue {
        if let Some(queue) = self.queues.get(&(id, agent)) {
            return *queue;
        }
        let record = self.metadata.queues.get(&id);
        let properties = record.map_or(0, |queue| queue.properties);
        let own_name = record.map_or("", |queue| self.metadata.string(queue.name));
        let label = match (own_name, record) {
            ("", Some(queue)) if properties & queue_properties::COPY_ENGINE != 0 => {
                format!("copy engine {}", queue.number)
            }
            ("", Some(queue)) => format!("queue {}", queue.number),
            ("", None) => "unknown queue".to_owned(),
            (name, _) => name.to_owned(),
        };
        let view = self.agents.get(&agent);
        let title = view.map_or("unknown device", |view| &view.title);
        let mut name = format!("{title} . {} {} . {label}", self.name, self.pid);
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
        let gpu = view.map_or(0, |view| view.gpu.0);
        let domain = view.map_or(Domain::default(), |view| view.domain);
        let pid = self.pid;
        let context = *self
            .contexts
            .entry(context_id)
            .or_insert_with(|| writer.context(pid, context_api(domain)));
        let queue = writer.queue(QueueDescription {
            name,
            description: order.to_owned(),
            gpu,
            context,
            device: gpu,
        });
        self.queues.insert((id, agent), queue);
        queue
    }
}

fn times(
    view: Option<&AgentView>,
    host: &HostClock,
    completion: &Completion,
    estimated: &mut u64,
) -> Times {
    let time = |time: DeviceTime| view.and_then(|view| view.clock.to_boottime(time));
    let times = Times {
        queued: time(completion.queued),
        submitted: time(completion.submitted),
        start: time(completion.start),
        end: time(completion.end),
    };
    let (start, end) = (completion.start, completion.end);
    if times.start.is_some()
        || !start.is_some()
        || !end.is_some()
        || !completion.completed.is_some()
    {
        return times;
    }
    // The clock is not known: at least the end was learnt at a known time.
    *estimated += 1;
    let end_at = host.to_boottime(completion.completed);
    let before_end = |time: DeviceTime| {
        let span = end.0.saturating_sub(time.0);
        time.is_some()
            .then(|| Nanos(end_at.0.saturating_sub(span).max(1)))
    };
    Times {
        queued: before_end(completion.queued),
        submitted: before_end(completion.submitted),
        start: before_end(completion.start),
        end: Some(end_at),
    }
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

fn reason(
    work: Option<&Enqueued>,
    completion: Option<&Completion>,
    unfinished: Unfinished,
) -> &'static str {
    match (work, completion) {
        (Some(work), None) if work.untracked => "its completion could not be tracked",
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
    list: [Detail<'a>; 5],
    count: usize,
}

impl Default for Details<'_> {
    fn default() -> Self {
        let none = Detail {
            name: "",
            value: DetailValue::Number(0),
        };
        Details {
            list: [none; 5],
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
