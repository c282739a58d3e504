//! Host-trap samples of a program that runs one kernel: the processor time of program and command, beside that of the
//! same recording without samples, in alternation; and beside `perf record` at the same interval, where there is one.

use crate::programs::Programs;
use crate::sample::median;
use crate::{Outcome, Row};
use std::process::{Command, Stdio};

const ROUNDS: usize = 9;
/// Number of launches of the kernel in a run, and in a long run, which shows the costs that occur once.
const LAUNCHES: u32 = 200;
const MANY_LAUNCHES: u32 = 1_000;

/// An interval, and the limit for the processor time that sampling at it adds.
struct Rate {
    what: &'static str,
    interval_us: u32,
    allowed: f64,
}

const RATES: [Rate; 2] = [
    Rate {
        what: "host-trap samples at 1 kHz, processor time with the command's",
        interval_us: 1_000,
        allowed: 0.02,
    },
    Rate {
        what: "host-trap samples at 5 kHz, processor time with the command's",
        interval_us: 200,
        allowed: 0.10,
    },
];

#[derive(Copy, Clone)]
enum How {
    Recorded,
    Sampled(u32),
    Perf(u32),
}

/// The rows of both rates.
pub fn measure(programs: &Programs<'_>) -> Outcome<Vec<Row>> {
    let program = programs.compile("../../../tests/programs/hot_loop.c", "hot_loop")?;
    let run = |how: How, launches: u32| -> Outcome<f64> {
        let trace = programs.trace();
        let _ = std::fs::remove_file(&trace);
        let mut command = match how {
            How::Perf(us) => {
                let mut command = Command::new("perf");
                let period = (us * 1_000).to_string();
                command.args(["record", "-q", "-e", "cpu-clock:u", "-c", &period, "-o"]);
                command.arg(&trace).arg(&program);
                command
            }
            how => {
                let mut command = Command::new(programs.gputrail());
                command.args(["record", "-q", "-o"]).arg(&trace);
                if let How::Sampled(us) = how {
                    let interval = format!("{us}us");
                    command.args(["--pc-sampling", "host-trap", "--interval", &interval]);
                }
                command.arg("--").arg(&program);
                command
            }
        };
        programs.set_up(&mut command);
        command.args(["", &launches.to_string()]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        programs.processor_time_of(&mut command)
    };
    run(How::Recorded, 1)?;
    let has_perf = run(How::Perf(1_000), 1).is_ok();
    let mut rows = Vec::new();
    for rate in &RATES {
        let (mut plain, mut sampled, mut perf) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            plain.push(run(How::Recorded, LAUNCHES)?);
            sampled.push(run(How::Sampled(rate.interval_us), LAUNCHES)?);
            if has_perf {
                perf.push(run(How::Perf(rate.interval_us), LAUNCHES)?);
            }
        }
        let (mut long, mut long_sampled) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS / 3 {
            long.push(run(How::Recorded, MANY_LAUNCHES)?);
            long_sampled.push(run(How::Sampled(rate.interval_us), MANY_LAUNCHES)?);
        }
        let (plain, long) = (median(plain), median(long));
        let more = median(sampled) / plain - 1.0;
        let longer = median(long_sampled) / long - 1.0;
        let mut beside = format!(
            "{plain:.2} s recorded without samples; {:+.1} % of {long:.1} s",
            longer * 100.0
        );
        if has_perf {
            let perf = median(perf) / plain - 1.0;
            beside.push_str(&format!("; `perf record` instead {:+.1} %", perf * 100.0));
        }
        rows.push(Row {
            what: rate.what,
            measured: format!("{:+.1} %", more * 100.0),
            beside,
            target: format!("{:+.0} %", rate.allowed * 100.0),
            met: more <= rate.allowed,
        });
    }
    Ok(rows)
}
