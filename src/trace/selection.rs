//! Selections: what a conversion keeps of its inputs.

use std::io;

use wildmatch::WildMatch;

use crate::model::{Call, Consumer, Instant, Slice, TrackIndex};
use gputrail_record::Nanos;

/// A time in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeBound {
    /// A time in the clock of the trace.
    Absolute(Nanos),
    /// A time since the trace begins.
    SinceBegin(Nanos),
    /// The first call, slice or marker of this name: its begin, or its end where the bound is the end of an interval.
    Name(String),
}

impl TimeBound {
    /// The time in the clock of a trace that begins at `begin`.
    pub(super) fn time(&self, begin: u64) -> u64 {
        match self {
            TimeBound::Absolute(time) => time.0,
            TimeBound::SinceBegin(time) => begin.saturating_add(time.0),
            TimeBound::Name(_) => 0,
        }
    }

    /// The name of a call, slice or marker whose time is to be found.
    pub fn name(&self) -> Option<&str> {
        match self {
            TimeBound::Name(name) => Some(name),
            _ => None,
        }
    }
}

impl From<&str> for TimeBound {
    /// Nanoseconds of the trace's clock, a time since the beginning with its unit (`1.5s`, `20ms`, `7us`), or otherwise a
    /// name.
    fn from(text: &str) -> TimeBound {
        if let Ok(nanos) = text.parse() {
            return TimeBound::Absolute(Nanos(nanos));
        }
        let units = [("ns", 1e0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
        let found = units.iter().find_map(|(unit, nanos)| {
            let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
            (number >= 0.0).then(|| Nanos((number * nanos).round() as u64))
        });
        found.map_or_else(|| TimeBound::Name(text.to_owned()), TimeBound::SinceBegin)
    }
}

/// A selection of the items of a stream. Empty lists keep everything.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Events that end before this are left out.
    pub from: Option<TimeBound>,
    /// Events that begin after this are left out.
    pub to: Option<TimeBound>,
    /// Processes, by their ids or by patterns of their names.
    pub processes: Vec<String>,
    /// Devices, by the numbers in their titles: 3 is `GPU 3`, of each input that has one.
    pub devices: Vec<u32>,
    /// Streams of devices, by their numbers.
    pub streams: Vec<u32>,
    /// Patterns (`*` and `?`) of names of slices, calls, instants, work, counters and sampled kernels. The full name of a kernel
    /// matches, too, where its name is a shortened one.
    pub names: Vec<String>,
    /// Patterns of categories of slices, calls and instants.
    pub categories: Vec<String>,
    /// Whether arguments are left out.
    pub drop_arguments: bool,
}

impl Selection {
    /// Whether it keeps everything.
    pub fn is_everything(&self) -> bool {
        let lists = [&self.processes, &self.names, &self.categories];
        self.from.is_none()
            && self.to.is_none()
            && lists.iter().all(|list| list.is_empty())
            && self.devices.is_empty()
            && self.streams.is_empty()
            && !self.drop_arguments
    }
}

/// The values of one criterion of a selection, each with whether it has matched anything.
#[derive(Debug)]
pub(super) struct WantedValues<T> {
    list: Vec<(T, bool)>,
}

impl<T> WantedValues<T> {
    /// The values in `list`.
    pub fn new(list: impl IntoIterator<Item = T>) -> WantedValues<T> {
        WantedValues {
            list: list.into_iter().map(|one| (one, false)).collect(),
        }
    }

    /// Whether the selection has no such criterion.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether an event is kept that fulfils the values for which `matches` is true.
    pub fn keeps(&mut self, matches: impl Fn(&T) -> bool) -> bool {
        let mut keep = self.list.is_empty();
        for (one, has_matched) in &mut self.list {
            if !(keep && *has_matched) && matches(one) {
                (keep, *has_matched) = (true, true);
            }
        }
        keep
    }

    /// The values that have matched nothing.
    pub fn unmatched(&self) -> impl Iterator<Item = &T> {
        let list = self.list.iter().filter(|(_, has_matched)| !has_matched);
        list.map(|(one, _)| one)
    }
}

/// A pattern with `*` and `?`, and its text.
#[derive(Debug)]
pub(super) struct GlobPattern {
    pub text: String,
    glob: WildMatch,
}

impl GlobPattern {
    pub fn new(text: &str) -> GlobPattern {
        GlobPattern {
            text: text.to_owned(),
            glob: WildMatch::new(text),
        }
    }

    pub fn matches(&self, text: &str) -> bool {
        self.glob.matches(text)
    }
}

impl WantedValues<GlobPattern> {
    /// The patterns in `list`.
    pub fn patterns(list: &[String]) -> WantedValues<GlobPattern> {
        WantedValues::new(list.iter().map(|text| GlobPattern::new(text)))
    }

    /// Whether an event with this name or category is kept.
    pub fn keeps_text(&mut self, text: &str) -> bool {
        self.keeps(|pattern| pattern.matches(text))
    }
}

/// Finds calls, slices and instants by name: when the first one of each begins, and when it ends.
#[derive(Debug, Default)]
pub struct MarkerFinder {
    names: Vec<String>,
    /// When the first one begins and ends.
    found: Vec<Option<(Nanos, Nanos)>>,
    /// Slices that were found and are open: their tracks, their depths there, and their places in `found`.
    open: Vec<(TrackIndex, usize, usize)>,
    depths: Vec<usize>,
}

impl MarkerFinder {
    /// Looks for calls, slices and instants with these names.
    pub fn new(names: Vec<String>) -> MarkerFinder {
        MarkerFinder {
            found: vec![None; names.len()],
            names,
            ..MarkerFinder::default()
        }
    }

    /// The interval of the first call, slice or instant called `name`.
    pub fn interval(&self, name: &str) -> Option<(Nanos, Nanos)> {
        let place = self.names.iter().position(|known| known == name)?;
        self.found[place]
    }

    fn depth(&mut self, track: TrackIndex) -> &mut usize {
        let place = track.0 as usize;
        if place >= self.depths.len() {
            self.depths.resize(place + 1, 0);
        }
        &mut self.depths[place]
    }

    /// A call or slice begins.
    fn begin_at(
        &mut self,
        track: TrackIndex,
        name: &str,
        (start, end): (Nanos, Option<Nanos>),
        open: bool,
    ) {
        if open {
            *self.depth(track) += 1;
        }
        let place = self.names.iter().position(|known| known == name);
        if let Some(place) = place
            && self.found[place].is_none()
        {
            self.found[place] = Some((start, end.unwrap_or(Nanos(u64::MAX))));
            if open {
                let depth = *self.depth(track);
                self.open.push((track, depth, place));
            }
        }
    }
}

impl Consumer for MarkerFinder {
    crate::leave_out!(
        clocks attributes agents process track queue counters work value counter_values samples stack stack_samples
        loss note
    );

    fn call(&mut self, call: &Call<'_>) -> io::Result<()> {
        let (name, times) = (&call.function.name, (call.start, call.end));
        self.begin_at(call.track, name, times, call.open);
        Ok(())
    }

    fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let times = (slice.start, slice.end);
        self.begin_at(slice.track, slice.name, times, slice.open);
        Ok(())
    }

    fn end(&mut self, track: TrackIndex, end: Nanos) -> io::Result<()> {
        let depth = *self.depth(track);
        *self.depth(track) = depth.saturating_sub(1);
        let open = self
            .open
            .iter()
            .position(|one| (one.0, one.1) == (track, depth));
        if let Some(open) = open {
            let (_, _, place) = self.open.swap_remove(open);
            if let Some((_, known)) = &mut self.found[place] {
                *known = end;
            }
        }
        Ok(())
    }

    fn instant(&mut self, instant: &Instant<'_>) -> io::Result<()> {
        let place = self.names.iter().position(|name| name == instant.name);
        if let Some(place) = place {
            self.found[place].get_or_insert((instant.time, instant.time));
        }
        Ok(())
    }
}
