//! The time of devices by process and by queue, and the steps of processes.
//!
//! Each process has a [`Sweep`] for each of its devices and queues. The begin and the end of a step are marks in the sweeps of
//! the devices of its process; so a step has what its devices did from its begin to its end.

use std::collections::BTreeMap;

use gputrail_record::Nanos;
use gputrail_record::number_map::NumberMap;
use gputrail_trace::model::{AgentIndex, ProcessIndex, QueueIndex};

use super::steps::{StepSummary, Steps};
use super::sweep::{DeviceTimes, Sweep, WorkClass};
use super::timeline::Timeline;

/// Maximum number of devices of processes, and of queues, that are kept apart; the rest is summed up as one.
const MAX_PLACES: usize = 1 << 12;
/// Maximum number of events that the sweep of a device, and of a queue, holds back.
const HELD_BY_DEVICE: usize = 1 << 11;
const HELD_BY_QUEUE: usize = 1 << 8;
/// Maximum number of devices, and of queues, whose load over time is kept.
const MAX_DEVICE_TIMELINES: usize = 1 << 6;
const MAX_QUEUE_TIMELINES: usize = 1 << 8;

/// A device of a process.
type DeviceOf = (ProcessIndex, AgentIndex);

/// A queue of a device of a process.
type QueueOf = (ProcessIndex, AgentIndex, QueueIndex);

const OTHER_DEVICES: DeviceOf = (ProcessIndex(u32::MAX), AgentIndex(u32::MAX));

/// The time of a device or a queue, for one process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlaceSummary {
    /// The time by what ran.
    pub times: DeviceTimes,
    /// From its first work to the end of its last, ns; summed up where several devices are one row.
    pub span: Nanos,
    /// The number of events that came too late to be counted in full; 0 if the times are exact.
    pub late: u64,
}

impl PlaceSummary {
    fn of(sweep: &Sweep) -> PlaceSummary {
        let span = sweep.span().map_or(0, |(first, last)| last.0 - first.0);
        PlaceSummary {
            times: sweep.times(),
            span: Nanos(span),
            late: sweep.late(),
        }
    }

    /// Adds another device.
    pub fn add(&mut self, other: &PlaceSummary) {
        self.times += other.times;
        self.span = Nanos(self.span.0.saturating_add(other.span.0));
        self.late += other.late;
    }

    /// The time in which nothing ran.
    pub fn idle(&self) -> Nanos {
        Nanos(self.span.0.saturating_sub(self.times.busy().0))
    }

    /// The time that does not depend on other ranks: all but exposed communication, in which a rank waits for the slowest.
    pub fn own_time(&self) -> Nanos {
        let exposed = self.times.exposed_communication();
        Nanos(self.span.0.saturating_sub(exposed.0))
    }
}

/// Sums by process, device and queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    devices: BTreeMap<DeviceOf, Sweep>,
    queues: BTreeMap<QueueOf, Sweep>,
    /// The devices of each process.
    of_process: NumberMap<ProcessIndex, Vec<DeviceOf>>,
    pub steps: Steps,
    /// Whether the load over time is kept.
    pub has_timelines: bool,
}

/// The sums at the end.
#[derive(Debug, Default)]
pub struct SettledPlaces {
    /// By process and device.
    pub devices: BTreeMap<(ProcessIndex, AgentIndex), PlaceSummary>,
    /// By process, device and queue.
    pub queues: BTreeMap<(ProcessIndex, AgentIndex, QueueIndex), PlaceSummary>,
    /// The steps, in the order of their processes and begins.
    pub steps: Vec<StepSummary>,
    /// The number of steps beyond those that are kept.
    pub left_out_steps: u64,
    /// The load over time of the first devices, if it was wanted, in spans of one length.
    pub device_timelines: BTreeMap<(ProcessIndex, AgentIndex), Timeline>,
    /// The load over time of the first queues.
    pub queue_timelines: BTreeMap<(ProcessIndex, AgentIndex, QueueIndex), Timeline>,
}

impl Places {
    /// Adds work that ran.
    pub fn work(
        &mut self,
        (process, agent, queue): QueueOf,
        interval: (Nanos, Nanos),
        class: WorkClass,
    ) {
        let mut device = (process, agent);
        if self.devices.len() >= MAX_PLACES && !self.devices.contains_key(&device) {
            device = OTHER_DEVICES;
        }
        let is_drawn = self.has_timelines && self.devices.len() < MAX_DEVICE_TIMELINES;
        let sweep = self.devices.entry(device).or_insert_with(|| {
            let mut sweep = new_sweep(HELD_BY_DEVICE, is_drawn);
            self.of_process.entry(device.0).or_default().push(device);
            self.steps
                .marks(process, |time, mark| sweep.mark(time, mark));
            sweep
        });
        sweep.work(interval, class);
        while let Some((mark, times)) = sweep.advance() {
            self.steps.passed(mark, times);
        }
        let mut place = (process, agent, queue);
        if self.queues.len() >= MAX_PLACES && !self.queues.contains_key(&place) {
            place = (OTHER_DEVICES.0, OTHER_DEVICES.1, QueueIndex(u32::MAX));
        }
        let is_drawn = self.has_timelines && self.queues.len() < MAX_QUEUE_TIMELINES;
        let sweep = self.queues.entry(place);
        let sweep = sweep.or_insert_with(|| new_sweep(HELD_BY_QUEUE, is_drawn));
        sweep.work(interval, class);
        while sweep.advance().is_some() {}
    }

    /// The processes that had work on a device.
    pub fn processes_of(&self, agent: AgentIndex) -> Vec<ProcessIndex> {
        let devices = self.devices.keys().filter(|(_, of)| *of == agent);
        devices.map(|(process, _)| *process).collect()
    }

    /// A step begins. Returns its number, if it is kept.
    pub fn begin_step(&mut self, process: ProcessIndex, name: &str, start: Nanos) -> Option<u32> {
        let step = self.steps.begin(process, name, start)?;
        self.mark(process, start, Steps::begin_mark(step));
        Some(step)
    }

    /// A step ends.
    pub fn end_step(&mut self, step: u32, end: Nanos) {
        if let Some(process) = self.steps.end(step, end) {
            self.mark(process, end, Steps::end_mark(step));
        }
    }

    fn mark(&mut self, process: ProcessIndex, time: Nanos, mark: u32) {
        for device in self.of_process.get(&process).into_iter().flatten() {
            if let Some(sweep) = self.devices.get_mut(device) {
                sweep.mark(time, mark);
            }
        }
    }

    /// The sums of all that has come.
    pub fn settled(&self) -> SettledPlaces {
        let mut all = self.clone();
        for sweep in all.devices.values_mut() {
            while let Some((mark, times)) = sweep.finish() {
                all.steps.passed(mark, times);
            }
        }
        for sweep in all.queues.values_mut() {
            while sweep.finish().is_some() {}
        }
        let devices = |process: ProcessIndex| self.of_process.get(&process).map_or(0, Vec::len);
        let mut device_timelines = timelines_of(&all.devices);
        let mut queue_timelines = timelines_of(&all.queues);
        let each = device_timelines.values_mut();
        Timeline::align(each.chain(queue_timelines.values_mut()));
        SettledPlaces {
            device_timelines,
            queue_timelines,
            devices: of_each(&all.devices),
            queues: of_each(&all.queues),
            left_out_steps: all.steps.left_out(),
            steps: all.steps.list(devices),
        }
    }
}

fn new_sweep(held: usize, is_drawn: bool) -> Sweep {
    let sweep = Sweep::new(held);
    if is_drawn {
        sweep.with_timeline()
    } else {
        sweep
    }
}

fn timelines_of<K: Copy + Ord>(sweeps: &BTreeMap<K, Sweep>) -> BTreeMap<K, Timeline> {
    let each = sweeps.iter();
    each.filter_map(|(key, sweep)| Some((*key, sweep.timeline()?.clone())))
        .collect()
}

fn of_each<K: Copy + Ord>(sweeps: &BTreeMap<K, Sweep>) -> BTreeMap<K, PlaceSummary> {
    let each = sweeps.iter();
    each.map(|(key, sweep)| (*key, PlaceSummary::of(sweep)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ProcessIndex = ProcessIndex(0);
    const OTHER: ProcessIndex = ProcessIndex(1);
    const DEVICE: AgentIndex = AgentIndex(0);

    fn kernel(places: &mut Places, process: ProcessIndex, start: u64, end: u64) {
        let place = (process, DEVICE, QueueIndex(process.0));
        places.work(place, (Nanos(start), Nanos(end)), WorkClass::Compute);
    }

    #[test]
    fn a_step_has_what_the_devices_of_its_process_did_in_it() {
        let mut places = Places::default();
        let step = places.begin_step(ONE, "step 1", Nanos(100)).unwrap();
        kernel(&mut places, ONE, 90, 130);
        kernel(&mut places, OTHER, 100, 200);
        kernel(&mut places, ONE, 150, 180);
        places.end_step(step, Nanos(160));
        let step = places.begin_step(ONE, "step 2", Nanos(160)).unwrap();
        places.end_step(step, Nanos(200));
        let settled = places.settled();
        let told: Vec<_> = settled
            .steps
            .iter()
            .map(|step| {
                (
                    &*step.name,
                    step.duration().unwrap().0,
                    step.times.busy().0,
                    step.times.kernels,
                    step.idle().unwrap().0,
                )
            })
            .collect();
        // The first kernel began before the first step.
        assert_eq!(told, [("step 1", 60, 40, 1, 20), ("step 2", 40, 20, 0, 20)]);
        assert_eq!(settled.devices[&(ONE, DEVICE)].span, Nanos(90));
        assert_eq!(settled.devices[&(ONE, DEVICE)].times.busy(), Nanos(70));
        assert_eq!(settled.queues.len(), 2);
    }

    #[test]
    fn steps_without_an_end_have_no_duration() {
        let mut places = Places::default();
        places.begin_step(ONE, "step 1", Nanos(100));
        kernel(&mut places, ONE, 110, 130);
        let steps = places.settled().steps;
        assert_eq!(
            (steps[0].duration(), steps[0].times.busy()),
            (None, Nanos(0))
        );
    }

    #[test]
    fn processes_beyond_the_limit_are_one() {
        let mut places = Places::default();
        for process in 0..MAX_PLACES as u32 + 2 {
            kernel(&mut places, ProcessIndex(process), 0, 10);
        }
        let settled = places.settled();
        assert_eq!(settled.devices.len(), MAX_PLACES + 1);
        assert_eq!(settled.devices[&OTHER_DEVICES].times.kernels, 2);
    }
}
