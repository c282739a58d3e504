//! The checks: each runs a program with and without gputrail, and compares.

use crate::programs::{COUNT, PROGRAMS, Program, Values, parse};
use crate::report::{Check, Report, Verdict};
use crate::{cuda, cupti};
use serde_json::Value;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest run of one program.
const LONGEST: Duration = Duration::from_secs(60);

/// The reason for which a check was not done, or not to its end.
const NO_TIME: &str = "no time was left";

/// The exit code of `gputrail record` if it could not do what it was asked for.
const REFUSED: i32 = 125;

/// The checks in progress.
pub struct Checks {
    /// The command under test.
    pub gputrail: PathBuf,
    /// The folder of the report and of the traces.
    pub folder: PathBuf,
    /// When all checks have to be done.
    pub deadline: Instant,
    /// libcupti, for CUPTI alone and for gputrail.
    pub cupti: Option<PathBuf>,
    /// The only check that is done, if not all are.
    pub only: Option<String>,
    /// The report.
    pub report: Report,
}

/// A program that has ended.
struct Ended {
    /// Its exit code, or 128 and its signal, as shells have it.
    code: i32,
    values: Values,
    out: String,
    errors: String,
}

/// Runs a check that is more than one program.
type Run = fn(&mut Checks);

impl Checks {
    /// Runs all checks.
    pub fn run(&mut self) {
        let only = self.only.clone();
        let is_wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
        for program in PROGRAMS.iter().filter(|program| is_wanted(program.name)) {
            self.program(program);
        }
        let others: [(&str, Run); 8] = [
            ("overhead", Checks::overhead),
            ("samples", Checks::sampling),
            ("counters", Checks::counters),
            ("ranges", Checks::ranges),
            ("events", Checks::events),
            ("opencl", Checks::opencl),
            ("pytorch", |checks| checks.python("pytorch", PYTORCH)),
            ("cupy", |checks| checks.python("cupy", CUPY)),
        ];
        for (_, check) in others.iter().filter(|(name, _)| is_wanted(name)) {
            check(self);
        }
    }

    /// This executable, to run one of its programs.
    fn own(&self, arguments: &[&str]) -> Command {
        let own = std::env::current_exe().unwrap_or_else(|_| "gpu-check".into());
        let mut command = Command::new(own);
        command.args(arguments);
        command
    }

    /// `gputrail record` of a command, to a trace of this name.
    fn recorded(&self, name: &str, options: &[&str], program: &Command) -> Command {
        let mut command = Command::new(&self.gputrail);
        command.args(["record", "-q", "-o"]).arg(self.trace(name));
        command.args(options).arg("--").arg(program.get_program());
        command.args(program.get_args());
        if let Some(cupti) = &self.cupti {
            command.env("GPUTRAIL_CUPTI", cupti);
        }
        command
    }

    fn trace(&self, name: &str) -> PathBuf {
        self.folder.join(name).with_extension("pftrace")
    }

    /// Runs a command until it ends, but not beyond the time that is left.
    fn ended(&self, command: &mut Command) -> Result<Ended, String> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(NO_TIME.into());
        }
        let out = tempfile(&self.folder, "out")?;
        let errors = tempfile(&self.folder, "errors")?;
        // With all that it starts, so that nothing is left when its time is over.
        command.process_group(0).stdin(Stdio::null());
        command.stdout(out.1).stderr(errors.1);
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .spawn()
            .map_err(|error| format!("{name}: {error}"))?;
        let status = wait(&mut child, left.min(LONGEST));
        let status = status.map_err(|error| {
            if left < LONGEST {
                NO_TIME.to_owned()
            } else {
                error
            }
        });
        let read = |path: &Path| {
            let bytes = std::fs::read(path).unwrap_or_default();
            let _ = std::fs::remove_file(path);
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let (out, errors) = (read(&out.0), read(&errors.0));
        let status = status?;
        Ok(Ended {
            code: match (status.code(), status.signal()) {
                (Some(code), _) => code,
                (None, signal) => 128 + signal.unwrap_or(0),
            },
            values: parse(&out),
            out,
            errors,
        })
    }

    /// The tables of `gputrail summary`.
    fn summary(&self, name: &str) -> Result<Value, String> {
        let mut command = Command::new(&self.gputrail);
        command.arg("summary").arg(self.trace(name));
        command.args(["--format", "json"]);
        let ended = self.ended(&mut command)?;
        serde_json::from_str(&ended.out).map_err(|error| format!("the summary: {error}"))
    }

    /// Runs a program with and without gputrail and compares results and counts.
    fn program(&mut self, program: &Program) {
        let about = program.about.to_owned();
        let mut check = blank(program.name, &about);
        let result = self.compare(program.name, program.signal, &mut check);
        self.finish(check, result);
    }

    fn compare(&self, name: &str, signal: i32, check: &mut Check) -> Result<(), String> {
        let program = self.own(&["program", name]);
        let without = self.ended(&mut self.own(&["program", name]))?;
        let expected = if signal == 0 { 0 } else { 128 + signal };
        if without.code != expected {
            check.verdict = Verdict::NotRun;
            return Err(format!(
                "without gputrail it ended with {} instead of {expected}: {}",
                without.code,
                without.errors.trim()
            ));
        }
        let with = self.ended(&mut self.recorded(name, &[], &program))?;
        self.note_errors(check, &with);
        if with.code != without.code {
            return Err(format!(
                "it ended with {} instead of {}",
                with.code, without.code
            ));
        }
        for (value, plain) in &without.values {
            let traced = with.values.get(value);
            if value.starts_with("time_") {
                check.figures.push((format!("{value} without"), *plain));
                let traced = traced.copied().unwrap_or(f64::NAN);
                check.figures.push((format!("{value} with"), traced));
            } else if traced != Some(plain) {
                return Err(format!(
                    "{value}: {plain} without, {traced:?} with gputrail"
                ));
            }
        }
        self.count(name, &without.values, &with.values, check)
    }

    /// Compares the counts of a trace with those of the program.
    fn count(
        &self,
        name: &str,
        values: &Values,
        traced: &Values,
        check: &mut Check,
    ) -> Result<(), String> {
        let summary = self.summary(name)?;
        let mut wrong = Vec::new();
        let tables = [
            ("kernels", "kernels", ""),
            ("copies", "operations", "copy"),
            ("fills", "operations", "fill"),
        ];
        for (value, table, begin) in tables {
            let Some(expected) = values.get(value) else {
                continue;
            };
            let found = total(&summary, table, begin, "count");
            check
                .lines
                .push(format!("{value}: {expected} made, {found} in the trace"));
            if found != *expected {
                wrong.push(value);
            }
        }
        let lost = summary["recording"].as_array().into_iter().flatten();
        let lost = lost.filter(|row| row["what"] == "records lost");
        if let Some(lost) = lost
            .filter_map(|row| row["value"].as_f64())
            .find(|lost| *lost > 0.0)
        {
            check.lines.push(format!("records lost: {lost}"));
            wrong.push("losses");
        }
        if let Some(events) = traced.get("time_events_ms") {
            let kernels = total(&summary, "kernels", "", "total_ns") / 1e6;
            check
                .figures
                .push(("kernels in the trace ms".into(), kernels));
            // One stream: the kernels run one after the other, between the events.
            if kernels > events * 1.01 + 0.01 || kernels < events * 0.1 {
                wrong.push("times of kernels beside those of events");
            }
        }
        let findings = self.findings(name)?;
        if let Some(finding) = findings.iter().find(|line| line.contains("support layers")) {
            check.verdict = Verdict::NotRun;
            return Err(finding.clone());
        }
        if !findings.is_empty() {
            check.lines.extend(findings);
            wrong.push("findings of `gputrail check`");
        }
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(format!("wrong: {}", wrong.join(", ")))
        }
    }

    /// The findings of `gputrail check` in a trace: the first lines, none if nothing is wrong.
    fn findings(&self, name: &str) -> Result<Vec<String>, String> {
        let mut command = Command::new(&self.gputrail);
        command.arg("check").arg(self.trace(name));
        let ended = self.ended(&mut command)?;
        let lines = ended.out.lines().chain(ended.errors.lines());
        Ok(match ended.code {
            0 => Vec::new(),
            _ => lines.take(3).map(|line| format!("check: {line}")).collect(),
        })
    }

    fn note_errors(&self, check: &mut Check, ended: &Ended) {
        let said = ended.errors.lines().filter(|line| !line.trim().is_empty());
        check
            .lines
            .extend(said.take(10).map(|line| format!("said: {line}")));
    }

    fn finish(&mut self, mut check: Check, result: Result<(), String>) {
        match result {
            Ok(()) => {}
            Err(error) => {
                check.verdict = if error == NO_TIME || check.verdict == Verdict::NotRun {
                    Verdict::NotRun
                } else {
                    Verdict::Failed
                };
                check.lines.push(error);
            }
        }
        self.report.add(check);
    }

    /// The cost of a launch and of a call: alone, with CUPTI alone, and with gputrail.
    fn overhead(&mut self) {
        let about =
            "The time of a launch and of cuStreamQuery, ns: medians, the best of three runs";
        let mut check = blank("cost of calls", about);
        check.verdict = Verdict::Measured;
        let result = self.measure(&mut check);
        self.finish(check, result);
    }

    fn measure(&self, check: &mut Check) -> Result<(), String> {
        let program = self.own(&["program", "overhead"]);
        let mut ways = vec![("alone", self.own(&["program", "overhead"]))];
        match &self.cupti {
            Some(cupti) => {
                let mut command = self.own(&["program", "overhead"]);
                command.env(cupti::VARIABLE, cupti);
                ways.push(("CUPTI alone", command));
            }
            None => check.lines.push("no libcupti was found".into()),
        }
        ways.push(("gputrail", self.recorded("cost", &[], &program)));
        for (way, command) in &mut ways {
            let mut best: Option<[f64; 2]> = None;
            for _ in 0..3 {
                let ended = self.ended(command)?;
                if ended.code != 0 {
                    let errors = ended.errors.trim();
                    return Err(format!("{way}: ended with {}: {errors}", ended.code));
                }
                let value = |name| ended.values.get(name).copied().unwrap_or(f64::NAN);
                let now = [value("time_launch_ns"), value("time_query_ns")];
                best = Some(match best {
                    Some(best) => [best[0].min(now[0]), best[1].min(now[1])],
                    None => now,
                });
            }
            let best = best.unwrap_or([f64::NAN; 2]);
            check.figures.push((format!("launch, {way}"), best[0]));
            check
                .figures
                .push((format!("cuStreamQuery, {way}"), best[1]));
        }
        Ok(())
    }

    /// Samples of a long kernel.
    fn sampling(&mut self) {
        let mut check = blank("samples", "Samples of the program counter of a long kernel");
        let result = self.sample(&mut check);
        self.finish(check, result);
    }

    fn sample(&self, check: &mut Check) -> Result<(), String> {
        let options = ["--pc-sampling", "stochastic"];
        let program = self.own(&["program", "spin"]);
        let ended = self.ended(&mut self.recorded("samples", &options, &program))?;
        self.note_errors(check, &ended);
        match ended.code {
            0 => {}
            REFUSED => {
                check.verdict = Verdict::NotRun;
                return Err("gputrail does not sample this GPU".into());
            }
            code => return Err(format!("it ended with {code}")),
        }
        if ended.errors.contains("NVreg_RestrictProfilingToAdminUsers") {
            check.verdict = Verdict::NotRun;
            return Err("the driver allows sampling to administrators only".into());
        }
        let hotspots = |options: &[&str]| {
            let mut command = Command::new(&self.gputrail);
            command.arg("hotspots").arg(self.trace("samples"));
            self.ended(command.args(options))
        };
        let table = hotspots(&[])?.out;
        check
            .lines
            .extend(table.lines().take(20).map(str::to_owned));
        let json: Value = serde_json::from_str(&hotspots(&["--format", "json"])?.out)
            .map_err(|error| format!("the hotspots: {error}"))?;
        let kernels = json["kernels"].as_array().into_iter().flatten();
        let samples = |name: Option<&str>| -> f64 {
            let of = kernels.clone().filter(|kernel| {
                let kernel = kernel["name"].as_str().unwrap_or_default();
                name.is_none_or(|name| name == kernel)
            });
            of.filter_map(|kernel| kernel["samples"].as_f64()).sum()
        };
        let (all, spin) = (samples(None), samples(Some("spin")));
        check.figures.push(("samples".into(), all));
        check
            .figures
            .push(("samples in the long kernel".into(), spin));
        // Nothing else runs.
        if spin > 0.0 && spin >= 0.9 * all {
            Ok(())
        } else {
            Err(format!("samples in the long kernel: {spin} of {all}"))
        }
    }

    /// Counters of kernels of which each needs the result of the one before, in several passes.
    fn counters(&mut self) {
        let mut check = blank(
            "counters",
            "Threads of each of 100 kernels, counted in several passes",
        );
        let result = self.compare_counters(&mut check);
        self.finish(check, result);
    }

    fn compare_counters(&self, check: &mut Check) -> Result<(), String> {
        const THREADS: &str = "sm__threads_launched.sum";
        // It takes several passes of a kernel.
        let metrics = format!("{THREADS},gpu__compute_memory_throughput");
        let program = self.own(&["program", "streams"]);
        let mut command = self.recorded("counters", &["--counters", &metrics], &program);
        let ended = self.ended(&mut command)?;
        self.note_errors(check, &ended);
        if ended.code != 0 {
            // It checks the results of its kernels.
            let errors = ended.errors.trim();
            return Err(format!("it ended with {}: {errors}", ended.code));
        }
        let summary = self.summary("counters")?;
        let rows: Vec<&Value> = summary["counters"]
            .as_array()
            .into_iter()
            .flatten()
            .collect();
        for row in &rows {
            check.lines.push(format!(
                "{} of {}: {} to {}, of {} kernels",
                row["counter"], row["kernel"], row["min"], row["max"], row["dispatches"]
            ));
        }
        let Some(row) = rows.iter().find(|row| row["counter"] == THREADS) else {
            check.verdict = Verdict::NotRun;
            return Err("gputrail does not count on this GPU".into());
        };
        let value = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        let expected = ended.values.get("kernels").copied().unwrap_or(f64::NAN);
        if value("dispatches") != expected {
            let found = value("dispatches");
            return Err(format!("values of {found} kernels instead of {expected}"));
        }
        let threads = COUNT as f64;
        if (value("min"), value("max")) == (threads, threads) {
            Ok(())
        } else {
            Err(format!("a kernel has {threads} threads"))
        }
    }

    /// Counters of a range of markers, which is one of CUPTI's.
    fn ranges(&mut self) {
        let mut check = blank(
            "ranges",
            "Threads of 100 kernels in 4 streams, counted as one range of markers",
        );
        let result = self.compare_ranges(&mut check);
        self.finish(check, result);
    }

    fn compare_ranges(&self, check: &mut Check) -> Result<(), String> {
        const THREADS: &str = "sm__threads_launched.sum";
        let program = self.own(&["program", "streams"]);
        let options = ["--counters", THREADS, "--counters-range", "chain"];
        let ended = self.ended(&mut self.recorded("ranges", &options, &program))?;
        self.note_errors(check, &ended);
        if ended.code != 0 {
            let errors = ended.errors.trim();
            return Err(format!("it ended with {}: {errors}", ended.code));
        }
        let summary = self.summary("ranges")?;
        let mut rows = summary["range_counters"].as_array().into_iter().flatten();
        let Some(row) = rows.find(|row| row["range"] == "chain") else {
            check.verdict = Verdict::NotRun;
            return Err("gputrail does not count ranges on this GPU".into());
        };
        check.lines.push(format!(
            "{} of {}: {}, of {} ranges",
            row["counter"], row["range"], row["max"], row["ranges"]
        ));
        let kernels = ended.values.get("kernels").copied().unwrap_or(f64::NAN);
        let threads = kernels * COUNT as f64;
        let found = row["max"].as_f64().unwrap_or(f64::NAN);
        if row["ranges"] == 1 && found == threads {
            Ok(())
        } else {
            Err(format!("{found} threads instead of {threads}"))
        }
    }

    /// Events of kernels, on a GPU that is too old for the range profiler.
    fn events(&mut self) {
        let mut check = blank(
            "events",
            "Warps of each of 100 kernels by CUPTI's Event API, on a GPU below compute capability 7.0",
        );
        let result = self.compare_events(&mut check);
        self.finish(check, result);
    }

    fn compare_events(&self, check: &mut Check) -> Result<(), String> {
        const WARPS: &str = "warps_launched";
        let mut list = Command::new(&self.gputrail);
        list.args(["counters", "list", "--agent", "cuda:0", "--format", "csv"]);
        if let Some(cupti) = &self.cupti {
            list.env("GPUTRAIL_CUPTI", cupti);
        }
        let listed = self.ended(&mut list)?;
        if !listed.out.contains(WARPS) {
            check.verdict = Verdict::NotRun;
            let errors = listed.errors.trim();
            return Err(format!("the GPU has no event {WARPS}: {errors}"));
        }
        let lines = listed.out.lines().count().saturating_sub(1);
        check.lines.push(format!("{lines} events and metrics"));
        let program = self.own(&["program", "streams"]);
        let mut command = self.recorded("events", &["--counters", WARPS], &program);
        let ended = self.ended(&mut command)?;
        self.note_errors(check, &ended);
        if ended.code != 0 {
            let errors = ended.errors.trim();
            return Err(format!("it ended with {}: {errors}", ended.code));
        }
        let summary = self.summary("events")?;
        let mut rows = summary["counters"].as_array().into_iter().flatten();
        let row = rows.find(|row| row["counter"] == WARPS);
        let row = row.ok_or_else(|| format!("no kernel has a value of {WARPS}"))?;
        let value = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        check.lines.push(format!(
            "{WARPS} of {}: {} to {}, of {} kernels",
            row["kernel"], row["min"], row["max"], row["dispatches"]
        ));
        let expected = ended.values.get("kernels").copied().unwrap_or(f64::NAN);
        if value("dispatches") != expected {
            let found = value("dispatches");
            return Err(format!("values of {found} kernels instead of {expected}"));
        }
        // Instances that are not read are estimated from those that are.
        let warps = COUNT as f64 / 32.0;
        let is_near = |value: f64| (value - warps).abs() <= 0.05 * warps;
        if is_near(value("min")) && is_near(value("max")) {
            Ok(())
        } else {
            Err(format!("a kernel has {warps} warps"))
        }
    }

    /// OpenCL with the layer.
    fn opencl(&mut self) {
        let mut check = blank("opencl", "100 kernels of OpenCL, recorded by the layer");
        let result = self.compare("opencl", 0, &mut check);
        self.finish(check, result);
    }

    /// A framework of Python, if it is on this machine.
    fn python(&mut self, name: &str, script: &str) {
        let about = format!("Matrix products by {name}, if it is on this machine");
        let mut check = blank(name, &about);
        let result = self.compare_python(name, script, &mut check);
        self.finish(check, result);
    }

    fn compare_python(&self, name: &str, script: &str, check: &mut Check) -> Result<(), String> {
        let mut program = Command::new("python3");
        program.args(["-c", script]);
        let without = match self.ended(&mut program) {
            Ok(without) if without.code == 0 => without,
            other => {
                check.verdict = Verdict::NotRun;
                let error = other.map(|ended| ended.errors);
                let error = error.unwrap_or_else(|error| error);
                return Err(error.lines().last().unwrap_or("no Python").to_owned());
            }
        };
        let with = self.ended(&mut self.recorded(name, &[], &program))?;
        self.note_errors(check, &with);
        if (with.code, &with.out) != (0, &without.out) {
            return Err(format!(
                "it printed {:?} and ended with {}, instead of {:?}",
                with.out, with.code, without.out
            ));
        }
        let summary = self.summary(name)?;
        let kernels = total(&summary, "kernels", "", "count");
        check.lines.push(format!("kernels in the trace: {kernels}"));
        if kernels >= 100.0 {
            Ok(())
        } else {
            Err("too few kernels".into())
        }
    }
}

/// 100 products, each a kernel at least.
const PYTORCH: &str = "import torch\n\
    torch.manual_seed(1)\n\
    a = torch.ones(256, 256, device='cuda')\n\
    for _ in range(100): a = (a @ a).clamp(max=2.0)\n\
    torch.cuda.synchronize()\n\
    print('sum', float(a.sum()))";
const CUPY: &str = "import cupy\n\
    a = cupy.ones((256, 256), dtype=cupy.float32)\n\
    for _ in range(100): a = cupy.minimum(a @ a, 2.0)\n\
    cupy.cuda.Device().synchronize()\n\
    print('sum', float(a.sum()))";

fn blank(name: &str, about: &str) -> Check {
    Check {
        name: name.to_owned(),
        about: about.to_owned(),
        verdict: Verdict::Passed,
        lines: Vec::new(),
        figures: Vec::new(),
    }
}

/// The sum of a column over the rows whose name begins with `begin`.
fn total(summary: &Value, table: &str, begin: &str, column: &str) -> f64 {
    let rows = summary[table].as_array().into_iter().flatten();
    let rows = rows.filter(|row| {
        row["name"]
            .as_str()
            .is_some_and(|name| name.starts_with(begin))
    });
    // A sum of nothing is -0.
    rows.filter_map(|row| row[column].as_f64()).sum::<f64>() + 0.0
}

/// A new file of the folder.
fn tempfile(folder: &Path, name: &str) -> Result<(PathBuf, std::fs::File), String> {
    let path = folder.join(format!(".{name}-{}", std::process::id()));
    let file = std::fs::File::create(&path);
    let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok((path, file))
}

/// Waits for a child, and kills it after `limit`.
fn wait(child: &mut Child, limit: Duration) -> Result<std::process::ExitStatus, String> {
    let end = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if Instant::now() >= end => {
                // SAFETY: the process group of a child that has not been waited for.
                unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
                let _ = child.wait();
                return Err(format!("it did not end within {} s", limit.as_secs()));
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Facts about the machine.
pub fn machine(gputrail: &Path, gpu: &str, cupti: Option<&Path>) -> Vec<(String, String)> {
    let said = |command: &mut Command| {
        let output = command
            .output()
            .ok()
            .filter(|output| output.status.success());
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        text.map_or("unknown".to_owned(), |text| text.replace('\n', "; "))
    };
    let query = "--query-gpu=name,driver_version,compute_cap,pci.bus_id,memory.total";
    let mut smi = Command::new("nvidia-smi");
    smi.args([query, "--format=csv,noheader"]);
    let named = |name: &str, value: String| (name.to_owned(), value);
    vec![
        named("GPU", gpu.to_owned()),
        named("nvidia-smi", said(&mut smi)),
        named("gputrail", said(Command::new(gputrail).arg("--version"))),
        named(
            "libcupti",
            cupti.map_or("not found".into(), |path| path.display().to_string()),
        ),
        named("system", said(Command::new("uname").arg("-srm"))),
        named(
            "processors",
            std::thread::available_parallelism()
                .map_or(0, usize::from)
                .to_string(),
        ),
    ]
}

/// The driver's first GPU, or the reason why there is none. Asked in a process of its own, since this one starts others.
pub fn gpu() -> Result<String, String> {
    cuda::find().map(|(_, name)| name)
}
