//! Damage that costs one event, and several JSON values in one file.

use std::io::Write;

use tempfile::NamedTempFile;

use super::{read, x};
use crate::import::{Inputs, OpenError};

/// The names of the slices of `lines`.
fn names(lines: &[String]) -> Vec<&str> {
    let slices = lines.iter().filter_map(|line| line.split_once("] "));
    slices
        .filter_map(|(_, rest)| rest.split(' ').next())
        .collect()
}

/// The slice `b` with a value for an argument.
fn with_value(value: &str) -> String {
    x("b", "2", "1").replace(
        "\"pid\":1",
        &format!("\"pid\":1,\"args\":{{\"x\":{value}}}"),
    )
}

#[test]
fn what_programs_print_for_no_number_is_repaired() {
    let [a, c] = [x("a", "1", "1"), x("c", "3", "1")];
    let values = [
        "nan",
        "-nan",
        "NaN",
        "-NaN",
        "inf",
        "-inf",
        "+inf",
        "Infinity",
        "-Infinity",
        "INF",
        "-nan(ind)",
        "nan(snan)",
        "1.#QNAN",
        "-1.#IND",
        "1.#INF",
    ];
    for value in values {
        let text = format!("[{a},{},{c}]", with_value(value));
        let (lines, report) = read(text.as_bytes());
        assert_eq!(names(&lines), ["a", "b", "c"], "{value}");
        let b = lines.iter().find(|line| line.contains(" b "));
        assert!(b.unwrap().ends_with(&format!(" x={value}")), "{b:?}");
        assert_eq!(report.findings.len(), 1, "{value}: {:?}", report.findings);
        assert!(report.findings[0].found.contains("repaired"), "{value}");
    }
}

#[test]
fn behind_an_event_that_is_lost_others_are_repaired() {
    let lost = x("lost", "1", "1").replace("\"lost\"", "\"lost");
    let events = [
        lost.clone(),
        with_value("inf"),
        lost,
        with_value("-nan"),
        x("c", "3", "1"),
    ];
    let (lines, report) = read(format!("{{\"traceEvents\":[{}]}}", events.join(",\n")).as_bytes());
    assert_eq!(names(&lines), ["b", "b", "c"]);
    let found: Vec<_> = report.findings.iter().map(|one| &one.found[..]).collect();
    let count = |word: &str| found.iter().filter(|found| found.contains(word)).count();
    assert_eq!((count("repaired"), count("skipped")), (2, 2), "{found:?}");
}

#[test]
fn behind_a_last_event_that_is_lost_the_fields_are_read() {
    let events = |last: &str| format!("{},\n{last}", x("a", "1", "1"));
    let lost = [
        // An escape that is none, and a value that is missing.
        x("\\q", "2", "1"),
        x("b", "2", "1").replace("\"dur\":1", "\"dur\":"),
        x("b", "2", "1").replace("\"dur\":1", "\"args\":{\"list\":[{\"x\":1}]},\"dur\":"),
    ];
    for last in lost {
        for field in [",\"baseTimeNanoseconds\":1000,\"x\":[{\"y\":[]}]", ""] {
            let text = format!("{{\"traceEvents\":[{}]\n{field}}}\n", events(&last));
            let (lines, report) = read(text.as_bytes());
            let time = if field.is_empty() { 1000 } else { 2000 };
            let expected = format!("[] a {time}..{}", time + 1000);
            assert!(lines.contains(&expected), "{last}: {lines:?}");
            let [finding] = &report.findings[..] else {
                panic!("{last}: {:?}", report.findings);
            };
            assert!(finding.found.contains("skipped"), "{finding}");
            let mut remarks = report.remarks.iter();
            assert!(
                !remarks.any(|remark| remark.reason.contains("cut")),
                "{last}"
            );
        }
    }
}

#[test]
fn repairable_events_are_found_where_a_window_ends() {
    let long = "y".repeat(1000);
    let event = |number: usize| {
        let value = if number.is_multiple_of(2) { "nan" } else { "1" };
        with_value(value).replace("\"b\"", &format!("\"{long}{number}\""))
    };
    let events: Vec<String> = (0..2000).map(event).collect();
    let (lines, report) = read(format!("[{}]", events.join(",")).as_bytes());
    assert_eq!(names(&lines).len(), 2000);
    assert_eq!(report.findings.len() as u64 + report.further_findings, 1000);
}

#[test]
fn all_objects_and_arrays_of_a_file_are_read() {
    let object = |name: &str, more: &str| {
        format!("{{\"x\":1,\"traceEvents\":[{}]{more}}}", x(name, "1", "1"))
    };
    let text = [
        object("a", ",\"baseTimeNanoseconds\":5"),
        object("b", ",\"baseTimeNanoseconds\":5,\"y\":2"),
        format!("[{}]", x("c", "1", "1")),
        object("d", ""),
    ];
    for between in ["\n", "", " \n "] {
        let (lines, report) = read(text.join(between).as_bytes());
        let mut names = names(&lines);
        names.sort_unstable();
        assert_eq!(names, ["a", "b", "c", "d"]);
        assert!(report.is_sound(), "{:?}", report.findings);
        assert_eq!(report.unrepresented, []);
    }
}

#[test]
fn what_follows_an_object_is_read_or_named() {
    let object = |name: &str| format!("{{\"traceEvents\":[{}]}}", x(name, "1", "1"));
    let [a, b] = ["a", "b"].map(object);
    for (behind, expected, says) in [
        (format!(",{}", x("b", "1", "1")), &["a", "b"][..], "`,`"),
        (format!("garbage {b}"), &["a", "b"], "`g`"),
        ("}".to_owned(), &["a"], "`}`"),
        ("{\"other\":1}".to_owned(), &["a"], "without `traceEvents`"),
        ("\0\0".to_owned(), &["a"], "0x00"),
    ] {
        let (lines, report) = read(format!("{a}{behind}").as_bytes());
        let mut names = names(&lines);
        names.sort_unstable();
        assert_eq!(names, expected, "{behind}");
        let found = report.findings.iter();
        let found: Vec<_> = found.map(|one| &one.found[..]).collect();
        assert!(
            found.iter().any(|found| found.contains(says)),
            "{behind}: {found:?}"
        );
        let mut remarks = report.remarks.iter();
        assert!(!remarks.any(|one| one.reason.contains("cut")), "{behind}");
    }
    // The end of the first is missing.
    let (lines, report) = read(format!("{}\n{b}", &a[..a.len() - 2]).as_bytes());
    assert_eq!(names(&lines).len(), 2);
    assert!(!report.is_sound());
}

#[test]
fn objects_whose_times_count_from_elsewhere_are_damage() {
    let object = |base: u32| {
        format!(
            "{{\"baseTimeNanoseconds\":{base},\"traceEvents\":[{}]}}",
            x("a", "1", "1")
        )
    };
    let (_, report) = read(format!("{}{}", object(1), object(2)).as_bytes());
    let [finding] = &report.findings[..] else {
        panic!("{:?}", report.findings);
    };
    assert!(finding.found.contains("baseTimeNanoseconds 2"), "{finding}");
}

#[test]
fn objects_in_objects_take_no_stack() {
    let deep = format!("[{}", "{\"traceEvents\":[".repeat(100_000));
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(deep.as_bytes()).unwrap();
    let _ = Inputs::open(&[file.path()]);
    let whole = format!(
        "[{}{}",
        "{\"traceEvents\":[".repeat(10_000),
        "]}".repeat(10_000)
    );
    let (_, report) = read(format!("{whole},{}]", x("a", "1", "1")).as_bytes());
    assert!(!report.unrepresented.is_empty() || !report.is_sound());
}

#[test]
fn json_without_events_has_no_known_format() {
    for text in [
        "{}",
        "[]",
        "{\"a\":1}",
        "[{\"a\":1},{\"b\":2}]",
        "{\"traceEvents\":5}",
    ] {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        match Inputs::open(&[file.path()]) {
            Err(OpenError::Unknown { found, .. }) => {
                assert!(found.contains("without trace events"), "{found}")
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    let (_, report) = read(b"{\"traceEvents\": []}");
    assert!(report.is_sound());
}
