//! `gputrail demo`: records a workload on the simulated GPU.
//!
//! Without tools the library simulates it in this process, in virtual time. With tools it runs in a process of its own that is
//! recorded like any other program, in which the library serves the tools.

use crate::carried::{Carried, FILE_NAME};
use crate::cli::demo::Demo;
use crate::cli::kernels::Replay;
use crate::cli::{Cli, Command, RunDemo};
use crate::failure::Failure;
use crate::figures::count;
use crate::messages::say;
use crate::output::{Output, WORKSHOP_PREFIX, folder_of, refuse_older};
use crate::ranks::Job;
use crate::signals::Signals;
use crate::summary_text::{self, TraceFacts};
use crate::trace::{self, TraceOrder};
use crate::{links, private_dir, questions, record};
use anyhow::{Context, anyhow};
use clap::Parser;
use gputrail_collect::question;
use gputrail_collect::scope::Scope;
use gputrail_collect::session::SESSION_VARIABLE;
use gputrail_convert::deliver_tables;
use libloading::os::unix::Library;
use std::ffi::{CStr, OsStr, OsString, c_char, c_void};
use std::path::Path;

/// The architecture by which the first of the two devices counts, and the second one unless another is asked for.
const FIRST_DEVICE: &str = "gfx9";

/// Runs the command; the result is the exit code.
pub fn run(arguments: Demo, carried: Carried) -> Result<u8, Failure> {
    if !arguments.tool.is_empty() || arguments.counting.replay == Replay::Application {
        if arguments.second_device != FIRST_DEVICE {
            return Err(anyhow!(
                "--second-device: {} is not for --replay application",
                arguments.second_device
            )
            .into());
        }
        if arguments.time_slice.is_some() {
            return Err(anyhow!("--time-slice is not for --replay application").into());
        }
        return run_with_tools(arguments, carried);
    }
    if let Some(ranks) = arguments.ranks {
        return write_ranks(&arguments, ranks);
    }
    let output = Output::named(&arguments.output)?;
    let signals = Signals::take().context("cannot take signals")?;
    let workshop = output.workshop()?;
    output.ends_at_once(signals, workshop.path());
    let path = output.path(std::process::id())?;
    let capture = workshop.path().join("demo.gputrail");
    record_here(&capture, &arguments, carried)?;
    let made = TraceOrder {
        captures: std::slice::from_ref(&capture),
        output: &output,
        path: &path,
        workshop: workshop.path(),
        contents: arguments.contents,
        captures_may_go: !arguments.capture,
        is_growing: false,
    }
    .make()
    .context("the trace could not be made")?;
    if arguments.capture {
        let kept = trace::keep_file(&capture, &made.path.with_extension("gputrail"))?;
        if !arguments.quiet {
            say!("capture kept in {}", kept.display());
        }
    }
    if !arguments.quiet {
        let choice = arguments.counting.choice()?;
        let known = TraceFacts {
            counters: choice.as_ref(),
            ..TraceFacts::default()
        };
        summary_text::print(&made, &known);
    }
    Ok(0)
}

/// Writes profiles of many ranks.
fn write_ranks(arguments: &Demo, ranks: u64) -> Result<u8, Failure> {
    let job = Job {
        ranks,
        steps: arguments.steps,
        seed: arguments.seed,
    };
    // The default name is that of a trace.
    let path = match Path::new(&arguments.output) {
        path if path.extension() == Some("pftrace".as_ref()) => Path::new("job"),
        path => path,
    };
    let path = &links::followed(path).with_context(|| format!("output {}", path.display()))?;
    if path.is_dir() {
        let is_profile = |name: &str| name.starts_with("rank") && name.ends_with(".json.gz");
        let names: Vec<String> = (0..ranks).map(|rank| job.file_name(rank)).collect();
        refuse_older(path, is_profile, |old| {
            names.iter().any(|name| old == &**name)
        })?;
    }
    let (signals, beside) = (
        Signals::take().context("cannot take signals")?,
        folder_of(path),
    );
    let workshop = private_dir::create_in(beside, WORKSHOP_PREFIX)
        .with_context(|| format!("the directory {} cannot be written", beside.display()))?;
    let ends_at_once = signals.end_at_once(workshop.path());
    let made = workshop.path().join("profiles");
    std::fs::create_dir(&made).context("the profiles cannot be written")?;
    job.write(&made).context("the profiles cannot be written")?;
    drop(ends_at_once);
    deliver_tables(&made, path).with_context(|| format!("cannot write {}", path.display()))?;
    if !arguments.quiet {
        for (rank, why) in job.slow() {
            say!("rank {rank} is slow: {why}");
        }
        say!("profiles of {}: {}", count(ranks, "rank"), path.display());
    }
    Ok(0)
}

/// Records the workload in a process with the tools.
fn run_with_tools(arguments: Demo, carried: Carried) -> Result<u8, Failure> {
    let ourselves = std::env::current_exe().context("cannot find this command again")?;
    let numbers = [arguments.seed, arguments.steps].map(|number| number.to_string());
    let words = [
        OsStr::new("gputrail"),
        OsStr::new("record"),
        OsStr::new("--"),
    ];
    let words = words
        .into_iter()
        .chain([ourselves.as_os_str(), OsStr::new("run-demo")]);
    let words = words.chain(numbers.iter().map(OsStr::new));
    let Ok(Cli {
        command: Command::Record(mut record),
    }) = Cli::try_parse_from(words)
    else {
        unreachable!("these are a program and its arguments");
    };
    record.is_demo = true;
    if let Some(request) = arguments.sampling() {
        record.sampling.pc_sampling = Some(request.method);
        record.sampling.interval = Some((request.interval, request.unit));
    }
    record.counting = arguments.counting;
    record.environment_period = arguments.environment_period;
    record.scope.kinds = arguments.kinds;
    record.output = Some(arguments.output);
    record.tool = arguments.tool;
    record.capture = arguments.capture;
    record.contents = arguments.contents;
    record.quiet = arguments.quiet;
    record::run(*record, carried)
}

type RunFunction = unsafe extern "C" fn(*const DemoOptions, *mut c_void) -> i32;
type LastError = unsafe extern "C" fn(*mut c_char, usize) -> i32;

/// `gputrail_simulation_options`.
#[repr(C)]
struct DemoOptions {
    size: usize,
    seed: u64,
    steps: u64,
}

/// `gputrail run-demo`: runs the workload by the injected library of the recording that this process is in.
pub fn run_here(arguments: &RunDemo) -> Result<u8, Failure> {
    let session = std::env::var_os(SESSION_VARIABLE).context("this process is not recorded")?;
    let path = Path::new(&session).join(FILE_NAME);
    // SAFETY: the injected library, which is never unloaded.
    let library = unsafe { Library::open(Some(&path), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    let library = library.with_context(|| format!("cannot open {}", path.display()))?;
    // SAFETY: the library's functions of these names have these types.
    let functions = unsafe {
        let run = library.get::<RunFunction>("gputrail_simulation_run");
        run.and_then(|run| Ok((run, library.get::<LastError>("gputrail_last_error")?)))
    };
    let (run, last_error) = functions.context("the library is of another version")?;
    let options = DemoOptions {
        size: size_of::<DemoOptions>(),
        seed: arguments.seed,
        steps: arguments.steps,
    };
    // SAFETY: a structure of this size; no report is wanted.
    if unsafe { run(&options, std::ptr::null_mut()) } != 0 {
        let mut text = [0; 1024];
        // SAFETY: room for that many bytes.
        unsafe { last_error(text.as_mut_ptr(), text.len()) };
        // SAFETY: the function ends its text with a 0.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) };
        return Err(anyhow!("{}", text.to_string_lossy()).into());
    }
    Ok(0)
}

/// Has the library simulate the workload, and record it into `capture`.
fn record_here(capture: &Path, arguments: &Demo, carried: Carried) -> Result<(), Failure> {
    let scope = Scope {
        kinds: arguments.kinds.clone(),
        sampling: arguments.sampling(),
        counters: arguments.counting.choice()?,
        environment_period: arguments.environment_period,
        ..Scope::default()
    };
    let mut words = vec![
        question::DEMO.into(),
        capture.as_os_str().to_owned(),
        scope.to_text().into(),
        format!("seed={}", arguments.seed).into(),
        format!("steps={}", arguments.steps).into(),
        format!("second-device={}", arguments.second_device).into(),
    ];
    if let Some(slice) = arguments.time_slice {
        words.push(format!("time-slice={}", slice.as_nanos()).into());
    }
    if arguments.aggregate_samples {
        words.push(OsString::from("aggregate-samples"));
    }
    questions::ask(carried, &words)?;
    Ok(())
}
