//! Counters of the work that a process has running on an agent at one time: kernels in flight, the compute units that
//! they can fill, and the bandwidth of copies.
//!
//! Work is passed on as it completes, but counters need the order of time. So begins and ends are held back and sorted,
//! many at a time; later arrivals are counted from the time that the counters have reached. A block of counters that
//! changes at most [`MAX_EXACT`] times in a window has exact values. If it changes more often, it has its mean over the
//! rest of the window: a kernel of one microsecond is not worth two values.

use std::io;

use super::{
    AgentIndex, Consumer, CounterBlock, CounterDescription, CounterIndex, CounterUnit,
    CounterValue, ProcessIndex, Stream,
};
use crate::record::Nanos;
use crate::trace::directory::Directory;

/// Maximum number of begins and ends that are held back.
const MAX_HELD: usize = 1 << 16;
/// Width of a window, ns.
const WINDOW: u64 = 100_000;
/// Maximum number of changes in a window that are passed on one by one.
const MAX_EXACT: usize = 2;

/// Work that the counters count.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Running {
    /// A kernel and its number of workgroups, if known.
    Kernel(Option<u64>),
    /// A copy and its number of bytes.
    Copy(u64),
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Edge {
    time: u64,
    gauge: u32,
    /// The changes of the gauge's two counters.
    changes: [i64; 2],
}

/// The counters of a process.
#[derive(Debug)]
pub(crate) struct Gauges {
    process: ProcessIndex,
    edges: Vec<Edge>,
    /// The time up to which values have been passed on.
    now: u64,
    gauges: Vec<Gauge>,
    /// The index of each gauge, by agent and by whether it counts copies.
    places: Directory<(AgentIndex, bool)>,
}

impl Gauges {
    /// The counters of `process`.
    pub fn new(process: ProcessIndex) -> Gauges {
        Gauges {
            process,
            edges: Vec::new(),
            now: 0,
            gauges: Vec::new(),
            places: Directory::default(),
        }
    }

    /// Adds work that ran in `interval` on `agent`, which has `compute_units` compute units (0: unknown).
    pub fn add(
        &mut self,
        stream: &mut Stream<'_>,
        (agent, compute_units): (AgentIndex, u32),
        running: Running,
        (start, end): (Nanos, Nanos),
    ) -> io::Result<()> {
        let duration = end.0.saturating_sub(start.0);
        if duration == 0 {
            return Ok(());
        }
        let is_copy = matches!(running, Running::Copy(_));
        let key = (agent, is_copy);
        let slot = agent.0.wrapping_mul(2) | u32::from(is_copy);
        let gauge = match self.places.get(slot, key) {
            Some(place) => place,
            None => {
                let block = describe(self.process, agent, is_copy, compute_units);
                let gauge = Gauge::new(stream.new_counters(), block, compute_units);
                self.gauges.push(gauge);
                self.places.insert(key, self.gauges.len() - 1);
                self.gauges.len() - 1
            }
        };
        let changes = match running {
            Running::Kernel(groups) => {
                let units = groups.unwrap_or(0).min(u64::from(compute_units));
                [1, units as i64]
            }
            Running::Copy(bytes) => {
                let rate = u128::from(bytes) * 1_000_000_000 / u128::from(duration);
                [rate.min(i64::MAX as u128 >> 20) as i64, 0]
            }
        };
        let ends = changes.map(|change| -change);
        let edge = |time: Nanos, changes| Edge {
            time: time.0,
            gauge: gauge as u32,
            changes,
        };
        self.edges.push(edge(start, changes));
        self.edges.push(edge(end, ends));
        if self.edges.len() >= 2 * MAX_HELD {
            self.pass_on(stream.consumer, MAX_HELD)?;
        }
        Ok(())
    }

    /// Passes on the edges that are held back.
    pub fn flush(&mut self, consumer: &mut dyn Consumer) -> io::Result<()> {
        self.pass_on(consumer, self.edges.len())
    }

    /// Passes on the rest.
    pub fn finish(&mut self, consumer: &mut dyn Consumer) -> io::Result<()> {
        self.flush(consumer)?;
        let mut gauges = self.gauges.iter_mut();
        gauges.try_for_each(|gauge| gauge.close(consumer))
    }

    /// Passes on the first `count` begins and ends.
    fn pass_on(&mut self, consumer: &mut dyn Consumer, count: usize) -> io::Result<()> {
        // Nearly sorted input sorts fast, and edges of one time stay in order. The sort needs a buffer of the same
        // size.
        if !self.edges.is_sorted_by_key(|edge| edge.time) {
            self.edges.sort_by_key(|edge| edge.time);
        }
        for edge in self.edges.drain(..count) {
            self.now = self.now.max(edge.time);
            self.gauges[edge.gauge as usize].change(consumer, self.now, edge.changes)?;
        }
        Ok(())
    }
}

fn describe(
    process: ProcessIndex,
    agent: AgentIndex,
    is_copy: bool,
    compute_units: u32,
) -> CounterBlock {
    let counter = |name: &str, description: &str, unit| CounterDescription {
        name: name.to_owned(),
        description: description.to_owned(),
        unit,
    };
    let in_flight = counter(
        "kernels in flight",
        "Kernels that run at the same time",
        CounterUnit::Count,
    );
    let filled = counter(
        "compute units filled",
        "Occupancy by launch: the share of compute units for which the running kernels have workgroups",
        CounterUnit::Percent,
    );
    let bandwidth = counter(
        "copy bandwidth",
        "Bytes per second of copies and maps while they run",
        CounterUnit::BytesPerSecond,
    );
    CounterBlock {
        name: if is_copy { "copies" } else { "kernels" }.to_owned(),
        process,
        agent,
        memory: is_copy,
        counters: match (is_copy, compute_units) {
            (true, _) => vec![bandwidth],
            (false, 0) => vec![in_flight],
            (false, _) => vec![in_flight, filled],
        },
    }
}

/// A block of counters.
#[derive(Debug)]
struct Gauge {
    index: CounterIndex,
    /// The block, until it has been declared.
    block: Option<CounterBlock>,
    units: Vec<CounterUnit>,
    compute_units: i64,
    /// The sums over the work that runs now.
    sums: [i64; 2],
    /// The changes in the window: their times and the values from then on.
    changes: Vec<(u64, [i64; 2])>,
    /// The integral over the window.
    integral: [i128; 2],
    first: u64,
    last: u64,
    end: u64,
    /// Whether the window has more changes than `changes` holds.
    many: bool,
    /// The values since the latest change that was passed on.
    latest: [f64; 2],
}

impl Gauge {
    fn new(index: CounterIndex, block: CounterBlock, compute_units: u32) -> Gauge {
        Gauge {
            index,
            units: block.counters.iter().map(|counter| counter.unit).collect(),
            block: Some(block),
            compute_units: compute_units.into(),
            sums: [0; 2],
            changes: Vec::with_capacity(MAX_EXACT),
            integral: [0; 2],
            first: 0,
            last: 0,
            end: 0,
            many: false,
            latest: [0.0; 2],
        }
    }

    fn change(
        &mut self,
        consumer: &mut dyn Consumer,
        time: u64,
        changes: [i64; 2],
    ) -> io::Result<()> {
        if time >= self.end {
            self.close(consumer)?;
            (self.first, self.last) = (time, time);
            self.end = (time / WINDOW + 1).saturating_mul(WINDOW);
        }
        self.account(time);
        for (sum, change) in self.sums.iter_mut().zip(changes) {
            *sum = sum.saturating_add(change);
        }
        let now = self.now();
        let full = self.changes.len() == MAX_EXACT;
        match self.changes.last_mut() {
            Some((of, values)) if *of == time => *values = now,
            _ if full => self.many = true,
            _ => self.changes.push((time, now)),
        }
        Ok(())
    }

    /// The current values of the counters. No device fills more compute units than it has.
    fn now(&self) -> [i64; 2] {
        [self.sums[0], self.sums[1].min(self.compute_units)]
    }

    fn account(&mut self, time: u64) {
        let passed = i128::from(time - self.last);
        let now = self.now();
        for (integral, value) in self.integral.iter_mut().zip(now) {
            *integral += passed * i128::from(value);
        }
        self.last = time;
    }

    /// Passes on the window.
    fn close(&mut self, consumer: &mut dyn Consumer) -> io::Result<()> {
        let mut changes = std::mem::replace(&mut self.changes, Vec::with_capacity(MAX_EXACT));
        if changes.is_empty() {
            return Ok(());
        }
        if let Some(block) = self.block.take() {
            consumer.counters(self.index, &block)?;
        }
        if std::mem::take(&mut self.many) {
            self.account(self.end);
            let span = (self.end - self.first) as f64;
            let mean = self.integral.map(|integral| integral as f64 / span);
            self.write(consumer, self.first, mean)?;
            let after = self.now().map(|value| value as f64);
            if after != mean {
                self.write(consumer, self.end, after)?;
            }
        } else {
            for (time, values) in &changes {
                self.write(consumer, *time, values.map(|value| value as f64))?;
            }
        }
        changes.clear();
        (self.changes, self.integral) = (changes, [0; 2]);
        Ok(())
    }

    /// Sets the values from `time` on to `values`. Counters of agents look back, so the values before `time` are passed
    /// on.
    fn write(
        &mut self,
        consumer: &mut dyn Consumer,
        time: u64,
        values: [f64; 2],
    ) -> io::Result<()> {
        let values = std::mem::replace(&mut self.latest, values);
        let mut shown = [CounterValue::Int(0); 2];
        for ((shown, unit), value) in shown.iter_mut().zip(&self.units).zip(values) {
            *shown = match unit {
                CounterUnit::Count if value.fract() != 0.0 => CounterValue::Double(value),
                CounterUnit::Unspecified
                | CounterUnit::Count
                | CounterUnit::Bytes
                | CounterUnit::BytesPerSecond => CounterValue::Int(value as i64),
                CounterUnit::Percent => {
                    CounterValue::Int((value * 100.0 / self.compute_units as f64).round() as i64)
                }
            };
        }
        consumer.counter_values(self.index, Nanos(time), &shown[..self.units.len()])
    }
}
