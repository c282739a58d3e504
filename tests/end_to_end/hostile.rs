//! Other users of the machine, names that steer terminals, input without an end: what gputrail does on behalf of its user
//! does not serve others.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use gputrail_harness::machine::Need;
use gputrail_harness::program::run;
use gputrail_harness::{needs, repository};
use serde_json::{Value, json};

use crate::command::{TestDir, well};

/// A user who is not the one of the tests.
const OTHER: u32 = 65_533;

/// A user without any other process, so that a limit of processes is for one command alone.
const LIMITED: u32 = 65_531;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn the_library_is_not_written_where_others_can_add_libraries() {
    let dir = TestDir::new();
    let markers = dir.join("gputrail-markers");
    well(&mut dir.gputrail(["library", "./libgputrail.so"]));
    for mode in [0o777, 0o1777] {
        set_mode(&markers, mode);
        let ended = run(&mut dir.gputrail(["library", "./libgputrail.so"]));
        assert_eq!(
            (ended.code(), &*ended.text()),
            (125, ""),
            "{}",
            ended.stderr
        );
        assert!(
            ended.stderr.contains("gputrail-markers is a directory"),
            "{}",
            ended.stderr
        );
    }
    set_mode(&markers, 0o755);
    set_mode(dir.path(), 0o777);
    let ended = run(&mut dir.gputrail(["library", "./libgputrail.so"]));
    assert_eq!(
        (ended.code(), &*ended.text()),
        (125, ""),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("other users may replace files"),
        "{}",
        ended.stderr
    );
}

#[test]
fn the_folder_of_libraries_of_another_user_is_refused() {
    needs!(the_folder_of_libraries_of_another_user_is_refused: Need::Root);
    let dir = TestDir::new();
    set_mode(dir.path(), 0o1777);
    let markers = dir.join("gputrail-markers");
    fs::create_dir(&markers).unwrap();
    chown(&markers, Some(OTHER), None).unwrap();
    let ended = run(&mut dir.gputrail(["library", "./libgputrail.so"]));
    assert_eq!(
        (ended.code(), &*ended.text()),
        (125, ""),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("gputrail-markers"),
        "{}",
        ended.stderr
    );
}

/// A folder like /tmp, with a link of another user to a file of this one.
fn with_link_of_another_user() -> TestDir {
    let dir = TestDir::new();
    set_mode(dir.path(), 0o1777);
    fs::write(dir.join("victim"), "precious").unwrap();
    symlink("victim", dir.join("out.pftrace")).unwrap();
    lchown(dir.join("out.pftrace"), Some(OTHER), None).unwrap();
    dir
}

#[test]
fn an_output_that_is_a_link_of_another_user_is_refused_before_the_program_runs() {
    needs!(an_output_that_is_a_link_of_another_user_is_refused_before_the_program_runs: Need::Root);
    let dir = with_link_of_another_user();
    let commands = [
        &["record", "-o", "out.pftrace", "--", "touch", "it-ran"][..],
        &["demo", "-o", "out.pftrace"],
        &["library", "lib/libgputrail.so", "--header", "out.pftrace"],
    ];
    fs::create_dir(dir.join("lib")).unwrap();
    for arguments in commands {
        let ended = run(&mut dir.gputrail(arguments));
        assert_eq!(ended.code(), 125, "{arguments:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains("is a link of user 65533"),
            "{}",
            ended.stderr
        );
        assert_eq!(fs::read(dir.join("victim")).unwrap(), b"precious");
    }
    assert!(!dir.join("it-ran").exists());
}

#[test]
fn a_link_of_another_user_that_comes_during_the_run_is_not_followed() {
    needs!(a_link_of_another_user_that_comes_during_the_run_is_not_followed: Need::Root);
    let dir = TestDir::new();
    set_mode(dir.path(), 0o1777);
    let plant = "ln -s new-file out.pftrace && chown -h 65533 out.pftrace";
    let ended = run(&mut dir.gputrail(["record", "-o", "out.pftrace", "--", "sh", "-c", plant]));
    assert_eq!(ended.code(), 125, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("is a link of user 65533"),
        "{}",
        ended.stderr
    );
    assert!(!dir.join("new-file").exists());
}

#[test]
fn a_thread_that_cannot_be_started_costs_the_program_nothing() {
    needs!(a_thread_that_cannot_be_started_costs_the_program_nothing: Need::Root);
    let dir = TestDir::new();
    chown(dir.path(), Some(LIMITED), None).unwrap();
    // The other user may not reach the place where it was built.
    let gputrail = dir.join("gputrail");
    fs::copy(env!("CARGO_BIN_EXE_gputrail"), &gputrail).unwrap();
    let mut refused = 0;
    for limit in 1..16 {
        let mut command = Command::new(&gputrail);
        command
            .args(["record", "-q", "-o", "t.pftrace", "--", "sh", "-c"])
            .arg(format!(": > ran-{limit}; exec sleep 0.3"))
            .current_dir(dir.path())
            .env("HOME", dir.path())
            .env_remove("XDG_CACHE_HOME")
            .uid(LIMITED);
        let most = libc::rlimit {
            rlim_cur: limit,
            rlim_max: limit,
        };
        // SAFETY: setrlimit may be called between fork and exec.
        unsafe {
            command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_NPROC, &most) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        let ended = run(&mut command);
        let ran = dir.join(&format!("ran-{limit}")).exists();
        assert!(
            !ended.stderr.contains("panicked"),
            "{limit}: {}",
            ended.stderr
        );
        let code = ended.code();
        if ran {
            assert_eq!(code, 0, "{limit}: {}", ended.stderr)
        } else {
            assert!(
                matches!(code, 125 | 126),
                "{limit}: {code}: {}",
                ended.stderr
            )
        }
        refused += u32::from(!ran);
        // The program has ended with the command.
        let left = run(Command::new("pgrep").args(["-u", &LIMITED.to_string()]));
        assert_eq!(left.text(), "", "{limit}");
    }
    assert!(
        (1..15).contains(&refused),
        "{refused} of 15 limits are too low"
    );
}

/// What a terminal acts on, the end of a line, and what a program for spreadsheets acts on.
const EVIL: &str = "=cmd\u{1b}]0;PWNED\u{7}\u{1b}[31m\u{9b}31m\u{202e}\r\nforged: line";

/// Events whose names are all evil.
fn evil_events() -> Value {
    let named = |text: &str| format!("{EVIL}{text}");
    json!({
        "traceEvents": [
            {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": EVIL}},
            {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": EVIL}},
            {"ph": "X", "cat": "cuda_runtime", "name": named("launch"), "pid": 1, "tid": 1, "ts": 10, "dur": 5, "args": {"correlation": 1}},
            {"ph": "X", "cat": "kernel", "name": named("kernel"), "pid": 0, "tid": 7, "ts": 20, "dur": 5, "args": {"correlation": 1, "device": 0, "stream": 7}},
            {"ph": "X", "cat": EVIL, "name": named("range"), "pid": 1, "tid": 1, "ts": 5, "dur": 50},
            {"ph": "C", "name": named("counter"), "pid": 1, "ts": 5, "args": {"v": 1}},
            {"ph": "X", "cat": EVIL, "name": "bad", "pid": 1, "tid": 1, "ts": named("x")},
            EVIL
        ],
        "host_name": EVIL,
        "deviceProperties": [{"id": 0, "name": named("GPU")}]
    })
}

fn assert_plain(text: &str, what: &str) {
    let steers = |letter: char| letter != '\n' && (letter.is_control() || letter == '\u{202e}');
    assert!(!text.contains(steers), "{what}: {text:?}");
    let forged = |line: &str| line.trim_start_matches("gputrail: ").starts_with("forged");
    assert!(!text.lines().any(forged), "{what}: {text}");
}

#[test]
fn names_of_files_and_in_files_do_not_steer_the_terminal() {
    let dir = TestDir::new();
    let file = "e\u{1b}[31m\nforged.json";
    let trace = "e\u{1b}[31m\nforged.pftrace";
    fs::write(dir.join(file), evil_events().to_string()).unwrap();
    let mut damaged = b"\x0a\xff\x01".to_vec();
    damaged.extend(EVIL.as_bytes());
    fs::write(dir.join("damaged.pftrace"), damaged).unwrap();
    for arguments in [
        &["convert", "--dry-run", file][..],
        &["convert", file, "-o", trace],
        &["info", file],
        &["info", trace],
        &["check", trace],
        &["check", "damaged.pftrace"],
        &["summary", trace],
        &["summary", file],
        &["summary", trace, "--format", "markdown"],
        &["summary", trace, "--format", "json"],
        &["hotspots", trace],
        &["hotspots", file],
        &["convert", file, "-o", "no/such\u{1b}[31m\nforged/place"],
        &["convert", "no-such\u{1b}[31m\nforged.file"],
        &["merge", trace, trace, "-o", "merged.pftrace"],
        &["status", "no\u{1b}[31mnumber"],
        &["counters", "list", "--definitions", file],
    ] {
        let ended = run(&mut dir.gputrail(arguments));
        assert!(ended.code() != 101, "{arguments:?}: {}", ended.stderr);
        assert_plain(&ended.stderr, &format!("{arguments:?}"));
        assert_plain(&ended.text(), &format!("{arguments:?}"));
    }
    let table = well(&mut dir.gputrail(["summary", trace, "--format", "json"])).text();
    let table: Value = serde_json::from_str(&table).unwrap();
    assert!(
        table.to_string().contains("forged: linekernel"),
        "the value is the same"
    );
    let table = well(&mut dir.gputrail(["summary", trace, "--format", "csv"])).text();
    assert!(
        table.contains("\"'=cmd") && !table.contains("\"=cmd"),
        "{table}"
    );
    // Some of it is damaged.
    assert_eq!(
        run(&mut dir.gputrail(["convert", file, "-o", "tables.csv"])).code(),
        1
    );
    for table in fs::read_dir(dir.join("tables.csv")).unwrap() {
        let text = fs::read_to_string(table.unwrap().path()).unwrap();
        assert!(
            !text.contains("\"=cmd") && !text.contains(",=cmd"),
            "{text}"
        );
    }
}

#[test]
fn answers_of_a_recording_of_somebody_else_do_no_harm() {
    let dir = TestDir::new();
    let socket = UnixListener::bind(dir.join("control")).unwrap();
    let mut recorded = Command::new("sleep")
        .arg("600")
        .env("GPUTRAIL_SESSION", dir.path())
        .spawn()
        .unwrap();
    let pid = recorded.id().to_string();
    for (answer, code) in [
        (json!({ "error": EVIL }).to_string(), 125),
        (
            json!({ "since": 1e300, "program": EVIL, "state": EVIL, "output": EVIL }).to_string(),
            0,
        ),
        ("\n".repeat(100) + "[", 125),
        (" ".repeat(17 << 20), 125),
    ] {
        let mut status = dir.gputrail(["status", &pid]);
        let status = status
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut client, _) = socket.accept().unwrap();
        let mut request = [0; 64];
        let _ = client.read(&mut request).unwrap();
        // The client goes when it has read enough.
        let _ = client.write_all(answer.as_bytes());
        drop(client);
        let ended = status.wait_with_output().unwrap();
        let [out, err] = [&ended.stdout, &ended.stderr].map(|text| String::from_utf8_lossy(text));
        assert_eq!(ended.status.code(), Some(code), "{out}{err}");
        assert_plain(&out, "status");
        assert_plain(&err, "status");
    }
    let _ = recorded.kill();
    let _ = recorded.wait();
}

#[test]
fn endless_input_without_a_known_format_is_refused_at_once() {
    let dir = TestDir::new();
    let ended = run(&mut dir.gputrail(["convert", "/dev/zero", "-o", "out.pftrace"]));
    assert_eq!(ended.code(), 125, "{}", ended.stderr);
    let mut yes = Command::new("yes").stdout(Stdio::piped()).spawn().unwrap();
    let mut command = dir.gputrail(["convert", "-", "-o", "out.pftrace"]);
    command.stdin(yes.stdout.take().unwrap());
    let ended = run(&mut command);
    drop(command);
    assert_eq!(ended.code(), 125, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("standard input") || ended.stderr.contains("- is"),
        "{}",
        ended.stderr
    );
    let _ = yes.kill();
    let _ = yes.wait();
    assert!(dir.files("out.pftrace").is_empty());
}

#[test]
fn files_that_only_begin_like_those_of_profilers_make_no_output() {
    let dir = TestDir::new();
    let database = repository("tests/data/damaged/bookmarks.db");
    fs::copy(database, dir.join("bookmarks.db")).unwrap();
    // A profile of pprof, and a text that begins with an empty line.
    fs::write(
        dir.join("memory.prof"),
        b"\x0a\x04\x08\x01\x10\x02\x12\x04\x08\x01\x10\x02",
    )
    .unwrap();
    fs::write(dir.join("log.txt"), "\nPerformance report\n").unwrap();
    for (name, found) in [
        (
            "bookmarks.db",
            "an SQLite database of unknown tables (bookmarks)",
        ),
        ("memory.prof", "bytes that begin with"),
        ("log.txt", "a text that begins with \"Performance report\""),
    ] {
        let ended = run(&mut dir.gputrail(["convert", name, "-o", "out.pftrace"]));
        assert_eq!(ended.code(), 125, "{name}: {}", ended.stderr);
        assert!(ended.stderr.contains(found), "{name}: {}", ended.stderr);
        assert!(!dir.join("out.pftrace").exists(), "{name}");
    }
}

/// Appends a field of a message that is bytes.
fn put(message: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    message.extend_from_slice(&[field << 3 | 2, bytes.len() as u8]);
    message.extend_from_slice(bytes);
}

#[test]
fn a_file_of_planes_is_no_perfetto_trace() {
    let dir = TestDir::new();
    let mut line = Vec::new();
    put(&mut line, 2, b"Stream #7(Compute)");
    // An event of the first name, 1000 ns long, 2 ns behind the start of its line.
    put(&mut line, 4, &[8, 1, 16, 0xd0, 0x0f, 24, 0xc0, 0x84, 0x3d]);
    let mut name = vec![8, 1];
    put(&mut name, 2, &[&[18, 3][..], b"add"].concat());
    let mut plane = Vec::new();
    put(&mut plane, 2, b"/device:GPU:0");
    put(&mut plane, 3, &line);
    put(&mut plane, 4, &name);
    let mut file = Vec::new();
    put(&mut file, 1, &plane);
    fs::write(dir.join("host.xplane.pb"), &file).unwrap();
    let ended = run(&mut dir.gputrail(["convert", "host.xplane.pb", "-o", "out.pftrace"]));
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("XPlane file"), "{}", ended.stderr);
    assert!(ended.stderr.contains("1 kernel"), "{}", ended.stderr);
    let checked = run(&mut dir.gputrail(["check", "out.pftrace"]));
    assert_eq!(checked.code(), 0, "{}", checked.text());
}

#[test]
fn a_trace_of_damaged_input_has_nothing_wrong() {
    let dir = TestDir::new();
    for (name, code, says) in [
        ("late-times.json", 0, "beyond 146 years"),
        ("no-comma.json", 1, "expected a comma"),
        ("no-name.db", 0, ""),
    ] {
        let file = repository("tests/data/damaged").join(name);
        let mut command = dir.gputrail(["convert", "-o", "out.pftrace"]);
        let ended = run(command.arg(file));
        assert_eq!(ended.code(), code, "{name}: {}", ended.stderr);
        assert!(ended.stderr.contains(says), "{name}: {}", ended.stderr);
        let checked = run(&mut dir.gputrail(["check", "out.pftrace"]));
        assert_eq!(checked.code(), 0, "{name}: {}", checked.text());
    }
}

#[test]
fn damaged_input_of_which_nothing_can_be_read_makes_no_output() {
    let dir = TestDir::new();
    well(&mut dir.gputrail(["demo", "-q", "-o", "whole.pftrace"]));
    let whole = fs::read(dir.join("whole.pftrace")).unwrap();
    fs::write(dir.join("cut.pftrace"), &whole[..12]).unwrap();
    for output in ["out.pftrace", "out.json", "out.csv"] {
        let ended = run(&mut dir.gputrail(["convert", "cut.pftrace", "-o", output]));
        assert_eq!(ended.code(), 125, "{output}: {}", ended.stderr);
        assert!(
            ended.stderr.contains("the trace was cut"),
            "{}",
            ended.stderr
        );
        assert!(!dir.join(output).exists());
    }
}

#[test]
fn parts_are_named_after_the_input_although_its_trace_is_there() {
    let dir = TestDir::new();
    well(&mut dir.gputrail(["demo", "-q", "--capture", "-o", "same.pftrace"]));
    well(&mut dir.gputrail(["convert", "-q", "same.gputrail", "--split", "300kB"]));
    let parts = dir.files(".pftrace");
    let number = parts.len() - 1;
    let digits = number.to_string().len();
    let mut expected: Vec<String> = (1..=number)
        .map(|part| format!("same-{part:0digits$}.pftrace"))
        .collect();
    expected.push("same.pftrace".into());
    expected.sort();
    assert_eq!(parts, expected);
}
