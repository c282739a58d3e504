//! Counts of activity records that are missing from the recording, or that lack something.

use super::pool::POOL;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_record::count;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// A count, and the words with which the notes of a recording state it.
pub(super) struct NotedCount {
    number: AtomicU64,
    is_loss: bool,
    /// The noun for one of the things that are counted.
    one: &'static str,
    /// The predicate, in words that fit one and several.
    fact: &'static str,
}

const RECORD: &str = "activity record";
const BUFFER: &str = "buffer";

impl NotedCount {
    const fn loss(one: &'static str, fact: &'static str) -> NotedCount {
        NotedCount {
            number: AtomicU64::new(0),
            is_loss: true,
            one,
            fact,
        }
    }

    const fn note(one: &'static str, fact: &'static str) -> NotedCount {
        NotedCount {
            is_loss: false,
            ..NotedCount::loss(one, fact)
        }
    }

    /// Adds `number`.
    pub fn add(&self, number: usize) {
        self.number.fetch_add(number as u64, Ordering::Relaxed);
    }

    /// A sentence, unless the count is 0.
    fn describe(&self) -> Option<String> {
        let number = self.number.load(Ordering::Relaxed);
        (number > 0).then(|| format!("CUDA: {} {}", count(number, self.one), self.fact))
    }
}

/// Advice to the user where CUPTI drops records. Our buffers do not fill: it gets another one whenever it asks.
const DROPPED_BY: &str =
    "dropped by CUPTI, which had no room for them: recording less (--kind, --kernel) leaves more";
pub(super) static DROPPED: NotedCount = NotedCount::loss(RECORD, DROPPED_BY);
/// Records that CUPTI dropped of one stream of a context, by the numbers of both.
static DROPPED_IN: PerProcess<BTreeMap<(u32, u32), u64>> = PerProcess::new();
pub(super) static AFTER_END: NotedCount = NotedCount::loss(
    BUFFER,
    "of activity records came after the end, or on a thread too many",
);
pub(super) static BUSY: NotedCount = NotedCount::loss(
    BUFFER,
    "of activity records came in the middle of another record of the thread",
);
pub(super) static MALFORMED: NotedCount =
    NotedCount::loss(BUFFER, "of activity records could not be read to the end");
pub(super) static UNKNOWN_SIZE: NotedCount =
    NotedCount::loss(RECORD, "of a size that the library does not state");
pub(super) static BEFORE_START: NotedCount =
    NotedCount::note(RECORD, "from before the start left out");
pub(super) static UNTIMED: NotedCount = NotedCount::note(RECORD, "without times");
pub(super) static WITHOUT_CALL: NotedCount = NotedCount::note(RECORD, "without a recorded call");
pub(super) static FOREIGN: NotedCount =
    NotedCount::note(RECORD, "of a kind that is not recorded left out");

static ALL: [&NotedCount; 9] = [
    &DROPPED,
    &AFTER_END,
    &BUSY,
    &MALFORMED,
    &UNKNOWN_SIZE,
    &BEFORE_START,
    &UNTIMED,
    &WITHOUT_CALL,
    &FOREIGN,
];

/// Counts records that CUPTI dropped: of a stream of a context, or without saying of which.
pub(super) fn dropped(number: usize, place: Option<(u32, u32)>) {
    match place {
        _ if number == 0 => {}
        None => DROPPED.add(number),
        Some(place) => *DROPPED_IN.lock().entry(place).or_default() += number as u64,
    }
}

/// A sentence for each count that is not 0, and whether it is a loss.
pub(super) fn describe() -> Vec<(String, bool)> {
    let refused = POOL.refused();
    let full = format!(
        "CUDA: {} of CUPTI found no memory for a buffer; the records that it put there are lost",
        count(refused, "request")
    );
    let mut texts: Vec<_> = (refused > 0).then_some((full, true)).into_iter().collect();
    let grown = POOL.grown();
    if grown > 0 {
        let buffers = count(grown, "buffer");
        let text = format!("CUDA: {buffers} of CUPTI, mapped while the program ran");
        texts.push((text, false));
    }
    for ((context, stream), number) in DROPPED_IN.lock().iter() {
        let records = count(*number, RECORD);
        let text = format!("CUDA: {records} of context {context}, stream {stream} {DROPPED_BY}");
        texts.push((text, true));
    }
    for count in ALL {
        texts.extend(count.describe().map(|text| (text, count.is_loss)));
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_stated_in_the_singular_and_the_plural_and_not_where_it_is_0() {
        let dropped = NotedCount::loss(RECORD, "dropped by CUPTI");
        assert_eq!(dropped.describe(), None);
        dropped.add(1);
        let text = dropped.describe();
        assert_eq!(
            text.as_deref(),
            Some("CUDA: 1 activity record dropped by CUPTI")
        );
        dropped.add(1);
        let text = dropped.describe();
        assert_eq!(
            text.as_deref(),
            Some("CUDA: 2 activity records dropped by CUPTI")
        );
    }
}
