//! The duration of each kernel: a histogram per kernel, by powers of two, when the program ends.
//!
//! ```text
//! cargo build --release -p gputrail-examples --example kernel_times
//! gputrail record --tool target/release/examples/libkernel_times.so -- PROGRAM
//! ```

use gputrail_record::{KernelDispatch, KernelId, Kind};
use gputrail_tool::{self as tool, Buffer, Context, Finaliser, Tool, WorkTimes};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex};

gputrail_tool::tool!(c"kernel-times", initialise);

#[derive(Default)]
struct Runs {
    nanos: u64,
    without_times: u64,
    /// Number of runs that took from 2^n to 2^(n+1) nanoseconds, by n.
    buckets: BTreeMap<u32, u64>,
}

fn initialise(_: Tool) -> Result<Finaliser, Box<dyn Error>> {
    let kernels: Arc<Mutex<BTreeMap<KernelId, Runs>>> = Arc::default();
    let into = kernels.clone();
    let buffer = Buffer::new(Default::default(), move |batch| {
        let Ok(mut kernels) = into.lock() else { return };
        for record in batch.records() {
            let Some(kernel) = record.get::<KernelDispatch>() else {
                continue;
            };
            let runs = kernels.entry(kernel.kernel).or_default();
            match WorkTimes::of(record).and_then(|times| times.duration()) {
                Some(nanos) => {
                    runs.nanos += nanos.0;
                    *runs.buckets.entry(nanos.0.max(1).ilog2()).or_default() += 1;
                }
                None => runs.without_times += 1,
            }
        }
    })?;
    let context = Context::new()?;
    context.trace_to(&buffer, &[Kind::KERNEL_DISPATCH])?;
    context.start()?;
    Ok(Box::new(move || {
        // Delivers the remaining records.
        drop((context, buffer));
        let Ok(kernels) = kernels.lock() else { return };
        for (kernel, runs) in kernels.iter() {
            let name = tool::kernel_name(*kernel).unwrap_or_else(|| "(unknown)".into());
            let count: u64 = runs.buckets.values().sum();
            eprintln!(
                "{name}: {count} runs, {:.3} ms, {} without times",
                runs.nanos as f64 / 1e6,
                runs.without_times
            );
            for (power, count) in &runs.buckets {
                eprintln!("  from {:>10.3} us: {count}", (1u64 << power) as f64 / 1e3);
            }
        }
    }))
}
