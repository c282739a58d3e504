//! How far a process came on its way into a session. It leaves an empty directory in that of the session at each step, so that
//! `gputrail record` can say afterwards why a process was not recorded, however briefly it ran. Unlike a file, a directory is
//! made also where no more files can be opened.

use super::SESSION_VARIABLE;
use gputrail_buffer::platform::inside::Uncancelled;
use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// A step of a process towards its recording.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AttachProgress {
    /// An OpenCL loader has asked our library which kind of layer it is.
    Offered,
    /// The process could not attach to the session, and has said why.
    Failed,
}

impl AttachProgress {
    /// Begins the name of the step's directory, which goes on with the process's id.
    const fn prefix(self) -> &'static str {
        match self {
            AttachProgress::Offered => "offered-",
            AttachProgress::Failed => "failed-",
        }
    }

    /// The name of the step's directory for this process.
    fn name(self) -> String {
        format!("{}{}", self.prefix(), std::process::id())
    }

    /// The step that a directory with this name stands for, and the process.
    fn parse(name: &str) -> Option<(u32, AttachProgress)> {
        [AttachProgress::Offered, AttachProgress::Failed]
            .into_iter()
            .find_map(|step| Some((name.strip_prefix(step.prefix())?.parse().ok()?, step)))
    }
}

/// Notes a step of this process in the session that its environment names, if there is one.
pub fn note(step: AttachProgress) {
    if let Some(directory) = std::env::var_os(SESSION_VARIABLE) {
        note_in(Path::new(&directory), step);
    }
}

/// Notes a step of this process in the session of `directory`. What cannot be noted is not: the session may have ended, or
/// belong to another user.
pub(super) fn note_in(directory: &Path, step: AttachProgress) {
    let _uncancelled = Uncancelled::begin();
    let _ = DirBuilder::new()
        .mode(0o700)
        .create(directory.join(step.name()));
}

/// Takes back what was noted: this process has attached. Whoever reads the notes may know it by another id, outside of its
/// namespace.
pub(super) fn forget_in(directory: &Path, step: AttachProgress) {
    let _uncancelled = Uncancelled::begin();
    let _ = std::fs::remove_dir(directory.join(step.name()));
}

/// The last step of each process that came near the session of `directory`.
pub fn progress(directory: &Path) -> BTreeMap<u32, AttachProgress> {
    let mut steps = BTreeMap::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if let Some((process, step)) = entry.file_name().to_str().and_then(AttachProgress::parse) {
            let last = steps.entry(process).or_insert(step);
            *last = step.max(*last);
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_of_a_process_is_found_and_other_files_are_not() {
        let directory = tempfile::tempdir().unwrap();
        assert!(progress(directory.path()).is_empty());
        note_in(directory.path(), AttachProgress::Failed);
        note_in(directory.path(), AttachProgress::Offered);
        note_in(directory.path(), AttachProgress::Offered);
        for name in ["socket", "offered-7", "offered-x", "failed-"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        let own = (std::process::id(), AttachProgress::Failed);
        let all = BTreeMap::from([own, (7, AttachProgress::Offered)]);
        assert_eq!(progress(directory.path()), all);
        note_in(&directory.path().join("gone"), AttachProgress::Offered);
        forget_in(directory.path(), AttachProgress::Failed);
        assert_eq!(progress(directory.path())[&own.0], AttachProgress::Offered);
        forget_in(directory.path(), AttachProgress::Offered);
        assert_eq!(progress(directory.path()).len(), 1);
    }
}
