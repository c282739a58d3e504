//! `tools/test`, which runs these tests.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use gputrail_harness::program::run;
use gputrail_harness::repository;

use crate::command::TestDir;

#[test]
fn a_failed_installation_ends_the_gate_and_another_package_manager_is_waited_for() {
    let dir = TestDir::new();
    for (program, script) in [
        ("dpkg-query", "exit 1"),
        ("sudo", "exec \"$@\""),
        (
            "apt-get",
            "echo \"$@\" >> \"$GPUTRAIL_TEST_TOOLS/asked\"; echo locked; exit 100",
        ),
    ] {
        let path = dir.join(program);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a program");
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("executable");
    }
    let path = std::env::var("PATH").expect("a search path");
    let mut gate = Command::new(repository("tools/test"));
    gate.args(["install", "format"])
        .env("PATH", format!("{}:{path}", dir.path().display()))
        .env("GPUTRAIL_TEST_TOOLS", dir.path());
    let ended = run(&mut gate);
    let text = ended.text();
    assert_eq!(ended.code(), 1, "{text}");
    assert!(text.contains("== install FAILED"), "{text}");
    assert!(!text.contains("== format"), "{text}");
    let asked = std::fs::read_to_string(dir.join("asked")).expect("apt-get was asked");
    assert!(asked.contains("DPkg::Lock::Timeout="), "{asked}");
}
