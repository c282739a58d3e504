//! The command line of `gputrail merge`.

use super::help::{MERGE_EXAMPLES, MERGE_NOTES, TEMPLATE};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

/// Merge several traces into one, of one machine or of several
#[derive(Args)]
#[command(help_template = TEMPLATE, before_help = MERGE_EXAMPLES, after_help = MERGE_NOTES)]
pub struct Merge {
    /// Traces, including those of Perfetto's own tools, and captures (.gputrail)
    #[arg(required = true, value_name = "TRACE|CAPTURE")]
    pub inputs: Vec<PathBuf>,

    /// The merged trace
    #[arg(short, long, value_name = "OUT")]
    pub output: OsString,

    /// The time to add to an input (numbered from 1), in nanoseconds; may be given for several
    #[arg(long, value_name = "INPUT=NANOSECONDS", allow_hyphen_values = true)]
    pub offset: Vec<Offset>,

    /// Print only errors and warnings
    #[arg(short, long)]
    pub quiet: bool,
}

/// An offset from the user: `2=-1500000` is the number of the input, and nanoseconds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Offset {
    /// Number of the input, from 1.
    pub input: usize,
    pub nanos: i64,
}

impl FromStr for Offset {
    type Err = String;

    fn from_str(text: &str) -> Result<Offset, String> {
        let expected = || format!("{text}: expected INPUT=NANOSECONDS, as 2=-1500000");
        let (input, nanos) = text.split_once('=').ok_or_else(expected)?;
        let input: usize = input.parse().map_err(|_| expected())?;
        let nanos = nanos.parse().map_err(|_| expected())?;
        match input {
            0 => Err(expected()),
            input => Ok(Offset { input, nanos }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_names_an_input_and_nanoseconds() {
        let offset = Offset {
            input: 2,
            nanos: -1500,
        };
        assert_eq!("2=-1500".parse(), Ok(offset));
        for wrong in ["", "2", "0=1", "x=1", "2=1.5", "=3"] {
            assert!(wrong.parse::<Offset>().is_err(), "{wrong}");
        }
    }
}
