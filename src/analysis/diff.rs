//! The comparison of recordings: of one before and one after a change, or of several of each.
//!
//! Rows of both sides are matched by their full names. What is left on both sides is matched by names without template arguments,
//! parameters and tile sizes, since a compiler or a library that chooses another tile runs the same kernel under another name.

use std::collections::BTreeMap;

use gputrail_record::Nanos;

use crate::summary::steps::{series, series_of};
use crate::summary::{PlaceSummary, Summary, WorkClass};

/// The subject of rows.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// Kernels.
    Kernels,
    /// API calls.
    Calls,
    /// Copies, fills and barriers.
    Operations,
    /// Gaps of devices, by the work that ended them.
    Gaps,
    /// Ranges of markers and operators.
    Ranges,
    /// Series of steps, and in each the time that devices were busy, idle and communicating.
    Steps,
}

impl Subject {
    /// All subjects.
    pub const ALL: [Subject; 6] = [
        Subject::Kernels,
        Subject::Calls,
        Subject::Operations,
        Subject::Gaps,
        Subject::Ranges,
        Subject::Steps,
    ];
}

/// The values of a row in one run.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct RowValues {
    /// The number of events.
    pub count: u64,
    /// Their time, ns.
    pub total: u64,
    /// Their median, ns.
    pub median: u64,
}

/// A figure of a whole recording.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Its name, as conditions take it.
    pub name: &'static str,
    /// Its value: ns, or a number of things.
    pub value: u64,
    /// Whether it is a time.
    pub is_time: bool,
}

/// The rows and figures of one run.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    rows: BTreeMap<Subject, BTreeMap<String, RowValues>>,
    figures: Vec<Figure>,
}

impl Profile {
    /// The profile of a recording.
    pub fn of(summary: &Summary) -> Profile {
        let mut profile = Profile::default();
        for (subject, list) in [
            (Subject::Kernels, summary.kernels()),
            (Subject::Operations, summary.other_work()),
        ] {
            for work in list {
                profile.add(subject, work.name, &work.times);
            }
        }
        let functions = summary.functions();
        for function in &functions {
            profile.add(Subject::Calls, function.name.clone(), &function.times);
        }
        for gpu in summary.gpus() {
            for (name, gaps) in gpu.gaps {
                profile.add(Subject::Gaps, name, &gaps.times);
            }
        }
        for range in summary.ranges() {
            // Steps have numbers, which differ between runs.
            let name = series_of(&range.name);
            profile.add(Subject::Ranges, name, &range.times);
        }
        let settled = summary.places();
        for one in series(&settled.steps) {
            let mut add = |what: &str, part: &dyn Fn(usize) -> u64| {
                let values: Vec<u64> = one.steps.iter().map(|place| part(*place)).collect();
                let name = match what {
                    "" => one.name.clone(),
                    what => format!("{}: {what}", one.name),
                };
                let row = RowValues {
                    count: values.len() as u64,
                    total: values.iter().sum(),
                    median: crate::summary::steps::median(values),
                };
                profile.merge(Subject::Steps, name, row);
            };
            let step = |place: usize| &settled.steps[place];
            add("", &|place| step(place).duration().map_or(0, |time| time.0));
            add("busy", &|place| step(place).times.busy().0);
            add("idle", &|place| step(place).idle().map_or(0, |time| time.0));
            add("exposed", &|place| {
                step(place).times.exposed_communication().0
            });
        }
        let mut all = PlaceSummary::default();
        settled.devices.values().for_each(|place| all.add(place));
        let length = summary.span();
        let length = length.map_or(0, |(first, last)| last.0.saturating_sub(first.0));
        let time = |name, value: Nanos| Figure {
            name,
            value: value.0,
            is_time: true,
        };
        let count = |name, value| Figure {
            name,
            value,
            is_time: false,
        };
        profile.figures = vec![
            time("total", Nanos(length)),
            time("busy", all.times.busy()),
            time("idle", all.idle()),
            time("computing", all.times.of(WorkClass::Compute)),
            time("exposed", all.times.exposed_communication()),
            time("transfers", all.times.of(WorkClass::Transfer)),
            count("kernels", all.times.kernels),
            count("calls", functions.iter().map(|one| one.times.count).sum()),
        ];
        profile
    }

    fn add(&mut self, subject: Subject, name: String, times: &crate::summary::Distribution) {
        let row = RowValues {
            count: times.count,
            total: times.total,
            median: times.median(),
        };
        if row.count > 0 {
            self.merge(subject, name, row);
        }
    }

    /// Adds a row. The median of rows with one name is that of the greatest.
    fn merge(&mut self, subject: Subject, name: String, row: RowValues) {
        let known = self.rows.entry(subject).or_default();
        merge_into(known.entry(name).or_default(), row);
    }
}

fn merge_into(known: &mut RowValues, row: RowValues) {
    if row.total >= known.total {
        known.median = row.median;
    }
    known.count += row.count;
    known.total = known.total.saturating_add(row.total);
}

/// A value of the runs of one side.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct SideValue {
    /// The mean.
    pub mean: u64,
    /// From the least run to the greatest.
    pub spread: u64,
}

impl SideValue {
    fn of(values: &[u64]) -> SideValue {
        let count = values.len().max(1) as u128;
        let sum: u128 = values.iter().map(|value| u128::from(*value)).sum();
        let least = values.iter().min().copied().unwrap_or(0);
        let most = values.iter().max().copied().unwrap_or(0);
        SideValue {
            mean: (sum / count) as u64,
            spread: most - least,
        }
    }
}

/// A row of one side.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct SideRow {
    /// Number of events.
    pub count: SideValue,
    /// Total time, ns.
    pub total: SideValue,
    /// Median, ns.
    pub median: SideValue,
}

/// How the sides of a row found each other.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// By the full name.
    Same,
    /// By the name without template arguments, parameters and tile sizes.
    Similar,
    /// Only after the change.
    New,
    /// Only before the change.
    Gone,
}

/// A row of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffRow {
    /// Its name; of similar rows the part that they share.
    pub name: String,
    /// How the sides found each other.
    pub by: Match,
    /// Before the change.
    pub before: SideRow,
    /// After it.
    pub after: SideRow,
}

impl DiffRow {
    /// The change of the total, ns.
    pub fn change(&self) -> i64 {
        difference(self.before.total.mean, self.after.total.mean)
    }

    fn is_changed(&self) -> bool {
        let values = |row: &SideRow| (row.count.mean, row.total.mean, row.median.mean);
        values(&self.before) != values(&self.after)
    }
}

/// The difference of two values.
pub fn difference(before: u64, after: u64) -> i64 {
    let change = i128::from(after) - i128::from(before);
    change.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

/// A figure of both sides.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct FigureChange {
    /// Its name.
    pub name: &'static str,
    /// Whether it is a time.
    pub is_time: bool,
    /// Before the change.
    pub before: SideValue,
    /// After it.
    pub after: SideValue,
}

/// The comparison of two sides.
#[derive(Debug)]
pub struct Comparison {
    /// The figures of whole recordings.
    pub figures: Vec<FigureChange>,
    rows: BTreeMap<Subject, Vec<DiffRow>>,
}

/// The rows of the runs of a side, by name.
type SideRows = BTreeMap<String, Vec<RowValues>>;

impl Comparison {
    /// Compares the runs before a change with those after it.
    pub fn of(before: &[Profile], after: &[Profile]) -> Comparison {
        let subject = |subject| {
            let rows = matched(side(before, subject), side(after, subject), subject);
            (subject, rows)
        };
        let values = |side: &[Profile], place: usize| {
            let values = side.iter().filter_map(|profile| profile.figures.get(place));
            SideValue::of(&values.map(|figure| figure.value).collect::<Vec<_>>())
        };
        let figures = before.first().map_or(&[][..], |profile| &profile.figures);
        let figures = figures
            .iter()
            .enumerate()
            .map(|(place, figure)| FigureChange {
                name: figure.name,
                is_time: figure.is_time,
                before: values(before, place),
                after: values(after, place),
            });
        Comparison {
            figures: figures.collect(),
            rows: Subject::ALL.into_iter().map(subject).collect(),
        }
    }

    /// All rows of a subject, those that changed most first.
    pub fn rows(&self, subject: Subject) -> &[DiffRow] {
        self.rows.get(&subject).map_or(&[], |rows| rows)
    }

    /// The rows of a subject that changed.
    pub fn changed(&self, subject: Subject) -> impl Iterator<Item = &DiffRow> {
        self.rows(subject).iter().filter(|row| row.is_changed())
    }
}

fn side(profiles: &[Profile], subject: Subject) -> SideRows {
    let mut rows = SideRows::new();
    for (run, profile) in profiles.iter().enumerate() {
        for (name, row) in profile.rows.get(&subject).into_iter().flatten() {
            let runs = rows.entry(name.clone()).or_default();
            runs.resize(profiles.len(), RowValues::default());
            runs[run] = *row;
        }
    }
    rows
}

fn row_of(runs: &[RowValues]) -> SideRow {
    let value =
        |part: fn(&RowValues) -> u64| SideValue::of(&runs.iter().map(part).collect::<Vec<_>>());
    SideRow {
        count: value(|row| row.count),
        total: value(|row| row.total),
        median: value(|row| row.median),
    }
}

fn matched(mut before: SideRows, mut after: SideRows, subject: Subject) -> Vec<DiffRow> {
    let mut rows = Vec::new();
    let names: Vec<String> = before.keys().cloned().collect();
    for name in names {
        if let (Some(old), Some(new)) = (before.get(&name), after.remove(&name)) {
            rows.push(DiffRow {
                by: Match::Same,
                before: row_of(old),
                after: row_of(&new),
                name: name.clone(),
            });
            before.remove(&name);
        }
    }
    if matches!(subject, Subject::Kernels | Subject::Gaps) {
        let (old, new) = (by_short_name(&before), by_short_name(&after));
        for (short, (old_names, old_runs)) in old {
            let Some((new_names, new_runs)) = new.get(&short) else {
                continue;
            };
            rows.push(DiffRow {
                by: Match::Similar,
                before: row_of(&old_runs),
                after: row_of(new_runs),
                name: short,
            });
            old_names.iter().for_each(|name| drop(before.remove(name)));
            new_names.iter().for_each(|name| drop(after.remove(name)));
        }
    }
    for (by, side) in [(Match::Gone, before), (Match::New, after)] {
        for (name, runs) in side {
            let (one, none) = (row_of(&runs), SideRow::default());
            let (before, after) = match by {
                Match::Gone => (one, none),
                _ => (none, one),
            };
            rows.push(DiffRow {
                name,
                by,
                before,
                after,
            });
        }
    }
    rows.sort_by(|a, b| {
        let changes = b.change().unsigned_abs().cmp(&a.change().unsigned_abs());
        changes.then_with(|| a.name.cmp(&b.name))
    });
    rows
}

/// Rows by their short names: the full names, and the sums of each run.
fn by_short_name(rows: &SideRows) -> BTreeMap<String, (Vec<String>, Vec<RowValues>)> {
    let mut groups: BTreeMap<String, (Vec<String>, Vec<RowValues>)> = BTreeMap::new();
    for (name, runs) in rows {
        let (names, sums) = groups.entry(short_name(name)).or_default();
        names.push(name.clone());
        sums.resize(runs.len(), RowValues::default());
        for (sum, run) in sums.iter_mut().zip(runs) {
            merge_into(sum, *run);
        }
    }
    groups
}

/// The name of a kernel without template arguments, parameters and tile sizes: what is in `<>` and `()`, and words such as `128x64`,
/// `tilesize128x64x8` and `stages4`.
pub fn short_name(name: &str) -> String {
    let mut plain = String::new();
    let mut depth = 0_usize;
    for letter in name.chars() {
        match letter {
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    let plain = plain.trim().trim_start_matches("void ");
    let words: Vec<&str> = plain.split('_').filter(|word| !is_size(word)).collect();
    match words.concat().is_empty() {
        true => plain.to_owned(),
        false => words.join("_"),
    }
}

/// Whether a word is a size: `64`, `128x64`, `tilesize128x64x8`, `stage3`.
fn is_size(word: &str) -> bool {
    let begin =
        word.trim_start_matches(|letter: char| letter.is_ascii_alphabetic() && letter != 'x');
    let word = match word.len() - begin.len() {
        0 => word,
        length => match &word[..length] {
            "tilesize" | "warpsize" | "stage" | "stages" | "tile" | "warp" | "MT" => begin,
            _ => return false,
        },
    };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    word.split('x').all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(rows: &[(&str, u64, u64)]) -> Profile {
        let mut profile = Profile::default();
        for (name, count, total) in rows {
            let row = RowValues {
                count: *count,
                total: *total,
                median: total / count,
            };
            profile.merge(Subject::Kernels, (*name).to_owned(), row);
        }
        profile
    }

    fn told(comparison: &Comparison) -> Vec<(&str, Match, i64)> {
        let rows = comparison.changed(Subject::Kernels);
        rows.map(|row| (&*row.name, row.by, row.change())).collect()
    }

    #[test]
    fn kernels_are_matched_by_full_names_and_then_by_short_ones() {
        let before = profile(&[
            ("same", 2, 100),
            ("longer", 2, 100),
            ("void gemm_128x64_tn<float, 4>(float*)", 4, 400),
            ("gone(int)", 1, 7),
            ("void apply<A>(int)", 1, 10),
            ("void apply<B>(int)", 1, 20),
        ]);
        let after = profile(&[
            ("same", 2, 100),
            ("longer", 2, 110),
            ("void gemm_64x64_tn<float, 8>(float*)", 8, 300),
            ("fresh", 1, 5),
            ("void apply<A>(int)", 1, 10),
            ("void apply<C>(int)", 1, 23),
        ]);
        let comparison = Comparison::of(&[before], &[after]);
        let expected = [
            ("gemm_tn", Match::Similar, -100),
            ("longer", Match::Same, 10),
            ("gone(int)", Match::Gone, -7),
            ("fresh", Match::New, 5),
            ("apply", Match::Similar, 3),
        ];
        assert_eq!(told(&comparison), expected);
    }

    #[test]
    fn equal_runs_have_no_changed_rows() {
        let runs = || [profile(&[("a", 1, 10), ("b", 3, 9)])];
        assert_eq!(told(&Comparison::of(&runs(), &runs())), []);
    }

    #[test]
    fn several_runs_of_a_side_have_a_mean_and_a_spread() {
        let run = |total| profile(&[("a", 2, total)]);
        let comparison = Comparison::of(&[run(100), run(120)], &[run(130), run(170)]);
        let [row] = comparison.rows(Subject::Kernels) else {
            panic!("{comparison:?}");
        };
        let expected = |mean, spread| SideValue { mean, spread };
        assert_eq!(row.before.total, expected(110, 20));
        assert_eq!(row.after.total, expected(150, 40));
        assert_eq!(row.change(), 40);
    }

    #[test]
    fn short_names_have_no_arguments_and_sizes() {
        for (name, short) in [
            ("ampere_sgemm_128x64_tn", "ampere_sgemm_tn"),
            (
                "void at::native::k<4, F<int> >(int, F<int>)",
                "at::native::k",
            ),
            (
                "xmma_gemm_tilesize128x64x8_stage3_warpsize2x2x1_kernel",
                "xmma_gemm_kernel",
            ),
            ("Cijk_MT64x64x16_SN", "Cijk_SN"),
            ("64x64", "64x64"),
            ("max_pool_v2", "max_pool_v2"),
        ] {
            assert_eq!(short_name(name), short);
        }
    }
}
