//! The stall reasons of a device: CUPTI states them by name, and counts samples by number.

use super::ffi::{ContextParams, NAME_BYTES, ReasonCountParams, ReasonParams};
use crate::cuda::ffi::{self, Cupti, CuptiStatus, call};
use core::ffi::{CStr, c_char, c_void};
use gputrail_record::StallReason;

/// The most reasons that are asked for.
const MAX_REASONS: usize = 1024;
/// The beginning of the names, in two spellings.
const PREFIXES: [&str; 2] = [
    "smsp__pcsamp_warps_issue_stalled_",
    "smsp__pcsamp_warp_stall_",
];
/// The end of the name of a reason that counts only those of its samples at which no wave issued.
const LATENCY: &str = "_not_issued";

/// What a number of CUPTI's counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum CountedReason {
    /// Samples with this reason.
    Samples(StallReason),
    /// Those of them at which no wave issued.
    Latency(StallReason),
    /// No samples of a reason: totals.
    Other,
}

/// The reasons of a context's device.
#[derive(Clone, Debug, Default)]
pub(super) struct Reasons {
    /// By number, as CUPTI lists them.
    pub numbers: Vec<u32>,
    counted: Vec<CountedReason>,
    /// Names of reasons that are not known here.
    pub unknown: Vec<String>,
}

impl Reasons {
    /// Asks for the reasons of `context`, for which sampling is enabled.
    pub fn of(cupti: &Cupti, context: *mut c_void) -> Result<Reasons, CuptiStatus> {
        let mut count = 0;
        let mut asked = ReasonCountParams {
            size: size_of::<ReasonCountParams>(),
            private: core::ptr::null_mut(),
            context,
            count: &raw mut count,
        };
        // SAFETY: `asked` states its size; `count` is the place for the answer.
        done(unsafe { call!(cupti, cuptiPCSamplingGetNumStallReasons(&raw mut asked)) })?;
        let count = count.min(MAX_REASONS);
        let mut numbers = vec![0; count];
        let mut texts = vec![[0 as c_char; NAME_BYTES]; count];
        let mut names: Vec<*mut c_char> = texts.iter_mut().map(|text| text.as_mut_ptr()).collect();
        let mut asked = ReasonParams {
            size: size_of::<ReasonParams>(),
            private: core::ptr::null_mut(),
            context,
            count,
            numbers: numbers.as_mut_ptr(),
            names: names.as_mut_ptr(),
        };
        // SAFETY: `asked` states its size; `numbers` and `names` have `count` places, and each name has room for the longest
        // one.
        done(unsafe { call!(cupti, cuptiPCSamplingGetStallReasons(&raw mut asked)) })?;
        let names = texts.iter_mut().map(|text| {
            text[NAME_BYTES - 1] = 0;
            // SAFETY: it ends with a 0.
            unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy()
        });
        Ok(Reasons::named(numbers, names))
    }

    fn named(numbers: Vec<u32>, names: impl Iterator<Item = impl AsRef<str>>) -> Reasons {
        let mut unknown = Vec::new();
        let counted = names.map(|name| {
            let name = name.as_ref();
            of_name(name).unwrap_or_else(|| {
                unknown.push(name.to_owned());
                CountedReason::Samples(StallReason::OTHER)
            })
        });
        let counted = counted.collect();
        Reasons {
            numbers,
            counted,
            unknown,
        }
    }

    /// What the reason with this number counts.
    pub fn get(&self, number: u32) -> CountedReason {
        // Numbers mostly are places.
        let place = number as usize;
        let place = match self.numbers.get(place) {
            Some(there) if *there == number => Some(place),
            _ => self.numbers.iter().position(|there| *there == number),
        };
        place
            .and_then(|place| self.counted.get(place).copied())
            .unwrap_or(CountedReason::Samples(StallReason::OTHER))
    }
}

/// What a reason of this name counts; `None` if the name is not known.
fn of_name(name: &str) -> Option<CountedReason> {
    let Some(reason) = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)) else {
        return name
            .starts_with("smsp__pcsamp_")
            .then_some(CountedReason::Other);
    };
    let (reason, counted): (_, fn(StallReason) -> CountedReason) =
        match reason.strip_suffix(LATENCY) {
            Some(reason) => (reason, CountedReason::Latency),
            None => (reason, CountedReason::Samples),
        };
    let known = match reason {
        "selected" => StallReason::NONE,
        "not_selected" => StallReason::NOT_SELECTED,
        "sleeping" => StallReason::SLEEPING,
        "misc" => StallReason::OTHER,
        reason => StallReason::from_vendor_name(&format!("{}{reason}", PREFIXES[0]))?,
    };
    Some(counted(known))
}

/// The status of a call that the library may lack.
pub(super) fn done(status: Option<CuptiStatus>) -> Result<(), CuptiStatus> {
    match status {
        Some(ffi::SUCCESS) => Ok(()),
        Some(status) => Err(status),
        None => Err(ffi::NOT_IMPLEMENTED),
    }
}

/// The parameters of a call about `context`.
pub(super) fn of_context(context: *mut c_void) -> ContextParams {
    ContextParams {
        size: size_of::<ContextParams>(),
        private: core::ptr::null_mut(),
        context,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_known_by_name_in_both_spellings() {
        let names = [
            "smsp__pcsamp_warps_issue_stalled_long_scoreboard",
            "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued",
            "smsp__pcsamp_warp_stall_selected",
            "smsp__pcsamp_warps_issue_stalled_not_selected_not_issued",
            "smsp__pcsamp_sample_count",
            "smsp__pcsamp_warps_issue_stalled_invented",
        ];
        let reasons = Reasons::named(vec![0, 1, 7, 3, 4, 5], names.iter());
        let of = [0, 1, 7, 3, 4, 5, 99].map(|number| reasons.get(number));
        let expected = [
            CountedReason::Samples(StallReason::LONG_SCOREBOARD),
            CountedReason::Latency(StallReason::LONG_SCOREBOARD),
            CountedReason::Samples(StallReason::NONE),
            CountedReason::Latency(StallReason::NOT_SELECTED),
            CountedReason::Other,
            CountedReason::Samples(StallReason::OTHER),
            CountedReason::Samples(StallReason::OTHER),
        ];
        assert_eq!(of, expected);
        assert_eq!(reasons.unknown, [names[5]]);
    }

    #[test]
    fn every_reason_that_cupti_states_by_name_is_known() {
        let of_devices = StallReason::ALL.iter().filter_map(|(reason, _)| {
            let name = reason.vendor_name()?;
            name.starts_with(PREFIXES[0]).then_some((reason, name))
        });
        let mut count = 0;
        for (reason, name) in of_devices {
            assert_eq!(
                of_name(name),
                Some(CountedReason::Samples(*reason)),
                "{name}"
            );
            count += 1;
        }
        assert_eq!(count, 16);
    }
}
