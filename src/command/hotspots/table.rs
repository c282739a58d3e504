//! Hotspots as text: a table of kernels, and each kernel's source text with the samples and executions of its lines and
//! instructions.

use crate::figures::{count, grouped, shortened, shortened_apart, time};
use gputrail_analysis::hotspots::{
    HotspotReport, KernelHotspots, SampledAgent, SampledInstruction, Tally,
};
use gputrail_record::{Nanos, SamplingUnit, printable};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Number of kernels in the list, unless they were selected by name.
const KERNELS: usize = 20;
/// Maximum width of a kernel's name.
const NAME: usize = 48;
/// Number of kernels with details, unless they were selected by name.
const DETAILED: usize = 3;
/// Number of lines and instructions of a kernel, unless it was selected by name.
const LINES: usize = 12;
const INSTRUCTIONS: usize = 4;
/// Number of functions without lines.
const FUNCTIONS: usize = 5;
/// Maximum width of source text and instructions.
const WIDEST: usize = 64;
/// Number of lines around a sampled one.
const AROUND: u32 = 2;
/// Number of reasons.
const REASONS: usize = 3;

/// The style of a report.
#[derive(Copy, Clone)]
struct Paint {
    /// Whether to use the colours of a terminal.
    on: bool,
    /// Whether to show columns of stochastic samples: whether waves issued, and why not.
    waves: bool,
    /// Whether to show how often instructions were executed.
    counted: bool,
}

/// The width of the columns of executions.
const EXECUTIONS: usize = 46;

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    /// The share of samples whose wave issued, as a column.
    fn issued(self, tally: &Tally) -> String {
        match tally.issue_rate() {
            _ if !self.waves => String::new(),
            Some(rate) => format!("  {:5.1} %", 100.0 * rate),
            None => "        -".to_owned(),
        }
    }

    /// How often instructions were executed, with how many lanes, and the transactions of their accesses, as columns.
    fn executed(self, tally: &Tally) -> String {
        let of = &tally.executions;
        if !self.counted {
            return String::new();
        }
        let lanes = part(of.threads, of.executed);
        let (transactions, ideal) = match of.ideal_transactions {
            0 => (String::new(), String::new()),
            ideal => (
                grouped(of.transactions),
                format!("x{:.1}", part(of.transactions, ideal)),
            ),
        };
        format!(
            "  {:>14}  {lanes:>5.1}  {transactions:>13}  {ideal:>6}",
            grouped(of.executed)
        )
    }

    /// The titles of the columns of shares and executions.
    fn titles(self) -> String {
        let issued = if self.waves { "   issued" } else { "" };
        let executed = if self.counted {
            format!(
                "  {:>14}  {:>5}  {:>13}  {:>6}",
                "executed", "lanes", "transactions", "ideal"
            )
        } else {
            String::new()
        };
        format!("{:>9}{issued}{executed}", "share")
    }

    /// Empty columns as wide as [`Paint::issued`] and [`Paint::executed`].
    fn blank_issued(self) -> String {
        let issued = if self.waves { 9 } else { 0 };
        " ".repeat(issued + if self.counted { EXECUTIONS } else { 0 })
    }

    /// Empty columns as wide as those of shares and executions.
    fn blank(self) -> String {
        " ".repeat(9) + &self.blank_issued()
    }

    /// A share, in a colour that depends on it.
    fn share(self, share: f64) -> String {
        let text = format!("{:5.1} %", 100.0 * share);
        match share {
            0.25.. => self.with("1;31", &text),
            0.05.. => self.with("33", &text),
            _ => text,
        }
    }
}

/// Writes the report. With `all`, everything of `kernels` is shown.
pub fn write(
    report: &HotspotReport,
    kernels: &[&KernelHotspots],
    all: bool,
    colours: bool,
) -> String {
    let waves = kernels.iter().any(|kernel| kernel.tally.stochastic > 0);
    let counted = kernels
        .iter()
        .any(|kernel| kernel.tally.executions.executed > 0);
    let paint = Paint {
        on: colours,
        waves,
        counted,
    };
    let mut text = headline(report);
    overview(&mut text, report, kernels, all, paint);
    let detailed = if all { kernels.len() } else { DETAILED };
    for kernel in kernels.iter().take(detailed) {
        detail(&mut text, kernel, report.samples, all, paint);
    }
    if kernels.len() > detailed {
        let _ = writeln!(
            text,
            "\n{} without details: --kernel NAME shows one",
            count((kernels.len() - detailed) as u64, "kernel")
        );
    }
    text
}

fn headline(report: &HotspotReport) -> String {
    let mut text = count(report.samples, "sample");
    for sampled in &report.sampled {
        let _ = write!(text, "; {}", how(sampled));
    }
    for (number, what) in [(report.dropped, "dropped"), (report.invalid, "invalid")] {
        if number > 0 {
            let _ = write!(text, "; {} {what}", grouped(number));
        }
    }
    text + "\n"
}

fn how(sampled: &SampledAgent) -> String {
    let interval = match sampled.unit {
        SamplingUnit::TIME => time(Nanos(sampled.interval)),
        unit => format!(
            "{} {}",
            grouped(sampled.interval),
            unit.name().unwrap_or("units")
        ),
    };
    let method = sampled.method.name().unwrap_or("unknown method");
    format!("{}: {method}, every {interval}", sampled.agent)
}

fn part(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}

/// The reasons why waves waited, in percent of the samples.
fn reasons(tally: &Tally) -> String {
    let leading = tally.leading();
    let leading = leading.iter().take(REASONS).map(|(why, samples)| {
        let share = 100.0 * part(*samples, tally.stochastic);
        format!("{why} {share:.0} %")
    });
    let diverged = tally.executions.diverged;
    let diverged = (diverged > 0).then(|| format!("diverged {}", grouped(diverged)));
    leading.chain(diverged).collect::<Vec<_>>().join(", ")
}

fn overview(
    text: &mut String,
    report: &HotspotReport,
    kernels: &[&KernelHotspots],
    whole: bool,
    paint: Paint,
) {
    let names = shortened_apart(kernels.iter().map(|kernel| &*kernel.name), NAME);
    let device = |kernel: &&KernelHotspots| shortened(&kernel.agent, 40).chars().count();
    let wide = names.iter().map(|name| name.chars().count());
    let wide = wide.max().unwrap_or(0).max(6);
    let devices = kernels.iter().map(device).max().unwrap_or(0).max(6);
    let reasons_title = if paint.waves { "why waves waited" } else { "" };
    let head = format!(
        "\n{}  {:>10}  {:wide$}  {:devices$}  {reasons_title}",
        paint.titles(),
        "samples",
        "kernel",
        "device"
    );
    let _ = writeln!(text, "{}", head.trim_end());
    let most = if whole { usize::MAX } else { KERNELS };
    let (shown, rest) = kernels.split_at(kernels.len().min(most));
    for (kernel, name) in shown.iter().zip(&names) {
        let row = format!(
            "  {}{}{}  {:>10}  {name:wide$}  {:devices$}  {}",
            paint.share(part(kernel.tally.samples, report.samples)),
            paint.issued(&kernel.tally),
            paint.executed(&kernel.tally),
            grouped(kernel.tally.samples),
            shortened(&kernel.agent, 40),
            reasons(&kernel.tally),
        );
        let _ = writeln!(text, "{}", row.trim_end());
    }
    if !rest.is_empty() {
        let samples: u64 = rest.iter().map(|kernel| kernel.tally.samples).sum();
        let _ = writeln!(
            text,
            "  {}{}  {:>10}  in {}",
            paint.share(part(samples, report.samples)),
            paint.blank_issued(),
            grouped(samples),
            count(rest.len() as u64, "more kernel")
        );
    }
}

fn detail(text: &mut String, kernel: &KernelHotspots, all: u64, whole: bool, paint: Paint) {
    let mut title = format!(
        "{} on {}: {}",
        kernel.name,
        kernel.agent,
        count(kernel.tally.samples, "sample")
    );
    if kernel.dispatches > 0 {
        let dispatches = count(kernel.dispatches, "dispatch");
        let _ = write!(title, " of {dispatches}");
    }
    let _ = write!(
        title,
        ", {:.1} % of all",
        100.0 * part(kernel.tally.samples, all)
    );
    if kernel.dropped > 0 {
        let _ = write!(title, "; {} dropped", grouped(kernel.dropped));
    }
    let _ = writeln!(text, "\n{}", paint.bold(&printable(&title)));
    lines(text, kernel, whole, paint);
    without_line(text, kernel, whole, paint);
}

/// The beginning of a line of code, cut to the maximum width.
fn cut(code: &str) -> String {
    let code = printable(code);
    match code.chars().count() {
        0..=WIDEST => code.into_owned(),
        _ => code.chars().take(WIDEST - 2).chain("..".chars()).collect(),
    }
}

/// One row of a kernel's details: its share, its position, its text, and why waves waited.
fn row(text: &mut String, tally: &Tally, all: u64, place: &str, what: &str, paint: Paint) {
    let reasons = reasons(tally);
    let what = format!("{place} {}", cut(what));
    let row = format!(
        "  {}{}{}  {what:wide$}  {}",
        paint.share(part(tally.samples, all)),
        paint.issued(tally),
        paint.executed(tally),
        paint.dim(&reasons),
        wide = WIDEST + 8,
    );
    let empty = paint.dim("");
    let _ = writeln!(text, "{}", row.trim_end_matches(&empty).trim_end());
}

/// The source text, file by file, with the instructions of its lines.
fn lines(text: &mut String, kernel: &KernelHotspots, whole: bool, paint: Paint) {
    let most = if whole { usize::MAX } else { LINES };
    let mut shown: Vec<usize> = (0..kernel.lines.len().min(most)).collect();
    shown.sort_by_key(|place| (&kernel.lines[*place].file, kernel.lines[*place].line));
    let by_file = shown.chunk_by(|a, b| kernel.lines[*a].file == kernel.lines[*b].file);
    for places in by_file {
        let file = &kernel.lines[places[0]].file;
        let _ = writeln!(text, "{}  {}", paint.titles(), printable(file));
        let mut next = 0;
        for place in places {
            let line = &kernel.lines[*place];
            let before = line.line.saturating_sub(AROUND).max(next);
            if next != 0 && before > next {
                let _ = writeln!(text, "{}", paint.dim(&format!("{}    ...", paint.blank())));
            }
            context(text, kernel, file, before..line.line, paint);
            let source = line.text.as_deref().unwrap_or("").replace('\t', "    ");
            let number = format!("{:5} |", line.line);
            row(
                text,
                &line.tally,
                kernel.tally.samples,
                &number,
                &source,
                paint,
            );
            instructions(text, kernel, *place, whole, paint);
            let following = places.iter().map(|place| kernel.lines[*place].line);
            let following = following.filter(|number| *number > line.line).min();
            let end = following
                .unwrap_or(u32::MAX)
                .min(line.line.saturating_add(AROUND + 1));
            context(text, kernel, file, line.line.saturating_add(1)..end, paint);
            next = end;
        }
    }
    let rest = &kernel.lines[shown.len()..];
    if !rest.is_empty() {
        let samples: u64 = rest.iter().map(|line| line.tally.samples).sum();
        let _ = writeln!(
            text,
            "  {}{}  and {}: --kernel '{}' shows all",
            paint.share(part(samples, kernel.tally.samples)),
            paint.blank_issued(),
            count(rest.len() as u64, "more line"),
            printable(&kernel.name)
        );
    }
}

/// Lines without samples, if their text is known.
fn context(
    text: &mut String,
    kernel: &KernelHotspots,
    file: &str,
    numbers: std::ops::Range<u32>,
    paint: Paint,
) {
    for number in numbers {
        if let Some(source) = kernel.source.get(&(file.to_owned(), number)) {
            let source = source.replace('\t', "    ");
            let source = cut(&source);
            let line = format!("{}  {number:5} | {source}", paint.blank());
            let _ = writeln!(text, "{}", paint.dim(line.trim_end()));
        }
    }
}

/// The text of an instruction, or its address.
fn named(instruction: &SampledInstruction) -> String {
    match &instruction.text[..] {
        "" => format!("{:#x}", instruction.offset),
        name => format!("{:#x}  {name}", instruction.offset),
    }
}

/// The function that contains an instruction.
fn function(instruction: &SampledInstruction) -> &str {
    let name = instruction
        .frames
        .first()
        .map(|(function, ..)| &function[..]);
    match (name, &instruction.symbol[..]) {
        (Some(name), _) if !name.is_empty() => name,
        (_, "") => "unknown function",
        (_, symbol) => symbol,
    }
}

/// The demangled name of a C++ function.
fn demangled(name: &str) -> String {
    let symbol = cpp_demangle::Symbol::new(name).ok();
    let demangled = symbol.and_then(|symbol| symbol.demangle().ok());
    demangled.unwrap_or_else(|| name.to_owned())
}

fn instructions(
    text: &mut String,
    kernel: &KernelHotspots,
    line: usize,
    whole: bool,
    paint: Paint,
) {
    let of_line = kernel.instructions.iter();
    let of_line = of_line.filter(|instruction| instruction.line == Some(line));
    let of_line: Vec<&SampledInstruction> = of_line.collect();
    some_instructions(text, kernel, &of_line, whole, paint);
}

fn some_instructions(
    text: &mut String,
    kernel: &KernelHotspots,
    list: &[&SampledInstruction],
    whole: bool,
    paint: Paint,
) {
    let most = if whole { usize::MAX } else { INSTRUCTIONS };
    let (list, rest) = list.split_at(list.len().min(most));
    for instruction in list {
        let mut what = named(instruction);
        if let [(function, ..), _, ..] = &instruction.frames[..] {
            let _ = write!(what, "  [{}, inlined]", demangled(function));
        }
        row(
            text,
            &instruction.tally,
            kernel.tally.samples,
            "         ",
            &what,
            paint,
        );
    }
    if !rest.is_empty() {
        let samples: u64 = rest.iter().map(|one| one.tally.samples).sum();
        let _ = writeln!(
            text,
            "  {}{}            and {}",
            paint.share(part(samples, kernel.tally.samples)),
            paint.blank_issued(),
            count(rest.len() as u64, "more instruction")
        );
    }
}

/// Instructions without a known line, and the remedy.
fn without_line(text: &mut String, kernel: &KernelHotspots, whole: bool, paint: Paint) {
    let instructions = kernel.instructions.iter();
    let all: Vec<_> = instructions.filter(|one| one.line.is_none()).collect();
    if all.is_empty() {
        return;
    }
    let mut functions: BTreeMap<(&str, &str), Vec<&SampledInstruction>> = BTreeMap::new();
    for instruction in all {
        let key = (&instruction.code_object[..], function(instruction));
        functions.entry(key).or_default().push(instruction);
    }
    let samples = |of: &[&SampledInstruction]| of.iter().map(|one| one.tally.samples).sum::<u64>();
    let mut functions: Vec<_> = functions.into_iter().collect();
    functions.sort_by_key(|(_, of)| std::cmp::Reverse(samples(of)));
    let most = if whole { usize::MAX } else { FUNCTIONS };
    let rest = functions.split_off(functions.len().min(most));
    let mut object = "";
    for ((in_object, name), of) in &functions {
        if *in_object != object {
            object = in_object;
            let _ = writeln!(text, "{}  {}", paint.titles(), printable(object));
        }
        let mut tally = Tally::default();
        of.iter().for_each(|one| tally.merge(&one.tally));
        row(
            text,
            &tally,
            kernel.tally.samples,
            "",
            &demangled(name),
            paint,
        );
        some_instructions(text, kernel, of, whole, paint);
    }
    if !rest.is_empty() {
        let samples: u64 = rest.iter().map(|(_, of)| samples(of)).sum();
        let _ = writeln!(
            text,
            "  {}{}  and {}: --kernel '{}' shows all",
            paint.share(part(samples, kernel.tally.samples)),
            paint.blank_issued(),
            count(rest.len() as u64, "more function"),
            printable(&kernel.name)
        );
    }
    for (why, samples) in kernel.missing.iter().take(3) {
        let why = if why.is_empty() {
            "it is not known why"
        } else {
            why
        };
        let _ = writeln!(
            text,
            "  no source line for {}: {why}",
            count(*samples, "sample")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_analysis::hotspots::SampledLine;
    use gputrail_record::{NotIssued, SamplingMethod};

    fn tally(samples: u64, issued: u64, waits: u64) -> Tally {
        let reasons = [
            (NotIssued::WAITCNT, waits),
            (NotIssued::BARRIER_WAIT, samples - issued - waits),
        ];
        Tally {
            samples,
            stochastic: samples,
            issued,
            reasons: reasons
                .into_iter()
                .filter(|(_, samples)| *samples > 0)
                .collect(),
            ..Tally::default()
        }
    }

    fn report() -> HotspotReport {
        let instruction = |offset, text: &str, line, tally| SampledInstruction {
            code_object: "/tmp/a.so".into(),
            offset,
            symbol: "saxpy".into(),
            text: text.into(),
            line,
            frames: vec![("saxpy".into(), "a.cl".into(), 4)],
            tally,
        };
        let source = [
            "kernel void saxpy()",
            "{",
            "  float sum = 0;",
            "  sum += x[i];",
            "  y[i] = sum;",
            "}",
        ];
        let source = (1..)
            .zip(source)
            .map(|(line, text)| (("a.cl".to_owned(), line), text.to_owned()));
        let kernel = KernelHotspots {
            name: "saxpy".into(),
            agent: "GPU 0 (Simulated GPU)".into(),
            tally: tally(1000, 200, 700),
            dispatches: 2,
            dropped: 3,
            lines: vec![SampledLine {
                file: "a.cl".into(),
                line: 4,
                text: Some("  sum += x[i];".into()),
                tally: tally(900, 180, 700),
            }],
            instructions: vec![
                instruction(16, "s_waitcnt vmcnt(0)", Some(0), tally(700, 0, 700)),
                instruction(24, "v_add_f32 v0, v0, v1", Some(0), tally(200, 180, 0)),
                instruction(32, "", None, tally(100, 20, 0)),
            ],
            missing: vec![("code object 3 has no line for 0x20".into(), 100)],
            source: source.collect(),
        };
        HotspotReport {
            samples: 1250,
            dropped: 3,
            sampled: vec![SampledAgent {
                agent: "GPU 0".into(),
                method: SamplingMethod::STOCHASTIC,
                unit: SamplingUnit::CYCLES,
                interval: 1024,
            }],
            kernels: vec![kernel],
            ..HotspotReport::default()
        }
    }

    #[test]
    fn a_kernel_is_shown_next_to_its_source() {
        let report = report();
        let kernels: Vec<_> = report.kernels.iter().collect();
        let text = write(&report, &kernels, false, false);
        let expected = "\
1 250 samples; GPU 0: stochastic, every 1 024 cycles; 3 dropped

    share   issued     samples  kernel  device                 why waves waited
   80.0 %   20.0 %       1 000  saxpy   GPU 0 (Simulated GPU)  waitcnt 70 %, barrier wait 10 %

saxpy on GPU 0 (Simulated GPU): 1 000 samples of 2 dispatches, 80.0 % of all; 3 dropped
    share   issued  a.cl
                        2 | {
                        3 |   float sum = 0;
   90.0 %   20.0 %      4 |   sum += x[i];                                                    waitcnt 78 %, barrier wait 2 %
   70.0 %    0.0 %            0x10  s_waitcnt vmcnt(0)                                        waitcnt 100 %
   20.0 %   90.0 %            0x18  v_add_f32 v0, v0, v1                                      barrier wait 10 %
                        5 |   y[i] = sum;
                        6 | }
    share   issued  /tmp/a.so
   10.0 %   20.0 %   saxpy                                                                    barrier wait 80 %
   10.0 %   20.0 %            0x20                                                            barrier wait 80 %
  no source line for 100 samples: code object 3 has no line for 0x20
";
        assert_eq!(text, expected, "\n{text}");
        assert!(!text.contains('\x1b'));
    }

    #[test]
    fn colours_change_nothing_else() {
        let report = report();
        let kernels: Vec<_> = report.kernels.iter().collect();
        let mut coloured = write(&report, &kernels, false, true);
        assert!(
            coloured.contains("\x1b[1;31m 90.0 %\x1b[0m"),
            "{coloured:?}"
        );
        while let Some(at) = coloured.find('\x1b') {
            let end = at + coloured[at..].find('m').unwrap();
            coloured.replace_range(at..=end, "");
        }
        let trimmed = |text: &str| {
            text.lines()
                .map(|line| line.trim_end().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            trimmed(&coloured),
            trimmed(&write(&report, &kernels, false, false))
        );
    }
}
