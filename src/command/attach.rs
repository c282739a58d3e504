//! `gputrail attach`: records a program of ROCm that runs already.
//!
//! AMD's librocprofiler-sdk-rocattach has the program load our library as a tool of rocprofiler-sdk. It takes a thread that
//! librocprofiler-register keeps for that in programs that were started with ROCP_TOOL_ATTACH=1, and passes on the attacher's variables
//! whose names begin with "ROCP": ours, which say where the session is, have that before their names there.
//!
//! The recording is one of `gputrail record` whose program is this command again (`attach-here`): it attaches, waits, and detaches, so
//! that AMD's library is in a process of its own.

use crate::Carried;
use crate::cli::{Attach, AttachHere, Cli, Command};
use crate::control;
use crate::failure::Failure;
use crate::messages::say;
use crate::record;
use crate::signals::Signals;
use anyhow::{Context, Result, anyhow, bail};
use clap::Parser;
use gputrail_buffer::platform::environment::PASSED_ON;
use gputrail_collect::loading::rocm::TOOLS_VARIABLE;
use libloading::os::unix::Library;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};
use std::ffi::{OsString, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// AMD's library for attaching.
const LIBRARIES: [&str; 2] = [
    "librocprofiler-sdk-rocattach.so.1",
    "librocprofiler-sdk-rocattach.so",
];
/// The variable that names the library which the program is to load.
const TOOL_VARIABLE: &str = "ROCPROF_ATTACH_TOOL_LIBRARY";
/// The name of the thread that takes attachers.
const THREAD: &str = "rocp-bg-attach";
/// The runtimes that programs of ROCm load.
const RUNTIMES: [&str; 3] = [
    "libamdhip64.so",
    "libhsa-runtime64.so",
    "librocprofiler-register.so",
];
/// The beginning of the name of our library's file, in its folder.
const OURS: &str = "/libgputrail";
/// ROCm's folder where nothing names it.
const ROCM: &str = "/opt/rocm";
/// How long the SDK may keep what has completed: two rounds of its delivery.
const LAST_RECORDS: Duration = Duration::from_millis(500);
/// The other way to record a program: its start under `gputrail record`.
const INSTEAD: &str = "start it under `gputrail record --paused`, which costs next to nothing, and switch the recording on with `gputrail \
                       start PID` when it is wanted";

/// `gputrail attach`.
pub fn run(arguments: Attach, carried: Carried) -> Result<u8, Failure> {
    let pid = arguments.pid;
    look_at(pid)?;
    let own = std::env::current_exe().context("cannot find this program")?;
    let mut words: Vec<OsString> = vec!["gputrail".into(), "record".into(), own.into()];
    words.extend([OsString::from("attach-here"), pid.to_string().into()]);
    if let Some(duration) = arguments.attached_for {
        words.push(duration.as_millis().to_string().into());
    }
    let Command::Record(mut recorded) = Cli::try_parse_from(words)
        .map_err(|error| anyhow!(error))?
        .command
    else {
        return Err(anyhow!("cannot record").into());
    };
    let name = || format!("attached-{pid}.pftrace").into();
    recorded.output = Some(arguments.output.unwrap_or_else(name));
    recorded.scope = arguments.scope;
    recorded.capture = arguments.capture;
    recorded.quiet = arguments.quiet;
    record::run(*recorded, carried)
}

/// Whether a process can be attached to; if not, why, and what can be done instead.
fn look_at(pid: u32) -> Result<()> {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    if !folder.exists() {
        bail!("there is no process {pid}");
    }
    let maps = std::fs::read(folder.join("maps")).with_context(|| {
        format!(
            "process {pid} cannot be looked at: its user and root can attach to it, as far as the container that they are in lets them"
        )
    })?;
    let maps = String::from_utf8_lossy(&maps);
    if !RUNTIMES.iter().any(|runtime| maps.contains(runtime)) {
        bail!(
            "process {pid} has loaded no runtime of ROCm, and programs of ROCm alone can be attached to: {INSTEAD}"
        );
    }
    // AMD's library attaches again, and the program keeps what it has loaded.
    if maps.contains(OURS) {
        bail!(
            "process {pid} has gputrail's library already: it is recorded, or was attached to, which is possible once: {INSTEAD}"
        );
    }
    let threads = std::fs::read_dir(folder.join("task")).context("cannot list its threads")?;
    let names = threads.filter_map(|thread| {
        let name = std::fs::read_to_string(thread.ok()?.path().join("comm"));
        name.ok()
    });
    if !names.into_iter().any(|name| name.trim_end() == THREAD) {
        bail!(
            "process {pid} takes no attachers: librocprofiler-register has its thread for that in programs that are started with \
             ROCP_TOOL_ATTACH=1. Or {INSTEAD}"
        );
    }
    places(pid)
        .iter()
        .find_map(|path| open(path))
        .map(drop)
        .ok_or_else(|| {
            anyhow!(
                "{} is not found, which rocprofiler-sdk 1.1 and later have: {INSTEAD}",
                LIBRARIES[0]
            )
        })
}

/// Where AMD's library may be: beside the runtimes of the process, in ROCm's folder, and where the loader finds it.
fn places(pid: u32) -> Vec<PathBuf> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let of_process = maps.lines().filter_map(|line| {
        let path = Path::new(&line[line.find('/')?..]);
        let name = path.file_name()?.to_str()?;
        let is_runtime = RUNTIMES.iter().any(|runtime| name.starts_with(runtime));
        is_runtime.then(|| path.parent().map(Path::to_owned))?
    });
    let rocm = std::env::var_os("ROCM_PATH").map_or_else(|| ROCM.into(), PathBuf::from);
    let mut folders: Vec<PathBuf> = of_process.chain([rocm.join("lib")]).collect();
    folders.dedup();
    let in_folders = folders
        .iter()
        .flat_map(|folder| LIBRARIES.map(|name| folder.join(name)));
    let by_loader = LIBRARIES.map(PathBuf::from);
    in_folders
        .filter(|path| path.exists())
        .chain(by_loader)
        .collect()
}

fn open(path: &Path) -> Option<Library> {
    // SAFETY: AMD's library, whose constructors prepare its log.
    unsafe { Library::open(Some(path), libc::RTLD_NOW | libc::RTLD_LOCAL) }.ok()
}

/// A function of AMD's library that takes a process and answers with a status.
fn function(library: &Library, name: &str) -> Result<unsafe extern "C" fn(c_int) -> c_int> {
    // SAFETY: the functions with these names have this type.
    let found = unsafe { library.get::<unsafe extern "C" fn(c_int) -> c_int>(name) };
    let found = found.with_context(|| format!("{}: no function {name}", LIBRARIES[0]))?;
    Ok(*found)
}

/// The meaning of a status of AMD's library, and what to do.
fn why(status: c_int) -> &'static str {
    match status {
        2 => "it is attached to already, by this or another tool",
        3 => "AMD's library does not support this processor",
        4 => "the system call ptrace fails, as it does under a debugger",
        5 => {
            "the system does not permit ptrace: run as the program's user, and set kernel.yama.ptrace_scope to 0, or run as root"
        }
        6 => "the process has ended",
        _ => "AMD's library says on standard error why",
    }
}

/// `gputrail attach-here`: attaches to the process, waits until it or the time has ended or a signal comes, and detaches.
pub fn run_here(arguments: &AttachHere) -> Result<u8, Failure> {
    let pid = arguments.pid;
    let signals = Signals::take().context("cannot take signals")?;
    pass_on()?;
    let library = places(pid).iter().find_map(|path| open(path));
    let library = library.with_context(|| format!("{} is not found", LIBRARIES[0]))?;
    let target = Pid::from_raw(pid as i32).context("no process id")?;
    let target = rustix::process::pidfd_open(target, PidfdFlags::empty())
        .with_context(|| format!("there is no process {pid}"))?;
    let attach = function(&library, "rocattach_attach")?;
    let detach = function(&library, "rocattach_detach")?;
    // SAFETY: a number of a process.
    let status = unsafe { attach(pid as c_int) };
    if status != 0 {
        let why = why(status);
        return Err(
            anyhow!("cannot attach to process {pid}: {why} (rocattach status {status})").into(),
        );
    }
    say!("attached to process {pid}; Ctrl-C ends the recording, and the program goes on");
    let has_ended = wait(
        &signals,
        &target,
        arguments.milliseconds.map(Duration::from_millis),
    );
    if !has_ended {
        // No new call or work; what has completed is delivered until the process is left.
        if let Some(parent) = rustix::process::getppid()
            && let Err(error) = control::stop(parent.as_raw_pid() as u32)
        {
            say!("{error:#}");
        }
        std::thread::sleep(LAST_RECORDS);
        // SAFETY: a number of a process.
        let status = unsafe { detach(pid as c_int) };
        if status != 0 {
            let why = why(status);
            say!("cannot detach from process {pid}: {why} (rocattach status {status})");
        }
    }
    Ok(0)
}

/// Gives AMD's library what it passes on to the process: the session, and the library to load.
fn pass_on() -> Result<()> {
    let tools = std::env::var_os(TOOLS_VARIABLE).unwrap_or_default();
    let library = tools.as_bytes().split(|byte| *byte == b':').next();
    let library = Path::new(std::ffi::OsStr::from_bytes(library.unwrap_or_default()));
    // The process goes on to name the library to programs that it starts: it must stay when the session has ended. That in the
    // user's cache does, and the session's folder has a link to it.
    let session = library.parent().map(Path::to_owned).unwrap_or_default();
    let library = library
        .canonicalize()
        .context("the library cannot be found")?;
    if library.starts_with(&session) {
        bail!(
            "attaching needs a folder in which the library stays: set XDG_CACHE_HOME to one to which only you can write"
        );
    }
    let ours: Vec<(OsString, OsString)> = std::env::vars_os()
        .filter(|(name, _)| name.as_bytes().starts_with(b"GPUTRAIL_"))
        .collect();
    // SAFETY: no other thread of this process exists.
    unsafe {
        for (name, value) in ours {
            let mut passed = OsString::from(PASSED_ON);
            passed.push(name);
            std::env::set_var(passed, value);
        }
        std::env::set_var(TOOLS_VARIABLE, &library);
        std::env::set_var(TOOL_VARIABLE, &library);
    }
    Ok(())
}

/// Waits for a signal, the end of the process, or the time. Returns whether the process has ended.
fn wait(signals: &Signals, target: &rustix::fd::OwnedFd, time: Option<Duration>) -> bool {
    let begin = Instant::now();
    loop {
        let left = time.map(|time| time.saturating_sub(begin.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            return false;
        }
        let mut files = [
            PollFd::new(target, PollFlags::IN),
            PollFd::from_borrowed_fd(signals.wake(), PollFlags::IN),
        ];
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        // A signal that interrupts the wait has made its descriptor readable.
        let _ = rustix::event::poll(&mut files, left.as_ref());
        if !files[0].revents().is_empty() {
            return true;
        }
        if !files[1].revents().is_empty() {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_cannot_be_attached_to_is_told_why_and_what_else_there_is() {
        let said = |pid: u32| look_at(pid).unwrap_err().to_string();
        assert!(said(std::process::id()).contains("gputrail record --paused"));
        assert!(said(u32::MAX >> 1).contains("no process"));
    }

    #[test]
    fn every_status_says_something() {
        let all: std::collections::BTreeSet<_> = (1..8).map(why).collect();
        assert_eq!(all.len(), 6);
    }
}
