//! A flight recorder: keeps the latest records, and writes them out when a call is slow. `SLOW_CALL_MICROS` sets the
//! limit, 10 ms by default. Each dump is a capture: `gputrail convert flight-*.gputrail -o slow.pftrace`.
//!
//! ```text
//! cargo build --release -p gputrail-examples --example slow_calls
//! gputrail record --tool target/release/examples/libslow_calls.so -- PROGRAM
//! ```

use gputrail_tool::{Finaliser, FlightOptions, FlightRecorder, Tool};
use std::error::Error;
use std::time::Duration;

gputrail_tool::tool!(c"slow-calls", initialise);

fn initialise(_: Tool) -> Result<Finaliser, Box<dyn Error>> {
    let micros = match std::env::var("SLOW_CALL_MICROS") {
        Ok(text) => text.parse()?,
        Err(_) => 10_000,
    };
    let flight = FlightRecorder::start(FlightOptions {
        slow_call: Some(Duration::from_micros(micros)),
        max_dumps: 3,
        ..FlightOptions::default()
    })?;
    Ok(Box::new(move || {
        let dumps = flight.triggered().unwrap_or(0);
        eprintln!("slow-calls: {dumps} dumps");
    }))
}
