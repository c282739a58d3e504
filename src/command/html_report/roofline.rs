//! The roofline: operations a second of each kernel over its operations per byte, both logarithmic.
//!
//! The peaks of a device are not in a recording. So the roof is made of the greatest rates that were measured: kernels below it
//! reach less than others on the same device did.

use super::html::{Page, text};
use crate::figures::time;
use gputrail_analysis::summary::Summary;
use gputrail_record::Nanos;
use std::collections::HashMap;
use std::fmt::Write;

/// Maximum number of kernels: those that took most time.
const MAX_POINTS: usize = 100;
/// Number of kernels that have a number and a name.
const NAMED: usize = 12;
/// The size of the picture.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
/// The frame of the diagram in it.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 740.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 330.0;

/// A kernel.
struct Point {
    kernel: String,
    /// Operations per byte.
    intensity: f64,
    /// Operations a second.
    rate: f64,
    /// Bytes a second.
    bandwidth: f64,
    /// The time of all its dispatches, ns.
    total: u64,
}

/// A logarithmic axis: its values and its places.
struct Axis {
    /// Powers of ten.
    from: i32,
    to: i32,
    begin: f64,
    end: f64,
}

impl Axis {
    fn around(values: impl Iterator<Item = f64>, (begin, end): (f64, f64)) -> Axis {
        let (least, most) = values.fold((f64::MAX, f64::MIN_POSITIVE), |(least, most), value| {
            (value.min(least), value.max(most))
        });
        let from = least.log10().floor().clamp(-300.0, 300.0) as i32;
        let to = most.log10().ceil().clamp(-300.0, 300.0) as i32;
        Axis {
            from,
            to: to.max(from + 1),
            begin,
            end,
        }
    }

    fn place(&self, value: f64) -> f64 {
        let span = f64::from(self.to - self.from);
        let share = (value.log10() - f64::from(self.from)) / span;
        self.begin + share * (self.end - self.begin)
    }

    /// The powers of ten in it, at most about ten.
    fn marks(&self) -> impl Iterator<Item = i32> + use<> {
        let step = ((self.to - self.from) / 10 + 1) as usize;
        (self.from..=self.to).step_by(step)
    }
}

/// The number with a prefix of its unit.
fn scaled(value: f64) -> String {
    let prefixes = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let prefix = prefixes
        .into_iter()
        .find(|(unit, _)| value >= 0.9995 * unit);
    let (unit, name) = prefix.unwrap_or((1.0, ""));
    let value = value / unit;
    match value {
        _ if value >= 99.5 => format!("{value:.0} {name}"),
        _ if value >= 9.95 => format!("{value:.1} {name}"),
        _ => format!("{value:.2} {name}"),
    }
}

fn power(exponent: i32) -> String {
    match exponent {
        -3..=3 => format!("{}", 10_f64.powi(exponent)),
        _ => format!("10<tspan dy=\"-5\" font-size=\"8\">{exponent}</tspan>"),
    }
}

fn points(summary: &Summary) -> Vec<Point> {
    let kernels = summary.kernels();
    let times: HashMap<&str, _> = kernels.iter().map(|one| (&*one.name, &one.times)).collect();
    let point = |one: gputrail_analysis::summary::Roofline| {
        let times = times.get(&*one.kernel)?;
        // Counters may be of some dispatches only.
        let seconds = times.mean() as f64 * one.dispatches as f64 / 1e9;
        let intensity = one.intensity()?;
        (seconds > 0.0 && intensity > 0.0).then(|| Point {
            intensity,
            rate: one.operations / seconds,
            bandwidth: one.bytes / seconds,
            total: times.total,
            kernel: one.kernel,
        })
    };
    let mut points: Vec<Point> = summary.rooflines().into_iter().filter_map(point).collect();
    points.sort_by_key(|point| std::cmp::Reverse(point.total));
    points.truncate(MAX_POINTS);
    points
}

/// Draws the roofline, if counters tell it of any kernel.
pub fn draw(page: &mut Page, summary: &Summary) {
    let points = points(summary);
    let most = |value: fn(&Point) -> f64| points.iter().map(value).fold(0.0, f64::max);
    let (rate, bandwidth) = (most(|point| point.rate), most(|point| point.bandwidth));
    if points.is_empty() || !(rate.is_finite() && bandwidth.is_finite()) {
        return;
    }
    let ridge = rate / bandwidth;
    let x = Axis::around(
        points.iter().map(|point| point.intensity).chain([ridge]),
        (LEFT, RIGHT),
    );
    let y = Axis::around(points.iter().map(|point| point.rate), (BOTTOM, TOP));
    page.section("roofline", "Roofline");
    *page += "<p class=\"note\">A kernel with few operations per byte is limited by memory, one with many by computing. The roof is the \
              greatest rate of memory and of computing that any kernel reached here, not the peak of the device. Circles grow with time.</p>";
    let _ = write!(
        page,
        "<div class=\"roofline\"><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><title>Roofline</title>"
    );
    for mark in x.marks() {
        let at = x.place(10_f64.powi(mark));
        let _ = write!(
            page,
            "<path class=\"grid\" d=\"M{at:.1} {TOP}V{BOTTOM}\"/><text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            BOTTOM + 18.0,
            power(mark)
        );
    }
    for mark in y.marks() {
        let at = y.place(10_f64.powi(mark));
        let _ = write!(
            page,
            "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{RIGHT}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            at + 4.0,
            power(mark)
        );
    }
    let _ = write!(
        page,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">operations per byte</text>\
         <text transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\">operations per second</text>",
        (LEFT + RIGHT) / 2.0,
        BOTTOM + 40.0,
        (TOP + BOTTOM) / 2.0
    );
    roof(page, (&x, &y), rate, bandwidth);
    let longest = points[0].total.max(1) as f64;
    // The long ones are drawn first, so that short ones lie above.
    for (number, point) in (1..).zip(&points) {
        let (at_x, at_y) = (x.place(point.intensity), y.place(point.rate));
        let radius = 4.0 + 12.0 * (point.total as f64 / longest).sqrt();
        let _ = write!(
            page,
            "<circle cx=\"{at_x:.1}\" cy=\"{at_y:.1}\" r=\"{radius:.1}\"><title>{}: {}op/s, {:.3} per byte, {}</title></circle>",
            text(&point.kernel),
            scaled(point.rate),
            point.intensity,
            time(Nanos(point.total))
        );
        if number <= NAMED {
            let _ = write!(
                page,
                "<text class=\"number\" x=\"{at_x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{number}</text>",
                at_y + 3.5
            );
        }
    }
    *page += "</svg><ol>";
    for point in points.iter().take(NAMED) {
        let kernel = text(&point.kernel);
        let _ = write!(
            page,
            "<li title=\"{kernel}\"><b>{kernel}</b> {}op/s, {:.3} per byte</li>",
            scaled(point.rate),
            point.intensity
        );
    }
    *page += "</ol></div>";
    page.end_section();
}

/// The greatest rates.
fn roof(page: &mut Page, (x, y): (&Axis, &Axis), rate: f64, bandwidth: f64) {
    let ridge = rate / bandwidth;
    let floor = 10_f64.powi(y.from);
    let left = (floor / bandwidth).max(10_f64.powi(x.from));
    let _ = write!(
        page,
        "<path class=\"roof\" d=\"M{:.1} {:.1}L{:.1} {:.1}H{RIGHT}\"/>",
        x.place(left),
        y.place(left * bandwidth),
        x.place(ridge),
        y.place(rate)
    );
    let _ = write!(
        page,
        "<path class=\"roof\" d=\"M{} 9h28\"/><text x=\"{}\" y=\"13\">greatest measured: {}op/s, {}B/s</text>",
        LEFT,
        LEFT + 36.0,
        scaled(rate),
        scaled(bandwidth)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_go_from_one_power_of_ten_to_another() {
        let axis = Axis::around([0.3, 40.0].into_iter(), (0.0, 300.0));
        assert_eq!((axis.from, axis.to), (-1, 2));
        assert_eq!(axis.place(1.0).round(), 100.0);
        let one = Axis::around([1.0].into_iter(), (0.0, 1.0));
        assert_eq!((one.from, one.to), (0, 1));
        let wide = Axis::around([f64::MIN_POSITIVE, f64::MAX].into_iter(), (0.0, 1.0));
        assert!(wide.marks().count() < 12);
    }

    #[test]
    fn rates_have_a_prefix() {
        assert_eq!(
            [999.9, 1e3, 12.34e9, 2e15].map(scaled),
            ["1.00 k", "1.00 k", "12.3 G", "2.00 P"]
        );
    }
}
