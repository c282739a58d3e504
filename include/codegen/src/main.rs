//! Writes `include/gputrail.h`, and what belongs to it.

use std::process::ExitCode;

fn main() -> ExitCode {
    let written = gputrail_header::generate().and_then(|files| {
        for (path, text) in files {
            std::fs::write(&path, text)?;
            println!("wrote {}", path.display());
        }
        Ok(())
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gputrail-header: {error}");
            ExitCode::FAILURE
        }
    }
}
