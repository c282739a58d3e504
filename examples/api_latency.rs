//! The duration of the program's calls, by function: percentiles, when the program ends.
//!
//! ```text
//! cargo build --release -p gputrail-examples --example api_latency
//! gputrail record --tool target/release/examples/libapi_latency.so -- PROGRAM
//! ```

use gputrail_record::{Api, Kind, Operation, flags};
use gputrail_tool::{self as tool, Buffer, Context, Finaliser, Tool};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex};

gputrail_tool::tool!(c"api-latency", initialise);

#[derive(Default)]
struct Calls {
    failed: u64,
    /// Number of calls by duration in nanoseconds, rounded down to three leading bits: a percentile is off by at most a
    /// quarter.
    nanos: BTreeMap<u64, u64>,
}

fn initialise(_: Tool) -> Result<Finaliser, Box<dyn Error>> {
    let functions: Arc<Mutex<BTreeMap<Operation, Calls>>> = Arc::default();
    let into = functions.clone();
    let buffer = Buffer::new(Default::default(), move |batch| {
        let Ok(mut functions) = into.lock() else {
            return;
        };
        for call in batch.records().filter_map(|record| record.get::<Api>()) {
            let calls = functions.entry(call.operation).or_default();
            *calls
                .nanos
                .entry(rounded(call.end - call.start))
                .or_default() += 1;
            calls.failed += u64::from(call.header.has(flags::FAILED));
        }
    })?;
    let context = Context::new()?;
    context.trace_to(&buffer, &[Kind::API])?;
    context.start()?;
    Ok(Box::new(move || {
        // Delivers the remaining records.
        drop((context, buffer));
        let Ok(functions) = functions.lock() else {
            return;
        };
        eprintln!(
            "{:<40} {:>8} {:>8} {:>10} {:>10} {:>10}",
            "function", "calls", "failed", "50% us", "90% us", "99% us"
        );
        for (operation, calls) in functions.iter() {
            let name = tool::operation_name(*operation).unwrap_or("?");
            let count: u64 = calls.nanos.values().sum();
            let [half, most, nearly_all] =
                [0.5, 0.9, 0.99].map(|share| percentile(calls, count, share) as f64 / 1e3);
            eprintln!(
                "{name:<40} {count:>8} {:>8} {half:>10.2} {most:>10.2} {nearly_all:>10.2}",
                calls.failed
            );
        }
    }))
}

fn rounded(nanos: u64) -> u64 {
    let shift = nanos.max(1).ilog2().saturating_sub(2);
    nanos >> shift << shift
}

fn percentile(calls: &Calls, count: u64, share: f64) -> u64 {
    let mut below = 0;
    let reached = calls.nanos.iter().find(|(_, count_here)| {
        below += **count_here;
        below as f64 >= share * count as f64
    });
    reached.map_or(0, |(nanos, _)| *nanos)
}
