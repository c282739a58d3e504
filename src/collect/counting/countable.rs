//! The counters that an agent offers.

use gputrail_counters::Architecture;
use gputrail_interface::counting::in_words;
use gputrail_record::Nanos;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

/// The counters that an agent offers.
#[derive(Clone, Debug)]
pub struct Countable {
    /// Its blocks, counters and metrics.
    pub architecture: Arc<Architecture>,
    /// Whether it counts for each dispatch.
    pub dispatches: bool,
    /// The shortest period at which the agent as a whole is read; `None` if it cannot be.
    pub shortest_period: Option<Nanos>,
    /// The most passes in which a kernel is run again for counters that do not fit one pass.
    pub passes: usize,
    /// The most passes in which ranges of markers are counted; 0 if they are not.
    pub range_passes: usize,
    /// The most counters of a pass, of all blocks together; `None` if only the capacities of the blocks limit them.
    pub per_pass: Option<NonZeroU32>,
}

impl fmt::Display for Countable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metrics = self.architecture.metrics_in_order().len();
        let counters = self.architecture.counters().len() - metrics;
        write!(f, "{counters} counters, {metrics} metrics")?;
        if self.dispatches {
            write!(f, "; of each dispatch, in up to {} passes", self.passes)?;
        }
        match self.range_passes {
            0 => {}
            1 => f.write_str("; of each range, in one pass")?,
            _ => f.write_str("; of each range")?,
        }
        match self.shortest_period {
            Some(shortest) => write!(f, "; at a period of at least {}", in_words(shortest)),
            None => Ok(()),
        }
    }
}
