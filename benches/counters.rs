//! The speed of the evaluation of metrics and of the planner of passes.
//!
//! `cargo bench -p gputrail --bench counters`. Every figure is the best of several rounds in one run. The evaluation stands
//! beside one reading of the values of the basic counters, which it cannot do without.
//!
//! With one instance of each counter, on two busy cores:
//!
//! | architecture | 100 metrics of 100 000 dispatches (target 100 ms) | reading their counters once | passes of all metrics and counters (target 10 ms for 500 metrics) |
//! |---|---|---|---|
//! | gfx90a | 125 ms | 6.5 ms (76 counters) | 0.05 ms (473, 15 passes) |
//! | gfx942 | 128 ms | 7.4 ms (88 counters) | 0.04 ms (419, 16 passes) |
//! | gfx950 | 127 ms | 7.4 ms (88 counters) | |

use gputrail_counters::{
    self as counters, Architecture, Catalogue, CounterIndex, Definition, Measured, Property,
    Sources,
};
use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;
const METRICS: usize = 100;
const DISPATCHES: usize = 100_000;
const PLANNED: usize = 500;

fn main() {
    let mut sources = Sources::default();
    gputrail_definitions::read_built_in(&mut sources);
    let catalogue = Catalogue::from(sources);
    for name in ["gfx90a", "gfx942", "gfx950"] {
        let architecture = &catalogue.architectures[name];
        evaluation(name, architecture);
        planner(name, architecture);
    }
}

/// [`METRICS`] metrics of [`DISPATCHES`] dispatches. Every counter has one instance.
fn evaluation(name: &str, architecture: &Architecture) {
    let metrics = architecture.metrics_in_order();
    let metrics = &metrics[..METRICS.min(metrics.len())];
    let basic = metrics
        .iter()
        .flat_map(|metric| architecture.basic_counters(*metric));
    let value = |dispatch: usize| (dispatch % 1000) as f64 + 1.0;
    let values: Vec<f64> = (0..DISPATCHES).map(value).collect();
    let measured = Measured {
        dispatches: DISPATCHES,
        counters: basic
            .map(|counter| (counter, vec![values.clone()]))
            .collect(),
        properties: HashMap::from([
            (Property::ComputeUnits, 104.0),
            (Property::SimdsPerComputeUnit, 4.0),
            (Property::ShaderEngines, 8.0),
            (Property::Dies, 2.0),
            (Property::WaveSize, 64.0),
        ]),
        kernel_times: values,
    };
    let read = best(|| {
        let instances = measured.counters.values().flatten();
        black_box(
            instances
                .map(|values| values.iter().sum::<f64>())
                .sum::<f64>(),
        );
    });
    let evaluated = best(|| {
        black_box(counters::evaluate(architecture, metrics, &measured));
    });
    println!(
        "{name}: {} metrics of {DISPATCHES} dispatches: {:.1} ms; reading their {} counters once: {:.1} ms",
        metrics.len(),
        milliseconds(evaluated),
        measured.counters.len(),
        milliseconds(read),
    );
}

/// The passes of as many as [`PLANNED`] metrics, and counters if there are fewer.
fn planner(name: &str, architecture: &Architecture) {
    let all = (0..architecture.counters().len() as u32).map(CounterIndex);
    let is_basic = |index: &CounterIndex| {
        matches!(
            architecture.counter(*index).definition,
            Definition::Basic { .. }
        )
    };
    let metrics = architecture.metrics_in_order().iter().copied();
    // Counters that are added up take two places: blocks of unknown capacity have one.
    let can_be_counted = |index: &CounterIndex| counters::plan(architecture, &[*index]).is_ok();
    let wanted = metrics.chain(all.filter(is_basic)).filter(can_be_counted);
    let wanted: Vec<CounterIndex> = wanted.take(PLANNED).collect();
    let mut passes = 0;
    let planned = best(|| {
        let plan = counters::plan(architecture, black_box(&wanted)).expect("a plan");
        passes = plan.passes.len();
    });
    println!(
        "{name}: {} metrics and counters in {passes} passes: {:.2} ms",
        wanted.len(),
        milliseconds(planned),
    );
}

fn best(mut work: impl FnMut()) -> Duration {
    let round = |_| {
        let begin = Instant::now();
        work();
        begin.elapsed()
    };
    (0..ROUNDS).map(round).min().unwrap_or_default()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
