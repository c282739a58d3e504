//! The `gputrail` command. Its code is in `gputrail-command`, which is compiled beside the libraries that the command
//! carries; only this file waits for both.

use gputrail_command::{Carried, CarriedApi, CarriedLibrary};
use std::process::ExitCode;

/// Pages of `docs/`, with their names.
macro_rules! pages {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../docs/", $name, ".md")))),*]
    };
}

/// The libraries that `build.rs` finds, the headers for tools, and pages of the documentation.
const CARRIED: Carried = Carried {
    library: CarriedLibrary {
        bytes: include_bytes!(env!("GPUTRAIL_LIBRARY")),
        id: env!("GPUTRAIL_LIBRARY_ID"),
    },
    symbols: CarriedLibrary {
        bytes: include_bytes!(env!("GPUTRAIL_SYMBOLS")),
        id: env!("GPUTRAIL_SYMBOLS_ID"),
    },
    header: include_str!("../include/gputrail.h"),
    cpp_header: include_str!("../include/gputrail.hpp"),
    clperfmarker_header: include_str!("../include/CLPerfMarker.h"),
    apis: include!(concat!(env!("OUT_DIR"), "/apis.rs")),
    pages: &pages!("answers" "apis" "control" "convert" "counters" "cuda" "guide" "markers" "opencl" "operations" "parquet" "queries" "rocm" "sampling" "scale" "trace"),
};

fn main() -> ExitCode {
    gputrail_command::run(CARRIED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_carried_libraries_are_for_this_machine() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        for library in [CARRIED.library.bytes, CARRIED.symbols.bytes] {
            assert_eq!(&library[..4], b"\x7fELF");
            // Class, byte order and machine.
            assert_eq!(
                (&library[4..6], &library[18..20]),
                (&own[4..6], &own[18..20])
            );
        }
    }
}
