//! The files that commands look into: captures and traces.

use anyhow::{Context, Result, anyhow};
use gputrail::capture::Reader;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

/// What a capture begins with.
const CAPTURE: &[u8] = b"GPUTRAIL";

/// A file to look into.
pub enum Input {
    /// A capture, its names and clocks read.
    Capture(Box<Reader>),
    /// A trace, or what is taken for one.
    Trace(File),
}

impl Input {
    /// Opens a file and looks at what it is.
    pub fn open(path: &Path) -> Result<Input> {
        let cannot = || format!("cannot read {}", path.display());
        let mut file = File::open(path).with_context(cannot)?;
        if file.metadata().with_context(cannot)?.is_dir() {
            return Err(anyhow!("{} is a directory", path.display()));
        }
        let mut first = Vec::new();
        file.by_ref()
            .take(CAPTURE.len() as u64)
            .read_to_end(&mut first)
            .with_context(cannot)?;
        if first == CAPTURE {
            let reader = Reader::open(path).map_err(|error| anyhow!(error))?;
            return Ok(Input::Capture(Box::new(reader)));
        }
        file.rewind().with_context(cannot)?;
        Ok(Input::Trace(file))
    }
}
