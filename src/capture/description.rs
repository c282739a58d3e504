//! The description of a recording, a text that stands in the capture of each of its processes.

use gputrail_buffer::Policy;

/// Precedes the text of a scope in the description.
pub const SELECTED: &str = "; selected: ";

/// Returns whether a recording with this description holds only a part of the calls and work: those that the scope
/// selects, or the latest ones.
pub fn is_selective(description: &str) -> bool {
    description.contains(SELECTED)
        || description.contains(&format!(", {} policy", Policy::Overwrite))
}
