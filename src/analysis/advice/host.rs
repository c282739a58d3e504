//! The host: compilation, waits, gaps that it causes, and launches that cost more than their kernels.

use gputrail_record::{Nanos, count, grouped};

use super::{Advice, Evidence, name, percent, words};
use crate::summary::{FunctionRole, FunctionSummary, LaunchParts, Occasion};

/// The share of a recording from which compilation dominates.
const COMPILATION_SHARE: f64 = 0.2;
/// The least number of launches of rules about launches.
const LAUNCHES: u64 = 20;
/// The share of launches with a wait behind each, and the share of the recording that these waits take.
const WAIT_SHARE: f64 = 0.5;
const WAIT_TIME_SHARE: f64 = 0.05;
/// The share of the time of a device, from its first work to its last, in which it has nothing enqueued.
const HOST_GAP_SHARE: f64 = 0.2;
/// The least number of kernels, and the share of them that are shorter than their launch.
const SHORT_KERNELS: u64 = 100;
const SHORT_SHARE: f64 = 0.5;

fn longest<'f>(
    functions: impl Iterator<Item = &'f FunctionSummary>,
) -> Option<&'f FunctionSummary> {
    functions.max_by_key(|one| one.longest.map_or(0, |longest| longest.took))
}

/// Compilation dominates.
pub fn compilation(evidence: &Evidence<'_>) -> Option<Advice> {
    let builds = || {
        let functions = evidence.functions.iter();
        functions.filter(|one| one.role == FunctionRole::Build)
    };
    let total: u64 = builds().map(|one| one.times.total).sum();
    if !evidence.is_much(total, COMPILATION_SHARE) {
        return None;
    }
    let worst = longest(builds())?;
    let Occasion { start, took } = worst.longest?;
    let calls = builds().map(|one| one.times.count).sum();
    Some(Advice {
        rule: "compilation",
        seen: format!(
            "{} that compile or load code took {}, {} of the recording; the longest, {}, took {}",
            count(calls, "call"),
            words(total),
            percent(total, evidence.length),
            worst.name,
            words(took)
        ),
        place: Some(start),
        stake: Some(Nanos(total)),
        why: "the device cannot start before its code is there",
        attempt: "keep the binaries and load them (clGetProgramInfo, a persistent cache of the driver, ahead-of-time builds), \
                  build once for all devices, or record for longer if the program runs longer"
            .to_owned(),
    })
}

/// A wait stands behind each launch.
pub fn wait_after_launch(evidence: &Evidence<'_>) -> Option<Advice> {
    let waits = evidence.summary.waits();
    let after_one = waits.after_one;
    let is_frequent =
        waits.launches >= LAUNCHES && after_one as f64 >= WAIT_SHARE * waits.launches as f64;
    if !is_frequent || !evidence.is_much(waits.after_one_time, WAIT_TIME_SHARE) {
        return None;
    }
    let (place, took) = waits.longest?;
    Some(Advice {
        rule: "wait-after-launch",
        seen: format!(
            "{} of {} launches have a wait directly behind them, {} in all; the longest, {}, took {}",
            grouped(after_one),
            grouped(waits.launches),
            words(waits.after_one_time),
            waits.function,
            words(took)
        ),
        place: Some(place),
        stake: Some(Nanos(waits.after_one_time)),
        why: "the host prepares nothing while it waits, so the device idles between launches",
        attempt: "wait once, where the host needs the result; order work by queues and events"
            .to_owned(),
    })
}

/// A device waits for the host.
pub fn device_waits(evidence: &Evidence<'_>) -> Option<Advice> {
    let idle = |gaps: &[(String, crate::summary::Gaps)]| -> u64 {
        gaps.iter().map(|(_, gaps)| gaps.host.0).sum()
    };
    let gpu = evidence.gpus.iter().max_by_key(|gpu| idle(&gpu.gaps))?;
    let busy = gpu.busy.as_ref()?;
    let span = busy.last.0.saturating_sub(busy.first.0);
    let waited = idle(&gpu.gaps);
    if span == 0 || (waited as f64) < HOST_GAP_SHARE * span as f64 {
        return None;
    }
    let (opener, worst) = gpu
        .gaps
        .iter()
        .filter_map(|(name, gaps)| Some((name, gaps.longest_host?)))
        .max_by_key(|(_, longest)| longest.took)?;
    let end = Nanos(worst.start.0.saturating_add(worst.took));
    let during = gpu
        .processes
        .iter()
        .filter_map(|process| evidence.summary.host_during(*process, worst.start, end))
        .max_by_key(|(_, overlap)| *overlap);
    // That the host was in a step says nothing.
    let host = match during {
        Some((during, overlap))
            if overlap * 2 >= worst.took && !evidence.summary.is_step(during) =>
        {
            format!(", and the host was in {} then", name(during))
        }
        _ => String::new(),
    };
    // Ranks have devices with one name.
    let namesakes = evidence.gpus.iter().filter(|one| one.title == gpu.title);
    let device = match (&gpu.processes[..], namesakes.count()) {
        ([process], 2..) => format!(
            "{} of {}",
            gpu.title,
            evidence.summary.process_label(*process).text()
        ),
        _ => gpu.title.clone(),
    };
    Some(Advice {
        rule: "device-waits",
        seen: format!(
            "{device} had nothing enqueued for {}, {} of the time from its first work to its last; the longest such time, {}, ended \
             with {}{host}",
            words(waited),
            percent(waited, span),
            words(worst.took),
            name(opener)
        ),
        place: Some(worst.start),
        stake: Some(Nanos(waited)),
        why: "nothing runs on the device until the host gives it work",
        attempt: "enqueue further ahead: move what the host does there to another thread (loading of data, compilation), wait \
                  less, or overlap steps"
            .to_owned(),
    })
}

/// Kernels are shorter than their launches.
pub fn short_kernels(evidence: &Evidence<'_>) -> Option<Advice> {
    let mut parts = LaunchParts::default();
    evidence
        .kernels
        .iter()
        .for_each(|kernel| parts.add(&kernel.parts));
    let short = parts.shorter_than_call;
    if parts.single < SHORT_KERNELS || (short as f64) < SHORT_SHARE * parts.single as f64 {
        return None;
    }
    let worst = evidence
        .kernels
        .iter()
        .max_by_key(|kernel| kernel.parts.shorter_than_call)?;
    Some(Advice {
        rule: "short-kernels",
        seen: format!(
            "{} of {} kernels ran for less time than the call that launched them, and these calls took {}; most often {}, {} \
             times, with a median of {}",
            grouped(short),
            grouped(parts.single),
            words(parts.short_calls),
            name(&worst.name),
            grouped(worst.parts.shorter_than_call),
            words(worst.times.median())
        ),
        place: worst.first.map(|first| first.start),
        stake: Some(Nanos(parts.short_calls)),
        why: "the host cannot launch as fast as the device computes, so the launches set the pace",
        attempt: "fuse kernels, batch more work into each, or record the launches once and replay them (CUDA and HIP graphs, \
                  command buffers, torch.compile)"
            .to_owned(),
    })
}
