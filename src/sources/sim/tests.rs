//! The demo, as its capture shows it.

use super::*;
use gputrail_buffer::Policy;
use gputrail_buffer::clock::TickSource;
use gputrail_capture::{Metadata, Reader, Writer};
use gputrail_collect::recorder::RecorderOptions;
use gputrail_record::*;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Migrations of managed memory in the demo, of which no tool is called back.
pub(super) const MIGRATIONS: u64 = 6;

/// Kernels that kernels launch, of which no tool is called back either: two on each device.
pub(super) const CHILDREN: u64 = 4;

/// Everything that a run of the demo recorded.
struct Run {
    bytes: Vec<u8>,
    report: DemoReport,
    reader: Reader,
    calls: Vec<Api>,
    kernels: Vec<KernelDispatch>,
    copies: Vec<MemoryCopy>,
    fills: Vec<MemorySet>,
    allocations: Vec<Allocation>,
    synchronizations: Vec<Synchronization>,
    overheads: Vec<Overhead>,
    arguments: Vec<Arguments>,
    markers: Vec<Marker>,
    dependencies: Vec<Dependency>,
    /// Migrations of managed memory, which no call enqueues.
    migrations: Vec<(MemoryCopy, Completion)>,
    nodes: Vec<GraphNode>,
    children: Vec<ChildKernel>,
    preemptions: Vec<Preemption>,
    completions: HashMap<WorkId, Completion>,
}

pub(super) fn options() -> RecorderOptions {
    RecorderOptions {
        ticks: TickSource::Virtual,
        policy: Policy::Lossless,
        pool_bytes: 4 << 20,
        block_bytes: 64 << 10,
        ..RecorderOptions::default()
    }
}

fn run_into(options: &RecorderOptions, demo: TrainingRun) -> (Vec<u8>, DemoReport, Reader) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("demo.gputrail");
    let header = Recorder::file_header(TickSource::Virtual, TrainingRun::PROCESS);
    let writer = Writer::create(&path, &header).unwrap();
    let recorder = Recorder::start(options, None, writer).unwrap();
    let report = demo.run(&recorder).unwrap();
    recorder.finish().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let reader = Reader::open(&path).unwrap();
    (bytes, report, reader)
}

impl Run {
    fn of(demo: TrainingRun) -> Run {
        let (bytes, report, reader) = run_into(&options(), demo);
        assert!(reader.ended());
        let mut records = Vec::new();
        let mut chunks = reader.chunks();
        while let Some(chunk) = chunks.next() {
            records.extend(chunk.records().map(|record| record.bytes().to_vec()));
        }
        assert!(chunks.findings().is_empty());
        drop(chunks);
        let mut run = Run {
            bytes,
            report,
            reader,
            calls: Vec::new(),
            kernels: Vec::new(),
            copies: Vec::new(),
            fills: Vec::new(),
            allocations: Vec::new(),
            synchronizations: Vec::new(),
            overheads: Vec::new(),
            arguments: Vec::new(),
            markers: Vec::new(),
            dependencies: Vec::new(),
            migrations: Vec::new(),
            nodes: Vec::new(),
            children: Vec::new(),
            preemptions: Vec::new(),
            completions: HashMap::new(),
        };
        for bytes in records {
            run.add(&Records::new(&bytes).next().unwrap());
        }
        let managed = |copy: &mut MemoryCopy| copy.source_memory == MemoryKind::MANAGED;
        let migrations: Vec<MemoryCopy> = run.copies.extract_if(.., managed).collect();
        for copy in migrations {
            let completion = run.completions.remove(&copy.work.id).unwrap();
            run.migrations.push((copy, completion));
        }
        run
    }

    fn metadata(&self) -> &Metadata {
        self.reader.metadata()
    }

    fn add(&mut self, record: &RecordRef<'_>) {
        match record.kind() {
            Kind::API => self.calls.extend(record.read::<Api>()),
            Kind::KERNEL_DISPATCH => self.kernels.extend(record.read::<KernelDispatch>()),
            Kind::MEMORY_COPY => self.copies.extend(record.read::<MemoryCopy>()),
            Kind::MEMORY_SET => self.fills.extend(record.read::<MemorySet>()),
            Kind::MEMORY_ALLOCATION => self.allocations.extend(record.read::<Allocation>()),
            Kind::SYNCHRONIZATION => self
                .synchronizations
                .extend(record.read::<Synchronization>()),
            Kind::OVERHEAD => self.overheads.extend(record.read::<Overhead>()),
            Kind::ARGUMENTS => self.arguments.extend(record.read::<Arguments>()),
            Kind::MARKER => self.markers.extend(record.read::<Marker>()),
            Kind::DEPENDENCY => self.dependencies.extend(record.read::<Dependency>()),
            Kind::GRAPH_NODE => self.nodes.extend(record.read::<GraphNode>()),
            Kind::CHILD_KERNEL => self.children.extend(record.read::<ChildKernel>()),
            Kind::PREEMPTION => self.preemptions.extend(record.read::<Preemption>()),
            Kind::COMPLETION => {
                let completion = record.read::<Completion>().unwrap();
                let second = self.completions.insert(completion.work, completion);
                assert!(second.is_none(), "{second:?} completed twice");
            }
            kind => panic!("the simulator wrote a record of kind {kind:?}"),
        }
    }

    fn calls_by_id(&self) -> HashMap<CorrelationId, Api> {
        self.calls
            .iter()
            .map(|call| (call.correlation, *call))
            .collect()
    }

    fn name(&self, call: &Api) -> String {
        self.metadata().operation(call.operation).into_owned()
    }

    /// All device work, with what its records say of where it ran and who enqueued it.
    fn work(&self) -> Vec<WorkHeader> {
        let kernels = self.kernels.iter().map(|one| one.work);
        let copies = self.copies.iter().map(|one| one.work);
        let fills = self.fills.iter().map(|one| one.work);
        let mut all: Vec<_> = kernels.chain(copies).chain(fills).collect();
        all.sort_by_key(|work| work.id);
        all
    }
}

fn demo() -> Run {
    Run::of(TrainingRun { seed: 7, steps: 3 })
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    assert!(demo().bytes == demo().bytes);
}

#[test]
fn another_seed_gives_another_run_of_the_same_shape() {
    let (one, other) = (demo(), Run::of(TrainingRun { seed: 8, steps: 3 }));
    assert!(one.bytes != other.bytes);
    assert_eq!(one.kernels.len(), other.kernels.len());
    let gap = one.report.duration.0.abs_diff(other.report.duration.0);
    assert!(gap > 0 && gap < one.report.duration.0 / 5, "{gap} ns");
}

#[test]
fn the_report_counts_what_was_recorded() {
    let run = demo();
    assert_eq!(run.report.calls, run.calls.len() as u64);
    assert_eq!(run.report.kernels, run.kernels.len() as u64);
    assert_eq!(
        run.report.copies,
        (run.copies.len() + run.migrations.len()) as u64
    );
    assert_eq!(run.report.fills, run.fills.len() as u64);
    assert_eq!(run.report.threads as usize, run.metadata().threads.len());
    assert_eq!(run.report.devices, run.metadata().agents.len());
    let failed = run
        .calls
        .iter()
        .filter(|call| call.header.has(flags::FAILED));
    assert_eq!(run.report.failed_calls, failed.count() as u64);
}

#[test]
fn a_pool_that_is_too_small_for_the_run_loses_nothing() {
    let small = RecorderOptions {
        pool_bytes: 128 << 10,
        block_bytes: 4 << 10,
        ..options()
    };
    let demo = TrainingRun { seed: 7, steps: 1 };
    let (_, report, reader) = run_into(&small, demo);
    let mut chunks = reader.chunks();
    let mut calls = 0;
    while let Some(chunk) = chunks.next() {
        for record in chunk.records() {
            assert_ne!(record.kind(), Kind::LOSS);
            calls += u64::from(record.kind() == Kind::API);
        }
    }
    assert_eq!(calls, report.calls);
}

#[test]
fn all_work_completes_once_and_its_times_are_in_order() {
    let run = demo();
    let work = run.work();
    assert_eq!(work.len(), run.completions.len());
    let ids: HashSet<WorkId> = work.iter().map(|work| work.id).collect();
    assert_eq!(ids.len(), work.len());
    for one in work {
        let completion = run.completions[&one.id];
        assert_eq!(
            (completion.correlation, completion.agent),
            (one.correlation, one.agent)
        );
        let DeviceTime(queued) = completion.queued;
        assert!(queued > 0 && completion.queued <= completion.submitted);
        assert!(completion.submitted < completion.start && completion.start < completion.end);
        assert!(one.enqueued < completion.completed);
    }
}

#[test]
fn work_carries_the_id_of_the_call_that_enqueued_it() {
    let run = demo();
    let calls = run.calls_by_id();
    assert_eq!(calls.len(), run.calls.len());
    for one in run.work() {
        let call = calls[&one.correlation];
        assert_eq!((call.thread, call.start), (one.thread, one.enqueued));
    }
    for kernel in &run.kernels {
        let name = run.name(&calls[&kernel.work.correlation]);
        assert!(["simLaunchKernel", "simGraphLaunch"].contains(&&name[..]));
    }
    for arguments in &run.arguments {
        assert_eq!(calls[&arguments.correlation].operation, arguments.operation);
    }
}

#[test]
fn each_kernel_of_a_graph_is_a_node_of_it() {
    let run = demo();
    let calls = run.calls_by_id();
    let launched: HashMap<WorkId, CorrelationId> = run
        .kernels
        .iter()
        .map(|kernel| (kernel.work.id, kernel.work.correlation))
        .filter(|(_, call)| run.name(&calls[call]) == "simGraphLaunch")
        .collect();
    // Two devices, three steps, eight kernels.
    assert_eq!((launched.len(), run.nodes.len()), (48, 48));
    let mut nodes: BTreeMap<CorrelationId, Vec<(u32, u64)>> = BTreeMap::new();
    for node in &run.nodes {
        let launch = nodes.entry(launched[&node.work]).or_default();
        launch.push((node.graph, node.node));
    }
    assert_eq!(nodes.len(), 6);
    for launch in nodes.values() {
        let one_graph = launch.iter().all(|(graph, _)| *graph == launch[0].0);
        assert!(one_graph && launch.is_sorted() && launch.len() == 8);
    }
}

#[test]
fn a_kernel_waits_for_the_kernels_that_it_launches_and_makes_room_for_them() {
    let run = demo();
    let kernels: HashMap<WorkId, KernelDispatch> =
        run.kernels.iter().map(|one| (one.work.id, *one)).collect();
    assert_eq!(run.children.len() as u64, CHILDREN);
    for child in &run.children {
        let (parent, own) = (kernels[&child.parent], kernels[&child.work]);
        assert_eq!(child.parent_grid, parent.grid_id);
        assert_eq!(child.parent_kernel, parent.kernel);
        assert_eq!(own.work.correlation, parent.work.correlation);
        let [times, of_parent] = [child.work, child.parent].map(|work| run.completions[&work]);
        assert!(of_parent.start < times.queued && times.end < of_parent.end);
        let at = |what: PreemptionKind| {
            let of_block = run.preemptions.iter().filter(|one| {
                (one.work, one.workgroup, one.what) == (child.parent, child.parent_workgroup, what)
            });
            let times: Vec<DeviceTime> = of_block.map(|one| one.time).collect();
            assert_eq!(times.len(), 1, "{what:?}");
            times[0]
        };
        assert_eq!(at(PreemptionKind::SAVE), times.queued);
        assert!(at(PreemptionKind::RESTORE) >= times.end);
    }
    assert!(
        run.preemptions
            .iter()
            .all(|one| one.grid == kernels[&one.work].grid_id)
    );
    assert_eq!(run.preemptions.len() as u64, 2 * CHILDREN);
}

#[test]
fn pages_move_while_the_kernel_that_needs_them_waits() {
    let run = demo();
    // To the devices until the pages are mapped there, and to the host at the end.
    assert_eq!(run.migrations.len() as u64, MIGRATIONS);
    for (copy, completion) in &run.migrations {
        if copy.transfer == TransferKind::DEVICE_TO_HOST {
            continue;
        }
        assert_eq!(copy.bytes, 512 << 10);
        let waits = run.kernels.iter().filter(|kernel| {
            let of = run.completions[&kernel.work.id];
            kernel.work.agent == copy.work.agent
                && of.start < completion.start
                && completion.end <= of.end
        });
        assert!(waits.count() > 0);
    }
}

#[test]
fn nested_calls_lie_within_their_ancestors() {
    let run = demo();
    let calls = run.calls_by_id();
    let mut deepest = 0;
    for call in &run.calls {
        assert!(call.start < call.end);
        let (mut depth, mut inner) = (0, *call);
        while let Some(outer) = calls.get(&inner.ancestor) {
            assert_eq!(outer.thread, inner.thread);
            assert!(outer.start < inner.start && inner.end < outer.end);
            (depth, inner) = (depth + 1, *outer);
        }
        assert_eq!(inner.ancestor, CorrelationId::NONE);
        deepest = deepest.max(depth);
    }
    assert!(deepest > 0);
    let launches = run
        .calls
        .iter()
        .filter(|call| run.name(call) == "simLaunchKernel");
    let ancestors: HashSet<String> = launches
        .filter_map(|call| calls.get(&call.ancestor))
        .map(|outer| run.name(outer))
        .collect();
    let expected = ["simBlasGemm", "simAllReduce"].map(str::to_owned);
    assert_eq!(ancestors, HashSet::from(expected));
}

#[test]
fn a_queue_runs_one_work_at_a_time() {
    let run = demo();
    let mut queues: BTreeMap<QueueId, Vec<Completion>> = BTreeMap::new();
    for one in run.work() {
        queues
            .entry(one.queue)
            .or_default()
            .push(run.completions[&one.id]);
    }
    assert!(queues.len() > 8, "{} queues were used", queues.len());
    for completions in queues.values_mut() {
        completions.sort_by_key(|completion| completion.start);
        for pair in completions.windows(2) {
            assert!(pair[0].end <= pair[1].start);
        }
    }
}

#[test]
fn a_stream_runs_its_work_in_order_whatever_queue_it_goes_to() {
    let run = demo();
    let mut streams: BTreeMap<StreamId, Vec<WorkHeader>> = BTreeMap::new();
    for one in run.work() {
        streams.entry(one.stream).or_default().push(one);
    }
    // Children are in the queue of their device, and in no stream.
    let children = streams.remove(&StreamId::NONE).unwrap_or_default();
    assert_eq!(children.len(), run.children.len());
    for work in streams.values_mut() {
        work.sort_by_key(|work| (work.enqueued, work.id));
        for pair in work.windows(2) {
            let [one, next] = [run.completions[&pair[0].id], run.completions[&pair[1].id]];
            assert!(one.end <= next.start);
        }
    }
}

/// Whether some of `these` overlap some of `those`, which are on the same agent.
fn overlap(run: &Run, these: &[WorkId], those: &[WorkId]) -> usize {
    let of =
        |ids: &[WorkId]| -> Vec<Completion> { ids.iter().map(|id| run.completions[id]).collect() };
    let (these, those) = (of(these), of(those));
    let meets = |one: &Completion, other: &Completion| {
        one.agent == other.agent && one.start < other.end && other.start < one.end
    };
    let meets_any = |one: &&Completion| those.iter().any(|other| meets(one, other));
    these.iter().filter(meets_any).count()
}

#[test]
fn copies_overlap_kernels_and_kernels_overlap_each_other() {
    let run = demo();
    let copies_of = |kind| -> Vec<WorkId> {
        let of_kind = |copy: &&MemoryCopy| copy.transfer == kind;
        run.copies
            .iter()
            .filter(of_kind)
            .map(|copy| copy.work.id)
            .collect()
    };
    let kernels: Vec<WorkId> = run.kernels.iter().map(|kernel| kernel.work.id).collect();
    for kind in [
        TransferKind::HOST_TO_DEVICE,
        TransferKind::PEER_TO_PEER,
        TransferKind::DEVICE_TO_HOST,
    ] {
        let copies = copies_of(kind);
        let overlapping = overlap(&run, &copies, &kernels);
        assert!(
            overlapping * 3 > copies.len(),
            "{kind:?}: {overlapping} of {}",
            copies.len()
        );
    }
    let on = |name: &str| -> Vec<WorkId> {
        let stream = |kernel: &&KernelDispatch| {
            let stream = run.metadata().streams.get(&kernel.work.stream);
            stream.is_some_and(|stream| run.metadata().string(stream.name) == name)
        };
        run.kernels
            .iter()
            .filter(stream)
            .map(|kernel| kernel.work.id)
            .collect()
    };
    assert!(overlap(&run, &on("all-reduce"), &on("compute")) > 0);
    assert!(overlap(&run, &on("upload"), &on("compute")) > 0);
}

#[test]
fn a_step_does_not_begin_before_its_batch_is_there() {
    let run = demo();
    let on = |stream: StreamId, name: &str| -> Vec<Completion> {
        let these = run.kernels.iter().filter(|kernel| {
            let symbol = &run.metadata().kernels[&kernel.kernel];
            kernel.work.stream == stream && run.metadata().string(symbol.demangled).contains(name)
        });
        let mut these: Vec<_> = these
            .map(|kernel| run.completions[&kernel.work.id])
            .collect();
        these.sort_by_key(|completion| completion.start);
        these
    };
    let stream_of = |agent: AgentId, name: &str| {
        let streams = run.metadata().streams.values();
        let is =
            |stream: &&Stream| stream.agent == agent && run.metadata().string(stream.name) == name;
        streams
            .filter(|stream| is(stream))
            .map(|stream| stream.id)
            .next()
            .unwrap()
    };
    for &agent in run.metadata().agents.keys() {
        let (compute, upload) = (stream_of(agent, "compute"), stream_of(agent, "upload"));
        let loaded = on(upload, "data::augment");
        let begun = on(compute, "patch_embed_forward");
        let stepped = on(compute, "gradient_norm");
        let reduced = on(stream_of(agent, "all-reduce"), "reduce_add");
        assert_eq!((loaded.len(), begun.len(), stepped.len()), (3, 3, 3));
        for step in 0..3 {
            assert!(loaded[step].end <= begun[step].start);
            // The optimizer waits for the last of the step's sums.
            let sums = reduced.len() / 3;
            assert!(reduced[(step + 1) * sums - 1].end <= stepped[step].start);
        }
    }
}

#[test]
fn a_wait_of_the_host_outlasts_what_it_waited_for() {
    let run = demo();
    let mut waits = 0;
    for wait in &run.synchronizations {
        assert!(wait.work.enqueued < wait.end);
        assert_eq!(wait.work.id, WorkId::NONE);
        if wait.what == SynchronizationType::STREAM_WAIT_EVENT {
            assert!(wait.event.is_some() && wait.waited_for == WorkId::NONE);
            continue;
        }
        if wait.waited_for.is_some() {
            waits += 1;
            assert!(run.completions[&wait.waited_for].completed <= wait.end);
        }
    }
    assert!(waits > 10);
}

#[test]
fn work_starts_after_what_it_depends_on_in_other_streams() {
    let run = demo();
    let works: HashMap<WorkId, WorkHeader> =
        run.work().iter().map(|work| (work.id, *work)).collect();
    let mut between_streams = 0;
    for dependency in &run.dependencies {
        let (work, other) = (works[&dependency.work], works[&dependency.waited_for]);
        assert_eq!(dependency.correlation, work.correlation);
        if work.agent == other.agent {
            let ends = [other.id, work.id].map(|id| run.completions[&id]);
            assert!(ends[0].end <= ends[1].start);
        }
        between_streams += usize::from(work.stream != other.stream);
    }
    assert!(between_streams > 10);
}

#[test]
fn every_step_is_an_external_id_on_several_threads() {
    let run = demo();
    let mut threads: BTreeMap<ExternalId, HashSet<ThreadId>> = BTreeMap::new();
    for call in &run.calls {
        threads
            .entry(call.external)
            .or_default()
            .insert(call.thread);
    }
    let steps: Vec<u64> = threads.keys().map(|id| id.0).collect();
    assert_eq!(steps, [0, 1, 2, 3]);
    assert!(threads.values().all(|threads| threads.len() > 4));
    let calls = run.calls_by_id();
    for kernel in &run.kernels {
        assert_eq!(
            kernel.work.external,
            calls[&kernel.work.correlation].external
        );
    }
    let ends = |what| run.markers.iter().filter(move |marker| marker.what == what);
    let pushes = ends(MarkerKind::EXTERNAL_PUSH).count();
    assert_eq!(
        (pushes > 12, pushes),
        (true, ends(MarkerKind::EXTERNAL_POP).count())
    );
    let named = |id| run.metadata().external_name(ExternalKind::CUSTOM0, id);
    assert!(ends(MarkerKind::EXTERNAL_PUSH).all(|marker| named(ExternalId(marker.id)).is_some()));
}

#[test]
fn a_call_fails_and_the_program_goes_on() {
    let run = demo();
    let failed: Vec<&Api> = run
        .calls
        .iter()
        .filter(|call| call.header.has(flags::FAILED))
        .collect();
    assert_eq!(failed.len(), 2);
    for call in failed {
        assert_eq!(run.name(call), "simMalloc");
        assert_eq!(call.return_code, 2);
        assert!(
            !run.allocations
                .iter()
                .any(|one| one.correlation == call.correlation)
        );
    }
}

#[test]
fn memory_that_comes_goes_again() {
    let run = demo();
    let mut in_use: HashMap<u64, u64> = HashMap::new();
    let mut allocations = run.allocations.clone();
    allocations.sort_by_key(|one| one.end);
    for one in &allocations {
        match one.operation {
            AllocationOperation::ALLOCATE => {
                assert!(in_use.insert(one.address, one.bytes).is_none());
            }
            _ => assert_eq!(in_use.remove(&one.address), Some(one.bytes)),
        }
    }
    assert!(allocations.len() > 40 && in_use.is_empty());
}

#[test]
fn each_kernel_is_compiled_once_per_device() {
    let run = demo();
    let used: HashSet<(AgentId, KernelId)> = run
        .kernels
        .iter()
        .map(|kernel| (kernel.work.agent, kernel.kernel))
        .collect();
    assert_eq!(run.overheads.len(), used.len());
    let calls = run.calls_by_id();
    for overhead in &run.overheads {
        let call = calls[&overhead.correlation];
        assert_eq!(overhead.what, OverheadKind::COMPILATION);
        assert!(call.start < overhead.start && overhead.end < call.end);
    }
}

#[test]
fn everything_has_a_name() {
    let run = demo();
    let metadata = run.metadata();
    for call in &run.calls {
        assert!(metadata.operations.contains_key(&call.operation));
        assert!(metadata.threads.contains_key(&call.thread));
    }
    for one in run.work() {
        assert!(metadata.agents.contains_key(&one.agent));
        assert!(metadata.queues[&one.queue].agent == one.agent);
        let is_child = run.children.iter().any(|child| child.work == one.id);
        assert!(is_child || metadata.streams[&one.stream].agent == one.agent);
    }
    for kernel in &run.kernels {
        let symbol = metadata.kernels[&kernel.kernel];
        assert!(!metadata.string(symbol.name).is_empty());
        assert!(metadata.code_objects.contains_key(&symbol.code_object));
    }
    assert_eq!(metadata.process.unwrap().id, TrainingRun::PROCESS);
}

#[test]
fn devices_have_links_to_the_host_and_to_each_other() {
    let run = demo();
    let metadata = run.metadata();
    let mut agents: Vec<AgentId> = metadata.agents.keys().copied().collect();
    agents.sort_unstable();
    for (number, agent) in agents.iter().enumerate() {
        let links: Vec<Link> = metadata.links(*agent).copied().collect();
        let peers: Vec<AgentId> = links.iter().map(|link| link.peer).collect();
        let expected = [AgentId::NONE].into_iter();
        let expected: Vec<AgentId> = expected.chain(agents[..number].iter().copied()).collect();
        assert_eq!(peers, expected);
        assert_eq!(links[0].what, LinkKind::PCIE);
        assert!(links[1..].iter().all(|link| link.what == LinkKind::PEER));
        // The copies of the demo are no faster than their links.
        assert!(links.iter().all(|link| link.bandwidth > 18_000_000_000));
    }
}

#[test]
fn clocks_are_paired_from_beginning_to_end() {
    let run = demo();
    let first = run.calls.iter().map(|call| call.start).min().unwrap();
    let last = run
        .completions
        .values()
        .map(|one| one.completed)
        .max()
        .unwrap();
    for &agent in run.metadata().agents.keys() {
        let pairs: Vec<&ClockPair> = run
            .metadata()
            .pairs
            .iter()
            .filter(|pair| pair.agent == agent)
            .collect();
        assert!(pairs[0].before <= first);
        assert!(pairs[pairs.len() - 1].after >= last);
        for two in pairs.windows(2) {
            assert!(two[0].before < two[1].before && two[0].device < two[1].device);
            assert!(two[1].before - two[0].before <= 11_000_000);
        }
    }
    assert!(run.metadata().snapshots.len() > 2);
}
