//! Counters of the work that a process has running on an agent at a time: kernels and the compute units they can
//! fill, and the bandwidth of its copies. A counter that would always be 0 is not passed on. Where a value is unknown, the
//! counter has a gap, which is no number.
//!
//! Work is passed on as it completes, but counters need the order of time. So begins and ends are held back and sorted,
//! many at a time; later arrivals are counted from the time that the counters have reached. A block of counters that
//! changes at most twice in a window has exact values. If it changes more often, it has its mean over the
//! rest of the window: a kernel of one microsecond is not worth two values.

use std::io;

use super::{
    AgentIndex, Consumer, CounterBlock, CounterDescription, CounterIndex, CounterUnit,
    CounterValue, ProcessIndex, Stream,
};
use crate::directory::Directory;
use gputrail_record::Nanos;

/// Maximum number of begins and ends that are held back.
const MAX_HELD: usize = 1 << 16;
/// Width of a window, ns.
const WINDOW: u64 = 100_000;
/// Maximum number of changes in a window that are passed on one by one.
const MAX_EXACT: usize = 2;

/// Work that the counters count.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum GaugedWork {
    /// A kernel and its number of workgroups, if known.
    Kernel(Option<u64>),
    /// A copy and its number of bytes.
    Copy(u64),
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Edge {
    time: u64,
    gauge: u32,
    change: GaugeChange,
}

/// What begins or ends.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum GaugeChange {
    /// Work that adds this much to the counter.
    Known(i64),
    /// Work that adds an unknown amount: 1 for a begin, -1 for an end.
    Unknown(i64),
}

/// The quantity of a counter.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Quantity {
    Kernels,
    ComputeUnits,
    CopyRate,
}

/// The counters of a process.
#[derive(Debug)]
pub struct Gauges {
    process: ProcessIndex,
    edges: Vec<Edge>,
    /// The time up to which values have been passed on.
    now: u64,
    gauges: Vec<Gauge>,
    places: Directory<(AgentIndex, Quantity)>,
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
        running: GaugedWork,
        (start, end): (Nanos, Nanos),
    ) -> io::Result<()> {
        let duration = end.0.saturating_sub(start.0);
        if duration == 0 {
            return Ok(());
        }
        let agent = (agent, compute_units);
        match running {
            GaugedWork::Kernel(groups) => {
                let interval = (start, end);
                self.add_counted(stream, agent, Quantity::Kernels, Some(1), interval)?;
                if compute_units != 0 {
                    let groups = groups.filter(|groups| *groups != 0);
                    let units = groups.map(|groups| groups.min(u64::from(compute_units)) as i64);
                    self.add_counted(stream, agent, Quantity::ComputeUnits, units, interval)?;
                }
            }
            GaugedWork::Copy(bytes) => {
                let rate = u128::from(bytes) * 1_000_000_000 / u128::from(duration);
                let rate = rate.min(i64::MAX as u128 >> 20) as i64;
                self.add_counted(stream, agent, Quantity::CopyRate, Some(rate), (start, end))?;
            }
        }
        if self.edges.len() >= 2 * MAX_HELD {
            self.pass_on(stream.consumer, MAX_HELD)?;
        }
        Ok(())
    }

    /// A counter of `agent` is higher by `value` from `start` to `end`; by how much is unknown for `None`.
    fn add_counted(
        &mut self,
        stream: &mut Stream<'_>,
        (agent, compute_units): (AgentIndex, u32),
        counted: Quantity,
        value: Option<i64>,
        (start, end): (Nanos, Nanos),
    ) -> io::Result<()> {
        let key = (agent, counted);
        let slot = agent.0.wrapping_mul(3).wrapping_add(counted as u32);
        let gauge = match self.places.get(slot, key) {
            Some(place) => place,
            None => {
                let block = describe(self.process, agent, counted);
                let gauge = Gauge::new(stream.new_counters(), block, compute_units);
                self.gauges.push(gauge);
                self.places.insert(key, self.gauges.len() - 1);
                self.gauges.len() - 1
            }
        };
        let edge = |time: Nanos, sign: i64| Edge {
            time: time.0,
            gauge: gauge as u32,
            change: value.map_or(GaugeChange::Unknown(sign), |value| {
                GaugeChange::Known(sign * value)
            }),
        };
        self.edges.push(edge(start, 1));
        self.edges.push(edge(end, -1));
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
            self.gauges[edge.gauge as usize].change(consumer, self.now, edge.change)?;
        }
        Ok(())
    }
}

fn describe(process: ProcessIndex, agent: AgentIndex, counted: Quantity) -> CounterBlock {
    // The units stand in the names: viewers before v55 show the numbers of units.
    let (name, description, unit) = match counted {
        Quantity::Kernels => (
            "kernels (100 us mean)",
            "Kernels that run at the same time: their mean over 100 microseconds, exact where few begin and end",
            CounterUnit::Count,
        ),
        Quantity::ComputeUnits => (
            "occupied % (100 us mean)",
            "Occupancy by launch: the share of compute units for which the running kernels have workgroups, where their number is known",
            CounterUnit::Percent,
        ),
        Quantity::CopyRate => (
            "copy B/s (100 us mean)",
            "Bytes per second of copies and maps while they run",
            CounterUnit::BytesPerSecond,
        ),
    };
    CounterBlock {
        name: name.to_owned(),
        process,
        agent,
        memory: counted == Quantity::CopyRate,
        over_time: false,
        counters: vec![CounterDescription {
            name: name.to_owned(),
            description: description.to_owned(),
            unit,
        }],
    }
}

/// A counter.
#[derive(Debug)]
struct Gauge {
    index: CounterIndex,
    /// Whether it has had a known value above 0.
    above_zero: bool,
    /// Its description, until it has been declared.
    block: Option<CounterBlock>,
    unit: CounterUnit,
    compute_units: i64,
    /// The sum over the work that runs now and whose value is known.
    sum: i64,
    /// How much work of unknown value runs now.
    unknown: i64,
    /// The changes of the window: their times, and the value from then on; `None` if it is unknown.
    changes: Vec<(u64, Option<i64>)>,
    /// The integral over the window; `None` if the value is unknown in a part of it.
    integral: Option<i128>,
    first: u64,
    last: u64,
    end: u64,
    /// Whether the window has more changes than `changes` holds.
    many: bool,
    /// The value since the latest change that was passed on; `None` if it is unknown.
    latest: Option<f64>,
}

impl Gauge {
    fn new(index: CounterIndex, block: CounterBlock, compute_units: u32) -> Gauge {
        Gauge {
            index,
            above_zero: false,
            unit: block.counters[0].unit,
            block: Some(block),
            compute_units: compute_units.into(),
            sum: 0,
            unknown: 0,
            changes: Vec::with_capacity(MAX_EXACT),
            integral: Some(0),
            first: 0,
            last: 0,
            end: 0,
            many: false,
            latest: Some(0.0),
        }
    }

    fn change(
        &mut self,
        consumer: &mut dyn Consumer,
        time: u64,
        change: GaugeChange,
    ) -> io::Result<()> {
        if time >= self.end {
            self.close(consumer)?;
            (self.first, self.last) = (time, time);
            self.end = (time / WINDOW + 1).saturating_mul(WINDOW);
        }
        self.account(time);
        match change {
            GaugeChange::Known(change) => self.sum = self.sum.saturating_add(change),
            GaugeChange::Unknown(change) => self.unknown += change,
        }
        let now = self.now();
        self.above_zero |= now.is_some_and(|value| value != 0);
        let full = self.changes.len() == MAX_EXACT;
        match self.changes.last_mut() {
            Some((of, value)) if *of == time => *value = now,
            _ if full => self.many = true,
            _ => self.changes.push((time, now)),
        }
        Ok(())
    }

    /// The value: no device fills more compute units than it has, whatever else runs.
    fn now(&self) -> Option<i64> {
        match self.unit {
            CounterUnit::Percent if self.sum >= self.compute_units => Some(self.compute_units),
            _ if self.unknown != 0 => None,
            _ => Some(self.sum),
        }
    }

    fn account(&mut self, time: u64) {
        if time != self.last {
            let span = i128::from(time - self.last);
            let area = self.now().map(|value| span * i128::from(value));
            self.integral = Option::zip(self.integral, area).map(|(sum, area)| sum + area);
            self.last = time;
        }
    }

    /// Passes on the window.
    fn close(&mut self, consumer: &mut dyn Consumer) -> io::Result<()> {
        let mut changes = std::mem::replace(&mut self.changes, Vec::with_capacity(MAX_EXACT));
        if changes.is_empty() {
            return Ok(());
        }
        if self.above_zero
            && let Some(block) = self.block.take()
        {
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
            for (time, value) in &changes {
                self.write(consumer, *time, value.map(|value| value as f64))?;
            }
        }
        changes.clear();
        (self.changes, self.integral) = (changes, Some(0));
        Ok(())
    }

    /// The value is `value` from `time` on: counters of agents look back, so the value before is passed on.
    fn write(
        &mut self,
        consumer: &mut dyn Consumer,
        time: u64,
        value: Option<f64>,
    ) -> io::Result<()> {
        let value = std::mem::replace(&mut self.latest, value);
        if self.block.is_some() {
            return Ok(());
        }
        let shown = match (self.unit, value) {
            (_, None) => CounterValue::Double(f64::NAN),
            (CounterUnit::Count, Some(value)) if value.fract() != 0.0 => {
                CounterValue::Double(value)
            }
            (CounterUnit::Percent, Some(value)) => {
                CounterValue::Int((value * 100.0 / self.compute_units as f64).round() as i64)
            }
            (_, Some(value)) => CounterValue::Int(value as i64),
        };
        consumer.derived_values(self.index, Nanos(time), &[shown])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The curves of the counters, by name: each value with the time up to which the counter had it.
    #[derive(Default)]
    struct Curves {
        names: Vec<(CounterIndex, String)>,
        curves: Vec<Vec<(u64, f64)>>,
    }

    impl Consumer for Curves {
        crate::leave_out!(
            clocks attributes agents process track queue call slice end instant work value samples stack
            stack_samples loss note
        );

        fn counters(&mut self, index: CounterIndex, block: &CounterBlock) -> io::Result<()> {
            self.names.push((index, block.name.clone()));
            self.curves.push(Vec::new());
            Ok(())
        }

        fn counter_values(
            &mut self,
            index: CounterIndex,
            time: Nanos,
            values: &[CounterValue],
        ) -> io::Result<()> {
            let place = self.names.iter().position(|(of, _)| *of == index);
            let value = match values {
                [CounterValue::Int(value)] => *value as f64,
                [CounterValue::Double(value)] => {
                    assert!(value.fract() != 0.0, "whole numbers are written as such"); // NaN, too
                    *value
                }
                other => panic!("{other:?}"),
            };
            self.curves[place.expect("declared")].push((time.0, value));
            Ok(())
        }
    }

    impl Curves {
        fn of(&self, name: &str) -> &[(u64, f64)] {
            let name = format!("{name} (100 us mean)");
            let place = self.names.iter().position(|(_, of)| *of == name);
            place.map_or(&[], |place| &self.curves[place])
        }

        /// The sum of value times duration.
        fn integral(&self, name: &str) -> f64 {
            let mut from = 0;
            let mut sum = 0.0;
            for (to, value) in self.of(name) {
                assert!(*to >= from, "times ascend");
                sum += (to - from) as f64 * value;
                from = *to;
            }
            sum
        }
    }

    /// The curves of works on one agent with 10 compute units.
    fn curves(works: &[(GaugedWork, u64, u64)]) -> Curves {
        let mut curves = Curves::default();
        let mut gauges = Gauges::new(ProcessIndex(0));
        for (running, start, end) in works {
            let mut stream = Stream::new(&mut curves);
            stream.indices.counters = gauges.gauges.len() as u32;
            let interval = (Nanos(*start), Nanos(*end));
            gauges
                .add(&mut stream, (AgentIndex(0), 10), *running, interval)
                .unwrap();
        }
        gauges.finish(&mut curves).unwrap();
        curves
    }

    #[test]
    fn few_changes_are_exact() {
        let curves = curves(&[
            (GaugedWork::Kernel(Some(4)), 1_000, 401_000),
            (GaugedWork::Kernel(Some(40)), 201_000, 301_000),
            (GaugedWork::Kernel(None), 601_000, 601_000),
            (GaugedWork::Copy(50_000), 701_000, 801_000),
        ]);
        let kernels = [(1_000, 0.0), (201_000, 1.0), (301_000, 2.0), (401_000, 1.0)];
        assert_eq!(curves.of("kernels"), kernels);
        let occupied = [
            (1_000, 0.0),
            (201_000, 40.0),
            (301_000, 100.0),
            (401_000, 40.0),
        ];
        assert_eq!(curves.of("occupied %"), occupied);
        let rate = [(701_000, 0.0), (801_000, 500_000_000.0)];
        assert_eq!(curves.of("copy B/s"), rate);
    }

    #[test]
    fn an_unknown_value_is_a_gap() {
        let kernel = |groups, start: u64, end: u64| {
            (
                GaugedWork::Kernel(groups),
                start * 1_000_000,
                end * 1_000_000,
            )
        };
        let curves = curves(&[
            kernel(None, 1, 2),
            kernel(Some(5), 3, 6),
            kernel(None, 4, 5),
            kernel(Some(10), 7, 10), // With all units taken, the others do not matter.
            kernel(None, 8, 9),
        ]);
        let of = |time: u64| {
            let found = curves
                .of("occupied %")
                .iter()
                .find(|(end, _)| *end == time * 1_000_000);
            found.map(|(_, value)| *value)
        };
        let known = |time: u64| of(time).filter(|value| !value.is_nan());
        assert_eq!(
            [4, 6, 7, 8].map(known),
            [Some(50.0), Some(50.0), Some(0.0), Some(100.0)]
        );
        assert!(
            of(5).is_some_and(f64::is_nan),
            "{:?}",
            curves.of("occupied %")
        );
        assert_eq!(curves.of("kernels").len(), 10);
        // A counter whose values are all unknown is left out.
        assert!(
            super::tests::curves(&[kernel(None, 1, 2)])
                .of("occupied %")
                .is_empty()
        );
    }

    #[test]
    fn the_area_under_the_curve_is_the_time_of_all_kernels() {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut draw = |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 20) % below
        };
        // Bursts of short kernels and long ones, in the order in which they complete.
        let mut works: Vec<(GaugedWork, u64, u64)> = (0..20_000)
            .map(|number| {
                let start = number / 100 * 1_000_000 + draw(300_000);
                (GaugedWork::Kernel(None), start, start + 1 + draw(400_000))
            })
            .collect();
        works.sort_by_key(|(_, _, end)| *end);
        let expected: u64 = works.iter().map(|(_, start, end)| end - start).sum();
        let area = curves(&works).integral("kernels");
        assert!(
            (area / expected as f64 - 1.0).abs() < 1e-9,
            "{area} {expected}"
        );
    }
}
