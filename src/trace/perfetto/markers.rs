//! Markers, ranges and named external ids, each where it nests: pushed ranges on a track of their thread,
//! external ids on one for each kind, ranges that were started on rows of the process where they do not meet.

use std::collections::HashMap;
use std::io::{self, Write};

use super::events::{Annotation, Event, Label, Value};
use super::functions::{OwnLabel, Words};
use super::writer::{ProcessTrack, TraceWriter, Track};
use crate::capture::Metadata;
use crate::record::{ExternalId, ExternalKind, Marker, MarkerKind, Nanos, PayloadKind, StringId};

/// Most ranges that are open at a time, over all threads.
const MAX_OPEN: usize = 1 << 16;
/// Most rows of ranges that overlap.
const MAX_ROWS: usize = 256;

/// The markers of one thread.
#[derive(Debug, Default)]
pub(super) struct ThreadMarkers {
    track: Option<Track>,
    /// Ranges that are open.
    open: u32,
    external: Vec<ExternalTrack>,
}

/// The external ids of one kind.
#[derive(Debug)]
struct ExternalTrack {
    kind: ExternalKind,
    track: Option<Track>,
    /// Of each id that is pushed: whether it has a slice.
    pushed: Vec<bool>,
}

/// The ranges of a process that may overlap.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    started: HashMap<u64, (Marker, Nanos)>,
    rows: Vec<Row>,
}

/// A row, and the time that its ranges span.
#[derive(Debug)]
struct Row {
    track: Track,
    from: Nanos,
    to: Nanos,
}

impl ThreadMarkers {
    /// Takes in a marker of the thread, which stands at `time`. Ranges that overlap are for [`Ranges`].
    pub fn add<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        words: &Words,
        metadata: &Metadata,
        thread: Track,
        marker: &Marker,
        time: Nanos,
    ) -> io::Result<()> {
        match marker.what {
            MarkerKind::INSTANT | MarkerKind::PUSH => {
                let track = match self.track {
                    Some(track) => track,
                    None => *self.track.insert(writer.child(thread, "markers")?),
                };
                let pushed = marker.what == MarkerKind::PUSH;
                self.open += u32::from(pushed);
                tell(
                    writer,
                    words,
                    metadata,
                    marker,
                    |writer, event| match pushed {
                        true => writer.begin(track, time.0, event),
                        false => writer.instant(track, time.0, event),
                    },
                )
            }
            MarkerKind::POP => match (self.open.checked_sub(1), self.track) {
                (Some(open), Some(track)) => {
                    self.open = open;
                    writer.end(track, time.0)
                }
                // It was pushed before the recording.
                _ => Ok(()),
            },
            MarkerKind::EXTERNAL_PUSH => {
                let kind = ExternalKind(marker.external_kind.into());
                let name = metadata.external_name(kind, ExternalId(marker.id));
                let external = self.external(kind);
                external.pushed.push(name.is_some());
                let Some(name) = name else {
                    return Ok(());
                };
                let track = match external.track {
                    Some(track) => track,
                    None => *external
                        .track
                        .insert(writer.child(thread, &kind_title(metadata, kind))?),
                };
                let annotations = [Annotation {
                    name: words.external,
                    value: Value::Uint(marker.id),
                }];
                let label = label(writer, metadata, name);
                let event = event(label.get(), words, &annotations);
                writer.begin(track, time.0, &event)
            }
            MarkerKind::EXTERNAL_POP => {
                let external = self.external(ExternalKind(marker.external_kind.into()));
                match (external.pushed.pop(), external.track) {
                    (Some(true), Some(track)) => writer.end(track, time.0),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn external(&mut self, kind: ExternalKind) -> &mut ExternalTrack {
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
    /// Takes in one end of a range that may overlap with others; its name and span when it is the second.
    pub fn add<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        words: &Words,
        metadata: &Metadata,
        process: ProcessTrack,
        marker: &Marker,
        time: Nanos,
    ) -> io::Result<Option<(StringId, Nanos, Nanos)>> {
        // The two ends may come from different threads, in either order.
        match self.started.remove(&marker.id) {
            Some((other, at)) if other.what != marker.what => {
                let (start, from, to) = match marker.what {
                    MarkerKind::END => (&other, at, time.max(at)),
                    _ => (marker, time, at.max(time)),
                };
                let track = self.row(writer, process, from, to)?;
                tell(writer, words, metadata, start, |writer, event| {
                    writer.begin(track, from.0, event)
                })?;
                writer.end(track, to.0)?;
                Ok(Some((start.name, from, to)))
            }
            Some((other, at)) => {
                // A second end: the range is told with its first.
                self.started.insert(other.id, (other, at));
                Ok(None)
            }
            None if self.started.len() < MAX_OPEN => {
                self.started.insert(marker.id, (*marker, time));
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// Tells the ranges that have not ended.
    pub fn finish<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        words: &Words,
        metadata: &Metadata,
        process: ProcessTrack,
    ) -> io::Result<()> {
        let mut open: Vec<_> = self.started.drain().map(|(_, started)| started).collect();
        open.retain(|(marker, _)| marker.what == MarkerKind::START);
        open.sort_unstable_by_key(|(marker, time)| (*time, marker.id));
        for (marker, time) in &open {
            let track = self.row(writer, process, *time, Nanos(u64::MAX))?;
            tell(writer, words, metadata, marker, |writer, event| {
                writer.begin(track, time.0, event)
            })?;
        }
        Ok(())
    }

    /// A row that is free from `from` to `to`.
    fn row<W: Write>(
        &mut self,
        writer: &mut TraceWriter<W>,
        process: ProcessTrack,
        from: Nanos,
        to: Nanos,
    ) -> io::Result<Track> {
        let full = self.rows.len() >= MAX_ROWS;
        let free = |row: &&mut Row| from >= row.to || to <= row.from;
        let found = match self.rows.iter_mut().find(free) {
            Some(row) => Some(row),
            // Too many at once: what is in the way then may look nested.
            None if full => self.rows.last_mut(),
            None => None,
        };
        if let Some(row) = found {
            (row.from, row.to) = (row.from.min(from), row.to.max(to));
            return Ok(row.track);
        }
        let track = writer.process_child(process, "ranges")?;
        self.rows.push(Row { track, from, to });
        Ok(track)
    }
}

fn kind_title(metadata: &Metadata, kind: ExternalKind) -> String {
    // The name of id 0 is the kind's own.
    match (kind.name(), metadata.external_name(kind, ExternalId::NONE)) {
        (Some(name), _) => format!("external ids: {name}"),
        (None, Some(name)) => format!("external ids: {}", metadata.string(name)),
        (None, None) => format!("external ids: kind {}", kind.0),
    }
}

fn label<W: Write>(writer: &mut TraceWriter<W>, metadata: &Metadata, name: StringId) -> OwnLabel {
    OwnLabel::new(writer, metadata.string(name))
}

fn event<'e>(label: Label<'e>, words: &Words, annotations: &'e [Annotation<'e>]) -> Event<'e> {
    Event {
        label,
        category: words.marker,
        correlation: None,
        submitted: &[],
        waited: &[],
        api: None,
        annotations,
    }
}

/// Has `write` write `marker`, with what is said of it.
fn tell<W: Write>(
    writer: &mut TraceWriter<W>,
    words: &Words,
    metadata: &Metadata,
    marker: &Marker,
    write: impl FnOnce(&mut TraceWriter<W>, &Event<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let label = label(writer, metadata, marker.name);
    let mut annotations = Vec::new();
    if marker.domain.is_some() {
        annotations.push(Annotation {
            name: words.domain,
            value: Value::Text(metadata.string(marker.domain)),
        });
    }
    let payload = match marker.payload_kind {
        PayloadKind::UNSIGNED => Some(Value::Uint(marker.payload)),
        PayloadKind::SIGNED => Some(Value::Int(marker.payload as i64)),
        PayloadKind::FLOAT => Some(Value::Double(f64::from_bits(marker.payload))),
        _ => None,
    };
    annotations.extend(payload.map(|value| Annotation {
        name: words.payload,
        value,
    }));
    let color = format!("#{:08x}", marker.color);
    if marker.color != 0 {
        annotations.push(Annotation {
            name: words.color,
            value: Value::Text(&color),
        });
    }
    let category = match metadata.string(marker.category) {
        "" => None,
        text => writer.name(text),
    };
    let event = Event {
        category: category.unwrap_or(words.marker),
        ..event(label.get(), words, &annotations)
    };
    write(writer, &event)
}
