//! Ranks, steps, and the communication between ranks.

use std::collections::BTreeMap;

use gputrail_record::{Nanos, grouped};
use gputrail_trace::model::ProcessIndex;

use super::{Advice, Evidence, percent, words};
use crate::summary::steps::{median, series};
use crate::summary::{PlaceSummary, WorkClass};

/// The share by which the own time of a rank exceeds the median of all.
const SLOW_RANK_SHARE: f64 = 0.05;
/// The share of the time of devices in which communication is exposed.
const EXPOSED_SHARE: f64 = 0.1;

/// The parts of a place that make it slow.
fn parts(place: &PlaceSummary) -> [(&'static str, u64); 3] {
    [
        ("computes", place.times.of(WorkClass::Compute).0),
        ("copies", place.times.exposed_transfers().0),
        ("idles", place.idle().0),
    ]
}

/// A rank keeps the others waiting.
pub fn slow_rank(evidence: &Evidence<'_>) -> Option<Advice> {
    let mut ranks: BTreeMap<ProcessIndex, PlaceSummary> = BTreeMap::new();
    for ((process, _), place) in &evidence.settled.devices {
        ranks.entry(*process).or_default().add(place);
    }
    // Processes that do not communicate do not wait for each other.
    ranks.retain(|_, place| place.times.of(WorkClass::Communication).0 > 0);
    if ranks.len() < 2 {
        return None;
    }
    let typical = median(ranks.values().map(|place| place.own_time().0).collect());
    let (process, slow) = ranks.iter().max_by_key(|(_, place)| place.own_time())?;
    let behind = slow.own_time().0.saturating_sub(typical);
    if (behind as f64) < SLOW_RANK_SHARE * typical as f64 {
        return None;
    }
    let excess = |number: usize| {
        let others = ranks.values().map(|place| parts(place)[number].1);
        let (what, own) = parts(slow)[number];
        (what, own.saturating_sub(median(others.collect())))
    };
    let (what, more) = (0..3).map(excess).max_by_key(|(_, more)| *more)?;
    let steps = evidence
        .settled
        .steps
        .iter()
        .filter(|step| step.process == *process);
    let place = steps.max_by_key(|step| step.idle()).map(|step| step.start);
    Some(Advice {
        rule: "slow-rank",
        seen: format!(
            "{} takes {} of its own, where the median of {} ranks is {}; it {what} {} longer than the median",
            evidence.summary.process_label(*process).text(),
            words(slow.own_time().0),
            ranks.len(),
            words(typical),
            words(more)
        ),
        place,
        stake: Some(Nanos(behind)),
        why: "all ranks wait for the slowest one in each collective operation",
        attempt: "look at what differs on this rank: its input, its placement, its clocks and neighbours; `gputrail summary \
                  --by rank` compares all"
            .to_owned(),
    })
}

/// A step is far from the median.
pub fn slow_step(evidence: &Evidence<'_>) -> Option<Advice> {
    let steps = &evidence.settled.steps;
    let all = series(steps);
    let outliers = all
        .iter()
        .flat_map(|one| one.outliers.iter().map(move |place| (one, *place)));
    let more = |median: Nanos, place: usize| {
        let duration = steps[place].duration().map_or(0, |duration| duration.0);
        duration.saturating_sub(median.0)
    };
    // All ranks are late together: the step in which the others did not wait says why.
    let own = |place: usize| {
        let waits = steps[place].times.exposed_communication().0;
        let duration = steps[place].duration().map_or(0, |duration| duration.0);
        duration.saturating_sub(waits)
    };
    let (worst, place) = outliers
        .filter(|(one, place)| more(one.median, *place) > 0)
        .max_by_key(|(one, place)| {
            let typical = median(one.steps.iter().map(|place| own(*place)).collect());
            (
                own(*place).saturating_sub(typical),
                more(one.median, *place),
            )
        })?;
    let step = &steps[place];
    let parts = |place: usize| {
        let step = &steps[place];
        [
            ("idles", step.idle().map_or(0, |idle| idle.0)),
            ("computes", step.times.of(WorkClass::Compute).0),
            ("waits for others", step.times.exposed_communication().0),
            ("copies", step.times.exposed_transfers().0),
        ]
    };
    let excess = (0..4).map(|number| {
        let others = worst.steps.iter().map(|place| parts(*place)[number].1);
        let (what, own) = parts(place)[number];
        (what, own.saturating_sub(median(others.collect())))
    });
    let differs = match excess.max_by_key(|(_, more)| *more) {
        Some((what, excess)) if excess > 0 => {
            format!(
                "; its device {what} {} longer than the median",
                words(excess)
            )
        }
        _ => String::new(),
    };
    // Ranks go through their steps together.
    let lost = all.iter().map(|one| {
        let each = one.outliers.iter();
        each.map(|place| more(one.median, *place)).sum::<u64>()
    });
    let lost = lost.max().unwrap_or(0);
    let outliers: usize = all.iter().map(|one| one.outliers.len()).sum();
    Some(Advice {
        rule: "slow-step",
        seen: format!(
            "{} of {} steps differ much from the median; the worst, {} of {}, took {} instead of {}{differs}",
            grouped(outliers as u64),
            grouped(steps.len() as u64),
            step.name,
            evidence.summary.process_label(step.process).text(),
            words(step.duration().map_or(0, |duration| duration.0)),
            words(worst.median.0)
        ),
        place: Some(step.start),
        stake: Some(Nanos(lost)),
        why: "steps that differ hide what a change does, and on many ranks one slow step delays all",
        attempt: "compare it with a step beside it: `gputrail summary --table steps` has both"
            .to_owned(),
    })
}

/// Communication is not hidden by computation.
pub fn exposed_communication(evidence: &Evidence<'_>) -> Option<Advice> {
    let mut all = PlaceSummary::default();
    evidence
        .settled
        .devices
        .values()
        .for_each(|place| all.add(place));
    let exposed = all.times.exposed_communication().0;
    let communication = all.times.of(WorkClass::Communication).0;
    if exposed == 0 || (exposed as f64) < EXPOSED_SHARE * all.span.0 as f64 {
        return None;
    }
    let kernels = evidence.kernels.iter();
    let kernels = kernels.filter(|one| gputrail_trace::ranks::is_communication(&one.name));
    let longest = kernels
        .filter_map(|one| one.longest)
        .max_by_key(|longest| longest.took);
    Some(Advice {
        rule: "exposed-communication",
        seen: format!(
            "devices communicate for {} and compute nothing in {} of it, {} of their time",
            words(communication),
            words(exposed),
            percent(exposed, all.span.0)
        ),
        place: longest.map(|longest| longest.start),
        // Devices communicate at the same time.
        stake: Some(Nanos(exposed / evidence.settled.devices.len().max(1) as u64)),
        why: "computation could hide it; part of it may be waiting for a slower rank",
        attempt: "begin collective operations earlier (buckets of gradients, prefetched parameters), on a stream of their own, and \
                  send less (lower precision, accumulated gradients)"
            .to_owned(),
    })
}
