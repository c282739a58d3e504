//! `--counters`: values of counters of the simulated GPU and of PoCL, in traces, tables and summaries.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;

use gputrail_capture::Reader;
use gputrail_harness::machine::{Need, skipped};
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::{compile_with, run};
use gputrail_harness::trace::Trace;
use gputrail_harness::{needs, repository};
use gputrail_record::*;
use serde_json::Value;

use crate::command::{TestDir, well};
use crate::transparency::ffmpeg;

const SOFTWARE: &str = "TASK_CLOCK,PAGE_FAULTS,CONTEXT_SWITCHES,CPU_MIGRATIONS";

/// The table of counters: kernel and counter with the number of dispatches, the least, the greatest value and the sum.
fn counters(dir: &TestDir, file: &str) -> HashMap<(String, String), (u64, f64, f64, f64)> {
    let text = well(&mut dir.gputrail(["summary", file, "--format", "json"])).text();
    let tables: Value = serde_json::from_str(&text).unwrap();
    let rows = tables["counters"].as_array().expect("a table of counters");
    let row = |row: &Value| {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        let number = |key: &str| row[key].as_f64().unwrap();
        (
            (text("kernel"), text("counter")),
            (
                row["dispatches"].as_u64().unwrap(),
                number("min"),
                number("max"),
                row["sum"].as_f64().unwrap_or(f64::NAN),
            ),
        )
    };
    rows.iter().map(row).collect()
}

#[test]
fn counters_of_the_demo_are_in_its_trace_tables_and_summary() {
    needs!(counters_of_the_demo_are_in_its_trace_tables_and_summary: Need::TraceProcessor);
    let dir = TestDir::new();
    let names = "SQ_WAVES,VALUInsts,GRBM_COUNT";
    well(&mut dir.gputrail([
        "demo",
        "-q",
        "--capture",
        "--counters",
        names,
        "--steps",
        "1",
    ]));
    let of_trace = counters(&dir, "demo.pftrace");
    let seconds: i64 = Trace::open(dir.join("demo.pftrace"))
        .value("select (trace_end() - trace_start()) / 1000000000");
    assert_eq!(seconds, 0);
    let of_capture = counters(&dir, "demo.gputrail");
    assert_eq!(
        format!("{of_capture:?}").len(),
        format!("{of_trace:?}").len()
    );
    for (key, values) in &of_trace {
        // Ratios have no sum.
        assert_eq!(values.3.is_nan(), key.1 == "VALUInsts", "{key:?}");
        let (dispatches, min, max, _) = of_capture[key];
        assert_eq!((dispatches, min, max), (values.0, values.1, values.2));
    }
    assert!(of_trace.len() > 15, "{of_trace:?}");
    let mut trace = Trace::open(dir.join("demo.pftrace"));
    let tracks: Vec<(String, i64)> = trace.assert_sound().rows(
        "select name, count(*) from gpu_counter_track join counter on counter.track_id = gpu_counter_track.id \
         where name like '%SQ_WAVES%' or name like '%VALUInsts%' group by 1",
    );
    assert_eq!(tracks.len(), 4, "two counters of two devices: {tracks:?}");
    // A value stands beside each kernel, and its track has it while the kernel runs.
    let kernels: Vec<(i64,)> = trace.rows(
        "select count(*) from gpu_slice join args using (arg_set_id) where key = 'SQ_WAVES' or args.flat_key = 'SQ_WAVES'",
    );
    let dispatches: u64 = of_trace
        .iter()
        .filter(|((_, counter), _)| counter == "SQ_WAVES")
        .map(|(_, values)| values.0)
        .sum();
    assert_eq!(kernels, [(dispatches as i64,)]);
    let drawn: Vec<(i64,)> = trace.rows(
        "select count(*) from gpu_slice join counter using (ts) \
         join gpu_counter_track on counter.track_id = gpu_counter_track.id \
         where gpu_counter_track.name glob '*SQ_WAVES*' and counter.value = cast(extract_arg(gpu_slice.arg_set_id, 'SQ_WAVES') as int)",
    );
    assert_eq!(drawn, kernels);
    // The tables of rocprofv3 have the same values, also after they were read back.
    well(&mut dir.gputrail(["convert", "demo.gputrail", "-o", "tables.csv"]));
    well(&mut dir.gputrail(["convert", "tables.csv", "-o", "back.pftrace"]));
    let back = counters(&dir, "back.pftrace");
    assert_eq!(back.len(), of_trace.len());
    for (key, (dispatches, min, max, _)) in &of_trace {
        let (again, least, most, _) = back[key];
        assert_eq!(again, *dispatches, "{key:?}");
        assert!((least - min).abs() <= 1e-5 * min.abs() && (most - max).abs() <= 1e-5 * max.abs());
    }
}

#[test]
fn operations_per_byte_of_kernels_are_in_the_summary() {
    let dir = TestDir::new();
    let names = "SQ_INSTS_VALU,FETCH_SIZE,WRITE_SIZE,VALUBusy,MemUnitBusy";
    let counters = ["--counters", names];
    let demo = ["demo", "-q", "--steps", "1"];
    well(&mut dir.gputrail([&demo[..], &counters[..]].concat()));
    let text = well(&mut dir.gputrail(["summary", "demo.pftrace", "--format", "json"])).text();
    let tables: Value = serde_json::from_str(&text).expect("JSON");
    let number = |value: &Value| value.as_f64().expect("a number");
    let rows = tables["roofline"].as_array().expect("a table");
    assert!(rows.len() > 5, "{rows:?}");
    for row in rows {
        let sum = |name: &str| {
            let all = tables["counters"].as_array().expect("a table").iter();
            let mut of_row =
                all.filter(|of| of["kernel"] == row["kernel"] && of["counter"] == name);
            number(&of_row.next().expect("a counter")["sum"])
        };
        let bytes = (sum("FETCH_SIZE") + sum("WRITE_SIZE")) * 1024.0;
        let expected = sum("SQ_INSTS_VALU") * 64.0 / bytes;
        let told = number(&row["operations_per_byte"]);
        assert!(
            (told - expected).abs() <= 1e-6 * expected,
            "{row}: {expected}"
        );
    }
    // Nothing is busy for more than all of the time.
    for row in tables["counters"].as_array().expect("a table") {
        let name = row["counter"].as_str().expect("a name");
        let is_share = ["VALUBusy", "MemUnitBusy"].contains(&name);
        assert!(!is_share || number(&row["max"]) <= 100.0, "{row}");
    }
}

#[test]
fn a_device_is_counted_at_a_period() {
    let dir = TestDir::new();
    let arguments = [
        "--counters",
        "SQ_WAVES,GRBM_GUI_ACTIVE",
        "--counters-period",
        "100us",
    ];
    well(
        &mut dir.gputrail([&["demo", "-q", "--capture", "--steps", "1"], &arguments[..]].concat()),
    );
    let info = well(&mut dir.gputrail(["info", "demo.gputrail"])).text();
    assert!(info.contains(
        "counters collected at a period: agent 1: SQ_WAVES, GRBM_GUI_ACTIVE, of the agent every 100us"
    ));
    assert!(info.contains(", 0 of them invalid"), "{info}");
    let periods = |file: &str| {
        let text = well(&mut dir.gputrail(["summary", file, "--format", "json"])).text();
        let tables: Value = serde_json::from_str(&text).expect("JSON");
        tables["period_counters"].clone()
    };
    let of_trace = periods("demo.pftrace");
    assert_eq!(of_trace, periods("demo.gputrail"));
    let rows = of_trace.as_array().expect("a table");
    assert_eq!(rows.len(), 4, "two counters of two devices: {rows:?}");
    for row in rows {
        let number = |key: &str| row[key].as_f64().expect("a number");
        assert!(number("min") <= number("median") && number("median") <= number("max"));
        assert!(number("periods") > 10.0 && number("sum") > 0.0, "{row}");
    }
    // A period that is longer than the run ends with it.
    let long = [
        "demo",
        "-q",
        "--steps",
        "1",
        "--counters",
        "SQ_WAVES",
        "--counters-period",
        "60m",
    ];
    well(&mut dir.gputrail(long));
    let rows = periods("demo.pftrace");
    let rows = rows.as_array().expect("a table");
    assert_eq!(rows.len(), 2, "a counter of two devices: {rows:?}");
    for row in rows {
        assert!(
            row["periods"] == 1 && row["sum"].as_f64() > Some(0.0),
            "{row}"
        );
    }
}

#[test]
fn counter_tracks_have_units_and_agents_say_how_they_count() {
    needs!(counter_tracks_have_units_and_agents_say_how_they_count: Need::TraceProcessor);
    let dir = TestDir::new();
    let names = "FETCH_SIZE,VALUBusy,VALUInsts,SQ_WAVES";
    well(&mut dir.gputrail(["demo", "-q", "--steps", "1", "--counters", names]));
    let mut trace = Trace::open(dir.join("demo.pftrace"));
    let tracks: Vec<(String, Option<String>, String)> = trace.assert_sound().rows(
        "select name, unit, description from gpu_counter_track where name glob 'GPU 0 *' and name not glob '*kernels*'",
    );
    let unit = |name: &str| {
        let mut found = tracks.iter().filter(|(track, ..)| track.contains(name));
        let (_, unit, description) = found.next().unwrap_or_else(|| panic!("{name}: {tracks:?}"));
        (unit.clone().unwrap_or_default(), description.clone())
    };
    for name in ["FETCH_SIZE", "VALUBusy"] {
        assert_ne!(unit(name).0, "", "{name}: {tracks:?}");
    }
    assert!(unit("VALUInsts").1.ends_with("; unit: ratio"), "{tracks:?}");
    let agents = well(&mut dir.gputrail(["agents"])).text();
    let line = "of each dispatch, in up to 64 passes; of each range; at a period of at least 10us";
    let counts = |text: &str| {
        let mut lines = text.lines().map(str::trim);
        lines.any(|text| text.starts_with("counters") && text.contains(line))
    };
    assert!(counts(&agents), "{agents}");
}

#[test]
fn unknown_counters_are_refused_with_the_nearest_names() {
    let dir = TestDir::new();
    let refused = run(&mut dir.gputrail(["demo", "--counters", "SQ_WAVE,GRBM_CONT"]));
    assert_eq!(refused.code(), 125);
    let expected = "there is no counter or metric \"SQ_WAVE\"; the nearest is SQ_WAVES; there is no counter or metric \
                    \"GRBM_CONT\"; the nearest is GRBM_COUNT";
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    assert!(!dir.join("demo.pftrace").exists());
    // What is there is counted, and the rest is told once.
    let counted =
        run(&mut dir.gputrail(["demo", "--steps", "1", "--counters", "SQ_WAVE,GRBM_COUNT,"]));
    assert_eq!(counted.code(), 0);
    let told = counted
        .stderr
        .matches("\"SQ_WAVE\"; the nearest is SQ_WAVES")
        .count();
    assert_eq!(told, 1, "{}", counted.stderr);
    let kept = counters(&dir, "demo.pftrace");
    assert!(kept.keys().all(|(_, counter)| counter == "GRBM_COUNT") && !kept.is_empty());
    std::fs::remove_file(dir.join("demo.pftrace")).unwrap();
    let checked =
        run(&mut dir.gputrail(["counters", "check", "--agent", "sim", "SQ_WAVE,GRBM_CONT"]));
    assert!(checked.stderr.contains(expected), "{}", checked.stderr);
    well(&mut dir.gputrail(["counters", "check", "--agent", "sim", "SQ_WAVES,"]));
    let text = well(&mut dir.gputrail(["counters", "list", "--agent", "sim"])).text();
    assert!(
        text.contains("SQ_WAVES") && text.contains("VALUBusy"),
        "{text}"
    );
    std::fs::write(
        dir.join("pmc.txt"),
        "# waves\npmc: SQ_WAVES, GRBM_COUNT\nVALUInsts\n",
    )
    .unwrap();
    well(&mut dir.gputrail(["demo", "-q", "--steps", "1", "--counters-file", "pmc.txt"]));
    assert!(counters(&dir, "demo.pftrace").len() > 15);
    for (line, problem) in [
        ("gpu: all", "pmc.txt:2: gpu: expected numbers of devices"),
        (
            "range : 4:1",
            "pmc.txt:2: range: expected numbers of dispatches",
        ),
        (
            "jobs:",
            "pmc.txt:2: expected names of counters, as in `pmc: A B`, or range, gpu or kernel; found \"jobs\"",
        ),
        (
            "{",
            "pmc.txt:2: expected the name of a counter, found \"{\"",
        ),
    ] {
        std::fs::write(dir.join("pmc.txt"), format!("pmc : SQ_WAVES\n{line}\n")).unwrap();
        let refused = run(&mut dir.gputrail(["demo", "--counters-file", "pmc.txt"]));
        assert_eq!(refused.code(), 125);
        let text = refused.stderr.replace('\n', " ");
        assert!(text.contains(problem), "{text}");
    }
    let at_a_period = [
        "demo",
        "--counters-file",
        "pmc.txt",
        "--counters-mode",
        "device",
    ];
    std::fs::write(dir.join("pmc.txt"), "pmc: SQ_WAVES\nkernel: gemm\n").unwrap();
    let refused = run(&mut dir.gputrail(at_a_period));
    assert!(
        refused.stderr.contains("chooses kernels"),
        "{}",
        refused.stderr
    );
    std::fs::write(dir.join("pmc.txt"), "").unwrap();
    let empty = run(&mut dir.gputrail(["demo", "--counters-file", "pmc.txt"]));
    assert!(
        empty.stderr.contains("no counter is named"),
        "{}",
        empty.stderr
    );
}

/// A file of counters and kernels, and whether the dispatch with this number on its device, of a kernel with this name, is
/// counted in it.
type Selection = (&'static str, &'static str, fn(&Selected<'_>) -> bool);

/// A dispatch of the demo: its device, its number in the process, the name of its kernel, and its number of that kernel.
struct Selected<'a> {
    device: u32,
    number: usize,
    name: &'a str,
    iteration: usize,
}

#[test]
fn a_file_chooses_the_kernels_that_are_counted() {
    let dir = TestDir::new();
    let selections: [Selection; 5] = [
        ("a.txt", "pmc: SQ_WAVES\nkernel: gemm\n", |of| {
            of.name.contains("gemm")
        }),
        ("b.txt", "pmc: SQ_WAVES\ngpu: 1\n", |of| of.device == 2),
        // The first kernels of both devices, whose order is known but for calls of several threads at the same time.
        ("c.txt", "pmc: SQ_WAVES\nrange: 2:\n", |of| of.number >= 2),
        (
            "d.yaml",
            "jobs:\n  - pmc: [SQ_WAVES]\n    kernel_include_regex: 'g.mm'\n    kernel_iteration_range: '[2-3]'\n",
            |of| of.name.contains("gemm") && (2..=3).contains(&of.iteration),
        ),
        (
            "e.json",
            "{\"jobs\": [{\"pmc\": [\"SQ_WAVES\"], \"kernel_exclude_regex\": \"gemm|relu\"}]}",
            |of| !of.name.contains("gemm") && !of.name.contains("relu"),
        ),
    ];
    for (file, text, is_counted) in selections {
        std::fs::write(dir.join(file), text).unwrap();
        let args = [
            "demo",
            "-q",
            "--steps",
            "2",
            "--capture",
            "--counters-file",
            file,
        ];
        well(&mut dir.gputrail(args));
        let reader = Reader::open(&dir.join("demo.gputrail")).expect("a capture");
        let (mut values, mut kernels) = (HashSet::new(), Vec::new());
        let mut chunks = reader.chunks();
        while let Some(chunk) = chunks.next() {
            for record in chunk.records() {
                values.extend(record.read::<CounterValue>().map(|value| value.work));
                kernels.extend(record.read::<KernelDispatch>());
            }
        }
        // Kernels that kernels launch have no stream, and are not counted.
        kernels.retain(|kernel| kernel.work.stream != StreamId::NONE);
        kernels.sort_by_key(|kernel| kernel.work.enqueued);
        let (mut expected, mut iterations) = (HashSet::new(), HashMap::<KernelId, usize>::new());
        for (number, kernel) in kernels.iter().enumerate() {
            let iteration = iterations.entry(kernel.kernel).or_default();
            *iteration += 1;
            let metadata = reader.metadata();
            let symbol = &metadata.kernels[&kernel.kernel];
            let of = Selected {
                device: kernel.work.agent.0,
                number,
                name: match metadata.string(symbol.demangled) {
                    "" => metadata.string(symbol.name),
                    demangled => demangled,
                },
                iteration: *iteration,
            };
            if is_counted(&of) {
                expected.insert(kernel.work.id);
            }
        }
        assert!(
            !expected.is_empty() && expected.len() < kernels.len(),
            "{file}"
        );
        assert_eq!(values, expected, "{file}");
        std::fs::remove_file(dir.join("demo.gputrail")).unwrap();
    }
}

/// The values of a capture by dispatch and name, and the times of dispatches.
type Counted = (
    HashMap<(WorkId, String), CounterValue>,
    HashMap<WorkId, u64>,
);

fn counted(dir: &TestDir) -> Counted {
    let reader = Reader::open(&dir.join("run.gputrail")).expect("a capture");
    let (mut values, mut times, mut kernels) = (HashMap::new(), HashMap::new(), Vec::new());
    let mut chunks = reader.chunks();
    while let Some(chunk) = chunks.next() {
        for record in chunk.records() {
            if let Some(value) = record.read::<CounterValue>() {
                let name = reader.metadata().string(value.counter).to_owned();
                let second = values.insert((value.work, name), value);
                assert_eq!(second, None, "a value is there twice");
            }
            kernels.extend(record.read::<KernelDispatch>().map(|kernel| kernel.work.id));
            if let Some(completion) = record.read::<Completion>() {
                times.insert(completion.work, completion.end.0 - completion.start.0);
            }
        }
    }
    times.retain(|work, _| kernels.contains(work));
    (values, times)
}

/// A folder that has what `/sys` has: an energy counter, and processor 0 as a unit whose clock stands for traffic.
fn machine(dir: &TestDir) -> std::path::PathBuf {
    let root = dir.join("sys");
    let unit = "bus/event_source/devices/uncore_imc_0";
    let zone = "class/powercap/intel-rapl:0";
    for (path, text) in [
        (format!("{unit}/type"), "1"),
        (format!("{unit}/cpumask"), "0"),
        (format!("{unit}/events/data_reads"), "config=0x0"),
        (format!("{unit}/events/broken"), "event=?"),
        (format!("{zone}/name"), "package-0"),
        (format!("{zone}/energy_uj"), "9000"),
        (format!("{zone}/max_energy_range_uj"), "90000"),
    ] {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    root
}

#[test]
fn energy_and_units_outside_of_the_cores_are_counted_at_a_period() {
    needs!(energy_and_units_outside_of_the_cores_are_counted_at_a_period:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let sys = machine(&dir);
    let list = |sys: &std::path::Path| {
        let mut list = dir.gputrail(["counters", "list", "--agent", "0"]);
        gputrail_harness::pocl::on_pocl(&mut list, Driver::Threaded);
        let ended = well(list.env("GPUTRAIL_SYSFS", sys));
        (ended.text(), ended.stderr)
    };
    let (table, notes) = list(&sys);
    for words in ["ENERGY_PKG", "UNCORE_IMC_DATA_READS", "at a period only"] {
        assert!(table.contains(words), "{words}: {table}");
    }
    assert!(
        notes.contains("broken: expected a number behind event="),
        "{notes}"
    );
    // A machine without them says so.
    let (table, notes) = list(&dir.join("nothing"));
    assert!(
        table.contains("TASK_CLOCK") && !table.contains("ENERGY"),
        "{table}"
    );
    assert!(
        notes.contains("no counters of energy and of units outside of the cores"),
        "{notes}"
    );

    let program = dir.program("hot_loop");
    let names = "ENERGY_PKG,UNCORE_IMC_DATA_READS,TASK_CLOCK";
    let record = |options: &[&str]| {
        let options = [&["--counters", names], options].concat();
        let mut command = dir.record_with(&options, Driver::Threaded, &program, &[]);
        well(command.env("GPUTRAIL_SYSFS", &sys)).stderr
    };
    let said = record(&["--counters-mode", "device"]);
    assert!(!said.contains("not shown over time"), "{said}");
    let text = well(&mut dir.gputrail(["summary", "run.pftrace", "--format", "json"])).text();
    let tables: Value = serde_json::from_str(&text).expect("JSON");
    let rows = tables["period_counters"].as_array().expect("a table");
    let of = |name: &str| rows.iter().find(|row| row["counter"] == name);
    let number = |row: &Value, key: &str| row[key].as_f64().expect("a number");
    // The energy stands still, and has its unit.
    let energy = of("ENERGY_PKG").expect("energy");
    assert!(
        number(energy, "periods") >= 1.0 && number(energy, "max") == 0.0,
        "{energy}"
    );
    let mut trace = dir.trace();
    let units: i64 = trace.assert_sound().value(
        "select count(*) from gpu_counter_track where name glob '*ENERGY_PKG*' and description glob '*unit: uJ'",
    );
    assert_eq!(units, 1);
    assert!(
        number(of("TASK_CLOCK").expect("a clock"), "sum") > 0.0,
        "{rows:?}"
    );
    match of("UNCORE_IMC_DATA_READS") {
        Some(reads) => assert!(number(reads, "sum") > 0.0, "{reads}"),
        // Without the permission, the message says how to get it.
        None => assert!(
            said.contains("sysctl kernel.perf_event_paranoid=0"),
            "{said}"
        ),
    }
    // Kernels have no values of the whole machine.
    let said = record(&[]);
    assert!(
        said.contains("ENERGY_PKG counts the whole machine, whatever runs"),
        "{said}"
    );
    assert!(
        counters(&dir, "run.pftrace")
            .keys()
            .all(|(_, name)| name == "TASK_CLOCK")
    );
}

#[test]
fn each_kernel_on_pocl_has_the_events_of_the_threads_that_ran_it() {
    needs!(each_kernel_on_pocl_has_the_events_of_the_threads_that_ran_it: Need::Pocl, Need::OpenClToolchain);
    for driver in [Driver::Basic, Driver::Threaded] {
        let dir = TestDir::new();
        let program = dir.program("hot_loop");
        let arguments = ["", "20", "", "time"];
        well(&mut dir.untraced(driver, &program, &arguments)); // fills the kernel cache
        let options = ["--counters", SOFTWARE, "--capture"];
        let told = well(&mut dir.record_with(&options, driver, &program, &arguments)).text();
        let (values, times) = counted(&dir);
        assert_eq!((times.len(), values.len()), (20, 80));
        let (mut clock, mut time) = (0.0, 0.0);
        for (work, took) in &times {
            for name in SOFTWARE.split(',') {
                let value = &values[&(*work, name.to_owned())];
                assert_eq!(value.invalid, CounterInvalid::NO, "{name} {value:?}");
                assert_eq!(value.scheduled, ALWAYS_SCHEDULED);
            }
            let value = |name: &str| values[&(*work, name.to_owned())].number().unwrap();
            clock += value("TASK_CLOCK");
            time += *took as f64;
        }
        // One thread runs each of them with the basic driver; the threads of the other one share the work.
        let most = match driver {
            Driver::Basic => 1.05,
            Driver::Threaded => 1.05 * std::thread::available_parallelism().unwrap().get() as f64,
        };
        assert!(clock <= time * most, "{clock} ns in {time} ns");
        assert!(clock > 0.0, "{clock} ns in {time} ns");
        if driver == Driver::Basic {
            // The thread that waits for the kernels runs them, and does little else meanwhile.
            let thread = told.lines().find_map(|line| line.strip_prefix("time "));
            let thread: f64 = thread.expect("a time").parse().unwrap();
            let share = clock / thread;
            assert!((0.9..=1.0).contains(&share), "{clock} of {thread} ns");
        }
        // Tables, and a trace that is made of them, have the same values.
        well(&mut dir.gputrail(["convert", "run.gputrail", "-o", "tables.csv"]));
        well(&mut dir.gputrail(["convert", "tables.csv", "-o", "back.pftrace"]));
        let recorded = counters(&dir, "run.gputrail");
        assert_eq!(recorded.len(), 4);
        assert_eq!(counters(&dir, "back.pftrace"), recorded);
    }
}

#[test]
fn counters_that_no_agent_counts_are_refused_before_the_program_runs() {
    needs!(counters_that_no_agent_counts_are_refused_before_the_program_runs: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = dir.program("hot_loop");
    let record = |names: &str| {
        run(&mut dir.record_with(&["--counters", names], Driver::Basic, &program, &["", "1"]))
    };
    let refused = record("TASK_CLOK");
    assert_eq!(refused.code(), 125, "{}", refused.stderr);
    let said = "no agent of this machine counts \"TASK_CLOK\"; the nearest is TASK_CLOCK";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);
    assert_eq!(refused.text(), "");
    // What is there is counted.
    let counted = record("TASK_CLOK,TASK_CLOCK").well();
    assert!(counted.text().contains("result "), "{}", counted.text());
}

/// The count that `perf stat` has of `event` in a run of hot_loop with this number of kernels. `None` where this machine does
/// not count it.
fn perf_stat(dir: &TestDir, program: &OsStr, event: &str, launches: &str) -> Option<f64> {
    let report = dir.join("perf.txt");
    let options = ["stat", "-x", ",", "-e", event, "-o"].map(OsStr::new);
    let rest = ["--".as_ref(), program, "".as_ref(), launches.as_ref()];
    let mut command = dir.untraced(Driver::Basic, "perf", &[]);
    command.args(options).arg(&report).args(rest);
    well(&mut command);
    let report = std::fs::read_to_string(report).unwrap();
    let line = report.lines().find(|line| line.contains(event));
    let value = line.expect("a line of the event").split(',').next();
    let value = value.filter(|value| !value.starts_with('<'));
    value.map(|value| value.parse().expect("a number"))
}

/// The sum of `counter` over the kernels that a longer run of hot_loop has more than a shorter one, as a share of what
/// `perf stat` counts of `event` more in it. `None` where this machine does not count it.
fn share_of_perf_stat(counter: &str, event: &str) -> Option<f64> {
    let dir = TestDir::new();
    let program = dir.program("hot_loop");
    let program = program.as_os_str();
    well(&mut dir.untraced(Driver::Basic, program, &["", "1"])); // fills the kernel cache
    let [few, many] = [20, 220].map(|launches: usize| {
        let launches_text = launches.to_string();
        let expected = perf_stat(&dir, program, event, &launches_text)?;
        let options = ["-q", "--capture", "--counters", counter];
        let arguments = ["", &launches_text];
        well(&mut dir.record_with(&options, Driver::Basic, program, &arguments));
        let (values, _) = counted(&dir);
        assert_eq!(values.len(), launches);
        std::fs::remove_file(dir.join("run.gputrail")).unwrap();
        let sum: f64 = values.values().map(|value| value.number().unwrap()).sum();
        Some((sum, expected))
    });
    let (few, many) = (few?, many?);
    Some((many.0 - few.0) / (many.1 - few.1))
}

#[test]
fn kernels_have_what_perf_stat_counts_of_them() {
    needs!(kernels_have_what_perf_stat_counts_of_them: Need::Pocl, Need::OpenClToolchain, Need::Program("perf"));
    match share_of_perf_stat("INSTRUCTIONS", "instructions") {
        Some(share) => assert!((0.98..1.02).contains(&share), "{share} of the instructions"),
        None => skipped(
            "kernels_have_what_perf_stat_counts_of_them",
            "this machine counts no instructions (`perf stat -e instructions true`)",
        ),
    }
}

#[test]
fn a_program_does_not_notice_that_it_is_counted() {
    needs!(a_program_does_not_notice_that_it_is_counted:
        Need::Pocl, Need::OpenClToolchain, Need::Program("ffmpeg"), Need::Program("clpeak"));
    let dir = TestDir::new();
    let program = dir.program("hot_loop");
    let frames = ffmpeg(5, &["-f", "md5", "-"]);
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    // The last line of hot_loop is the number of open files: events take some.
    let as_it_is = |text: String| {
        let lines = text.lines().filter(|line| !line.starts_with("files "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    // clpeak's results are times.
    let without_numbers = |text: String| vec![text.replace(|c: char| c.is_ascii_digit(), "")];
    type Shown = fn(String) -> Vec<String>;
    let programs: [(&OsStr, &[&str], Shown); 3] = [
        (program.as_os_str(), &[], as_it_is),
        ("ffmpeg".as_ref(), &frames, as_it_is),
        ("clpeak".as_ref(), &["--kernel-latency"], without_numbers),
    ];
    for driver in [Driver::Basic, Driver::Threaded] {
        // Each of clpeak's 20 000 short kernels changes threads some times on the threaded driver, and waits its turn each
        // time: minutes on a busy machine.
        let is_slow = |program: &OsStr| driver == Driver::Threaded && program == "clpeak";
        let programs = programs.into_iter();
        for (program, arguments, shown) in programs.filter(|(program, ..)| !is_slow(program)) {
            run(&mut dir.untraced(driver, program, arguments));
            let alone = run(&mut dir.untraced(driver, program, arguments)).well();
            for mode in ["dispatch", "device", "range"] {
                let options = ["-q", "--counters", SOFTWARE, "--counters-mode", mode];
                let counted =
                    run(&mut dir.record_with(&options, driver, program, arguments)).well();
                assert_eq!(shown(alone.text()), shown(counted.text()), "{mode}");
                dir.trace().assert_sound();
            }
        }
    }
}

/// The table of counters of ranges: range and counter with the number of ranges, the least, the greatest value and the sum.
fn of_ranges(dir: &TestDir, file: &str) -> HashMap<(String, String), (u64, f64, f64, f64)> {
    let text = well(&mut dir.gputrail(["summary", file, "--format", "json"])).text();
    let tables: Value = serde_json::from_str(&text).unwrap();
    let rows = tables["range_counters"].as_array().expect("a table").iter();
    let row = |row: &Value| {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        let ranges = row["ranges"].as_u64().unwrap();
        (
            (text("range"), text("counter")),
            (ranges, number("min"), number("max"), number("sum")),
        )
    };
    rows.map(row).collect()
}

#[test]
fn ranges_of_the_demo_have_values_in_its_trace_tables_and_summary() {
    needs!(ranges_of_the_demo_have_values_in_its_trace_tables_and_summary: Need::TraceProcessor);
    let dir = TestDir::new();
    let demo = ["demo", "-q", "--capture", "--steps", "2"];
    let counters = ["--counters", "SQ_WAVES,VALUUtilization"];
    let mode = ["--counters-mode", "range"];
    well(&mut dir.gputrail([&demo[..], &counters[..], &mode[..]].concat()));
    let of_trace = of_ranges(&dir, "demo.pftrace");
    assert_eq!(
        format!("{:?}", of_trace.len()),
        format!("{:?}", of_ranges(&dir, "demo.gputrail").len())
    );
    let waves = of_trace[&("step 1".to_owned(), "SQ_WAVES".to_owned())];
    assert!(
        waves.0 >= 1 && waves.1 > 0.0 && waves.3 >= waves.2,
        "{waves:?}"
    );
    let share = of_trace[&("step 1".to_owned(), "VALUUtilization".to_owned())];
    // A percentage has no sum.
    assert!(
        share.1 > 0.0 && share.2 <= 100.0 && share.3.is_nan(),
        "{share:?}"
    );
    let mut trace = Trace::open(dir.join("demo.pftrace"));
    let beside: i64 = trace.assert_sound().value(
        "select count(*) from slice where category = 'counted range' \
         and extract_arg(arg_set_id, 'debug.SQ_WAVES') is not null",
    );
    let invalid: i64 = trace.value(
        "select count(*) from slice where category = 'counted range' \
         and extract_arg(arg_set_id, 'debug.SQ_WAVES') glob 'another range*'",
    );
    let ranges: u64 = of_trace
        .iter()
        .filter(|((_, counter), _)| counter == "SQ_WAVES")
        .map(|(_, values)| values.0)
        .sum();
    assert_eq!(beside, ranges as i64 + invalid);
    // The track has the value while the range lasts.
    let drawn: i64 = trace.value(
        "select count(*) from counter join gpu_counter_track on counter.track_id = gpu_counter_track.id \
         join slice on slice.ts = counter.ts where gpu_counter_track.name glob '*SQ_WAVES*' and counter.value > 0 \
         and slice.category = 'counted range'",
    );
    assert!(drawn > 0);
    well(&mut dir.gputrail(["convert", "demo.gputrail", "-o", "tables.csv"]));
    let files = std::fs::read_dir(dir.join("tables.csv")).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let table = files.find(|file| file.to_string_lossy().ends_with("range_counters.csv"));
    let table = std::fs::read_to_string(table.expect("a table of ranges")).unwrap();
    // Values that are invalid have no row.
    let rows = table.matches("SQ_WAVES").count() as i64;
    assert_eq!(rows, beside - invalid, "{table}");
    // The other tables are read as ever.
    well(&mut dir.gputrail(["convert", "tables.csv", "-o", "back.pftrace"]));
    let info = well(&mut dir.gputrail(["info", "demo.gputrail"])).text();
    let words = "counters collected: agent 1: SQ_WAVES, VALUUtilization, for each range of markers";
    assert!(info.contains(words), "{info}");
}

#[test]
fn ranges_of_markers_are_counted_on_pocl() {
    needs!(ranges_of_markers_are_counted_on_pocl: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let include = format!("-I{}", repository("include").display());
    let source = repository("tests/programs/kernels_in_ranges.c");
    let program = compile_with(&[&include], &source, dir.path());
    let count = |more: &[&str]| {
        let counters = ["--counters", SOFTWARE, "--counters-mode", "range"];
        let options = [&counters[..], more].concat();
        let ended = well(&mut dir.record_with(&options, Driver::Threaded, &program, &[]));
        let found = of_ranges(&dir, "run.pftrace");
        assert_eq!(found.len(), 4, "{found:?}: {}", ended.stderr);
        found
    };
    for (more, range) in [(&[][..], "epoch"), (&["--counters-range", "st?p"], "step")] {
        let found = count(more);
        let clock = found[&(range.to_owned(), "TASK_CLOCK".to_owned())];
        assert!(clock.0 == 1 && clock.1 > 0.0, "{clock:?}");
    }
}
