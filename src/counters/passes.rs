//! Passes: the fewest runs of a kernel in which the hardware can count what is wanted.
//!
//! A block counts so many events at a time. A counter that the hardware adds up over time takes two places of its block: that
//! of the event and the one behind it, which adds it up. Counters of different blocks do not hinder each other, and one
//! metric's counters may be counted in different passes; so the number of passes is that of the block that needs the most,
//! and filling each block with its larger counters first reaches it. A test compares it with an exhaustive search.
//!
//! Passes of NVIDIA's metrics come from NVIDIA's library instead. A test compares the two, with 20 counters (or all) of six units of a
//! GH100, and as capacity the number of counters that the library has in one pass. The library's passes and the planner's are 1 and 1
//! (dram), 4 and 3 (lts), 4 and 5 (l1tex), 4 and 3 (smsp), 3 and 5 (sm), 2 and 3 (fbpa) in 12.9; in 13.0 those of lts are 5 and 4. The
//! library needs fewer where counters share events of the hardware, and more where one needs several places or a certain one, which
//! nothing but the library tells.

use super::catalogue::{Architecture, BlockIndex, CounterIndex, Definition};
use super::expression::Resolution;
use gputrail_record::count;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

/// A basic counter, as the hardware is to count it.
pub type Counted = (CounterIndex, Resolution);

/// The passes for some counters and metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The basic counters of each pass.
    pub passes: Vec<Vec<Counted>>,
    /// The number of passes that each block needs. Those that need the most decide.
    pub needed: BTreeMap<BlockIndex, usize>,
}

/// Why counters cannot be counted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    /// The block counts too few events at a time, or none.
    #[error("{counter} needs {} of block {block}, which has {capacity}", count((*places).into(), "place"))]
    TooLarge {
        /// The counter.
        counter: String,
        /// The places that it needs.
        places: u32,
        /// The block.
        block: String,
        /// The number of events that it counts at a time.
        capacity: u32,
    },
    /// A metric needs more counters than a pass may have.
    #[error("{counter} needs {} in one pass, which may have {limit}", count((*counters).into(), "counter"))]
    Limit {
        /// The metric.
        counter: String,
        /// The number of its counters.
        counters: u32,
        /// The most counters of a pass.
        limit: u32,
    },
    /// One pass was asked for.
    #[error(
        "{} and {} need {}: block {block} counts {} at a time",
        .counters[0],
        count(.counters.len() as u64 - 1, "other"),
        count(*passes as u64, "pass"),
        count((*capacity).into(), "event")
    )]
    OnePass {
        /// The counters of the block that needs the most passes.
        counters: Vec<String>,
        /// The number of passes.
        passes: usize,
        /// The block.
        block: String,
        /// The number of events that it counts at a time.
        capacity: u32,
    },
}

/// The places that a counter takes in its block.
fn places(resolution: Resolution) -> u32 {
    match resolution {
        Resolution::None => 1,
        Resolution::Low | Resolution::High => 2,
    }
}

/// Plans the passes for `wanted`. A block whose capacity is not known counts one event at a time.
///
/// # Errors
///
/// [`Impossible::TooLarge`]
pub fn plan(architecture: &Architecture, wanted: &[CounterIndex]) -> Result<Plan, Impossible> {
    plan_limited(architecture, wanted, None)
}

/// As [`plan`], with at most `per_pass` counters in each pass, whatever their blocks. The first fit is taken, which may be
/// more passes than the fewest.
///
/// # Errors
///
/// [`Impossible::TooLarge`]
pub fn plan_limited(
    architecture: &Architecture,
    wanted: &[CounterIndex],
    per_pass: Option<NonZeroU32>,
) -> Result<Plan, Impossible> {
    let counted: BTreeSet<Counted> = wanted
        .iter()
        .flat_map(|index| architecture.basic_counters(*index))
        .collect();
    // Instances of a block with counters of their own are filled each for itself.
    let mut groups: BTreeMap<(BlockIndex, Option<u32>), Vec<Counted>> = BTreeMap::new();
    for counter in counted {
        if let Definition::Basic {
            block, instance, ..
        } = architecture.counter(counter.0).definition
        {
            groups.entry((block, instance)).or_default().push(counter);
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    if per_pass.is_some() {
        // The blocks that need the most passes come first; the others fill what they leave.
        groups.sort_by_key(|((block, _), counters)| {
            Reverse(
                counters
                    .len()
                    .div_ceil(capacity(architecture, *block).max(1) as usize),
            )
        });
    }
    let per_pass = per_pass.map_or(usize::MAX, |limit| limit.get() as usize);
    let mut plan = Plan::default();
    for ((block, _), mut counters) in groups {
        let capacity = capacity(architecture, block);
        // The larger ones first; the sort is stable.
        counters.sort_by_key(|(_, resolution)| Reverse(places(*resolution)));
        // The free places of the block in each pass.
        let mut free: Vec<u32> = Vec::new();
        for counter in counters {
            let places = places(counter.1);
            if places > capacity {
                return Err(Impossible::TooLarge {
                    counter: architecture.counter(counter.0).name.clone(),
                    places,
                    block: architecture.blocks()[block.0 as usize].name.clone(),
                    capacity,
                });
            }
            let mut pass = 0;
            while free.get(pass).is_some_and(|free| *free < places)
                || plan
                    .passes
                    .get(pass)
                    .is_some_and(|pass| pass.len() >= per_pass)
            {
                pass += 1;
            }
            if free.len() <= pass {
                free.resize(pass + 1, capacity);
            }
            free[pass] -= places;
            if plan.passes.len() <= pass {
                plan.passes.resize_with(pass + 1, Vec::new);
            }
            plan.passes[pass].push(counter);
        }
        let used = free.iter().filter(|free| **free < capacity).count();
        let needed = plan.needed.entry(block).or_default();
        *needed = (*needed).max(used);
    }
    Ok(plan)
}

/// Divides `wanted` into groups of which each fits one pass with all of its counters, for runs of a whole program: the
/// counters of a metric are from one run then.
///
/// # Errors
///
/// [`Impossible`], also for a metric that does not fit one pass alone.
pub fn plan_runs(
    architecture: &Architecture,
    wanted: &[CounterIndex],
    per_pass: Option<NonZeroU32>,
) -> Result<Vec<Vec<CounterIndex>>, Impossible> {
    let fits = |group: &[CounterIndex]| {
        let plan = plan_limited(architecture, group, per_pass);
        plan.is_ok_and(|plan| plan.passes.len() <= 1)
    };
    let mut runs: Vec<Vec<CounterIndex>> = Vec::new();
    'wanted: for index in wanted {
        if !fits(&[*index]) {
            plan_one_pass(architecture, &[*index])?;
            let counters = architecture.basic_counters(*index).len() as u32;
            return Err(Impossible::Limit {
                counter: architecture.counter(*index).name.clone(),
                counters,
                limit: per_pass.map_or(0, NonZeroU32::get),
            });
        }
        for run in &mut runs {
            run.push(*index);
            if fits(run) {
                continue 'wanted;
            }
            run.pop();
        }
        runs.push(vec![*index]);
    }
    Ok(runs)
}

/// As [`plan`], if one pass is enough.
///
/// # Errors
///
/// [`Impossible`]
pub fn plan_one_pass(
    architecture: &Architecture,
    wanted: &[CounterIndex],
) -> Result<Plan, Impossible> {
    let plan = plan(architecture, wanted)?;
    let most = plan.needed.iter().max_by_key(|(_, passes)| **passes);
    let Some((block, passes)) = most.filter(|(_, passes)| **passes > 1) else {
        return Ok(plan);
    };
    let of_block = |index: &CounterIndex| {
        let definition = &architecture.counter(*index).definition;
        matches!(definition, Definition::Basic { block: of, .. } if of == block)
    };
    let names: BTreeSet<&str> = plan
        .passes
        .iter()
        .flatten()
        .filter(|(index, _)| of_block(index))
        .map(|(index, _)| architecture.counter(*index).name.as_str())
        .collect();
    Err(Impossible::OnePass {
        counters: names.into_iter().map(str::to_owned).collect(),
        passes: *passes,
        block: architecture.blocks()[block.0 as usize].name.clone(),
        capacity: capacity(architecture, *block),
    })
}

fn capacity(architecture: &Architecture, block: BlockIndex) -> u32 {
    architecture.blocks()[block.0 as usize]
        .capacity
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::{
        Catalogue, Defined, DefinedFrom, DefinitionPlace, Definitions, Dialect, HardwareBlock,
        Sources, Usage,
    };
    use super::super::expression::Expression;
    use super::*;

    /// An architecture of two blocks, with metrics M0, M1, ... of these expressions.
    fn made(capacities: [u32; 2], metrics: &[String]) -> Architecture {
        let at = DefinitionPlace {
            file: "made".into(),
            line: 1,
            column: 1,
        };
        let defined = |name: String, from| Defined {
            name,
            description: String::new(),
            usage: Usage::Items,
            from,
            at: at.clone(),
        };
        let blocks = ["SQ", "TA"].into_iter().zip(capacities);
        let blocks = blocks.map(|(name, capacity)| HardwareBlock {
            name: name.to_owned(),
            instances: None,
            capacity: Some(capacity),
        });
        let events = (0..12).map(|event| {
            let block = if event < 6 { "SQ" } else { "TA" };
            let from = DefinedFrom::Event {
                block: block.to_owned(),
                event,
                instance: None,
            };
            defined(format!("E{event}"), from)
        });
        let metrics = metrics.iter().enumerate().map(|(number, text)| {
            let from = DefinedFrom::Expression(Expression::parse(text).unwrap(), at.clone());
            defined(format!("M{number}"), from)
        });
        let mut sources = Sources::default();
        let definitions = Definitions {
            dialect: Dialect::Instances,
            blocks: blocks.collect(),
            counters: events.chain(metrics).collect(),
        };
        sources.architectures.insert("made".to_owned(), definitions);
        let mut catalogue = Catalogue::from(sources);
        assert_eq!(catalogue.refused, []);
        catalogue.architectures.remove("made").unwrap()
    }

    /// The fewest passes for counters of these sizes, by trying every way to put them into `passes` passes.
    fn fit(sizes: &[u32], free: &mut [u32]) -> bool {
        let Some((first, rest)) = sizes.split_first() else {
            return true;
        };
        (0..free.len()).any(|pass| {
            if free[pass] < *first {
                return false;
            }
            free[pass] -= first;
            let fits = fit(rest, free);
            free[pass] += first;
            fits
        })
    }

    #[test]
    fn no_search_finds_fewer_passes() {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut draw = |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 20) % below
        };
        for _ in 0..300 {
            let capacities = [2 + draw(4) as u32, 2 + draw(4) as u32];
            let metrics: Vec<String> = (0..1 + draw(7))
                .map(|_| {
                    let event = draw(12);
                    match draw(3) {
                        0 => format!("reduce(accumulate(E{event},HIGH_RES),sum)"),
                        _ => format!("reduce(E{event},sum)"),
                    }
                })
                .collect();
            let made = made(capacities, &metrics);
            let wanted: Vec<CounterIndex> = (0..metrics.len())
                .map(|number| made.find(&format!("M{number}")).unwrap())
                .collect();
            let plan = plan(&made, &wanted).unwrap();
            let counted: BTreeSet<Counted> = wanted
                .iter()
                .flat_map(|index| made.basic_counters(*index))
                .collect();
            let planned: Vec<Counted> = plan.passes.iter().flatten().copied().collect();
            assert_eq!(planned.len(), counted.len(), "each once");
            assert_eq!(planned.into_iter().collect::<BTreeSet<_>>(), counted);
            for (block, capacity) in capacities.into_iter().enumerate() {
                let block = BlockIndex(block as u32);
                let of_block = |counted: &&Counted| {
                    let definition = &made.counter(counted.0).definition;
                    matches!(definition, Definition::Basic { block: of, .. } if *of == block)
                };
                for pass in &plan.passes {
                    let taken: u32 = pass.iter().filter(of_block).map(|of| places(of.1)).sum();
                    assert!(taken <= capacity);
                }
                let sizes: Vec<u32> = counted
                    .iter()
                    .filter(of_block)
                    .map(|of| places(of.1))
                    .collect();
                let needed = plan.needed.get(&block).copied().unwrap_or(0);
                assert!(fit(&sizes, &mut vec![capacity; needed]));
                assert!(
                    needed == 0 || !fit(&sizes, &mut vec![capacity; needed - 1]),
                    "{sizes:?} {capacity}"
                );
            }
        }
    }

    #[test]
    fn more_than_one_pass_is_refused_with_the_block_that_is_full() {
        let refusal = |capacities, metric: &str| {
            let made = made(capacities, &[metric.to_owned()]);
            let error = plan_one_pass(&made, &[made.find("M0").unwrap()]);
            error.unwrap_err().to_string()
        };
        assert_eq!(
            refusal([2, 2], "reduce(E0,sum)+reduce(E1,sum)+reduce(E2,sum)"),
            "E0 and 2 others need 2 passes: block SQ counts 2 events at a time"
        );
        assert_eq!(
            refusal([1, 2], "reduce(E0,sum)+reduce(E1,sum)"),
            "E0 and 1 other need 2 passes: block SQ counts 1 event at a time"
        );
        let made = made([2, 2], &[]);
        assert_eq!(
            plan_one_pass(&made, &[made.find("E0").unwrap()])
                .unwrap()
                .passes
                .len(),
            1
        );
    }

    #[test]
    fn a_limit_of_counters_holds_in_every_pass() {
        let metrics = ["reduce(E0,sum)+reduce(E1,sum)+reduce(E7,sum)".to_owned()];
        let made = made([2, 1], &metrics);
        let wanted = ["E6", "E7", "E0", "E1", "E2"].map(|name| made.find(name).unwrap());
        let passes = |limit| {
            let plan = plan_limited(&made, &wanted, NonZeroU32::new(limit)).unwrap();
            let counted: usize = plan.passes.iter().map(Vec::len).sum();
            assert_eq!(counted, wanted.len());
            let most = plan.passes.iter().map(Vec::len).max().unwrap_or(0);
            assert!(limit == 0 || most <= limit as usize);
            plan.passes.len()
        };
        assert_eq!([0, 1, 2, 3, 9].map(passes), [2, 5, 3, 2, 2]);
        let runs = |names: &[&str], limit| {
            let wanted: Vec<_> = names.iter().map(|name| made.find(name).unwrap()).collect();
            let runs = plan_runs(&made, &wanted, NonZeroU32::new(limit));
            runs.map(|runs| runs.iter().map(Vec::len).collect::<Vec<_>>())
        };
        assert_eq!(runs(&["M0", "E6", "E2", "E0"], 0), Ok(vec![2, 2]));
        assert_eq!(runs(&["E0", "E1", "E2"], 1), Ok(vec![1, 1, 1]));
        assert_eq!(
            runs(&["M0"], 2).unwrap_err().to_string(),
            "M0 needs 3 counters in one pass, which may have 2"
        );
    }

    #[test]
    fn a_counter_that_no_pass_has_room_for_is_refused() {
        let made = made([1, 1], &["reduce(accumulate(E7,LOW_RES),sum)".to_owned()]);
        let error = plan(&made, &[made.find("M0").unwrap()]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "E7 needs 2 places of block TA, which has 1"
        );
    }
}
