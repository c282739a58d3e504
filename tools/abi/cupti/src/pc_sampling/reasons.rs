//! Stall reasons by number and name: each twice, with the samples in which no instruction was issued once more by themselves.

use gputrail_record::StallReason;

/// The place for a name (`CUPTI_STALL_REASON_STRING_SIZE`).
pub const NAME_BYTES: usize = 128;
/// The begin of the names.
const PREFIX: &str = "smsp__pcsamp_warps_issue_stalled_";
/// The end of the names of samples without an instruction.
const NOT_ISSUED: &str = "_not_issued";

/// The number of reasons.
pub fn count() -> usize {
    2 * StallReason::ALL.len()
}

/// The number of a reason: of its samples, or of those in which no instruction was issued.
pub fn number(reason: StallReason, is_not_issued: bool) -> u32 {
    let place = StallReason::ALL.iter().position(|(one, _)| *one == reason);
    // Unknown reasons are the first one.
    2 * place.unwrap_or(0) as u32 + u32::from(is_not_issued)
}

/// The name of a number, in NVIDIA's words where it has one.
pub fn name(number: u32) -> Option<String> {
    let (reason, own) = StallReason::ALL.get(number as usize / 2)?;
    let name = match *reason {
        StallReason::NONE => format!("{PREFIX}selected"),
        StallReason::OTHER => format!("{PREFIX}misc"),
        _ => match reason.vendor_name().filter(|name| name.starts_with(PREFIX)) {
            Some(name) => name.to_owned(),
            None => format!("{PREFIX}{}", own.to_lowercase().replace([' ', '-'], "_")),
        },
    };
    Some(if number.is_multiple_of(2) {
        name
    } else {
        name + NOT_ISSUED
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_reason_has_a_number_and_a_name_that_fits() {
        let names: Vec<String> = (0..count() as u32).filter_map(name).collect();
        let different: HashSet<&String> = names.iter().collect();
        assert_eq!((names.len(), different.len()), (count(), count()));
        assert!(names.iter().all(|name| name.len() < NAME_BYTES));
        for (reason, _) in StallReason::ALL {
            let (samples, latency) = (number(*reason, false), number(*reason, true));
            assert_eq!(name(latency), name(samples).map(|name| name + NOT_ISSUED));
        }
        let long = number(StallReason::LONG_SCOREBOARD, false);
        assert_eq!(
            name(long).as_deref(),
            Some("smsp__pcsamp_warps_issue_stalled_long_scoreboard")
        );
        assert_eq!(name(count() as u32), None);
    }
}
