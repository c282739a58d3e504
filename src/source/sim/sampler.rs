//! PC sampling of a simulated device.
//!
//! At the moments that its interval gives, dithered within the interval so that they do not beat with a kernel's loops, the
//! device visits one active wave of each compute unit, the next one in turn. By the stochastic method it sees what the wave
//! does; by the host-trap method it stops the wave, which goes on for up to two instructions, and knows where it stands, or,
//! if the wave has ended meanwhile, nothing (an invalid sample).
//!
//! Samples go through a memory of the device that the host empties at a certain rate; when it is full they are dropped, and
//! counted for their dispatch. Some more stay in the device until it is flushed or the dispatch ends.

use super::code::LoadedKernel;
use super::device::COMPUTE_UNITS;
use super::machine::{Span, WorkIndex};
use super::random::{Purpose, Random};
use super::time::{DeviceClock, Moment};
use super::waves::{Did, SIMDS, Seen, Visit, Window};
use crate::code::aggregate::Aggregates;
use crate::collect::agents::{ConfigureError, Provider};
use crate::collect::correlation::HostThread;
use crate::collect::recorder::Recorder;
use crate::collect::sampling::lines::Lines;
use crate::collect::sampling::{Configuration, Deliver, Delivery, Request};
use crate::platform::sync::lock_std;
use crate::record::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

#[cfg(test)]
mod tests;

/// The ways in which a device can be sampled.
pub(super) const CONFIGURATIONS: [Configuration; 2] = [
    Configuration {
        method: SamplingMethod::HOST_TRAP,
        unit: SamplingUnit::TIME,
        min: 1_000,
        max: 1_000_000_000,
        power_of_two: false,
    },
    Configuration {
        method: SamplingMethod::STOCHASTIC,
        unit: SamplingUnit::CYCLES,
        min: 1 << 8,
        max: 1 << 31,
        power_of_two: true,
    },
];

/// Cycles of 2 nanoseconds: the device's clock has 1500 MHz.
const CYCLES_OF_2_NS: u64 = 3;
/// Samples that the device's memory holds.
const DEVICE_SAMPLES: u64 = 16_384;
/// Samples that the host takes from it in a microsecond.
const TAKEN: u64 = 100;
/// Samples that stay in the device until there are as many, or it is flushed.
const HELD: usize = 256;

/// A kernel as it is launched.
pub(super) struct Launched {
    pub(super) work: WorkId,
    pub(super) correlation: CorrelationId,
    pub(super) external: ExternalId,
    pub(super) kernel: KernelId,
    pub(super) code_object: CodeObjectId,
    pub(super) code: Arc<LoadedKernel>,
    /// Workgroups in x, y, z.
    pub(super) groups: [u32; 3],
    pub(super) waves_per_group: u32,
    /// Workgroups on a compute unit.
    pub(super) resident: u64,
    /// Number of the hardware queue.
    pub(super) queue: u32,
}

/// The sampler of one device: what the service is offered.
pub(super) struct DeviceSampler(Mutex<State>);

struct State {
    agent: AgentId,
    seed: u64,
    random: Random,
    /// What another process has configured.
    elsewhere: Option<Request>,
    request: Option<Request>,
    /// While it is started.
    delivery: Option<Delivery>,
    host: Option<(HostThread, Recorder)>,
    /// Visits so far.
    turn: u64,
    /// The number of the interval whose moment comes next, and that moment, in cycles since the beginning.
    next: (u64, u64),
    dispatches: BTreeMap<WorkIndex, Dispatch>,
    held: Vec<Held>,
    aggregates: Aggregates,
    lines: Lines,
    /// Samples in the device's memory, in thousandths, at this moment.
    memory: (u64, Moment),
}

/// A dispatch that has not ended.
struct Dispatch {
    launched: Launched,
    window: Option<Arc<Window>>,
    start: Option<Moment>,
    total: u64,
    dropped: u64,
}

/// A sample in the device.
enum Held {
    HostTrap(HostTrapSample),
    Stochastic(StochasticSample),
    Invalid(InvalidSample),
}

impl DeviceSampler {
    pub(super) fn new(agent: AgentId, seed: u64, number: usize) -> DeviceSampler {
        DeviceSampler(Mutex::new(State {
            agent,
            seed,
            random: Random::fork(seed, Purpose::Sampling, number),
            elsewhere: None,
            request: None,
            delivery: None,
            host: None,
            turn: 0,
            next: (0, 0),
            dispatches: BTreeMap::new(),
            held: Vec::new(),
            aggregates: Aggregates::default(),
            lines: Lines::default(),
            memory: (0, Moment::BEGIN),
        }))
    }

    /// Another process configures the device, or gives it back.
    pub(super) fn configured_elsewhere(&self, request: Option<Request>) {
        lock_std(&self.0).elsewhere = request;
    }

    pub(super) fn is_configured(&self) -> bool {
        lock_std(&self.0).request.is_some()
    }

    /// The thread that writes its records.
    pub(super) fn writes_by(&self, host: HostThread, recorder: &Recorder) {
        lock_std(&self.0).host = Some((host, recorder.clone()));
    }

    /// A kernel has been put into a queue.
    pub(super) fn launched(&self, index: WorkIndex, launched: impl FnOnce() -> Launched) {
        let mut state = lock_std(&self.0);
        if state.request.is_some() {
            let dispatch = Dispatch {
                launched: launched(),
                window: None,
                start: None,
                total: 0,
                dropped: 0,
            };
            state.dispatches.insert(index, dispatch);
        }
    }

    /// The device's compute units have been in use in this way.
    pub(super) fn ran(&self, span: &Span, clock: &mut DeviceClock) {
        let mut state = lock_std(&self.0);
        for (work, _) in &span.shares {
            if let Some(dispatch) = state.dispatches.get_mut(work) {
                dispatch.start.get_or_insert(span.from);
            }
        }
        if let (Some(request), Some(delivery)) = (state.request, state.delivery) {
            state.sample(request, delivery, span, clock);
        }
    }

    /// A piece of work has ended.
    pub(super) fn ended(&self, index: WorkIndex) {
        let state = &mut *lock_std(&self.0);
        state.write_held();
        let Some(dispatch) = state.dispatches.remove(&index) else {
            return;
        };
        let (Some(request), Some(delivery)) = (state.request, state.delivery) else {
            return;
        };
        let aggregated = state.aggregates.take(dispatch.launched.work);
        let mut totals = SamplingTotals::blank();
        totals.correlation = dispatch.launched.correlation;
        totals.work = dispatch.launched.work;
        (totals.total, totals.dropped) = (dispatch.total, dispatch.dropped);
        totals.interval = request.interval;
        totals.agent = state.agent;
        (totals.method, totals.unit) = (request.method, request.unit);
        if let Some((host, recorder)) = &mut state.host {
            for mut record in aggregated.iter().flat_map(|samples| samples.records()) {
                keep_room(recorder);
                state.lines.of(recorder.names(), host, &mut record);
                if !host.write_to(delivery.buffers, record) {
                    totals.dropped += record.samples;
                }
            }
            host.write_to(delivery.buffers, totals);
        }
        if let Some(samples) = aggregated {
            state.aggregates.give_back(samples);
        }
    }
}

/// Has full blocks written when few are empty: a simulation has no collector that does it in time.
fn keep_room(recorder: &Recorder) {
    if recorder.buffer().empty_blocks() < 2 {
        recorder.flush();
    }
}

/// The first moment that is as many cycles after the beginning.
fn moment(cycles: u64) -> Moment {
    Moment::BEGIN + Nanos((cycles * 2).div_ceil(CYCLES_OF_2_NS))
}

fn cycles(since: Nanos) -> u64 {
    since.0 * CYCLES_OF_2_NS / 2
}

impl State {
    fn sample(
        &mut self,
        request: Request,
        delivery: Delivery,
        span: &Span,
        clock: &mut DeviceClock,
    ) {
        let interval = match request.unit {
            SamplingUnit::TIME => cycles(Nanos(request.interval)),
            _ => request.interval,
        };
        let begin = cycles(span.from - Moment::BEGIN);
        if self.next.1 < begin {
            self.next_interval(begin / interval, interval);
        }
        loop {
            let at = moment(self.next.1);
            if at >= span.to {
                return;
            }
            if at >= span.from {
                self.visit(at, request.method, delivery, span, clock);
            }
            self.next_interval(self.next.0 + 1, interval);
        }
    }

    fn next_interval(&mut self, number: u64, interval: u64) {
        self.next = (number, number * interval + self.random.below(interval));
    }

    /// Looks at one wave of each compute unit that is in use.
    fn visit(
        &mut self,
        at: Moment,
        method: SamplingMethod,
        delivery: Delivery,
        span: &Span,
        clock: &mut DeviceClock,
    ) {
        self.turn += 1;
        let time = clock.read(at);
        let (elapsed, level) = (at - self.memory.1, self.memory.0);
        self.memory = (level.saturating_sub(elapsed.0 * TAKEN), at);
        let mut before = 0;
        for (work, share) in &span.shares {
            // Units of which the work has the greater part.
            let units = (before + 500) / 1_000..(before + share + 500) / 1_000;
            before += share;
            for unit in units.start..units.end.min(COMPUTE_UNITS) {
                self.visit_unit(unit, *work, (at, time), method, delivery);
            }
        }
    }

    fn visit_unit(
        &mut self,
        unit: u64,
        work: WorkIndex,
        (at, time): (Moment, DeviceTime),
        method: SamplingMethod,
        delivery: Delivery,
    ) {
        let Some(dispatch) = self.dispatches.get_mut(&work) else {
            return;
        };
        let start = dispatch.start.unwrap_or(at);
        let launched = &dispatch.launched;
        let window = dispatch.window.get_or_insert_with(|| {
            let (waves, resident) = (launched.waves_per_group, launched.resident);
            launched.code.window(waves, resident, self.seed)
        });
        // Each unit is at another place of what it repeats.
        let phase = (launched.work.0 * COMPUTE_UNITS + unit).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let visit = Visit {
            cycle: phase % window.cycles() + cycles(at - start),
            turn: self.turn,
        };
        let seen = match method {
            SamplingMethod::STOCHASTIC => window.look(visit),
            _ => {
                let delay = Window::trap_delay(&mut self.random);
                window.trap(visit, delay)
            }
        };
        let Some(seen) = seen else {
            return;
        };
        dispatch.total += 1;
        if self.memory.0 + 1_000 > DEVICE_SAMPLES * 1_000 {
            dispatch.dropped += 1;
            return;
        }
        self.memory.0 += 1_000;
        let held = dispatch.held(self.agent, method, unit, (at, start, time), &seen);
        match (delivery.deliver, held) {
            (Deliver::Aggregates, Held::HostTrap(sample)) => self.aggregates.host_trap(&sample),
            (Deliver::Aggregates, Held::Stochastic(sample)) => self.aggregates.stochastic(&sample),
            (_, held) => {
                self.held.push(held);
                if self.held.len() >= HELD {
                    self.write_held();
                }
            }
        }
    }

    /// What the device holds goes to the buffer.
    fn write_held(&mut self) {
        let (Some(delivery), Some((host, recorder))) = (self.delivery, &mut self.host) else {
            return;
        };
        if self.held.is_empty() {
            return;
        }
        keep_room(recorder);
        for held in self.held.drain(..) {
            let (written, work) = match held {
                Held::HostTrap(one) => (host.write_to(delivery.buffers, one), one.work),
                Held::Stochastic(one) => (host.write_to(delivery.buffers, one), one.work),
                Held::Invalid(one) => (host.write_to(delivery.buffers, one), one.work),
            };
            if !written {
                let mut dispatches = self.dispatches.values_mut();
                if let Some(of) = dispatches.find(|of| of.launched.work == work) {
                    of.dropped += 1;
                }
            }
        }
    }
}

impl Dispatch {
    fn held(
        &self,
        agent: AgentId,
        method: SamplingMethod,
        unit: u64,
        (at, start, time): (Moment, Moment, DeviceTime),
        seen: &Seen,
    ) -> Held {
        let Launched {
            work,
            correlation,
            external,
            kernel,
            code_object,
            ref code,
            ..
        } = self.launched;
        if seen.ended {
            let mut invalid = InvalidSample::blank();
            (invalid.time, invalid.work) = (time, work);
            (invalid.agent, invalid.method) = (agent, method);
            return Held::Invalid(invalid);
        }
        let waves = (self.launched.waves_per_group as usize).max(1);
        let (slot, group) = (seen.slot as u64, (seen.slot / waves) as u64);
        let hardware = HardwareId::of_cpu(unit as u16)
            .with_simd(slot % SIMDS as u64)
            .with_wave(slot / SIMDS as u64)
            .with_workgroup_slot(group)
            .with_queue(self.launched.queue.into())
            .with_virtual_memory(1);
        let workgroup = self.workgroup(unit, group, at - start);
        let offset = code.offset(seen.instruction);
        let exec_mask = code.lanes(seen.instruction);
        let wave_in_group = (seen.slot % waves) as u8;
        let sample = HostTrapSample {
            correlation,
            external,
            work,
            time,
            offset,
            exec_mask,
            hardware,
            agent,
            kernel,
            code_object,
            workgroup,
            wave_in_group,
            ..HostTrapSample::blank()
        };
        if method != SamplingMethod::STOCHASTIC {
            return Held::HostTrap(sample);
        }
        let issue = match seen.did {
            Did::Issued(kind) => Issue(0).with_issued(1).with_instruction(kind.0),
            Did::Waited(_) => Issue(0).with_instruction(InstructionType::NO_INST.0),
        };
        Held::Stochastic(StochasticSample {
            issue,
            snapshot: seen.snapshot,
            memory_counters: seen.counters,
            wave_count: seen.active,
            has_memory_counters: 1,
            ..sample.into()
        })
    }

    /// Which workgroup is in that place: they are begun in order, as those before them end.
    fn workgroup(&self, unit: u64, group: u64, since: Nanos) -> [u32; 3] {
        let [x, y, z] = self.launched.groups.map(|of| u64::from(of).max(1));
        let round = cycles(since) / 50_000;
        let number = (round * COMPUTE_UNITS + unit) * self.launched.resident + group;
        let number = number % (x * y * z);
        [number % x, number / x % y, number / x / y].map(|of| of as u32)
    }
}

impl Provider<Request> for DeviceSampler {
    fn configurations(&self) -> Vec<Configuration> {
        match lock_std(&self.0).elsewhere {
            Some(request) => vec![Configuration::active(request)],
            None => CONFIGURATIONS.to_vec(),
        }
    }

    fn configure(&self, request: &Request) -> Result<(), ConfigureError> {
        let mut state = lock_std(&self.0);
        if state
            .elsewhere
            .is_some_and(|elsewhere| elsewhere != *request)
        {
            return Err(ConfigureError::Taken);
        }
        state.request = Some(*request);
        Ok(())
    }

    fn release(&self) {
        lock_std(&self.0).request = None;
    }

    fn start(&self, to: Delivery) {
        lock_std(&self.0).delivery = Some(to);
    }

    fn stop(&self) {
        let mut state = lock_std(&self.0);
        state.write_held();
        state.delivery = None;
    }

    fn flush(&self) {
        lock_std(&self.0).write_held();
    }
}
