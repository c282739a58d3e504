//! What a process has running on a device at a time: kernels in flight and the compute units they can fill, and the
//! bandwidth of its copies.
//!
//! Work is told as it completes; counters want the order of time. So begins and ends are held back and sorted, many at
//! a time, and what comes later than that is counted from where the counters have got to. Where a block changes no more
//! than [`EXACT`] times in a window it is told exactly, else its mean over the rest of the window: a kernel that
//! takes a microsecond is not worth two packets.

use std::io::{self, Write};

use super::counters::{
    BlockDescription, CounterBlock, CounterDescription, CounterUnit, CounterValue,
};
use super::directory::Directory;
use super::observer::GpuIndex;
use super::writer::TraceWriter;
use crate::record::Nanos;

/// Begins and ends that are held back.
const HELD: usize = 1 << 16;
/// Width of a window, ns.
const WINDOW: u64 = 100_000;
/// Most changes in a window that are told one by one.
const EXACT: usize = 2;

/// What runs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Runs {
    /// A kernel, and the workgroups it has, if that is known.
    Kernel(Option<u64>),
    /// A copy of so many bytes.
    Copy(u64),
}

/// A device, as far as counters need it.
#[derive(Copy, Clone, Debug)]
pub(super) struct Gpu<'a> {
    pub index: GpuIndex,
    /// What the names of its tracks begin with.
    pub title: &'a str,
    /// 0 if that is not known.
    pub compute_units: u32,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Edge {
    time: u64,
    gauge: u32,
    /// Changes of the gauge's counters.
    changes: [i64; 2],
}

/// The counters of a process.
#[derive(Debug, Default)]
pub(super) struct Gauges {
    edges: Vec<Edge>,
    /// Up to where it has been told.
    now: u64,
    gauges: Vec<Gauge>,
    /// By device, and whether it is of copies.
    places: Directory<(u32, bool)>,
}

impl Gauges {
    /// Takes in what ran on `gpu` in `interval`. `process` stands in the counters' names.
    pub fn add<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        process: &str,
        gpu: Gpu<'_>,
        runs: Runs,
        (start, end): (Nanos, Nanos),
    ) -> io::Result<()> {
        let duration = end.0.saturating_sub(start.0);
        if duration == 0 {
            return Ok(());
        }
        let is_copy = matches!(runs, Runs::Copy(_));
        let key = (gpu.index.0, is_copy);
        let slot = gpu.index.0.wrapping_mul(2) | u32::from(is_copy);
        let gauge = match self.places.get(slot, key) {
            Some(place) => place,
            None => {
                let gauge = Gauge::new(writer.counter_block(), describe(process, gpu, is_copy));
                self.gauges.push(gauge);
                self.places.insert(key, self.gauges.len() - 1);
                self.gauges.len() - 1
            }
        };
        let changes = match runs {
            Runs::Kernel(groups) => {
                let units = groups.unwrap_or(0).min(u64::from(gpu.compute_units));
                [1, units as i64]
            }
            Runs::Copy(bytes) => {
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
        if self.edges.len() >= 2 * HELD {
            self.tell(writer, HELD)?;
        }
        Ok(())
    }

    /// Tells what is held back.
    pub fn settle<W: Write>(&mut self, writer: &mut TraceWriter<W>) -> io::Result<()> {
        self.tell(writer, self.edges.len())
    }

    /// Tells the rest.
    pub fn finish<W: Write>(&mut self, writer: &mut TraceWriter<W>) -> io::Result<()> {
        self.settle(writer)?;
        let mut gauges = self.gauges.iter_mut();
        gauges.try_for_each(|gauge| gauge.close(writer))
    }

    /// Tells the first `count` begins and ends.
    fn tell<W: Write>(&mut self, writer: &mut TraceWriter<W>, count: usize) -> io::Result<()> {
        // What is nearly sorted is sorted fast, and what is of one time stays in order. Sorting takes as much room again.
        if !self.edges.is_sorted_by_key(|edge| edge.time) {
            self.edges.sort_by_key(|edge| edge.time);
        }
        for edge in self.edges.drain(..count) {
            self.now = self.now.max(edge.time);
            self.gauges[edge.gauge as usize].change(writer, self.now, edge.changes)?;
        }
        Ok(())
    }
}

fn describe(process: &str, gpu: Gpu<'_>, is_copy: bool) -> (BlockDescription, u32) {
    let counter = |what: &str, description: &str, unit| CounterDescription {
        name: format!("{} . {process} . {what}", gpu.title),
        description: description.to_owned(),
        unit,
    };
    let counters = match (is_copy, gpu.compute_units) {
        (true, _) => vec![counter(
            "copy bandwidth",
            "Bytes per second of copies and maps while they run",
            CounterUnit::BytesPerSecond,
        )],
        (false, units) => {
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
            match units {
                0 => vec![in_flight],
                _ => vec![in_flight, filled],
            }
        }
    };
    let description = BlockDescription {
        name: if is_copy { "copies" } else { "kernels" }.to_owned(),
        gpu: gpu.index.0,
        memory: is_copy,
        counters,
    };
    (description, gpu.compute_units)
}

/// A block of counters.
#[derive(Debug)]
struct Gauge {
    block: CounterBlock,
    /// Until it is first told.
    description: Option<BlockDescription>,
    units: Vec<CounterUnit>,
    compute_units: i64,
    /// What runs now.
    sums: [i64; 2],
    /// The changes of the window: from when on, and what they lead to.
    changes: Vec<(u64, [i64; 2])>,
    /// Over the window, once it has more changes than are kept.
    integral: [i128; 2],
    first: u64,
    last: u64,
    end: u64,
    many: bool,
    /// The values that were to be told last.
    latest: [f64; 2],
}

impl Gauge {
    fn new(block: CounterBlock, (description, compute_units): (BlockDescription, u32)) -> Gauge {
        Gauge {
            block,
            units: description.counters.iter().map(|one| one.unit).collect(),
            description: Some(description),
            compute_units: compute_units.into(),
            sums: [0; 2],
            changes: Vec::with_capacity(EXACT),
            integral: [0; 2],
            first: 0,
            last: 0,
            end: 0,
            many: false,
            latest: [0.0; 2],
        }
    }

    fn change<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        time: u64,
        changes: [i64; 2],
    ) -> io::Result<()> {
        if time >= self.end {
            self.close(writer)?;
            (self.first, self.last) = (time, time);
            self.end = (time / WINDOW + 1).saturating_mul(WINDOW);
        }
        self.account(time);
        for (sum, change) in self.sums.iter_mut().zip(changes) {
            *sum = sum.saturating_add(change);
        }
        let now = self.now();
        let full = self.changes.len() == EXACT;
        match self.changes.last_mut() {
            Some((of, values)) if *of == time => *values = now,
            _ if full => self.many = true,
            _ => self.changes.push((time, now)),
        }
        Ok(())
    }

    /// What the counters show: no device fills more compute units than it has.
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

    /// Tells the window.
    fn close<W: Write>(&mut self, writer: &mut TraceWriter<W>) -> io::Result<()> {
        let mut changes = std::mem::replace(&mut self.changes, Vec::with_capacity(EXACT));
        if changes.is_empty() {
            return Ok(());
        }
        if let Some(description) = self.description.take() {
            writer.describe_counters(self.block, &description)?;
        }
        if std::mem::take(&mut self.many) {
            self.account(self.end);
            let span = (self.end - self.first) as f64;
            let mean = self.integral.map(|integral| integral as f64 / span);
            self.write(writer, self.first, mean)?;
            let after = self.now().map(|value| value as f64);
            if after != mean {
                self.write(writer, self.end, after)?;
            }
        } else {
            for (time, values) in &changes {
                self.write(writer, *time, values.map(|value| value as f64))?;
            }
        }
        changes.clear();
        (self.changes, self.integral) = (changes, [0; 2]);
        Ok(())
    }

    /// The values are `values` from `time` on: counters of devices look back, so the ones before are told.
    fn write<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        time: u64,
        values: [f64; 2],
    ) -> io::Result<()> {
        let values = std::mem::replace(&mut self.latest, values);
        let mut told = [CounterValue::Int(0); 2];
        for ((told, unit), value) in told.iter_mut().zip(&self.units).zip(values) {
            *told = match unit {
                CounterUnit::Count if value.fract() != 0.0 => CounterValue::Double(value),
                CounterUnit::Count | CounterUnit::BytesPerSecond => CounterValue::Int(value as i64),
                CounterUnit::Percent => {
                    CounterValue::Int((value * 100.0 / self.compute_units as f64).round() as i64)
                }
            };
        }
        writer.counter_values(self.block, time, &told[..self.units.len()])
    }
}
