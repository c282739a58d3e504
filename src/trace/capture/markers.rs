//! Markers, ranges and named external ids. Pushed ranges nest on a track of their thread, external ids on one track for
//! each kind; started ranges are placed in rows of the process in which they do not overlap.

use std::collections::HashMap;
use std::io;

use super::Output;
use super::process::{ProcessStream, known_or};
use crate::capture::Metadata;
use crate::record::{
    CorrelationId, ExternalId, ExternalKind, Marker, MarkerKind, Nanos, PayloadKind, ThreadId,
};
use crate::trace::model::{
    Argument, Instant, Parent, ProcessIndex, Slice, Stream, Track, TrackIndex, TrackKind, Value,
    category,
};

/// Maximum number of ranges that are open at a time, over all threads.
const MAX_OPEN: usize = 1 << 16;
/// Maximum number of rows of overlapping ranges.
const MAX_ROWS: usize = 256;

/// The markers of one thread.
#[derive(Debug, Default)]
pub(super) struct ThreadMarkers {
    track: Option<TrackIndex>,
    /// The number of open ranges.
    open: u32,
    external: Vec<ExternalTrack>,
}

/// The external ids of one kind.
#[derive(Debug)]
struct ExternalTrack {
    kind: ExternalKind,
    track: Option<TrackIndex>,
    /// For each pushed id, whether it has a slice.
    pushed: Vec<bool>,
}

/// The ranges of a process that may overlap.
#[derive(Debug)]
pub(super) struct Ranges {
    process: ProcessIndex,
    started: HashMap<u64, (Marker, Nanos)>,
    rows: Vec<Row>,
}

/// A row, and the time span of its ranges.
#[derive(Debug)]
struct Row {
    track: TrackIndex,
    from: Nanos,
    to: Nanos,
}

impl ProcessStream<'_> {
    /// Passes on a marker.
    pub(super) fn marker(
        &mut self,
        output: &mut Output<'_>,
        thread: ThreadId,
        marker: &Marker,
    ) -> io::Result<()> {
        let time = self.time_or_latest(self.host.to_boottime(marker.time));
        let place = self.thread_place(output, known_or(marker.thread, thread))?;
        let (stream, metadata) = (&mut output.stream, &self.metadata);
        match marker.what {
            MarkerKind::START | MarkerKind::END => self.ranges.add(stream, metadata, marker, time),
            MarkerKind::EXTERNAL_PUSH | MarkerKind::EXTERNAL_POP => {
                let thread = &mut self.threads[place];
                thread
                    .markers
                    .external(stream, metadata, thread.track, marker, time)
            }
            _ => {
                let thread = &mut self.threads[place];
                let kind = TrackKind::ThreadRanges(self.index, thread.id);
                thread
                    .markers
                    .add(stream, metadata, (thread.track, kind), marker, time)
            }
        }
    }
}

impl ThreadMarkers {
    /// Adds a marker of the thread, or a range that is pushed or popped there.
    fn add(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        (parent, kind): (TrackIndex, TrackKind),
        marker: &Marker,
        time: Nanos,
    ) -> io::Result<()> {
        match marker.what {
            MarkerKind::INSTANT | MarkerKind::PUSH => {
                let track = match self.track {
                    Some(track) => track,
                    None => *self.track.insert(stream.new_track(&Track {
                        parent: Parent::Track(parent),
                        name: "markers",
                        kind,
                        order: None,
                    })?),
                };
                if marker.what == MarkerKind::PUSH {
                    self.open += 1;
                    return begin(stream, metadata, marker, track, time, None, true);
                }
                describe(metadata, marker, |name, category, arguments| {
                    stream.consumer.instant(&Instant {
                        track,
                        name,
                        category,
                        time,
                        arguments,
                        flows: &[],
                    })
                })
            }
            MarkerKind::POP => match (self.open.checked_sub(1), self.track) {
                (Some(open), Some(track)) => {
                    self.open = open;
                    stream.consumer.end(track, time)
                }
                // The range was pushed before the recording.
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Adds an external id that is pushed or popped. Ids with a name have slices.
    fn external(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        parent: TrackIndex,
        marker: &Marker,
        time: Nanos,
    ) -> io::Result<()> {
        let kind = ExternalKind(marker.external_kind.into());
        let external = self.external_track(kind);
        if marker.what == MarkerKind::EXTERNAL_POP {
            return match (external.pushed.pop(), external.track) {
                (Some(true), Some(track)) => stream.consumer.end(track, time),
                _ => Ok(()),
            };
        }
        let name = metadata.external_name(kind, ExternalId(marker.id));
        external.pushed.push(name.is_some());
        let Some(name) = name else {
            return Ok(());
        };
        let track = match external.track {
            Some(track) => track,
            None => *external.track.insert(stream.new_track(&Track {
                parent: Parent::Track(parent),
                name: &kind_title(metadata, kind),
                kind: TrackKind::Slices,
                order: None,
            })?),
        };
        stream.consumer.slice(&Slice {
            track,
            name: metadata.string(name),
            category: category::MARKER,
            start: time,
            end: None,
            open: true,
            correlation: CorrelationId::NONE,
            arguments: &[Argument {
                name: "external_id",
                value: Value::Uint(marker.id),
            }],
            flows: &[],
        })
    }

    fn external_track(&mut self, kind: ExternalKind) -> &mut ExternalTrack {
        let place = self.external.iter().position(|known| known.kind == kind);
        let place = place.unwrap_or_else(|| {
            self.external.push(ExternalTrack {
                kind,
                track: None,
                pushed: Vec::new(),
            });
            self.external.len() - 1
        });
        &mut self.external[place]
    }
}

impl Ranges {
    /// The ranges of `process`.
    pub fn new(process: ProcessIndex) -> Ranges {
        Ranges {
            process,
            started: HashMap::new(),
            rows: Vec::new(),
        }
    }

    /// Adds the start or the end of a range, and passes the range on when both have come.
    fn add(
        &mut self,
        stream: &mut Stream<'_>,
        metadata: &Metadata,
        marker: &Marker,
        time: Nanos,
    ) -> io::Result<()> {
        // The two ends may come from different threads, in either order.
        match self.started.remove(&marker.id) {
            Some((other, at)) if other.what != marker.what => {
                let (start, from, to) = match marker.what {
                    MarkerKind::END => (&other, at, time.max(at)),
                    _ => (marker, time, at.max(time)),
                };
                let track = self.row(stream, from, to)?;
                begin(stream, metadata, start, track, from, Some(to), false)
            }
            Some((other, at)) => {
                // A second end: the range ends with the first one.
                self.started.insert(other.id, (other, at));
                Ok(())
            }
            None if self.started.len() < MAX_OPEN => {
                self.started.insert(marker.id, (*marker, time));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Passes on the ranges that have not ended.
    pub fn finish(&mut self, stream: &mut Stream<'_>, metadata: &Metadata) -> io::Result<()> {
        let mut open: Vec<_> = self.started.drain().map(|(_, started)| started).collect();
        open.retain(|(marker, _)| marker.what == MarkerKind::START);
        open.sort_unstable_by_key(|(marker, time)| (*time, marker.id));
        for (marker, time) in &open {
            let track = self.row(stream, *time, Nanos(u64::MAX))?;
            begin(stream, metadata, marker, track, *time, None, false)?;
        }
        Ok(())
    }

    /// A row that is free from `from` to `to`.
    fn row(&mut self, stream: &mut Stream<'_>, from: Nanos, to: Nanos) -> io::Result<TrackIndex> {
        let full = self.rows.len() >= MAX_ROWS;
        let free = |row: &&mut Row| from >= row.to || to <= row.from;
        let found = match self.rows.iter_mut().find(free) {
            Some(row) => Some(row),
            // Too many at once: overlapping ranges may look nested.
            None if full => self.rows.last_mut(),
            None => None,
        };
        if let Some(row) = found {
            (row.from, row.to) = (row.from.min(from), row.to.max(to));
            return Ok(row.track);
        }
        let track = stream.new_track(&Track {
            parent: Parent::Process(self.process),
            name: "ranges",
            kind: TrackKind::Ranges,
            order: None,
        })?;
        self.rows.push(Row { track, from, to });
        Ok(track)
    }
}

fn kind_title(metadata: &Metadata, kind: ExternalKind) -> String {
    // The name of id 0 is the name of the kind.
    match (kind.name(), metadata.external_name(kind, ExternalId::NONE)) {
        (Some(name), _) => format!("external ids: {name}"),
        (None, Some(name)) => format!("external ids: {}", metadata.string(name)),
        (None, None) => format!("external ids: kind {}", kind.0),
    }
}

/// Passes on the begin of a range.
fn begin(
    stream: &mut Stream<'_>,
    metadata: &Metadata,
    marker: &Marker,
    track: TrackIndex,
    start: Nanos,
    end: Option<Nanos>,
    open: bool,
) -> io::Result<()> {
    describe(metadata, marker, |name, category, arguments| {
        stream.consumer.slice(&Slice {
            track,
            name,
            category,
            start,
            end,
            open,
            correlation: CorrelationId::NONE,
            arguments,
            flows: &[],
        })
    })
}

/// Calls `pass_on` with the name, the category and the arguments of a marker.
fn describe(
    metadata: &Metadata,
    marker: &Marker,
    pass_on: impl FnOnce(&str, &str, &[Argument<'_>]) -> io::Result<()>,
) -> io::Result<()> {
    let mut arguments = Vec::new();
    let mut add = |name, value| arguments.push(Argument { name, value });
    if marker.domain.is_some() {
        add("domain", Value::Text(metadata.string(marker.domain)));
    }
    match marker.payload_kind {
        PayloadKind::UNSIGNED => add("payload", Value::Uint(marker.payload)),
        PayloadKind::SIGNED => add("payload", Value::Int(marker.payload as i64)),
        PayloadKind::FLOAT => add("payload", Value::Double(f64::from_bits(marker.payload))),
        _ => {}
    }
    let color;
    if marker.color != 0 {
        color = format!("#{:08x}", marker.color);
        add("color", Value::Text(&color));
    }
    let category = match metadata.string(marker.category) {
        "" => category::MARKER,
        category => category,
    };
    pass_on(metadata.string(marker.name), category, &arguments)
}
