//! `gputrail status`, `start`, `stop`, `flush` and `dump`: control of a recording from another terminal.
//!
//! `gputrail record` listens on a socket in its private directory. A request is one line, `gputrail 1 VERB`; the answer is
//! one JSON object, with the field `error` if the request failed. Empty lines before it say that a trace is being made.
//!
//! The directory has mode 0700, and `gputrail record` checks the user of each connection (`SO_PEERCRED`). The command checks that the
//! recording is of the user whose process it was given: a process says itself which recording it belongs to.

use crate::cli::{AnswerFormat, Control};
use crate::failure::Failure;
use crate::figures::{bytes, count, time};
use crate::stdout;
use anyhow::{Context, Result, anyhow, bail};
use gputrail_collect::session::{
    Action, Controls, ProcessStatus, SESSION_VARIABLE, SessionStatus, peer_user,
};
use gputrail_record::{Nanos, printable};
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Name of the socket in the session's directory.
const SOCKET: &str = "control";
/// Begins each request.
const GREETING: &str = "gputrail 1 ";
/// Maximum length of a request.
const MAX_REQUEST: usize = 64;
/// Maximum number of bytes of an answer.
const MAX_ANSWER: usize = 16 << 20;
/// How long a request may take to arrive, and how long the client waits for the next bytes.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the making of a trace may take before the client gives up.
const LONGEST_FLUSH: Duration = Duration::from_secs(60 * 60);
/// The time between two empty lines.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);
/// Maximum number of clients at a time.
const MAX_CLIENTS: usize = 16;

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
pub struct ControlSocket {
    socket: UnixListener,
    ended: AtomicBool,
    clients: AtomicUsize,
    /// Locked while a trace is made.
    making_trace: Mutex<()>,
}

/// The recording that is controlled.
pub struct ControlledRecording<'a> {
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

impl ControlSocket {
    /// Listens in the private `directory` of a session.
    pub fn bind(directory: &Path) -> Result<ControlSocket> {
        let path = directory.join(SOCKET);
        let socket = UnixListener::bind(&path)
            .with_context(|| format!("cannot make the socket {}", path.display()))?;
        Ok(ControlSocket {
            socket,
            ended: AtomicBool::new(false),
            clients: AtomicUsize::new(0),
            making_trace: Mutex::new(()),
        })
    }

    /// Answers requests until [`end`](ControlSocket::end), each in a thread of its own.
    pub fn serve(&self, recording: &ControlledRecording<'_>) {
        std::thread::scope(|scope| {
            for connection in self.socket.incoming() {
                if self.ended.load(Ordering::Acquire) {
                    return;
                }
                let Ok(connection) = connection else {
                    // Without resources for a connection.
                    std::thread::sleep(Duration::from_millis(100));
                    continue;
                };
                if self.clients.fetch_add(1, Ordering::Relaxed) >= MAX_CLIENTS {
                    refuse(&connection);
                } else {
                    let work = move || {
                        // A client that does not read its answer loses it.
                        let _ = self.answer(&connection, recording);
                        self.clients.fetch_sub(1, Ordering::Relaxed);
                    };
                    if std::thread::Builder::new()
                        .spawn_scoped(scope, work)
                        .is_ok()
                    {
                        continue;
                    }
                }
                self.clients.fetch_sub(1, Ordering::Relaxed);
            }
        });
    }

    /// Ends [`serve`](ControlSocket::serve).
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        // Wakes the thread that accepts, also when the file of the socket is gone.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
    }
}

impl ControlSocket {
    /// Reads a request and answers it.
    fn answer(
        &self,
        connection: &UnixStream,
        recording: &ControlledRecording<'_>,
    ) -> std::io::Result<()> {
        connection.set_write_timeout(Some(PATIENCE))?;
        // The directory is private, so the peer is the user, or root.
        let user = peer_user(connection.as_fd());
        let line = read_line(connection, Instant::now() + PATIENCE)?;
        let result = match user {
            Some(user) if user == rustix::process::geteuid().as_raw() || user == 0 => {
                self.serve_request(connection, &line, recording)
            }
            _ => Err(anyhow!("this recording belongs to another user")),
        };
        let answer = result.unwrap_or_else(|error| json!({ "error": format!("{error:#}") }));
        (&*connection).write_all(answer.to_string().as_bytes())
    }

    fn serve_request(
        &self,
        connection: &UnixStream,
        request: &str,
        recording: &ControlledRecording<'_>,
    ) -> Result<Value> {
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
                "{} written, the most that --dumps allows",
                count(before.dumps.unwrap_or(0).into(), "dump")
            );
        }
        let mut answer = describe(&status, recording);
        if verb == Verb::Flush {
            let captures: Vec<PathBuf> = status.captures.clone();
            let make = || {
                let _making = self
                    .making_trace
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                (recording.make_trace)(&captures)
            };
            // The session's own answer takes no time: a client does not wait for one that hangs.
            let trace = if status.dumps.is_none() && !captures.is_empty() {
                Some(with_signs_of_life(connection, SIGN_OF_LIFE, make)?)
            } else {
                None
            };
            answer["trace"] = json!(trace);
        }
        Ok(answer)
    }
}

/// Answers a client that is one too many.
fn refuse(mut connection: &UnixStream) {
    let error = format!("{MAX_CLIENTS} commands are being served; try again");
    let answer = json!({ "error": error }).to_string();
    // There is room for it in a new connection.
    let _ = connection.set_nonblocking(true);
    let _ = connection.write_all(answer.as_bytes());
}

/// Reads a request, without the end of its line, which has to come before `deadline`.
fn read_line(mut connection: &UnixStream, deadline: Instant) -> std::io::Result<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") && line.len() < MAX_REQUEST {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        connection.set_read_timeout(Some(left))?;
        let mut bytes = [0; MAX_REQUEST];
        match connection.read(&mut bytes)? {
            0 => break,
            count => line.extend_from_slice(&bytes[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

/// Does `work`, and writes an empty line at each `interval` meanwhile.
fn with_signs_of_life<R>(
    mut connection: &UnixStream,
    interval: Duration,
    work: impl FnOnce() -> R,
) -> R {
    let (done, working) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let write = move || {
            while working.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                // A client that has gone loses its answer.
                let _ = connection.write_all(b"\n");
            }
        };
        // Without a thread for it, the client may lose its patience.
        let _ = std::thread::Builder::new().spawn_scoped(scope, write);
        let result = work();
        drop(done);
        result
    })
}

fn describe(status: &SessionStatus, recording: &ControlledRecording<'_>) -> Value {
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
    match arguments.format {
        AnswerFormat::Json => {
            let text = serde_json::to_string_pretty(&answer).map_err(anyhow::Error::new)?;
            stdout::print_json(&(text + "\n"))?;
        }
        AnswerFormat::Text => stdout::print(&in_words(verb, &answer))?,
    }
    Ok(0)
}

/// Switches off the recording of `gputrail record` with this id, or of a process of it.
pub fn stop(pid: u32) -> Result<()> {
    request(Verb::Stop, pid).map(drop)
}

fn request(verb: Verb, pid: u32) -> Result<Value> {
    let socket = find(pid)?;
    let connection = connect(&socket).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => denied(pid, error),
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            anyhow!("the recording of process {pid} has ended")
        }
        _ => anyhow!(error).context(format!("cannot reach {}", socket.display())),
    })?;
    check_owner(&connection, pid)?;
    let answer = converse(&connection, verb)?;
    match answer.get("error").and_then(Value::as_str) {
        Some(error) => bail!("{error}"),
        None => Ok(answer),
    }
}

/// Sends a request, and returns the answer.
fn converse(mut connection: &UnixStream, verb: Verb) -> Result<Value> {
    let request = format!("{GREETING}{}\n", verb.name());
    let written = connection.write_all(request.as_bytes());
    let longest = match verb {
        Verb::Flush => LONGEST_FLUSH,
        _ => PATIENCE,
    };
    let mut text = Vec::new();
    let read = read_answer(connection, longest, &mut text);
    // A client that is refused has its answer, whether or not its request was read.
    serde_json::from_slice(&text).map_err(|malformed| match (read, written) {
        (Err(error), _) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            anyhow!("{NO_ANSWER} for {} s", PATIENCE.as_secs())
        }
        (Err(error), _) | (_, Err(error)) => anyhow!(error).context(NO_ANSWER),
        _ => anyhow!(malformed).context(NO_ANSWER),
    })
}

/// Reads an answer, which has to come within the time `longest`, however it is divided, with less than [`PATIENCE`] between
/// two parts.
fn read_answer(
    mut connection: &UnixStream,
    longest: Duration,
    text: &mut Vec<u8>,
) -> std::io::Result<()> {
    let deadline = Instant::now() + longest;
    let mut part = vec![0; 1 << 16];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let text = format!("it was not complete after {} s", longest.as_secs());
            return Err(std::io::Error::other(text));
        }
        connection.set_read_timeout(Some(left.min(PATIENCE)))?;
        let part = match connection.read(&mut part) {
            Ok(0) => return Ok(()),
            Ok(count) => &part[..count],
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        // Empty lines say that there is more to come.
        let begin = if text.is_empty() {
            part.iter().take_while(|byte| **byte == b'\n').count()
        } else {
            0
        };
        text.extend_from_slice(&part[begin..]);
        if text.len() > MAX_ANSWER {
            return Err(std::io::Error::other(format!(
                "it is longer than {}",
                bytes(MAX_ANSWER as u64)
            )));
        }
    }
}

const NO_ANSWER: &str = "the running gputrail gave no answer";

/// A connection to `socket` that gives up after some time without progress, also while it connects.
fn connect(socket: &Path) -> std::io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC;
    let connection = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    for way in [Timeout::Send, Timeout::Recv] {
        sockopt::set_socket_timeout(&connection, way, Some(PATIENCE))?;
    }
    rustix::net::connect(&connection, &SocketAddrUnix::new(socket)?)?;
    Ok(UnixStream::from(connection))
}

/// Checks that the user of process `pid` makes the recording: the process itself says which one it belongs to, and could
/// name that of somebody else to a client with more rights.
fn check_owner(connection: &UnixStream, pid: u32) -> Result<()> {
    let owner = std::fs::metadata(format!("/proc/{pid}")).map(|data| data.uid());
    let owner = owner.with_context(|| format!("there is no process {pid}"))?;
    let recorder = peer_user(connection.as_fd()).context("cannot see whose recording it is")?;
    if recorder != owner {
        bail!(
            "process {pid} is of user {owner}, and names a recording of user {recorder}: if that is the right one, name its \
             `gputrail record`"
        );
    }
    Ok(())
}

/// The reason for which process `pid` or its recording cannot be reached: it is of another user, unless this one may
/// control every recording.
fn denied(pid: u32, error: std::io::Error) -> anyhow::Error {
    let user = rustix::process::geteuid().as_raw();
    match std::fs::metadata(format!("/proc/{pid}")).map(|data| data.uid()) {
        Ok(owner) if owner == user || user == 0 => {
            let what = format!("the system does not let user {user} look at process {pid}");
            anyhow!(error).context(what)
        }
        Ok(owner) => anyhow!(
            "process {pid} is of user {owner}: only the user who records can control a recording"
        ),
        Err(_) => anyhow!("there is no process {pid}"),
    }
}

/// Whether process `pid` has ended, and its parent has not asked for its exit code.
fn is_zombie(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    // The name in parentheses may contain anything; the state follows it.
    let state = stat.map(|stat| {
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('Z'))
    });
    state.unwrap_or(false)
}

/// The socket of the recording that process `pid` makes or belongs to.
fn find(pid: u32) -> Result<PathBuf> {
    let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}"));
    let environment = match read("environ") {
        Ok(environment) => environment,
        Err(error) if error.kind() == ErrorKind::NotFound => bail!("there is no process {pid}"),
        Err(_) if is_zombie(pid) => bail!("process {pid} has ended"),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(denied(pid, error));
        }
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
            bail!("process {pid} has ended")
        }
        Err(error) => return Err(error).context(format!("cannot look at process {pid}")),
    };
    if environment.is_empty() && is_zombie(pid) {
        bail!("process {pid} has ended");
    }
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
    // Root may ask after another user's recording, whose texts may hold anything.
    let text = |name: &str| printable(answer[name].as_str().unwrap_or_default());
    let number = |name: &str| answer[name].as_u64().unwrap_or_default();
    let (now, found) = (text("state"), text("found"));
    match verb {
        Verb::Start | Verb::Stop if now == found => format!("the recording was {now} already\n"),
        Verb::Start | Verb::Stop => format!("the recording is {now}; it was {found}\n"),
        Verb::Dump => format!("dump {} is being written\n", number("dumps")),
        Verb::Flush => match answer["trace"].as_str() {
            Some(trace) => format!(
                "trace: {} ({} so far)\n",
                printable(trace),
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
    let text = |name: &str| printable(answer[name].as_str().unwrap_or_default());
    let number = |value: &Value, name: &str| value[name].as_u64().unwrap_or_default();
    let since = answer["since"].as_f64().unwrap_or(0.0);
    let since = Duration::try_from_secs_f64(since).ok();
    let since = since.and_then(|since| UNIX_EPOCH.checked_add(since));
    let span = since.and_then(|since| SystemTime::now().duration_since(since).ok());
    let span = span.and_then(|span| u64::try_from(span.as_nanos()).ok());
    let span = span.map_or_else(|| "an unknown time".to_owned(), |span| time(Nanos(span)));
    let amounts = |value: &Value| {
        let lost = match number(value, "lost") {
            0 => "no record was dropped".into(),
            lost => format!("LOST: {} dropped", count(lost, "record")),
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
    ];
    let dumps = answer["dumps"].as_u64();
    let amount = if dumps.is_some() { "kept" } else { "so far" };
    lines.push(format!("{amount}: {}", amounts(answer)));
    if let Some(dumps) = dumps {
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
            error.map_or_else(String::new, |error| format!("; {}", printable(error))),
        ));
    }
    let ended = number(answer, "ended_processes");
    if ended > 0 {
        lines.push(format!("{} ended", count(ended, "process")));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_an_empty_line_while_long_work_goes_on() {
        let (server, mut client) = UnixStream::pair().unwrap();
        let result = with_signs_of_life(&server, Duration::from_millis(1), || {
            let mut bytes = [0; 2];
            client.read_exact(&mut bytes).unwrap();
            bytes
        });
        assert_eq!(&result, b"\n\n");
    }

    #[test]
    fn a_process_of_the_same_user_that_cannot_be_looked_at_is_not_of_another_user() {
        let error = denied(std::process::id(), ErrorKind::PermissionDenied.into());
        assert!(
            format!("{error:#}").contains("does not let user"),
            "{error:#}"
        );
    }

    #[test]
    fn a_client_that_is_one_too_many_is_told() {
        for is_early in [true, false] {
            let (server, client) = UnixStream::pair().unwrap();
            let mut server = Some(server);
            if is_early {
                refuse(&server.take().unwrap());
            }
            let answer = std::thread::scope(|scope| {
                let answer = scope.spawn(|| converse(&client, Verb::Status));
                if let Some(server) = server {
                    // The request is there, but not read.
                    std::thread::sleep(Duration::from_millis(20));
                    refuse(&server);
                }
                answer.join().unwrap().unwrap()
            });
            assert_eq!(answer["error"], "16 commands are being served; try again");
        }
    }

    #[test]
    fn an_answer_that_drips_or_does_not_end_is_given_up() {
        let (server, client) = UnixStream::pair().unwrap();
        let read = std::thread::scope(|scope| {
            let longest = Duration::from_millis(50);
            let reading = scope.spawn(move || read_answer(&client, longest, &mut Vec::new()));
            while !reading.is_finished() {
                // The client may have gone.
                let _ = (&server).write_all(b" ");
            }
            reading.join().unwrap()
        });
        let kind = read.unwrap_err().kind();
        assert!(
            matches!(kind, ErrorKind::WouldBlock | ErrorKind::Other),
            "{kind}"
        );
    }

    #[test]
    fn absurd_answers_are_printed_without_a_panic() {
        for since in [
            json!(1e300),
            json!(-1e300),
            json!(1e18),
            json!("x"),
            Value::Null,
        ] {
            let answer = json!({ "since": since, "program": "\u{1b}[31mred\nforged" });
            let text = in_words(Verb::Status, &answer);
            assert!(
                text.starts_with("\\u{1b}[31mred\\nforged, process 0"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_request_that_does_not_come_in_time_is_refused() {
        let (server, mut client) = UnixStream::pair().unwrap();
        client.write_all(b"gputrail 1 sta").unwrap();
        let late = read_line(&server, Instant::now() + Duration::from_millis(20));
        assert!(late.is_err());
        client.write_all(b"tus\n").unwrap();
        let line = read_line(&server, Instant::now() + PATIENCE).unwrap();
        assert_eq!(line, "tus");
    }
}
