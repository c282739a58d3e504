//! CUDA through stand-ins of libcuda and libcupti, which are made here from our own declarations and play the parts of
//! several versions with their faults. No GPU and no library of NVIDIA's takes part: that CUDA works is not shown here.

use std::path::PathBuf;
use std::process::Command;

use gputrail_capture::{Metadata, Reader};
use gputrail_harness::machine::{Need, tools};
use gputrail_harness::needs;
use gputrail_harness::pocl::{Driver, on_pocl};
use gputrail_harness::program::run;
use gputrail_harness::repository;
use gputrail_record::{
    Activity, Allocation, AllocationOperation, Api, Completion, Environment, EnvironmentKind,
    GraphNode, KernelDispatch, Kind, MemoryCopy, MemoryKind, OverheadKind, StreamFlag,
    Synchronization, SynchronizationType, TransferKind, Unfinished, UnifiedMemoryCounter,
    UnifiedMemoryCounterKind,
};

use crate::command::{TestDir, kernels, well};
use crate::tools::{built, example, tool};

/// The versions that the stand-in plays: of each change of a record that is read.
const VERSIONS: [&str; 7] = ["1108", "1201", "1209", "1300", "1301", "1303", "1305"];

/// The stand-ins and the program, compiled.
pub struct StandIns {
    dir: TestDir,
    program: PathBuf,
}

impl StandIns {
    pub fn new() -> StandIns {
        let dir = TestDir::new();
        let compile = |name: &str, to: &str, options: &[&str]| {
            let to = dir.join(to);
            let source = repository("tests/programs/cuda").join(name);
            let mut command = Command::new("cc");
            command.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-pthread"]);
            well(
                command
                    .args(options)
                    .arg("-o")
                    .arg(&to)
                    .arg(source)
                    .arg("-ldl"),
            );
            to
        };
        let library = ["-shared", "-fPIC"];
        compile("libcuda.c", "libcuda.so.1", &library);
        compile("libcupti.c", "libcupti.so.12", &library);
        let program = compile("program.c", "program", &[]);
        StandIns { dir, program }
    }

    /// The directory with the stand-ins.
    pub fn dir(&self) -> &TestDir {
        &self.dir
    }

    /// `gputrail record` of the program, to `run.pftrace`.
    fn record(&self, version: &str, faults: &str, arguments: &[&str]) -> Command {
        self.record_with(&[], version, faults, arguments)
    }

    pub fn record_with(
        &self,
        options: &[&str],
        version: &str,
        faults: &str,
        arguments: &[&str],
    ) -> Command {
        let mut command = self.dir.gputrail(["record", "-o", "run.pftrace"]);
        command
            .args(options)
            .arg("--")
            .arg(&self.program)
            .args(arguments);
        self.prepare(&mut command, version, faults);
        command
    }

    /// A further program of the folder, in C.
    fn compile(&self, name: &str, options: &[&str]) -> PathBuf {
        let to = self.dir.join(name).with_extension("out");
        let source = repository("tests/programs/cuda").join(name);
        let mut compiler = Command::new("cc");
        compiler.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-pthread"]);
        well(compiler.arg("-o").arg(&to).arg(source).args(options));
        to
    }

    pub fn prepare(&self, command: &mut Command, version: &str, faults: &str) {
        command
            .env("LD_LIBRARY_PATH", self.dir.path())
            .env("STANDIN_VERSION", version)
            .env("STANDIN_FAULT", faults);
    }
}

/// The number of calls of a function in the trace.
fn calls(trace: &mut gputrail_harness::trace::Trace, name: &str) -> i64 {
    trace.value(&format!("select count(*) from slice where name = '{name}'"))
}

#[test]
fn calls_kernels_copies_and_fills_are_recorded_by_each_version_of_the_stand_in() {
    needs!(calls_kernels_copies_and_fills_are_recorded_by_each_version_of_the_stand_in:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    for version in VERSIONS {
        let ended = well(&mut stand_ins.record(version, "", &["10", "3"]));
        assert_eq!(ended.text(), "done\n", "{version}");
        let mut trace = stand_ins.dir.trace();
        trace.assert_sound();
        let counts = ["saxpy", "_Z5scalePff", "node", "fill"].map(|name| kernels(&mut trace, name));
        assert_eq!(counts, [30, 30, 9, 3], "{version}");
        let copies: i64 =
            trace.value("select count(*) from gpu_slice where name = 'copy host to device'");
        assert_eq!(copies, 3, "{version}");
        let of = [
            "cuLaunchKernel",
            "cudaLaunchKernel",
            "cuGraphLaunch",
            "cuInit",
        ]
        .map(|name| calls(&mut trace, name));
        assert_eq!(of, [63, 30, 3, 1], "{version}");
    }
}

#[test]
fn kernels_are_chosen_by_name() {
    needs!(kernels_are_chosen_by_name: Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    for (option, expected) in [("--kernel=s*", [30, 0, 0]), ("--kernel=!saxpy", [0, 30, 9])] {
        well(&mut stand_ins.record_with(&[option], VERSIONS[0], "", &["10", "3"]));
        let mut trace = stand_ins.dir.trace();
        let counts = ["saxpy", "_Z5scalePff", "node"].map(|name| kernels(&mut trace, name));
        assert_eq!(counts, expected, "{option}");
    }
}

#[test]
fn faults_of_cupti_neither_disturb_the_program_nor_pass_silently() {
    needs!(faults_of_cupti_neither_disturb_the_program_nor_pass_silently:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    // The fault, kernels in the trace, calls of cuLaunchKernel in it, and what is missing.
    let faults = [
        ("late", 5, 11, ""),
        ("foreign", 5, 11, ""),
        ("null", 5, 11, ""),
        ("before", 5, 11, ""),
        (
            "dropped",
            5,
            11,
            "CUDA: 3 activity records dropped by CUPTI, which had no room for them",
        ),
        (
            "dropped_in",
            5,
            11,
            "CUDA: 3 activity records of context 1, stream 7 dropped by CUPTI",
        ),
        (
            "never",
            0,
            11,
            "no record of 13 operations that calls enqueued",
        ),
        (
            "subscribed",
            0,
            0,
            "another profiler observes CUDA in this process",
        ),
        (
            "unknown",
            0,
            0,
            "(CUPTI status 999); libcupti is of CUDA 12, the driver supports CUDA 12.8; GPUTRAIL_CUPTI may name",
        ),
    ];
    for version in ["1209", "1305"] {
        for (fault, of_kernel, of_calls, words) in faults {
            let ended = well(&mut stand_ins.record(version, fault, &["5"]));
            assert_eq!(ended.text(), "done\n", "{fault}");
            // What is missing is said at the end and by the trace, and only what is missing.
            let info = well(&mut stand_ins.dir.gputrail(["info", "run.pftrace"])).text();
            let check = run(&mut stand_ins.dir.gputrail(["check", "run.pftrace"]));
            let mut trace = stand_ins.dir.trace();
            let complaints = trace.complaints();
            let said = ended.stderr.contains("nothing was lost");
            if words.is_empty() {
                assert!(said, "{fault}: {}", ended.stderr);
                assert!(info.contains("nothing is missing"), "{fault}: {info}");
                assert_eq!((check.code(), &complaints[..]), (0, &[][..]), "{fault}");
            } else {
                let of_summary = ended.stderr.lines().find(|line| line.contains("MISSING: "));
                let of_info = info
                    .lines()
                    .find(|line| line.trim_start().starts_with("missing "));
                for line in [of_summary, of_info] {
                    assert!(
                        line.is_some_and(|line| line.contains(words)),
                        "{fault}: {}\n{info}",
                        ended.stderr
                    );
                }
                assert!(!said && info.contains("no: see above"), "{fault}: {info}");
                assert!(!ended.stderr.contains("want of memory"), "{fault}");
                assert!(check.code() == 1 && !complaints.is_empty(), "{fault}");
            }
            let lost = complaints.iter().find(|(_, lost)| *lost == 3);
            assert_eq!(lost.is_some(), fault.starts_with("dropped"), "{fault}");
            let counts = [
                kernels(&mut trace, "saxpy"),
                calls(&mut trace, "cuLaunchKernel"),
                kernels(&mut trace, "warm_up"),
            ];
            assert_eq!(counts, [of_kernel, of_calls, 0], "{fault} {version}");
        }
    }
}

#[test]
fn kernels_without_times_are_counted() {
    needs!(kernels_without_times_are_counted: Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    let ended = well(&mut stand_ins.record("1209", "untimed", &["5"]));
    let said = |words: &str| ended.stderr.contains(words);
    assert!(
        said("15 operations of a device completed without times") && !said("had not completed"),
        "{}",
        ended.stderr
    );
    let mut trace = stand_ins.dir.trace();
    let longer: i64 = trace.value("select count(*) from gpu_slice where dur > 0");
    assert_eq!(longer, 0);
    let info = well(&mut stand_ins.dir.gputrail(["info", "run.pftrace"])).text();
    assert!(info.contains("activity records without times"), "{info}");
    assert!(info.contains("without times  15 operations"), "{info}");
}

#[test]
fn summaries_of_traces_and_captures_say_that_cuda_was_not_observed() {
    needs!(summaries_of_traces_and_captures_say_that_cuda_was_not_observed: Need::Program("cc"));
    let stand_ins = StandIns::new();
    let missing = |file: &str| {
        let mut command = stand_ins
            .dir
            .gputrail(["summary", file, "--format", "json"]);
        let text = well(&mut command).text();
        let tables: serde_json::Value = serde_json::from_str(&text).unwrap();
        tables["missing"].as_array().expect("a table").clone()
    };
    let options = ["--capture"];
    well(&mut stand_ins.record_with(&options, "1209", "subscribed", &["5"]));
    let words = "another profiler observes CUDA in this process";
    for file in ["run.pftrace", "run.gputrail"] {
        let [row] = &missing(file)[..] else {
            panic!("{file}: {:?}", missing(file));
        };
        let reason = row["reason"].as_str().unwrap();
        assert!(reason.contains(words) && row["count"] == 1, "{file}: {row}");
        let text = well(&mut stand_ins.dir.gputrail(["summary", file])).text();
        assert!(
            text.contains("MISSING records") && text.contains(words),
            "{text}"
        );
    }
    std::fs::remove_file(stand_ins.dir.join("run.gputrail")).unwrap();
    well(&mut stand_ins.record_with(&options, "1209", "", &["5"]));
    let none: [serde_json::Value; 0] = [];
    for file in ["run.pftrace", "run.gputrail"] {
        assert_eq!(missing(file), none, "{file}");
    }
}

#[test]
fn agents_say_which_libcupti_is_found_and_what_is_missing_without_one() {
    needs!(agents_say_which_libcupti_is_found_and_what_is_missing_without_one:
        Need::Program("cc"), Need::Pocl);
    let stand_ins = StandIns::new();
    let dir = &stand_ins.dir;
    let agents = |cupti: Option<&str>| {
        let mut command = dir.gputrail(["agents"]);
        stand_ins.prepare(&mut command, "1209", "");
        command.envs(cupti.map(|path| ("GPUTRAIL_CUPTI", path)));
        well(&mut command).text()
    };
    let own = dir.join("libcupti.so.12").display().to_string();
    // The loader's, the one of the variable, and the one in its folder.
    for cupti in [None, Some(own.as_str()), Some(dir.path().to_str().unwrap())] {
        let text = agents(cupti);
        let line = format!("libcupti       {own}\n");
        assert!(text.contains(&line) && text.contains("by CUPTI"), "{text}");
    }
    let text = agents(Some("/nonsense"));
    for words in [
        "libcupti       MISSING: GPUTRAIL_CUPTI: /nonsense: ",
        "pc sampling    nothing, without libcupti",
        "collected      nothing, without libcupti",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // gputrail's own with CUPTI's names is never taken, under whatever name it lies in a folder.
    let ours = dir.join("ours");
    std::fs::create_dir(&ours).unwrap();
    let ours = ours.join("libcupti.so.12");
    std::fs::copy(built(&["--lib"], "libcupti.so"), &ours).unwrap();
    let text = agents(Some(ours.to_str().unwrap()));
    let words = format!(
        "libcupti       MISSING: GPUTRAIL_CUPTI: {} is gputrail's own, not NVIDIA's",
        ours.display()
    );
    assert!(text.contains(&words), "{words}: {text}");

    // What is sampled by nobody is refused before the program starts, with what is missing.
    let refused = |folder: &std::path::Path, cupti: &str| {
        let options = ["--pc-sampling", "stochastic", "--interval", "4096cycles"];
        let mut command = stand_ins.record_with(&options, "1209", "", &["5"]);
        on_pocl(&mut command, Driver::Threaded);
        command.env("LD_LIBRARY_PATH", folder);
        let ended = run(command.env("GPUTRAIL_CUPTI", cupti));
        assert_eq!((ended.code(), ended.text()), (125, String::new()));
        ended.stderr
    };
    let said = refused(dir.path(), "/nonsense");
    assert!(
        said.contains("; CUDA: GPUTRAIL_CUPTI: /nonsense: "),
        "{said}"
    );
    // A driver that cannot be opened, as one that is not there.
    let folder = dir.join("without");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("libcuda.so.1"), "").unwrap();
    let said = refused(&folder, "");
    assert!(said.contains("; CUDA: no CUDA driver: "), "{said}");
}

#[test]
fn a_killed_program_leaves_what_cupti_had_delivered() {
    needs!(a_killed_program_leaves_what_cupti_had_delivered:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    let ended = run(&mut stand_ins.record("1209", "", &["kill", "20"]));
    assert_eq!(ended.code(), 137, "{}", ended.stderr);
    let mut trace = stand_ins.dir.trace();
    trace.assert_sound();
    let counts = [
        kernels(&mut trace, "saxpy"),
        calls(&mut trace, "cuLaunchKernel"),
    ];
    assert_eq!(counts, [20, 41]);

    // What CUPTI had not delivered is counted.
    let ended = run(&mut stand_ins.record("1209", "never", &["kill", "20"]));
    let words = "MISSING: no record of 43 operations that calls enqueued";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
}

#[test]
fn a_program_without_cuda_loads_nothing_and_another_library_is_initialised_too() {
    needs!(a_program_without_cuda_loads_nothing_and_another_library_is_initialised_too:
        Need::Program("cc"));
    let stand_ins = StandIns::new();
    let dir = &stand_ins.dir;
    let maps = "/proc/self/maps";
    let mut command = dir.gputrail(["record", "-o", "run.pftrace", "--", "cat", maps]);
    stand_ins.prepare(&mut command, "1209", "");
    let maps = well(&mut command).text();
    assert!(
        !maps.is_empty() && !maps.contains("gputrail") && !maps.contains("libcu"),
        "{maps}"
    );

    let (source, other) = (dir.join("other.c"), dir.join("other.so"));
    let text = "#include <stdio.h>\nint InitializeInjection(void) { puts(\"other\"); return 1; }\n";
    std::fs::write(&source, text).unwrap();
    let mut compiler = Command::new("cc");
    well(
        compiler
            .args(["-shared", "-fPIC", "-o"])
            .arg(&other)
            .arg(&source),
    );
    let mut command = stand_ins.record("1209", "", &["1"]);
    let ended = well(command.env("CUDA_INJECTION64_PATH", &other));
    assert_eq!(ended.text(), "other\ndone\n");
}

#[test]
fn a_forked_child_of_a_program_with_cuda_goes_on() {
    needs!(a_forked_child_of_a_program_with_cuda_goes_on:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    well(&mut stand_ins.record("1300", "", &["fork"]));
    assert_eq!(kernels(&mut stand_ins.dir.trace(), "saxpy"), 2);
}

/// The records of a capture.
#[derive(Default)]
struct Recorded {
    metadata: Metadata,
    calls: Vec<Api>,
    /// The values of the arguments of calls, by name.
    arguments: Vec<(String, Vec<u64>)>,
    dispatches: Vec<KernelDispatch>,
    nodes: Vec<GraphNode>,
    copies: Vec<MemoryCopy>,
    completions: Vec<Completion>,
    allocations: Vec<Allocation>,
    synchronizations: Vec<Synchronization>,
    overheads: Vec<gputrail_record::Overhead>,
    environment: Vec<Environment>,
    unified_memory: Vec<UnifiedMemoryCounter>,
}

impl Recorded {
    /// The records of the capture that `record --capture` left.
    fn of(dir: &TestDir) -> Recorded {
        let capture = dir.join("run.gputrail");
        let reader = Reader::open(&capture).expect("a capture");
        // The next recording would not replace it.
        std::fs::remove_file(&capture).expect("a capture");
        let mut recorded = Recorded {
            metadata: reader.metadata().clone(),
            ..Recorded::default()
        };
        let mut chunks = reader.chunks();
        while let Some(chunk) = chunks.next() {
            for record in chunk.records() {
                match record.activity() {
                    Activity::Api(call) => recorded.calls.push(*call),
                    Activity::KernelDispatch(one) => recorded.dispatches.push(*one),
                    Activity::GraphNode(one) => recorded.nodes.push(*one),
                    Activity::MemoryCopy(one) => recorded.copies.push(*one),
                    Activity::Completion(one) => recorded.completions.push(*one),
                    Activity::Allocation(one) => recorded.allocations.push(*one),
                    Activity::Synchronization(one) => recorded.synchronizations.push(*one),
                    Activity::Overhead(one) => recorded.overheads.push(*one),
                    Activity::Environment(one) => recorded.environment.push(*one),
                    Activity::UnifiedMemoryCounter(one) => recorded.unified_memory.push(*one),
                    Activity::Arguments {
                        operation, values, ..
                    } => {
                        let name = recorded.metadata.operation(operation).to_string();
                        recorded.arguments.push((name, values.to_vec()));
                    }
                    _ => {}
                }
            }
        }
        recorded
    }

    /// The call of this name.
    fn call(&self, name: &str) -> &Api {
        let mut calls = self.calls.iter();
        let found = calls.find(|call| *self.metadata.operation(call.operation) == *name);
        found.unwrap_or_else(|| panic!("no {name}"))
    }
}

#[test]
fn waits_events_pools_managed_memory_and_the_state_of_devices_are_recorded() {
    needs!(waits_events_pools_managed_memory_and_the_state_of_devices_are_recorded:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    let kinds = [
        "api",
        "kernel-dispatch",
        "memory-copy",
        "memory-allocation",
        "synchronization",
        "overhead",
        "environment",
        "unified-memory-counter",
    ];
    let kinds = kinds.map(|kind| format!("--kind={kind}"));
    let mut options: Vec<&str> = kinds.iter().map(|kind| &kind[..]).collect();
    options.push("--capture");
    for version in ["1108", "1209", "1300", "1305"] {
        well(&mut stand_ins.record_with(&options, version, "", &["others"]));
        let recorded = Recorded::of(&stand_ins.dir);

        // A wait for each call that waits, and from 13.0 on a marker for the event.
        let is_marker = |one: &&Synchronization| one.what == SynchronizationType::MARKER;
        let markers: Vec<_> = recorded.synchronizations.iter().filter(is_marker).collect();
        let mut waits = recorded.synchronizations.clone();
        waits.retain(|one| !is_marker(&one));
        let types: Vec<_> = waits.iter().map(|one| one.what).collect();
        let expected = [
            SynchronizationType::STREAM_WAIT_EVENT,
            SynchronizationType::EVENT_SYNCHRONIZE,
            SynchronizationType::STREAM_SYNCHRONIZE,
            SynchronizationType::CONTEXT_SYNCHRONIZE,
        ];
        assert_eq!(types, expected, "{version}");
        let [stream_waits, event, stream, context] = &waits[..] else {
            panic!("four");
        };
        for (one, name) in [
            (stream_waits, "cuStreamWaitEvent"),
            (event, "cuEventSynchronize"),
        ] {
            let call = recorded.call(name).correlation;
            assert_eq!(one.work.correlation, call, "{version} {name}");
            assert_eq!(one.event, stream_waits.event, "{version} {name}");
        }
        let kernel = &recorded.dispatches[0].work;
        assert!(stream_waits.event.is_some() && !context.event.is_some());
        assert_eq!(
            (stream_waits.work.queue, stream.work.queue),
            (kernel.queue, kernel.queue)
        );
        assert!(!event.work.queue.is_some() && !context.work.queue.is_some());
        let call = recorded.call("cuStreamSynchronize");
        assert!(call.start <= stream.work.enqueued && stream.work.enqueued <= stream.end);
        match &markers[..] {
            [marker] if version >= "1300" => {
                assert_eq!(
                    (marker.event, marker.work.queue),
                    (stream_waits.event, kernel.queue)
                );
                let call = recorded.call("cuEventRecord").correlation;
                assert_eq!(marker.work.correlation, call, "{version}");
                let mut completions = recorded.completions.iter();
                let of_marker = completions.find(|one| one.work == marker.work.id).unwrap();
                assert_eq!(of_marker.unfinished, Unfinished::NO, "{version}");
                assert!(of_marker.start.is_some() && of_marker.start == of_marker.end);
            }
            markers => assert!(
                markers.is_empty() && version < "1300",
                "{version}: {markers:?}"
            ),
        }

        let pools: Vec<_> = recorded
            .allocations
            .iter()
            .map(|one| (one.operation, one.address, one.bytes))
            .collect();
        let expected = [
            (AllocationOperation::CREATE_POOL, 0x5000, 1 << 20),
            (AllocationOperation::DESTROY_POOL, 0x5000, 1 << 20),
        ];
        assert_eq!(pools, expected, "{version}");
        let call = recorded.call("cuMemPoolCreate").correlation;
        assert_eq!(recorded.allocations[0].correlation, call);

        let moved: Vec<_> = recorded
            .copies
            .iter()
            .map(|one| (one.transfer, one.bytes, one.source_memory))
            .collect();
        let expected = [
            (TransferKind::HOST_TO_DEVICE, 65536, MemoryKind::MANAGED),
            (TransferKind::DEVICE_TO_HOST, 65536, MemoryKind::MANAGED),
            (TransferKind::PEER_TO_PEER, 8192, MemoryKind::DEVICE),
        ];
        assert_eq!(moved, expected, "{version}");
        let between = recorded.copies.last().expect("a copy between devices");
        let device = |agent| recorded.metadata.agents[&agent].handle;
        let devices = [between.source_agent, between.destination_agent].map(device);
        assert_eq!(devices, [0, 1], "{version}");
        let context = |id| recorded.metadata.contexts[&id].handle;
        let contexts = [between.source_context, between.destination_context].map(context);
        assert_eq!(contexts, [1, 2], "{version}");
        assert_eq!(
            between.work.correlation,
            recorded.call("cuMemcpyPeer").correlation
        );
        let faults: Vec<_> = recorded
            .unified_memory
            .iter()
            .map(|one| (one.what, one.value))
            .collect();
        let expected = [
            (UnifiedMemoryCounterKind::HOST_PAGE_FAULT, 1),
            (UnifiedMemoryCounterKind::DEVICE_PAGE_FAULT, 4),
        ];
        assert_eq!(faults, expected, "{version}");

        let of_compiler = recorded
            .overheads
            .iter()
            .find(|one| one.what == OverheadKind::COMPILATION);
        let call = recorded.call("cuMemAllocManaged").correlation;
        // Overhead has a correlation id from 12.9 on.
        let correlation = of_compiler.expect("overhead").correlation;
        assert_eq!(correlation == call, version >= "1209", "{version}");

        let of_jit = recorded.overheads.iter();
        let of_jit: Vec<_> = of_jit.filter(|one| one.what == OverheadKind::JIT).collect();
        let [of_jit] = of_jit[..] else {
            panic!("{version}: {of_jit:?}");
        };
        let call = recorded.call("cuModuleLoadData").correlation;
        let detail = recorded.metadata.string(of_jit.detail);
        assert_eq!(
            (of_jit.correlation, detail),
            (call, "PTX to machine code: compiled /cache/index"),
            "{version}"
        );

        let value = |what| {
            let mut all = recorded.environment.iter();
            all.find(|one| one.what == what).map(|one| one.value)
        };
        assert_eq!(value(EnvironmentKind::CLOCK), Some(1980), "{version}");
        assert_eq!(value(EnvironmentKind::TEMPERATURE), Some(61), "{version}");
        assert_eq!(
            value(EnvironmentKind::POWER_LIMIT),
            Some(700_000),
            "{version}"
        );
        assert_eq!(value(EnvironmentKind::FAN_SPEED), Some(30), "{version}");
        let mut trace = stand_ins.dir.trace();
        trace.assert_sound();
        let counters = ["temperature C", "power mW", "device page faults"];
        for (name, expected) in counters.into_iter().zip([61, 350_000, 4]) {
            let query = format!(
                "select cast(max(value) as int) from counter c join process_counter_track t on c.track_id = t.id where t.name glob '* · {name}'"
            );
            assert_eq!(trace.value::<i64>(&query), expected, "{version} {name}");
        }
    }
}

#[test]
fn allocations_arguments_and_latency_times_are_those_of_the_calls() {
    needs!(allocations_arguments_and_latency_times_are_those_of_the_calls: Need::Program("cc"));
    let stand_ins = StandIns::new();
    for version in ["1108", "1305"] {
        well(&mut stand_ins.record_with(&["--capture"], version, "", &["2"]));
        let recorded = Recorded::of(&stand_ins.dir);
        let [allocated, freed] = &recorded.allocations[..] else {
            panic!("two: {:?}", recorded.allocations);
        };
        assert_eq!(allocated.operation, AllocationOperation::ALLOCATE);
        assert_eq!(freed.operation, AllocationOperation::FREE);
        assert_eq!((allocated.bytes, allocated.address), (4096, freed.address));
        assert_eq!(allocated.memory, MemoryKind::DEVICE);
        for (one, name) in [(allocated, "cuMemAlloc_v2"), (freed, "cuMemFree_v2")] {
            let call = recorded.call(name);
            assert_eq!(
                (one.correlation, one.thread),
                (call.correlation, call.thread)
            );
            assert!(one.agent.is_some() && call.start <= one.start && one.start <= one.end);
        }

        let of = |name: &str| {
            let mut all = recorded.arguments.iter();
            let found = all.find(|(of, _)| of == name);
            &found.unwrap_or_else(|| panic!("no {name}")).1[..]
        };
        assert_eq!(of("cuLaunchKernel")[1..9], [4, 2, 1, 128, 1, 1, 0, 0]);
        assert_eq!(of("cudaLaunchKernel")[1..7], [8, 1, 1, 64, 1, 1]);
        assert_eq!(of("cudaLaunchKernel")[8..10], [0, 13]);
        assert_eq!(of("cuMemsetD8_v2"), [allocated.address, 5, 4096]);
        assert_eq!(of("cuMemAlloc_v2")[1], 4096);

        for kernel in &recorded.dispatches {
            let mut all = recorded.completions.iter();
            let one = all.find(|one| one.work == kernel.work.id).unwrap();
            assert_eq!(one.start.0 - one.queued.0, 2000, "{version}");
            assert_eq!(one.start.0 - one.submitted.0, 1000, "{version}");
        }
        assert_eq!(recorded.dispatches.len(), 7);
    }
}

#[test]
fn kernels_of_a_graph_belong_to_its_launch_and_to_their_nodes_and_stand_together() {
    needs!(kernels_of_a_graph_belong_to_its_launch_and_to_their_nodes_and_stand_together:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    for version in ["1108", "1305"] {
        well(&mut stand_ins.record_with(&["--capture"], version, "", &["2"]));
        let recorded = Recorded::of(&stand_ins.dir);
        let launch = recorded.call("cuGraphLaunch").correlation;
        let nodes: Vec<_> = recorded
            .nodes
            .iter()
            .map(|node| {
                let mut all = recorded.dispatches.iter();
                let of = all.find(|one| one.work.id == node.work).expect("a kernel");
                (node.graph, node.node, of.work.correlation == launch)
            })
            .collect();
        assert_eq!(
            nodes,
            [(5, 1, true), (5, 2, true), (5, 3, true)],
            "{version}"
        );
        let mut trace = stand_ins.dir.trace();
        trace.assert_sound();
        let shown: Vec<(i64, i64, String)> = trace.rows(
            "select cast_int!(extract_arg(s.arg_set_id, 'graph')), \
             cast_int!(extract_arg(s.arg_set_id, 'graph_node')), t.name from gpu_slice s \
             join gpu_track t on s.track_id = t.id where s.name = 'node' order by s.ts",
        );
        assert_eq!(shown.len(), 3, "{version}");
        for (place, (graph, node, track)) in (1..).zip(&shown) {
            assert_eq!((*graph, *node), (5, place), "{version}");
            assert!(track.contains("CUDA graphs"), "{version}: {track}");
        }
        let others: i64 = trace.value(
            "select count(*) from gpu_slice where name not in ('node', 'graph launch') and extract_arg(arg_set_id, 'graph') is not null",
        );
        assert_eq!(others, 0, "{version}");
    }
}

#[test]
fn graphs_are_told_from_their_creation_to_their_end_and_launches_are_above_their_nodes() {
    needs!(graphs_are_told_from_their_creation_to_their_end_and_launches_are_above_their_nodes:
        Need::OpenClToolchain, Need::TraceProcessor);
    let stand_ins = StandIns::new();
    let source = "tests/programs/graph_changes.c";
    let tool = tool(&stand_ins.dir, &[], source, "libgraphs.so");
    for version in ["1108", "1305"] {
        // The tool alone, then the recording alone.
        let ended =
            well(&mut stand_ins.record_with(&["--tool", &tool, "-q"], version, "", &["graphs"]));
        let change = |what: u8, graphs: [u32; 2], nodes: [u32; 2], call: u8| {
            let [graph, other] = graphs;
            let [node, dependent] = nodes;
            let of_type = u8::from(node != 0);
            format!(
                "{what}, graph {graph} of {other}, node {node} and {dependent} of type {of_type}, call {call}, handle 1"
            )
        };
        let mut expected = vec![change(1, [1, 0], [0; 2], 0), change(4, [1, 0], [1, 0], 1)];
        for node in [2, 3] {
            expected.push(change(4, [1, 0], [node, 0], 1));
            expected.push(change(7, [1, 0], [node - 1, node], 1));
        }
        expected.push(change(3, [2, 1], [0; 2], 1));
        expected.extend([1, 2, 3].map(|node| change(6, [2, 1], [node, node], 1)));
        expected.push(change(9, [3, 2], [0; 2], 1));
        expected.extend([(); 2].map(|()| change(11, [3, 0], [0; 2], 1)));
        expected.push(change(10, [3, 0], [0; 2], 0));
        for node in [1, 2, 3] {
            if node < 3 {
                expected.push(change(8, [1, 0], [node, node + 1], 0));
            }
            expected.push(change(5, [1, 0], [node, 0], 0));
        }
        expected.push(change(2, [1, 0], [0; 2], 0));
        for how in ["told: ", "recorded: "] {
            let lines = ended.stderr.lines();
            let said: Vec<&str> = lines
                .filter_map(|line| line.strip_prefix(how))
                .filter(|line| line.contains("graph "))
                .collect();
            assert_eq!(said, expected, "{version}: {how}");
        }

        let of_changes = &["--kind=graph-change"];
        let ended = well(&mut stand_ins.record_with(of_changes, version, "", &["graphs"]));
        assert!(
            ended.stderr.contains("20 other records"),
            "{}",
            ended.stderr
        );
        let mut trace = stand_ins.dir.trace();
        trace.assert_sound();
        let changes: Vec<(String, i64)> = trace.rows(
            "select s.name, count(*) from slice s join process_track t on s.track_id = t.id \
             where t.name = 'graphs' group by s.name order by min(s.ts), min(s.id)",
        );
        let names = [
            ("graph created", 1),
            ("graph node created", 3),
            ("graph dependency created", 2),
            ("graph cloned", 1),
            ("graph node cloned", 3),
            ("graph instantiated", 1),
            ("graph launched", 2),
            ("executable graph destroyed", 1),
            ("graph dependency destroyed", 2),
            ("graph node destroyed", 3),
            ("graph destroyed", 1),
        ];
        let changes: Vec<(&str, i64)> = changes.iter().map(|(name, n)| (&name[..], *n)).collect();
        assert_eq!(changes, names, "{version}");

        well(&mut stand_ins.record_with(&[], version, "", &["graphs"]));
        let mut trace = stand_ins.dir.trace();
        trace.assert_sound();
        // Each launch lasts as long as its three nodes do.
        let launches: Vec<(i64, i64, i64, String)> = trace.rows(
            "select cast_int!(extract_arg(l.arg_set_id, 'graph')), \
             cast_int!(extract_arg(l.arg_set_id, 'nodes')), \
             (select count(*) from gpu_slice n where n.name = 'node' and n.ts >= l.ts \
              and n.ts + n.dur <= l.ts + l.dur), t.name \
             from gpu_slice l join gpu_track t on l.track_id = t.id where l.name = 'graph launch' order by l.ts",
        );
        assert_eq!(launches.len(), 2, "{version}: {launches:?}");
        for (graph, nodes, inside, track) in &launches {
            assert_eq!((*graph, *nodes, *inside), (3, 3, 3), "{version}");
            assert!(track.contains("CUDA graph launches"), "{version}: {track}");
        }
        // Kernels that are captured run in launches of the graph only, which share one call each.
        well(&mut stand_ins.dir.gputrail(["check", "run.pftrace"]));
        let summary = well(&mut stand_ins.dir.gputrail(["summary", "run.pftrace"])).text();
        let launches = summary.split("Graph launches, ").nth(1).unwrap_or_default();
        assert!(launches.contains("graph launch"), "{summary}");
        assert!(!summary.contains("Memory operations and"), "{summary}");
    }
}

#[test]
fn records_of_a_size_that_is_not_known_and_errors_of_cupti_are_counted_and_named() {
    needs!(records_of_a_size_that_is_not_known_and_errors_of_cupti_are_counted_and_named:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    for version in ["1209", "1305"] {
        let ended = well(&mut stand_ins.record(version, "unsized troubled", &["2", "3"]));
        for words in [
            "CUDA: 3 activity records of a size that the library does not state",
            "CUPTI: out of something (CUPTI status 8); records may be missing from here on",
        ] {
            assert!(ended.stderr.contains(words), "{version}: {}", ended.stderr);
        }
        assert!(!ended.stderr.contains("be careful"), "{}", ended.stderr);
        let mut trace = stand_ins.dir.trace();
        let copies: i64 = trace.value("select count(*) from gpu_slice where name like 'copy%'");
        let counts = [
            kernels(&mut trace, "saxpy"),
            kernels(&mut trace, "fill"),
            copies,
        ];
        assert_eq!(counts, [6, 3, 0], "{version}");
        let info = well(&mut stand_ins.dir.gputrail(["info", "run.pftrace"])).text();
        assert!(
            info.contains("CUPTI: be careful (CUPTI status 7)"),
            "{info}"
        );
    }
}

#[test]
fn ids_that_a_program_pushes_to_cupti_are_those_of_its_calls() {
    needs!(ids_that_a_program_pushes_to_cupti_are_those_of_its_calls: Need::OpenClToolchain);
    let stand_ins = StandIns::new();
    let tool = tool(
        &stand_ins.dir,
        &[],
        "tests/programs/cuda/tool.c",
        "libids.so",
    );
    for version in ["1108", "1305"] {
        let options = ["--tool", &tool, "-q"];
        let ended = well(&mut stand_ins.record_with(&options, version, "", &["ids"]));
        let mut ids: Vec<&str> = ended.stderr.lines().collect();
        ids.retain(|line| line.starts_with("id "));
        let expected = [
            "id 77 of kind 3, call 1",
            "id 78 of kind 5, call 1",
            "id 77 of kind 3, call 1",
        ];
        assert_eq!(ids, expected, "{version}: {}", ended.stderr);
    }
}

#[test]
fn subscribers_get_objects_that_come_and_go_and_waits_that_have_ended() {
    needs!(subscribers_get_objects_that_come_and_go_and_waits_that_have_ended: Need::OpenClToolchain);
    let stand_ins = StandIns::new();
    let tool = tool(
        &stand_ins.dir,
        &[],
        "tests/programs/cuda/tool.c",
        "libtold.so",
    );
    let options = ["--tool", &tool, "-q"];
    for version in ["1108", "1305"] {
        let ended = well(&mut stand_ins.record_with(&options, version, "", &["objects"]));
        let lines = ended.stderr.lines();
        let told: Vec<&str> = lines
            .filter_map(|line| line.strip_prefix("told: "))
            .collect();
        let [context, stream, module, wait] = [
            Kind::CONTEXT,
            Kind::STREAM,
            Kind::MODULE,
            Kind::SYNCHRONIZATION,
        ];
        let expected = [
            ("context created", context, 0),
            ("stream created", stream, 0),
            ("module loaded", module, 1),
            ("module unloaded", module, 0),
            ("wait for queue", wait, 1),
            ("wait for context", wait, 1),
            ("stream destroyed", stream, 0),
            ("context destroyed", context, 0),
        ];
        let expected =
            expected.map(|(name, kind, call)| format!("{name}, record {}, call {call}", kind.0));
        // The driver was initialised before.
        let initialised = "runtime initialized, record 0, call 0";
        // The module's function, when CUPTI delivers its record.
        let function = format!(
            "kernel symbol registered, record {}, call 0",
            Kind::KERNEL_SYMBOL.0
        );
        let (functions, told): (Vec<&str>, Vec<&str>) = told
            .into_iter()
            .filter(|line| *line != initialised)
            .partition(|line| *line == function);
        assert_eq!(functions.len(), 1, "{version}: {}", ended.stderr);
        assert_eq!(told, expected, "{version}: {}", ended.stderr);
    }
}

#[test]
fn streams_have_the_flag_and_the_priority_that_they_were_created_with() {
    needs!(streams_have_the_flag_and_the_priority_that_they_were_created_with: Need::Program("cc"));
    let stand_ins = StandIns::new();
    for version in ["1108", "1305"] {
        let options = ["-q", "--capture"];
        well(&mut stand_ins.record_with(&options, version, "", &["streams"]));
        let recorded = Recorded::of(&stand_ins.dir);
        let of_kernel = |name: &str| {
            let named = |id| {
                recorded
                    .metadata
                    .string(recorded.metadata.kernels[&id].name)
            };
            let mut all = recorded.dispatches.iter();
            let kernel = all.find(|one| named(one.kernel) == name);
            let stream = kernel.expect("a kernel").work.stream;
            let stream = &recorded.metadata.streams[&stream];
            (stream.flag, stream.priority)
        };
        let expected = [
            ("copy", (StreamFlag::DEFAULT, 0)),
            ("scale", (StreamFlag::NON_BLOCKING, -1)),
            ("add", (StreamFlag::NULL, 0)),
        ];
        for (kernel, stream) in expected {
            assert_eq!(of_kernel(kernel), stream, "{version} {kernel}");
        }
    }
}

#[test]
fn subscribers_are_told_of_work_and_memory_inside_of_calls() {
    needs!(subscribers_are_told_of_work_and_memory_inside_of_calls: Need::OpenClToolchain);
    let stand_ins = StandIns::new();
    let tool = tool(
        &stand_ins.dir,
        &[],
        "tests/programs/cuda/tool.c",
        "libinside.so",
    );
    let options = ["--tool", &tool, "-q"];
    for (version, fault) in [("1108", ""), ("1305", ""), ("1305", "never")] {
        let ended = well(&mut stand_ins.record_with(&options, version, fault, &["1"]));
        let lines = ended.stderr.lines();
        let told: Vec<&str> = lines
            .filter_map(|line| line.strip_prefix("inside: "))
            .collect();
        let (enter, exit, complete) = (1, 2, 3);
        let line = |what: &str, phase: u32, kernel: &str, kind: Kind, status: i32, word: u32| {
            format!(
                "{what}, phase {phase}, {kernel}, record {}, status {status}, word {word}, call 1",
                kind.0
            )
        };
        let pairs = [
            ("allocate", "-", Kind::MEMORY_ALLOCATION),
            ("copy enqueue", "-", Kind::MEMORY_COPY),
            ("fill enqueue", "-", Kind::MEMORY_SET),
            ("kernel enqueue", "saxpy", Kind::KERNEL_DISPATCH),
            // By the runtime API, whose functions call those of the driver.
            ("kernel enqueue", "_Z5scalePff", Kind::KERNEL_DISPATCH),
        ];
        let mut expected = Vec::new();
        for (what, kernel, kind) in pairs {
            expected.push(line(what, enter, kernel, kind, -1, 7));
            expected.push(line(what, exit, kernel, kind, 0, 7));
        }
        // A launch that fails.
        let kind = Kind::KERNEL_DISPATCH;
        expected.push(line("kernel enqueue", enter, "saxpy", kind, -1, 7));
        expected.push(line("kernel enqueue", exit, "-", Kind(0), 1, 7));
        let kind = Kind::MEMORY_ALLOCATION;
        expected.push(line("free", enter, "-", kind, -1, 7));
        expected.push(line("free", exit, "-", kind, 0, 7));
        let is_complete = |line: &&str| line.contains("complete");
        let in_calls: Vec<&str> = told
            .iter()
            .copied()
            .filter(|one| !is_complete(one))
            .collect();
        assert_eq!(in_calls, expected, "{version}: {}", ended.stderr);

        let mut completed: Vec<&str> = told.into_iter().filter(is_complete).collect();
        completed.sort_unstable();
        let all = [
            ("copy complete", "-"),
            ("fill complete", "-"),
            ("kernel complete", "saxpy"),
            ("kernel complete", "_Z5scalePff"),
        ];
        let mut all =
            all.map(|(what, kernel)| line(what, complete, kernel, Kind::COMPLETION, 0, 7));
        all.sort_unstable();
        // Where CUPTI's records never arrive, the work is unfinished at the end.
        assert_eq!(completed, all, "{version} {fault}: {}", ended.stderr);
    }
}

#[test]
fn opencl_cuda_and_nvtx_of_one_process_are_in_one_trace() {
    needs!(opencl_cuda_and_nvtx_of_one_process_are_in_one_trace:
        Need::OpenClToolchain, Need::Pocl, Need::Nvtx, Need::TraceProcessor);
    let stand_ins = StandIns::new();
    let include = tools().join("nvtx/nvidia/cu13/include");
    let include = format!("-I{}", include.display());
    let program = stand_ins.compile("all.c", &[&include, "-lOpenCL", "-ldl"]);
    let dir = &stand_ins.dir;
    let mut command = dir.gputrail(["record", "-o", "run.pftrace", "--"]);
    command.arg(program);
    on_pocl(&mut command, Driver::Threaded);
    stand_ins.prepare(&mut command, "1209", "");
    assert_eq!(well(&mut command).text(), "done\n");
    let mut trace = dir.trace();
    trace.assert_sound();
    let counts = ["saxpy", "add"].map(|name| kernels(&mut trace, name));
    assert_eq!(counts, [2, 2]);
    let of = ["cuLaunchKernel", "clEnqueueNDRangeKernel", "round"];
    assert_eq!(of.map(|name| calls(&mut trace, name)), [2, 2, 2]);
    // Each round holds a call of each API, in the same thread.
    let inside: i64 = trace.value(
        "select count(*) from slice r join slice c on c.track_id = r.track_id or c.ts between r.ts and r.ts + r.dur
         where r.name = 'round' and c.name in ('cuLaunchKernel', 'clEnqueueNDRangeKernel')
           and c.ts between r.ts and r.ts + r.dur",
    );
    assert_eq!(inside, 4);

    // With another profiler in the process, all but CUDA is recorded.
    stand_ins.prepare(&mut command, "1209", "subscribed");
    let ended = well(&mut command);
    assert_eq!(ended.text(), "done\n");
    let words = "another profiler observes CUDA in this process (PyTorch's profiler";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    let mut trace = dir.trace();
    let counts = ["saxpy", "add"].map(|name| kernels(&mut trace, name));
    assert_eq!(counts, [0, 2]);
    assert_eq!(of.map(|name| calls(&mut trace, name)), [0, 2, 2]);
}

#[test]
fn without_cuda_no_library_is_loaded_and_no_file_is_opened_for_it() {
    needs!(without_cuda_no_library_is_loaded_and_no_file_is_opened_for_it:
        Need::OpenClToolchain, Need::Pocl, Need::Program("strace"));
    let dir = TestDir::new();
    // A program with OpenCL, so that the library is there.
    let program = dir.program("hot_loop");
    let mut command = dir.gputrail(["record", "-o", "run.pftrace", "--", "strace", "-f", "-qq"]);
    command.args(["-e", "trace=openat,open,access,readlink", "-o", "calls"]);
    command.arg(&program).args(["", "2"]);
    on_pocl(&mut command, Driver::Threaded);
    well(&mut command);
    let calls = std::fs::read_to_string(dir.join("calls")).unwrap();
    assert!(calls.contains("libgputrail"), "{calls}");
    // Names of files alone: the folder of the tests may have any name.
    let of_cuda = |line: &&str| {
        let path = line.split('"').nth(1).unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        ["libcuda", "libcupti", "libnvidia"]
            .iter()
            .any(|begin| name.starts_with(begin))
    };
    let found: Vec<&str> = calls.lines().filter(of_cuda).collect();
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn tools_get_the_calls_and_the_kernels_of_cuda() {
    needs!(tools_get_the_calls_and_the_kernels_of_cuda: Need::OpenClToolchain);
    let stand_ins = StandIns::new();
    let times = example(&stand_ins.dir, "kernel_times");
    let counts = tool(
        &stand_ins.dir,
        &[],
        "tests/programs/cuda/tool.c",
        "libcounts.so",
    );
    let options = ["--tool", &times, "--tool", &counts, "-q"];
    for version in ["1209", "1305"] {
        let ended = well(&mut stand_ins.record_with(&options, version, "", &["10", "2"]));
        let has = |text: &str| assert!(ended.stderr.contains(text), "{text}: {}", ended.stderr);
        has("cuLaunchKernel: 42 enters, 42 exits, 2 failed");
        has("cudaLaunchKernel: 20 enters, 20 exits, 0 failed");
        has("cuMemAlloc_v2: 2 enters, 2 exits, 0 failed");
        has("allocated 8192, wrong 0");
        has("looked up: 1, 1, 1");
        let mut lines = ended.stderr.lines();
        let kernel = lines.find(|line| line.trim_start().starts_with("saxpy"));
        assert!(
            kernel.is_some_and(|line| line.contains("20 runs")),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn programs_that_a_program_starts_and_several_devices_are_recorded() {
    needs!(programs_that_a_program_starts_and_several_devices_are_recorded:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new();
    let script = format!("{0} 2 & {0} 3; wait", stand_ins.program.display());
    let arguments = ["record", "-o", "run.pftrace", "--", "sh", "-c", &script];
    let mut command = stand_ins.dir.gputrail(arguments);
    stand_ins.prepare(&mut command, "1300", "");
    well(command.env("STANDIN_DEVICES", "2"));
    let mut trace = stand_ins.dir.trace();
    trace.assert_sound();
    let counts = ["saxpy", "_Z5scalePff", "node"].map(|name| kernels(&mut trace, name));
    assert_eq!(counts, [5, 5, 6]);
    let processes: i64 = trace.value(
        "select count(distinct t.upid) from thread t join thread_track k using (utid)
         join slice s on s.track_id = k.id where s.name = 'cuLaunchKernel'",
    );
    assert_eq!(processes, 2);
    // The default stream is on the first device, all others on the second.
    let devices: Vec<(String, String)> = trace.rows(
        "select distinct s.name, substr(t.name, 1, 5) from gpu_slice s join gpu_track t on s.track_id = t.id
         where s.name in ('saxpy', '_Z5scalePff') order by s.name",
    );
    let expected = [("_Z5scalePff", "GPU 1"), ("saxpy", "GPU 0")];
    assert_eq!(
        devices,
        expected.map(|(name, gpu)| (name.to_owned(), gpu.to_owned()))
    );
}

/// Three steps of a training in PyTorch, recorded on an NVIDIA H200.
#[test]
fn a_trace_that_was_recorded_on_a_gpu_is_read() {
    let trace = repository("tests/data/cuda/h200-pytorch.pftrace");
    let dir = TestDir::new();
    let checked = well(dir.gputrail(["check"]).arg(&trace)).text();
    assert!(checked.contains("nothing wrong"), "{checked}");
    let summary = well(dir.gputrail(["summary", "--format", "json"]).arg(&trace)).text();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let count = |table: &str, name: &str| -> u64 {
        let rows = summary[table].as_array().unwrap().iter();
        let named = rows.filter(|row| row["name"].as_str().unwrap().starts_with(name));
        named.map(|row| row["count"].as_u64().unwrap()).sum()
    };
    assert_eq!(count("kernels", ""), 156);
    assert_eq!(count("operations", "copy host to device"), 6);
    assert_eq!(summary["devices"][0]["name"], "NVIDIA H200");
    // The recording was off for seconds before, and took some milliseconds to end.
    let length = summary["recording"][0]["value"].as_u64().unwrap();
    assert_eq!(length / 1_000_000, 714);
    let info = well(dir.gputrail(["info"]).arg(&trace)).text();
    assert!(info.contains("715 ms of recording"), "{info}");
}
