//! Writes the bindings of `schemas/perfetto_*.proto` to `src/trace/perfetto/schema/`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let path = gputrail_schemas::checked_in();
    match gputrail_schemas::generate().and_then(|text| Ok(std::fs::write(&path, text)?)) {
        Ok(()) => {
            println!("wrote {}", path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("gputrail-schemas: {error}");
            ExitCode::FAILURE
        }
    }
}
