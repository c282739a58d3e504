//! A stretch of a compute unit's steady state, stored cycle by cycle, and its sampling.

use super::program::WaveProgram;
use super::unit::{ComputeUnit, Did, SIMDS, WaveCycle};
use crate::sim::random::Random;
use gputrail_record::{MemoryCounters, Snapshot};
#[cfg(test)]
use std::collections::BTreeMap;

/// Cycles of a window: a prime, so that it is no multiple of the length of a loop.
const CYCLES: usize = 4_099;
/// Cycles simulated before the window.
const WARM_UP: usize = 4_000;
/// The most cycles that a trap takes to stop a wave.
const TRAP: u64 = 8;
/// The most instructions that a wave executes before it stops for a trap.
pub(in crate::sim) const SKID: u32 = 2;

/// The execution of a kernel on one compute unit. It repeats while the kernel runs.
pub(in crate::sim) struct WaveWindow {
    slots: usize,
    /// By cycle and slot.
    waves: Vec<Option<WaveCycle>>,
    /// By cycle.
    arbiter: Vec<[Snapshot; SIMDS]>,
    active: Vec<u8>,
    /// The instructions issued before each cycle, and in all.
    issued: Vec<u64>,
}

/// Selects the wave to sample: each visit to a unit takes the next active one.
#[derive(Copy, Clone, Debug)]
pub(in crate::sim) struct Visit {
    /// The cycle of the kernel on this unit.
    pub cycle: u64,
    /// The number of the visit.
    pub turn: u64,
}

/// The state of a sampled wave.
#[derive(Copy, Clone, Debug)]
pub(in crate::sim) struct SampledWave {
    /// The index of its instruction.
    pub instruction: usize,
    pub did: Did,
    pub counters: MemoryCounters,
    /// The state of the arbiter of its SIMD, with the reason if the wave did not issue.
    pub snapshot: Snapshot,
    /// The wave's slot.
    pub slot: usize,
    /// The number of active waves on the unit.
    pub active: u32,
    /// The wave ended before the trap stopped it.
    pub ended: bool,
}

/// The share of each state among active waves, averaged over cycles. The shares add up to 1.
#[cfg(test)]
pub(in crate::sim) type Occupancy<K> = BTreeMap<K, f64>;

fn did_issue(wave: &Option<WaveCycle>) -> bool {
    wave.is_some_and(|wave| matches!(wave.did, Did::Issued(_)))
}

impl WaveWindow {
    /// Runs `program` on a unit with `groups` workgroups of `waves_per_group` waves.
    pub fn of(
        program: &WaveProgram,
        waves_per_group: usize,
        groups: usize,
        random: Random,
    ) -> WaveWindow {
        let mut unit = ComputeUnit::new(program, waves_per_group, groups, random);
        let slots = unit.slots();
        let mut row = vec![None; slots];
        let mut arbiter = [Snapshot(0); SIMDS];
        let mut window = WaveWindow {
            slots,
            waves: Vec::with_capacity(slots * CYCLES),
            arbiter: Vec::with_capacity(CYCLES),
            active: Vec::with_capacity(CYCLES),
            issued: Vec::with_capacity(CYCLES + 1),
        };
        let mut issued = 0;
        window.issued.push(issued);
        for _ in 0..WARM_UP {
            unit.step(&mut row, &mut arbiter);
        }
        while window.arbiter.len() < CYCLES {
            unit.step(&mut row, &mut arbiter);
            window.active.push(row.iter().flatten().count() as u8);
            issued += row.iter().filter(|wave| did_issue(wave)).count() as u64;
            window.issued.push(issued);
            window.waves.extend_from_slice(&row);
            window.arbiter.push(arbiter);
        }
        window
    }

    /// The length of the window in cycles.
    pub fn cycles(&self) -> u64 {
        CYCLES as u64
    }

    fn at(&self, cycle: u64) -> (usize, &[Option<WaveCycle>]) {
        let cycle = (cycle % CYCLES as u64) as usize;
        (cycle, &self.waves[cycle * self.slots..][..self.slots])
    }

    /// Samples with the sampling hardware. Returns `None` if no wave is active in that cycle.
    pub fn look(&self, visit: Visit) -> Option<SampledWave> {
        let (cycle, row) = self.at(visit.cycle);
        let active = self.active[cycle];
        if active == 0 {
            return None;
        }
        let mut left = (visit.turn % u64::from(active)) as usize;
        let is_it = |wave: &&Option<WaveCycle>| wave.is_some();
        let slot = if usize::from(active) == row.len() {
            left
        } else {
            row.iter().position(|wave| {
                let found = is_it(&wave) && left == 0;
                left -= usize::from(is_it(&wave) && !found);
                found
            })?
        };
        self.seen(cycle, slot)
    }

    /// The number of instructions issued before `cycle`.
    pub fn issued(&self, cycle: u64) -> u64 {
        let (whole, rest) = (cycle / self.cycles(), cycle % self.cycles());
        whole * self.issued[CYCLES] + self.issued[rest as usize]
    }

    /// The cycle in which the instruction with this number is issued, and the wave that issues it.
    ///
    /// # Panics
    ///
    /// If no instruction is ever issued.
    pub fn instruction(&self, number: u64) -> (u64, SampledWave) {
        let all = self.issued[CYCLES];
        let (whole, rest) = (number / all, number % all);
        let cycle = self.issued.partition_point(|before| *before <= rest) - 1;
        let (_, row) = self.at(cycle as u64);
        let mut issuing = (0..row.len()).filter(|slot| did_issue(&row[*slot]));
        let slot = issuing.nth((rest - self.issued[cycle]) as usize);
        let seen = slot.and_then(|slot| self.seen(cycle, slot));
        let seen = seen.expect("the count of the cycle is that of its waves");
        (whole * self.cycles() + cycle as u64, seen)
    }

    /// The wave in `slot`, in a cycle of the window.
    fn seen(&self, cycle: usize, slot: usize) -> Option<SampledWave> {
        let active = self.active[cycle];
        let wave = self.waves[cycle * self.slots + slot]?;
        let mut snapshot = self.arbiter[cycle][slot % SIMDS];
        if let Did::Waited(reason) = wave.did {
            snapshot = snapshot.with_reason_not_issued(reason.0.into());
        }
        Some(SampledWave {
            instruction: wave.instruction.into(),
            did: wave.did,
            counters: wave.counters,
            snapshot,
            slot,
            active: active.into(),
            ended: false,
        })
    }

    /// Samples with a trap that takes `delay` cycles to stop the wave, which executes at most [`SKID`] instructions
    /// meanwhile.
    pub fn trap(&self, visit: Visit, delay: u64) -> Option<SampledWave> {
        let mut seen = self.look(visit)?;
        let mut issued = 0;
        for later in 0..delay {
            let (_, row) = self.at(visit.cycle + later);
            let Some(wave) = row[seen.slot] else {
                break;
            };
            if did_issue(&Some(wave)) {
                issued += 1;
            }
            let (_, row) = self.at(visit.cycle + later + 1);
            let Some(after) = row[seen.slot] else {
                seen.ended = true;
                break;
            };
            seen.instruction = after.instruction.into();
            if issued == SKID {
                break;
            }
        }
        Some(seen)
    }

    /// A random delay of a trap.
    pub fn trap_delay(random: &mut Random) -> u64 {
        random.below(TRAP + 1)
    }

    /// The instruction and activity of the wave in `slot`.
    #[cfg(test)]
    pub fn of_slot(&self, cycle: u64, slot: usize) -> Option<(usize, Did)> {
        let (_, row) = self.at(cycle);
        row[slot].map(|wave| (wave.instruction.into(), wave.did))
    }

    /// The exact shares of all outcomes of [`WaveWindow::look`] over a kernel of `cycles` cycles that starts at `phase`.
    /// Cycles have equal weight, and so have the active waves of a cycle.
    #[cfg(test)]
    pub fn occupancy<K: Ord>(
        &self,
        phase: u64,
        cycles: u64,
        what: impl Fn(&SampledWave) -> K,
    ) -> Occupancy<K> {
        self.count(phase, cycles, |cycle, turn, add| {
            if let Some(seen) = self.look(Visit { cycle, turn }) {
                add(what(&seen), 1.0);
            }
        })
    }

    /// Like [`WaveWindow::occupancy`] for traps, with equal weight for each delay.
    #[cfg(test)]
    pub fn trapped<K: Ord>(
        &self,
        phase: u64,
        cycles: u64,
        what: impl Fn(&SampledWave) -> K,
    ) -> Occupancy<K> {
        self.count(phase, cycles, |cycle, turn, add| {
            for delay in 0..=TRAP {
                if let Some(seen) = self.trap(Visit { cycle, turn }, delay) {
                    add(what(&seen), 1.0 / (TRAP + 1) as f64);
                }
            }
        })
    }

    #[cfg(test)]
    fn count<K: Ord>(
        &self,
        phase: u64,
        cycles: u64,
        look: impl Fn(u64, u64, &mut dyn FnMut(K, f64)),
    ) -> Occupancy<K> {
        let mut shares: Occupancy<K> = BTreeMap::new();
        let mut all = 0.0;
        // Complete repetitions.
        let (whole, rest) = (cycles / self.cycles(), cycles % self.cycles());
        for cycle in 0..self.cycles() {
            let times = (whole + u64::from(cycle < rest)) as f64;
            let at = phase + cycle;
            let active = self.active[(at % self.cycles()) as usize];
            for turn in 0..u64::from(active) {
                look(at, turn, &mut |key, share| {
                    let share = share * times / f64::from(active);
                    *shares.entry(key).or_default() += share;
                    all += share;
                });
            }
        }
        shares.values_mut().for_each(|share| *share /= all);
        shares
    }
}
