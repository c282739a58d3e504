//! No kind without a source: every kind of record, every field and every named value has been set by a source in a
//! recording of the demo or of a test program, or is an exception with its reason. `schemas/records.md` has the table of
//! what produces each kind; `GPUTRAIL_TESTS_WRITE=1` writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_harness::repository;
use gputrail_record::*;

use crate::command::{TestDir, well};
use crate::cuda::StandIns;
use crate::nvtx;
use crate::tools::tool;

/// What no source sets, and why. A name that some source sets must not be here.
const EXCEPTIONS: &[(&[&str], &str)] = &[
    (
        &["AgentKind: accelerator", "AgentKind: other"],
        "no source runs on such a device here",
    ),
    (
        &[
            "Domain: hip",
            "Domain: hip compiler",
            "Domain: hsa",
            "Domain: ompt",
            "Domain: rccl",
            "KernelDispatch.accumulation_registers",
            "KernelDispatch.scalar_registers",
        ],
        "the stand-in of rocprofiler-sdk makes it, whose recordings are not read here",
    ),
    (
        &[
            "Domain: kernel dispatch",
            "Domain: memory allocation",
            "Domain: memory copy",
            "Domain: resource",
            "Domain: synchronization",
        ],
        "a domain of callbacks: subscribers get its operations, and no record names it",
    ),
    (
        &["Unfinished: no completion recorded"],
        "a value of joined records, which tools get: captures have records as they were written",
    ),
    (
        &[
            "Unfinished: no times from the runtime",
            "Unfinished: not complete at a flush",
            "flag 1",
            "Completion.unfinished",
            "Unfinished: not complete when the recording ended",
            "NoteKind: calls after the end",
            "NoteKind: records missing",
            "NoteKind: recording paused",
            "NoteKind: recording resumed",
            "NoteKind: recording started",
            "NoteKind: recording stopped",
            "SynchronizationType: semaphore",
            "ExternalKind: custom1",
            "ExternalKind: openacc",
            "OverheadKind: waiting for a block",
            "SamplingTotals.dropped",
            "CodeBytes.flags",
            "Allocation.external",
            "Completion.status",
        ],
        "the tests of command buffers, flushes, control and NVTX make it, whose recordings are not read here",
    ),
    (
        &[
            "CounterInvalid: a counter that it needs has no value",
            "CounterInvalid: the counter was never scheduled",
            "CounterInvalid: the system does not allow it",
            "CounterUsage: cycles",
        ],
        "hardware events of processors, which the machines of the tests do not have",
    ),
    (
        &["CounterInvalid: the dispatch was not alone on the agent"],
        "libcupti with another number of values than kernels were launched, which no stand-in has",
    ),
    (
        &[
            "CounterInvalid: overflow",
            "CounterUsage: bytes",
            "CounterUsage: milliseconds",
        ],
        "unit tests of values and readers have it; no counter of a source has such a value",
    ),
    (
        &["CounterUsage: microjoules"],
        "energy of processors, which the machines of the tests do not tell; a test of counting has it from made-up files",
    ),
    (
        &[
            "CounterInvalid: several passes: the kernel uses shared virtual memory",
            "CounterInvalid: several passes: the kernel uses a pipe",
            "CounterInvalid: several passes: memory of the kernel is mapped",
            "CounterInvalid: several passes: memory of the kernel lies in the program's own",
            "CounterInvalid: several passes: the memory of the kernel is too large to save",
            "CounterInvalid: several passes: the kernel may print or change variables of its program",
            "CounterInvalid: several passes: an argument of the kernel is not known",
            "CounterInvalid: several passes: memory of the kernel could not be saved",
            "CounterInvalid: several passes: a pass failed or lasted too long",
            "CounterInvalid: the dispatch could not be waited for, as after a user event, or on a thread that began late",
        ],
        "the tests of kernels that run in several passes make it, whose recordings are not read here",
    ),
    (
        &["CodeBytes.offset"],
        "the host's sources set it: no code object of these recordings is larger than a piece of it",
    ),
    (
        &[
            "StochasticSample.thread",
            "Absent.arbiter",
            "Absent.hardware",
            "Absent.time",
            "Absent.wave count",
        ],
        "samples of rocprofv3's tables lack it, and stochastic samples are of waves, which run on no thread of the host",
    ),
    (
        &[
            "Snapshot.stall_brmsg",
            "Snapshot.stall_exp",
            "Snapshot.stall_lds_direct",
            "Snapshot.stall_misc",
            "Snapshot.stall_scalar",
        ],
        "the simulated pipes of these types accept one instruction each cycle, and stall none",
    ),
    (
        &["MemoryCounters.bvh"],
        "the simulated GPU does not trace rays",
    ),
];

/// The sources, as the table has them.
const SOURCES: [&str; 3] = ["simulated GPU", "OpenCL and markers", "CUDA (stand-in)"];

/// The names of what has been seen, and the sources that set it, as bits.
#[derive(Default)]
struct Seen(BTreeMap<String, u8>);

impl Seen {
    fn add(&mut self, source: usize, name: String) {
        *self.0.entry(name).or_default() |= 1 << source;
    }

    /// Adds the records of a run of them.
    fn records(&mut self, source: usize, run: &[u8]) {
        for record in Records::new(run) {
            let Some(layout) = RecordLayout::of(record.kind()) else {
                continue;
            };
            let kind = record.kind().name().unwrap_or_default();
            self.add(source, format!("kind {kind}"));
            for bit in 0..8 {
                if record.header().has(1 << bit) {
                    self.add(source, format!("flag {bit}"));
                }
            }
            self.fields(source, layout.name, layout.fields, record.bytes());
            if let Some(sample) = record.read::<StochasticSample>() {
                self.sample(source, &sample);
            }
            if let Some(queue) = record.read::<Queue>() {
                for bit in (0..32).filter(|bit| queue.properties >> bit & 1 == 1) {
                    self.add(source, format!("queue property {bit}"));
                }
            }
            if let Some(operation) = record.read::<OperationName>() {
                let name = OperationGroup(operation.group as u8).name();
                self.add(
                    source,
                    format!("OperationGroup: {}", name.unwrap_or_default()),
                );
            }
        }
    }

    fn fields(&mut self, source: usize, of: &str, fields: &[Field], bytes: &[u8]) {
        for field in fields.iter().filter(|field| !field.is_reserved()) {
            let from = field.offset.min(bytes.len());
            let value = &bytes[from..(field.offset + field.bytes).min(bytes.len())];
            let mut number = [0; 8];
            let short = value.len().min(8);
            number[..short].copy_from_slice(&value[..short]);
            let number = u64::from_le_bytes(number);
            match field.values {
                FieldValues::Fields(parts) => {
                    // The fields of all work are the same, whatever the work.
                    let of = if field.name == "work" {
                        "WorkHeader"
                    } else {
                        field.name
                    };
                    self.fields(source, of, parts, value);
                    continue;
                }
                FieldValues::Named(name, values) => {
                    if let Some((_, value)) = values.iter().find(|(value, _)| *value == number) {
                        self.add(source, format!("{name}: {value}"));
                    }
                }
                FieldValues::Bits(name, bits) => {
                    for (bit, at, width) in bits {
                        if number >> at & ((1 << width) - 1) != 0 {
                            self.add(source, format!("{name}.{bit}"));
                        }
                    }
                }
                FieldValues::Number => {}
            }
            if value.iter().any(|byte| *byte != 0) {
                self.add(source, format!("{of}.{}", field.name));
            }
        }
    }

    /// The values that a stochastic sample has in bit fields, and the reason that follows from them.
    fn sample(&mut self, source: usize, sample: &StochasticSample) {
        let mut value = |of: &str, name: Option<&str>| {
            self.add(source, format!("{of}: {}", name.unwrap_or_default()));
        };
        value(
            "InstructionType",
            InstructionType(sample.issue.instruction()).name(),
        );
        if let Some(reason) = sample.not_issued() {
            value("NotIssued", reason.name());
        }
        value("StallReason", StallReason::of(sample).name());
    }

    /// Adds the records of a capture, names included, without its reader: the chunks follow each other.
    fn capture(&mut self, source: usize, path: &Path) {
        let bytes = std::fs::read(path).expect("a capture");
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let mut at = 64;
        while at + 48 <= bytes.len() {
            assert_eq!(&bytes[at..at + 4], b"GTCK", "{}", path.display());
            let payload = at + 48..at + 48 + word(at + 8);
            at = payload.end;
            self.records(source, &bytes[payload]);
        }
    }

    /// Adds the captures and the records of tools in a directory, which are removed.
    fn directory(&mut self, source: usize, dir: &TestDir) {
        for name in dir.files(".gputrail") {
            self.capture(source, &dir.join(&name));
            std::fs::remove_file(dir.join(&name)).unwrap();
        }
        for name in dir.files(".records") {
            self.records(source, &std::fs::read(dir.join(&name)).unwrap());
            std::fs::remove_file(dir.join(&name)).unwrap();
        }
    }
}

/// Everything that has to be seen.
fn wanted() -> BTreeSet<String> {
    let mut wanted = BTreeSet::new();
    for (_, name) in Kind::ALL {
        wanted.insert(format!("kind {name}"));
    }
    wanted.extend((0..8).map(|bit| format!("flag {bit}")));
    wanted.extend((0..4).map(|bit| format!("queue property {bit}")));
    for layout in LAYOUTS {
        add_fields(&mut wanted, layout.name, layout.fields);
    }
    for (_, name) in OperationGroup::ALL {
        wanted.insert(format!("OperationGroup: {name}"));
    }
    wanted
}

fn add_fields(wanted: &mut BTreeSet<String>, of: &str, fields: &[Field]) {
    for field in fields.iter().filter(|field| !field.is_reserved()) {
        let name = format!("{of}.{}", field.name);
        match field.values {
            FieldValues::Fields(parts) => {
                let of = if field.name == "work" {
                    "WorkHeader"
                } else {
                    field.name
                };
                add_fields(wanted, of, parts);
            }
            // Any kind may be lost.
            FieldValues::Named("Kind", _) | FieldValues::Number => drop(wanted.insert(name)),
            FieldValues::Named(of, values) => {
                wanted.insert(name);
                wanted.extend(values.iter().map(|(_, value)| format!("{of}: {value}")));
            }
            FieldValues::Bits(of, bits) => {
                wanted.extend(bits.iter().map(|(bit, ..)| format!("{of}.{bit}")));
            }
        }
    }
}

/// Runs of the demo.
fn simulate(seen: &mut Seen, dir: &TestDir, tool: &str) {
    let counters = "SQ_WAVES,FetchSize,FETCH_SIZE,VALUUtilization,SQ_INST_CYCLES_SALU,VALUInsts";
    let sampled = ["--steps", "1", "--pc-sampling", "stochastic"];
    let instructions = [&sampled[..], &["--interval", "4096instructions"]].concat();
    let runs: [&[&str]; 9] = [
        &["--steps", "6"],
        &["--steps", "1", "--pc-sampling", "host-trap"],
        &sampled,
        &instructions,
        &["--steps", "1", "--environment-period", "1ms"],
        &[
            "--steps",
            "1",
            "--kind",
            "kernel-dispatch",
            "--kind",
            "instruction-count",
        ],
        &["--steps", "1", "--counters", counters],
        &[
            "--steps",
            "1",
            "--counters",
            counters,
            "--counters-mode",
            "range",
        ],
        &[
            "--steps",
            "1",
            "--counters",
            counters,
            "--counters-period",
            "1ms",
        ],
    ];
    for options in runs {
        let demo = ["demo", "-q", "--capture"].iter().chain(options);
        well(&mut dir.gputrail(demo));
        seen.directory(0, dir);
    }
    for method in ["stochastic", "host-trap"] {
        let demo = ["demo", "-q", "--steps", "4", "--tool", tool];
        well(with_tool(&mut dir.gputrail(demo), method));
        seen.directory(0, dir);
    }
}

fn with_tool<'a>(command: &'a mut Command, method: &str) -> &'a mut Command {
    command
        .env("EVERY_KIND", "tool.records")
        .env("EVERY_KIND_SAMPLING", method)
}

/// Programs on PoCL.
fn record_opencl(seen: &mut Seen, dir: &TestDir, tool: &str) {
    let sampled: &[&str] = &["--pc-sampling", "host-trap", "--interval", "1ms"];
    let counted: &[&str] = &["--counters", "TASK_CLOCK"];
    let small: &[&str] = &[
        "--policy",
        "discard",
        "--buffers",
        "64K",
        "--buffer-size",
        "16K",
    ];
    let counted_now_and_then = &["--counters", "TASK_CLOCK", "--counters-period", "1ms"];
    let programs: [(&str, &[&str], &[&str]); 11] = [
        ("events", &[], &[]),
        ("image_copies", &[], &["--call-stacks"]),
        ("hot_loop", &["", "100"], &["--kernel-debug-info"]),
        ("command_buffers", &[], sampled),
        ("rare", &[], counted),
        ("waits", &[], counted_now_and_then),
        ("objects", &[], &[]),
        ("lives", &["2", "_exit", "0"], &[]),
        ("lives", &["2", "exec"], &[]),
        ("lives", &["2", "crash"], &[]),
        ("lives", &["10000"], small),
    ];
    for (program, arguments, options) in programs {
        let program = dir.program(program);
        let options = [&["-q", "--capture", "--tool", tool], options].concat();
        let mut command = dir.record_with(&options, Driver::Threaded, &program, arguments);
        if options.contains(&"--kernel-debug-info") {
            // The tool samples the one agent.
            command.env("EVERY_KIND_AGENTS", "1");
        }
        run(with_tool(&mut command, "host-trap"));
        seen.directory(1, dir);
    }
    // A program that is killed while it hangs, and one that still runs when the recording ends.
    let hangs = dir.program("hangs").display().to_string();
    let says = dir.join("hangs.txt").display().to_string();
    let begin = "rm -f $1; $0 user-event > $1 2> /dev/null & until [ -s $1 ]; do sleep 0.01; done;";
    for end in ["kill -9 $!; wait $!; true", "echo $! > $1.pid"] {
        let script = format!("{begin} {end}");
        let arguments = ["-c", &script, &hangs, &says];
        run(&mut dir.record_with(&["-q", "--capture"], Driver::Threaded, "sh", &arguments));
        seen.directory(1, dir);
    }
    let running = std::fs::read_to_string(says + ".pid").expect("the id of the process");
    well(Command::new("kill").args(["-9", running.trim()]));
    let include = format!("-I{}", repository("include").display());
    let options = [&include, "-DCL_TARGET_OPENCL_VERSION=120", "-lOpenCL"];
    nvtx::compile(dir, "nvtx_other", &["-shared", "-fPIC"]);
    let programs = [
        vec![nvtx::compile(dir, "all_markers", &options)],
        vec![
            nvtx::compile(dir, "nvtx", &[]),
            dir.join("nvtx_other.out").display().to_string(),
        ],
        vec![nvtx::compile(dir, "nvtx_data", &[])],
        vec![nvtx::compile_names(dir), "opencl".to_owned()],
    ];
    for words in programs {
        let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let options = ["-q", "--capture"];
        run(&mut dir.record_with(&options, Driver::Threaded, &words[0], &arguments));
        seen.directory(1, dir);
    }
}

/// The program of the stand-in.
fn record_cuda(seen: &mut Seen, tool: &str) {
    let stand_ins = StandIns::new();
    for arguments in [
        &["10", "3"][..],
        &["others"],
        &["objects"],
        &["ids"],
        &["graphs"],
        &["streams"],
        &["rare", "others"],
        &["rare", "graphs"],
    ] {
        let options = ["-q", "--capture", "--call-stacks", "--tool", tool];
        let (fault, arguments) = match arguments {
            ["rare", rest @ ..] => ("rare", rest),
            arguments => ("", arguments),
        };
        let mut command = stand_ins.record_with(&options, "1305", fault, arguments);
        well(with_tool(&mut command, ""));
        seen.directory(2, stand_ins.dir());
    }
    let options = ["-q", "--capture", "--pc-sampling", "stochastic"];
    let options = [&options[..], &["--interval", "4096cycles"]].concat();
    for fault in ["", "rare"] {
        well(&mut stand_ins.record_with(&options, "1305", fault, &["sampled", "20"]));
        seen.directory(2, stand_ins.dir());
    }
}

const BEGIN: &str = "## Producers\n";
const END: &str = "\n## Activity\n";

/// The section of the document that says what produces what.
fn section(seen: &Seen, wanted: &BTreeSet<String>) -> String {
    let mut text = String::from(
        "\nWhat the recordings of the end-to-end tests contain (`kinds.rs` there makes this section): the kinds, by the source \
         that\nproduced them. No GPU of NVIDIA's took part: CUDA is a stand-in of its libraries.\n\n",
    );
    text += &format!("| kind | {} |\n|---|---|---|---|\n", SOURCES.join(" | "));
    for (_, name) in Kind::ALL {
        let by = seen.0.get(&format!("kind {name}")).copied().unwrap_or(0);
        let cells = (0..SOURCES.len()).map(|source| if by >> source & 1 == 1 { "yes" } else { "" });
        let cells: Vec<&str> = cells.collect();
        text += &format!("| {name} | {} |\n", cells.join(" | "));
    }
    let stand_in = |name: &&String| seen.0.get(*name) == Some(&4);
    let only: Vec<&str> = wanted
        .iter()
        .filter(stand_in)
        .map(|name| &name[..])
        .collect();
    text += &format!(
        "\nFields and values that only CUDA's stand-in has produced: {}.\n",
        only.iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    if !EXCEPTIONS.is_empty() {
        text += "\nWhat no recording of the tests contains, and why:\n\n";
    }
    for (names, why) in EXCEPTIONS {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        text += &format!("* {}: {why}\n", names.join(", "));
    }
    text
}

#[test]
fn every_kind_field_and_value_has_a_source() {
    needs!(every_kind_field_and_value_has_a_source:
        Need::Pocl, Need::OpenClToolchain, Need::Program("cc"), Need::Nvtx);
    let dir = TestDir::new();
    let library = tool(&dir, &[], "tests/programs/every_kind.c", "libevery_kind.so");
    let mut seen = Seen::default();
    simulate(&mut seen, &dir, &library);
    record_opencl(&mut seen, &dir, &library);
    record_cuda(&mut seen, &library);

    let wanted = wanted();
    let exceptions: Vec<&str> = EXCEPTIONS
        .iter()
        .flat_map(|(names, _)| names.iter().copied())
        .collect();
    let excepted = |name: &str| exceptions.contains(&name);
    let missing = wanted.iter().filter(|name| !seen.0.contains_key(*name));
    let missing: Vec<&String> = missing.filter(|name| !excepted(name)).collect();
    let is_stale = |name: &&str| seen.0.contains_key(*name) || !wanted.contains(*name);
    let stale: Vec<&str> = exceptions.iter().copied().filter(is_stale).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "no source sets {missing:#?}\nexceptions that are none: {stale:#?}"
    );

    let document = repository("schemas/records.md");
    let text = std::fs::read_to_string(&document).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("a section");
    let (written, after) = rest.split_once(END).expect("a section after it");
    let section = section(&seen, &wanted);
    if std::env::var_os("GPUTRAIL_TESTS_WRITE").is_some() {
        std::fs::write(&document, format!("{before}{BEGIN}{section}{END}{after}")).unwrap();
    } else {
        assert_eq!(
            written, section,
            "GPUTRAIL_TESTS_WRITE=1 writes the section"
        );
    }
}
