//! Copies: synchronous ones, those of pageable memory, and tiny ones.

use gputrail_record::{Nanos, count, grouped};

use super::{Advice, Evidence, percent, words};
use crate::figures::bytes;
use crate::summary::{FunctionRole, TINY_BYTES, WorkSummary};
use gputrail_trace::model::WorkKind;

/// The share of a recording in synchronous copies, and their least number.
const SYNCHRONOUS_SHARE: f64 = 0.05;
const SYNCHRONOUS: u64 = 10;
/// The share of a recording in copies of pageable memory.
const PAGEABLE_SHARE: f64 = 0.02;
/// The least number of tiny copies of a kind, and the share of a recording that they take.
const TINY: u64 = 100;
const TINY_SHARE: f64 = 0.01;

/// Copies block the host.
pub fn synchronous(evidence: &Evidence<'_>) -> Option<Advice> {
    let copies = || {
        let functions = evidence.functions.iter();
        functions.filter(|one| one.role == FunctionRole::SynchronousCopy)
    };
    // A driver's copy within a runtime's is the same copy.
    let total: u64 = copies().map(|one| one.outermost.1).sum();
    let calls: u64 = copies().map(|one| one.outermost.0).sum();
    if calls < SYNCHRONOUS || !evidence.is_much(total, SYNCHRONOUS_SHARE) {
        return None;
    }
    let worst = copies().max_by_key(|one| one.longest.map_or(0, |longest| longest.took))?;
    let longest = worst.longest?;
    Some(Advice {
        rule: "synchronous-copies",
        seen: format!(
            "{} of synchronous copies took {}, {} of the recording; the longest, {}, took {}",
            count(calls, "call"),
            words(total),
            percent(total, evidence.length),
            worst.name,
            words(longest.took)
        ),
        place: Some(longest.start),
        stake: Some(Nanos(total.min(evidence.not_computing()))),
        why: "the host waits for each copy, and all work before it on the queue",
        attempt: "copy asynchronously from pinned memory on a queue of its own, and wait by events"
            .to_owned(),
    })
}

/// Copies use pageable memory.
pub fn pageable(evidence: &Evidence<'_>) -> Option<Advice> {
    let copies = || {
        evidence
            .others
            .iter()
            .filter(|one| one.name.contains("Pageable"))
    };
    let total: u64 = copies().map(|one| one.times.total).sum();
    if !evidence.is_much(total, PAGEABLE_SHARE) {
        return None;
    }
    let worst = copies().max_by_key(|one| one.times.total)?;
    let longest = worst.longest?;
    let calls = copies().map(|one| one.times.count).sum();
    let size: u64 = copies().map(|one| one.sizes.total).sum();
    Some(Advice {
        rule: "pageable-copies",
        seen: format!(
            "{} from or to pageable memory, {}, took {}, {} of the recording; the longest, {}, took {}",
            count(calls, "copy"),
            bytes(size),
            words(total),
            percent(total, evidence.length),
            worst.name,
            words(longest.took)
        ),
        place: Some(longest.start),
        stake: Some(Nanos(total)),
        why: "the driver copies pageable memory through a buffer of its own, at a part of the bandwidth, and cannot overlap it \
              with kernels",
        attempt: "pin the memory (cudaHostAlloc, pin_memory=True, CL_MEM_ALLOC_HOST_PTR) and copy asynchronously".to_owned(),
    })
}

/// Copies are tiny and many.
pub fn tiny(evidence: &Evidence<'_>) -> Option<Advice> {
    let others = evidence.others.iter();
    let tiny = others.filter(|one| one.kind == WorkKind::Copy && one.tiny_count >= TINY);
    // The calls are summed for all copies of the kind: the tiny ones have their part by number.
    let cost = |one: &WorkSummary| {
        let calls = u128::from(one.parts.idle_call) * u128::from(one.tiny_count);
        one.tiny_time + (calls / u128::from(one.times.count.max(1))) as u64
    };
    let worst = tiny.max_by_key(|one| cost(one))?;
    if !evidence.is_much(cost(worst), TINY_SHARE) {
        return None;
    }
    let is_on_device = ["DtoD", "device to device"]
        .iter()
        .any(|words| worst.name.contains(words));
    Some(Advice {
        rule: "tiny-copies",
        seen: format!(
            "{} copies ({}) of at most {} took about {} with their calls, without waits for earlier work",
            grouped(worst.tiny_count),
            worst.name,
            bytes(TINY_BYTES),
            words(cost(worst))
        ),
        place: worst.longest.map(|longest| longest.start),
        stake: Some(Nanos(cost(worst))),
        why: "each copy has a fixed cost, which is most of the time of a small one",
        attempt: if is_on_device {
            "put small buffers together and copy once (a flat buffer of all parameters, torch._foreach_copy_), or let the kernel \
             that makes the data write it where it is needed"
        } else {
            "put small buffers together and copy once, or pass values as arguments of kernels"
        }
        .to_owned(),
    })
}
