//! Links between the calls of a thread and device work: submitted by the call, or waited for.

use crate::model::EventId;
use gputrail_record::CorrelationId;

/// Maximum number of links that one thread keeps for calls that have not come yet.
const MAX_LINKS: usize = 1 << 16;

/// A link: a call submitted work, or waited for it.
#[derive(Copy, Clone, Debug)]
struct CallLink {
    call: CorrelationId,
    event: EventId,
    waited: bool,
    /// Whether the call has been passed on.
    passed_on: bool,
}

/// The links of one thread.
#[derive(Debug, Default)]
pub(super) struct Links {
    list: Vec<CallLink>,
}

/// The links of one call, by event ids.
#[derive(Debug, Default)]
pub(super) struct LinksOfCall {
    pub submitted: Vec<EventId>,
    pub waited: Vec<EventId>,
}

impl Links {
    /// Adds a link: `call` submitted the work of `event`, or `waited` for it.
    pub fn add(&mut self, call: CorrelationId, event: EventId, waited: bool) {
        if self.list.len() >= MAX_LINKS {
            // Links of calls that were dropped.
            self.list.clear();
            return;
        }
        self.list.push(CallLink {
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
            [link] if link.call == call => Some((link.event, link.waited)),
            _ => None,
        }
    }

    /// Removes all links.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// Sorts the links. Must be called before [`Links::of`].
    #[inline]
    pub fn sort(&mut self) {
        if self.list.len() > 1 {
            self.list.sort_by_key(|link| link.call);
        }
    }

    /// Writes the links of `call` to `links_of_call`, and marks them as passed on.
    pub fn of(&mut self, call: CorrelationId, links_of_call: &mut LinksOfCall) {
        links_of_call.submitted.clear();
        links_of_call.waited.clear();
        let first = self.list.partition_point(|link| link.call < call);
        let of_this_call = self.list[first..].iter_mut();
        for link in of_this_call.take_while(|link| link.call == call) {
            let list = if link.waited {
                &mut links_of_call.waited
            } else {
                &mut links_of_call.submitted
            };
            list.push(link.event);
            link.passed_on = true;
        }
    }

    /// Removes the links of calls that have been passed on.
    #[inline]
    pub fn forget_passed_on(&mut self) {
        if !self.list.is_empty() {
            self.list.retain(|link| !link.passed_on);
        }
    }
}
