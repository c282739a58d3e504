//! PC sampling on PoCL of programs that do not know of it: the samples are where they belong, and the program is not
//! disturbed.

use std::collections::{HashMap, HashSet};
use std::process::Command;

use gputrail_capture::code::{CodeOffset, pocl_kernel};
use gputrail_capture::{Metadata, Reader};
use gputrail_code::symbols::{Symbols, source, source_line};
use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_record::*;

use crate::command::{TestDir, kernels, well};
use crate::transparency::ffmpeg;

const EVERY_MILLISECOND: [&str; 4] = ["--pc-sampling", "host-trap", "--interval", "1ms"];

/// The dispatches and samples in a capture.
struct Sampled {
    reader: Reader,
    dispatches: HashMap<WorkId, KernelDispatch>,
    times: HashMap<WorkId, (u64, u64)>,
    samples: Vec<HostTrapSample>,
    totals: Vec<SamplingTotals>,
}

impl Sampled {
    /// The capture that `record -o run.pftrace --capture` left.
    #[track_caller]
    fn of(dir: &TestDir) -> Sampled {
        let sampled = Sampled::in_capture(dir, "run.gputrail");
        assert!(!sampled.samples.is_empty());
        sampled
    }

    /// The contents of the capture with this name, which may have no samples.
    #[track_caller]
    fn in_capture(dir: &TestDir, name: &str) -> Sampled {
        let reader = Reader::open(&dir.join(name)).expect("a capture");
        let (mut dispatches, mut times) = (HashMap::new(), HashMap::new());
        let (mut samples, mut totals) = (Vec::new(), Vec::new());
        let mut chunks = reader.chunks();
        while let Some(chunk) = chunks.next() {
            for record in chunk.records() {
                if let Some(dispatch) = record.read::<KernelDispatch>() {
                    dispatches.insert(dispatch.work.id, dispatch);
                }
                if let Some(completion) = record.read::<Completion>() {
                    times.insert(completion.work, (completion.start.0, completion.end.0));
                }
                samples.extend(record.read::<HostTrapSample>());
                totals.extend(record.read::<SamplingTotals>());
            }
        }
        drop(chunks);
        Sampled {
            reader,
            dispatches,
            times,
            samples,
            totals,
        }
    }

    fn metadata(&self) -> &Metadata {
        self.reader.metadata()
    }

    fn kernel(&self, id: KernelId) -> &str {
        let name = self.metadata().kernels[&id].name;
        self.metadata().string(name)
    }

    /// Checks that every sample belongs to a dispatch of the kernel whose code contains it, and lies within the
    /// dispatch's time; and that the totals add up.
    #[track_caller]
    fn assert_sound(&self) {
        let mut symbols = symbols();
        let mut of_dispatch: HashMap<WorkId, u64> = HashMap::new();
        for sample in &self.samples {
            assert!(!sample.absent.has(Absent::DISPATCH), "{sample:?}");
            assert!(sample.absent.has(Absent::WORKGROUP.with(Absent::EXEC_MASK)));
            let (start, end) = self.times[&sample.work];
            assert!(
                (start..=end).contains(&sample.time.0),
                "a sample {} ns from the start and {} ns from the end of its dispatch",
                sample.time.0 as i64 - start as i64,
                end as i64 - sample.time.0 as i64,
            );
            let dispatch = &self.dispatches[&sample.work];
            assert_eq!(
                (sample.correlation, sample.kernel, sample.agent),
                (
                    dispatch.work.correlation,
                    dispatch.kernel,
                    dispatch.work.agent
                )
            );
            let resolved = symbols.resolve(
                self.metadata(),
                sample.code_object,
                CodeOffset(sample.offset),
            );
            // Helper functions of a kernel belong to its code, without the kernel's name.
            let symbol = resolved.symbol.as_ref().map(|symbol| &*symbol.name);
            if let Some(kernel) = symbol.and_then(pocl_kernel) {
                assert_eq!(kernel, self.kernel(sample.kernel));
            }
            if cfg!(target_arch = "x86_64") {
                assert!(resolved.instruction.is_some(), "{resolved:?}");
            }
            *of_dispatch.entry(sample.work).or_default() += 1;
        }
        let mut told = HashSet::new();
        for totals in &self.totals {
            assert!(told.insert(totals.work), "two totals of one dispatch");
            let written = of_dispatch.get(&totals.work).copied().unwrap_or(0);
            assert_eq!(totals.total - totals.dropped, written);
            assert_eq!(totals.unit, SamplingUnit::TIME);
        }
        assert!(of_dispatch.keys().all(|work| told.contains(work)));
    }

    /// Samples and time by kernel. If a kernel runs in one thread only, its samples are at most its time.
    fn shares(&self) -> HashMap<String, (u64, u64)> {
        let mut shares: HashMap<String, (u64, u64)> = HashMap::new();
        for (work, dispatch) in &self.dispatches {
            let (start, end) = self.times[work];
            shares
                .entry(self.kernel(dispatch.kernel).to_owned())
                .or_default()
                .1 += end - start;
        }
        for sample in &self.samples {
            shares
                .get_mut(self.kernel(sample.kernel))
                .expect("dispatched")
                .0 += 1;
        }
        shares
    }
}

/// Records a program with a sample every millisecond, and checks all of them.
#[track_caller]
fn sampled(driver: Driver, program: &str, arguments: &[&str]) -> Sampled {
    sampled_with(&EVERY_MILLISECOND, driver, program, arguments)
}

/// Records a program with these sampling options, and checks all samples.
#[track_caller]
fn sampled_with(options: &[&str], driver: Driver, program: &str, arguments: &[&str]) -> Sampled {
    let dir = TestDir::new();
    let options = [options, &["--capture"]].concat();
    well(&mut dir.untraced(driver, program, arguments)); // fills the kernel cache
    well(&mut dir.record_with(&options, driver, program, arguments));
    let sampled = Sampled::of(&dir);
    sampled.assert_sound();
    sampled
}

/// Checks that the samples of kernels are proportional to their times: for kernels that run in one thread and take
/// turns, so that the rest of the machine takes the same share of all of them.
#[track_caller]
fn assert_shares_follow(sampled: &Sampled) {
    let shares = sampled.shares();
    let samples: u64 = shares.values().map(|share| share.0).sum();
    let time: u64 = shares.values().map(|share| share.1).sum();
    for (kernel, (samples_of, time_of)) in &shares {
        let expected = samples as f64 * *time_of as f64 / time as f64;
        // Five standard deviations of a count, and a third for other load on the processor.
        let slack = 5.0 * (expected + 1.0).sqrt() + expected / 3.0;
        let found = *samples_of as f64;
        assert!(
            (found - expected).abs() <= slack,
            "{kernel}: {found} samples, {expected} by its time, of {samples}"
        );
    }
}

/// Reads code by the reader that this binary is linked with.
fn symbols() -> Symbols {
    gputrail_code::reader::link(&gputrail_symbols::GPUTRAIL_SYMBOLS);
    Symbols::new()
}

#[test]
fn clpeaks_samples_are_in_its_kernels() {
    needs!(clpeaks_samples_are_in_its_kernels: Need::Pocl, Need::Program("clpeak"));
    sampled(Driver::Threaded, "clpeak", &["--global-bandwidth"]);
}

#[test]
fn a_kernel_has_no_more_samples_than_it_has_time() {
    needs!(a_kernel_has_no_more_samples_than_it_has_time: Need::Pocl, Need::Program("clpeak"));
    let sampled = sampled(Driver::Basic, "clpeak", &["--global-bandwidth"]);
    for (kernel, (samples, time)) in sampled.shares() {
        let most = time as f64 / 1e6;
        let slack = 5.0 * (most + 1.0).sqrt();
        assert!(
            samples as f64 <= most + slack,
            "{kernel}: {samples}, {most}"
        );
    }
}

#[test]
fn ffmpegs_samples_follow_the_times_of_its_kernels() {
    needs!(ffmpegs_samples_follow_the_times_of_its_kernels: Need::Pocl, Need::Program("ffmpeg"));
    let arguments = ffmpeg(200, &["-f", "null", "-"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    assert_shares_follow(&sampled(Driver::Basic, "ffmpeg", &arguments));
}

#[test]
fn ffmpegs_samples_are_in_its_kernels() {
    needs!(ffmpegs_samples_are_in_its_kernels: Need::Pocl, Need::Program("ffmpeg"));
    let arguments = ffmpeg(50, &["-f", "null", "-"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let sampled = sampled(Driver::Threaded, "ffmpeg", &arguments);
    let code: HashSet<_> = sampled
        .samples
        .iter()
        .map(|sample| sample.code_object)
        .collect();
    assert!(code.len() >= 2, "several kernels");
    let has_source = |id: &CodeObjectId| source(sampled.metadata(), *id).is_some();
    assert!(
        code.iter().all(has_source),
        "the program supplied their source"
    );
}

#[test]
fn clblasts_samples_are_in_its_kernels() {
    needs!(clblasts_samples_are_in_its_kernels: Need::Pocl, Need::Program("clblast_test_xgemv"));
    // Its kernels take 80 ms of a few seconds.
    let every = ["--pc-sampling", "host-trap", "--interval", "50us"];
    sampled_with(
        &every,
        Driver::Threaded,
        "clblast_test_xgemv",
        &["-precision", "32"],
    );
}

#[test]
fn a_hot_loop_has_the_samples_on_its_line() {
    needs!(a_hot_loop_has_the_samples_on_its_line: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = dir.program("hot_loop");
    let options = [
        &EVERY_MILLISECOND[..],
        &["--capture", "--kernel-debug-info"],
    ]
    .concat();
    well(&mut dir.record_with(&options, Driver::Threaded, &program, &[]));
    let sampled = Sampled::of(&dir);
    sampled.assert_sound();
    let mut symbols = symbols();
    let mut hot = 0;
    for sample in &sampled.samples {
        let found = symbols.resolve(
            sampled.metadata(),
            sample.code_object,
            CodeOffset(sample.offset),
        );
        let text = source(sampled.metadata(), sample.code_object).expect("the program's source");
        let line = found.frames.first().and_then(|frame| frame.line);
        let line = line.and_then(|line| source_line(text, line));
        hot += usize::from(line.is_some_and(|line| line.contains("the hot loop")));
    }
    let all = sampled.samples.len();
    assert!(
        hot * 100 >= all * 95,
        "{hot} of {all} samples in the hot loop"
    );
    assert!(symbols.looked_up() < all as u64);
}

#[test]
fn a_program_does_not_notice_that_it_is_sampled() {
    needs!(a_program_does_not_notice_that_it_is_sampled: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = dir.program("hot_loop");
    let options = [&EVERY_MILLISECOND[..], &["-q", "--kernel-debug-info"]].concat();
    for arguments in [
        &[][..],
        &["-DX=1"],
        &["-cl-fast-relaxed-math -DX=1"],
        &["-g"],
    ] {
        let alone = run(&mut dir.untraced(Driver::Threaded, &program, arguments)).well();
        let record = |options: &[&str]| {
            let recorded =
                run(&mut dir.record_with(options, Driver::Threaded, &program, arguments));
            recorded.well().text()
        };
        let plain = record(&["-q"]);
        let mut recorded = record(&options);
        // The recording's own files are open with and without sampling.
        let but_files = |text: &str| {
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines[..lines.len() - 1].to_vec()
        };
        assert_eq!(but_files(&alone.text()), but_files(&recorded));
        // The program may count a file that the sampler reads at that moment.
        let mut again = 0;
        while recorded != plain && again < 5 {
            recorded = record(&options);
            again += 1;
        }
        assert_eq!(plain, recorded);
    }
}

#[test]
fn configurations_that_no_agent_offers_are_refused_with_the_offered_ones() {
    needs!(configurations_that_no_agent_offers_are_refused_with_the_offered_ones: Need::Pocl);
    let dir = TestDir::new();
    for request in [
        ["--pc-sampling", "stochastic", "--interval", "65536cycles"],
        ["--pc-sampling", "host-trap", "--interval", "1us"],
        ["--pc-sampling", "host-trap", "--interval", "1m"],
    ] {
        let refused = run(&mut dir.record_with(&request, Driver::Threaded, "true", &[]));
        assert_eq!(refused.code(), 125);
        let says = &refused.stderr;
        assert!(says.contains("host-trap every 50 us to 1 s"), "{says}");
        assert!(!dir.join("run.pftrace").exists());
    }
}

#[test]
fn each_wrong_request_to_the_simulated_gpu_is_answered_with_the_possible_ones() {
    let dir = TestDir::new();
    let anything = "it can do: host-trap every 1 us to 1 s; \
                    stochastic every 256 cycles to 2147483648 cycles, a power of two";
    for (method, interval, says) in [
        // Not a power of two, out of range, in another unit, and zero.
        (
            "stochastic",
            "1000cycles",
            "intervals are powers of two, the nearest 512 and 1024 cycles",
        ),
        (
            "stochastic",
            "128cycles",
            "it can do: stochastic every 256 cycles to 2147483648 cycles, a power of two",
        ),
        (
            "stochastic",
            "4294967296cycles",
            "it can do: stochastic every 256 cycles",
        ),
        ("host-trap", "1ns", "it can do: host-trap every 1 us to 1 s"),
        ("host-trap", "0", "it can do: host-trap every 1 us to 1 s"),
        ("host-trap", "2s", "it can do: host-trap every 1 us to 1 s"),
        ("host-trap", "256cycles", anything),
        ("stochastic", "1ms", anything),
    ] {
        let request = ["demo", "--pc-sampling", method, "--interval", interval];
        let refused = run(&mut dir.gputrail(request));
        assert_eq!(refused.code(), 125, "{interval}: {}", refused.stderr);
        let told = &refused.stderr;
        assert!(
            told.starts_with("gputrail: agent 1 (Simulated GPU 0) cannot do "),
            "{told}"
        );
        assert!(told.contains(says), "{told}");
        assert!(!dir.join("demo.pftrace").exists());
    }
    for (method, interval, says) in [
        ("by-ear", "1ms", "expected host-trap or stochastic"),
        ("host-trap", "often", "`often` is not a time"),
        (
            "stochastic",
            "99999999999999999999cycles",
            "stochastic,65536cycles",
        ),
    ] {
        let request = ["demo", "--pc-sampling", method, "--interval", interval];
        let refused = run(&mut dir.gputrail(request));
        assert_eq!(refused.code(), 125, "{interval}: {}", refused.stderr);
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
    }
}

/// Starts a command as a debugger does, and continues it whenever it is stopped.
#[allow(clippy::zombie_processes, reason = "it is waited for, by its id")]
fn traced(command: &mut Command) -> std::process::Output {
    use std::os::unix::process::CommandExt as _;
    let begin = || {
        // SAFETY: a system call without memory.
        let traced = unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
        (traced == 0)
            .then_some(())
            .ok_or_else(std::io::Error::last_os_error)
    };
    // SAFETY: what runs after the fork makes a system call and nothing else.
    let command = unsafe { command.pre_exec(begin) };
    let errors = tempfile::NamedTempFile::new().expect("a file");
    command.stderr(errors.reopen().expect("a file"));
    let child = command.spawn().expect("it starts");
    let id = child.id() as i32;
    loop {
        let mut status = 0;
        // SAFETY: the child is ours, and waited for here alone.
        unsafe {
            assert_eq!(libc::waitpid(id, &mut status, 0), id);
            if !libc::WIFSTOPPED(status) {
                return std::process::Output {
                    status: std::os::unix::process::ExitStatusExt::from_raw(status),
                    stdout: Vec::new(),
                    stderr: std::fs::read(errors.path()).expect("what it said"),
                };
            }
            let signal = match libc::WSTOPSIG(status) {
                libc::SIGTRAP => 0,
                other => other as libc::c_long,
            };
            assert_eq!(libc::ptrace(libc::PTRACE_CONT, id, 0, signal), 0);
        }
    }
}

#[test]
fn under_a_debugger_there_is_no_sampling_and_it_is_named() {
    let dir = TestDir::new();
    let sampled = ["demo", "-q", "--pc-sampling", "host-trap"];
    let ended = traced(&mut dir.gputrail(sampled));
    assert_eq!(ended.status.code(), Some(125));
    let said = String::from_utf8_lossy(&ended.stderr);
    // SAFETY: it has no conditions.
    let me = unsafe { libc::gettid() };
    let expected =
        format!("PC sampling is not available under a debugger: process {me} traces this one");
    assert!(said.contains(&expected), "{said}");
    // Without samples it runs under a debugger, too.
    let ended = traced(&mut dir.gputrail(["demo", "-q"]));
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
}

#[test]
fn a_programs_own_timers_and_perf_events_keep_working() {
    needs!(a_programs_own_timers_and_perf_events_keep_working: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = dir.program("own_profile");
    let alone = run(&mut dir.untraced(Driver::Threaded, &program, &[])).well();
    assert!(
        alone
            .text()
            .contains("SIGPROF 1, timer 1, of another thread 0, counted 1, sampled 1, blocked 0"),
        "{}",
        alone.text()
    );
    for interval in ["1ms", "200us"] {
        let options = ["-q", "--pc-sampling", "host-trap", "--interval", interval];
        for driver in [Driver::Threaded, Driver::Basic] {
            let recorded = run(&mut dir.record_with(&options, driver, &program, &[])).well();
            assert_eq!(alone.text(), recorded.text());
            assert_eq!(recorded.stderr, "");
        }
    }
}

#[test]
fn where_perf_events_are_forbidden_the_setting_is_named() {
    needs!(where_perf_events_are_forbidden_the_setting_is_named: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let sandbox = dir.program("no_perf_events");
    let command = dir.record_with(&EVERY_MILLISECOND, Driver::Threaded, "clinfo", &[]);
    let mut sandboxed = dir.untraced(Driver::Threaded, &sandbox, &[]);
    sandboxed
        .arg(command.get_program())
        .args(command.get_args());
    let refused = run(&mut sandboxed);
    assert_eq!(refused.code(), 125);
    assert!(
        refused.stderr.contains("kernel.perf_event_paranoid"),
        "{}",
        refused.stderr
    );

    // If perf events are forbidden for the program only, the program still runs.
    let (sandbox, program) = (sandbox.to_str(), dir.program("hot_loop"));
    let (sandbox, program) = (sandbox.expect("UTF-8"), program.to_str().expect("UTF-8"));
    let mut inside = dir.record_with(&EVERY_MILLISECOND, Driver::Threaded, sandbox, &[program]);
    let ran = run(&mut inside).well();
    assert!(
        ran.stderr.contains("kernel.perf_event_paranoid"),
        "{}",
        ran.stderr
    );
    assert!(ran.text().contains("result 250.996"), "{}", ran.text());
}

/// Timers with an interval that the kernel's tick reaches on every machine.
const BY_TIMER: [&str; 6] = [
    "--pc-sampling",
    "host-trap",
    "--interval",
    "10ms",
    "--sampling-source",
    "timer",
];

#[test]
fn timers_take_samples_on_request() {
    needs!(timers_take_samples_on_request: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = dir.program("hot_loop");
    let options = [&BY_TIMER[..], &["--capture"]].concat();
    for driver in [Driver::Threaded, Driver::Basic] {
        well(&mut dir.record_with(&options, driver, &program, &["", "100"]));
        Sampled::of(&dir).assert_sound();
    }
    // Timers work if perf events are forbidden.
    let sandbox = dir.program("no_perf_events");
    let program = program.to_str().expect("UTF-8");
    let mut inside = dir.record_with(&options, Driver::Basic, sandbox, &[program, "", "100"]);
    well(&mut inside);
    Sampled::of(&dir).assert_sound();
}

#[test]
fn a_program_with_timers_of_its_own_keeps_them_beside_ours() {
    needs!(a_program_with_timers_of_its_own_keeps_them_beside_ours: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let program = dir.program("own_profile");
    let alone = run(&mut dir.untraced(Driver::Threaded, &program, &[])).well();
    let options = [&BY_TIMER[..], &["-q"]].concat();
    let recorded = run(&mut dir.record_with(&options, Driver::Threaded, &program, &[])).well();
    assert_eq!(alone.text(), recorded.text());
}

#[test]
fn an_interval_that_timers_cannot_reach_is_refused() {
    needs!(an_interval_that_timers_cannot_reach_is_refused: Need::Pocl);
    let dir = TestDir::new();
    // Ten thousand a second: no kernel ticks that fast.
    let fast = [
        "--pc-sampling",
        "host-trap",
        "--interval",
        "100us",
        "--sampling-source",
        "timer",
    ];
    let refused = run(&mut dir.record_with(&fast, Driver::Threaded, "true", &[]));
    assert_eq!(refused.code(), 125);
    let says = &refused.stderr;
    assert!(
        says.contains("host-trap every") && says.contains("to 1 s"),
        "{says}"
    );
    assert!(!says.contains("50 us"), "{says}");
}

#[test]
fn processes_sample_an_agent_at_a_time_each_at_its_own_interval() {
    needs!(processes_sample_an_agent_at_a_time_each_at_its_own_interval: Need::Pocl, Need::OpenClToolchain);
    let record = |interval: &str| {
        let dir = TestDir::new();
        let program = dir.program("hot_loop");
        let options = ["--pc-sampling", "host-trap", "--interval", interval];
        let options = [&options[..], &["--capture"]].concat();
        well(&mut dir.record_with(&options, Driver::Threaded, &program, &["", "100"]));
        let sampled = Sampled::of(&dir);
        sampled.assert_sound();
        let intervals: HashSet<u64> = sampled.totals.iter().map(|one| one.interval).collect();
        intervals
    };
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| record("2ms"));
        (record("1ms"), other.join().expect("the other recording"))
    });
    assert_eq!(one, HashSet::from([1_000_000]));
    assert_eq!(other, HashSet::from([2_000_000]));
}

#[test]
fn children_are_sampled_by_themselves() {
    needs!(children_are_sampled_by_themselves: Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    let fast = ["--pc-sampling", "host-trap", "--interval", "50us"];
    for source in [&fast[..], &BY_TIMER] {
        for then in ["fork", "spawn", "exec"] {
            let options = [source, &["--capture"]].concat();
            well(&mut dir.record_with(&options, Driver::Threaded, &lives, &["300", then]));
            let mut trace = dir.trace();
            trace.assert_sound();
            assert_eq!(kernels(&mut trace, "work"), 600, "{then}");
            for capture in dir.files(".gputrail") {
                // Each process has samples of its own dispatches only, each once.
                let sampled = Sampled::in_capture(&dir, &capture);
                sampled.assert_sound();
                let moments: HashSet<_> = sampled
                    .samples
                    .iter()
                    .map(|sample| (sample.thread, sample.time))
                    .collect();
                assert_eq!(moments.len(), sampled.samples.len(), "{then}: {capture}");
                std::fs::remove_file(dir.join(&capture)).expect("it is there");
            }
        }
    }
}

#[test]
fn a_program_that_is_killed_leaves_its_samples() {
    needs!(a_program_that_is_killed_leaves_its_samples: Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    let options = ["--pc-sampling", "host-trap", "--interval", "50us"];
    let arguments = ["100000", "signal", "9"];
    let killed = run(&mut dir.record_with(&options, Driver::Basic, &lives, &arguments));
    assert_eq!(killed.code(), 128 + libc::SIGKILL, "{}", killed.stderr);
    let mut trace = dir.trace();
    trace.assert_sound();
    assert_eq!(kernels(&mut trace, "work"), 100_000);
    let shown = trace.value::<i64>("select count(*) from cpu_profile_stack_sample");
    assert!(shown > 0, "the flame graph is there");
    let spots = well(&mut dir.gputrail(["hotspots", "run.pftrace"])).text();
    assert!(spots.contains("work"), "{spots}");
}
