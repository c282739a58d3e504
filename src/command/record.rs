//! `gputrail record`: runs a program with our OpenCL layer, and makes a trace of its recording.

use crate::ahead::{Ahead, RunningTrace};
use crate::carried::Carried;
use crate::cli::kernels::{Replay, Sampling};
use crate::cli::record::{Keep, Record};
use crate::early_trace::EarlyTrace;
use crate::failure::Failure;
use crate::figures::count;
use crate::flight::Asked;
use crate::library::{self, Unpacked};
use crate::markers::{MarkerSources, mention_other_libraries};
use crate::messages::say;
use crate::output::Output;
use crate::program::{self, Program};
use crate::signals::{self, Signals};
use crate::summary_text::{self, TraceFacts};
use crate::trace::{self, TraceCounts, TraceOrder};
use crate::watch::Watch;
use crate::{control, private_dir, probe, replay, tools, view};
use anyhow::{Context, anyhow};
use gputrail_buffer::{Layout, Policy};
use gputrail_collect::loading::{self, cuda};
use gputrail_collect::scope::{SCOPE_VARIABLE, Scope};
use gputrail_collect::session::{
    ProcessCapture, ProcessEnd, SESSION_VARIABLE, Server, ServerOptions, SessionResult, Size,
    signal_name,
};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// Maximum number of processes recorded at a time; each takes memory for its pool.
const PROCESSES: usize = 128;
/// Maximum number of processes without a trace that are explained.
const MAX_FINDINGS: usize = 5;
/// Space kept free on the output's disk, so that a capture that has filled the disk can still note that. A disk without
/// this space has none for a trace.
const RESERVE: u64 = 256 << 10;

/// The result of a recording.
struct RecordingResult {
    pid: u32,
    status: ExitStatus,
    /// The trace, if it was made while the program ran.
    ahead: Option<(PathBuf, TraceCounts)>,
    finished: SessionResult,
    /// The reasons why processes with OpenCL were not traced.
    findings: Vec<String>,
    /// Whether threads waited for memory.
    lossless: bool,
}

/// Runs the command with the `carried` libraries; the result is the exit code.
pub fn run(mut arguments: Record, carried: Carried) -> Result<u8, Failure> {
    let (option, buffers, policy) = match arguments.flight_recorder {
        Some(Keep::Bytes(size)) => ("--flight-recorder", size, Policy::Overwrite),
        Some(Keep::Time(_)) => ("--buffers", arguments.buffers, Policy::Overwrite),
        None => ("--buffers", arguments.buffers, arguments.policy),
    };
    let layout = Size::layout(buffers, arguments.buffer_size)
        .map_err(|error| anyhow!("{option} and --buffer-size: {error}"))?;
    let words = std::mem::take(&mut arguments.program);
    let program = Program::find(words.clone())?;
    let input = program::input_place();
    let output = match &arguments.output {
        Some(name) => Output::named(name)?,
        None => Output::of_program(&program.name)?,
    };
    let signals = Signals::take().context("cannot take signals")?;
    output.mention_abandoned();
    let workshop = output.workshop()?;
    let _lock = private_dir::DirectoryLock::take(workshop.path());
    let reserve = Reserve::new(workshop.path())?;
    let flight = Asked::of(&arguments, &output, workshop.path());
    if flight.is_some() {
        let taken = signals.trigger_by(arguments.trigger.0);
        taken.context("cannot take the signal that triggers")?;
    }
    let markers = MarkerSources::of(&arguments)?;
    let of_runs = markers.without_file();
    let mut scope = Scope::from(arguments.scope);
    arguments.sampling.add_to(&mut scope);
    scope.counters = arguments.counting.choice()?;
    scope.dump_on = arguments.dump_on;
    scope.range_ids = arguments.range_ids;
    scope.call_stacks = arguments.call_stacks;
    scope.environment_period = arguments.environment_period;
    // Arguments that are neither shown nor kept need not be recorded.
    scope.no_enqueue_arguments = !(arguments.contents.arguments || arguments.capture);
    let tools = tools::paths(&arguments.tool)?;
    mention_other_libraries();
    let early = EarlyTrace {
        output: &output,
        workshop: workshop.path(),
        contents: arguments.contents,
        path: Mutex::default(),
    };
    let settings = Settings {
        carried,
        sampled: &arguments.sampling,
        signals: &signals,
        layout,
        policy,
        early: &early,
        paused: arguments.paused,
        is_demo: arguments.is_demo,
    };
    let mut recorded = settings.record(ProgramRun {
        program: &program,
        tools: &tools,
        markers,
        scope: &scope,
        captures: workshop.path(),
        reserve,
        flight,
    })?;
    for capture in &recorded.finished.processes {
        if let Err(error) = capture.note_early_end() {
            say!("{}: {error}", capture.path.display());
        }
    }
    if let Err(error) = recorded.finished.note_refusals() {
        say!("the trace does not say which processes were not recorded: {error}");
    }
    if arguments.counting.replay == Replay::Application {
        if let Some((file, _)) = recorded.ahead.take() {
            // It has the counters of the first run alone.
            let _ = std::fs::remove_file(file);
        }
        let program = Program::find(words)?.again(input);
        let mut again = |run| {
            if signals::taken() > 0 {
                return Ok(None);
            }
            let folder = workshop.path().join(format!("run-{run}"));
            std::fs::create_dir(&folder).context("no room for another run")?;
            let mut scope = scope.clone();
            if let Some(choice) = &mut scope.counters {
                choice.run = Some(run);
            }
            let recorded = settings.record(ProgramRun {
                program: &program,
                tools: &[],
                markers: of_runs.without_file(),
                scope: &scope,
                captures: &folder,
                reserve: Reserve::new(&folder)?,
                flight: None,
            })?;
            Ok(Some(recorded.as_run()))
        };
        replay::replay(&recorded.as_run(), &mut again)?;
    }

    let captures = recorded.captures();
    let (replaced, path) = early.destination(recorded.pid)?;
    let order = TraceOrder {
        captures: &captures,
        output: replaced.as_ref().unwrap_or(&output),
        path: &path,
        workshop: workshop.path(),
        contents: arguments.contents,
        captures_may_go: !arguments.capture,
        is_growing: false,
    };
    let made = match recorded.ahead.take() {
        Some((file, parts)) => order.deliver(&file, parts),
        None => order.make(),
    };
    recorded.say_what_went_wrong();
    let made = match made {
        Ok(made) => made,
        Err(error) => {
            let kept = keep(&captures, workshop);
            return Err(Failure::from(
                error.context(format!("the trace could not be made{kept}")),
            ));
        }
    };
    if arguments.capture {
        keep_captures(&recorded.finished.processes, &made.path, arguments.quiet)?;
    } else if made.cut {
        say!("the trace ends early{}", keep(&captures, workshop));
    }
    let report = &made.report;
    if arguments.contents.raw_samples && report.samples > 0 && report.single_samples == 0 {
        say!("--raw-samples: there is no sample by itself, only counts: CUDA gives no more");
    }
    if !arguments.quiet {
        summary_text::print(&made, &recorded.known(&scope));
    }
    if arguments.open
        && let Err(error) = view::serve_file(&made.path, &signals)
    {
        // The caller waits for the program's exit code.
        say!("{error:#}");
    }
    Ok(program::exit_code(recorded.status))
}

/// The settings that all runs of a recording share.
struct Settings<'a> {
    carried: Carried,
    sampled: &'a Sampling,
    signals: &'a Signals,
    layout: Layout,
    policy: Policy,
    early: &'a EarlyTrace<'a>,
    paused: bool,
    is_demo: bool,
}

/// A run of the program.
struct ProgramRun<'a> {
    program: &'a Program,
    tools: &'a [PathBuf],
    markers: MarkerSources,
    scope: &'a Scope,
    /// The folder for its captures.
    captures: &'a Path,
    reserve: Reserve,
    flight: Option<Asked<'a>>,
}

impl Settings<'_> {
    /// Runs the program, and records it and its children.
    fn record(&self, run: ProgramRun<'_>) -> Result<RecordingResult, Failure> {
        let Settings { signals, early, .. } = *self;
        let ProgramRun {
            program,
            tools,
            markers,
            scope,
            captures,
            reserve,
            flight,
        } = run;
        let unpacked = library::unpack(self.carried)?;
        tools::probe(tools, &unpacked.library)?;
        let (flight, traces) = flight.map(|asked| (asked.flight, asked.traces)).unzip();
        if !self.is_demo {
            probe::probe(scope, self.sampled.sampling_source.into())?;
        }
        let server = Server::start(ServerOptions {
            directory: unpacked.directory.path().to_owned(),
            captures: captures.to_owned(),
            layout: self.layout,
            policy: self.policy,
            watermark: u32::MAX,
            processes: PROCESSES,
            flight,
            paused: self.paused,
        })
        .map_err(|error| anyhow!(error))?;
        let listener = control::ControlSocket::bind(unpacked.directory.path())?;
        let mut variables = variables(&unpacked, tools, scope, self.sampled);
        variables.extend(markers.variables(&unpacked.library));
        let name = program.name.to_string_lossy().into_owned();
        let mut ahead = Ahead::new(captures, early.contents);
        let mut reserve = Some(reserve);
        let arrivals = server.arrivals();
        let controls = server.controls();
        let (pid, status, outcome, findings, finished) = thread::scope(|scope| {
            // Threads start before the program, which nobody would wait for if one of them could not be started. They begin when
            // the program has an id, and end if it gets none.
            let listener = EndOnDrop(&listener);
            let (program_of_dumps, dumped) = mpsc::channel::<u32>();
            if let Some(traces) = traces {
                start_thread(scope, "dumps", move || {
                    if let Ok(pid) = dumped.recv() {
                        traces.make(pid);
                    }
                })?;
            }
            let (program_to_control, controlled) = mpsc::channel::<(u32, PathBuf)>();
            let control = listener.0;
            start_thread(scope, "control", move || {
                if let Ok((pid, output)) = controlled.recv() {
                    control.serve(&control::ControlledRecording {
                        program: name,
                        pid,
                        output,
                        controls,
                        make_trace: &|captures: &[PathBuf]| early.make(pid, captures),
                    });
                }
            })?;
            let making = ahead.making(arrivals);
            let mut child = program.start(&variables)?;
            let pid = child.id();
            // Both threads are waiting for it.
            let _ = program_of_dumps.send(pid);
            if let Ok((_, output)) = early.destination(pid) {
                let _ = program_to_control.send((pid, output));
            }
            let mut watch = Watch::new(pid, &unpacked.library);
            let (outcome, mut known, finished) = thread::scope(|scope| {
                let mut making = making.start(scope);
                let waited = wait(
                    &child,
                    signals,
                    &server,
                    &mut watch,
                    &mut making,
                    &mut reserve,
                );
                if let Err(failure) = waited {
                    say!(
                        "{:#}; signals are not passed on to the program",
                        failure.error
                    );
                    program::wait_without_reaping(&child);
                }
                // The session ends first: it finds out how a process died while that has not been reaped yet.
                let known = server.attached();
                let finished = server.finish();
                (making.finish(), known, finished)
            });
            drop(listener);
            let status = program::reap(&mut child)?;
            known.extend(finished.refused.iter().map(|(pid, _)| pid));
            let findings = watch.findings(&known);
            Ok::<_, Failure>((pid, status, outcome, findings, finished))
        })?;
        Ok(RecordingResult {
            pid,
            status,
            ahead: ahead.deliver(outcome, &finished),
            finished,
            findings,
            lossless: self.policy == Policy::Lossless,
        })
    }
}

/// Starts a thread, or says why it cannot be started.
fn start_thread<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() + Send + 'scope,
) -> Result<(), Failure> {
    let thread = thread::Builder::new().name(name.into());
    let started = thread.spawn_scoped(scope, work);
    started.context(
        "cannot start a thread, so the program was not started (`ulimit -u` limits threads)",
    )?;
    Ok(())
}

/// Ends a listener however its owner returns.
struct EndOnDrop<'a>(&'a control::ControlSocket);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The variables that are added to the program's environment.
fn variables(
    unpacked: &Unpacked,
    tools: &[PathBuf],
    scope: &Scope,
    sampled: &Sampling,
) -> Vec<(&'static str, OsString)> {
    let outer = std::env::var_os(SESSION_VARIABLE).map(PathBuf::from);
    let mut variables = loading::environment(&unpacked.library, outer.as_deref());
    variables.extend([
        (SESSION_VARIABLE, unpacked.directory.path().into()),
        (SCOPE_VARIABLE, scope.to_text().into()),
    ]);
    let source = probe::variable(sampled.sampling_source.into());
    let serialize = sampled
        .serialize_kernels
        .then_some((cuda::SERIALIZE_VARIABLE, "1"));
    let of_sampling = source.into_iter().chain(serialize);
    variables.extend(of_sampling.map(|(name, value)| (name, value.into())));
    if !tools.is_empty() {
        variables.push((tools::VARIABLE, tools::value(tools)));
    }
    variables
}

/// Waits until the program has ended, without reaping it. `reserve` is released as soon as it is no longer needed.
fn wait(
    child: &Child,
    signals: &Signals,
    server: &Server,
    watch: &mut Watch,
    trace: &mut RunningTrace<'_, '_>,
    reserve: &mut Option<Reserve>,
) -> Result<(), Failure> {
    let pid = Pid::from_child(child);
    let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty())
        .context("cannot watch the program")?;
    let mut killed = false;
    loop {
        let more = trace.advance();
        if !more && trace.is_taken_over() && server.attached().len() == 1 {
            // Nothing is being recorded any more. There is time for this while the program is torn down.
            trace.settle();
            drop(reserve.take());
        }
        let pause = if more {
            Duration::ZERO
        } else {
            watch.pause().max(Duration::from_millis(1))
        };
        let mut files = vec![
            PollFd::new(&pidfd, PollFlags::IN),
            PollFd::from_borrowed_fd(signals.wake(), PollFlags::IN),
        ];
        let ending = trace.ending();
        files.extend(ending.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)));
        // A signal that interrupts the wait has made the other descriptor readable.
        let _ = rustix::event::poll(
            &mut files,
            Some(&pause.try_into().expect("a second at most")),
        );
        let happened: Vec<bool> = files
            .iter()
            .map(|file| !file.revents().is_empty())
            .collect();
        if happened[0] {
            return Ok(());
        }
        if happened.get(2) == Some(&true) {
            trace.take_over();
        }
        let (interrupts, forward) = signals.news();
        for signal in forward {
            // This fails only if the process has ended meanwhile, which the next iteration notices.
            let _ = rustix::process::pidfd_send_signal(&pidfd, signal);
        }
        if interrupts >= 2 && !killed {
            killed = true;
            server.kill();
            let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::KILL);
        }
        if signals.has_triggered() {
            server.dump();
        }
        watch.look(&server.attached());
    }
}

impl RecordingResult {
    /// The captures; the program's own comes first.
    fn captures(&self) -> Vec<PathBuf> {
        let mut processes: Vec<_> = self.finished.processes.iter().collect();
        processes.sort_by_key(|capture| (capture.pid != self.pid, capture.process));
        processes
            .into_iter()
            .map(|capture| capture.path.clone())
            .collect()
    }

    fn as_run(&self) -> replay::Run {
        replay::Run {
            captures: self.captures(),
            status: self.status,
        }
    }

    fn say_what_went_wrong(&self) {
        let RecordingResult {
            pid,
            status,
            finished,
            findings,
            ..
        } = self;
        if let Some(death) = program::death(*status) {
            say!("the program was {death}");
        }
        for capture in &finished.processes {
            let who = if capture.pid == *pid {
                "the program".into()
            } else {
                format!("process {}", capture.pid)
            };
            if let Some((errno, bytes)) = capture.capture_error {
                let reason = std::io::Error::from_raw_os_error(errno);
                say!("what {who} did is recorded up to byte {bytes} of its capture only: {reason}");
            }
            // A capture that was already full could not take this either.
            if let (Some(lost), None) = (&capture.lost, capture.capture_error) {
                say!("what {who} had not written when it ended is lost: {lost}");
            }
            if capture.pid != *pid
                && let ProcessEnd::Died(Some(signal)) = capture.end
            {
                let signal = signal_name(signal);
                say!("{who} was killed by {signal}: the trace has what it did until then");
            }
            if capture.end == ProcessEnd::Running {
                say!("{who} was still running at the end: the trace has what it did until then");
            }
        }
        for refusal in finished.refusals() {
            say!("{refusal}");
        }
        if finished.ran_out_of_files {
            say!("{}", out_of_files());
        }
        for finding in findings.iter().take(MAX_FINDINGS) {
            say!("{finding}");
        }
        if findings.len() > MAX_FINDINGS {
            say!(
                "and {} like these",
                count((findings.len() - MAX_FINDINGS) as u64, "more process")
            );
        }
    }

    /// The facts that the summary needs from the recording.
    fn known<'s>(&self, scope: &'s Scope) -> TraceFacts<'s> {
        let unseen = "neither an OpenCL library nor the driver of CUDA (libcuda.so.1) nor a runtime of ROCm was seen in the program or its \
                      children: they use none of them, or were gone too soon to look, or went on without the program, as \
                      daemons do, or do not have our library in their environment (`gputrail library --help`)";
        let processes = &self.finished.processes;
        let refused = !self.finished.refused.is_empty() || self.finished.ran_out_of_files;
        let nothing = processes.is_empty() && self.findings.is_empty() && !refused;
        let short =
            |capture: &ProcessCapture| capture.capture_error.is_some() || capture.lost.is_some();
        TraceFacts {
            unseen: match nothing {
                true => Some(unseen),
                false if self.finished.was_never_on => {
                    Some("it was never switched on (--paused, `gputrail start`)")
                }
                // The event that starts the recording may not have occurred.
                false if scope.waits() => {
                    Some("what it was to begin with did not come (--start-on, --delay)")
                }
                false => None,
            },
            incomplete: refused || processes.iter().any(short),
            lossless: self.lossless,
            counters: scope.counters.as_ref(),
        }
    }
}

/// Why processes were not recorded that found all of this process's files open.
fn out_of_files() -> String {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.map_or_else(String::new, |limit| format!(" ({limit} for gputrail)"));
    format!(
        "processes were not recorded because no more files could be opened{limit}: `ulimit -n 1024` before gputrail allows more"
    )
}

/// Moves the captures to the directory of the trace.
fn keep_captures(processes: &[ProcessCapture], trace: &Path, quiet: bool) -> Result<(), Failure> {
    for capture in processes {
        let name = match processes {
            [_] => trace.with_extension("gputrail"),
            _ => {
                let mut name = trace.file_stem().unwrap_or_default().to_owned();
                name.push(format!("-{}.gputrail", capture.pid));
                trace.with_file_name(name)
            }
        };
        let path = trace::keep_file(&capture.path, &name)
            .with_context(|| format!("the capture cannot be kept as {}", name.display()))?;
        if !quiet {
            say!("capture kept in {}", path.display());
        }
    }
    Ok(())
}

/// Leaves the captures in place, and returns a message about what to do with them.
fn keep(captures: &[PathBuf], workshop: TempDir) -> String {
    if captures.is_empty() {
        return String::new();
    }
    let directory = workshop.keep();
    format!(
        "; what was recorded is kept: gputrail convert {}/*.gputrail -o OTHER-PLACE.pftrace",
        directory.display()
    )
}

/// A file that occupies space on the output's disk until it is dropped.
struct Reserve(PathBuf);

impl Reserve {
    fn new(directory: &Path) -> Result<Reserve, Failure> {
        let path = directory.join("reserve");
        let parent = directory.parent().unwrap_or(directory);
        let take = || {
            let file = File::create_new(&path)?;
            match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, RESERVE) {
                // A file system that cannot allocate space without writing.
                Err(Errno::OPNOTSUPP) => (&file).write_all(&vec![0; RESERVE as usize]),
                taken => taken.map_err(std::io::Error::from),
            }
        };
        take().with_context(|| format!("no room for a trace in {}", parent.display()))?;
        Ok(Reserve(path))
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
