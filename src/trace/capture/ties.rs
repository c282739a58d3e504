//! Links between the calls of a thread and device work: submitted by the call, or waited for.

use crate::record::CorrelationId;
use crate::trace::model::EventId;

/// Maximum number of links that one thread keeps for calls that have not come yet.
const MAX_TIES: usize = 1 << 16;

/// A link: a call submitted work, or waited for it.
#[derive(Copy, Clone, Debug)]
struct Tie {
    call: CorrelationId,
    event: EventId,
    waited: bool,
    /// Whether the call has been passed on.
    passed_on: bool,
}

/// The links of one thread.
#[derive(Debug, Default)]
pub(super) struct Ties {
    list: Vec<Tie>,
}

/// The links of one call, by event ids.
#[derive(Debug, Default)]
pub(super) struct Tied {
    pub submitted: Vec<EventId>,
    pub waited: Vec<EventId>,
}

impl Ties {
    /// Adds a link: `call` submitted the work of `event`, or `waited` for it.
    pub fn add(&mut self, call: CorrelationId, event: EventId, waited: bool) {
        if self.list.len() >= MAX_TIES {
            // Links of calls that were dropped.
            self.list.clear();
            return;
        }
        self.list.push(Tie {
            call,
            event,
            waited,
            passed_on: false,
        });
    }

    /// Whether there are no links.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The event of the only link and whether it was waited for, if the thread has a single link and it belongs to
    /// `call`.
    #[inline]
    pub fn only(&self, call: CorrelationId) -> Option<(EventId, bool)> {
        match self.list[..] {
            [tie] if tie.call == call => Some((tie.event, tie.waited)),
            _ => None,
        }
    }

    /// Removes all links.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// Sorts the links. Must be called before [`Ties::of`].
    #[inline]
    pub fn sort(&mut self) {
        if self.list.len() > 1 {
            self.list.sort_by_key(|tie| tie.call);
        }
    }

    /// Writes the links of `call` to `tied`, and marks them as passed on.
    pub fn of(&mut self, call: CorrelationId, tied: &mut Tied) {
        tied.submitted.clear();
        tied.waited.clear();
        let first = self.list.partition_point(|tie| tie.call < call);
        let of_call = self.list[first..].iter_mut();
        for tie in of_call.take_while(|tie| tie.call == call) {
            let list = if tie.waited {
                &mut tied.waited
            } else {
                &mut tied.submitted
            };
            list.push(tie.event);
            tie.passed_on = true;
        }
    }

    /// Removes the links of calls that have been passed on.
    #[inline]
    pub fn forget_passed_on(&mut self) {
        if !self.list.is_empty() {
            self.list.retain(|tie| !tie.passed_on);
        }
    }
}
