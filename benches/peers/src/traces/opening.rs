//! The time in which Perfetto's trace processor loads a trace, and the same events as Chrome's JSON in two forms: with
//! a begin and an end for each call as in our trace, and with half as many complete events.

use std::path::Path;
use std::process::Command;

use crate::json::{Calls, Chrome};
use crate::{Outcome, Row, made_of};

/// Loads `trace`, which was made of `capture`, and the JSON in both forms, in turns.
pub fn measure(capture: &Path, trace: &[u8], scratch: &Path) -> Outcome<[Row; 2]> {
    let files = ["ours.pftrace", "events.json", "complete.json"].map(|name| scratch.join(name));
    std::fs::write(&files[0], trace)?;
    for (file, of_calls) in files[1..]
        .iter()
        .zip([Calls::BeginsAndEnds, Calls::Complete])
    {
        let mut json = Chrome::new(of_calls);
        made_of(capture, false, &mut json)?;
        std::fs::write(file, json.finish())?;
    }
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/perfetto/load_times.mjs");
    let output = Command::new("node").arg(program).args(&files).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let loads = text.lines().map(|line| {
        let (seconds, slices) = line.split_once(' ').ok_or("two numbers a line")?;
        Ok((seconds.parse()?, slices.parse()?))
    });
    let loads = loads.collect::<Outcome<Vec<(f64, u64)>>>()?;
    let [
        (ours, our_slices),
        (events, slices),
        (complete, also_slices),
    ] = loads[..]
    else {
        return Err("expected three lines".into());
    };
    // Our trace has one more slice, for the recording itself.
    if our_slices != slices + 1 || slices != also_slices {
        return Err(
            format!("{our_slices} slices of ours, {slices} and {also_slices} of JSON").into(),
        );
    }
    let nanos = |seconds: f64| 1e9 * seconds / slices as f64;
    eprintln!(
        "trace processor loads a slice of ours in {:.0} ns, of JSON in {:.0} ns, of JSON with complete events in {:.0} ns",
        nanos(ours),
        nanos(events),
        nanos(complete)
    );
    Ok([
        Row::at_least(
            "opening in trace processor, times as fast as the same events as Chrome's JSON",
            events / ours,
            1.5,
            "x",
        ),
        Row::beside(
            "the same, where begin and end of a call are one complete event in the JSON",
            complete / ours,
            "x",
        ),
    ])
}
