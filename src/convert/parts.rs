//! Outputs of limited size: the beginning of a stream, or all of it in parts, one after the other in time.
//!
//! The inputs are read once to measure the output, and once for every [`PARTS_AT_A_TIME`] parts. Each part has all
//! declarations: the names of processes, threads and devices. An event that crosses a cut is in both parts, so a part may become
//! larger than was measured; such a part is cut again.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::conversion::{Conversion, FileWriter, Outcome, OutputFormat};
use super::size::{ByteCounter, Sizes, Window, scaled};
use gputrail_record::Nanos;
use gputrail_trace::filter::Filter;
use gputrail_trace::model::Consumer;
use gputrail_trace::selection::{Selection, TimeBound};

/// Maximum number of parts.
pub const MAX_PARTS: usize = 1000;
/// Number of parts that one reading of the inputs makes.
const PARTS_AT_A_TIME: usize = 16;
/// Maximum number of times that an output is made to find its size.
const ATTEMPTS: u32 = 6;

/// An output of limited size, in a file.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its time.
    pub window: Window,
    /// The file.
    pub file: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Number of events that were selected and are outside of `window`.
    pub outside: u64,
    /// Counts of what went into it. [`Outcome::not_selected`] counts events of other parts, too.
    pub outcome: Outcome,
}

/// All parts of an output.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The parts in the order of their times.
    pub list: Vec<Part>,
    /// Counts of the output as a whole, where each event counts once.
    pub whole: Outcome,
}

/// A selection of what touches a window.
fn of_window(window: Window) -> Selection {
    Selection {
        from: window.from.map(TimeBound::Absolute),
        to: window.to.map(TimeBound::Absolute),
        ..Selection::default()
    }
}

fn refused(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

impl Conversion {
    /// Writes the beginning of the output, as much of it as fits into `limit` bytes, to `file`. The size is larger only if the
    /// first events are too close in time to be divided.
    ///
    /// # Errors
    ///
    /// As [`Conversion::write_to`], and [`io::ErrorKind::InvalidInput`] if the declarations alone take more.
    pub fn write_beginning(
        &self,
        file: &Path,
        format: OutputFormat,
        limit: u64,
    ) -> io::Result<Part> {
        let (sizes, _) = self.measure(format)?;
        let room = room(&sizes, limit)?;
        let (mut aim, mut attempt) = (room, 1);
        let shortest = sizes.cuts(Window::default(), 0).first().copied();
        loop {
            let cut = if attempt < ATTEMPTS {
                sizes.cuts(Window::default(), aim).first().copied()
            } else {
                shortest
            };
            let window = Window {
                from: None,
                to: cut,
            };
            let parts = self.write_windows(&[(window, file.to_owned())], format)?;
            let Some(part) = parts.into_iter().next() else {
                return Err(io::Error::other("the part was not written"));
            };
            if part.bytes <= limit || cut == shortest {
                return Ok(part);
            }
            let events = part.bytes.saturating_sub(sizes.declarations);
            aim = scaled(aim, room, events) / 20 * 19;
            attempt += 1;
        }
    }

    /// Writes the output into files in `folder`, each of at most `limit` bytes. A part is larger only if its events are too close
    /// in time to be divided.
    ///
    /// # Errors
    ///
    /// As [`Conversion::write_to`], and [`io::ErrorKind::InvalidInput`] if the declarations alone take more, or if there would
    /// be more than [`MAX_PARTS`] parts.
    pub fn write_parts(
        &self,
        folder: &Path,
        format: OutputFormat,
        limit: u64,
    ) -> io::Result<Parts> {
        let (sizes, whole) = self.measure(format)?;
        // Names that several parts use are in each of them.
        let room = room(&sizes, limit)? / 10 * 9;
        let all = Window::default();
        let mut windows = all.cut_at(&sizes.cuts(all, room));
        let mut list: Vec<Part> = Vec::new();
        let mut made = 0;
        while !windows.is_empty() {
            let count = list.len() + windows.len();
            if count > MAX_PARTS {
                return Err(refused(format!(
                    "parts of {limit} bytes would be {count}, and at most {MAX_PARTS} are made: names and tracks take {} bytes of each, and all events {} bytes",
                    sizes.declarations,
                    sizes.events(all)
                )));
            }
            let mut too_large = Vec::new();
            for some in windows.chunks(PARTS_AT_A_TIME) {
                let named = some.iter().map(|window| {
                    made += 1;
                    (*window, folder.join(format!("part-{made}")))
                });
                let named: Vec<_> = named.collect();
                for part in self.write_windows(&named, format)? {
                    let events = part.bytes.saturating_sub(sizes.declarations);
                    let smaller = scaled(room, sizes.events(part.window), events);
                    match sizes.cuts(part.window, smaller) {
                        cuts if part.bytes > limit && !cuts.is_empty() => {
                            fs::remove_file(&part.file)?;
                            too_large.extend(part.window.cut_at(&cuts));
                        }
                        _ => list.push(part),
                    }
                }
            }
            windows = too_large;
        }
        list.sort_by_key(|part| part.window.from.unwrap_or(Nanos(0)));
        Ok(Parts { list, whole })
    }

    /// Makes the output in no place, to find the size of its declarations and of the events of each time.
    fn measure(&self, format: OutputFormat) -> io::Result<(Sizes, Outcome)> {
        let (out, bytes) = ByteCounter::new(io::sink());
        let mut writer = FileWriter::new(out, format)?;
        let mut sizes = Sizes::new(bytes);
        let (out, declared) = ByteCounter::new(io::sink());
        let mut without_events = FileWriter::new(out, format)?;
        let nothing = Window {
            from: Some(Nanos(u64::MAX)),
            to: Some(Nanos(u64::MAX)),
        };
        let mut nothing = Filter::new(of_window(nothing), without_events.consumer());
        let outcome = self.pass_on(&mut ((writer.consumer(), &mut sizes), &mut nothing))?;
        let outcome = outcome.with_left_out(writer.finish()?);
        sizes.settle();
        without_events.finish()?;
        sizes.declarations = declared.load(std::sync::atomic::Ordering::Relaxed);
        Ok((sizes, outcome))
    }

    /// Writes what touches each window to a file, in one reading of the inputs.
    fn write_windows(
        &self,
        windows: &[(Window, PathBuf)],
        format: OutputFormat,
    ) -> io::Result<Vec<Part>> {
        let (mut writers, mut counters) = (Vec::new(), Vec::new());
        for (_, file) in windows {
            let (out, bytes) = ByteCounter::new(File::create(file)?);
            writers.push(FileWriter::new(out, format)?);
            counters.push(bytes);
        }
        let filters = windows.iter().zip(&mut writers);
        let mut filters: Vec<_> = filters
            .map(|((window, _), writer)| Filter::new(of_window(*window), writer.consumer()))
            .collect();
        let mut consumer: Box<dyn Consumer + '_> = Box::new(());
        for filter in &mut filters {
            consumer = Box::new((filter, consumer));
        }
        let outcome = self.pass_on(&mut *consumer)?;
        drop(consumer);
        let counts: Vec<_> = filters
            .iter()
            .map(|filter| (filter.kept(), filter.left_out()))
            .collect();
        drop(filters);
        let mut parts = Vec::new();
        for (((window, file), writer), (counts, bytes)) in windows
            .iter()
            .zip(writers)
            .zip(counts.iter().zip(&counters))
        {
            let without_place = writer.finish()?;
            parts.push(Part {
                window: *window,
                file: file.clone(),
                bytes: bytes.load(std::sync::atomic::Ordering::Relaxed),
                outside: counts.1,
                outcome: Outcome {
                    selected: counts.0,
                    not_selected: outcome.not_selected + counts.1,
                    without_place,
                    ..outcome.clone()
                },
            });
        }
        Ok(parts)
    }
}

/// The bytes that `limit` leaves for events.
fn room(sizes: &Sizes, limit: u64) -> io::Result<u64> {
    match limit.checked_sub(sizes.declarations) {
        Some(room @ 1..) => Ok(room),
        _ => Err(refused(format!(
            "the names and tracks alone take {} bytes of each output, and {limit} bytes are the limit",
            sizes.declarations
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// The conversion of a profile in `folder` that has threads with long names, and events one after the other.
    fn conversion(folder: &TempDir, threads: usize, events: usize) -> Conversion {
        let name = "a thread with a name that takes some room in each part ";
        let threads = (0..threads).map(|tid| {
            format!(
                r#"{{"ph":"M","name":"thread_name","pid":1,"tid":{tid},"args":{{"name":"{name}{tid}"}}}},
                {{"ph":"X","name":"first","ts":1,"dur":1,"pid":1,"tid":{tid}}},"#
            )
        });
        let events = (0..events).map(|number| {
            let begin = 10 * number;
            format!(r#"{{"ph":"X","name":"e{number}","ts":{begin},"dur":5,"pid":1,"tid":1}},"#)
        });
        let text: String = threads.chain(events).collect();
        let path = folder.path().join("profile.json");
        fs::write(&path, format!("[{}]", text.trim_end_matches(','))).unwrap();
        Conversion::open(&[path]).unwrap()
    }

    const PERFETTO: OutputFormat = OutputFormat::Perfetto;

    #[test]
    fn parts_are_no_larger_than_the_limit_and_hold_all_events() {
        let folder = TempDir::new().unwrap();
        let conversion = conversion(&folder, 20, 5000);
        for format in [PERFETTO, OutputFormat::Json, OutputFormat::PackedJson] {
            let whole = conversion.try_out(format, &mut ()).unwrap().selected;
            let limit = match format {
                OutputFormat::PackedJson => 15_000,
                _ => 40_000,
            };
            let parts = conversion
                .write_parts(folder.path(), format, limit)
                .unwrap();
            let list = &parts.list;
            assert!(list.len() > 2, "{format:?}: {}", list.len());
            assert!(list.iter().all(|part| part.bytes <= limit), "{format:?}");
            // Ends of slices are no events of their own; no slice crosses a cut here by more than itself.
            let sum: u64 = list.iter().map(|part| part.outcome.selected).sum();
            let crossing = list.len() as u64;
            assert!(
                (whole..=whole + crossing).contains(&sum),
                "{sum} of {whole}"
            );
            assert_eq!(parts.whole.selected, whole);
            let windows: Vec<_> = list.iter().map(|part| part.window).collect();
            assert!(
                windows
                    .windows(2)
                    .all(|two| two[0].to < two[1].to || two[1].to.is_none())
            );
            assert!(fs::read_dir(folder.path()).unwrap().count() <= list.len() + 1);
            for part in list {
                fs::remove_file(&part.file).unwrap();
            }
        }
    }

    #[test]
    fn a_limit_below_the_declarations_is_refused_with_their_size() {
        let folder = TempDir::new().unwrap();
        let conversion = conversion(&folder, 500, 500);
        let (sizes, _) = conversion.measure(PERFETTO).unwrap();
        let needed = sizes.declarations;
        assert!(needed > 30_000, "{needed}");
        let file = folder.path().join("out");
        for limit in [1, 1000, needed] {
            let refused = [
                conversion
                    .write_beginning(&file, PERFETTO, limit)
                    .unwrap_err(),
                conversion
                    .write_parts(folder.path(), PERFETTO, limit)
                    .unwrap_err(),
            ];
            for error in refused {
                let text = error.to_string();
                let words = format!("the names and tracks alone take {needed} bytes");
                assert!(text.contains(&words), "{text}");
            }
        }
    }

    #[test]
    fn a_limit_near_the_declarations_makes_no_thousands_of_parts() {
        let folder = TempDir::new().unwrap();
        let conversion = conversion(&folder, 100, 20_000);
        let (sizes, _) = conversion.measure(PERFETTO).unwrap();
        let limit = sizes.declarations + 50;
        assert!(sizes.events(Window::default()) > 100_000);
        let error = conversion
            .write_parts(folder.path(), PERFETTO, limit)
            .unwrap_err();
        let text = error.to_string();
        assert!(text.contains("at most 1000 are made"), "{text}");
        // The beginning alone may be short.
        let part = conversion
            .write_beginning(&folder.path().join("out"), PERFETTO, limit + 20_000)
            .unwrap();
        assert!(
            part.bytes <= limit + 20_000 && part.outcome.selected > 0,
            "{part:?}"
        );
    }

    #[test]
    fn a_beginning_that_is_cut_fills_most_of_its_size() {
        let folder = TempDir::new().unwrap();
        let conversion = conversion(&folder, 20, 20_000);
        let file = folder.path().join("out");
        let part = conversion
            .write_beginning(&file, PERFETTO, 100_000)
            .unwrap();
        assert!((50_000..=100_000).contains(&part.bytes), "{}", part.bytes);
        assert_eq!(fs::metadata(&file).unwrap().len(), part.bytes);
        let all = conversion
            .write_beginning(&file, PERFETTO, 1 << 30)
            .unwrap();
        assert_eq!(
            (all.window, all.outcome.not_selected),
            (Window::default(), 0)
        );
    }

    #[test]
    fn events_that_a_cut_leaves_out_are_counted_apart_from_those_that_are_not_selected() {
        let folder = TempDir::new().unwrap();
        let conversion = conversion(&folder, 20, 20_000).select(Selection {
            names: vec!["e*".to_owned()],
            ..Selection::default()
        });
        let file = folder.path().join("out");
        let part = conversion
            .write_beginning(&file, PERFETTO, 100_000)
            .unwrap();
        assert!(part.window.to.is_some());
        assert_eq!(part.outside + part.outcome.selected, 20_000);
        assert_eq!(part.outcome.not_selected, part.outside + 20);
    }

    #[test]
    fn events_of_one_instant_are_larger_than_the_limit_and_come_alone() {
        let folder = TempDir::new().unwrap();
        let event = |ts, number| {
            format!(r#"{{"ph":"X","name":"e{number}","ts":{ts},"dur":0,"pid":1,"tid":1}}"#)
        };
        let mut events: Vec<String> = (0..3000).map(|number| event(1, number)).collect();
        events.push(event(1_000_000, 3000));
        let path = folder.path().join("profile.json");
        fs::write(&path, format!("[{}]", events.join(","))).unwrap();
        let conversion = Conversion::open(&[path]).unwrap();
        let file = folder.path().join("out");
        let part = conversion.write_beginning(&file, PERFETTO, 20_000).unwrap();
        assert!(part.bytes > 20_000);
        assert_eq!((part.outcome.selected, part.outside), (3000, 1));
    }
}
