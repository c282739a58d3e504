//! Arithmetic intensity of kernels: operations for each byte that comes from or goes to memory, from counters.
//!
//! The model is that of S. Williams, A. Waterman and D. Patterson, "Roofline" (2009): a kernel with few operations per byte
//! is limited by the memory, one with many by the compute units.
//!
//! Operations are `TOTAL_16_OPS`, `TOTAL_32_OPS` and `TOTAL_64_OPS` together, or 64 times `SQ_INSTS_VALU` (a matrix instruction
//! counts as one), or `INSTRUCTIONS`; bytes are `FETCH_SIZE` and `WRITE_SIZE` together, or 64 times `CACHE_MISSES`. A kernel has
//! both in the same dispatches.

use super::CounterSummary;

/// The arithmetic intensity of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Roofline {
    /// The kernel.
    pub kernel: String,
    /// The operations of all its dispatches.
    pub operations: f64,
    /// The bytes that all its dispatches read from memory and wrote to it.
    pub bytes: f64,
    /// The share of time in which the units for computing were busy, 0 to 1, if a metric says so: the median over dispatches.
    pub busy: Option<f64>,
    /// The number of its dispatches that were counted.
    pub dispatches: u64,
    /// The counters and metrics from which this comes.
    pub counters: Vec<String>,
}

impl Roofline {
    /// Operations per byte; `None` if no byte was moved.
    pub fn intensity(&self) -> Option<f64> {
        (self.bytes > 0.0).then(|| self.operations / self.bytes)
    }
}

/// Counters that are added up, and what one of them stands for.
type AddedCounters = (&'static [&'static str], f64);

/// Operations, the most exact first. An instruction of a wave is one operation of each of its 64 lanes.
const OPERATIONS: [AddedCounters; 3] = [
    (&["TOTAL_16_OPS", "TOTAL_32_OPS", "TOTAL_64_OPS"], 1.0),
    (&["SQ_INSTS_VALU"], 64.0),
    (&["INSTRUCTIONS"], 1.0),
];

/// Bytes: of memory in kilobytes, and the lines that the last cache of a processor misses.
const BYTES: [AddedCounters; 3] = [
    (&["FETCH_SIZE", "WRITE_SIZE"], 1024.0),
    (&["FetchSize", "WriteSize"], 1024.0),
    (&["CACHE_MISSES"], 64.0),
];

/// Percentages of time in which units for computing are busy.
const BUSY: &str = "VALUBusy";

/// The intensities of the kernels whose counters tell them. Those of a kernel stand together in `counters`.
pub(super) fn rooflines(counters: &[CounterSummary]) -> Vec<Roofline> {
    let kernels = counters.chunk_by(|left, right| left.kernel == right.kernel);
    kernels.filter_map(roofline).collect()
}

fn roofline(of_kernel: &[CounterSummary]) -> Option<Roofline> {
    let find = |name: &str| of_kernel.iter().find(|counter| counter.counter == name);
    let mut counters = Vec::new();
    let mut add = |sums: &[AddedCounters]| {
        sums.iter().find_map(|(names, unit)| {
            let found: Option<Vec<_>> = names.iter().map(|name| find(name)).collect();
            let found = found?;
            counters.extend(found.iter().map(|counter| counter.counter.clone()));
            Some(
                found
                    .iter()
                    .map(|counter| counter.total)
                    .sum::<Option<f64>>()?
                    * unit,
            )
        })
    };
    let (operations, bytes) = (add(&OPERATIONS)?, add(&BYTES)?);
    let busy = find(BUSY).map(|busy| busy.median / 100.0);
    counters.extend(busy.map(|_| BUSY.to_owned()));
    // Sums over other dispatches would not belong together.
    let dispatches = |name: &String| find(name).map(|counter| counter.dispatches);
    let first = counters.first().and_then(dispatches)?;
    counters
        .iter()
        .all(|name| dispatches(name) == Some(first))
        .then_some(Roofline {
            kernel: of_kernel[0].kernel.clone(),
            operations,
            bytes,
            busy,
            dispatches: first,
            counters,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(kernel: &str, counter: &str, dispatches: u64, total: f64) -> CounterSummary {
        CounterSummary {
            kernel: kernel.to_owned(),
            counter: counter.to_owned(),
            dispatches,
            min: 0.0,
            median: 25.0,
            max: total,
            total: Some(total),
        }
    }

    #[test]
    fn operations_are_divided_by_the_bytes_of_the_same_dispatches() {
        let all = [
            counter("a", "FETCH_SIZE", 2, 3.0),
            counter("a", "SQ_INSTS_VALU", 2, 160.0),
            counter("a", "VALUBusy", 2, 60.0),
            counter("a", "WRITE_SIZE", 2, 2.0),
            // One of the sizes is missing.
            counter("b", "FETCH_SIZE", 2, 3.0),
            counter("b", "SQ_INSTS_VALU", 2, 160.0),
            // A dispatch has no valid size.
            counter("c", "CACHE_MISSES", 1, 3.0),
            counter("c", "INSTRUCTIONS", 2, 160.0),
            // Operations are known better than by instructions.
            counter("d", "FetchSize", 1, 1.0),
            counter("d", "SQ_INSTS_VALU", 1, 1000.0),
            counter("d", "TOTAL_16_OPS", 1, 4.0),
            counter("d", "TOTAL_32_OPS", 1, 5.0),
            counter("d", "TOTAL_64_OPS", 1, 7.0),
            counter("d", "WriteSize", 1, 0.0),
        ];
        let [a, d] = &rooflines(&all)[..] else {
            panic!("{:?}", rooflines(&all));
        };
        assert_eq!((&*a.kernel, a.operations, a.bytes), ("a", 10_240.0, 5120.0));
        assert_eq!((a.intensity(), a.busy), (Some(2.0), Some(0.25)));
        assert_eq!(
            a.counters,
            ["SQ_INSTS_VALU", "FETCH_SIZE", "WRITE_SIZE", "VALUBusy"]
        );
        assert_eq!((&*d.kernel, d.operations, d.busy), ("d", 16.0, None));
        let none = Roofline {
            bytes: 0.0,
            ..d.clone()
        };
        assert_eq!(none.intensity(), None);
    }
}
