//! Whether the process runs under a debugger, where PC sampling is not available.

/// The process that traces this one, if any (`TracerPid` of `/proc/self/status`).
pub(super) fn tracer() -> Option<u32> {
    tracer_in(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn tracer_in(status: &str) -> Option<u32> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"))?;
    line.trim().parse().ok().filter(|tracer| *tracer != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_on_its_own_has_no_tracer() {
        assert_eq!(tracer_in("Name:\tx\nTracerPid:\t0\nUid:\t0\n"), None);
        assert_eq!(tracer_in("Name:\tx\nTracerPid:\t4711\n"), Some(4711));
        assert_eq!(tracer_in(""), None);
        assert_eq!(tracer_in("TracerPid:\tmany\n"), None);
    }
}
