//! How long Perfetto's trace processor takes to load a trace, and the same events as Chrome's JSON.

use std::path::Path;
use std::process::Command;

use gputrail::perfetto::Options;

use crate::json::Chrome;
use crate::{Outcome, Row, made_of};

/// Loads `trace`, which was made of `capture`, and the JSON, in turns.
pub fn measure(capture: &Path, trace: &[u8], scratch: &Path) -> Outcome<Row> {
    let mut json = Chrome::new();
    made_of(capture, &Options::default(), &mut json)?;
    let (ours, theirs) = (scratch.join("ours.pftrace"), scratch.join("theirs.json"));
    std::fs::write(&ours, trace)?;
    std::fs::write(&theirs, json.finish())?;
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/perfetto/load_times.mjs");
    let output = Command::new("node")
        .arg(program)
        .args([&ours, &theirs])
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let loads = text.lines().map(|line| {
        let (seconds, slices) = line.split_once(' ').ok_or("two numbers a line")?;
        Ok((seconds.parse()?, slices.parse()?))
    });
    let loads = loads.collect::<Outcome<Vec<(f64, u64)>>>()?;
    let [(ours, our_slices), (theirs, their_slices)] = loads[..] else {
        return Err("expected two lines".into());
    };
    // Ours has one more for the recording itself.
    if our_slices != their_slices + 1 {
        return Err(format!("{our_slices} slices of ours, {their_slices} of the JSON").into());
    }
    let nanos = |seconds: f64| 1e9 * seconds / their_slices as f64;
    eprintln!(
        "trace processor loads an event of ours in {:.0} ns, of the JSON in {:.0} ns",
        nanos(ours),
        nanos(theirs)
    );
    Ok(Row::at_least(
        "opening in trace processor, times as fast as the same events as Chrome's JSON",
        theirs / ours,
        1.5,
        "x",
    ))
}
