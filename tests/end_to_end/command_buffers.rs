//! Command buffers: the runtime measures the whole, if at all, and the trace shows shares of it.

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;

use crate::command::{TestDir, well};
use crate::tools::tool;

/// A command: its name, start and duration, its number in its buffer, and the duration of the buffer.
type Command = (String, i64, i64, String, i64);

#[test]
fn the_commands_of_a_command_buffer_share_its_whole_time_and_say_so() {
    needs!(the_commands_of_a_command_buffer_share_its_whole_time_and_say_so:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = dir.program("command_buffers");
    let ended = well(&mut dir.record(Driver::Threaded, &program, &[]));
    let remark = "9 commands of command buffers: their times are estimates";
    assert!(ended.stderr.contains(remark), "{}", ended.stderr);
    let mut trace = dir.trace();
    trace.assert_sound();
    let commands: Vec<Command> = trace.rows(
        "select name, ts, dur, extract_arg(arg_set_id, 'command_of_buffer'), \
         cast(extract_arg(arg_set_id, 'command_buffer_duration_ns') as integer) from gpu_slice \
         where extract_arg(arg_set_id, 'times') like 'estimated%' order by submission_id, ts",
    );
    let names: Vec<(&str, &str)> = commands
        .iter()
        .map(|(name, .., number, _)| (name.as_str(), number.as_str()))
        .collect();
    let of_one = [("quick", "1 of 3"), ("slow", "2 of 3"), ("fill", "3 of 3")];
    assert_eq!(names, [of_one; 3].concat());
    for buffer in commands.chunks(3) {
        let whole = buffer[0].4;
        assert!(whole > 5_000_000, "longer than the slow kernel: {buffer:?}");
        let durations: i64 = buffer.iter().map(|(_, _, duration, ..)| duration).sum();
        assert_eq!(durations, whole, "{buffer:?}");
        for pair in buffer.windows(2) {
            assert_eq!(pair[0].1 + pair[0].2, pair[1].1, "{buffer:?}");
        }
    }
    // The third was enqueued when the others had ended.
    let end = |command: &Command| command.1 + command.2;
    assert!(
        end(&commands[2]).max(end(&commands[5])) <= commands[6].1,
        "{commands:?}"
    );
    // The host has waited for work that is in the trace, among others.
    well(&mut dir.gputrail(["check", "run.pftrace"]));
}

#[test]
fn command_buffers_are_graphs_whose_launches_are_above_their_commands() {
    needs!(command_buffers_are_graphs_whose_launches_are_above_their_commands:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor);
    let dir = TestDir::new();
    let program = dir.program("command_buffers");
    let source = "tests/programs/graph_changes.c";
    let tool = tool(&dir, &[], source, "libgraphs.so");
    let options = ["--tool", &tool];
    let ended = well(&mut dir.record_with(&options, Driver::Threaded, &program, &[]));
    let change = |what: u8, graph: u8, of: u8, node: u8, of_type: u8| {
        format!(
            "{what}, graph {graph} of {of}, node {node} and 0 of type {of_type}, call 1, handle 1"
        )
    };
    let (kernel, fill, empty) = (1, 3, 6);
    let made = |graph| {
        [
            change(1, graph, 0, 0, 0),
            change(4, graph, 0, 1, kernel),
            change(4, graph, 0, 2, kernel),
            change(4, graph, 0, 3, fill),
            change(4, graph, 0, 4, empty),
            change(9, graph, graph, 0, 0),
        ]
    };
    let expected = [
        &made(1)[..],
        &made(2),
        &[1, 2, 1].map(|graph| change(11, graph, 0, 0, 0)),
        &[1, 2].map(|graph| change(2, graph, 0, 0, 0)),
    ];
    for how in ["told: ", "recorded: "] {
        let lines = ended.stderr.lines();
        let said: Vec<&str> = lines.filter_map(|line| line.strip_prefix(how)).collect();
        assert_eq!(said, expected.concat(), "{how}");
    }
    let mut trace = dir.trace();
    trace.assert_sound();
    let launches: Vec<(i64, i64, i64)> = trace.rows(
        "select cast_int!(extract_arg(l.arg_set_id, 'graph')), cast_int!(extract_arg(l.arg_set_id, 'nodes')), \
         (select count(*) from gpu_slice c where c.submission_id = l.submission_id and c.name != l.name \
          and c.ts >= l.ts and c.ts + c.dur <= l.ts + l.dur) \
         from gpu_slice l where l.name = 'graph launch' order by l.submission_id",
    );
    assert_eq!(launches, [(1, 3, 3), (2, 3, 3), (1, 3, 3)]);
}
