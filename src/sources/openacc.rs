//! OpenACC, observed through its profiling interface (OpenACC 2.6, chapter 5): constructs, launches, waits and data
//! operations as [markers](gputrail_collect::marker) of the thread that makes them.
//!
//! An OpenACC runtime calls [`register`] of the library that `ACC_PROFLIB` names. GCC's runtime (libgomp) has the
//! interface, also for constructs that run on the host.

use super::markers;
use core::ffi::{c_char, c_int, c_void};
use gputrail_buffer::platform::inside::{Uncancelled, contain};
use gputrail_collect::marker::{CText, EventValue, MarkerDomain, MarkerEvent, MarkerText};
use gputrail_record::PayloadKind;
use std::ptr::NonNull;

static DOMAIN: MarkerDomain = MarkerDomain::built_in("OpenACC", 4);

/// The beginning of the runtime's description of an event's place (OpenACC: `acc_prof_info`).
#[repr(C)]
pub struct ProfInfo {
    event: c_int,
    /// The bytes of this structure that the runtime has filled.
    valid_bytes: c_int,
    version: c_int,
    device_type: c_int,
    device: c_int,
    thread: c_int,
    asynchronous: isize,
    queue: isize,
    source_file: *const c_char,
    function: *const c_char,
}

/// The beginning of the runtime's description of an event (OpenACC: `acc_event_info`).
#[repr(C)]
pub struct AccEvent {
    event: c_int,
    /// The bytes of this structure that the runtime has filled.
    valid_bytes: c_int,
    construct: c_int,
    implicit: c_int,
    tool: *mut c_void,
    /// Of data operations and launches: the name of the variable or kernel.
    name: *const c_char,
    /// Of data operations: their bytes. Of launches: the number of gangs.
    amount: usize,
}

type AccCallback = unsafe extern "C" fn(*const ProfInfo, *const AccEvent, *const c_void);

/// Registers a callback for an event.
pub type Register = unsafe extern "C" fn(c_int, AccCallback, c_int);

/// The way in which a callback is registered that is always on.
const ALWAYS: c_int = 0;
/// The event at the end of the list.
const LAST: c_int = 26;
/// The constructs by their numbers.
const CONSTRUCTS: [&str; 17] = [
    "parallel",
    "kernels",
    "loop",
    "data",
    "enter data",
    "exit data",
    "host_data",
    "atomic",
    "declare",
    "init",
    "shutdown",
    "set",
    "update",
    "routine",
    "wait",
    "runtime API",
    "serial",
];

/// What an event is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum EventMeaning {
    /// A moment.
    Moment(&'static str),
    /// The begin of a range that is named so, or after its construct.
    Begin(Option<&'static str>),
    /// The end of the innermost range.
    End,
    /// An event that is not known.
    Unknown,
}

impl EventMeaning {
    fn of(event: c_int) -> EventMeaning {
        match event {
            1 => EventMeaning::Begin(Some("init device")),
            3 => EventMeaning::Begin(Some("shut down device")),
            5 => EventMeaning::Moment("runtime shut down"),
            6 => EventMeaning::Moment("create"),
            7 => EventMeaning::Moment("delete"),
            8 => EventMeaning::Moment("allocate"),
            9 => EventMeaning::Moment("free"),
            10 => EventMeaning::Begin(Some("enter data")),
            12 => EventMeaning::Begin(Some("exit data")),
            14 => EventMeaning::Begin(Some("update")),
            16 => EventMeaning::Begin(None),
            18 => EventMeaning::Begin(Some("launch")),
            20 => EventMeaning::Begin(Some("copy to device")),
            22 => EventMeaning::Begin(Some("copy from device")),
            24 => EventMeaning::Begin(Some("wait")),
            2 | 4 | 11 | 13 | 15 | 17 | 19 | 21 | 23 | 25 => EventMeaning::End,
            _ => EventMeaning::Unknown,
        }
    }

    /// Whether its description has a name and an amount.
    fn has_amount(event: c_int) -> bool {
        matches!(event, 6..=9 | 18 | 20 | 22)
    }
}

/// Registers the callbacks with a runtime, unless nobody records markers in this process.
///
/// # Safety
///
/// `register` is the runtime's function, which takes the number of an event, a callback and the way to register it.
pub unsafe fn register(register: Register) {
    contain(|| {
        let _uncancelled = Uncancelled::begin();
        if markers::attach() {
            for event in 1..LAST {
                // SAFETY: `register` is the runtime's function (`# Safety`); `happened` is a callback of the type that it
                // takes.
                unsafe { register(event, happened, ALWAYS) };
            }
        }
    });
}

/// An event.
unsafe extern "C" fn happened(
    place: *const ProfInfo,
    description: *const AccEvent,
    _: *const c_void,
) {
    contain(|| {
        // SAFETY: the runtime's descriptions, as far as they say that they are filled.
        let (place, description) = unsafe {
            (
                FilledDescription::of(place),
                FilledDescription::of(description),
            )
        };
        if let (Some(place), Some(description)) = (place, description) {
            report(&place, &description);
        }
    });
}

/// A description that the runtime has filled to some length.
struct FilledDescription<T> {
    filled: usize,
    content: *const T,
}

/// A field of a description, if it is filled.
macro_rules! field {
    ($of:expr, $type:ident.$field:ident) => {{
        let end = core::mem::offset_of!($type, $field) + size_of_val_of(|of: &$type| &of.$field);
        // SAFETY: `content` leads to a description (`FilledDescription::of`), which the runtime has filled up to the
        // end of the field.
        ($of.filled >= end).then(|| unsafe { (*$of.content).$field })
    }};
}

/// The size of a field.
const fn size_of_val_of<T, F>(_: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

impl<T> FilledDescription<T> {
    /// # Safety
    ///
    /// `content` is null or leads to a description of the runtime's, which lasts as long as the result.
    unsafe fn of(content: *const T) -> Option<FilledDescription<T>> {
        if content.is_null() {
            return None;
        }
        // SAFETY: both descriptions begin with the event and the number of filled bytes.
        let filled = unsafe { *content.cast::<c_int>().add(1) };
        Some(FilledDescription {
            filled: usize::try_from(filled).ok()?,
            content,
        })
    }
}

fn report(place: &FilledDescription<ProfInfo>, description: &FilledDescription<AccEvent>) {
    let Some(event) = field!(place, ProfInfo.event) else {
        return;
    };
    let construct = field!(description, AccEvent.construct).unwrap_or(-1);
    let construct = usize::try_from(construct).ok();
    let construct = construct.and_then(|number| CONSTRUCTS.get(number).copied());
    let amount = field!(description, AccEvent.amount).filter(|_| EventMeaning::has_amount(event));
    let payload = match amount {
        Some(amount) => EventValue::Number(PayloadKind::UNSIGNED, amount as u64),
        None => EventValue::None,
    };
    let name = field!(description, AccEvent.name).filter(|_| EventMeaning::has_amount(event));
    let texts = [
        name,
        field!(place, ProfInfo.source_file),
        field!(place, ProfInfo.function),
    ];
    // SAFETY: null, or texts of the runtime, which last during the event.
    let [name, file, function] = texts.map(|text| unsafe { c_text(text) });
    let texts = [("name", name), ("function", function), ("file", file)];
    let texts = texts
        .into_iter()
        .filter(|(_, text)| !matches!(text, MarkerText::None));
    let fields: Vec<_> = texts
        .map(|(name, text)| (name.to_owned(), EventValue::Text(text)))
        .collect();
    let named = |name| MarkerEvent {
        name: MarkerText::Plain(name),
        category: construct.map_or(MarkerText::None, MarkerText::Plain),
        payload,
        fields: &fields,
        ..MarkerEvent::default()
    };
    match EventMeaning::of(event) {
        EventMeaning::Moment(name) => DOMAIN.mark(&named(name)),
        EventMeaning::Begin(name) => {
            let _ = DOMAIN.push(&named(name.or(construct).unwrap_or("compute construct")));
        }
        EventMeaning::End => {
            let _ = DOMAIN.pop(&MarkerEvent::default());
        }
        EventMeaning::Unknown => {}
    }
}

/// # Safety
///
/// `text` is null, or a text that ends with a zero, and lives and stays as it is for `'a`.
unsafe fn c_text<'a>(text: Option<*const c_char>) -> MarkerText<'a> {
    let text = text.and_then(|text| NonNull::new(text.cast_mut()));
    text.map_or(MarkerText::None, |text| {
        // SAFETY: a `text` that is not null ends with a zero, and lives and stays as it is for `'a` (`# Safety`).
        MarkerText::C(unsafe { CText::new(text) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begins_have_ends_and_descriptions_are_read_as_far_as_they_are_filled() {
        for event in 1..LAST {
            if let EventMeaning::Begin(_) = EventMeaning::of(event) {
                assert_eq!(EventMeaning::of(event + 1), EventMeaning::End, "{event}");
            }
        }
        assert_eq!(EventMeaning::of(LAST), EventMeaning::Unknown);
        assert_eq!(EventMeaning::of(0), EventMeaning::Unknown);
        let description = AccEvent {
            event: 6,
            valid_bytes: 40,
            construct: 3,
            implicit: 0,
            tool: core::ptr::null_mut(),
            name: c"x".as_ptr(),
            amount: 4096,
        };
        // SAFETY: a description that outlives its use.
        let mut read = unsafe { FilledDescription::of(&raw const description) }.unwrap();
        assert_eq!(field!(read, AccEvent.amount), Some(4096));
        read.filled = 39;
        assert_eq!(field!(read, AccEvent.amount), None);
        assert_eq!(field!(read, AccEvent.construct), Some(3));
        // SAFETY: null is allowed.
        assert!(unsafe { FilledDescription::<ProfInfo>::of(core::ptr::null()) }.is_none());
    }
}
