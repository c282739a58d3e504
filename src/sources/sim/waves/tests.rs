//! Properties of the model for kernels of different kinds, and agreement of samples with a count of every cycle.

use super::*;
use crate::sim::random::{Purpose, Random};
use crate::sim::waves::unit::ComputeUnit;
use gputrail_record::{InstructionType, NotIssued, Snapshot};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// A kernel mix: its name, its waves per workgroup, its program.
struct Mix {
    name: &'static str,
    waves: usize,
    groups: usize,
    program: WaveProgram,
}

fn mix(name: &'static str, [waves, groups]: [usize; 2], text: &str) -> Mix {
    let program = WaveProgram::read(text).unwrap_or_else(|what| panic!("{name}: {what}"));
    Mix {
        name,
        waves,
        groups,
        program,
    }
}

/// Ten kernels, each busy or waiting in a way of its own.
fn mixes() -> Vec<Mix> {
    vec![
        mix(
            "memory-bound",
            [4, 8],
            "again:
             1 global_load_dwordx4 v[4:7], v[0:1], off
             s_waitcnt vmcnt(0)
             2 v_add_f32 v8, v4, v8
             3 s_cbranch_scc0 again ;x60
             s_endpgm",
        ),
        mix(
            "barrier-heavy",
            [8, 2],
            "again:
             1 ds_write_b32 v0, v1
             s_waitcnt lgkmcnt(0)
             2 s_barrier
             3 s_cbranch_execz rest
             ds_read_b128 v[4:7], v2
             s_waitcnt lgkmcnt(0)
             v_rcp_f32 v8, v4 ;lanes 1
             v_add_f32 v8, v8, v4 ;lanes 1
             v_sqrt_f32 v8, v8 ;lanes 1
             v_rcp_f32 v8, v8 ;lanes 1
             rest:
             4 s_barrier
             s_cbranch_scc0 again ;x40
             s_endpgm",
        ),
        mix(
            "matrix",
            [4, 4],
            "again:
             1 v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]
             v_mfma_f32_16x16x16_f16 a[4:7], v[4:5], v[2:3], a[4:7]
             v_mfma_f32_16x16x16_f16 a[8:11], v[0:1], v[6:7], a[8:11]
             v_mfma_f32_16x16x16_f16 a[12:15], v[4:5], v[6:7], a[12:15]
             s_cbranch_scc0 again ;x90
             s_endpgm",
        ),
        mix(
            "arithmetic chain",
            [1, 2],
            "again:
             1 v_fma_f32 v1, v1, v2, v3
             v_fma_f32 v1, v1, v2, v3
             v_fma_f32 v1, v1, v2, v3
             v_fma_f32 v1, v1, v2, v3
             s_cbranch_scc0 again ;x200
             s_endpgm",
        ),
        mix(
            "crowded arithmetic",
            [4, 10],
            "again:
             1 v_fma_f32 v1, v5, v2, v3
             v_fma_f32 v6, v7, v2, v3
             v_fma_f32 v8, v9, v2, v3
             v_fma_f32 v10, v11, v2, v3
             v_dual_fmac_f32 v12, v13, v14
             s_cbranch_scc0 again ;x200
             s_endpgm",
        ),
        mix(
            "local memory",
            [4, 6],
            "again:
             1 ds_read_b128 v[4:7], v0
             ds_read_b128 v[8:11], v1
             lds_direct_load v12
             s_waitcnt lgkmcnt(0)
             2 v_add_f32 v2, v4, v8
             s_cbranch_scc0 again ;x80
             s_endpgm",
        ),
        mix(
            "constants",
            [2, 4],
            "again:
             1 s_load_dwordx4 s[0:3], s[4:5], 0x0
             s_waitcnt lgkmcnt(0)
             2 s_add_u32 s6, s0, s1
             s_cbranch_scc0 again ;x100
             s_endpgm",
        ),
        mix(
            "textures and exports",
            [4, 8],
            "again:
             1 image_sample v[4:7], v[0:1], s[0:7]
             image_sample v[8:11], v[2:3], s[0:7]
             s_waitcnt vmcnt(1)
             2 v_mul_f32 v12, v4, v4
             3 exp mrt0, v12
             s_cbranch_scc0 again ;x40
             s_endpgm",
        ),
        mix(
            "sleepers",
            [1, 12],
            "again:
             1 s_sleep 2
             2 s_sendmsg sendmsg(MSG_INTERRUPT)
             s_nop 7
             s_branch on
             on:
             3 s_cbranch_scc0 again ;x30
             s_endpgm",
        ),
        mix(
            "short workgroups with stores",
            [4, 6],
            "1 s_load_dwordx2 s[0:1], s[4:5], 0x0
             2 global_load_dword v4, v[0:1], off
             s_waitcnt vmcnt(0) lgkmcnt(0)
             v_mul_f32 v5, v4, v4
             3 global_store_dwordx4 v[0:1], v[4:7], off
             s_waitcnt vscnt(0)
             s_endpgm",
        ),
    ]
}

impl Mix {
    /// The execution of the program on a unit, made once for all tests.
    fn window(&self) -> &'static WaveWindow {
        static WINDOWS: Mutex<BTreeMap<&str, &WaveWindow>> = Mutex::new(BTreeMap::new());
        let mut windows = WINDOWS.lock().unwrap();
        windows.entry(self.name).or_insert_with(|| {
            let random = Random::new(11);
            let window = WaveWindow::of(&self.program, self.waves, self.groups, random);
            Box::leak(Box::new(window))
        })
    }
}

/// The largest share, and what has it.
fn leading<K: Ord + Copy>(shares: &BTreeMap<K, f64>) -> K {
    let by_share = |a: &(&K, &f64), b: &(&K, &f64)| a.1.total_cmp(b.1);
    *shares.iter().max_by(by_share).unwrap().0
}

fn of(name: &str) -> BTreeMap<Did, f64> {
    let mix = mixes().into_iter().find(|mix| mix.name == name).unwrap();
    let window = mix.window();
    window.occupancy(0, window.cycles(), |seen| seen.did)
}

#[test]
fn stall_reasons_follow_from_the_instructions_of_waves() {
    use NotIssued as N;
    let leads = |name: &str, reason| {
        let shares = of(name);
        assert_eq!(leading(&shares), Did::Waited(reason), "{name}: {shares:?}");
    };
    leads("memory-bound", N::WAITCNT);
    leads("barrier-heavy", N::BARRIER_WAIT);
    leads("arithmetic chain", N::ALU_DEPENDENCY);
    leads("crowded arithmetic", N::ARBITER_NOT_WIN);
    leads("constants", N::WAITCNT);
    leads("sleepers", N::SLEEP_WAIT);
}

#[test]
fn a_well_fed_matrix_kernel_issues_as_often_as_its_pipes_can_take() {
    let mix = mixes()
        .into_iter()
        .find(|mix| mix.name == "matrix")
        .unwrap();
    let window = mix.window();
    let shares = window.occupancy(0, window.cycles(), |seen| seen.did);
    // A SIMD has four of the unit's sixteen waves, and an instruction keeps its matrix pipe busy for 32 cycles.
    let busy = shares[&Did::Issued(InstructionType::MATRIX)] * 4.0 * 32.0;
    assert!(busy > 0.97, "{busy}: {shares:?}");
    // The waves wait for each other.
    let (lost, stalled) = (NotIssued::ARBITER_NOT_WIN, NotIssued::ARBITER_WIN_EX_STALL);
    let contended = shares[&Did::Waited(lost)] + shares[&Did::Waited(stalled)];
    assert!(contended > 0.9, "{contended}");
}

#[test]
fn every_reason_and_type_comes_about() {
    let mut all: BTreeMap<Did, f64> = BTreeMap::new();
    for mix in mixes() {
        let window = mix.window();
        for (did, share) in window.occupancy(0, window.cycles(), |seen| seen.did) {
            *all.entry(did).or_default() += share;
        }
    }
    for (reason, name) in NotIssued::ALL.iter().skip(1) {
        assert!(all.contains_key(&Did::Waited(*reason)), "{name}");
    }
    for (kind, name) in InstructionType::ALL.iter().skip(1) {
        let can = *kind != InstructionType::NO_INST;
        assert_eq!(all.contains_key(&Did::Issued(*kind)), can, "{name}");
    }
}

/// Standard deviations by which a share of a sample may differ from the exact one. All comparisons of this file
/// together, less than a thousand, would fail by chance once in some 2 000 seeds (two-sided normal tail, 5.7e-7 each);
/// the seeds are fixed.
const DEVIATIONS: f64 = 5.0;

/// Whether the shares of `counts` are those of `exact` as far as the sample's size can tell: for each state `|n/N - p|
/// <= DEVIATIONS * sqrt(p (1 - p) / N) + 1 / N`, the normal approximation of the binomial interval with its correction
/// for small counts.
fn agrees<K: Ord + std::fmt::Debug>(
    counts: &BTreeMap<K, u64>,
    exact: &BTreeMap<K, f64>,
) -> Result<(), String> {
    let all: u64 = counts.values().sum();
    let size = all as f64;
    if let Some(unknown) = counts.keys().find(|key| !exact.contains_key(key)) {
        return Err(format!("{unknown:?} was sampled and cannot be"));
    }
    for (key, share) in exact {
        let sampled = counts.get(key).copied().unwrap_or(0) as f64 / size;
        let allowed = DEVIATIONS * (share * (1.0 - share) / size).sqrt() + 1.0 / size;
        if (sampled - share).abs() > allowed {
            return Err(format!(
                "{key:?}: {sampled} of {all} samples, exactly {share}"
            ));
        }
    }
    Ok(())
}

/// Samples of a kernel of so many cycles on so many units, as the device takes them: all units at the same moments, one
/// wave of each, in turn.
fn sample<K: Ord>(
    window: &WaveWindow,
    random: &mut Random,
    phases: &[u64],
    cycles: u64,
    interval: u64,
    mut look: impl FnMut(&WaveWindow, Visit, &mut Random) -> Option<K>,
) -> BTreeMap<K, u64> {
    let mut counts = BTreeMap::new();
    for turn in 0..cycles / interval {
        let moment = turn * interval + random.below(interval);
        for phase in phases {
            let visit = Visit {
                cycle: phase + moment,
                turn,
            };
            if let Some(key) = look(window, visit, random) {
                *counts.entry(key).or_insert(0) += 1;
            }
        }
    }
    counts
}

const UNITS: u64 = 4;
const INTERVAL: u64 = 1 << 10;
const KERNEL: u64 = 15_000 * INTERVAL + 7;

#[test]
fn samples_of_ten_mixes_show_what_counting_every_cycle_shows() {
    let mixes = mixes();
    assert_eq!(mixes.len(), 10);
    for (number, mix) in mixes.iter().enumerate() {
        let window = mix.window();
        let mut random = Random::new(100 + number as u64);
        let phases: Vec<u64> = (0..UNITS).map(|_| random.below(window.cycles())).collect();
        // Every cycle of every unit counts once.
        let mut exact: BTreeMap<Did, f64> = BTreeMap::new();
        for phase in &phases {
            let share = 1.0 / UNITS as f64;
            for (did, part) in window.occupancy(*phase, KERNEL, |seen| seen.did) {
                *exact.entry(did).or_default() += part * share;
            }
        }
        // The rest of a repetition, at which phases matter, is less than a thousandth of the kernel.
        let trapped = window.trapped(0, KERNEL, |seen| seen.instruction);
        assert!((exact.values().sum::<f64>() - 1.0).abs() < 1e-9);

        let stochastic = sample(
            window,
            &mut random,
            &phases,
            KERNEL,
            INTERVAL,
            |window, visit, _| window.look(visit).map(|seen| seen.did),
        );
        agrees(&stochastic, &exact).unwrap_or_else(|what| panic!("{}: {what}", mix.name));

        let host_trap = sample(
            window,
            &mut random,
            &phases,
            KERNEL,
            INTERVAL,
            |window, visit, random| {
                let delay = WaveWindow::trap_delay(random);
                window.trap(visit, delay).map(|seen| seen.instruction)
            },
        );
        agrees(&host_trap, &trapped).unwrap_or_else(|what| panic!("{}, traps: {what}", mix.name));
    }
}

#[test]
fn the_comparison_finds_a_sampler_that_prefers_some_waves_or_cycles() {
    let mixes = mixes();
    let mix = &mixes[1];
    let window = mix.window();
    let mut random = Random::new(1);
    let exact = window.occupancy(0, KERNEL, |seen| seen.did);
    // A sampler that overlooks a tenth of the waiting waves.
    let partial = sample(
        window,
        &mut random,
        &[0; 8],
        KERNEL,
        INTERVAL,
        |window, visit, random| {
            let seen = window.look(visit)?;
            let keep = matches!(seen.did, Did::Issued(_)) || random.below(10) > 0;
            keep.then_some(seen.did)
        },
    );
    assert!(agrees(&partial, &exact).is_err());
    // A sampler that always takes the first wave of a workgroup, which alone does the division.
    let first = sample(
        window,
        &mut random,
        &[0; 8],
        KERNEL,
        INTERVAL,
        |window, visit, _| {
            let visit = Visit { turn: 0, ..visit };
            window.look(visit).map(|seen| seen.did)
        },
    );
    assert!(agrees(&first, &exact).is_err());
    let other = mixes[0].window().occupancy(0, KERNEL, |seen| seen.did);
    assert!(agrees(&partial, &other).is_err());
}

#[test]
fn a_trap_is_at_most_two_instructions_late() {
    let mut late = [0u64; 3];
    for mix in mixes() {
        let window = mix.window();
        for cycle in 0..window.cycles() {
            let visit = Visit { cycle, turn: cycle };
            let (Some(exact), Some(trapped)) = (window.look(visit), window.trap(visit, 8)) else {
                continue;
            };
            // Where the wave is in the cycles that follow, and how many instructions it has issued by then.
            let mut issued = 0;
            let mut places = vec![(exact.instruction, 0)];
            for more in 0..8 {
                let row = |at| window.of_slot(cycle + at, exact.slot);
                if let (Some((_, did)), Some((after, _))) = (row(more), row(more + 1)) {
                    issued += usize::from(matches!(did, Did::Issued(_)));
                    places.push((after, issued));
                }
            }
            let found = places
                .iter()
                .find(|(place, _)| *place == trapped.instruction);
            let (_, issued) = found.unwrap_or_else(|| panic!("{}: {places:?}", mix.name));
            late[*issued] += 1;
        }
    }
    assert!(late.iter().all(|count| *count > 0), "{late:?}");
}

#[test]
fn instructions_are_numbered_in_the_order_of_their_cycles() {
    for mix in mixes() {
        let window = mix.window();
        let mut number = 0;
        for cycle in 0..2 * window.cycles() {
            assert_eq!(window.issued(cycle), number);
            for slot in 0..mix.waves * mix.groups {
                let wave = window.of_slot(cycle, slot);
                if let Some((instruction, did @ Did::Issued(_))) = wave {
                    let (at, seen) = window.instruction(number);
                    let expected = (cycle, slot, instruction, did);
                    assert_eq!((at, seen.slot, seen.instruction, seen.did), expected);
                    number += 1;
                }
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_window() {
    let mixes = mixes();
    let mix = mixes.iter().find(|mix| mix.name == "constants").unwrap();
    let of = |seed| {
        let window = WaveWindow::of(&mix.program, 2, 4, Random::new(seed));
        window.occupancy(0, window.cycles(), |seen| (seen.instruction, seen.did))
    };
    assert_eq!(of(3), of(3));
    assert_ne!(of(3), of(4));
}

/// Counts the instructions of one workgroup as the unit issues them, cycle by cycle.
#[test]
fn the_instructions_of_a_workgroup_are_those_that_the_unit_issues() {
    use super::unit::ComputeUnit;
    use crate::sim::events::{CountedEvent, EventCounts};
    use crate::sim::random::Purpose;
    use gputrail_record::Snapshot;

    for mix in mixes() {
        let random = Random::fork(3, Purpose::Sampling, 0);
        let mut unit = ComputeUnit::new(&mix.program, mix.waves, 1, random);
        let mut row = vec![None; unit.slots()];
        let mut arbiter = [Snapshot(0); SIMDS];
        let mut issued: BTreeMap<usize, u64> = BTreeMap::new();
        let mut has_begun = false;
        loop {
            unit.step(&mut row, &mut arbiter);
            let waves = row.iter().flatten();
            if has_begun && waves.clone().count() == 0 {
                break;
            }
            for wave in waves {
                has_begun = true;
                if let Did::Issued(_) = wave.did {
                    *issued.entry(wave.instruction.into()).or_default() += 1;
                }
            }
        }
        let counts = EventCounts::of_launch(&mix.program, 1, mix.waves as u64);
        let number = |of: &dyn Fn(&WaveOperation) -> bool| {
            let lines = issued.iter();
            let lines = lines.filter(|(line, _)| of(&mix.program.lines[**line].operation));
            lines.map(|(_, count)| count).sum::<u64>()
        };
        use WaveOperation::*;
        let name = mix.name;
        let vector = number(&|of| matches!(of, Vector { .. } | Matrix { .. }));
        assert_eq!(
            counts.get(CountedEvent::Instruction),
            number(&|_| true),
            "{name}"
        );
        assert_eq!(counts.get(CountedEvent::Vector), vector, "{name}");
        assert_eq!(
            counts.get(CountedEvent::Scalar),
            number(&|of| *of == Scalar),
            "{name}"
        );
        let loads = number(&|of| matches!(of, Load { .. }));
        assert_eq!(counts.get(CountedEvent::Load), loads, "{name}");
        let stores = number(&|of| matches!(of, Store { .. }));
        assert_eq!(counts.get(CountedEvent::Store), stores, "{name}");
        let local = number(&|of| matches!(of, Local { .. } | LocalDirect));
        assert_eq!(counts.get(CountedEvent::Local), local, "{name}");
        assert_eq!(
            counts.get(CountedEvent::Wave),
            number(&|of| *of == End),
            "{name}"
        );
    }
}

/// The executions of each instruction by `groups` workgroups, counted cycle by cycle in the slots of a unit.
fn issued_by_unit(mix: &Mix) -> Vec<u64> {
    let random = Random::fork(1, Purpose::Waves, 0);
    let mut unit = ComputeUnit::new(&mix.program, mix.waves, mix.groups, random);
    let mut row = vec![None; unit.slots()];
    let mut arbiter = [Snapshot(0); SIMDS];
    let mut issued = vec![0; mix.program.lines.len()];
    let last = mix.program.lines.len() - 1;
    // Each slot runs one wave: what it does after its end is another workgroup's.
    let mut ended = vec![false; row.len()];
    while !ended.iter().all(|ended| *ended) {
        unit.step(&mut row, &mut arbiter);
        for (cycle, ended) in row.iter().zip(&mut ended).filter(|(_, ended)| !**ended) {
            let Some(cycle) = cycle else { continue };
            if matches!(cycle.did, Did::Issued(_)) {
                issued[usize::from(cycle.instruction)] += 1;
                *ended = usize::from(cycle.instruction) == last;
            }
        }
    }
    issued
}

#[test]
fn executions_are_those_that_a_unit_issues_cycle_by_cycle() {
    for mix in mixes() {
        let groups = mix.groups.clamp(1, 40 / mix.waves) as u64;
        let executed = mix.program.executed(groups, mix.waves as u64);
        let executed: Vec<u64> = executed.iter().map(|one| one.times).collect();
        assert_eq!(executed, issued_by_unit(&mix), "{}", mix.name);
    }
}

#[test]
fn branches_diverge_and_strides_cost_transactions() {
    let text = "
        1 global_load_dword v4, v[0:1], s[0:1] ;stride 4
        global_load_dword v4, v[0:1], s[0:1] ;stride 100
        ds_write_b32 v2, v4 ;stride 8
        2 s_cbranch_execz done
        global_store_dword v[0:1], v4, s[0:1] ;lanes 1
        done:
        3 s_endpgm";
    let program = WaveProgram::read(text).unwrap();
    let transactions: Vec<_> = program
        .lines
        .iter()
        .map(|line| (line.access().transactions, line.access().ideal_transactions))
        .collect();
    assert_eq!(
        transactions,
        [(16, 4), (64, 4), (16, 2), (0, 0), (1, 1), (0, 0)]
    );
    let executed: Vec<_> = program
        .executed(3, 4)
        .iter()
        .map(|one| (one.times, one.diverged))
        .collect();
    assert_eq!(
        executed,
        [(12, 0), (12, 0), (12, 0), (12, 3), (3, 0), (12, 0)]
    );
}
