//! Writes `include/gputrail.h`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let path = gputrail_header::checked_in();
    match gputrail_header::generate().and_then(|text| Ok(std::fs::write(&path, text)?)) {
        Ok(()) => {
            println!("wrote {}", path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("gputrail-header: {error}");
            ExitCode::FAILURE
        }
    }
}
