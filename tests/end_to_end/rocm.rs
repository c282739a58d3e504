//! ROCm through a stand-in of rocprofiler-sdk with runtimes below it, which are made here from our own declarations and play the
//! parts of several versions with their faults. What was recorded is compared with the stand-in's own log. No GPU and no library of
//! AMD's takes part: that ROCm works is not shown here.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use gputrail_harness::machine::Need;
use gputrail_harness::pocl::{Driver, on_pocl};
use gputrail_harness::program::{Running, run};
use gputrail_harness::{needs, repository};
use gputrail_record::{AllocationOperation, KernelDispatch, MemoryKind, TransferKind};

use crate::c_api::{C, compiled};
use crate::command::{TestDir, kernels, well};
use crate::rocm_stand_ins::{NEWEST, RUNTIME, Recorded, StandIns, VERSIONS, number};

/// How often each text comes.
pub fn counted<T: Into<String>>(texts: impl Iterator<Item = T>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for text in texts {
        *counts.entry(text.into()).or_default() += 1;
    }
    counts
}

#[test]
fn calls_and_work_are_those_that_each_version_of_the_stand_in_says_it_told() {
    needs!(calls_and_work_are_those_that_each_version_of_the_stand_in_says_it_told:
        Need::Program("cc"), Need::TraceProcessor);
    for version in VERSIONS {
        let stand_ins = StandIns::new(version);
        let ended = well(&mut stand_ins.record(&["--capture"], "", &["10", "3"]));
        assert_eq!(ended.text(), "done\n", "{version}: {}", ended.stderr);
        let (log, recorded) = (stand_ins.log(), Recorded::of(stand_ins.dir()));

        let told = counted(log.of("call").map(|call| &call[1][..]));
        let found = recorded.calls.iter();
        let found =
            counted(found.map(|call| recorded.metadata.operation(call.operation).to_string()));
        assert_eq!(found, told, "{version}");
        assert_eq!(found["hipModuleLaunchKernel"], 33, "{version}");
        let failed = recorded.calls.iter().filter(|call| call.return_code != 0);
        let failed =
            counted(failed.map(|call| recorded.metadata.operation(call.operation).to_string()));
        let told = log
            .of("call")
            .filter(|call| call[7] != "0" && !call[1].starts_with("roctx"));
        assert_eq!(failed, counted(told.map(|call| &call[1][..])), "{version}");

        // Names, times, sizes, and the call that enqueued it, of each kernel.
        let name_of = |internal: &str| {
            let mut calls = log.of("call");
            let call = calls.find(|call| call[3] == internal);
            call.map_or("-".to_owned(), |call| call[1].clone())
        };
        let mut told: Vec<_> = log
            .of("kernel")
            .map(|kernel| {
                let sizes = format!("{} {} {}", kernel[6], kernel[7], kernel[8]);
                let times = (number(&kernel[4]), number(&kernel[5]));
                (times, kernel[0].clone(), sizes, name_of(&kernel[3]))
            })
            .collect();
        let list = |sizes: [u64; 3]| sizes.map(|size| size.to_string()).join(",");
        let mut found: Vec<_> = recorded
            .dispatches
            .iter()
            .map(|one| {
                let local = one.static_local_memory + one.dynamic_local_memory;
                let workgroup = one.workgroup.map(u64::from);
                let sizes = format!("{} {} {local}", list(one.grid), list(workgroup));
                let (times, name) = (recorded.times(one.work.id), recorded.kernel(one));
                (
                    times,
                    name.to_owned(),
                    sizes,
                    recorded.call(one.work.correlation),
                )
            })
            .collect();
        told.sort();
        found.sort();
        assert_eq!((found.len(), &found), (60, &told), "{version}");

        let mut told: Vec<_> = log
            .of("copy")
            .map(|copy| {
                let words: Vec<u64> = copy.iter().map(|word| number(word)).collect();
                let transfer = match words[0] {
                    2 => TransferKind::HOST_TO_DEVICE,
                    _ => TransferKind::DEVICE_TO_HOST,
                };
                let transfer = format!("{transfer:?}");
                ((words[3], words[4]), transfer, words[1], name_of(&copy[2]))
            })
            .collect();
        let mut found: Vec<_> = recorded
            .copies
            .iter()
            .map(|one| {
                let call = recorded.call(one.work.correlation);
                let transfer = format!("{:?}", one.transfer);
                (recorded.times(one.work.id), transfer, one.bytes, call)
            })
            .collect();
        told.sort();
        found.sort();
        assert_eq!((found.len(), &found), (9, &told), "{version}");

        let mut trace = stand_ins.dir().trace();
        trace.assert_sound();
        let counts = ["saxpy", "_Z5scalePff"].map(|name| kernels(&mut trace, name));
        assert_eq!(counts, [30, 30], "{version}");
        let info = well(&mut stand_ins.dir().gputrail(["info", "run.pftrace"])).text();
        assert!(info.contains("nothing is missing"), "{version}: {info}");
    }
}

#[test]
fn allocations_arguments_registers_streams_and_scratch_memory_are_recorded() {
    needs!(allocations_arguments_registers_streams_and_scratch_memory_are_recorded: Need::Program("cc"));
    for version in VERSIONS {
        let stand_ins = StandIns::new(version);
        let options = [
            "--capture",
            "--call=*",
            "--kind=api",
            "--kind=kernel-dispatch",
            "--kind=memory-allocation",
            "--kind=overhead",
            "--kind=arguments",
        ];
        well(&mut stand_ins.record(&options, "", &["3"]));
        let recorded = Recorded::of(stand_ins.dir());

        let [one, other, freed] = &recorded.allocations[..] else {
            panic!("{version}: {:?}", recorded.allocations);
        };
        for allocated in [one, other] {
            assert_eq!(allocated.operation, AllocationOperation::ALLOCATE);
            assert_eq!(
                (allocated.bytes, allocated.memory),
                (4096, MemoryKind::DEVICE)
            );
            let call = recorded.call(allocated.correlation);
            assert_eq!(call, "hsa_amd_memory_pool_allocate", "{version}");
            assert!(allocated.agent.is_some() && allocated.start <= allocated.end);
        }
        assert_eq!(freed.operation, AllocationOperation::FREE);
        assert_eq!(
            (freed.address, freed.bytes),
            (other.address, 4096),
            "{version}"
        );

        // Learned from the first call of a function.
        let of = |name: &str| {
            let all = recorded.arguments.iter().filter(|(of, _)| of == name);
            all.map(|(_, values)| &values[..]).collect::<Vec<_>>()
        };
        for values in of("hipModuleLaunchKernel").iter().take(3) {
            assert_eq!(
                values[1..8],
                [4, 2, 1, 128, 1, 1, 0],
                "{version}: {values:?}"
            );
        }
        assert_eq!(of("hipMalloc").first().map(|values| values[1]), Some(4096));
        let copies = of("hipMemcpy");
        assert!(copies.iter().all(|values| values[2] == 4096), "{copies:?}");

        let kernel = |name: &str| {
            let mut all = recorded.dispatches.iter();
            *all.find(|one| recorded.kernel(one) == name)
                .expect("a kernel")
        };
        let (saxpy, scale) = (kernel("saxpy"), kernel("_Z5scalePff"));
        let registers = [saxpy, scale].map(|one| (one.registers, one.private_memory));
        assert_eq!(registers, [(8, 0), (24, 16)], "{version}");
        let local = [saxpy, scale].map(|one| (one.static_local_memory, one.dynamic_local_memory));
        assert_eq!(local, [(0, 0), (512, 256)], "{version}");
        let queue = |one: &KernelDispatch| {
            let queue = &recorded.metadata.queues[&one.work.queue];
            recorded.metadata.string(queue.name).to_owned()
        };
        // Before 1.0 the SDK told nothing of streams.
        let expected = match version < 10_000 {
            true => ["queue 1", "queue 2"],
            false => ["default stream", "stream 1"],
        };
        assert_eq!([queue(&saxpy), queue(&scale)], expected, "{version}");

        let details = recorded.overheads.iter();
        let details = details.map(|one| recorded.metadata.string(one.detail));
        let details: Vec<_> = details.filter(|detail| !detail.is_empty()).collect();
        let expected = match version < 10_000 {
            true => "scratch memory alloc",
            false => "scratch memory alloc: 65536 bytes",
        };
        assert_eq!(details, [expected], "{version}");
    }
}

#[test]
fn faults_of_the_sdk_neither_disturb_the_program_nor_pass_silently() {
    needs!(faults_of_the_sdk_neither_disturb_the_program_nor_pass_silently:
        Need::Program("cc"), Need::TraceProcessor);
    // The fault, kernels in the trace, calls of hipModuleLaunchKernel in it, and what is missing.
    let faults = [
        ("late", 5, 6, ""),
        ("foreign", 5, 6, ""),
        ("in_file", 5, 6, ""),
        ("twice", 5, 6, ""),
        ("inverted", 5, 6, ""),
        (
            "dropped",
            5,
            6,
            "ROCm: 3 records dropped by rocprofiler-sdk",
        ),
        ("never", 0, 6, "no record of"),
        (
            "refuse:KERNEL_DISPATCH",
            0,
            6,
            "records no kernels: this version of rocprofiler-sdk does not have it",
        ),
        ("refuse:HIP_RUNTIME_API", 5, 0, "records no calls of hip: "),
        ("refuse:CODE_OBJECT", 0, 6, "records no names of kernels: "),
        ("locked", 0, 0, "CONFIGURATION_LOCKED"),
        (
            "conflict",
            0,
            0,
            "leave other profilers out of ROCP_TOOL_LIBRARIES",
        ),
    ];
    for version in [600, NEWEST] {
        let stand_ins = StandIns::new(version);
        for (fault, of_kernel, of_calls, words) in faults {
            let ended = well(&mut stand_ins.record(&[], fault, &["5"]));
            assert_eq!(ended.text(), "done\n", "{fault}: {}", ended.stderr);
            let info = well(&mut stand_ins.dir().gputrail(["info", "run.pftrace"])).text();
            let check = run(&mut stand_ins.dir().gputrail(["check", "run.pftrace"]));
            if words.is_empty() {
                assert!(
                    ended.stderr.contains("nothing was lost"),
                    "{fault}: {}",
                    ended.stderr
                );
                assert!(info.contains("nothing is missing"), "{fault}: {info}");
                assert_eq!(check.code(), 0, "{fault}: {}", check.text());
            } else {
                let missing = ended.stderr.lines().find(|line| line.contains("MISSING: "));
                let found = missing.is_some_and(|_| ended.stderr.contains(words));
                assert!(found, "{fault}: {}", ended.stderr);
                assert!(!ended.stderr.contains("nothing was lost"), "{fault}");
                assert!(info.contains(words), "{fault}: {info}");
            }
            let mut trace = stand_ins.dir().trace();
            let calls: i64 =
                trace.value("select count(*) from slice where name = 'hipModuleLaunchKernel'");
            let counts = [kernels(&mut trace, "saxpy"), calls];
            assert_eq!(counts, [of_kernel, of_calls], "{fault} {version}");
        }
    }
}

#[test]
fn work_without_times_is_counted() {
    needs!(work_without_times_is_counted: Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new(NEWEST);
    let ended = well(&mut stand_ins.record(&[], "untimed", &["5"]));
    let words = "13 operations of a device completed without times";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    let longer: i64 = stand_ins
        .dir()
        .trace()
        .value("select count(*) from gpu_slice where dur > 0");
    assert_eq!(longer, 0);
}

#[test]
fn another_tool_works_beside_the_recording_wherever_it_comes_from() {
    needs!(another_tool_works_beside_the_recording_wherever_it_comes_from:
        Need::Program("cc"), Need::TraceProcessor);
    for version in [500, NEWEST] {
        let stand_ins = StandIns::new(version);
        let other = stand_ins.library(&["tool.c"], "other.so");
        let linked = stand_ins.dir().join("linked");
        let sdk = stand_ins.dir().join(stand_ins.soname());
        let options = ["-rdynamic", "-Wl,--no-as-needed", sdk.to_str().unwrap()];
        stand_ins.compile(&["program.c", "tool.c"], &linked, &options);
        // Named by the variable, with and without a colon behind it; in the program.
        let mut variable = stand_ins.record(&[], "", &["5"]);
        variable.env("ROCP_TOOL_LIBRARIES", &other);
        let mut colon = stand_ins.record(&[], "", &["5"]);
        colon.env("ROCP_TOOL_LIBRARIES", format!("{}:", other.display()));
        let mut program = stand_ins
            .dir()
            .gputrail(["record", "-o", "run.pftrace", "--"]);
        program
            .arg(&linked)
            .arg(stand_ins.dir().join(RUNTIME))
            .arg("5");
        for command in [&mut variable, &mut colon, &mut program] {
            stand_ins.prepare(command, "");
            let ended = well(command);
            assert_eq!(ended.text(), "done\n", "{}", ended.stderr);
            for words in [
                format!("other tool: version {version}, 1 before"),
                // hipModuleLaunchKernel and hipLaunchKernel, 5 of each, and all else.
                ", 10 kernels".to_owned(),
            ] {
                assert!(ended.stderr.contains(&words), "{words}: {}", ended.stderr);
            }
            let line = ended.stderr.lines().find(|line| line.contains(" enters, "));
            let counts: Vec<&str> = line.expect("a line").split(' ').collect();
            assert_eq!(counts[2], counts[4], "{line:?}");
            let mut trace = stand_ins.dir().trace();
            trace.assert_sound();
            assert_eq!(kernels(&mut trace, "saxpy"), 5, "{version}");
        }
        let log = stand_ins.log();
        let ends: Vec<_> = log.of("finalized").map(|words| words.join(" ")).collect();
        assert_eq!(ends.len(), 2, "{version}: {ends:?}");
    }
}

#[test]
fn programs_that_use_little_of_rocm_run_as_without_us() {
    needs!(programs_that_use_little_of_rocm_run_as_without_us:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new(NEWEST);
    for (mode, saxpy) in [("nothing", 0), ("hsa", 0), ("fork", 2), ("unfinished", 1)] {
        let ended = well(&mut stand_ins.record(&[], "", &[mode]));
        assert_eq!(ended.text(), "done\n", "{mode}: {}", ended.stderr);
        let configured = stand_ins.log().of("tool").count();
        assert_eq!(configured, usize::from(mode != "nothing"), "{mode}");
        if stand_ins.dir().join("run.pftrace").exists() {
            let mut trace = stand_ins.dir().trace();
            // A kernel that runs when the program ends is there, or missing and said to be.
            let words = "MISSING: no record of 1 operation";
            let is_missing = mode == "unfinished" && ended.stderr.contains(words);
            assert_eq!(
                trace.complaints().is_empty(),
                !is_missing,
                "{mode}: {}",
                ended.stderr
            );
            let expected = saxpy - i64::from(is_missing);
            assert_eq!(kernels(&mut trace, "saxpy"), expected, "{mode}");
            std::fs::remove_file(stand_ins.dir().join("run.pftrace")).unwrap();
        } else {
            assert_eq!(mode, "nothing", "{}", ended.stderr);
        }
    }
}

#[test]
fn a_killed_program_leaves_what_the_sdk_had_delivered() {
    needs!(a_killed_program_leaves_what_the_sdk_had_delivered:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new(NEWEST);
    let ended = run(&mut stand_ins.record(&[], "", &["kill", "20"]));
    assert_eq!(ended.code(), 137, "{}", ended.stderr);
    let mut trace = stand_ins.dir().trace();
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "saxpy"), 20);

    // Work that the SDK had not delivered is counted.
    let ended = run(&mut stand_ins.record(&[], "never", &["kill", "20"]));
    let words = "MISSING: no record of 43 operations that calls enqueued";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
}

#[test]
fn a_program_with_another_users_rights_runs_as_without_us() {
    needs!(a_program_with_another_users_rights_runs_as_without_us: Need::Program("cc"), Need::Root);
    let stand_ins = StandIns::new(NEWEST);
    let mode = |path: &Path, mode: u32| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, permissions).unwrap();
    };
    mode(stand_ins.dir().path(), 0o755);
    std::os::unix::fs::chown(&stand_ins.program, Some(65534), None).unwrap();
    mode(&stand_ins.program, 0o4755);
    let mut command = stand_ins.record(&[], "", &["5"]);
    // The log belongs to another user.
    let ended = well(command.env_remove("STANDIN_LOG"));
    assert_eq!(ended.text(), "done\n", "{}", ended.stderr);
}

#[test]
fn managed_memory_and_ranges_of_the_sdks_roctx_are_recorded() {
    needs!(managed_memory_and_ranges_of_the_sdks_roctx_are_recorded:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new(NEWEST);
    well(&mut stand_ins.record(&[], "", &["ranges"]));
    let mut trace = stand_ins.dir().trace();
    trace.assert_sound();
    let inside: i64 = trace.value(
        "select count(*) from slice o join slice i join slice c
         where o.name = 'outer' and i.name = 'inner' and c.name = 'hipModuleLaunchKernel'
           and i.ts between o.ts and o.ts + o.dur and c.ts between i.ts and i.ts + i.dur",
    );
    assert_eq!(inside, 1);
    let marks: i64 = trace.value("select count(*) from slice where name = 'here'");
    assert_eq!(marks, 1);

    // The driver's events need the driver.
    let kinds = ["--kind=memory-copy", "--kind=unified-memory-counter"];
    well(&mut stand_ins.record(&kinds, "", &["managed"]));
    let log = stand_ins.log();
    let asked = log.of("records").any(|kind| kind[0].starts_with("KFD_"));
    let has_driver = Path::new("/dev/kfd").exists();
    assert_eq!(asked, has_driver);
    let info = well(&mut stand_ins.dir().gputrail(["info", "run.pftrace"])).text();
    let words = "no migrations and page faults are recorded: /dev/kfd cannot be opened";
    assert_eq!(info.contains(words), !has_driver, "{info}");
}

#[test]
fn only_what_is_wanted_is_started_and_recording_can_begin_later() {
    needs!(only_what_is_wanted_is_started_and_recording_can_begin_later:
        Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new(NEWEST);
    // Kernels alone: no call is told, and the SDK makes no id for any.
    well(&mut stand_ins.record(&["--kind=kernel-dispatch"], "", &["5"]));
    let log = stand_ins.log();
    assert_eq!((log.of("call").count(), log.of("kernel").count()), (0, 10));
    assert_eq!(kernels(&mut stand_ins.dir().trace(), "saxpy"), 5);
    // Kernels by name.
    for (option, expected) in [("--kernel=s*", [5, 0]), ("--kernel=!saxpy", [0, 5])] {
        well(&mut stand_ins.record(&[option], "", &["5"]));
        let mut trace = stand_ins.dir().trace();
        let counts = ["saxpy", "_Z5scalePff"].map(|name| kernels(&mut trace, name));
        assert_eq!(counts, expected, "{option}");
    }
    // From the first launch by name on.
    well(&mut stand_ins.record(&["--start-on", "hipLaunchKernel"], "", &["5"]));
    let mut trace = stand_ins.dir().trace();
    let counts = ["saxpy", "_Z5scalePff"].map(|name| kernels(&mut trace, name));
    assert_eq!(counts, [4, 5]);
}

#[test]
fn without_rocm_no_library_is_loaded_and_no_file_is_opened_for_it() {
    needs!(without_rocm_no_library_is_loaded_and_no_file_is_opened_for_it:
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
    let of_rocm = |line: &&str| {
        let path = line.split('"').nth(1).unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        let names = ["librocprofiler", "libhsa", "libamdhip", "kfd"];
        names.iter().any(|begin| name.starts_with(begin)) || path.starts_with("/opt/rocm")
    };
    let found: Vec<&str> = calls.lines().filter(of_rocm).collect();
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn agents_say_which_library_is_found_and_what_is_missing_without_one() {
    needs!(agents_say_which_library_is_found_and_what_is_missing_without_one: Need::Program("cc"));
    let stand_ins = StandIns::new(NEWEST);
    let agents = |library: Option<&str>| {
        let mut command = stand_ins.dir().gputrail(["agents"]);
        stand_ins.prepare(&mut command, "");
        command.env("STANDIN_GPUS", "2");
        command.envs(library.map(|path| ("GPUTRAIL_ROCPROFILER", path)));
        well(&mut command).text()
    };
    let own = stand_ins.dir().join(stand_ins.soname());
    let folder = stand_ins.dir().path().to_str();
    for library in [None, own.to_str(), folder] {
        let text = agents(library);
        for words in [
            "Stand-in MI300X 0",
            "Stand-in MI300X 1",
            "gfx942",
            "1.3.0",
            "librocprofiler-sdk.so.1",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
    let text = agents(Some("/nonsense"));
    assert!(!text.contains("MI300X"), "{text}");
}

#[test]
fn a_program_that_is_linked_with_the_library_observes_itself_if_it_begins_before_hip() {
    needs!(a_program_that_is_linked_with_the_library_observes_itself_if_it_begins_before_hip: Need::OpenClToolchain);
    for version in [600, NEWEST] {
        let stand_ins = StandIns::new(version);
        let dir = stand_ins.dir();
        let source = repository("tests/programs/rocm/late.c");
        let late = compiled(dir, C, &["-ldl"], &source, "late");
        let mut command = Command::new(&late);
        stand_ins.prepare(command.arg(dir.join(RUNTIME)), "");
        // The SDK finds the linked library at the first call of HIP, and is initialised without it.
        let ended = well(&mut command);
        assert_eq!(ended.text(), "0 kernels, 0 of them named, no calls\n");
        let words = "rocprofiler-sdk was initialised before gputrail came";
        assert!(ended.stderr.contains(words), "{version}: {}", ended.stderr);
        let ended = well(command.arg("first"));
        let words = "10 kernels, 10 of them named, calls\n";
        assert_eq!(ended.text(), words, "{version}: {}", ended.stderr);
    }
}

#[test]
fn a_library_that_is_opened_after_hips_initialisation_observes_what_follows() {
    needs!(a_library_that_is_opened_after_hips_initialisation_observes_what_follows: Need::OpenClToolchain);
    for version in [600, NEWEST] {
        let stand_ins = StandIns::new(version);
        let dir = stand_ins.dir();
        let source = repository("tests/programs/rocm/late.c");
        let options = ["-shared", "-fPIC", "-Dmain=late", "-ldl"];
        let opened = compiled(dir, C, &options, &source, "liblate.so");
        let program = dir.join("late_opened");
        stand_ins.compile(&["late_opened.c"], &program, &[]);
        let start = |first: bool, library: Option<&str>| {
            let mut command = Command::new(&program);
            command.arg(dir.join(RUNTIME)).arg(&opened);
            command.args(first.then_some("first"));
            stand_ins.prepare(&mut command, "");
            command.envs(library.map(|path| ("GPUTRAIL_ROCPROFILER", path)));
            well(&mut command)
        };
        // HIP has no rocprofiler-sdk then: the library has it loaded.
        for (first, words) in [(false, "6 kernels, 6"), (true, "10 kernels, 10")] {
            let ended = start(first, None);
            let words = format!("{words} of them named, calls\n");
            assert_eq!(ended.text(), words, "{version}: {}", ended.stderr);
            assert_eq!(ended.stderr, "", "{version}");
        }
        let ended = start(false, Some("/nonsense"));
        assert_eq!(ended.text(), "0 kernels, 0 of them named, no calls\n");
        let words = "GPUTRAIL_ROCPROFILER: ";
        assert!(ended.stderr.contains(words), "{version}: {}", ended.stderr);
    }
}

#[test]
fn a_program_that_runs_is_attached_to_and_goes_on() {
    needs!(a_program_that_runs_is_attached_to_and_goes_on: Need::Program("cc"), Need::TraceProcessor);
    let stand_ins = StandIns::new(NEWEST);
    let dir = stand_ins.dir();
    stand_ins.library(&["rocattach.c"], "librocprofiler-sdk-rocattach.so.1");
    let start = |can_be_attached_to: bool, end: &str| {
        let mut program = Command::new(&stand_ins.program);
        program
            .arg(dir.join(RUNTIME))
            .arg("until")
            .arg(dir.join(end));
        stand_ins.prepare(&mut program, "");
        program.env("STANDIN_ATTACH", dir.path());
        program.envs(can_be_attached_to.then_some(("ROCP_TOOL_ATTACH", "1")));
        Running::start(&mut program)
    };
    let attach = |pid: u32, fault: &str| {
        let pid = pid.to_string();
        let mut command = dir.gputrail(["attach", &pid, "-o", "run.pftrace", "--for", "500ms"]);
        command.env("LD_LIBRARY_PATH", dir.path());
        command
            .env("STANDIN_ATTACH", dir.path())
            .env("STANDIN_FAULT", fault);
        run(&mut command)
    };
    let end = |program: Running, file: &str| {
        std::fs::write(dir.join(file), "").unwrap();
        let ended = program.end().well();
        assert_eq!(ended.text(), "done\n", "{}", ended.stderr);
    };

    let program = start(true, "one");
    let pipe = dir.join(&program.id().to_string());
    while !pipe.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let refused = attach(program.id(), "not_permitted");
    assert!(
        refused.stderr.contains("kernel.yama.ptrace_scope"),
        "{}",
        refused.stderr
    );
    let ended = attach(program.id(), "").well();
    assert!(
        ended.stderr.contains("attached to process"),
        "{}",
        ended.stderr
    );
    let again = attach(program.id(), "");
    assert_eq!(again.code(), 125);
    let words = "has gputrail's library already";
    assert!(again.stderr.contains(words), "{}", again.stderr);
    // It goes on for a while without us.
    std::thread::sleep(Duration::from_millis(300));
    end(program, "one");
    let mut trace = dir.trace();
    let calls: i64 = trace.value("select count(*) from slice where name = 'hipModuleLaunchKernel'");
    let recorded = kernels(&mut trace, "saxpy");
    let all = stand_ins.log().of("kernel").count() as i64;
    assert!(
        recorded > 10 && (recorded - calls).abs() <= 1,
        "{recorded} {calls}"
    );
    assert!(recorded <= all, "{recorded} of {all}");

    let program = start(false, "two");
    let refused = attach(program.id(), "");
    assert_eq!(refused.code(), 125);
    for words in [
        "takes no attachers",
        "ROCP_TOOL_ATTACH=1",
        "gputrail record --paused",
    ] {
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
    end(program, "two");
    let refused = attach(std::process::id(), "");
    let words = "has loaded no runtime of ROCm";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
}
