//! `gputrail.hpp`: ranges of C++ that end with their scope, and tools.

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;
use gputrail_harness::repository;

use crate::c_api::compiled;
use crate::command::{TestDir, well};

#[test]
fn ranges_of_cpp_end_with_their_scope_and_move_between_threads() {
    needs!(ranges_of_cpp_end_with_their_scope_and_move_between_threads:
        Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor, Need::Program("g++"));
    let dir = TestDir::new();
    let source = repository("tests/programs/ranges.cpp");
    for standard in ["c++11", "c++14", "c++17", "c++20"] {
        let standard = format!("-std={standard}");
        let compiler = ["g++", &standard, "-fno-exceptions", "-fno-rtti"];
        let program = compiled(
            &dir,
            &compiler,
            &["-Wconversion", "-Wold-style-cast"],
            &source,
            "ranges",
        );
        // Without a recording, too.
        let alone = run(&mut dir.untraced(Driver::Basic, &program, &[])).well();
        assert_eq!(alone.text(), "passed\n", "{standard}");
        let ended = well(&mut dir.record(Driver::Basic, &program, &[]));
        assert_eq!(ended.text(), "passed\n", "{standard}");
    }
    let mut trace = dir.trace();
    trace.assert_sound();
    let rows: Vec<(String, i64, Option<String>)> = trace.rows(
        "select name, count(*), group_concat(extract_arg(arg_set_id, 'debug.payload')) from slice \
         where name in ('step', 'inner', 'loss', 'change', 'plain', 'upload', 'other', 'replacement') \
         and dur >= 0 group by name order by name",
    );
    let expected = [
        ("change", 3, Some("-7,-7,-7")),
        ("inner", 3, None),
        ("loss", 3, Some("0.5,0.5,0.5")),
        ("other", 1, None),
        ("plain", 3, None),
        ("replacement", 1, None),
        ("step", 3, Some("1,2,3")),
        ("upload", 1, Some("4096")),
    ];
    let expected = expected.map(|(name, count, payloads)| {
        let payloads = payloads.map(str::to_owned);
        (name.to_owned(), count, payloads)
    });
    assert_eq!(rows, expected);
    let nested: i64 = trace.value(
        "select count(*) from slice join slice parent on slice.parent_id = parent.id \
         where slice.name = 'inner' and parent.name = 'step'",
    );
    assert_eq!(nested, 3);
}

#[test]
fn contexts_buffers_subscribers_and_errors_of_cpp_work_on_the_simulated_gpu() {
    needs!(contexts_buffers_subscribers_and_errors_of_cpp_work_on_the_simulated_gpu:
        Need::OpenClToolchain, Need::Program("g++"));
    let dir = TestDir::new();
    let source = repository("tests/programs/cpp_tools.cpp");
    for standard in ["c++11", "c++14", "c++17", "c++20"] {
        let standard = format!("-std={standard}");
        let compiler = ["g++", &standard];
        let strict = ["-Wconversion", "-Wshadow", "-Wold-style-cast"];
        let program = compiled(&dir, &compiler, &strict, &source, "cpp_tools");
        let ended = run(&mut dir.untraced(Driver::Basic, &program, &[])).well();
        assert_eq!(ended.text(), "passed\n", "{standard}");
        let printed = "gputrail: a callback of this tool threw: from deliver\n";
        assert_eq!(ended.stderr, printed, "{standard}");
    }
}
