//! The trace of a recording that goes on.

use crate::cli::contents::Contents;
use crate::output::Output;
use crate::private_dir;
use crate::trace::TraceOrder;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The trace of what has been recorded so far, made while the program runs. The whole trace replaces it.
pub struct EarlyTrace<'a> {
    pub output: &'a Output,
    /// A private directory on the output's disk.
    pub workshop: &'a Path,
    pub contents: Contents,
    /// Where the trace is, if one was made.
    pub path: Mutex<Option<PathBuf>>,
}

impl EarlyTrace<'_> {
    /// Makes the trace of `captures`, which may still grow, for program `pid`.
    pub fn make(&self, pid: u32, captures: &[PathBuf]) -> anyhow::Result<PathBuf> {
        let workshop = private_dir::create_in(self.workshop, "early-")?;
        let mut captures = captures.to_owned();
        let own = format!("{pid}-");
        captures.sort_by_key(|path| {
            let name = path.file_name().unwrap_or_default();
            !name.as_encoded_bytes().starts_with(own.as_bytes())
        });
        let (replaced, path) = self.destination(pid)?;
        let order = TraceOrder {
            captures: &captures,
            output: replaced.as_ref().unwrap_or(self.output),
            path: &path,
            workshop: workshop.path(),
            contents: self.contents,
            captures_may_go: false,
            is_growing: true,
        };
        let path = order.make()?.path;
        *self.path.lock().unwrap_or_else(PoisonError::into_inner) = Some(path.clone());
        Ok(path)
    }

    /// The path of the next trace, and its output if it is to replace an earlier one.
    pub fn destination(&self, pid: u32) -> anyhow::Result<(Option<Output>, PathBuf)> {
        let made = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        match made.as_ref().filter(|_| self.output.is_file()) {
            Some(path) => Ok((Some(Output::replacing(path)?), path.clone())),
            None => Ok((None, self.output.path(pid)?)),
        }
    }
}
