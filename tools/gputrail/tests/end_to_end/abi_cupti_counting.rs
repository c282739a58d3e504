//! CUPTI by its own names: events, metrics and samples of the program counter.

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;
use gputrail_harness::program::run;

use crate::abi::CUPTI;
use crate::c_api::{C, CPP};
use crate::command::TestDir;

#[test]
fn every_function_for_events_and_metrics_of_cupti_answers_as_its_text_says() {
    needs!(every_function_for_events_and_metrics_of_cupti_answers_as_its_text_says:
        Need::Pocl, Need::OpenClToolchain);
    let dir = TestDir::new();
    for compiler in [C, CPP] {
        let source = "tests/programs/abi/cupti_counting.c";
        let program = CUPTI.program(&dir, compiler, source, true);
        for driver in [Driver::Basic, Driver::Threaded] {
            let ended = run(&mut dir.untraced(driver, &program, &[])).well();
            assert_eq!(ended.text(), "passed\n");
            assert_eq!(ended.stderr, "");
        }
    }
}
