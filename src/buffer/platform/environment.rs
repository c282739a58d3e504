//! The environment variables that instruct us.
//!
//! Whoever starts a program sets them: they name files to write and libraries to load. A program that has more rights than
//! whoever started it (set-user-ID, set-group-ID, file capabilities) does not follow them, as the dynamic linker does not
//! follow its own.

use std::ffi::OsString;

/// The value of a variable; `None` if it is empty or not set, and in a program that has more rights than whoever started
/// it.
pub fn variable(name: &str) -> Option<OsString> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
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
