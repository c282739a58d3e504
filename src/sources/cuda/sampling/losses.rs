//! What is missing of samples, and what the user is told of it: in a message when it happens, or in a note at the end.

use super::code;
use super::context::RefusedStep;
use crate::cuda::notes::why;
use gputrail_buffer::platform::inside::message;
use gputrail_collect::process;
use gputrail_record::{NoteKind, count};

/// Names of unknown stall reasons that are noted.
const MAX_UNKNOWN: usize = 16;

/// Samples that are missing, and what was said of it.
#[derive(Default)]
pub(super) struct Losses {
    /// By the hardware.
    pub dropped: u64,
    /// Times that the hardware's buffer was full.
    full: u64,
    /// Samples for which there was no room.
    pub unwritten: u64,
    /// Samples of kernels that are not the program's.
    pub foreign: u64,
    /// Names of stall reasons that are not known here.
    unknown_reasons: Vec<String>,
    reported: Vec<RefusedStep>,
}

impl Losses {
    /// Notes the names of stall reasons that are not known here.
    pub fn unknown(&mut self, names: &[String]) {
        for name in names {
            if self.unknown_reasons.len() < MAX_UNKNOWN && !self.unknown_reasons.contains(name) {
                self.unknown_reasons.push(name.clone());
            }
        }
    }

    /// The buffer of the hardware was full: says so the first time.
    pub fn full(&mut self) {
        self.full += 1;
        if self.full == 1 {
            report(
                "CUDA: the buffer of the hardware is full, and samples are missing: a longer --interval makes fewer",
            );
        }
    }

    /// The library refuses a step of sampling: says so once.
    pub fn refused(&mut self, refused: RefusedStep) {
        if !self.reported.contains(&refused) {
            self.reported.push(refused);
            let RefusedStep { step, status } = refused;
            report(&format!(
                "CUDA: PC sampling fails in {step}: {}",
                why(status)
            ));
        }
    }

    /// A sentence about each loss, and whether it is one of samples.
    pub fn describe(&self) -> Vec<(String, bool)> {
        let Losses {
            dropped,
            full,
            unwritten,
            foreign,
            ..
        } = *self;
        let left_out = code::left_out();
        let unknown = self.unknown_reasons.join(", ");
        let samples = |number| count(number, "sample");
        let all = [
            (
                dropped,
                true,
                format!(
                    "{} dropped by the hardware: a longer --interval makes fewer",
                    samples(dropped)
                ),
            ),
            (
                full,
                // Said when it happened first.
                false,
                format!(
                    "the buffer of the hardware was full {}, and samples are missing",
                    count(full, "time")
                ),
            ),
            (
                unwritten,
                true,
                format!("{} could not be written", samples(unwritten)),
            ),
            (
                foreign,
                false,
                format!("{} in kernels that are not the program's", samples(foreign)),
            ),
            (
                left_out,
                false,
                format!(
                    "{} too large to be kept: samples there have no lines",
                    count(left_out, "module")
                ),
            ),
            (
                unknown.len() as u64,
                false,
                format!("stall reasons that are not known count as \"other\": {unknown}"),
            ),
        ];
        let said = all.into_iter().filter(|(count, ..)| *count > 0);
        said.map(|(_, is_loss, text)| (format!("CUDA: PC sampling: {text}"), is_loss))
            .collect()
    }
}

/// Says in a message and in a note what the matter is.
pub(super) fn report(text: &str) {
    message(format_args!("{text}"));
    if let Some(names) = process::names() {
        names.note(NoteKind::MISSING, &format!("PC sampling: {text}"));
    }
}
