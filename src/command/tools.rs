//! `gputrail record --tool`: tools are checked before the program runs, each in a process of its own, since a library
//! that is not a tool may do anything when it is opened.

use crate::failure::Failure;
use anyhow::{Context, Result, bail};
use gputrail_collect::loading::opencl;
use gputrail_collect::session::signal_name;
use libloading::os::unix::Library;
use std::ffi::{CStr, CString, OsStr, OsString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The environment variable that names tools to the injected library, separated by colons.
pub const VARIABLE: &str = "GPUTRAIL_TOOLS";
/// Maximum time in which a tool identifies itself; one that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// The absolute paths of the tools on the command line.
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

/// The variable's value: these tools, then those that it already names.
pub fn value(tools: &[PathBuf]) -> OsString {
    let existing = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
    let all = tools
        .iter()
        .map(|path| path.as_os_str().to_owned())
        .chain(existing);
    all.collect::<Vec<_>>().join(OsStr::new(":"))
}

/// Checks each of `tools` in a process of its own, with the injected library as in the program.
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
        .context("cannot start the process that inspects it")?;
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
        // Output that cannot be read is left out.
        let _ = output.read_to_string(&mut said);
    }
    let reason = said
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(REASON));
    bail!(
        "{}",
        reason.unwrap_or("it ended the process that inspected it")
    )
}

/// Prefix of the line with the reason why a library is not a tool.
const REASON: &str = "gputrail-probe: ";

type Initialise = extern "C" fn() -> i32;
type ProbeFunction = unsafe extern "C" fn(*const c_char) -> i32;
type LastError = unsafe extern "C" fn(*mut c_char, usize) -> i32;

/// `gputrail probe-tool`: opens the injected library and has it configure the tool, in this process.
pub fn probe_here(library: &Path, tool: &Path) -> Result<u8, Failure> {
    let tool = CString::new(tool.as_os_str().as_bytes()).context("tool")?;
    // SAFETY: the injected library, whose constructors do nothing outside of a recorded program.
    let opened = unsafe { Library::new(library) };
    let opened = opened.with_context(|| format!("cannot open {}", library.display()))?;
    // SAFETY: the library's functions of these names have these types.
    let functions = unsafe {
        opened
            .get::<Initialise>("gputrail_initialise")
            .and_then(|initialise| {
                let probe = opened.get::<ProbeFunction>("gputrail_tool_probe")?;
                Ok((
                    initialise,
                    probe,
                    opened.get::<LastError>("gputrail_last_error")?,
                ))
            })
    };
    let (initialise, probe, last_error) =
        functions.with_context(|| format!("{} is not a gputrail library", library.display()))?;
    initialise();
    // SAFETY: a text that ends with a 0.
    let status = unsafe { probe(tool.as_ptr()) };
    let code = i32::from(status != 0);
    if code != 0 {
        let mut text = [0; 1024];
        // SAFETY: room for that many bytes.
        unsafe { last_error(text.as_mut_ptr(), text.len()) };
        // SAFETY: the function ends its text with a 0.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) };
        println!("\n{REASON}{}", text.to_string_lossy().replace('\n', " "));
    }
    // The tool's destructors do not run: they may do anything.
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}
