//! The bandwidth of copies while the program runs: a line whenever data was copied, at most ten a second, and the
//! totals at the end.
//!
//! ```text
//! cargo build --release -p gputrail-examples --example copy_bandwidth
//! gputrail record --tool target/release/examples/libcopy_bandwidth.so -- PROGRAM
//! ```

use gputrail_record::{Kind, MemoryCopy, TransferKind};
use gputrail_tool::{Buffer, BufferOptions, Context, Finaliser, Tool, WorkTimes};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

gputrail_tool::tool!(c"copy-bandwidth", initialise);

#[derive(Copy, Clone, Default)]
struct Sums {
    copies: u64,
    bytes: u64,
    nanos: u64,
}

type Directions = BTreeMap<TransferKind, Sums>;

fn initialise(_: Tool) -> Result<Finaliser, Box<dyn Error>> {
    let total: Arc<Mutex<Directions>> = Arc::default();
    let into = total.clone();
    let (mut since, mut said) = (Directions::new(), Instant::now());
    // A watermark of 0 delivers records as soon as they are there.
    let options = BufferOptions {
        watermark: Some(0),
        ..BufferOptions::default()
    };
    let buffer = Buffer::new(options, move |batch| {
        let Ok(mut total) = into.lock() else { return };
        for record in batch.records() {
            let nanos = WorkTimes::of(record).and_then(|times| times.duration());
            if let (Some(copy), Some(nanos)) = (record.get::<MemoryCopy>(), nanos) {
                for sums in [&mut since, &mut *total] {
                    let sums = sums.entry(copy.transfer).or_default();
                    sums.copies += 1;
                    sums.bytes += copy.bytes;
                    sums.nanos += nanos.0;
                }
            }
        }
        if said.elapsed() >= Duration::from_millis(100) {
            said = Instant::now();
            say("now", &since);
            since.clear();
        }
    })?;
    let context = Context::new()?;
    context.trace_to(&buffer, &[Kind::MEMORY_COPY])?;
    context.start()?;
    Ok(Box::new(move || {
        // Delivers the remaining records.
        drop((context, buffer));
        if let Ok(total) = total.lock() {
            say("in total", &total);
        }
    }))
}

fn say(when: &str, directions: &Directions) {
    for (direction, sums) in directions {
        let name = direction.name().unwrap_or("other");
        let (copies, megabytes) = (sums.copies, sums.bytes as f64 / 1e6);
        // Bytes per nanosecond.
        let bandwidth = sums.bytes as f64 / sums.nanos.max(1) as f64;
        eprintln!("{when}: {name}: {copies} copies, {megabytes:.3} MB, {bandwidth:.2} GB/s");
    }
}
