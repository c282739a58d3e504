//! `gputrail view`: Perfetto's UI in a real browser fetches the trace from it, and other sites get nothing.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use gputrail_harness::machine::{Need, tools};
use gputrail_harness::program::run;
use gputrail_harness::{needs, repository};
use serde_json::Value;

use crate::command::{TestDir, well};
use crate::merging::packed_with_zstd;

/// A running `gputrail view`, and the link that it printed.
struct Viewing {
    process: Child,
    said: BufReader<ChildStderr>,
    link: String,
}

impl Viewing {
    /// Starts it with `arguments`, without a browser; waits until the port is free.
    fn start(dir: &TestDir, arguments: &[&str]) -> Viewing {
        Viewing::start_with(dir, arguments, Path::new(""))
    }

    /// Starts it with `arguments` and a browser, if the path is not empty.
    fn start_with(dir: &TestDir, arguments: &[&str], browser: &Path) -> Viewing {
        loop {
            let mut command = dir.gputrail(["view"].iter().chain(arguments));
            let mut process = command
                .env_remove("DISPLAY")
                .env_remove("WAYLAND_DISPLAY")
                .env("BROWSER", browser)
                .stderr(Stdio::piped())
                .spawn()
                .expect("gputrail starts");
            let mut said = BufReader::new(process.stderr.take().expect("piped"));
            let mut line = String::new();
            said.read_line(&mut line).expect("it says something");
            if let Some(link) = line.strip_prefix("gputrail: http") {
                let link = format!("http{}", link.trim_end());
                return Viewing {
                    process,
                    said,
                    link,
                };
            }
            let _ = process.wait();
            assert!(line.contains("cannot listen"), "{line}");
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    }

    fn port(&self) -> u16 {
        let (_, address) = self
            .link
            .rsplit_once("http://127.0.0.1:")
            .expect("our address");
        let (port, _) = address.split_once('/').expect("a path");
        port.parse().expect("a port")
    }

    /// The path of the trace, with its secret.
    fn trace_path(&self) -> &str {
        let (_, url) = self.link.split_once("?url=").expect("the address");
        let (url, _) = url.split_once('&').expect("who refers");
        let (_, rest) = url.split_once("http://127.0.0.1:").expect("our address");
        &rest[rest.find('/').expect("a path")..]
    }

    /// The answer to a request of a few lines.
    fn ask(&self, lines: &[&str]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port())).expect("it listens");
        let request = lines.join("\r\n") + "\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Waits for its end, which comes by itself once the UI of Perfetto's site has the trace, and is asked for where the UI is
    /// a local one.
    #[track_caller]
    fn end(mut self) {
        if self.link.starts_with("http://127.0.0.1:") {
            let process = self.process.id().to_string();
            well(Command::new("kill").arg(&process));
        }
        let mut said = String::new();
        let _ = self.said.read_to_string(&mut said);
        let status = self.process.wait().expect("it is ours");
        assert!(status.success(), "{status}: {said}");
    }
}

fn demo(dir: &TestDir) {
    well(&mut dir.gputrail(["demo", "-q"]));
}

/// Opens a link in the browser, selects a kernel, and returns what the UI shows.
#[track_caller]
fn open(link: &str) -> Value {
    let mut command = Command::new("node");
    command
        .arg(repository("tests/perfetto/open_link.mjs"))
        .arg(link)
        .args([
            "--select",
            "select id from gpu_slice where name glob 'gemm*' order by id limit 1",
        ]);
    serde_json::from_slice(&well(&mut command).stdout).expect("a line of JSON")
}

#[test]
fn the_ui_of_perfettos_site_loads_the_trace_and_shows_a_kernel() {
    needs!(the_ui_of_perfettos_site_loads_the_trace_and_shows_a_kernel: Need::Browser);
    let dir = TestDir::new();
    demo(&dir);
    let viewing = Viewing::start(&dir, &["demo.pftrace"]);
    assert!(
        viewing.link.starts_with("https://ui.perfetto.dev/"),
        "{}",
        viewing.link
    );
    let report = open(&viewing.link);
    let names = |what: &str| -> Vec<String> {
        let names = report[what].as_array().expect("a list").iter();
        names
            .map(|name| name.as_str().expect("a name").to_owned())
            .collect()
    };
    for group in ["GPU", "Render Stage", "train 4000"] {
        assert!(names("open").iter().any(|name| name == group), "{report}");
    }
    let pinned = names("pinned");
    assert!(
        pinned.iter().any(|name| name.starts_with("steps ")),
        "{pinned:?}"
    );
    // Numbers are padded.
    let is_row = |name: &String, row: &str| name.split_whitespace().eq(row.split(' '));
    for queue in ["GPU 0 · queue 0", "GPU 1 · queue 0"] {
        assert!(pinned.iter().any(|name| is_row(name, queue)), "{pinned:?}");
    }
    assert!(
        report["title"]
            .as_str()
            .unwrap()
            .starts_with("demo.pftrace"),
        "{report}"
    );
    let details = report["details"].as_str().expect("details");
    for words in ["gemm", "work-items in workgroups of", "submission_id"] {
        assert!(details.contains(words), "{words} in {details}");
    }
    viewing.end();
}

#[test]
fn a_local_ui_loads_the_trace() {
    needs!(a_local_ui_loads_the_trace: Need::Browser);
    let dir = TestDir::new();
    demo(&dir);
    let ui = tools().join("perfetto-ui");
    let viewing = Viewing::start(
        &dir,
        &["demo.pftrace", "--port", "0", "--ui", ui.to_str().unwrap()],
    );
    assert!(
        viewing.link.starts_with("http://127.0.0.1:"),
        "{}",
        viewing.link
    );
    open(&viewing.link);
    viewing.end();
}

#[test]
fn only_the_trace_is_given_away_and_only_to_perfetto() {
    let dir = TestDir::new();
    demo(&dir);
    std::fs::create_dir(dir.join("ui")).unwrap();
    std::fs::write(dir.join("ui/index.html"), "hello").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.join("ui/passwd")).unwrap();
    let viewing = Viewing::start(&dir, &["demo.pftrace", "--port", "0", "--ui", "ui"]);
    let host = format!("Host: 127.0.0.1:{}", viewing.port());
    let status = |lines: &[&str]| {
        let answer = viewing.ask(lines);
        answer.split(' ').nth(1).unwrap_or("none").to_owned()
    };
    let get = |path: &str| format!("GET {path} HTTP/1.1");
    assert_eq!(status(&[&get("/"), &host]), "200");
    for path in [
        "/other.pftrace",
        "/demo.pftrace",
        "/00000000000000000000000000000000/demo.pftrace",
        "/../demo.pftrace",
        "/%2e%2e/demo.pftrace",
        "/passwd",
        "//etc/passwd",
        "/.",
    ] {
        assert_eq!(status(&[&get(path), &host]), "404", "{path}");
    }
    let trace = get(viewing.trace_path());
    assert_eq!(status(&[&trace, "Host: evil.example:9001"]), "403");
    assert_eq!(
        status(&[&trace, &host, "Origin: https://evil.example"]),
        "403"
    );
    let path = viewing.trace_path();
    let post = format!("POST {path} HTTP/1.1");
    assert_eq!(status(&[&post, &host]), "405");
    assert_eq!(status(&["nonsense"]), "400");
    let before = viewing.ask(&[
        &format!("OPTIONS {path} HTTP/1.1"),
        &host,
        "Origin: https://ui.perfetto.dev",
        "Access-Control-Request-Private-Network: true",
    ]);
    assert!(
        before.contains("Access-Control-Allow-Origin: https://ui.perfetto.dev"),
        "{before}"
    );
    assert!(
        before.contains("Access-Control-Allow-Private-Network: true"),
        "{before}"
    );
    assert_eq!(status(&[&format!("HEAD {path} HTTP/1.1"), &host]), "200");
    assert_eq!(status(&[&trace, &host]), "200");
    viewing.end();
}

#[test]
fn requests_that_cannot_be_served_are_answered_with_the_reason() {
    let dir = TestDir::new();
    demo(&dir);
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    std::fs::create_dir(dir.join("empty")).unwrap();
    std::fs::write(dir.join("index.html"), "").unwrap();
    for (arguments, words) in [
        (&["none.pftrace"][..], "none.pftrace"),
        (
            &["demo.pftrace", "--ui", ".", "--port", &port],
            "cannot listen on 127.0.0.1",
        ),
        (
            &["demo.pftrace", "--ui", "empty", "--port", "0"],
            "index.html",
        ),
        (&["demo.pftrace", "--port", "1234"], "--ui"),
    ] {
        let ended = run(&mut dir.gputrail(["view"].iter().chain(arguments)));
        assert_eq!(ended.code(), 125, "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{words}: {}", ended.stderr);
    }
}

#[test]
fn files_of_other_programs_and_packed_traces_are_served_as_traces() {
    let dir = TestDir::new();
    demo(&dir);
    let trace = std::fs::read(dir.join("demo.pftrace")).unwrap();
    std::fs::write(dir.join("packed.zst"), packed_with_zstd(&trace)).unwrap();
    let profile = r#"[{"ph":"X","name":"a slice of its own","ts":1,"dur":2,"pid":1,"tid":1}]"#;
    std::fs::write(dir.join("run.json"), profile).unwrap();
    std::fs::create_dir(dir.join("ui")).unwrap();
    std::fs::write(dir.join("ui/index.html"), "hello").unwrap();
    let files = [
        ("packed.zst", "packed.pftrace", "simInit"),
        ("run.json", "run.pftrace", "a slice of its own"),
    ];
    for (file, served, words) in files {
        let viewing = Viewing::start(&dir, &[file, "--port", "0", "--ui", "ui"]);
        let host = format!("Host: 127.0.0.1:{}", viewing.port());
        let path = viewing.trace_path();
        assert!(path.ends_with(&format!("/{served}")), "{path}");
        let answer = viewing.ask(&[&format!("GET {path} HTTP/1.1"), &host]);
        assert!(answer.contains(" 200 ") && answer.contains(words), "{file}");
        viewing.end();
    }
}

#[test]
fn a_file_that_takes_the_place_of_the_trace_is_not_served() {
    let dir = TestDir::new();
    demo(&dir);
    std::fs::create_dir(dir.join("ui")).unwrap();
    std::fs::write(dir.join("ui/index.html"), "hello").unwrap();
    std::fs::write(dir.join("private"), "a secret of the user").unwrap();
    let viewing = Viewing::start(&dir, &["demo.pftrace", "--port", "0", "--ui", "ui"]);
    std::fs::remove_file(dir.join("demo.pftrace")).unwrap();
    std::os::unix::fs::symlink("private", dir.join("demo.pftrace")).unwrap();
    let host = format!("Host: 127.0.0.1:{}", viewing.port());
    for _ in 0..2 {
        let answer = viewing.ask(&[&format!("GET {} HTTP/1.1", viewing.trace_path()), &host]);
        assert!(!answer.contains("a secret of the user"));
        assert!(answer.contains("simInit"), "the trace that was named");
    }
    viewing.end();
}

/// Starts `gputrail view` with a browser that writes its arguments into the file `browsed`, and returns the path with which
/// the browser was started.
fn browse(dir: &TestDir) -> (Viewing, String) {
    let browser = dir.join("browser");
    let script = "#!/bin/sh\necho \"$@\" > browsed.part && mv browsed.part browsed\n";
    std::fs::write(&browser, script).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&browser, executable).unwrap();
    std::fs::create_dir(dir.join("ui")).unwrap();
    std::fs::write(dir.join("ui/index.html"), "hello").unwrap();
    let viewing = Viewing::start_with(
        dir,
        &["demo.pftrace", "--port", "0", "--ui", "ui"],
        &browser,
    );
    let browsed = dir.join("browsed");
    while !browsed.exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let link = std::fs::read_to_string(browsed).unwrap();
    let own = format!("http://127.0.0.1:{}", viewing.port());
    let path = link
        .trim()
        .strip_prefix(&own)
        .expect("our address")
        .to_owned();
    (viewing, path)
}

#[test]
fn the_browsers_command_line_has_no_secret_that_serves_another_user() {
    let dir = TestDir::new();
    demo(&dir);
    let (viewing, path) = browse(&dir);
    let secret = viewing.trace_path().split('/').nth(1).expect("a secret");
    assert!(secret.len() == 32 && !path.contains(secret), "{path}");
    let host = format!("Host: 127.0.0.1:{}", viewing.port());
    let answer = viewing.ask(&[&format!("GET {path} HTTP/1.1"), &host]);
    let leads = format!("Location: {}\r\n", viewing.link);
    assert!(
        answer.contains(" 302 ") && answer.contains(&leads),
        "{answer}"
    );
    viewing.end();
}

#[test]
fn another_user_is_not_led_from_the_browsers_command_line_to_the_trace() {
    needs!(another_user_is_not_led_from_the_browsers_command_line_to_the_trace: Need::Root);
    let dir = TestDir::new();
    demo(&dir);
    let (viewing, path) = browse(&dir);
    let port = viewing.port();
    let request = format!(
        "GET {path} HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\nConnection: close\\r\\n\\r\\n"
    );
    let ask = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; printf '{request}' >&3; cat <&3");
    let asks = |user: u32| {
        let mut command = Command::new("bash");
        command.args(["-c", &ask]).current_dir("/");
        std::os::unix::process::CommandExt::uid(&mut command, user);
        run(&mut command).text()
    };
    assert!(asks(0).contains(" 302 "));
    let refused = asks(65_533);
    assert!(
        refused.contains(" 403 ") && !refused.contains("Location"),
        "{refused}"
    );
    viewing.end();
}
