//! Events and metrics: counters of devices, their groups, and what counts them.
//!
//! | here | of gputrail |
//! |---|---|
//! | event domain | a block of a device that counts |
//! | event | a counter |
//! | metric | a metric that follows from the totals of its counters |
//! | groups that are enabled in the mode *kernel* | counters that are chosen for each kernel of their context |
//! | groups that are enabled in the mode *continuous* | counters that are read at a period, which ends when they are read |

pub mod catalogue;
pub mod device;
pub mod document;
pub mod engine;
pub mod groups;
pub mod replay;
pub mod sets;
pub mod values;
