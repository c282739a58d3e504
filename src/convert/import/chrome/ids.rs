//! Ids of processes and threads: numbers, and texts that may have a number and a rank in them.

/// A process or thread id: trace events have numbers and texts.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Id {
    Number(i64),
    /// A text, by its number.
    Text(u32),
}

impl Id {
    /// The text of events that have no id.
    pub const NONE: Id = Id::Text(0);
    /// The process of events that belong to none, as Kineto writes it.
    pub const NO_PROCESS: Id = Id::Number(-1);
}

/// The parts of the text of a process id. Programs that put the profiles of several ranks into one file write the rank beside the
/// id that the process or device has in its own profile: `[TP00] 4242`, `[TP00 4242]`, `TP0-DECODE_0`, `4242_3`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProcessText<'t> {
    /// The rank, which processes and devices of one profile have in common.
    pub rank: &'t str,
    /// The id of the process or device in its own profile.
    pub number: Option<u32>,
}

impl<'t> ProcessText<'t> {
    /// The parts of a text.
    pub fn of(text: &'t str) -> ProcessText<'t> {
        let is_digit = |letter: char| letter.is_ascii_digit();
        let is_between = |letter: char| !letter.is_alphanumeric();
        let text = text.trim_matches(is_between);
        let behind = text.trim_start_matches(is_digit);
        let ahead = text.trim_end_matches(is_digit);
        if behind.len() < text.len() && behind.starts_with(is_between) {
            let number = &text[..text.len() - behind.len()];
            return ProcessText {
                rank: behind.trim_matches(is_between),
                number: number.parse().ok(),
            };
        }
        if ahead.len() < text.len() && (ahead.is_empty() || ahead.ends_with(is_between)) {
            return ProcessText {
                rank: ahead.trim_matches(is_between),
                number: text[ahead.len()..].parse().ok(),
            };
        }
        ProcessText {
            rank: text,
            number: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_the_rank_beside_the_id() {
        let cases = [
            ("[TP00] 4242", "TP00", Some(4242)),
            ("[TP01 4242]", "TP01", Some(4242)),
            ("[TP00-DP01] 0", "TP00-DP01", Some(0)),
            ("TP0-DECODE_0", "TP0-DECODE", Some(0)),
            ("4242_3", "3", Some(4242)),
            ("GPU 1", "GPU", Some(1)),
            ("rank0", "rank0", None),
            ("python", "python", None),
            ("[TP00] Spans", "TP00] Spans", None),
            ("7", "", Some(7)),
            ("", "", None),
            ("[]", "", None),
            ("rank 99999999999999999999", "rank", None),
        ];
        for (text, rank, number) in cases {
            assert_eq!(
                ProcessText::of(text),
                ProcessText { rank, number },
                "{text}"
            );
        }
    }
}
