//! `gputrail help`, `gputrail completions` and `gputrail man`.

use std::fs;

use gputrail_harness::program::run;

use crate::command::{TestDir, well};

#[test]
fn verbs_and_pages_are_topics_of_the_help() {
    let dir = TestDir::new();
    let help = |topic: &str| well(&mut dir.gputrail(["help", topic])).text();
    assert!(help("record").contains("Usage: gputrail record"));
    assert!(help("markers").starts_with("# Markers"));
    // The page that `gputrail advise` names.
    assert!(help("answers").contains("device-waits"));
    let both = help("convert");
    assert!(
        both.contains("Usage: gputrail convert") && both.contains("# gputrail convert:"),
        "{both}"
    );
    let topics = well(&mut dir.gputrail(["help"])).text();
    assert!(topics.contains("  markers     Markers\n"), "{topics}");
    let refused = run(&mut dir.gputrail(["help", "marker"]));
    assert_eq!(refused.code(), 125);
    let said = "no verb and no page \"marker\"";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);
}

#[test]
fn the_help_is_at_most_100_columns_wide() {
    let dir = TestDir::new();
    for verb in [
        "record", "convert", "demo", "merge", "view", "info", "summary", "hotspots", "start",
        "counters",
    ] {
        let text = well(&mut dir.gputrail([verb, "--help"])).text();
        // Examples are commands: they stand in one line.
        let (_, rest) = text.split_once("Usage:").expect("the usage");
        for line in rest.lines() {
            assert!(line.chars().count() <= 100, "{verb}: {line}");
        }
    }
}

#[test]
fn shells_and_the_manual_get_what_they_read() {
    let dir = TestDir::new();
    for (shell, word) in [
        ("bash", "complete -F _gputrail"),
        ("zsh", "#compdef gputrail"),
        ("fish", "complete -c gputrail"),
    ] {
        let script = well(&mut dir.gputrail(["completions", shell])).text();
        assert!(script.contains(word), "{shell}");
    }
    well(&mut dir.gputrail(["man", "man1"]));
    let page = fs::read_to_string(dir.join("man1/gputrail-record.1")).expect("a page");
    assert!(page.contains(".TH GPUTRAIL-RECORD 1"), "{page}");
    assert!(dir.join("man1/gputrail.1").exists());
    assert!(
        !dir.join("man1/gputrail-probe.1").exists(),
        "internal verbs have no page"
    );
}
