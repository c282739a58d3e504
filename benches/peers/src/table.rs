//! The table of peers.

use crate::rounds::{Measured, Peer};

/// The limits for a traced call beyond two tick reads, and for external ids beyond a call without, in nanoseconds.
const CALL_ALLOWED: f64 = 4.0;
const EXTERNAL_ALLOWED: f64 = 3.0;
/// The targets: by which factor a call is to be cheaper than with a peer, with one thread and with two.
const TARGETS: [(&str, Option<f64>, Option<f64>); 3] = [
    ("Tracy", Some(1.6), None),
    ("LTTng-UST", Some(8.0), None),
    ("perfetto-sdk", Some(10.0), Some(20.0)),
];

/// Prints everything measured; the first three peers are those of [`crate::ours`].
pub fn print(peers: &[Box<dyn Peer>], measured: &[Measured]) {
    let [ticks, call, external, ..] = measured else {
        return;
    };
    println!("| a span, begin to end | one thread | | two threads | | target | |");
    println!("|---|---|---|---|---|---|---|");
    for (peer, cost) in peers.iter().zip(measured) {
        let (one, two) = (
            cost.one_thread / call.one_thread,
            cost.two_threads / call.two_threads,
        );
        let (target, met) = target(peer.name(), one, two);
        println!(
            "| {} | {:.2} x two tick reads | {one:.2} x ours | {:.2} x two tick reads | {two:.2} x ours | {target} | {} |",
            peer.name(),
            cost.one_thread / ticks.one_thread,
            cost.two_threads / ticks.two_threads,
            verdict(met),
        );
    }
    println!();
    println!("| ours | one thread | two threads | target | |");
    println!("|---|---|---|---|---|");
    let beyond = |what: &str, cost: &Measured, base: &Measured, base_name: &str, allowed: f64| {
        let (one, two) = (
            cost.one_thread - base.one_thread,
            cost.two_threads - base.two_threads,
        );
        println!(
            "| {what} | {base_name} {one:+.1} ns | {base_name} {two:+.1} ns | {base_name} + {allowed} ns | {} |",
            verdict(Some(one <= allowed)),
        );
    };
    beyond(
        "a traced API call",
        call,
        ticks,
        "two tick reads",
        CALL_ALLOWED,
    );
    beyond(
        "the same with external ids pushed",
        external,
        call,
        "the call",
        EXTERNAL_ALLOWED,
    );
    println!();
}

/// The target for a peer, as text, and whether it is met.
fn target(name: &str, one: f64, two: f64) -> (String, Option<bool>) {
    let Some((_, wants_one, wants_two)) = TARGETS.iter().find(|(peer, ..)| name.starts_with(peer))
    else {
        return (String::new(), None);
    };
    let mut words = Vec::new();
    let mut met = true;
    for (wanted, is, threads) in [(wants_one, one, "one thread"), (wants_two, two, "two")] {
        if let Some(wanted) = wanted {
            words.push(format!("{wanted} x with {threads}"));
            met &= is >= *wanted;
        }
    }
    (words.join(", "), Some(met))
}

fn verdict(met: Option<bool>) -> &'static str {
    match met {
        Some(true) => "met",
        Some(false) => "missed",
        None => "",
    }
}
