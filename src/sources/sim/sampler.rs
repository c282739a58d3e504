//! PC sampling of a simulated device.
//!
//! Once per interval, at a random moment within it so that samples do not resonate with the loops of a kernel, the
//! device visits one active wave of each compute unit, in turn. Stochastic sampling sees the state of the wave.
//! Host-trap sampling stops the wave, which executes up to two more instructions, and sees its program counter only; if
//! the wave has ended meanwhile, the sample is invalid.
//!
//! An interval may also be in instructions: each compute unit counts those that its waves issue, and samples one of
//! each interval with the wave that issues it.
//!
//! Samples pass through a memory of the device that the host empties at a limited rate. When it is full, samples are
//! dropped and counted for their dispatch. Up to [`MAX_BUFFERED`] samples stay in the device until it is flushed or the
//! dispatch ends.

use super::code::LoadedKernel;
use super::compute_units::{COMPUTE_UNITS, hardware};
use super::host::keep_room;
use super::machine::ShareSpan;
use super::random::{Purpose, Random};
use super::recent::WorkIndex;
use super::time::{Moment, SimClock};
use super::waves::{Did, SIMDS, SampledWave, Visit, WaveWindow};
use gputrail_buffer::platform::sync::lock_std;
use gputrail_code::aggregate::Aggregates;
use gputrail_collect::agents::{ConfigureError, Provider};
use gputrail_collect::correlation::HostThread;
use gputrail_collect::recorder::Recorder;
use gputrail_collect::sampling::SampleDelivery;
use gputrail_collect::sampling::lines::{InstructionPlace, WrittenLines};
use gputrail_interface::sampling::{Configuration, Deliver, Request};
use gputrail_record::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

#[cfg(test)]
mod tests;

/// The supported configurations.
pub(super) const CONFIGURATIONS: [Configuration; 3] = [
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
    Configuration {
        method: SamplingMethod::STOCHASTIC,
        unit: SamplingUnit::INSTRUCTIONS,
        min: 1 << 8,
        max: 1 << 31,
        power_of_two: true,
    },
];

/// Cycles per 2 nanoseconds: the device runs at 1500 MHz.
const CYCLES_OF_2_NS: u64 = 3;
/// The capacity of the device's memory, in samples.
const DEVICE_SAMPLES: u64 = 16_384;
/// The samples that the host reads per microsecond.
const SAMPLES_PER_MICROSECOND: u64 = 100;
/// The number of samples buffered in the device.
const MAX_BUFFERED: usize = 256;

/// A factor that spreads numbers over 64 bits.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A kernel launch.
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
    /// Workgroups per compute unit.
    pub(super) resident: u64,
    /// The number of the hardware queue.
    pub(super) queue: u32,
}

/// The sampler of one device, offered to the sampling service.
pub(super) struct DeviceSampler(Mutex<SamplerState>);

struct SamplerState {
    agent: AgentId,
    seed: u64,
    random: Random,
    /// The configuration of another process.
    elsewhere: Option<Request>,
    request: Option<Request>,
    /// Set while sampling is started.
    delivery: Option<SampleDelivery>,
    host: Option<(HostThread, Option<Recorder>)>,
    /// The number of visits.
    turn: u64,
    /// The number of the next interval, and the moment of its sample in cycles since the beginning.
    next: (u64, u64),
    dispatches: BTreeMap<WorkIndex, SampledDispatch>,
    buffered: Vec<BufferedSample>,
    aggregates: Aggregates,
    lines: Arc<Mutex<WrittenLines>>,
    /// The fill level of the device's memory in thousandths of a sample, at this moment.
    memory: (u64, Moment),
}

/// A dispatch that has not ended.
struct SampledDispatch {
    launched: Launched,
    window: Option<Arc<WaveWindow>>,
    start: Option<Moment>,
    total: u64,
    dropped: u64,
}

/// A sample buffered in the device.
enum BufferedSample {
    HostTrap(HostTrapSample),
    Stochastic(StochasticSample),
    Invalid(InvalidSample),
}

impl DeviceSampler {
    pub(super) fn new(
        agent: AgentId,
        seed: u64,
        number: usize,
        lines: &Arc<Mutex<WrittenLines>>,
    ) -> DeviceSampler {
        DeviceSampler(Mutex::new(SamplerState {
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
            buffered: Vec::new(),
            aggregates: Aggregates::default(),
            lines: lines.clone(),
            memory: (0, Moment::BEGIN),
        }))
    }

    /// Simulates that another process configures the device, or releases it.
    pub(super) fn configured_elsewhere(&self, request: Option<Request>) {
        lock_std(&self.0).elsewhere = request;
    }

    pub(super) fn is_configured(&self) -> bool {
        lock_std(&self.0).request.is_some()
    }

    /// Whether a thread writes the records.
    pub(super) fn has_writer(&self) -> bool {
        lock_std(&self.0).host.is_some()
    }

    /// Sets the thread that writes the records.
    pub(super) fn set_writer(&self, host: HostThread, recorder: Option<Recorder>) {
        lock_std(&self.0).host = Some((host, recorder));
    }

    /// Adds a launched kernel.
    pub(super) fn launched(&self, index: WorkIndex, launched: impl FnOnce() -> Launched) {
        let mut state = lock_std(&self.0);
        if state.request.is_some() {
            let dispatch = SampledDispatch {
                launched: launched(),
                window: None,
                start: None,
                total: 0,
                dropped: 0,
            };
            state.dispatches.insert(index, dispatch);
        }
    }

    /// Samples a span of use of the compute units.
    pub(super) fn ran(&self, span: &ShareSpan, clock: &mut SimClock) {
        let mut state = lock_std(&self.0);
        for (work, _) in &span.shares {
            if let Some(dispatch) = state.dispatches.get_mut(work) {
                dispatch.start.get_or_insert(span.from);
            }
        }
        if let (Some(request), Some(delivery)) = (state.request, state.delivery) {
            match request.unit {
                SamplingUnit::INSTRUCTIONS => {
                    state.sample_instructions(request, delivery, span, clock)
                }
                _ => state.sample(request, delivery, span, clock),
            }
        }
    }

    /// Ends a dispatch: writes its samples and totals.
    pub(super) fn ended(&self, index: WorkIndex) {
        let state = &mut *lock_std(&self.0);
        state.write_buffered();
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
            let board = host.board().clone();
            for mut record in aggregated.iter().flat_map(|samples| samples.records()) {
                keep_room(recorder.as_ref());
                let place = InstructionPlace {
                    code_object: record.code_object,
                    offset: record.offset,
                    kernel: record.kernel,
                };
                let code = &dispatch.launched.code;
                let type_of = |offset| code.instruction_type(offset);
                let mut lines = lock_std(&state.lines);
                record.source_locator = lines.locate(board.names(), host, place, &type_of);
                drop(lines);
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

/// The first moment at or after this number of cycles.
fn moment(cycles: u64) -> Moment {
    Moment::BEGIN + Nanos((cycles * 2).div_ceil(CYCLES_OF_2_NS))
}

fn cycles(since: Nanos) -> u64 {
    since.0 * CYCLES_OF_2_NS / 2
}

/// The first moment of a cycle of a dispatch that started at `start`.
fn start_of_cycle(start: Moment, cycle: u64) -> Moment {
    start + Nanos((cycle * 2).div_ceil(CYCLES_OF_2_NS))
}

/// The compute units in use, each with the work that has the greater part of it.
fn units(span: &ShareSpan) -> impl Iterator<Item = (u64, WorkIndex)> {
    let mut before = 0;
    span.shares.iter().flat_map(move |(work, share)| {
        let units = (before + 500) / 1_000..(before + share + 500) / 1_000;
        before += share;
        (units.start..units.end.min(COMPUTE_UNITS)).map(move |unit| (unit, *work))
    })
}

impl SamplerState {
    fn sample(
        &mut self,
        request: Request,
        delivery: SampleDelivery,
        span: &ShareSpan,
        clock: &mut SimClock,
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

    /// Samples one wave of each compute unit in use.
    fn visit(
        &mut self,
        at: Moment,
        method: SamplingMethod,
        delivery: SampleDelivery,
        span: &ShareSpan,
        clock: &mut SimClock,
    ) {
        self.turn += 1;
        let time = clock.read(at);
        self.empty_memory(at);
        for (unit, work) in units(span) {
            self.visit_unit(unit, work, (at, time), method, delivery);
        }
    }

    /// The host empties the device's memory until `at`.
    fn empty_memory(&mut self, at: Moment) {
        let (elapsed, level) = (at - self.memory.1, self.memory.0);
        self.memory = (
            level.saturating_sub(elapsed.0 * SAMPLES_PER_MICROSECOND),
            at,
        );
    }

    /// Samples the instructions of a span, those of all units in the order of time.
    fn sample_instructions(
        &mut self,
        request: Request,
        delivery: SampleDelivery,
        span: &ShareSpan,
        clock: &mut SimClock,
    ) {
        let mut sampled = Vec::new();
        for (unit, work) in units(span) {
            let Some((window, phase, start)) = self.window(unit, work, span.from) else {
                continue;
            };
            let at_cycle = |moment: Moment| phase + cycles(moment - start);
            let issued = window.issued(at_cycle(span.from))..window.issued(at_cycle(span.to));
            let intervals = issued.start / request.interval..=issued.end / request.interval;
            for number in intervals {
                // At a random place in the interval, so that samples do not resonate with the loops of a kernel.
                let random = (phase ^ number).wrapping_mul(GOLDEN) >> 32;
                let instruction = number * request.interval + random % request.interval;
                if issued.contains(&instruction) {
                    let (cycle, seen) = window.instruction(instruction);
                    sampled.push((
                        start_of_cycle(start, cycle - phase),
                        unit,
                        work,
                        start,
                        seen,
                    ));
                }
            }
        }
        sampled.sort_by_key(|(at, unit, ..)| (*at, *unit));
        for (at, unit, work, start, seen) in sampled {
            let at = at.clamp(span.from, span.to);
            self.empty_memory(at);
            let times = (at, start, clock.read(at));
            self.take(unit, work, times, request.method, &seen, delivery);
        }
    }

    /// The simulated execution of a dispatch, the position of a unit in it when the dispatch started, and that start.
    fn window(
        &mut self,
        unit: u64,
        work: WorkIndex,
        now: Moment,
    ) -> Option<(Arc<WaveWindow>, u64, Moment)> {
        let dispatch = self.dispatches.get_mut(&work)?;
        let launched = &dispatch.launched;
        let window = dispatch.window.get_or_insert_with(|| {
            let (waves, resident) = (launched.waves_per_group, launched.resident);
            launched.code.window(waves, resident, self.seed)
        });
        // Each unit is at another position in the repeated window.
        let phase = (launched.work.0 * COMPUTE_UNITS + unit).wrapping_mul(GOLDEN);
        let phase = phase % window.cycles();
        Some((window.clone(), phase, dispatch.start.unwrap_or(now)))
    }

    fn visit_unit(
        &mut self,
        unit: u64,
        work: WorkIndex,
        (at, time): (Moment, DeviceTime),
        method: SamplingMethod,
        delivery: SampleDelivery,
    ) {
        let Some((window, phase, start)) = self.window(unit, work, at) else {
            return;
        };
        let visit = Visit {
            cycle: phase + cycles(at - start),
            turn: self.turn,
        };
        let seen = match method {
            SamplingMethod::STOCHASTIC => window.look(visit),
            _ => {
                let delay = WaveWindow::trap_delay(&mut self.random);
                window.trap(visit, delay)
            }
        };
        if let Some(seen) = seen {
            self.take(unit, work, (at, start, time), method, &seen, delivery);
        }
    }

    /// Takes a sample, unless the device's memory is full.
    fn take(
        &mut self,
        unit: u64,
        work: WorkIndex,
        times: (Moment, Moment, DeviceTime),
        method: SamplingMethod,
        seen: &SampledWave,
        delivery: SampleDelivery,
    ) {
        let Some(dispatch) = self.dispatches.get_mut(&work) else {
            return;
        };
        dispatch.total += 1;
        if self.memory.0 + 1_000 > DEVICE_SAMPLES * 1_000 {
            dispatch.dropped += 1;
            return;
        }
        self.memory.0 += 1_000;
        let buffered = dispatch.buffered(self.agent, method, unit, times, seen);
        match (delivery.deliver, buffered) {
            (Deliver::Aggregates, BufferedSample::HostTrap(sample)) => {
                self.aggregates.host_trap(&sample)
            }
            (Deliver::Aggregates, BufferedSample::Stochastic(sample)) => {
                self.aggregates.stochastic(&sample)
            }
            (_, buffered) => {
                self.buffered.push(buffered);
                if self.buffered.len() >= MAX_BUFFERED {
                    self.write_buffered();
                }
            }
        }
    }

    /// Writes the samples buffered in the device.
    fn write_buffered(&mut self) {
        let (Some(delivery), Some((host, recorder))) = (self.delivery, &mut self.host) else {
            return;
        };
        if self.buffered.is_empty() {
            return;
        }
        keep_room(recorder.as_ref());
        for buffered in self.buffered.drain(..) {
            let (written, work) = match buffered {
                BufferedSample::HostTrap(one) => (host.write_to(delivery.buffers, one), one.work),
                BufferedSample::Stochastic(one) => (host.write_to(delivery.buffers, one), one.work),
                BufferedSample::Invalid(one) => (host.write_to(delivery.buffers, one), one.work),
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

impl SampledDispatch {
    fn buffered(
        &self,
        agent: AgentId,
        method: SamplingMethod,
        unit: u64,
        (at, start, time): (Moment, Moment, DeviceTime),
        seen: &SampledWave,
    ) -> BufferedSample {
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
            return BufferedSample::Invalid(invalid);
        }
        let waves = (self.launched.waves_per_group as usize).max(1);
        let (slot, group) = (seen.slot as u64, (seen.slot / waves) as u64);
        let hardware = hardware(unit, self.launched.queue)
            .with_simd(slot % SIMDS as u64)
            .with_wave(slot / SIMDS as u64)
            .with_workgroup_slot(group);
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
            return BufferedSample::HostTrap(sample);
        }
        let issue = match seen.did {
            Did::Issued(kind) => Issue(0).with_issued(1).with_instruction(kind.0),
            Did::Waited(_) => Issue(0).with_instruction(InstructionType::NO_INST.0),
        };
        BufferedSample::Stochastic(StochasticSample {
            issue,
            snapshot: seen.snapshot,
            memory_counters: seen.counters,
            wave_count: seen.active,
            has_memory_counters: 1,
            ..sample.into()
        })
    }

    /// The workgroup in a slot: workgroups start in order as earlier ones end.
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
            Some(request) => vec![Configuration::active(request, &CONFIGURATIONS)],
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

    fn start(&self, to: SampleDelivery) {
        lock_std(&self.0).delivery = Some(to);
    }

    fn stop(&self) {
        let mut state = lock_std(&self.0);
        state.write_buffered();
        state.delivery = None;
    }

    fn flush(&self) {
        lock_std(&self.0).write_buffered();
    }
}
