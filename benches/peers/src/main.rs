//! The cost of an event here and in other tracers, measured in alternation in one process; and whether the collector
//! keeps up with a producer. `run` builds everything and starts it; README.md describes the method.
//!
//! Nothing is asserted: on a shared machine a figure may miss its target, and the reader of the tables judges.

mod collector;
mod lttng;
mod ours;
mod peers;
mod rounds;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The extent of the measurement.
struct Effort {
    rounds: usize,
    collector_seconds: u64,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gputrail-peers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome<()> {
    let mut arguments = std::env::args_os().skip(1);
    let library = arguments.next().map(PathBuf::from);
    let library =
        library.ok_or("usage: gputrail-peers LIBRARY [--quick]; benches/peers/run starts it")?;
    let effort = match arguments.next() {
        Some(_) => Effort {
            rounds: 20,
            collector_seconds: 3,
        },
        None => Effort {
            rounds: 100,
            collector_seconds: 30,
        },
    };
    let scratch = tempfile::tempdir()?;
    let mut peers = ours::peers(&library, scratch.path())?;
    peers.extend(peers::all()?);
    match lttng::Session::start(scratch.path()) {
        Ok(session) => peers.push(Box::new(session)),
        Err(error) => println!("LTTng-UST is left out: {error}\n"),
    }
    let measured = rounds::measure(&peers, effort.rounds);
    table::print(&peers, &measured);
    let spans = effort.rounds as u64 * rounds::SPANS_IN_A_ROUND;
    for peer in &peers {
        if let Some(remark) = peer.remark(spans) {
            println!("{}: {remark}\n", peer.name());
        }
    }
    drop(peers);
    collector::measure(scratch.path(), effort.collector_seconds)?.print();
    Ok(())
}
