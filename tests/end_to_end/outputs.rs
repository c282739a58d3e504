//! Error messages for bad input and full disks, and the paths of traces.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_harness::trace::Trace;

use crate::command::{TestDir, kernels, well};

#[test]
fn a_program_that_is_not_there_is_named_with_127() {
    let dir = TestDir::new();
    for name in ["no-such-program", "./no-such-program", "/no/such/program"] {
        let ended = run(&mut dir.record(Driver::Threaded, name, &[]));
        assert_eq!(ended.code(), 127);
        assert!(ended.stderr.contains(name), "{}", ended.stderr);
        assert_eq!(dir.files(".pftrace"), [""; 0], "no half result");
    }
}

#[test]
fn a_file_that_cannot_be_executed_is_named_with_126() {
    let dir = TestDir::new();
    let file = dir.join("not-executable");
    fs::write(&file, "text").unwrap();
    for name in ["./not-executable", "."] {
        let ended = run(&mut dir.record(Driver::Threaded, name, &[]));
        assert_eq!(ended.code(), 126, "{name}: {}", ended.stderr);
        assert!(ended.stderr.contains(name), "{}", ended.stderr);
    }
    assert_eq!(dir.files(".pftrace"), [""; 0]);
}

#[test]
fn an_output_that_cannot_be_written_stops_the_run_before_it_starts() {
    let dir = TestDir::new();
    for (output, named) in [
        ("no/such/folder/run.pftrace", "no/such/folder"),
        ("/proc/run.pftrace", "/proc"),
        (".", "directory"),
        ("no-folder/", "directory"),
    ] {
        let mut command = dir.gputrail(["record", "-o", output, "--", "touch", "it-ran"]);
        let ended = run(&mut command);
        assert_eq!(ended.code(), 125, "{output}: {}", ended.stderr);
        assert!(ended.stderr.contains(named), "{}", ended.stderr);
        assert!(!dir.join("it-ran").exists(), "{output}: the program ran");
    }
}

#[test]
fn wrong_options_are_ours_with_125() {
    let dir = TestDir::new();
    for arguments in [
        &["record", "--buffers", "many", "--", "true"][..],
        &["record", "--policy", "never", "--", "true"],
        &["record", "--no-such-option", "--", "true"],
        &["record"],
        &["no-such-command"],
    ] {
        let ended = run(&mut dir.gputrail(arguments));
        assert_eq!(ended.code(), 125, "{arguments:?}: {}", ended.stderr);
        assert!(!ended.stderr.is_empty());
    }
}

#[test]
fn a_program_without_opencl_gets_a_valid_trace_and_a_plain_sentence() {
    needs!(a_program_without_opencl_gets_a_valid_trace_and_a_plain_sentence: Need::TraceProcessor);
    let dir = TestDir::new();
    let ended = well(&mut dir.record(Driver::Threaded, "true", &[]));
    assert!(ended.stderr.contains("OpenCL"), "{}", ended.stderr);
    let mut trace = dir.trace();
    trace.assert_sound();
    assert_eq!(trace.value::<i64>("select count(*) from gpu_slice"), 0);
}

#[test]
fn traces_are_named_after_the_program_and_replace_nothing() {
    needs!(traces_are_named_after_the_program_and_replace_nothing: Need::Pocl, Need::Program("clinfo"));
    let dir = TestDir::new();
    for _ in 0..2 {
        let mut command = dir.gputrail(["record", "-q", "--", "clinfo", "-l"]);
        well(gputrail_harness::pocl::on_pocl(
            &mut command,
            Driver::Threaded,
        ));
    }
    let traces = dir.files(".pftrace");
    assert_eq!(traces.len(), 2, "{traces:?}");
    assert!(
        traces.iter().all(|name| name.starts_with("clinfo-")),
        "{traces:?}"
    );
}

#[test]
fn patterns_in_the_name_are_filled_in() {
    let dir = TestDir::new();
    let host = well(Command::new("uname").arg("-n")).text();
    let mut command = dir.gputrail([
        "record",
        "-q",
        "-o",
        "%h-%q{RANK}-100%%-%p.pftrace",
        "--",
        "true",
    ]);
    well(command.env("RANK", "7"));
    let traces = dir.files(".pftrace");
    let start = format!("{}-7-100%-", host.trim());
    assert!(
        traces.len() == 1 && traces[0].starts_with(&start),
        "{traces:?}"
    );
    let pid = traces[0]
        .trim_start_matches(&start)
        .trim_end_matches(".pftrace")
        .to_owned();
    assert!(pid.parse::<u32>().is_ok(), "{pid}");

    let ended = run(&mut dir.gputrail(["record", "-o", "%x.pftrace", "--", "true"]));
    assert_eq!(ended.code(), 125);
    assert!(ended.stderr.contains("%x"), "{}", ended.stderr);
}

#[test]
fn captures_are_kept_on_request_and_convert_to_the_same_trace() {
    needs!(captures_are_kept_on_request_and_convert_to_the_same_trace: Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    well(&mut dir.record_with(&["--capture"], Driver::Threaded, &lives, &["25"]));
    let captures = dir.files(".gputrail");
    assert_eq!(captures.len(), 1, "{captures:?}");
    well(&mut dir.gputrail(["convert", &captures[0], "-o", "converted.pftrace"]));
    let mut converted = Trace::open(dir.join("converted.pftrace"));
    converted.assert_sound();
    assert_eq!(kernels(&mut converted, "work"), 25);
    let sql = "select name, count(*), sum(dur) from slice group by name order by name";
    let direct = dir.trace().rows::<(String, i64, i64)>(sql);
    let converted = converted.rows::<(String, i64, i64)>(sql);
    assert_eq!(converted.len(), direct.len());
    for (converted, direct) in converted.iter().zip(&direct) {
        assert_eq!((&converted.0, converted.1), (&direct.0, direct.1));
        // The trace that was made during the run read the clocks more often than the capture.
        let tolerance = 20 * direct.1 + direct.2 / 100_000;
        let difference = (converted.2 - direct.2).abs();
        assert!(difference <= tolerance, "{converted:?} against {direct:?}");
    }
}

#[test]
fn agents_are_listed() {
    needs!(agents_are_listed: Need::Pocl);
    let dir = TestDir::new();
    let mut command = dir.gputrail(["agents"]);
    let text = well(gputrail_harness::pocl::on_pocl(
        &mut command,
        Driver::Threaded,
    ))
    .text();
    let expected = [
        "OpenCL",
        "Portable Computing Language",
        "compute units",
        "constants",
        "clock",
        "Simulated GPU",
    ];
    for words in expected {
        assert!(text.contains(words), "{words} is not in:\n{text}");
    }
}

#[test]
fn damaged_captures_are_named_with_what_was_expected() {
    needs!(damaged_captures_are_named_with_what_was_expected: Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    for (name, content) in [
        ("empty.gputrail", &b""[..]),
        (
            "text.gputrail",
            b"this is not a capture, but a text of some length",
        ),
    ] {
        fs::write(dir.join(name), content).unwrap();
        let ended = run(&mut dir.gputrail(["convert", name, "-o", "none.pftrace"]));
        assert_eq!(ended.code(), 125, "{}", ended.stderr);
        assert!(ended.stderr.contains(name), "{}", ended.stderr);
        assert!(!dir.join("none.pftrace").exists());
    }
    let ended = run(&mut dir.gputrail(["convert", "missing.gputrail", "-o", "none.pftrace"]));
    assert_eq!(ended.code(), 125);
    assert!(
        ended.stderr.contains("missing.gputrail"),
        "{}",
        ended.stderr
    );

    // The undamaged part of a torn capture is converted, and the damage is named.
    let lives = dir.program("lives");
    well(&mut dir.record_with(&["--capture"], Driver::Threaded, &lives, &["25"]));
    let capture = dir.join(&dir.files("run.gputrail")[0]);
    let whole = fs::read(&capture).unwrap();
    for (name, bytes) in [
        ("cut.gputrail", whole[..whole.len() - 100].to_vec()),
        ("flipped.gputrail", flipped(&whole)),
    ] {
        fs::write(dir.join(name), bytes).unwrap();
        let ended = run(&mut dir.gputrail(["convert", name, "-o", "rest.pftrace"]));
        assert!(ended.stderr.contains(name), "{name}: {}", ended.stderr);
        if dir.join("rest.pftrace").exists() {
            Trace::open(dir.join("rest.pftrace")).value::<i64>("select count(*) from slice");
            fs::remove_file(dir.join("rest.pftrace")).unwrap();
        }
    }
}

/// The bytes with one bit in the middle flipped.
fn flipped(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    bytes
}

/// A small filesystem, mounted until this is dropped.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(folder: &'a Path, size: &str) -> Self {
        fs::create_dir_all(folder).unwrap();
        let options = format!("size={size}");
        well(
            Command::new("mount")
                .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
                .arg(folder),
        );
        Self(folder)
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_does_not_disturb_the_program() {
    needs!(a_full_disk_does_not_disturb_the_program:
        Need::Root, Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    let folder = dir.join("small");
    let _disk = SmallDisk::mount(&folder, "256k");
    // Both the files written during the run and the trace go to the small disk.
    let mut command = dir.gputrail(["record", "-o", "small/run.pftrace", "--capture", "--"]);
    command
        .arg(&lives)
        .args(["20000", "exit", "5"])
        .env("TMPDIR", &folder);
    let ended = run(gputrail_harness::pocl::on_pocl(&mut command, Driver::Basic));
    assert_eq!(ended.code(), 5, "the program's own code: {}", ended.stderr);
    assert!(ended.stderr.contains("small"), "where: {}", ended.stderr);
    assert!(
        ended.stderr.to_lowercase().contains("space"),
        "why: {}",
        ended.stderr
    );
    if let Some(trace) = place_trace(&folder) {
        // The part that was written has to be readable.
        Trace::open(trace).value::<i64>("select count(*) from slice");
    }
}

fn place_trace(folder: &Path) -> Option<std::path::PathBuf> {
    let trace = folder.join("run.pftrace");
    trace.exists().then_some(trace)
}

#[test]
fn files_that_stay_are_private_and_no_others_stay() {
    needs!(files_that_stay_are_private_and_no_others_stay: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    let temporary = dir.join("tmp");
    fs::create_dir(&temporary).unwrap();
    let mut command = dir.record_with(&["--capture"], Driver::Threaded, &lives, &["5"]);
    well(command.env("TMPDIR", &temporary));
    assert_eq!(
        fs::read_dir(&temporary).unwrap().count(),
        0,
        "files stay in TMPDIR"
    );
    for capture in dir.files(".gputrail") {
        let mode = fs::metadata(dir.join(&capture))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{capture} can be read by others: {mode:o}");
    }
}

#[test]
fn nobody_else_can_look_into_a_session_or_guess_its_name() {
    needs!(nobody_else_can_look_into_a_session_or_guess_its_name: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    // The captures are beside the trace while the session lasts.
    let look = format!(
        "umask 0; '{}' 5; echo \"$GPUTRAIL_SESSION\"; find \"$GPUTRAIL_SESSION\" .gputrail-* -printf '%m %y %p\\n'",
        lives.display()
    );
    let mut names = Vec::new();
    for _ in 0..2 {
        let mut command = dir.record_with(&["-q"], Driver::Threaded, "sh", &["-c", &look]);
        let said = well(&mut command).text();
        let mut lines = said.lines();
        names.push(lines.next().expect("the session's name").to_owned());
        let (mut directories, mut captures) = (0, 0);
        for line in lines {
            let [mode, what, path] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            let (mode, file) = (u32::from_str_radix(mode, 8).expect(line), Path::new(path));
            match what {
                // Within the session's own directory.
                "d" if path.ends_with("/gputrail-markers") => {}
                "d" => {
                    assert_eq!(mode, 0o700, "{line}");
                    directories += 1;
                }
                // Written to the user's cache, to which only the user can write.
                "l" => {
                    let is_library = path.contains("/libgputrail") && path.ends_with(".so.0");
                    let of_markers = [
                        "libroctx64.so",
                        "librocprofiler-sdk-roctx.so",
                        "libCLPerfMarker.so",
                    ];
                    let is_of_markers = of_markers.iter().any(|name| path.contains(name));
                    assert!(is_library || is_of_markers, "{line}");
                }
                _ => {}
            }
            if file.extension().is_some_and(|end| end == "gputrail") {
                assert_eq!(mode, 0o600, "{line}");
                captures += 1;
            }
        }
        assert!(directories >= 2 && captures >= 1, "{said}");
    }
    assert_ne!(names[0], names[1]);
}

#[test]
fn a_capture_is_kept_beside_what_has_its_name_and_follows_no_link() {
    needs!(a_capture_is_kept_beside_what_has_its_name_and_follows_no_link: Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    std::os::unix::fs::symlink("elsewhere", dir.join("run.gputrail")).unwrap();
    well(&mut dir.record_with(&["--capture"], Driver::Threaded, &lives, &["5"]));
    assert!(!dir.join("elsewhere").exists());
    let captures = dir.files(".gputrail");
    let kept: Vec<_> = captures
        .iter()
        .filter(|name| !dir.join(name).is_symlink())
        .collect();
    assert_eq!(kept.len(), 1, "{captures:?}");
}
