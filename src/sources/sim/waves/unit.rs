//! A compute unit, cycle by cycle.
//!
//! Four SIMDs have slots for waves. In each cycle, for each type of instruction, the arbiter of a SIMD picks one wave
//! whose next instruction has that type and is ready. The execution pipe accepts it or, if busy, rejects it. Each wave
//! has an instruction buffer, which one port of the instruction cache fills and a taken branch empties. The SIMDs of
//! the unit share vector and scalar memory, local memory and textures.

use super::program::{
    REGISTERS, Registers, TEXEL_BYTES, WaveInstruction, WaveOperation, WaveProgram,
};
use crate::sim::random::Random;
use gputrail_record::{InstructionType, MemoryCounters, NotIssued, Snapshot};
use std::collections::VecDeque;

/// SIMDs of a compute unit.
pub(in crate::sim) const SIMDS: usize = 4;
/// Wave slots of a SIMD.
const SLOTS: usize = 10;

/// Instructions in a wave's buffer.
const BUFFER: u32 = 8;
/// Instructions per fetch.
const FETCH: u32 = 4;
/// Cycles from the grant of a fetch to its instructions.
const FETCH_LATENCY: u64 = 11;
/// Latency of arithmetic in cycles.
const ALU_LATENCY: u64 = 8;
const SCALAR_LATENCY: u64 = 4;
/// Latency of memory without contention in cycles: minimum and spread.
const MEMORY_LATENCY: (u64, u64) = (320, 240);
const TEXTURE_LATENCY: (u64, u64) = (400, 200);
const SCALAR_MEMORY_LATENCY: (u64, u64) = (90, 60);
const LOCAL_LATENCY: u64 = 64;
/// Memory bandwidth of one compute unit, in bytes per cycle.
const MEMORY_BYTES: u64 = 48;
/// The most vector memory operations in flight per unit.
const IN_FLIGHT: usize = 64;
/// Cycles that a texture operation occupies its pipe.
const TEXTURE_CYCLES: u64 = 16;
/// One in this many vector memory operations misses its address translation, and the wave waits for the
/// acknowledgement.
const TRANSLATIONS: u64 = 96;
const TRANSLATION_LATENCY: u64 = 180;
/// Cycles from the end of a workgroup to the start of the next one in its slots.
const LAUNCH_LATENCY: u64 = 48;

/// The activity of a wave in a cycle.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::sim) enum Did {
    /// It issued an instruction of this type.
    Issued(InstructionType),
    /// It did not issue, for this reason.
    Waited(NotIssued),
}

/// The state of a wave in a cycle.
#[derive(Copy, Clone, Debug)]
pub(super) struct WaveCycle {
    /// The index of the instruction.
    pub instruction: u16,
    pub did: Did,
    pub counters: MemoryCounters,
}

/// Instruction types with separate arbitration.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Port {
    Vector,
    Matrix,
    Local,
    LocalDirect,
    Scalar,
    Texture,
    Flat,
    Export,
    Misc,
    Branch,
}

const PORTS: [Port; 10] = [
    Port::Vector,
    Port::Matrix,
    Port::Local,
    Port::LocalDirect,
    Port::Scalar,
    Port::Texture,
    Port::Flat,
    Port::Export,
    Port::Misc,
    Port::Branch,
];

fn port(operation: WaveOperation) -> Port {
    match operation {
        WaveOperation::Vector { .. } => Port::Vector,
        WaveOperation::Matrix { .. } => Port::Matrix,
        WaveOperation::Scalar | WaveOperation::ScalarLoad => Port::Scalar,
        WaveOperation::Load { .. } | WaveOperation::Store { .. } => Port::Flat,
        WaveOperation::Texture => Port::Texture,
        WaveOperation::Local { .. } => Port::Local,
        WaveOperation::LocalDirect => Port::LocalDirect,
        WaveOperation::Export => Port::Export,
        WaveOperation::Branch { .. }
        | WaveOperation::Skip { .. }
        | WaveOperation::Jump { .. }
        | WaveOperation::Message => Port::Branch,
        _ => Port::Misc,
    }
}

/// The port's bit among issued instructions. The bit of stalled ones is 11 higher.
fn bit(port: Port) -> u32 {
    1 << (5 + port as u32)
}

/// The state of a wave.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum WaveState {
    Runs,
    /// Until this cycle.
    Sleeps(u64),
    /// Executes an internal instruction.
    Internal(u64),
    /// Waits for another cause until this cycle.
    Other(u64),
    /// Waits at the barrier.
    Meets,
    Ended,
}

struct Wave {
    state: WaveState,
    next: u32,
    /// Instructions in the buffer.
    buffered: u32,
    /// When the fetch in flight arrives.
    fetch: Option<u64>,
    /// When each register is ready.
    ready: Box<[u64; REGISTERS]>,
    /// When the operands of the next instruction are ready.
    operands: u64,
    /// How often each branch has been taken, by its index.
    turns: Vec<u32>,
    loads: VecDeque<u64>,
    textures: VecDeque<u64>,
    stores: VecDeque<u64>,
    locals: VecDeque<u64>,
    scalars: VecDeque<u64>,
}

/// A compute unit; see the module.
pub(super) struct ComputeUnit<'a> {
    program: &'a WaveProgram,
    waves_per_group: usize,
    waves: Vec<Wave>,
    /// When the next workgroup starts in the slots of one that has ended.
    launches: Vec<Option<u64>>,
    now: u64,
    random: Random,
    /// The wave with the highest priority, for each SIMD and port.
    first: [[usize; PORTS.len()]; SIMDS],
    vector: [u64; SIMDS],
    matrix: [u64; SIMDS],
    flat: u64,
    texture: u64,
    local: u64,
    /// When all requested memory accesses are complete.
    memory: u64,
    in_flight: VecDeque<u64>,
    operations: u64,
    first_to_fetch: usize,
}

impl Wave {
    fn new(program: &WaveProgram) -> Wave {
        Wave {
            state: WaveState::Runs,
            next: 0,
            buffered: 0,
            fetch: None,
            ready: Box::new([0; REGISTERS]),
            operands: 0,
            turns: vec![0; program.lines.len()],
            loads: VecDeque::new(),
            textures: VecDeque::new(),
            stores: VecDeque::new(),
            locals: VecDeque::new(),
            scalars: VecDeque::new(),
        }
    }

    fn complete(&mut self, now: u64) {
        for queue in [
            &mut self.loads,
            &mut self.textures,
            &mut self.stores,
            &mut self.locals,
            &mut self.scalars,
        ] {
            while queue.front().is_some_and(|at| *at <= now) {
                queue.pop_front();
            }
        }
    }

    fn counters(&self) -> MemoryCounters {
        let count = |queue: &VecDeque<u64>, most: usize| queue.len().min(most) as u32;
        MemoryCounters(0)
            .with_load(count(&self.loads, 63))
            .with_store(count(&self.stores, 63))
            .with_sample(count(&self.textures, 63))
            .with_lds(count(&self.locals, 63))
            .with_scalar(count(&self.scalars, 31))
    }

    /// Updates the operands after a change of the next instruction.
    fn decode(&mut self, program: &WaveProgram) {
        let reads = &program.lines[self.next as usize].reads;
        let of = |range: &Registers| {
            let range = range.first as usize..(range.first + range.count) as usize;
            self.ready[range].iter().copied().max().unwrap_or(0)
        };
        self.operands = reads.iter().map(of).max().unwrap_or(0);
    }

    fn writes(&mut self, registers: Option<Registers>, at: u64) {
        if let Some(Registers { first, count }) = registers {
            self.ready[first as usize..(first + count) as usize].fill(at);
        }
    }
}

/// Adds an operation that completes no earlier than the previous ones.
fn in_order(queue: &mut VecDeque<u64>, at: u64) {
    let at = queue.back().map_or(at, |last| at.max(*last));
    queue.push_back(at);
}

impl<'a> ComputeUnit<'a> {
    /// Creates a unit with at most `groups` workgroups, as many as fit.
    pub fn new(
        program: &'a WaveProgram,
        waves_per_group: usize,
        groups: usize,
        random: Random,
    ) -> Self {
        let waves_per_group = waves_per_group.clamp(1, SIMDS * SLOTS);
        let groups = groups.clamp(1, SIMDS * SLOTS / waves_per_group);
        let mut unit = ComputeUnit {
            program,
            waves_per_group,
            waves: (0..groups * waves_per_group)
                .map(|_| Wave::new(program))
                .collect(),
            launches: vec![None; groups],
            now: 0,
            random,
            first: [[0; PORTS.len()]; SIMDS],
            vector: [0; SIMDS],
            matrix: [0; SIMDS],
            flat: 0,
            texture: 0,
            local: 0,
            memory: 0,
            in_flight: VecDeque::new(),
            operations: 0,
            first_to_fetch: 0,
        };
        // Workgroups start one after the other.
        for group in 0..groups {
            let at = LAUNCH_LATENCY * (1 + group as u64);
            unit.launches[group] = Some(at);
            unit.of_group(group)
                .for_each(|wave| wave.state = WaveState::Ended);
        }
        unit
    }

    pub fn slots(&self) -> usize {
        self.waves.len()
    }

    fn of_group(&mut self, group: usize) -> impl Iterator<Item = &mut Wave> {
        let size = self.waves_per_group;
        self.waves[group * size..(group + 1) * size].iter_mut()
    }

    /// Simulates one cycle. Yields the state of each slot (`None` without an active wave) and the arbiter bits of each
    /// SIMD.
    pub fn step(&mut self, waves: &mut [Option<WaveCycle>], arbiter: &mut [Snapshot; SIMDS]) {
        self.launch();
        while self.in_flight.front().is_some_and(|at| *at <= self.now) {
            self.in_flight.pop_front();
        }
        self.fetch();
        for (slot_index, cycle) in waves.iter_mut().enumerate() {
            *cycle = self.before_issue(slot_index);
        }
        for (simd, bits) in arbiter.iter_mut().enumerate() {
            *bits = self.arbitrate(simd, waves);
        }
        self.meet();
        self.now += 1;
    }

    /// Starts workgroups in the slots of those that have ended.
    fn launch(&mut self) {
        for group in 0..self.launches.len() {
            let launch = self.launches[group];
            match launch {
                Some(at) if at <= self.now => {
                    self.launches[group] = None;
                    let program = self.program;
                    self.of_group(group).for_each(|wave| {
                        *wave = Wave::new(program);
                        wave.decode(program);
                    });
                }
                Some(_) => {}
                None if self
                    .of_group(group)
                    .all(|wave| wave.state == WaveState::Ended) =>
                {
                    self.launches[group] = Some(self.now + LAUNCH_LATENCY);
                }
                None => {}
            }
        }
    }

    /// Delivers fetched instructions, and grants one wave's fetch.
    fn fetch(&mut self) {
        let count = self.waves.len();
        let now = self.now;
        for wave in &mut self.waves {
            if wave.fetch.is_some_and(|at| at <= now) {
                wave.fetch = None;
                wave.buffered = (wave.buffered + FETCH).min(BUFFER);
            }
        }
        let wants = |wave: &Wave| {
            wave.state != WaveState::Ended
                && wave.fetch.is_none()
                && wave.buffered <= BUFFER - FETCH
        };
        let in_turn = (0..count).map(|more| (self.first_to_fetch + more) % count);
        let hungry = in_turn
            .filter(|slot_index| wants(&self.waves[*slot_index]))
            .min_by_key(|slot_index| self.waves[*slot_index].buffered);
        if let Some(slot_index) = hungry {
            self.waves[slot_index].fetch = Some(now + FETCH_LATENCY);
            self.first_to_fetch = slot_index + 1;
        }
    }

    /// The reason that keeps the wave from arbitration, or [`NotIssued::ARBITER_NOT_WIN`] if there is none.
    fn before_issue(&mut self, slot_index: usize) -> Option<WaveCycle> {
        let (now, program) = (self.now, self.program);
        let wave = &mut self.waves[slot_index];
        wave.complete(now);
        let over = |until: u64| until <= now;
        let reason = match wave.state {
            WaveState::Ended => return None,
            WaveState::Sleeps(until) if !over(until) => NotIssued::SLEEP_WAIT,
            WaveState::Internal(until) if !over(until) => NotIssued::INTERNAL_INSTRUCTION,
            WaveState::Other(until) if !over(until) => NotIssued::OTHER_WAIT,
            WaveState::Meets => NotIssued::BARRIER_WAIT,
            _ => {
                wave.state = WaveState::Runs;
                let next = &program.lines[wave.next as usize];
                let count = |queue: &VecDeque<u64>| queue.len() as u32;
                match next.operation {
                    _ if wave.buffered == 0 => NotIssued::NO_INSTRUCTION_AVAILABLE,
                    WaveOperation::Wait { load, store, local }
                        if count(&wave.loads) + count(&wave.textures) > load
                            || count(&wave.stores) > store
                            || count(&wave.locals) + count(&wave.scalars) > local =>
                    {
                        NotIssued::WAITCNT
                    }
                    _ if wave.operands > now => NotIssued::ALU_DEPENDENCY,
                    _ => NotIssued::ARBITER_NOT_WIN,
                }
            }
        };
        Some(WaveCycle {
            instruction: wave.next as u16,
            did: Did::Waited(reason),
            counters: wave.counters(),
        })
    }

    /// Issues or rejects one wave of `simd` per port.
    fn arbitrate(&mut self, simd: usize, cycles: &mut [Option<WaveCycle>]) -> Snapshot {
        let mut bits = Snapshot(0);
        let ready = Did::Waited(NotIssued::ARBITER_NOT_WIN);
        let here = cycles.len().saturating_sub(simd).div_ceil(SIMDS);
        for port_of in PORTS {
            let first = self.first[simd][port_of as usize];
            let wants = |slot: &usize| {
                let slot_index = slot * SIMDS + simd;
                cycles[slot_index].is_some_and(|cycle| {
                    let next = &self.program.lines[cycle.instruction as usize];
                    cycle.did == ready && port(next.operation) == port_of
                })
            };
            let winner = (0..here).map(|more| (first + more) % here).find(wants);
            let Some(slot) = winner else {
                continue;
            };
            let slot_index = slot * SIMDS + simd;
            let did = match self.issue(simd, slot_index) {
                Some(kind) => {
                    self.first[simd][port_of as usize] = slot + 1;
                    bits.0 |= bit(port_of);
                    if kind == InstructionType::DUAL_VALU {
                        bits = bits.with_dual_issue_valu(1);
                    }
                    Did::Issued(kind)
                }
                None => {
                    // A rejected wave keeps the priority.
                    self.first[simd][port_of as usize] = slot;
                    bits.0 |= bit(port_of) << 11;
                    Did::Waited(NotIssued::ARBITER_WIN_EX_STALL)
                }
            };
            if let Some(cycle) = &mut cycles[slot_index] {
                cycle.did = did;
            }
        }
        bits
    }

    /// Issues the wave's next instruction and returns its type, or `None` if the pipe rejects it.
    fn issue(&mut self, simd: usize, slot_index: usize) -> Option<InstructionType> {
        use WaveOperation::*;
        let (now, program) = (self.now, self.program);
        let line = &program.lines[index_of(&self.waves[slot_index])];
        let mut state = WaveState::Runs;
        let mut next = self.waves[slot_index].next + 1;
        let mut jumps = false;
        let kind = match line.operation {
            Vector { cycles, dual } => {
                take(&mut self.vector[simd], now, cycles.into())?;
                let at = now + ALU_LATENCY + u64::from(cycles) - 4;
                self.waves[slot_index].writes(line.writes, at);
                if dual {
                    InstructionType::DUAL_VALU
                } else {
                    InstructionType::VALU
                }
            }
            Matrix { cycles } => {
                take(&mut self.matrix[simd], now, cycles.into())?;
                let at = now + u64::from(cycles) + ALU_LATENCY;
                self.waves[slot_index].writes(line.writes, at);
                InstructionType::MATRIX
            }
            Scalar => {
                self.waves[slot_index].writes(line.writes, now + SCALAR_LATENCY);
                InstructionType::SCALAR
            }
            ScalarLoad => {
                let at = now + self.latency(SCALAR_MEMORY_LATENCY);
                in_order(&mut self.waves[slot_index].scalars, at);
                InstructionType::SCALAR
            }
            Load { bytes } | Store { bytes } => {
                if self.in_flight.len() >= IN_FLIGHT {
                    return None;
                }
                take(&mut self.flat, now, u64::from(bytes))?;
                let at = self.memory_access(line, bytes, MEMORY_LATENCY);
                let wave = &mut self.waves[slot_index];
                match line.operation {
                    Load { .. } => in_order(&mut wave.loads, at),
                    _ => in_order(&mut wave.stores, at),
                }
                if self.operations.is_multiple_of(TRANSLATIONS) {
                    state = WaveState::Other(now + TRANSLATION_LATENCY);
                }
                InstructionType::FLAT
            }
            Texture => {
                if self.in_flight.len() >= IN_FLIGHT {
                    return None;
                }
                take(&mut self.texture, now, TEXTURE_CYCLES)?;
                let at = self.memory_access(line, TEXEL_BYTES, TEXTURE_LATENCY);
                in_order(&mut self.waves[slot_index].textures, at);
                InstructionType::TEX
            }
            Local { bytes } => {
                let cycles = line.local_cycles(bytes);
                take(&mut self.local, now, cycles)?;
                in_order(
                    &mut self.waves[slot_index].locals,
                    now + LOCAL_LATENCY + cycles,
                );
                InstructionType::LDS
            }
            LocalDirect => {
                in_order(&mut self.waves[slot_index].locals, now + LOCAL_LATENCY);
                InstructionType::LDS_DIRECT
            }
            Wait { .. } => InstructionType::OTHER,
            Barrier => {
                state = WaveState::Meets;
                InstructionType::BARRIER
            }
            Branch { to, times } => {
                let turns = &mut self.waves[slot_index].turns[next as usize - 1];
                if *turns < times {
                    *turns += 1;
                    (next, jumps) = (to, true);
                    InstructionType::BRANCH_TAKEN
                } else {
                    *turns = 0;
                    InstructionType::BRANCH_NOT_TAKEN
                }
            }
            Skip { to } => {
                if slot_index.is_multiple_of(self.waves_per_group) {
                    InstructionType::BRANCH_NOT_TAKEN
                } else {
                    (next, jumps) = (to, true);
                    InstructionType::BRANCH_TAKEN
                }
            }
            Jump { to } => {
                (next, jumps) = (to, true);
                InstructionType::JUMP
            }
            Sleep { cycles } => {
                state = WaveState::Sleeps(now + 1 + u64::from(cycles));
                InstructionType::OTHER
            }
            Internal { cycles } => {
                state = WaveState::Internal(now + 1 + u64::from(cycles));
                InstructionType::OTHER
            }
            Message => InstructionType::MESSAGE,
            Export => InstructionType::EXPORT,
            End => {
                state = WaveState::Ended;
                InstructionType::OTHER
            }
        };
        let wave = &mut self.waves[slot_index];
        wave.state = state;
        if !matches!(state, WaveState::Ended | WaveState::Meets) {
            wave.next = next;
            wave.buffered -= 1;
            if jumps {
                (wave.buffered, wave.fetch) = (0, None);
            }
            wave.decode(program);
        }
        Some(kind)
    }

    fn latency(&mut self, (least, spread): (u64, u64)) -> u64 {
        least + self.random.below(spread)
    }

    /// When a memory access to `bytes` for each lane of `line` completes.
    fn memory_access(&mut self, line: &WaveInstruction, bytes: u32, latency: (u64, u64)) -> u64 {
        self.operations += 1;
        let (whole, small) = line.requests(bytes);
        let cycles = (64 * whole + 32 * small).div_ceil(MEMORY_BYTES);
        self.memory = self.memory.max(self.now) + cycles;
        let at = (self.now + self.latency(latency)).max(self.memory);
        in_order(&mut self.in_flight, at);
        at
    }

    /// Releases the barriers that all waves of a workgroup have reached.
    fn meet(&mut self) {
        let program = self.program;
        for group in 0..self.launches.len() {
            let met = |wave: &mut Wave| matches!(wave.state, WaveState::Meets | WaveState::Ended);
            if self.launches[group].is_some() || !self.of_group(group).all(met) {
                continue;
            }
            for wave in self
                .of_group(group)
                .filter(|wave| wave.state == WaveState::Meets)
            {
                wave.state = WaveState::Runs;
                wave.next += 1;
                wave.buffered -= 1;
                wave.decode(program);
            }
        }
    }
}

fn index_of(wave: &Wave) -> usize {
    wave.next as usize
}

/// Occupies a pipe for `cycles`. Returns `None` if it is busy.
fn take(pipe: &mut u64, now: u64, cycles: u64) -> Option<()> {
    if *pipe > now {
        return None;
    }
    *pipe = now + cycles.max(1);
    Some(())
}
