//! `gputrail status`, `start`, `stop`, `flush` and `dump`: control of a recording from another terminal.
//!
//! `gputrail record` listens on a socket in its private directory. A request is one line, `gputrail 1 VERB`; the answer is
//! one JSON object, with the field `error` if the request failed.

use crate::cli::{AnswerFormat, Control};
use crate::figures::{bytes, count, time};
use crate::{Failure, stdout};
use anyhow::{Context, Result, anyhow, bail};
use gputrail::collect::session::{
    Action, Controls, ProcessStatus, SESSION_VARIABLE, Status, peer_user,
};
use gputrail::record::Nanos;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Name of the socket in the session's directory.
const SOCKET: &str = "control";
/// Begins each request.
const GREETING: &str = "gputrail 1 ";
/// Maximum length of a request.
const MAX_REQUEST: u64 = 64;
/// Maximum number of bytes of an answer.
const MAX_ANSWER: u64 = 16 << 20;
/// How long either side waits for the other's next bytes.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request, by its name on the command line.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    Status,
    Start,
    Stop,
    Flush,
    Dump,
}

impl Verb {
    const ALL: [Verb; 5] = [
        Verb::Status,
        Verb::Start,
        Verb::Stop,
        Verb::Flush,
        Verb::Dump,
    ];

    fn name(self) -> &'static str {
        match self {
            Verb::Status => "status",
            Verb::Start => "start",
            Verb::Stop => "stop",
            Verb::Flush => "flush",
            Verb::Dump => "dump",
        }
    }

    fn action(self) -> Action {
        match self {
            Verb::Status => Action::Look,
            Verb::Start => Action::Start,
            Verb::Stop => Action::Stop,
            Verb::Flush => Action::Flush,
            Verb::Dump => Action::Dump,
        }
    }
}

/// The socket on which `gputrail record` is controlled.
pub struct Listener {
    socket: UnixListener,
    ended: AtomicBool,
}

/// The recording that is controlled.
pub struct Recording<'a> {
    /// The program, as the user named it.
    pub program: String,
    /// Its process id.
    pub pid: u32,
    /// The file that the trace gets.
    pub output: PathBuf,
    pub controls: Controls,
    /// Makes the trace of what is in the captures.
    pub make_trace: &'a (dyn Fn(&[PathBuf]) -> Result<PathBuf> + Sync),
}

impl Listener {
    /// Listens in the private `directory` of a session.
    pub fn bind(directory: &Path) -> Result<Listener> {
        let path = directory.join(SOCKET);
        let socket = UnixListener::bind(&path)
            .with_context(|| format!("cannot make the socket {}", path.display()))?;
        Ok(Listener {
            socket,
            ended: AtomicBool::new(false),
        })
    }

    /// Answers requests until [`end`](Listener::end).
    pub fn serve(&self, recording: &Recording<'_>) {
        for connection in self.socket.incoming() {
            if self.ended.load(Ordering::Acquire) {
                return;
            }
            match connection {
                // A client that does not read its answer loses it.
                Ok(connection) => drop(answer(&connection, recording)),
                // Without resources for a connection.
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    /// Ends [`serve`](Listener::serve).
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        // Wakes the thread that accepts, also when the file of the socket is gone.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
    }
}

/// Reads a request and answers it.
fn answer(connection: &UnixStream, recording: &Recording<'_>) -> std::io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    // The directory is private, so the peer is the user, or root.
    let user = peer_user(connection.as_fd());
    let mut line = String::new();
    BufReader::new(connection.take(MAX_REQUEST)).read_line(&mut line)?;
    let result = match user {
        Some(user) if user == rustix::process::geteuid().as_raw() || user == 0 => {
            serve(line.trim_end(), recording)
        }
        _ => Err(anyhow!("this recording belongs to another user")),
    };
    let answer = result.unwrap_or_else(|error| json!({ "error": format!("{error:#}") }));
    (&*connection).write_all(answer.to_string().as_bytes())
}

fn serve(request: &str, recording: &Recording<'_>) -> Result<Value> {
    let verb = request
        .strip_prefix(GREETING)
        .and_then(|name| Verb::ALL.into_iter().find(|verb| verb.name() == name))
        .context("the running gputrail does not know this request: it is of another version")?;
    let controls = &recording.controls;
    let over = "the recording is ending";
    let before = controls.request(Action::Look).context(over)?;
    if verb == Verb::Dump && before.dumps.is_none() {
        bail!("the recording keeps everything: it has no --flight-recorder to dump");
    }
    let status = controls.request(verb.action()).context(over)?;
    if verb == Verb::Dump && status.dumps == before.dumps {
        bail!(
            "{} dumps have been written, the most that --dumps allows",
            before.dumps.unwrap_or(0)
        );
    }
    let mut answer = describe(&status, recording);
    if verb == Verb::Flush {
        let captures: Vec<PathBuf> = status.captures.clone();
        let trace = match status.dumps.is_none() && !captures.is_empty() {
            true => Some((recording.make_trace)(&captures)?),
            false => None,
        };
        answer["trace"] = json!(trace);
    }
    Ok(answer)
}

fn describe(status: &Status, recording: &Recording<'_>) -> Value {
    let of = |process: &ProcessStatus| {
        json!({
            "pid": process.pid,
            "forked": process.forked,
            "ending": process.has_ended,
            "records": process.records,
            "bytes": process.bytes,
            "lost": process.dropped,
            "capture": process.capture,
            "capture_error": process.failed,
        })
    };
    let all = || status.processes.iter().chain([&status.ended]);
    let since = status.since.duration_since(UNIX_EPOCH).unwrap_or_default();
    json!({
        "gputrail": std::process::id(),
        "program": recording.program,
        "program_pid": recording.pid,
        "state": state(status.is_on),
        "found": state(status.was_on),
        "since": since.as_secs_f64(),
        "switches": status.switches,
        "output": recording.output,
        "records": all().map(|process| process.records).sum::<u64>(),
        "bytes": all().map(|process| process.bytes).sum::<u64>(),
        "lost": all().map(|process| process.dropped).sum::<u64>(),
        "dumps": status.dumps,
        "processes": status.processes.iter().map(of).collect::<Vec<_>>(),
        "ended_processes": status.ended_processes,
        "refused_processes": status.refused_processes,
    })
}

fn state(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

/// Sends a request to the recording that `arguments` name, and prints the answer.
pub fn run(verb: Verb, arguments: &Control) -> Result<u8, Failure> {
    let answer = request(verb, arguments.pid)?;
    let text = match arguments.format {
        AnswerFormat::Json => format!(
            "{}\n",
            serde_json::to_string_pretty(&answer).map_err(anyhow::Error::new)?
        ),
        // Root may ask after another user's recording, whose texts may hold anything.
        AnswerFormat::Text => in_words(verb, &answer)
            .replace(|letter: char| letter.is_control() && letter != '\n', "?"),
    };
    stdout::print(&text)?;
    Ok(0)
}

fn request(verb: Verb, pid: u32) -> Result<Value> {
    let socket = find(pid)?;
    let connection = UnixStream::connect(&socket).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => of_another_user(pid),
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            anyhow!("the recording of process {pid} has ended")
        }
        _ => anyhow!(error).context(format!("cannot reach {}", socket.display())),
    })?;
    connection.set_write_timeout(Some(PATIENCE)).ok();
    let lost = "the running gputrail gave no answer";
    writeln!(&connection, "{GREETING}{}", verb.name()).context(lost)?;
    // Making the trace of a long recording takes its time.
    let mut text = String::new();
    (&connection)
        .take(MAX_ANSWER)
        .read_to_string(&mut text)
        .context(lost)?;
    let answer: Value = serde_json::from_str(&text).context(lost)?;
    match answer.get("error").and_then(Value::as_str) {
        Some(error) => bail!("{error}"),
        None => Ok(answer),
    }
}

fn of_another_user(pid: u32) -> anyhow::Error {
    let owner = std::fs::metadata(format!("/proc/{pid}")).map(|data| data.uid());
    let owner = owner.map_or_else(|_| "another user".into(), |uid| format!("user {uid}"));
    anyhow!("process {pid} is of {owner}: only the user who records can control a recording")
}

/// The socket of the recording that process `pid` makes or belongs to.
fn find(pid: u32) -> Result<PathBuf> {
    let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}"));
    let environment = match read("environ") {
        Ok(environment) => environment,
        Err(error) if error.kind() == ErrorKind::NotFound => bail!("there is no process {pid}"),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(of_another_user(pid));
        }
        Err(error) => return Err(error).context(format!("cannot look at process {pid}")),
    };
    // A `gputrail record` may itself be recorded by another one.
    if let Some(socket) = listens_at(pid) {
        return Ok(socket);
    }
    let directory = environment.split(|byte| *byte == 0).find_map(|variable| {
        variable
            .strip_prefix(SESSION_VARIABLE.as_bytes())?
            .strip_prefix(b"=")
    });
    let directory = directory.filter(|directory| !directory.is_empty());
    let directory = directory.with_context(|| {
        format!("process {pid} is neither a `gputrail record` nor recorded by one")
    })?;
    let directory = PathBuf::from(std::ffi::OsString::from_vec(directory.to_owned()));
    Ok(directory.join(SOCKET))
}

/// The control socket on which process `pid` listens, if it does.
fn listens_at(pid: u32) -> Option<PathBuf> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let links = files
        .flatten()
        .filter_map(|file| std::fs::read_link(file.path()).ok());
    let inodes: Vec<String> = links
        .filter_map(|link| {
            let link = link.to_str()?;
            Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    // Num, RefCount, Protocol, Flags, Type, St, Inode, Path.
    let sockets = std::fs::read_to_string(format!("/proc/{pid}/net/unix")).ok()?;
    sockets.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(6);
        let inode = fields.next()?;
        let path = Path::new(&line[line.find('/')?..]);
        let is_ours = path.file_name() == Some(SOCKET.as_ref())
            && inodes.iter().any(|known| known == inode)
            && path.parent()?.join("socket").exists();
        is_ours.then(|| path.to_owned())
    })
}

/// The answer to `verb` for people.
fn in_words(verb: Verb, answer: &Value) -> String {
    let text = |name: &str| answer[name].as_str().unwrap_or_default();
    let number = |name: &str| answer[name].as_u64().unwrap_or_default();
    let (now, found) = (text("state"), text("found"));
    match verb {
        Verb::Start | Verb::Stop if now == found => format!("the recording was {now} already\n"),
        Verb::Start | Verb::Stop => format!("the recording is {now}; it was {found}\n"),
        Verb::Dump => format!("dump {} is being written\n", number("dumps")),
        Verb::Flush => match answer["trace"].as_str() {
            Some(trace) => format!(
                "trace: {trace} ({} so far)\n",
                count(number("records"), "record")
            ),
            None if answer["dumps"].is_u64() => {
                "the flight recorder keeps the latest records in memory: `gputrail dump` writes them out\n".into()
            }
            None => "nothing has been recorded so far\n".into(),
        },
        Verb::Status => status_in_words(answer),
    }
}

fn status_in_words(answer: &Value) -> String {
    let text = |name: &str| answer[name].as_str().unwrap_or_default();
    let number = |value: &Value, name: &str| value[name].as_u64().unwrap_or_default();
    let since =
        UNIX_EPOCH + Duration::from_secs_f64(answer["since"].as_f64().unwrap_or(0.0).max(0.0));
    let span = SystemTime::now().duration_since(since).unwrap_or_default();
    let span = time(Nanos(span.as_nanos() as u64));
    let amounts = |value: &Value| {
        let lost = match number(value, "lost") {
            0 => "nothing was lost".into(),
            lost => format!("LOST: {}", count(lost, "record")),
        };
        format!(
            "{}, {}; {lost}",
            count(number(value, "records"), "record"),
            bytes(number(value, "bytes")),
        )
    };
    let mut lines = vec![
        format!(
            "{}, process {}, recorded by process {}: {} for {span}",
            text("program"),
            number(answer, "program_pid"),
            number(answer, "gputrail"),
            text("state"),
        ),
        format!("output: {}", text("output")),
        format!("so far: {}", amounts(answer)),
    ];
    if let Some(dumps) = answer["dumps"].as_u64() {
        lines.push(format!("flight recorder: {}", count(dumps, "dump")));
    }
    for process in answer["processes"].as_array().into_iter().flatten() {
        let error = process["capture_error"].as_str();
        lines.push(format!(
            "process {}{}: {}{}",
            number(process, "pid"),
            match process["ending"].as_bool() {
                Some(true) => " (ending)",
                _ => "",
            },
            amounts(process),
            error.map_or_else(String::new, |error| format!("; {error}")),
        ));
    }
    let ended = number(answer, "ended_processes");
    if ended > 0 {
        lines.push(format!(
            "{} ended",
            count(ended, "process").replace("processs", "processes")
        ));
    }
    lines.join("\n") + "\n"
}
