//! `gputrail view`: opens a trace in Perfetto's UI, which fetches it from this command.
//!
//! The server listens on loopback only, and serves one file (and the UI's own files, where a local copy of it is used).
//! The UI at ui.perfetto.dev may fetch from this port of the user's own machine and from no other; requests that other
//! sites cause are refused.
//!
//! Every user of the machine can connect to it, so the trace has a secret in its path. The link with the secret is printed,
//! and never put on a command line, which others can read: the browser is started with a link that leads there, and that
//! the server answers to this user alone. The trace is opened once, so that what gets its name later is not served.

use crate::cli::View;
use crate::failure::Failure;
use crate::first_view;
use crate::input::{Input, unpacked};
use crate::messages::say;
use crate::report::problems;
use crate::signals::{self, Signals};
use crate::trace::to_trace;
use crate::{peer, private_dir};
use anyhow::{Context, Result, anyhow};
use gputrail_convert::import::{Compression, InputFile, Inputs};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use tiny_http::{Method, Request, Server};

/// The only port of this machine that the UI at ui.perfetto.dev may fetch from.
const PORT: u16 = 9001;
const UI: &str = "https://ui.perfetto.dev";
/// Interval at which the server checks for signals and for its own end.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum number of requests that are answered at a time.
const MAX_REQUESTS: usize = 64;

/// Runs the command; the result is the exit code.
pub fn run(arguments: &View) -> Result<u8, Failure> {
    let input = Input::open(&arguments.trace)?;
    let signals = Signals::take().context("cannot take signals")?;
    let ui = arguments.ui.as_deref();
    let port = arguments.port.unwrap_or(PORT);
    let inputs = match &input {
        // The UI unpacks gzip itself.
        Input::Trace(trace) if trace.compression() != Compression::Zstd => {
            serve(&arguments.trace, trace, ui, port, &signals)?;
            return Ok(0);
        }
        Input::Trace(_) => None,
        Input::Capture(_) | Input::Foreign(_) => {
            Some(Inputs::open(&[&arguments.trace]).map_err(|error| anyhow!(error))?)
        }
    };
    let folder = private_dir::create_in(&std::env::temp_dir(), ".gputrail-")
        .context("cannot make a temporary folder")?;
    let name = arguments.trace.file_name().unwrap_or(OsStr::new("trace"));
    let trace = folder.path().join(name).with_extension("pftrace");
    let mut code = 0;
    if let Some(inputs) = inputs {
        let report = to_trace(inputs, &trace).context("the trace could not be made")?;
        code = problems(&report);
    } else if let Input::Trace(packed) = &input {
        let copied = File::create_new(&trace)
            .map_err(anyhow::Error::from)
            .and_then(|mut file| Ok(io::copy(&mut unpacked(packed)?, &mut file)?));
        copied.context("cannot unpack the trace")?;
    }
    let made = InputFile::open(&trace).context("cannot read the trace")?;
    serve(&trace, &made, ui, port, &signals)?;
    Ok(code)
}

/// Serves the trace in the file `path` on the usual port.
pub fn serve_file(path: &Path, signals: &Signals) -> Result<()> {
    let cannot = || format!("cannot read {}", path.display());
    let trace = InputFile::open(path).with_context(cannot)?;
    serve(path, &trace, None, PORT, signals)
}

/// The files that are served, and the state of the requests for them.
struct TraceSite<'a> {
    trace: &'a File,
    /// Path of the trace in links, with a secret.
    trace_path: String,
    /// What the UI does first, for its URL.
    commands: String,
    /// Path that leads this user's browser to the link.
    start_path: String,
    ui: Option<PathBuf>,
    port: u16,
    /// Number of requests that are being answered.
    active: AtomicUsize,
    /// Whether a client has fetched the whole trace.
    fetched: AtomicBool,
}

/// Serves `trace` as `name`, and opens a browser, until a signal arrives, or the UI at ui.perfetto.dev has fetched the
/// trace. A local UI fetches files of its own at any time, and has them as long as its user wants.
fn serve(
    name: &Path,
    trace: &InputFile,
    ui: Option<&Path>,
    port: u16,
    _signals: &Signals,
) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        anyhow!(
            "cannot listen on 127.0.0.1:{port}: {error}; end the program that uses the port (another `gputrail view`, trace_processor), or open {} in {UI} by hand",
            name.display()
        )
    })?;
    let port = listener.local_addr()?.port();
    let site = TraceSite {
        trace: trace.file(),
        // The UI says itself what is wrong with a trace that cannot be read.
        commands: first_view::commands(trace)
            .map_or_else(|_| String::new(), |text| first_view::in_url(&text)),
        trace_path: format!("/{}/{}", secret()?, link_name(name)),
        start_path: format!("/{}", secret()?),
        ui: ui.map(local_ui).transpose()?,
        port,
        active: AtomicUsize::new(0),
        fetched: AtomicBool::new(false),
    };
    let server = Server::from_listener(listener, None).map_err(|error| anyhow!(error))?;
    let link = site.link();
    say!("{link}");
    let ends = match site.ui {
        Some(_) => "Ctrl-C ends the server",
        None => "Ctrl-C ends the wait",
    };
    if !open_browser(&format!("{}{}", site.own_url(), site.start_path)) {
        say!("open this link in a browser of this machine; {ends}");
    } else if site.ui.is_some() {
        say!("{ends}");
    }
    thread::scope(|scope| {
        let signals_before = signals::taken();
        while signals::taken() == signals_before {
            let request = server.recv_timeout(POLL_INTERVAL)?;
            let active = site.active.load(Ordering::Acquire);
            match request {
                // A request that is dropped is answered with an error.
                Some(request) if active < MAX_REQUESTS => {
                    site.active.fetch_add(1, Ordering::AcqRel);
                    let answer = || site.answer(request);
                    if thread::Builder::new().spawn_scoped(scope, answer).is_err() {
                        site.active.fetch_sub(1, Ordering::AcqRel);
                    }
                }
                Some(_) => {}
                None if active == 0
                    && site.ui.is_none()
                    && site.fetched.load(Ordering::Acquire) =>
                {
                    break;
                }
                None => {}
            }
        }
        Ok(())
    })
}

impl TraceSite<'_> {
    fn own_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn link(&self) -> String {
        let own = self.own_url();
        let site = match self.ui {
            Some(_) => &own,
            None => UI,
        };
        let commands = match &*self.commands {
            "" => String::new(),
            commands => format!("&startupCommands={commands}"),
        };
        format!(
            "{site}/#!/?url={own}{}&referrer=gputrail{commands}",
            self.trace_path
        )
    }

    fn answer(&self, request: Request) {
        // An error means that the client has gone.
        let _ = self.respond(request);
        self.active.fetch_sub(1, Ordering::AcqRel);
    }

    fn respond(&self, request: Request) -> io::Result<()> {
        // A foreign host name that resolves to this machine is refused.
        let hosts = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{}", self.port));
        let host = header_of(&request, "Host").unwrap_or_default();
        let allowed_origins = [
            UI.to_owned(),
            self.own_url(),
            format!("http://localhost:{}", self.port),
        ];
        let origin = header_of(&request, "Origin");
        if !hosts.contains(&host)
            || origin
                .as_ref()
                .is_some_and(|origin| !allowed_origins.contains(origin))
        {
            return answer(request, 403, &[], 0).map(drop);
        }
        let mut headers = Vec::new();
        if let Some(origin) = &origin {
            headers.push(("Access-Control-Allow-Origin", origin.as_str()));
            headers.push(("Vary", "Origin"));
        }
        let status = match request.method() {
            Method::Get | Method::Head => {
                let path = request.url().split(['?', '#']).next().unwrap_or_default();
                if path == self.start_path {
                    let link = self.link();
                    headers.push(("Location", &link));
                    headers.push(("Cache-Control", "no-store"));
                    return if self.is_of_this_user(&request) {
                        answer(request, 302, &headers, 0).map(drop)
                    } else {
                        answer(request, 403, &[], 0).map(drop)
                    };
                }
                headers.push(("Cache-Control", "no-cache"));
                if path == self.trace_path {
                    headers.push(("Content-Type", "application/octet-stream"));
                    return self.send_trace(request, &headers);
                }
                match self.find(path) {
                    Some((file, kind)) => {
                        headers.push(("Content-Type", kind));
                        let length = file.metadata()?.len();
                        return send(request, file, length, &headers).map(drop);
                    }
                    None => 404,
                }
            }
            Method::Options => {
                // Browsers request the last one when a public site fetches from the user's own machine.
                headers.push(("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS"));
                headers.push(("Access-Control-Allow-Headers", "*"));
                headers.push(("Access-Control-Allow-Private-Network", "true"));
                200
            }
            _ => 405,
        };
        answer(request, status, &headers, 0).map(drop)
    }

    /// Sends the trace, and notes whether the client has fetched all of it.
    fn send_trace(&self, request: Request, headers: &[(&str, &str)]) -> io::Result<()> {
        let length = self.trace.metadata()?.len();
        let is_get = *request.method() == Method::Get;
        let from_the_beginning = FromBeginning {
            file: self.trace,
            offset: 0,
        };
        let sent = send(request, from_the_beginning, length, headers)?;
        if is_get && sent == length {
            self.fetched.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Whether a program of this user has sent the request.
    fn is_of_this_user(&self, request: &Request) -> bool {
        let Some(SocketAddr::V4(client)) = request.remote_addr().copied() else {
            return false;
        };
        let server = SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.port);
        peer::user_of_connection(client, server) == Some(rustix::process::geteuid().as_raw())
    }

    /// The file of the UI at `path`, and its media type.
    fn find(&self, path: &str) -> Option<(File, &'static str)> {
        let ui = self.ui.as_ref()?;
        let relative = match path.trim_start_matches('/') {
            "" => "index.html",
            path => path,
        };
        // A path that leads out of the folder, by dots or by a link, is not found.
        let found = ui.join(relative).canonicalize().ok()?;
        if !found.starts_with(ui) || !found.is_file() {
            return None;
        }
        Some((File::open(&found).ok()?, media_type(&found)))
    }
}

/// Sends `length` bytes of `content`, unless the request is for headers alone; the result is how many were sent.
fn send(
    request: Request,
    content: impl io::Read,
    length: u64,
    headers: &[(&str, &str)],
) -> io::Result<u64> {
    let is_get = *request.method() == Method::Get;
    let mut client = answer(request, 200, headers, length)?;
    if !is_get {
        return Ok(0);
    }
    let sent = io::copy(&mut content.take(length), &mut client)?;
    client.flush()?;
    Ok(sent)
}

/// Reads a file from its beginning, without a position that other requests share.
struct FromBeginning<'a> {
    file: &'a File,
    offset: u64,
}

impl io::Read for FromBeginning<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// A text that nobody can guess: 128 random bits.
fn secret() -> Result<String> {
    let mut bits = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bits));
    read.context("cannot read /dev/urandom")?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bits)))
}

fn header_of(request: &Request, name: &'static str) -> Option<String> {
    let found = request
        .headers()
        .iter()
        .find(|header| header.field.equiv(name))?;
    Some(found.value.as_str().to_owned())
}

/// Begins the answer to a request; the result takes its body of `length` bytes. The client closes the connection after it: the
/// server has a thread for each connection, and connections that come at once wait for those that are kept open without a
/// request.
fn answer(
    request: Request,
    status: u16,
    headers: &[(&str, &str)],
    length: u64,
) -> io::Result<Box<dyn Write + Send>> {
    let mut head =
        format!("HTTP/1.1 {status} \r\nConnection: close\r\nContent-Length: {length}\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    let mut client = request.into_writer();
    client.write_all(head.as_bytes())?;
    client.flush()?;
    Ok(client)
}

/// The folder of a local copy of the UI.
fn local_ui(folder: &Path) -> Result<PathBuf> {
    let cannot = || format!("cannot serve {} as the UI", folder.display());
    let folder = folder.canonicalize().with_context(cannot)?;
    if !folder.join("index.html").is_file() {
        return Err(anyhow!("it has no index.html")).with_context(cannot);
    }
    Ok(folder)
}

/// A trace's name as it can stand in a link without any escape, which the UI would show.
fn link_name(trace: &Path) -> String {
    let name = trace.file_name().unwrap_or_default().to_string_lossy();
    let plain = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' => letter,
        _ => '_',
    };
    name.chars().map(plain).collect()
}

/// The media type of a file of the UI, by its extension.
fn media_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html",
        Some("js") => "text/javascript",
        Some("css") => "text/css",
        Some("json") => "application/json",
        Some("wasm") => "application/wasm",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}

/// Opens the user's browser, if there seems to be one.
fn open_browser(link: &str) -> bool {
    let set = |variable| std::env::var_os(variable).filter(|value| !value.is_empty());
    let program = match set("BROWSER") {
        Some(program) => program,
        None if set("DISPLAY").is_some() || set("WAYLAND_DISPLAY").is_some() => "xdg-open".into(),
        None => return false,
    };
    let mut command = Command::new(program);
    command
        .arg(link)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut browser) = command.spawn() else {
        return false;
    };
    // It may stay as long as the browser does; without a thread that waits, it stays a zombie until this command ends.
    let _ = thread::Builder::new().spawn(move || drop(browser.wait()));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_links_need_no_escape() {
        assert_eq!(
            link_name(Path::new("/a/run 1&2#%.pftrace")),
            "run_1_2__.pftrace"
        );
    }
}
