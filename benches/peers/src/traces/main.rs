//! The speed of writing, reading and opening traces, and their size: one table, each figure beside its target.
//!
//! `benches/peers/traces` builds it and starts it. Alternatives take turns in many rounds, and figures are medians of
//! the rounds' processor times. Nothing is asserted: on a shared machine a figure may miss its target, and the reader
//! of the table judges.

mod capture;
mod encode;
mod json;
mod long;
mod opening;
mod rounds;

use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use gputrail_analysis::summary::Summary;
use gputrail_capture::Reader;
use gputrail_trace::capture::Options;
use gputrail_trace::make_trace;
use gputrail_trace::model::{Consumer, Producer};
use gputrail_trace::perfetto::Exporter;
use gputrail_trace::perfetto::reader::{self, TraceReplay};

use json::LayerLines;
use rounds::medians;

/// Number of enqueues in the recording: seven records each.
const ENQUEUES: u64 = 40_000;
/// Number of bytes that are written to a file at once.
const WRITTEN_AT_ONCE: usize = 128 << 10;
/// Field number of render-stage events in packets.
const RENDER_STAGE: u32 = 53;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// One row of the table.
struct Row {
    what: &'static str,
    measured: String,
    target: String,
    /// Whether the target is met, if there is one.
    met: Option<bool>,
}

impl Row {
    /// A figure whose target is a minimum.
    fn at_least(what: &'static str, measured: f64, target: f64, unit: &str) -> Row {
        Row {
            what,
            measured: format!("{measured:.1} {unit}"),
            target: format!("at least {target} {unit}"),
            met: Some(measured >= target),
        }
    }

    /// A figure without a target, for comparison.
    fn beside(what: &'static str, measured: f64, unit: &str) -> Row {
        Row {
            what,
            measured: format!("{measured:.1} {unit}"),
            target: String::new(),
            met: None,
        }
    }

    /// A figure whose target is a maximum.
    fn at_most(what: &'static str, measured: f64, target: f64, unit: &str) -> Row {
        Row {
            what,
            measured: format!("{measured:.1} {unit}"),
            target: format!("at most {target} {unit}"),
            met: Some(measured <= target),
        }
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gputrail-traces: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome<()> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let command = match &arguments[..] {
        [] => None,
        [long, command] if long == "--long" => Some(PathBuf::from(command)),
        _ => {
            return Err(
                "usage: gputrail-traces [--long GPUTRAIL]; benches/peers/traces starts it".into(),
            );
        }
    };
    let scratch = tempfile::tempdir()?;
    let plain = scratch.path().join("plain.gputrail");
    let with_arguments = scratch.path().join("arguments.gputrail");
    let records = capture::write(&plain, ENQUEUES, false);
    capture::write(&with_arguments, ENQUEUES, true);

    let mut rows = encoding();
    let trace = made_of(&plain, false, &mut ())?;
    rows.push(writing(&plain, &trace, records, scratch.path()));
    rows.extend(sizes(&plain, &with_arguments, &trace)?);
    rows.extend(reading(&trace));
    match opening::measure(&plain, &trace, scratch.path()) {
        Ok(measured) => rows.extend(measured),
        Err(error) => eprintln!("gputrail-traces: opening could not be measured: {error}"),
    }
    if let Some(command) = command {
        rows.push(long::measure(&command, scratch.path())?);
    }
    println!("| what | result | target | |");
    println!("|---|---|---|---|");
    for row in rows {
        let verdict = match row.met {
            Some(true) => "met",
            Some(false) => "missed",
            None => "",
        };
        println!(
            "| {} | {} | {} | {verdict} |",
            row.what, row.measured, row.target
        );
    }
    Ok(())
}

fn made_of(capture: &Path, compress: bool, observer: &mut dyn Consumer) -> Outcome<Vec<u8>> {
    let mut bytes = Vec::new();
    let trace = Exporter::new(&mut bytes).compressed(compress);
    make_trace(
        &[Reader::open(capture)?],
        trace,
        &Options::default(),
        observer,
    )?;
    Ok(bytes)
}

fn encoding() -> Vec<Row> {
    let [ours, prost, protos] = medians([
        &mut encode::by_hand,
        &mut encode::with_prost,
        &mut encode::with_perfetto_protos,
    ]);
    let nanos = ours.as_nanos() as f64 / encode::PACKETS as f64;
    eprintln!("encoding by hand: {nanos:.1} ns a packet");
    let times = |theirs: Duration| theirs.as_secs_f64() / ours.as_secs_f64();
    vec![
        Row::at_least(
            "encoding by hand, times as fast as prost with fresh structs",
            times(prost),
            4.0,
            "x",
        ),
        Row::at_least(
            "the same, times as fast as perfetto_protos, which lacks some of the fields",
            times(protos),
            8.0,
            "x",
        ),
    ]
}

fn writing(capture: &Path, trace: &[u8], records: u64, scratch: &Path) -> Row {
    let convert_for = |buffer: &mut Vec<u8>, observer: &mut dyn Consumer| {
        buffer.clear();
        let capture = Reader::open(capture).expect("the capture just written");
        let trace = Exporter::new(buffer);
        make_trace(&[capture], trace, &Options::default(), observer).expect("no error");
    };
    let (mut plain, mut summed_up) = (Vec::new(), Vec::new());
    let out = scratch.join("out");
    let [converting, summing_up, writing] = medians([
        &mut || convert_for(&mut plain, &mut ()),
        &mut || convert_for(&mut summed_up, &mut Summary::default()),
        &mut || {
            let mut file = File::create(&out).expect("a file");
            for chunk in trace.chunks(WRITTEN_AT_ONCE) {
                file.write_all(chunk).expect("room");
            }
        },
    ]);
    let million = |time: Duration| records as f64 / 1e6 / time.as_secs_f64();
    let written = million(writing);
    eprintln!(
        "write(2) alone, of the same bytes: {written:.0} million records a second; from capture to trace with a summary: {:.1}",
        million(summing_up)
    );
    Row::at_least(
        "from capture to trace, one core",
        million(converting),
        15_f64.min(written / 2.0),
        "million records a second",
    )
}

fn sizes(plain: &Path, with_arguments: &Path, trace: &[u8]) -> Outcome<Vec<Row>> {
    let mut lines = LayerLines::default();
    made_of(plain, false, &mut lines)?;
    let packed = made_of(plain, true, &mut ())?.len() as f64;
    let arguments = made_of(with_arguments, false, &mut ())?;
    let info = reader::info(trace);
    let (_, stages) = info.packets.get(&RENDER_STAGE).copied().unwrap_or_default();
    let kernel = stages as f64 / ENQUEUES as f64;
    let call = (trace.len() as f64 - stages as f64) / (5 * ENQUEUES) as f64;
    // Calls that enqueue have no arguments there.
    let more = (arguments.len() - trace.len()) as f64 / (4 * ENQUEUES) as f64;
    let pair = lines.text.len() as f64 / ENQUEUES as f64;
    Ok(vec![
        Row::at_most(
            "size of a call, with its share of names and descriptors",
            call,
            40.0,
            "bytes",
        ),
        Row::at_most(
            "size of a call with two numeric arguments",
            call + more,
            60.0,
            "bytes",
        ),
        Row::at_most("size of a kernel", kernel, 100.0, "bytes"),
        Row::at_most(
            "size of an enqueue and its kernel, of what the intercept layer's JSON takes with the same times",
            100.0 * (call + kernel) / pair,
            33.3,
            "%",
        ),
        Row::at_least(
            "--compress, times as small",
            trace.len() as f64 / packed,
            3.0,
            "x",
        ),
    ])
}

fn reading(trace: &[u8]) -> Vec<Row> {
    let [info, check, summary] = medians([
        &mut || drop(black_box(reader::info(trace))),
        &mut || drop(black_box(reader::check(trace))),
        &mut || {
            drop(black_box(
                TraceReplay::new(trace).produce(&mut Summary::default()),
            ))
        },
    ]);
    let rate = |time: Duration| trace.len() as f64 / 1e6 / time.as_secs_f64();
    vec![
        Row::at_least("read back by info, one core", rate(info), 300.0, "MB/s"),
        Row::at_least("read back by check", rate(check), 300.0, "MB/s"),
        Row::at_least("read back by summary", rate(summary), 300.0, "MB/s"),
    ]
}
