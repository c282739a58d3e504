//! Failed calls, and what makes all other advice uncertain.

use gputrail_record::{count, grouped};

use super::{Advice, Evidence};

/// The share of work that begins before its call from which clocks are in doubt.
const EARLY_SHARE: f64 = 0.01;
/// The number of pieces of such work.
const EARLY: u64 = 10;

/// Records are missing.
pub fn lost_records(evidence: &Evidence<'_>) -> Option<Advice> {
    let lost = evidence.summary.lost();
    let missing = evidence.summary.missing();
    let seen = match (lost, missing.iter().next()) {
        (0, None) => return None,
        // Records that a runtime dropped are counted as lost as well.
        (_, Some((reason, _))) => format!("records are missing: {reason}"),
        (lost, None) => format!("{} dropped for want of memory", count(lost, "record")),
    };
    Some(Advice {
        rule: "lost-records",
        seen,
        place: None,
        stake: None,
        why: "counts are too low and gaps too long, so all other advice is uncertain",
        attempt: "record with larger --buffers or with --policy lossless; `gputrail info` says what is missing"
            .to_owned(),
    })
}

/// The clocks of the host and of devices do not agree.
pub fn clock_doubt(evidence: &Evidence<'_>) -> Option<Advice> {
    let (early, earliest) = evidence.summary.early();
    let work = evidence.kernels.iter().chain(&evidence.others);
    let all: u64 = work.map(|one| one.latency.count).sum();
    let (place, before) = earliest?;
    if early < EARLY || (early as f64) < EARLY_SHARE * all as f64 {
        return None;
    }
    Some(Advice {
        rule: "clock-doubt",
        seen: format!(
            "{} of {} pieces of work begin before the call that enqueued them, by up to {}",
            grouped(early),
            grouped(all),
            super::words(before)
        ),
        place: Some(place),
        stake: None,
        why: "the clocks of host and device disagree by at least as much, so latencies and causes of gaps are uncertain",
        attempt: "compare times of the host with each other, and times of the device with each other; update the driver"
            .to_owned(),
    })
}

/// Calls failed.
pub fn failed_calls(evidence: &Evidence<'_>) -> Option<Advice> {
    let failures = evidence.summary.failures();
    let worst = failures.first()?;
    let all: u64 = failures.iter().map(|failure| failure.count).sum();
    let function = evidence
        .functions
        .iter()
        .find(|one| one.name == worst.name && one.domain == worst.domain);
    Some(Advice {
        rule: "failed-calls",
        seen: format!(
            "{} failed, {} of them of {} with code {}",
            count(all, "call"),
            worst.count,
            worst.name,
            worst.code
        ),
        place: function.and_then(|one| one.first_failure),
        stake: None,
        why: "a call that fails does nothing, and what follows may compute with old data",
        attempt:
            "check the result of each call; `gputrail summary --table failures` names the codes"
                .to_owned(),
    })
}
