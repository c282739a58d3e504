//! The timeline: what ran on each device and queue, over time, with the steps above and the places of the advice.

use super::html::{Page, text};
use crate::figures::{count, time};
use gputrail_analysis::advice::Advice;
use gputrail_analysis::summary::steps::{StepSummary, series};
use gputrail_analysis::summary::{
    Load, PlaceSummary, ProcessLabel, SettledPlaces, SpanLoads, Summary, Timeline,
};
use gputrail_record::Nanos;
use gputrail_trace::model::{AgentIndex, ProcessIndex, QueueIndex};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Width of a lane in units of its picture; its height is 100.
const WIDTH: f64 = 1000.0;
/// The least height of a span in which anything ran, so that it is seen.
const LEAST_HEIGHT: f64 = 4.0;
/// Maximum number of devices that are drawn.
const MAX_DEVICES: usize = 64;
/// Maximum number of queues of a device that are drawn.
const MAX_QUEUES: usize = 16;
/// Number of devices up to which their queues are shown at once.
const OPEN_DEVICES: usize = 2;
/// Maximum number of steps of a process that are drawn.
const MAX_STEPS: usize = 400;
/// The width of a mark of advice, in percent of the axis.
const MARK_WIDTH: f64 = 2.0;
/// About this many times stand at the axis.
const TICKS: u64 = 8;

/// Classes and names of the loads, from below.
const LOADS: [(Load, &str, &str); Load::ALL.len()] = [
    (Load::Compute, "compute", "computing"),
    (Load::Hidden, "hidden", "communicating, hidden by computing"),
    (Load::Exposed, "exposed", "communicating, exposed"),
    (Load::Transfer, "transfer", "copies and fills alone"),
];

/// The span that the timeline shows.
#[derive(Copy, Clone)]
struct Scale {
    first: u64,
    last: u64,
}

impl Scale {
    fn length(self) -> u64 {
        (self.last - self.first).max(1)
    }

    /// The place of a time, 0 to 1.
    fn share(self, at: Nanos) -> f64 {
        let at = at.0.clamp(self.first, self.last) - self.first;
        at as f64 / self.length() as f64
    }

    /// The place of a time in a picture.
    fn x(self, at: Nanos) -> f64 {
        WIDTH * self.share(at)
    }
}

/// Draws the timeline, if any device did work.
pub fn draw(
    page: &mut Page,
    summary: &Summary,
    settled: &SettledPlaces,
    advice: &[Advice],
    (first, last): (Nanos, Nanos),
) {
    if settled.device_timelines.is_empty() {
        return;
    }
    let scale = Scale {
        first: first.0,
        last: last.0.max(first.0),
    };
    page.section("timeline", "Timeline");
    legend(page, settled);
    *page += "<div class=\"timeline\">";
    axis(page, scale, advice);
    let mut processes: Vec<(ProcessLabel, ProcessIndex)> = settled
        .device_timelines
        .keys()
        .map(|(process, _)| *process)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .map(|process| (summary.process_label(process), process))
        .collect();
    processes.sort_by_key(|(label, process)| (label.rank.unwrap_or(i64::MAX), process.0));
    let outliers = outliers(&settled.steps);
    let is_open = settled.device_timelines.len() <= OPEN_DEVICES;
    let mut drawn = 0;
    for (label, process) in &processes {
        if drawn >= MAX_DEVICES {
            break;
        }
        let whose = if processes.len() > 1 {
            label.text()
        } else {
            String::new()
        };
        steps(page, scale, &whose, *process, (&settled.steps, &outliers));
        let devices = settled.device_timelines.iter();
        for ((_, agent), timeline) in devices.filter(|((of, _), _)| of == process) {
            if drawn >= MAX_DEVICES {
                break;
            }
            drawn += 1;
            let name = format!("{whose} {}", summary.device(*agent));
            let sums = settled.devices.get(&(*process, *agent));
            lane(page, scale, name.trim(), timeline, sums);
            let on_it = |key: &&(ProcessIndex, AgentIndex, QueueIndex)| {
                (&key.0, &key.1) == (process, agent)
            };
            let number = settled.queues.keys().filter(on_it).count();
            if number < 2 {
                continue;
            }
            let open = if is_open { " open" } else { "" };
            let words = count(number as u64, "queue");
            let _ = write!(page, "<details{open}><summary>{words}</summary>");
            let queues = settled.queue_timelines.iter();
            let queues = queues.filter(|(key, _)| on_it(key)).take(MAX_QUEUES);
            let mut left = number;
            for (key, timeline) in queues {
                let name = summary.queue_label(key.2).name;
                lane(page, scale, &name, timeline, settled.queues.get(key));
                left -= 1;
            }
            if left > 0 {
                let more = count(left as u64, "queue");
                let _ = write!(
                    page,
                    "<p class=\"note\">and {more} more: <code>gputrail summary --by queue</code></p>"
                );
            }
            *page += "</details>";
        }
    }
    *page += "</div>";
    if settled.devices.len() > drawn {
        let more = count((settled.devices.len() - drawn) as u64, "device");
        let _ = write!(
            page,
            "<p class=\"note\">and {more} more: <code>gputrail summary --by device</code></p>"
        );
    }
    page.end_section();
}

fn legend(page: &mut Page, settled: &SettledPlaces) {
    *page += "<p class=\"legend\">";
    let timelines = settled.device_timelines.values();
    let length = timelines.clone().map(Timeline::length).max();
    for (load, class, name) in LOADS {
        let mut spans = timelines.clone().flat_map(Timeline::spans);
        if spans.any(|(_, loads)| loads[load as usize] > 0) {
            let _ = write!(page, "<span><i class=\"{class}\"></i>{name}</span>");
        }
    }
    let _ = write!(
        page,
        "<span class=\"note\">Height is the part of each {} in which it ran; blank is idle.</span></p>",
        time(length.unwrap_or_default())
    );
}

/// The distance of ticks: 1, 2 or 5 times a power of ten.
fn tick(length: u64) -> u64 {
    let wanted = (length / TICKS).max(1);
    let power = 10_u64.pow(wanted.ilog10());
    let steps = [1, 2, 5].map(|digit| power.saturating_mul(digit));
    let fits = steps.into_iter().find(|step| *step >= wanted);
    fits.unwrap_or(power.saturating_mul(10))
}

/// A multiple of the distance of ticks, in the unit of the longest.
fn tick_text(at: u64, tick: u64, length: u64) -> String {
    let (unit, name) = match length {
        0..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let mut decimals = 0;
    let mut part = tick;
    while !part.is_multiple_of(unit) && decimals < 9 {
        part = part.saturating_mul(10);
        decimals += 1;
    }
    format!("{:.decimals$} {name}", at as f64 / unit as f64)
}

fn axis(page: &mut Page, scale: Scale, advice: &[Advice]) {
    *page += "<div class=\"lane axis\"><span></span><div>";
    let step = tick(scale.length());
    let mut at = 0;
    while at <= scale.length() {
        let share = 100.0 * at as f64 / scale.length() as f64;
        // A text at the end would stand beyond it.
        if share < 96.0 {
            let words = tick_text(at, step, scale.length());
            let _ = write!(page, "<span style=\"left:{share:.2}%\">{words}</span>");
        }
        at += step;
    }
    let mut marks: Vec<f64> = Vec::new();
    for (number, one) in (1..).zip(advice) {
        if let Some(place) = one.place {
            let mut share = 100.0 * scale.share(place);
            // Marks of one place stand beside each other.
            while marks.iter().any(|mark| (mark - share).abs() < MARK_WIDTH) {
                share += MARK_WIDTH;
            }
            marks.push(share);
            let _ = write!(
                page,
                "<a href=\"#advice-{number}\" style=\"left:{share:.2}%\" title=\"{}\">{number}</a>",
                text(one.rule)
            );
        }
    }
    *page += "</div><span>busy</span></div>";
}

/// The steps that differ from the others.
fn outliers(steps: &[StepSummary]) -> BTreeSet<usize> {
    let all = series(steps);
    all.into_iter().flat_map(|one| one.outliers).collect()
}

fn steps(
    page: &mut Page,
    scale: Scale,
    whose: &str,
    process: ProcessIndex,
    (steps, outliers): (&[StepSummary], &BTreeSet<usize>),
) {
    let own = || {
        let of = steps.iter().enumerate();
        of.filter(|(_, step)| step.process == process && step.duration().is_some())
    };
    let number = own().count();
    if number == 0 || number > MAX_STEPS {
        return;
    }
    let name = format!("{whose} steps");
    let _ = write!(
        page,
        "<div class=\"lane steps\"><span>{}</span><svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\">",
        text(name.trim())
    );
    let mut parities = BTreeMap::new();
    for (place, step) in own() {
        let took = step.duration().unwrap_or_default();
        let end = Nanos(step.start.0.saturating_add(took.0));
        let (from, to) = (scale.x(step.start), scale.x(end));
        let parity: &mut bool = parities.entry(process).or_default();
        *parity = !*parity;
        let (class, remark) = match (outliers.contains(&place), *parity) {
            (true, _) => ("out", ", an outlier"),
            (false, true) => ("odd", ""),
            (false, false) => ("even", ""),
        };
        let _ = write!(
            page,
            "<rect class=\"{class}\" x=\"{from:.1}\" y=\"0\" width=\"{:.1}\" height=\"100\"><title>{}: {}{remark}</title></rect>",
            (to - from).max(1.0),
            text(&step.name),
            time(took)
        );
    }
    let _ = write!(page, "</svg><span>{number}</span></div>");
}

/// A device or a queue.
fn lane(
    page: &mut Page,
    scale: Scale,
    name: &str,
    timeline: &Timeline,
    sums: Option<&PlaceSummary>,
) {
    let name = text(name);
    let busy = sums.map(|sums| {
        let busy = sums.times.busy();
        let share = 100.0 * busy.0 as f64 / scale.length() as f64;
        (format!("{share:.1} %"), time(busy))
    });
    let (share, busy) = busy.unwrap_or_default();
    let _ = write!(
        page,
        "<div class=\"lane\"><span title=\"{name}\">{name}</span><svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" role=\"img\"><title>{name}: busy for {busy}, {share} of the recording</title>"
    );
    // The uppermost load is drawn first, from the base to its upper edge; the others cover its lower part.
    for (top, (_, class, _)) in LOADS.iter().enumerate().rev() {
        let path = area(scale, timeline, top);
        if !path.is_empty() {
            let _ = write!(page, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }
    let _ = write!(page, "</svg><span title=\"{busy}\">{share}</span></div>");
}

/// The outline of the sum of all loads up to one; empty if that load is nowhere.
fn area(scale: Scale, timeline: &Timeline, top: usize) -> String {
    let mut path = String::new();
    let mut is_anywhere = false;
    let (mut height_now, mut x_now) = (0_u64, 0.0);
    let length = timeline.length().0;
    for (begin, loads) in timeline.spans() {
        let end = Nanos(begin.0.saturating_add(length));
        is_anywhere |= loads[LOADS[top].0 as usize] > 0;
        let shown = end
            .0
            .min(scale.last)
            .saturating_sub(begin.0.max(scale.first));
        let height = height(loads, top, shown.max(1));
        let (from, to) = (scale.x(begin), scale.x(end));
        if height != height_now {
            if height_now == 0 {
                let _ = write!(path, "M{from:.1} 100");
            }
            let _ = write!(path, "H{from:.1}V{}", 100 - height);
            if height == 0 {
                path.push('Z');
            }
            height_now = height;
        }
        x_now = to;
    }
    if height_now > 0 {
        let _ = write!(path, "H{x_now:.1}V100Z");
    }
    if is_anywhere { path } else { String::new() }
}

/// The height of the loads up to one, 0 to 100.
fn height(loads: &SpanLoads, top: usize, length: u64) -> u64 {
    let below = LOADS[..=top].iter();
    let sum: u64 = below.map(|(load, ..)| loads[*load as usize]).sum();
    if sum == 0 {
        return 0;
    }
    let height = 100.0 * sum as f64 / length as f64;
    height.clamp(LEAST_HEIGHT, 100.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(
            [1, 9, 660_600_000, u64::MAX].map(tick),
            [1, 1, 100_000_000, 5_000_000_000_000_000_000]
        );
        assert_eq!(tick_text(300_000_000, 100_000_000, 660_600_000), "300 ms");
        assert_eq!(
            tick_text(2_500_000_000, 500_000_000, 4_000_000_000),
            "2.5 s"
        );
    }

    #[test]
    fn little_work_is_seen_and_none_is_not() {
        assert_eq!(height(&[0, 0, 0, 5], 2, 1000), 0);
        assert_eq!(height(&[0, 0, 0, 5], 3, 1000), 4);
        assert_eq!(height(&[300, 0, 200, 0], 3, 1000), 50);
    }
}
