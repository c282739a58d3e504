//! Writes the bindings of `schemas/perfetto_*.proto` to `src/trace/perfetto/schema/`.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    for (path, text) in gputrail_schemas::generate()? {
        std::fs::write(&path, text)?;
        println!("wrote {}", path.display());
    }
    Ok(())
}
