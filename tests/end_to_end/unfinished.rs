//! Work that has not completed, in joined records: it comes at a forced flush, and when its buffer is destroyed.

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;

use crate::command::TestDir;
use crate::tools::tool;

#[test]
fn work_that_has_not_completed_comes_at_a_forced_flush_and_when_its_buffer_is_destroyed() {
    needs!(work_that_has_not_completed_comes_at_a_forced_flush_and_when_its_buffer_is_destroyed:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    let source = "tests/programs/unfinished_tool.c";
    let tool = tool(&dir, &["-D_GNU_SOURCE"], source, "libunfinished.so");
    let program = dir.program("unfinished");
    let (at_end, at_flush) = (1, 3);
    let by_library = ("when the library destroys the buffer", at_end);
    let expected = [
        ("nothing", vec![by_library]),
        (
            "destroy",
            vec![("when the tool destroys its buffer", at_end)],
        ),
        (
            "forced",
            vec![("at the forced flush", at_flush), by_library],
        ),
        ("finish", vec![by_library]),
    ];
    for (mode, expected) in expected {
        let options = ["-q", "--tool", &tool];
        let mut command = dir.record_with(&options, Driver::Threaded, &program, &[]);
        let ended = run(command.env("UNFINISHED", mode)).well();
        let lines: Vec<&str> = ended.stderr.lines().collect();
        let complete = lines.iter().filter(|line| **line == "complete").count();
        assert_eq!(complete, 1, "{mode}: {}", ended.stderr);
        // CL_QUEUED: the kernel waits for an event.
        let expected: Vec<String> = expected
            .iter()
            .map(|(moment, reason)| {
                format!("unfinished {moment}: reason {reason}, flagged 1, completed 0, status 3")
            })
            .collect();
        let unfinished = lines.iter().filter(|line| line.starts_with("unfinished "));
        assert_eq!(
            unfinished.collect::<Vec<_>>(),
            expected.iter().collect::<Vec<_>>(),
            "{mode}"
        );
        assert!(!lines.contains(&"refused"), "{mode}");
    }
}
