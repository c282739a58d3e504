//! Attributes of the process, tested in a process of its own.

use gputrail_collect::context::{BufferOptions, Context, ProcessAttributes, ToolError};
use gputrail_collect::switchboard::Switchboard;
use gputrail_interface::attributes::ThreadIds;
use gputrail_record::Nanos;

#[test]
fn attributes_hold_for_what_comes_and_are_locked_by_the_first_start() {
    let before = ProcessAttributes::get();
    let attributes = ProcessAttributes {
        pool_bytes: 1 << 20,
        block_bytes: 8192,
        threads: 16,
        thread_ids: ThreadIds::Pthread,
        latency_times: false,
        environment_period: Some(Nanos(5_000_000)),
    };
    assert_ne!(before, attributes);
    attributes.set().unwrap();
    assert_eq!(ProcessAttributes::get(), attributes);
    let options = BufferOptions::default();
    assert_eq!((options.pool_bytes, options.block_bytes), (1 << 20, 8192));
    assert_eq!(options.threads, 16);

    let odd = ProcessAttributes {
        block_bytes: 5000,
        ..attributes.clone()
    };
    assert!(matches!(odd.set(), Err(ToolError::Layout(_))));

    let context = Context::on(&Switchboard::new()).unwrap();
    context.start().unwrap();
    assert!(matches!(before.set(), Err(ToolError::AttributesLocked)));
    assert_eq!(ProcessAttributes::get(), attributes);
}
