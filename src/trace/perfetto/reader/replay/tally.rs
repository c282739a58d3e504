//! Counts of the parts of a trace that the model does not hold, or holds in another form.

use std::borrow::Cow;

use crate::perfetto::reader::PacketPosition;

/// Maximum number of reasons that are distinguished.
const MAX_REASONS: usize = 128;
/// Number of positions that are kept for each reason.
const MAX_POSITIONS: usize = 3;

/// Parts of a trace that are counted for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedParts {
    /// The kind of the parts, and why they are counted.
    pub reason: Cow<'static, str>,
    /// Their number.
    pub count: u64,
    /// The positions of the first ones.
    pub first: Vec<PacketPosition>,
}

/// Counts by reason.
#[derive(Debug, Default)]
pub(super) struct Tallies {
    list: Vec<CountedParts>,
}

impl Tallies {
    /// Counts `count` parts of the packet at `position`.
    #[cold]
    pub fn add(
        &mut self,
        reason: impl Into<Cow<'static, str>>,
        position: PacketPosition,
        count: u64,
    ) {
        let reason = reason.into();
        let known = self.list.iter().position(|one| one.reason == reason);
        let place = known.unwrap_or_else(|| {
            if self.list.len() < MAX_REASONS {
                // The last entry stands for all further reasons.
                let reason = if self.list.len() + 1 < MAX_REASONS {
                    reason
                } else {
                    "parts of further kinds".into()
                };
                self.list.push(CountedParts {
                    reason,
                    count: 0,
                    first: Vec::new(),
                });
            }
            self.list.len() - 1
        });
        let one = &mut self.list[place];
        one.count = one.count.saturating_add(count);
        if one.first.len() < MAX_POSITIONS {
            one.first.push(position);
        }
    }

    pub fn into_list(self) -> Vec<CountedParts> {
        self.list
    }
}
