//! `gputrail demo`: the simulated training run, as Perfetto reads it.

use std::fs;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::program::run;
use gputrail_harness::trace::{Trace, packet_kinds};

use crate::command::{TestDir, well};

fn demo(dir: &TestDir) -> Trace {
    well(&mut dir.gputrail(["demo"]));
    Trace::open(dir.join("demo.pftrace"))
}

#[test]
fn the_demo_says_what_it_wrote_and_what_to_do_next() {
    let dir = TestDir::new();
    let ended = well(&mut dir.gputrail(["demo"]));
    for words in ["demo.pftrace", "ui.perfetto.dev"] {
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
    assert_eq!(ended.text(), "", "our own words go to standard error");
}

#[test]
fn the_same_seed_makes_the_same_records_and_another_others() {
    let dir = TestDir::new();
    for (name, seed) in [("a", "5"), ("b", "5"), ("c", "6")] {
        let output = format!("{name}.pftrace");
        well(&mut dir.gputrail(["demo", "-q", "--capture", "--seed", seed, "-o", &output]));
    }
    let read = |name: &str| fs::read(dir.join(name)).unwrap();
    assert_eq!(read("a.pftrace"), read("b.pftrace"));
    assert_ne!(read("a.pftrace"), read("c.pftrace"));
}

#[test]
fn the_demo_is_shaped_like_a_training_run() {
    needs!(the_demo_is_shaped_like_a_training_run: Need::TraceProcessor);
    let dir = TestDir::new();
    let mut trace = demo(&dir);
    trace.assert_sound();
    let tracks = "select distinct t.name from gpu_slice g join gpu_track t on g.track_id = t.id";
    let tracks: Vec<(String,)> = trace.rows(tracks);
    for device in ["GPU 0", "GPU 1"] {
        let queues = tracks
            .iter()
            .filter(|(name,)| name.starts_with(device))
            .count();
        assert!(
            queues >= 2,
            "several streams on {device}, but there are {tracks:?}"
        );
    }
    let threads = trace.value::<i64>(
        "select count(distinct utid) from slice join thread_track on slice.track_id = thread_track.id",
    );
    assert!(threads >= 2, "several host threads, but {threads}");
    let nested = trace.value::<i64>(
        "select count(*) from slice join thread_track on slice.track_id = thread_track.id where depth > 0",
    );
    assert!(nested > 0, "nested calls");
    let steps = trace.value::<i64>(
        "select count(distinct extract_arg(arg_set_id, 'debug.external_id')) from slice",
    );
    assert!(
        steps >= 2,
        "each step has an external id, but {steps} are in use"
    );
    // Work on different queues at the same time.
    let overlaps = trace.value::<i64>(
        "select count(*) from gpu_slice a join gpu_slice b on a.track_id < b.track_id \
         and a.ts < b.ts + b.dur and b.ts < a.ts + a.dur",
    );
    assert!(overlaps > 0, "copies and kernels overlap");
}

#[test]
fn every_packet_of_the_demo_is_made_of_fields_that_perfetto_knows() {
    needs!(every_packet_of_the_demo_is_made_of_fields_that_perfetto_knows: Need::PythonBindings);
    let dir = TestDir::new();
    well(&mut dir.gputrail(["demo", "-q"]));
    let kinds = packet_kinds(&dir.join("demo.pftrace"));
    for kind in [
        "track_event",
        "gpu_render_stage_event",
        "gpu_info",
        "clock_snapshot",
    ] {
        assert!(kinds.contains_key(kind), "{kind} is not among {kinds:?}");
    }
}

#[test]
fn every_kernel_is_tied_to_the_call_that_launched_it() {
    needs!(every_kernel_is_tied_to_the_call_that_launched_it: Need::TraceProcessor);
    let dir = TestDir::new();
    let mut trace = demo(&dir);
    let launches = trace.value::<i64>(
        "select count(distinct display_value) from slice join args using (arg_set_id) \
         where key glob 'gpu_correlation.render_stage_submission_event_ids*'",
    );
    let work =
        trace.value::<i64>("select count(*) from gpu_slice where name is not 'graph launch'");
    // The pages of the buffer that the devices share move six times, which no call asks for.
    assert_eq!(
        launches,
        work - 6,
        "each operation of a device is named by one call"
    );
}

#[test]
fn a_compressed_trace_is_a_third_of_the_size_and_holds_the_same() {
    needs!(a_compressed_trace_is_a_third_of_the_size_and_holds_the_same: Need::TraceProcessor);
    let dir = TestDir::new();
    well(&mut dir.gputrail(["demo", "-q", "--capture"]));
    well(&mut dir.gputrail(["demo", "-q", "--compress", "-o", "small.pftrace"]));
    well(&mut dir.gputrail([
        "convert",
        "-q",
        "--compress",
        "demo.gputrail",
        "-o",
        "converted.pftrace",
    ]));
    well(&mut dir.gputrail(["check", "small.pftrace"]));
    let bytes = |name: &str| fs::read(dir.join(name)).unwrap();
    assert_eq!(bytes("small.pftrace"), bytes("converted.pftrace"));
    let (plain, small) = (bytes("demo.pftrace").len(), bytes("small.pftrace").len());
    assert!(small * 3 <= plain, "{small} bytes of {plain}");
    let [plain, small] = ["demo.pftrace", "small.pftrace"].map(|name| {
        let mut trace = Trace::open(dir.join(name));
        trace.assert_sound();
        trace.rows::<(String, i64, i64)>(
            "select name, count(*), sum(dur) from slice group by 1 order by 1",
        )
    });
    assert_eq!(plain, small);
}

#[test]
fn all_queues_of_a_device_can_share_a_row() {
    needs!(all_queues_of_a_device_can_share_a_row: Need::TraceProcessor);
    let dir = TestDir::new();
    let work = "select count(*), sum(dur) from gpu_slice";
    let plain = demo(&dir).rows::<(i64, i64)>(work);
    well(&mut dir.gputrail(["demo", "-q", "--device-rows", "-o", "made.pftrace"]));
    well(&mut dir.gputrail([
        "convert",
        "-q",
        "demo.pftrace",
        "--device-rows",
        "-o",
        "converted.pftrace",
    ]));
    for name in ["made.pftrace", "converted.pftrace"] {
        let mut trace = Trace::open(dir.join(name));
        trace.assert_sound();
        assert_eq!(trace.rows::<(i64, i64)>(work), plain, "{name}");
        let rows: Vec<(String, i64)> = trace.rows(
            "select t.name, count(distinct extract_arg(g.arg_set_id, 'queue')) from gpu_slice g \
             join gpu_track t on g.track_id = t.id group by 1 order by 1",
        );
        let [(first, queues), (second, _)] = &rows[..] else {
            panic!("{name}: {rows:?}");
        };
        assert_eq!(
            [&**first, &**second],
            ["GPU 0 · all queues", "GPU 1 · all queues"]
        );
        assert!(*queues > 2, "{name}: {rows:?}");
    }
    let refused =
        run(&mut dir.gputrail(["convert", "demo.pftrace", "--device-rows", "-o", "tables/"]));
    assert_eq!(refused.code(), 125);
    assert!(
        refused.stderr.contains("the tables name device and queue"),
        "{}",
        refused.stderr
    );
}

#[test]
fn rows_of_queues_stand_by_their_numbers_above_those_of_engines() {
    needs!(rows_of_queues_stand_by_their_numbers_above_those_of_engines: Need::TraceProcessor);
    let dir = TestDir::new();
    let rows: Vec<(String,)> = demo(&dir).rows(
        "select distinct t.name from gpu_slice g join gpu_track t on g.track_id = t.id where t.name glob 'GPU 0 *' \
         order by lower(t.name)",
    );
    let words = |(name,): &(String,)| name.split_whitespace().collect::<Vec<_>>().join(" ");
    let rows: Vec<String> = rows.iter().map(words).collect();
    let is_queue = |row: &String| row.starts_with("GPU 0 · queue ");
    let queues = rows.iter().take_while(|row| is_queue(row)).count();
    assert!(queues > 1 && queues < rows.len(), "{rows:?}");
    assert!(!rows[queues..].iter().any(is_queue), "{rows:?}");
}

#[test]
fn memory_in_use_is_a_counter_of_each_device_and_ends_where_it_began() {
    needs!(memory_in_use_is_a_counter_of_each_device_and_ends_where_it_began: Need::TraceProcessor);
    let dir = TestDir::new();
    let mut trace = demo(&dir);
    trace.assert_sound();
    let counters: Vec<(String, String, f64, i64)> = trace.rows(
        "select t.name, t.unit, (select value from counter where track_id = t.id order by ts desc, id desc limit 1), \
         (select max(value) from counter where track_id = t.id) > 0 from counter_track t where name glob '*memory in use' order by 1",
    );
    // Managed memory has no place of its own.
    let expected = ["GPU 0 ", "GPU 1 ", "host ", ""]
        .map(|place| (format!("{place}memory in use"), "bytes".to_owned(), 0.0, 1));
    assert_eq!(counters, expected, "the demo frees all that it allocates");
}

#[test]
fn concurrent_work_on_a_device_is_counted() {
    needs!(concurrent_work_on_a_device_is_counted: Need::TraceProcessor);
    let dir = TestDir::new();
    let mut trace = demo(&dir);
    let counters: Vec<(String, String, f64)> = trace.rows(
        "select t.name, coalesce(unit, ''), (select max(value) from counter where track_id = t.id) from gpu_counter_track t \
         order by substr(t.name, 6), 1",
    );
    let expected = [
        // The numbers of bytes, seconds and percent, which viewers have names for.
        ("copy B/s", "7/22"),
        ("kernels", ""),
        ("occupied %", "37"),
    ];
    let expected = expected.into_iter().flat_map(|(what, unit)| {
        let name = move |gpu| format!("GPU {gpu} {what} (100 us mean)");
        [(name(0), unit.to_owned()), (name(1), unit.to_owned())]
    });
    let told = counters.iter();
    let told = told.map(|(name, unit, _)| (name.clone(), unit.clone()));
    assert!(told.eq(expected), "{counters:?}");
    assert!(
        counters.iter().all(|(_, _, most)| *most > 1.0),
        "{counters:?}"
    );
    // The number of running kernels over time adds up to the kernels' time, and the bandwidth to the copied bytes.
    let under = |what: &str| {
        format!(
            "select sum(value * (next - ts)) from (select value, ts, lead(ts, 1, ts) over (partition by track_id \
             order by ts, counter.id) next from counter join gpu_counter_track t on track_id = t.id where t.name glob '* {what} (100 us mean)')"
        )
    };
    let ran = trace.value::<f64>(
        "select sum(dur) from gpu_slice where name not in ('fill', 'graph launch') and name not glob 'copy *'",
    );
    let bytes = trace.value::<f64>(
        "select sum(cast(extract_arg(arg_set_id, 'bytes') as int)) from gpu_slice where name glob 'copy *'",
    );
    for (what, expected, unit) in [("kernels", ran, 1.0), ("copy B/s", bytes, 1e9)] {
        let counted = trace.value::<f64>(&under(what)) / unit;
        let ratio = counted / expected;
        assert!(
            (0.999..1.001).contains(&ratio),
            "{what}: {counted} of {expected}"
        );
    }
}

#[test]
fn samples_of_the_demo_lead_to_lines_and_what_cannot_be_sampled_is_refused() {
    let dir = TestDir::new();
    well(&mut dir.gputrail([
        "demo",
        "-q",
        "--pc-sampling",
        "stochastic",
        "--capture",
        "-o",
        "s.pftrace",
    ]));
    let hotspots = well(&mut dir.gputrail(["hotspots", "s.gputrail", "--format", "csv"]));
    for words in [
        "v_mfma_f32_32x32x8_f16",
        "train/kernels.cl:",
        "REASON_BARRIER_WAIT",
    ] {
        assert!(hotspots.text().contains(words), "{words}");
    }
    let asked = [
        "demo",
        "--pc-sampling",
        "stochastic",
        "--interval",
        "1000cycles",
    ];
    let refused = dir.gputrail(asked).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("512 and 1024 cycles"),
        "{said}"
    );
    let mut taken = dir.gputrail(["demo", "--pc-sampling", "stochastic"]);
    taken.env("GPUTRAIL_DEMO_SAMPLED_ELSEWHERE", "host-trap,20us");
    let refused = taken.output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("it can do: host-trap every 20 us"), "{said}");
}

#[test]
fn kernels_that_kernels_launch_name_their_parents_and_lie_within_them() {
    needs!(kernels_that_kernels_launch_name_their_parents_and_lie_within_them: Need::TraceProcessor);
    let dir = TestDir::new();
    let mut trace = demo(&dir);
    trace.assert_sound();
    let within: Vec<(String, String, i64)> = trace.rows(
        "select child.name, extract_arg(child.arg_set_id, 'parent_workgroup'), count(*) from gpu_slice child join gpu_slice parent \
         on parent.name = extract_arg(child.arg_set_id, 'parent') \
         and parent.ts < child.ts and child.ts + child.dur < parent.ts + parent.dur group by 1, 2 order by 2",
    );
    let name = "data::sort_part";
    let expected = ["0, 0, 0", "1, 0, 0"].map(|group| (name.to_owned(), group.to_owned(), 2));
    assert_eq!(within, expected, "one of each workgroup on both devices");
    let preempted: Vec<(String, i64)> = trace.rows(
        "select slice.name, count(*) from slice join track on slice.track_id = track.id \
         where track.name = 'preemptions' group by 1 order by 1",
    );
    let expected = ["restore", "save"].map(|what| (what.to_owned(), 4));
    assert_eq!(preempted, expected);
}

#[test]
fn kernels_that_take_turns_are_preempted_and_come_back() {
    needs!(kernels_that_take_turns_are_preempted_and_come_back: Need::TraceProcessor);
    let dir = TestDir::new();
    well(&mut dir.gputrail(["demo", "-q", "--steps", "2", "--time-slice", "50us"]));
    let mut trace = Trace::open(dir.join("demo.pftrace"));
    trace.assert_sound();
    let turns: Vec<(String, i64)> = trace.rows(
        "select slice.name, count(*) from slice join track on slice.track_id = track.id \
         where track.name = 'preemptions' and extract_arg(slice.arg_set_id, 'debug.workgroup') = 'all' group by 1 order by 1",
    );
    let [(restored, times), (saved, as_many)] = &turns[..] else {
        panic!("{turns:?}");
    };
    assert_eq!((&restored[..], &saved[..]), ("restore", "save"));
    assert!(times == as_many && *times > 0, "{turns:?}");
    let refused = dir
        .gputrail(["demo", "--replay", "application", "--time-slice", "50us"])
        .output()
        .unwrap();
    assert!(!refused.status.success());
}

#[test]
fn executed_instructions_are_beside_samples_and_the_same_in_captures_and_traces() {
    let dir = TestDir::new();
    let counted = ["--kind", "kernel-dispatch", "--kind", "instruction-count"];
    let sampled = [
        "--pc-sampling",
        "stochastic",
        "--capture",
        "-o",
        "i.pftrace",
    ];
    let demo = ["demo", "-q", "--steps", "1"];
    let all = demo.iter().chain(&counted).chain(&sampled);
    let demo: Vec<&str> = all.copied().filter(|word| *word != "-q").collect();
    let told = well(&mut dir.gputrail(demo)).stderr;
    assert!(!told.contains("had not completed"), "{told}");
    well(&mut dir.gputrail(["check", "i.pftrace"]));
    let waves = ["--counters", "SQ_WAVES", "-o", "c.pftrace"];
    let counting = ["demo", "--steps", "1", "--kind", "kernel-dispatch"];
    let counting = counting.iter().chain(&waves);
    let told_of_waves = well(&mut dir.gputrail(counting)).stderr;
    assert!(
        !told_of_waves.contains("nothing was counted"),
        "{told_of_waves}"
    );
    let read = |file: &str| -> serde_json::Value {
        let json = ["hotspots", file, "--format", "json"];
        serde_json::from_str(&well(&mut dir.gputrail(json)).text()).unwrap()
    };
    let report = read("i.gputrail");
    assert_eq!(report, read("i.pftrace"));
    let kernels = report["kernels"].as_array().unwrap();
    let of = |name: &str| {
        let mut all = kernels.iter();
        let kernel = all.find(|kernel| kernel["name"].as_str().unwrap().contains(name));
        kernel.unwrap_or_else(|| panic!("{name}"))
    };
    // Two workgroups of four waves: six loads of 64 lanes, which are four elements apart.
    let partition = of("data::partition");
    let load = |kernel: &serde_json::Value, text: &str| {
        let mut all = kernel["instructions"].as_array().unwrap().iter();
        let found = all.find(|one| one["text"].as_str().unwrap().starts_with(text));
        found.unwrap_or_else(|| panic!("{text}")).clone()
    };
    let load = load(partition, "global_load_dword");
    let turns = 2 * 4 * 7;
    assert_eq!(load["executed"], turns);
    assert_eq!(load["threads"], turns * 64);
    assert_eq!(load["transactions"], turns * 16);
    assert_eq!(load["ideal_transactions"], turns * 4);
    assert!(of("nn::accuracy")["diverged"].as_u64() > Some(0));
    let gemm = of("gemm_f16_tn");
    assert!(gemm["samples"].as_u64() > Some(0) && gemm["executed"].as_u64() > Some(0));

    let executed = kernels.iter().map(|kernel| kernel["executed"].as_u64());
    let executed: u64 = executed.map(Option::unwrap_or_default).sum();
    let number = |text: &str, after: &str| {
        let mut lines = text.lines();
        let line = lines.find(|line| line.contains(after)).unwrap_or_default();
        let digits = line.chars().filter(char::is_ascii_digit);
        digits.collect::<String>().parse::<u64>().ok()
    };
    for file in ["i.gputrail", "i.pftrace"] {
        let info = well(&mut dir.gputrail(["info", file])).text();
        assert_eq!(
            number(&info, "instructions of waves"),
            Some(executed),
            "{info}"
        );
    }
    assert_eq!(
        number(&told, "instructions of waves"),
        Some(executed),
        "{told}"
    );

    let table = well(&mut dir.gputrail(["hotspots", "i.pftrace"]));
    for words in ["executed", "lanes", "transactions", "ideal"] {
        assert!(table.text().contains(words), "{words}: {}", table.text());
    }
}
