//! The configurations that an agent offers, as text.

use gputrail_interface::sampling::Configuration;
use std::fmt;

/// The configurations that an agent offers, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Possible(pub Vec<Configuration>);

impl fmt::Display for Possible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("nothing");
        }
        for (place, one) in self.0.iter().enumerate() {
            let before = if place == 0 { "" } else { "; " };
            write!(f, "{before}{one}")?;
        }
        Ok(())
    }
}
