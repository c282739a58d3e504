//! `gputrail record --tool`: tools are looked at before the program runs, each in a process of its own, since a library
//! that is none may do anything when it is opened.

use crate::Failure;
use anyhow::{Context, Result, anyhow, bail};
use gputrail::collect::session::signal_name;
use gputrail::source::opencl;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Names tools to the library in the program, separated by colons.
pub const VARIABLE: &str = "GPUTRAIL_TOOLS";
/// Longer than any tool takes to say what it is: what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where the tools are that the command line names.
pub fn paths(asked: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let find = |path: &PathBuf| {
        let found = path
            .canonicalize()
            .with_context(|| format!("--tool {}", path.display()))?;
        if !opencl::can_name(&found) {
            bail!(
                "--tool {}: a path with a colon cannot be passed on",
                path.display()
            );
        }
        Ok(found)
    };
    asked.iter().map(find).collect()
}

/// The variable's value: these tools, then those that it names already.
pub fn value(tools: &[PathBuf]) -> OsString {
    let existing = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
    let all = tools
        .iter()
        .map(|path| path.as_os_str().to_owned())
        .chain(existing);
    all.collect::<Vec<_>>().join(OsStr::new(":"))
}

/// Looks at each of `tools` in a process of its own, with our library there as it will be in the program.
pub fn probe(tools: &[PathBuf], library: &Path) -> Result<(), Failure> {
    for tool in tools {
        look_at(tool, library).with_context(|| format!("--tool {}", tool.display()))?;
    }
    Ok(())
}

fn look_at(tool: &Path, library: &Path) -> Result<()> {
    let mut child = Command::new("/proc/self/exe")
        .arg("probe-tool")
        .args([library, tool])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start the process that looks at it")?;
    let output = child.stdout.take();
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begin.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            bail!("its entry point does not return");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    if let Some(signal) = status.signal() {
        bail!(
            "it crashed when it was loaded, or in its entry point: signal {signal} ({})",
            signal_name(signal)
        );
    }
    if status.success() {
        return Ok(());
    }
    let mut said = String::new();
    if let Some(mut output) = output {
        use std::io::Read;
        // What cannot be read is not said.
        let _ = output.read_to_string(&mut said);
    }
    let reason = said
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(REASON));
    bail!(
        "{}",
        reason.unwrap_or("it ended the process that looked at it")
    )
}

/// Begins the line that says why a library is no tool.
const REASON: &str = "gputrail-probe: ";

type Probe = unsafe extern "C" fn(*const c_char) -> i32;
type LastError = unsafe extern "C" fn(*mut c_char, usize) -> i32;

/// `gputrail probe-tool`: opens our library and has it look at the tool, in this process.
pub fn probe_here(library: &Path, tool: &Path) -> Result<u8, Failure> {
    let library = CString::new(library.as_os_str().as_bytes()).context("library")?;
    let tool = CString::new(tool.as_os_str().as_bytes()).context("tool")?;
    // SAFETY: a library of ours, which is to be opened in this process.
    let opened = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if opened.is_null() {
        return Err(anyhow!("cannot open {}", library.to_string_lossy()).into());
    }
    let function = |name: &CStr| -> Result<*mut c_void> {
        // SAFETY: a library that is open, and a name.
        let function = unsafe { libc::dlsym(opened, name.as_ptr()) };
        match function.is_null() {
            true => bail!("{} is no library of ours", library.to_string_lossy()),
            false => Ok(function),
        }
    };
    let initialise = function(c"gputrail_initialise")?;
    let probe = function(c"gputrail_tool_probe")?;
    let last_error = function(c"gputrail_last_error")?;
    // SAFETY: functions of our library, of these types.
    let (initialise, probe, last_error) = unsafe {
        (
            core::mem::transmute::<*mut c_void, extern "C" fn() -> i32>(initialise),
            core::mem::transmute::<*mut c_void, Probe>(probe),
            core::mem::transmute::<*mut c_void, LastError>(last_error),
        )
    };
    initialise();
    // SAFETY: a text that ends with a 0.
    let status = unsafe { probe(tool.as_ptr()) };
    let code = i32::from(status != 0);
    if code != 0 {
        let mut text = [0; 1024];
        // SAFETY: room for that many bytes.
        unsafe { last_error(text.as_mut_ptr(), text.len()) };
        // SAFETY: it ended what it wrote by a 0.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) };
        println!("\n{REASON}{}", text.to_string_lossy().replace('\n', " "));
    }
    // The tool's destructors are not ours to run.
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}
