//! The `gputrail` command: all that it does is in `gputrail-command`, which is compiled while `build.rs` builds the library
//! that the command carries. Only this waits for both.

use gputrail_command::Carried;
use std::process::ExitCode;

/// Made by `build.rs`.
const LIBRARY: Carried = Carried {
    bytes: include_bytes!(env!("GPUTRAIL_LIBRARY")),
    id: env!("GPUTRAIL_LIBRARY_ID"),
};

fn main() -> ExitCode {
    gputrail_command::run(LIBRARY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_carried_is_one_for_this_machine() {
        let library = LIBRARY.bytes;
        assert_eq!(&library[..4], b"\x7fELF");
        let own = std::fs::read("/proc/self/exe").unwrap();
        // Class, byte order and machine.
        assert_eq!(
            (&library[4..6], &library[18..20]),
            (&own[4..6], &own[18..20])
        );
    }
}
