//! PC sampling: how often an agent is sampled.

use gputrail_record::open_enum;

open_enum! {
    /// How often, in words (CUPTI: `CUpti_ActivityPCSamplingPeriod`).
    PeriodLevel(u32) {
        /// Not set.
        INVALID = 0, "not set";
        /// The shortest period that the agent can do.
        MIN = 1, "min";
        /// A short one.
        LOW = 2, "low";
        /// A medium one.
        MID = 3, "mid";
        /// A long one.
        HIGH = 4, "high";
        /// The longest period that the agent can do.
        MAX = 5, "max";
    }
}
