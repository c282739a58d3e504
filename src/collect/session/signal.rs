//! Names of signals, for saying what ended a process.

/// The signal's name, as `kill -l` knows it.
pub fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 32] = [
        "0", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV",
        "USR2", "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU",
        "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let name = usize::try_from(signal)
        .ok()
        .and_then(|signal| NAMES.get(signal));
    name.map_or_else(
        || format!("SIGRTMIN+{}", signal - 34),
        |name| format!("SIG{name}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_their_names() {
        assert_eq!(signal_name(libc::SIGKILL), "SIGKILL");
        assert_eq!(signal_name(libc::SIGSYS), "SIGSYS");
        assert_eq!(signal_name(36), "SIGRTMIN+2");
    }
}
