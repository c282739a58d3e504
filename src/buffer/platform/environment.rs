//! The environment variables that instruct us.
//!
//! Whoever starts a program sets them: they name files to write and libraries to load. A program that has more rights than
//! whoever started it (set-user-ID, set-group-ID, file capabilities) does not follow them, as the dynamic linker does not
//! follow its own.

use std::ffi::OsString;

/// The begin of the names of our variables in a process that `gputrail attach` has attached to: AMD's library for that passes
/// on no others.
pub const PASSED_ON: &str = "ROCP_";
/// The begin of the names of our variables.
const OURS: &str = "GPUTRAIL_";

/// The value of a variable, or that of an attacher if it is one of ours; `None` if it is empty or not set, and in a program that has
/// more rights than whoever started it.
pub fn variable(name: &str) -> Option<OsString> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let passed_on = || {
        let is_ours = name.starts_with(OURS);
        is_ours.then(|| of(&format!("{PASSED_ON}{name}")))?
    };
    let value = of(name).or_else(passed_on);
    value.filter(|_| !has_more_rights())
}

/// Whether the program has more rights than whoever started it.
fn has_more_rights() -> bool {
    #[cfg(target_os = "linux")]
    // SAFETY: takes a number, and returns one.
    return unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    #[cfg(not(target_os = "linux"))]
    false
}
