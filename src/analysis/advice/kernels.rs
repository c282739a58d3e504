//! Kernels: first executions, occupancy, and queues that could overlap.

use gputrail_record::{Nanos, count};
use gputrail_trace::model::{Launch, Resources};

use super::{Advice, Evidence, name, percent, words};
use crate::summary::{MANY_WORKGROUPS, WorkClass};

/// A first execution is long if it takes this many times the median, of a kernel that ran at least this often.
const FIRST_TIMES: u64 = 5;
const FIRST_RUNS: u64 = 4;
/// The share of a recording that such executions lose.
const FIRST_SHARE: f64 = 0.01;
/// The occupancy below which a kernel uses little of a device, and the share of the time of kernels in such ones.
const LOW_OCCUPANCY: f64 = 0.25;
const LOW_SHARE: f64 = 0.1;
/// The share of the time of a device from which copies and kernels are worth overlapping.
const OVERLAP_SHARE: f64 = 0.05;

/// First executions take much longer than others.
pub fn first_executions(evidence: &Evidence<'_>) -> Option<Advice> {
    let excess = |kernel: &crate::summary::WorkSummary| {
        let (first, median) = (kernel.first?.took, kernel.times.median());
        let is_long = first > median.saturating_mul(FIRST_TIMES);
        (kernel.times.count >= FIRST_RUNS && is_long).then(|| first.saturating_sub(median))
    };
    let slow = || {
        evidence
            .kernels
            .iter()
            .filter_map(|one| Some((one, excess(one)?)))
    };
    let lost: u64 = slow().map(|(_, excess)| excess).sum();
    let (worst, _) = slow().max_by_key(|(_, excess)| *excess)?;
    if !evidence.is_much(lost, FIRST_SHARE) {
        return None;
    }
    let first = worst.first?;
    Some(Advice {
        rule: "first-executions",
        seen: format!(
            "the first executions of {} took {} longer than their medians; the worst, {}, took {} instead of {}",
            count(slow().count() as u64, "kernel"),
            words(lost),
            name(&worst.name),
            words(first.took),
            words(worst.times.median())
        ),
        place: Some(first.start),
        stake: Some(Nanos(lost)),
        why: "code is loaded and memory is touched for the first time: a measurement that includes it says little of the rest",
        attempt: "run once before measuring, load code eagerly (CUDA_MODULE_LOADING=EAGER), and touch memory ahead".to_owned(),
    })
}

/// The resource that limits the occupancy of a kernel, as far as the launch tells it.
fn limit(shape: Option<(Launch, Resources)>) -> &'static str {
    let Some((launch, resources)) = shape else {
        return "";
    };
    let group: u64 = launch
        .workgroup
        .iter()
        .map(|size| u64::from(*size))
        .product();
    let local = resources
        .static_local
        .saturating_add(resources.dynamic_local);
    let groups = launch.workgroups();
    let groups = groups.map(|sizes| sizes.iter().map(|size| u64::from(*size)).product::<u64>());
    if groups.is_some_and(|groups| groups < MANY_WORKGROUPS) {
        "; it has too few workgroups to fill the device"
    } else if resources.registers >= 128 {
        "; its registers are the limit"
    } else if local >= 32 << 10 {
        "; its local memory is the limit"
    } else if (1..64).contains(&group) {
        "; its workgroups are small"
    } else {
        ""
    }
}

/// Kernels use little of the device.
pub fn low_occupancy(evidence: &Evidence<'_>) -> Option<Advice> {
    let low = || {
        let kernels = evidence.kernels.iter();
        kernels.filter_map(|one| {
            let occupancy = one.occupancy().filter(|share| *share < LOW_OCCUPANCY)?;
            let computes = !gputrail_trace::ranks::is_communication(&one.name);
            computes.then_some((one, occupancy))
        })
    };
    let all: u64 = evidence.kernels.iter().map(|one| one.times.total).sum();
    let total: u64 = low().map(|(one, _)| one.times.total).sum();
    let (worst, occupancy) = low().max_by_key(|(one, _)| one.times.total)?;
    if (total as f64) < LOW_SHARE * all as f64 {
        return None;
    }
    Some(Advice {
        rule: "low-occupancy",
        seen: format!(
            "{} with an estimated occupancy below {:.0} % took {}, {} of the time of kernels; most of it {}, with {:.0} %{}",
            count(low().count() as u64, "kernel"),
            100.0 * LOW_OCCUPANCY,
            words(total),
            percent(total, all),
            name(&worst.name),
            100.0 * occupancy,
            limit(worst.shape)
        ),
        place: worst.longest.map(|longest| longest.start),
        stake: Some(Nanos(total)),
        why: "with few waves a device cannot hide the latency of memory; kernels that are made for few waves (large tiles of \
              matrices) are an exception",
        attempt: "give it more work at once, use fewer registers or less local memory for each workgroup, or run it beside others"
            .to_owned(),
    })
}

/// All work of a device is on one queue, though copies and kernels could overlap.
pub fn one_queue(evidence: &Evidence<'_>) -> Option<Advice> {
    let candidates = evidence.settled.devices.iter().filter_map(|(place, sums)| {
        let queues = evidence.settled.queues.keys();
        let queues = queues
            .filter(|(process, agent, _)| (*process, *agent) == *place)
            .count();
        let times = &sums.times;
        let (copies, computing) = (
            times.of(WorkClass::Transfer).0,
            times.of(WorkClass::Compute).0,
        );
        let overlap = (copies + computing).saturating_sub(times.busy().0);
        let least = copies.min(computing);
        let is_much = least as f64 >= OVERLAP_SHARE * sums.span.0 as f64;
        (queues == 1 && is_much && overlap == 0 && least > 0)
            .then_some((place, copies, computing, least))
    });
    let ((_, agent), copies, computing, least) = candidates.max_by_key(|(.., least)| *least)?;
    let kinds = evidence
        .others
        .iter()
        .filter(|one| one.kind == gputrail_trace::model::WorkKind::Copy);
    let longest = kinds
        .filter_map(|one| one.longest)
        .max_by_key(|longest| longest.took);
    Some(Advice {
        rule: "one-queue",
        seen: format!(
            "all work of {} is on one queue: {} of copies and {} of kernels, which never overlap",
            evidence.summary.device(*agent),
            words(copies),
            words(computing)
        ),
        place: longest.map(|longest| longest.start),
        stake: Some(Nanos(least)),
        why: "devices copy and compute at the same time, if the work is independent and on different queues",
        attempt: "copy the data of the next step on a second queue while this step computes"
            .to_owned(),
    })
}
