//! LTTng-UST, if it is installed: a tracepoint provider in C, compiled here and loaded, with a session of its own.

use crate::Outcome;
use crate::rounds::Peer;
use libloading::Library;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// The session, and the provider that it records.
pub struct Session {
    name: String,
    spans: extern "C" fn(u64),
    _library: Library,
    daemon: Option<PathBuf>,
}

impl Session {
    pub fn start(scratch: &Path) -> Outcome<Session> {
        if !works(Command::new("lttng").arg("--version")) {
            return Err("it is not installed (Debian: lttng-tools, liblttng-ust-dev)".into());
        }
        let provider = compile(scratch)?;
        let name = format!("gputrail-peers-{}", std::process::id());
        // A daemon may be running already; then this fails, and that daemon is used.
        let pid_file = scratch.join("lttng-sessiond.pid");
        let daemon = works(
            Command::new("lttng-sessiond")
                .args(["--no-kernel", "--daemonize", "--pidfile"])
                .arg(&pid_file),
        );
        let output = format!("--output={}", scratch.join("lttng").display());
        for words in [
            vec!["create", &name, &output],
            vec![
                "enable-channel",
                "--userspace",
                "--session",
                &name,
                "--subbuf-size=4M",
                "--num-subbuf=4",
                "calls",
            ],
            vec![
                "enable-event",
                "--userspace",
                "--session",
                &name,
                "--channel=calls",
                "peers:*",
            ],
            vec!["start", &name],
        ] {
            if !works(Command::new("lttng").args(&words)) {
                return Err(format!("lttng {} failed", words.join(" ")).into());
            }
        }
        // SAFETY: the library that was compiled above, and its functions with their signatures.
        let (library, spans, recorded) = unsafe {
            let library = Library::new(provider)?;
            let spans = *library.get::<extern "C" fn(u64)>(b"peers_spans")?;
            let recorded = *library.get::<extern "C" fn() -> i32>(b"peers_recorded")?;
            (library, spans, recorded)
        };
        let session = Session {
            name,
            spans,
            _library: library,
            daemon: daemon.then_some(pid_file),
        };
        for _ in 0..500 {
            if recorded() != 0 {
                return Ok(session);
            }
            sleep(Duration::from_millis(10));
        }
        Err("its session daemon did not enable the events".into())
    }
}

impl Peer for Session {
    fn name(&self) -> &str {
        "LTTng-UST"
    }

    fn spans(&self, count: u64) {
        (self.spans)(count);
    }

    fn remark(&self, spans: u64) -> Option<String> {
        works(Command::new("lttng").args(["stop", &self.name]));
        let list = Command::new("lttng")
            .args(["list", &self.name])
            .output()
            .ok()?;
        let list = String::from_utf8_lossy(&list.stdout).into_owned();
        let dropped = list
            .lines()
            .find(|line| line.contains("Discarded events"))?;
        let dropped = dropped.rsplit(' ').next()?;
        (dropped != "0").then(|| format!("{dropped} of {} events were discarded", 2 * spans))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        works(Command::new("lttng").args(["stop", &self.name]));
        works(Command::new("lttng").args(["destroy", &self.name]));
        let pid = self
            .daemon
            .as_ref()
            .and_then(|file| std::fs::read_to_string(file).ok());
        if let Some(pid) = pid {
            works(Command::new("kill").arg(pid.trim()));
        }
    }
}

fn compile(scratch: &Path) -> Outcome<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("lttng");
    let library = scratch.join("provider.so");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O2", "-shared", "-fPIC", "-I"])
        .arg(&folder)
        .arg("-o")
        .arg(&library)
        .arg(folder.join("provider.c"))
        .args(["-llttng-ust", "-ldl"]);
    if works(&mut compiler) {
        Ok(library)
    } else {
        Err("its provider cannot be compiled (Debian: liblttng-ust-dev, gcc)".into())
    }
}

fn works(command: &mut Command) -> bool {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
