//! What ties a thread's calls to device work: what they submitted, and what they waited for.

use crate::record::CorrelationId;

/// Most ties that one thread holds for calls that have not been seen yet.
const MAX_TIES: usize = 1 << 16;

/// That a call submitted work, or waited for it.
#[derive(Copy, Clone, Debug)]
struct Tie {
    call: CorrelationId,
    event: u64,
    waited: bool,
    told: bool,
}

/// The ties of one thread.
#[derive(Debug, Default)]
pub(super) struct Ties {
    list: Vec<Tie>,
}

/// What one call is tied to, by event ids.
#[derive(Debug, Default)]
pub(super) struct Tied {
    pub submitted: Vec<u64>,
    pub waited: Vec<u64>,
}

impl Tied {
    pub fn is_empty(&self) -> bool {
        self.submitted.is_empty() && self.waited.is_empty()
    }
}

impl Ties {
    /// `call` submitted the work of `event`, or `waited` for it.
    pub fn add(&mut self, call: CorrelationId, event: u64, waited: bool) {
        if self.list.len() >= MAX_TIES {
            // Calls that were dropped leave theirs behind.
            self.list.clear();
            return;
        }
        self.list.push(Tie {
            call,
            event,
            waited,
            told: false,
        });
    }

    /// Whether no calls are tied to anything, as far as is known.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The work of the only tie that is known, and whether it was waited for, if it is of `call`.
    #[inline]
    pub fn only(&self, call: CorrelationId) -> Option<(u64, bool)> {
        match self.list[..] {
            [tie] if tie.call == call => Some((tie.event, tie.waited)),
            _ => None,
        }
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// To be called before calls are asked after.
    #[inline]
    pub fn sort(&mut self) {
        if self.list.len() > 1 {
            self.list.sort_by_key(|tie| tie.call);
        }
    }

    /// What `call` is tied to.
    pub fn tell(&mut self, call: CorrelationId, tied: &mut Tied) {
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
            tie.told = true;
        }
    }

    /// Forgets what has been told.
    #[inline]
    pub fn forget_told(&mut self) {
        if !self.list.is_empty() {
            self.list.retain(|tie| !tie.told);
        }
    }
}
