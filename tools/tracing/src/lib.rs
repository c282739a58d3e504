//! A layer for `tracing`: spans and events of a Rust program are ranges and marks in the traces of gputrail, beside the
//! calls that they make and the work of these calls on GPUs.
//!
//! ```
//! use tracing_subscriber::prelude::*;
//!
//! tracing_subscriber::registry().with(gputrail_tracing::layer()).init();
//!
//! let step = tracing::info_span!("step", number = 7);
//! let _entered = step.enter();
//! tracing::info!(loss = 0.25, "batch done");
//! ```
//!
//! Nothing else is needed under `gputrail record -- PROGRAM`. In a program that is not recorded, the layer looks once a
//! second at most whether it is by now, and does nothing.
//!
//! | tracing | trace |
//! |---|---|
//! | a span is entered and exited | a range on the thread, each time. A task of an executor is entered on each thread that polls it, and its range is there for as long as it is polled |
//! | a span is created and closed | nothing, or with [`Layer::lifetimes`] a range that may begin and end on different threads |
//! | an event | a mark. Its message is the name |
//! | target | domain |
//! | level | category, and for errors and warnings the colour |
//! | fields | the first number, or the field `payload`, is the payload; with [`Layer::fields`] all are in the name |
//!
//! Spans of a thread may be exited in any order; ranges of a trace nest. If a span is exited while spans that were entered
//! after it are still entered, their ranges end with it and begin again.

mod library;

use library::{Library, Options};
use std::cell::RefCell;
use std::ffi::CString;
use std::fmt::{Debug, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

/// Maximum length of a name. Names of a recording are kept until its end.
const MAX_NAME: usize = 256;

/// A layer that passes spans and events on to gputrail.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    lifetimes: bool,
    fields: bool,
}

/// A layer with default settings.
pub fn layer() -> Layer {
    Layer::default()
}

impl Layer {
    /// Whether each span is also a range from its creation to its close, which shows how long a task took together with
    /// the time that it waited.
    pub fn lifetimes(mut self, lifetimes: bool) -> Layer {
        self.lifetimes = lifetimes;
        self
    }

    /// Whether the values of all fields are part of the names, as in `step{number=7}`. A recording keeps each
    /// name that it has seen: not for fields with ever new values in a program that is recorded for long.
    pub fn fields(mut self, fields: bool) -> Layer {
        self.fields = fields;
        self
    }
}

/// A mark or the begin of a range.
#[derive(Debug)]
struct Mark {
    name: CString,
    domain: CString,
    category: CString,
    color: u32,
    payload: Option<Payload>,
    /// The number of the range of the span's lifetime; 0: none.
    lifetime: AtomicU64,
}

#[derive(Copy, Clone, Debug, PartialEq)]
enum Payload {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
}

/// A span that is entered on the calling thread.
struct Entered {
    id: Id,
    mark: Arc<Mark>,
}

thread_local! {
    /// The spans of the thread whose ranges are open, the innermost last.
    static ENTERED: RefCell<Vec<Entered>> = const { RefCell::new(Vec::new()) };
}

/// The mark of a span, in its extensions. Recorded values replace it.
struct OfSpan {
    mark: Arc<Mark>,
    values: Values,
}

impl<S> tracing_subscriber::Layer<S> for Layer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let (Some(library), Some(span)) = (Library::get(), context.span(id)) else {
            return;
        };
        let mut values = Values::default();
        attributes.record(&mut values);
        let mark = self.mark(attributes.metadata(), attributes.metadata().name(), &values);
        if self.lifetimes {
            let number = library.start(&mark.options());
            mark.lifetime.store(number, Ordering::Relaxed);
        }
        let mark = Arc::new(mark);
        span.extensions_mut().replace(OfSpan { mark, values });
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else {
            return;
        };
        let mut extensions = span.extensions_mut();
        if let Some(of_span) = extensions.get_mut::<OfSpan>() {
            record.record(&mut of_span.values);
            let metadata = span.metadata();
            let mark = self.mark(metadata, metadata.name(), &of_span.values);
            let lifetime = of_span.mark.lifetime.load(Ordering::Relaxed);
            mark.lifetime.store(lifetime, Ordering::Relaxed);
            of_span.mark = Arc::new(mark);
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let (Some(library), Some(span)) = (Library::get(), context.span(id)) else {
            return;
        };
        let mark = self.mark_of(&span);
        if library.push(&mark.options()) {
            let entered = Entered {
                id: id.clone(),
                mark,
            };
            // A thread that is ending has no place for it.
            let kept = ENTERED.try_with(|stack| stack.borrow_mut().push(entered));
            if kept.is_err() {
                library.pop();
            }
        }
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        let Some(library) = Library::get() else {
            return;
        };
        // The library may call back code that enters and exits spans, so the stack is not borrowed while it is called.
        let Ok(Some((ended, later))) = ENTERED.try_with(|stack| exit(&mut stack.borrow_mut(), id))
        else {
            return;
        };
        for _ in 0..ended {
            library.pop();
        }
        for entered in later {
            if library.push(&entered.mark.options()) {
                let _ = ENTERED.try_with(|stack| stack.borrow_mut().push(entered));
            }
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let (Some(library), Some(span)) = (Library::get(), context.span(&id)) else {
            return;
        };
        if let Some(of_span) = span.extensions().get::<OfSpan>() {
            let lifetime = of_span.mark.lifetime.load(Ordering::Relaxed);
            if lifetime != 0 {
                library.end(lifetime);
            }
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let Some(library) = Library::get() else {
            return;
        };
        let mut values = Values::default();
        event.record(&mut values);
        let name = std::mem::take(&mut values.message);
        let name = if name.is_empty() {
            event.metadata().name()
        } else {
            &name
        };
        library.mark(&self.mark(event.metadata(), name, &values).options());
    }
}

/// Takes the span with this id off the stack, with all that were entered later. Returns the number of ranges that end, and
/// the later spans, which are still entered and begin again.
fn exit(stack: &mut Vec<Entered>, id: &Id) -> Option<(usize, Vec<Entered>)> {
    let place = stack.iter().rposition(|entered| entered.id == *id)?;
    let mut later = stack.split_off(place);
    let ended = later.len();
    later.remove(0);
    Some((ended, later))
}

impl Layer {
    fn mark(&self, metadata: &Metadata<'_>, name: &str, values: &Values) -> Mark {
        let mut name = name.to_owned();
        if self.fields && !values.texts.is_empty() {
            let _ = write!(name, "{{{}}}", values.texts.join(", "));
        }
        Mark {
            name: text(&name),
            domain: text(metadata.target()),
            category: text(metadata.level().as_str()),
            color: match *metadata.level() {
                Level::ERROR => 0xffd0_2020,
                Level::WARN => 0xffe0_a020,
                _ => 0,
            },
            payload: values.payload,
            lifetime: AtomicU64::new(0),
        }
    }

    /// The mark of a span. A span that was created before the program was recorded gets it now, without fields.
    fn mark_of<'a, S: LookupSpan<'a>>(&self, span: &SpanRef<'a, S>) -> Arc<Mark> {
        if let Some(of_span) = span.extensions().get::<OfSpan>() {
            return of_span.mark.clone();
        }
        let values = Values::default();
        let mark = Arc::new(self.mark(span.metadata(), span.metadata().name(), &values));
        let of_span = OfSpan {
            mark: mark.clone(),
            values,
        };
        span.extensions_mut().replace(of_span);
        mark
    }
}

impl Mark {
    fn options(&self) -> Options {
        Options::new(
            [&self.name, &self.domain, &self.category],
            self.color,
            self.payload,
        )
    }
}

/// A text as the library takes it: of limited length, and without zeros.
fn text(text: &str) -> CString {
    let end = text.floor_char_boundary(MAX_NAME);
    let bytes = text.as_bytes()[..end].iter().copied();
    CString::new(bytes.filter(|byte| *byte != 0).collect::<Vec<u8>>()).unwrap_or_default()
}

/// The values of fields.
#[derive(Default)]
struct Values {
    message: String,
    payload: Option<Payload>,
    /// The field named `payload` has come.
    is_named: bool,
    /// All others, as `name=value`.
    texts: Vec<String>,
}

impl Values {
    fn number(&mut self, field: &Field, payload: Payload, value: impl Debug) {
        let is_named = field.name() == "payload";
        if is_named || self.payload.is_none() && !self.is_named {
            (self.payload, self.is_named) = (Some(payload), is_named);
        }
        self.record_debug(field, &value);
    }
}

impl Visit for Values {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.number(field, Payload::Float(value), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field, Payload::Signed(value), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.number(field, Payload::Unsigned(value), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => {
                self.message.clear();
                let _ = write!(self.message, "{value:?}");
            }
            name => {
                let mut text = format!("{name}=");
                self.texts.retain(|known| !known.starts_with(&text));
                let _ = write!(text, "{value:?}");
                self.texts.push(text);
            }
        }
    }
}

#[cfg(test)]
mod tests;
