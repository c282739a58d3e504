//! `gputrail view`: opens a trace in Perfetto's UI, which fetches it from us.
//!
//! We listen on loopback only, and give away one file (and the UI's own files, where a local copy of it is
//! served). The UI at ui.perfetto.dev may fetch from this port of the user's own machine and from no
//! other; requests that other sites cause are refused.

use crate::cli::View;
use crate::http::{Request, Response};
use crate::input::Input;
use crate::signals::{self, Signals};
use crate::{Failure, say};
use anyhow::{Context, Result, anyhow};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The one port of this machine that the UI at ui.perfetto.dev may fetch from.
pub const PORT: u16 = 9001;
const UI: &str = "https://ui.perfetto.dev";
/// How often we look for what is new.
const PERIOD: Duration = Duration::from_millis(200);
/// A local UI goes on fetching its own files after the trace; when it has fetched none for so long, it has all.
const QUIET: Duration = Duration::from_secs(10);
/// Most requests at a time.
const MAX_REQUESTS: usize = 64;

/// Runs the command; the result is the exit code.
pub fn run(arguments: &View) -> Result<u8, Failure> {
    match Input::open(&arguments.trace)? {
        Input::Trace(_) => {}
        Input::Capture(_) => {
            let path = arguments.trace.display();
            return Err(
                anyhow!("{path} is a capture; `gputrail convert` makes a trace of it").into(),
            );
        }
    }
    let signals = Signals::take().context("cannot take signals")?;
    let port = arguments.port.unwrap_or(PORT);
    serve(&arguments.trace, arguments.ui.as_deref(), port, &signals)?;
    Ok(0)
}

/// What is given away.
struct Shop {
    trace: PathBuf,
    /// Its path in the links.
    name: String,
    ui: Option<PathBuf>,
    port: u16,
    /// Requests that are being answered.
    active: AtomicUsize,
    /// Requests so far.
    requests: AtomicUsize,
    /// Whether somebody has fetched the whole trace.
    fetched: AtomicBool,
}

/// Serves `trace` and opens a browser, until the trace has been loaded or a signal comes.
pub fn serve(trace: &Path, ui: Option<&Path>, port: u16, _signals: &Signals) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        anyhow!(
            "cannot listen on 127.0.0.1:{port}: {error}; end what uses the port (another `gputrail view`, trace_processor), or open {} in {UI} by hand",
            trace.display()
        )
    })?;
    let port = listener.local_addr()?.port();
    listener.set_nonblocking(true)?;
    let ui = ui.map(local_ui).transpose()?;
    let shop = Arc::new(Shop {
        trace: trace.to_owned(),
        name: format!("/{}", link_name(trace)),
        ui,
        port,
        active: AtomicUsize::new(0),
        requests: AtomicUsize::new(0),
        fetched: AtomicBool::new(false),
    });
    let link = shop.link();
    say!("{link}");
    if !open_browser(&link) {
        say!("open this link in a browser of this machine; Ctrl-C ends the wait");
    }
    wait(&listener, &shop)
}

fn wait(listener: &TcpListener, shop: &Arc<Shop>) -> Result<()> {
    let begun = signals::taken();
    let mut latest = (0, Instant::now());
    let quiet = if shop.ui.is_some() {
        QUIET
    } else {
        Duration::ZERO
    };
    while signals::taken() == begun {
        let mut ready = [PollFd::new(listener, PollFlags::IN)];
        let period = Timespec::try_from(PERIOD).expect("a short time");
        // A signal interrupts it; then the loop's condition tells.
        let _ = rustix::event::poll(&mut ready, Some(&period));
        while let Ok((stream, _)) = listener.accept() {
            shop.requests.fetch_add(1, Ordering::Relaxed);
            if shop.active.fetch_add(1, Ordering::AcqRel) >= MAX_REQUESTS {
                shop.active.fetch_sub(1, Ordering::AcqRel);
                continue;
            }
            let shop = Arc::clone(shop);
            thread::spawn(move || {
                let _ = stream.set_nonblocking(false);
                shop.answer(&stream);
                shop.active.fetch_sub(1, Ordering::AcqRel);
            });
        }
        let requests = shop.requests.load(Ordering::Relaxed);
        let active = shop.active.load(Ordering::Acquire);
        if requests != latest.0 || active > 0 {
            latest = (requests, Instant::now());
        }
        if shop.fetched.load(Ordering::Acquire) && active == 0 && latest.1.elapsed() >= quiet {
            return Ok(());
        }
    }
    Ok(())
}

impl Shop {
    fn own(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn link(&self) -> String {
        let site = match self.ui {
            Some(_) => self.own(),
            None => UI.to_owned(),
        };
        format!(
            "{site}/#!/?url={}{}&referrer=gputrail",
            self.own(),
            self.name
        )
    }

    fn answer(&self, stream: &TcpStream) {
        let Some(request) = Request::read(stream) else {
            return;
        };
        let head_only = request.method == "HEAD";
        let is_trace = request.path == self.name;
        let response = self.response(&request);
        let sent = response.send(stream, head_only);
        if is_trace && request.method == "GET" && sent.is_ok() {
            self.fetched.store(true, Ordering::Release);
        }
    }

    fn response(&self, request: &Request) -> Response {
        // A site whose name somebody points at this machine is not us.
        let hosts = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{}", self.port));
        if !hosts.contains(&request.host) {
            return Response::empty("403 Forbidden");
        }
        let friends = [
            UI.to_owned(),
            self.own(),
            format!("http://localhost:{}", self.port),
        ];
        let response = match (&request.origin, request.method.as_str()) {
            (Some(origin), _) if !friends.contains(origin) => Response::empty("403 Forbidden"),
            (_, "OPTIONS") => Response::empty("204 No Content")
                .with("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
                .with("Access-Control-Allow-Headers", "*")
                // Asked for by browsers when a public site fetches from the user's own machine.
                .with("Access-Control-Allow-Private-Network", "true"),
            (_, "GET" | "HEAD") => self.file(&request.path),
            _ => Response::empty("405 Method Not Allowed"),
        };
        match &request.origin {
            Some(origin) if friends.contains(origin) => response
                .with("Access-Control-Allow-Origin", origin)
                .with("Vary", "Origin"),
            _ => response,
        }
    }

    fn file(&self, path: &str) -> Response {
        let missing = || Response::empty("404 Not Found");
        if path == self.name {
            let file = File::open(&self.trace)
                .and_then(|file| Response::file(file, "application/octet-stream"));
            return file.unwrap_or_else(|_| missing());
        }
        let Some(ui) = &self.ui else {
            return missing();
        };
        let inside = match path.trim_start_matches('/') {
            "" => "index.html",
            path => path,
        };
        // What leads out of the folder, by dots or by a link, is not there.
        let Ok(found) = ui.join(inside).canonicalize() else {
            return missing();
        };
        if !found.starts_with(ui) || !found.is_file() {
            return missing();
        }
        let file = File::open(&found).and_then(|file| Response::file(file, kind(&found)));
        file.unwrap_or_else(|_| missing())
    }
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

fn kind(path: &Path) -> &'static str {
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
    // It may stay as long as the browser does.
    thread::spawn(move || drop(browser.wait()));
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
