//! The JSON of rocprofv3 as a stream of elements.
//!
//! A file is one object whose `rocprofiler-sdk-tool` has an object for each process. The fields of that object are lists of
//! elements, or, for `strings`, `buffer_records` and `callback_records`, objects of such lists. One element is in memory at a
//! time.

use std::fmt::Write as _;
use std::io::BufRead;

use serde_core::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use crate::import::json_window::{JsonWindow, error_offset, is_cut, reason};
use gputrail_record::count;

/// Bytes of the longest element.
const MAX_ELEMENT: usize = 1 << 24;
/// Bytes of the longest element with the whole path of each value.
const MAX_TEXT: usize = 4 * MAX_ELEMENT;
/// Fields of a process whose fields are lists.
const NESTED: [&str; 3] = ["strings", "buffer_records", "callback_records"];
/// Fields that every record has one of. Behind damage, an object without them is part of a record.
const OF_RECORDS: [&str; 6] = [
    "start_timestamp",
    "timestamp",
    "record",
    "dispatch_data",
    "key",
    "kernel_id",
];

/// The name of the outermost field.
pub(super) const ROOT: &str = "rocprofiler-sdk-tool";

/// An element: the paths of its values, and these as texts.
#[derive(Debug, Default)]
pub(super) struct Element {
    text: String,
    /// The ends in `text` of each path and its value.
    ends: Vec<(usize, usize)>,
}

impl Element {
    /// Its paths, with `.` between their parts, and values. `null` has no value.
    pub fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut begin = 0;
        self.ends.iter().map(move |(path, value)| {
            let pair = (&self.text[begin..*path], &self.text[*path..*value]);
            begin = *value;
            pair
        })
    }

    /// The value at a path.
    pub fn get(&self, path: &str) -> &str {
        let found = self.values().find(|(own, _)| *own == path);
        found.map_or("", |(_, value)| value)
    }

    /// The number at a path.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.get(path).parse().ok()
    }
}

/// Takes the values of an element apart.
struct Flatten<'e> {
    element: &'e mut Element,
    path: &'e mut String,
}

impl Flatten<'_> {
    /// Adds a value. Each one has its whole path, which may be long: an element is refused when all of them are too long.
    fn value<E: Error>(&mut self, value: std::fmt::Arguments<'_>) -> Result<(), E> {
        if self.element.text.len() + self.path.len() > MAX_TEXT {
            return Err(E::custom("an element whose names are too long"));
        }
        self.element.text.push_str(self.path);
        let path = self.element.text.len();
        let _ = self.element.text.write_fmt(value);
        self.element.ends.push((path, self.element.text.len()));
        Ok(())
    }

    /// The visitor of the value of a field.
    fn field(&mut self, name: impl std::fmt::Display) -> Flatten<'_> {
        let separator = if self.path.is_empty() { "" } else { "." };
        let _ = write!(self.path, "{separator}{name}");
        Flatten {
            element: self.element,
            path: self.path,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Flatten<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Flatten<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let length = self.path.len();
        while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            map.next_value_seed(self.field(name))?;
            self.path.truncate(length);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let length = self.path.len();
        let mut index = 0;
        while list.next_element_seed(self.field(index))?.is_some() {
            self.path.truncate(length);
            index += 1;
        }
        self.path.truncate(length);
        Ok(())
    }

    fn visit_bool<E: Error>(mut self, value: bool) -> Result<(), E> {
        self.value(format_args!("{}", u8::from(value)))
    }

    fn visit_i64<E: Error>(mut self, value: i64) -> Result<(), E> {
        self.value(format_args!("{value}"))
    }

    fn visit_u64<E: Error>(mut self, value: u64) -> Result<(), E> {
        self.value(format_args!("{value}"))
    }

    fn visit_f64<E: Error>(mut self, value: f64) -> Result<(), E> {
        self.value(format_args!("{value}"))
    }

    fn visit_str<E: Error>(mut self, value: &str) -> Result<(), E> {
        self.value(format_args!("{value}"))
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

/// The place of an element: its process, and the names of the lists that it is in.
#[derive(Copy, Clone, Debug)]
pub(super) struct ElementPath<'p> {
    pub process: usize,
    pub field: &'p str,
    /// The list in a field that has several, or nothing.
    pub list: &'p str,
    pub offset: u64,
}

/// Takes the elements of a file.
pub(super) trait Take {
    /// Whether the elements of a field are wanted.
    fn wants(&self, field: &str) -> bool;
    /// An element.
    fn element(&mut self, place: ElementPath<'_>, element: &Element);
    /// Damage at `offset`.
    fn damage(&mut self, offset: u64, found: String, expected: &'static str);
}

/// Reads a whole file.
pub(super) fn scan(file: impl BufRead, take: &mut impl Take) {
    let mut scanner = JsonScanner {
        window: JsonWindow::new(file),
        element: Element::default(),
        path: String::new(),
        resumed: false,
    };
    // The end of what can be read has been reported.
    let _ = scanner.file(take).and_then(|()| scanner.end(take));
}

/// No more can be read; the reason has been reported.
struct Unreadable;

struct JsonScanner<R> {
    window: JsonWindow<R>,
    element: Element,
    path: String,
    /// Whether the last value ends in damage, behind which no comma is expected.
    resumed: bool,
}

impl<R: BufRead> JsonScanner<R> {
    fn position(&self) -> u64 {
        self.window.position()
    }

    /// Reports an error that ended the file early.
    fn report_error(&mut self, take: &mut impl Take) {
        if let Some((end, error)) = self.window.error.take() {
            take.damage(end, format!("an error: {error}"), "more of the file");
        }
    }

    /// The next byte that is not white space.
    fn peek(&mut self, take: &mut impl Take, expected: &'static str) -> Result<u8, Unreadable> {
        let next = self.window.peek();
        self.report_error(take);
        next.ok_or_else(|| {
            take.damage(self.position(), "the end of the file".into(), expected);
            Unreadable
        })
    }

    /// Reports the byte at `at`, behind which nothing can be read.
    fn unexpected(&self, take: &mut impl Take, expected: &'static str) -> Unreadable {
        let found = format!(
            "{}; the rest of the file is left out",
            self.window.describe()
        );
        take.damage(self.position(), found, expected);
        Unreadable
    }

    fn file(&mut self, take: &mut impl Take) -> Result<(), Unreadable> {
        self.window.begin();
        self.fields(take, |scanner, take, name| {
            let first = scanner.peek(take, "a value")?;
            match (name, first) {
                (ROOT, b'{') => scanner.process(take, 0),
                (ROOT, b'[') => {
                    let mut process = 0;
                    scanner.list(take, |scanner, take| {
                        process += 1;
                        scanner.process(take, process - 1)
                    })
                }
                _ => scanner.skip(take),
            }
        })
    }

    /// Checks that the file ends behind the object.
    fn end(&mut self, take: &mut impl Take) -> Result<(), Unreadable> {
        let next = self.window.peek();
        self.report_error(take);
        match next {
            None => Ok(()),
            Some(_) => Err(self.unexpected(take, "the end of the file")),
        }
    }

    fn process(&mut self, take: &mut impl Take, process: usize) -> Result<(), Unreadable> {
        self.fields(take, |scanner, take, field| {
            let first = scanner.peek(take, "a value")?;
            if !NESTED.contains(&field) || first != b'{' {
                return scanner.elements(take, (process, field, ""));
            }
            scanner.fields(take, |scanner, take, list| {
                scanner.elements(take, (process, field, list))
            })
        })
    }

    /// The elements of a list; a value that is no list is an element.
    fn elements(
        &mut self,
        take: &mut impl Take,
        (process, field, list): (usize, &str, &str),
    ) -> Result<(), Unreadable> {
        let wanted = take.wants(field);
        let each = |scanner: &mut Self, take: &mut _| {
            let offset = scanner.position();
            let parsed = if wanted {
                scanner.parse::<true>(take)
            } else {
                scanner.parse::<false>(take)
            };
            if let Err((error, found)) = parsed {
                return scanner.resume(take, error, found);
            }
            if wanted {
                let place = ElementPath {
                    process,
                    field,
                    list,
                    offset,
                };
                Take::element(take, place, &scanner.element);
            }
            Ok(())
        };
        match self.peek(take, "a value")? {
            b'[' => self.list(take, each),
            _ => each(self, take),
        }
    }

    /// The fields of the object at `at`.
    fn fields<T: Take>(
        &mut self,
        take: &mut T,
        mut each: impl FnMut(&mut Self, &mut T, &str) -> Result<(), Unreadable>,
    ) -> Result<(), Unreadable> {
        if self.peek(take, "an object")? != b'{' {
            return Err(self.unexpected(take, "an object"));
        }
        self.window.at += 1;
        let mut is_next = true;
        loop {
            match self.peek(take, "a field, or `}`")? {
                b'}' => {
                    self.window.at += 1;
                    return Ok(());
                }
                b',' => {
                    self.window.at += 1;
                    is_next = true;
                }
                b'"' => {
                    self.expect_comma(take, is_next);
                    is_next = false;
                    if self.parse::<true>(take).is_err() {
                        return Err(self.unexpected(take, "the name of a field"));
                    }
                    let name = self.element.get("").to_owned();
                    if self.peek(take, "`:`")? != b':' {
                        return Err(self.unexpected(take, "`:`"));
                    }
                    self.window.at += 1;
                    each(self, take, &name)?;
                }
                _ => return Err(self.unexpected(take, "a field, or `}`")),
            }
        }
    }

    /// The elements of the array at `at`.
    fn list<T: Take>(
        &mut self,
        take: &mut T,
        mut each: impl FnMut(&mut Self, &mut T) -> Result<(), Unreadable>,
    ) -> Result<(), Unreadable> {
        self.window.at += 1;
        let mut is_next = true;
        loop {
            match self.peek(take, "an element, or `]`")? {
                b']' => {
                    self.window.at += 1;
                    return Ok(());
                }
                b',' => {
                    self.window.at += 1;
                    is_next = true;
                }
                // Behind damage in the last element of the list.
                b'}' => return Ok(()),
                _ => {
                    self.expect_comma(take, is_next);
                    is_next = false;
                    each(self, take)?;
                }
            }
        }
    }

    /// Reports that a value at `at` follows another one without a comma, unless `is_next`.
    fn expect_comma(&mut self, take: &mut impl Take, is_next: bool) {
        let is_behind_damage = std::mem::take(&mut self.resumed);
        if !is_next && !is_behind_damage {
            take.damage(self.position(), self.window.describe(), "a comma");
        }
    }

    /// Skips the value at `at`.
    fn skip(&mut self, take: &mut impl Take) -> Result<(), Unreadable> {
        match self.parse::<false>(take) {
            Ok(()) => Ok(()),
            Err((error, found)) => self.resume(take, error, found),
        }
    }

    /// Parses the value at `at` and goes behind it. `KEEP`: its values are put into `element`.
    fn parse<const KEEP: bool>(&mut self, take: &mut impl Take) -> Result<(), (usize, String)> {
        loop {
            self.element.text.clear();
            self.element.ends.clear();
            self.path.clear();
            let rest = self.window.rest();
            let mut from = serde_json::Deserializer::from_slice(rest);
            let result = if KEEP {
                Flatten {
                    element: &mut self.element,
                    path: &mut self.path,
                }
                .deserialize(&mut from)
            } else {
                IgnoredAny::deserialize(&mut from).map(|_| ())
            };
            let length = from.into_iter::<IgnoredAny>().byte_offset();
            let is_all = self.window.ended || rest.len() >= MAX_ELEMENT;
            match result {
                Ok(()) => {
                    // A number may go on behind the window.
                    if is_all || length < rest.len() {
                        self.window.at += length;
                        return Ok(());
                    }
                }
                Err(error) if is_all || !is_cut(rest, &error) => {
                    return Err((error_offset(rest, &error), reason(&error)));
                }
                Err(_) => {}
            }
            self.window.fill();
            self.report_error(take);
        }
    }

    /// Reports damage `error` bytes behind `at`, and goes to the next record.
    fn resume(
        &mut self,
        take: &mut impl Take,
        error: usize,
        found: String,
    ) -> Result<(), Unreadable> {
        let begin = self.position();
        let found_next = loop {
            let has_more = self.window.skip_to_brace();
            self.report_error(take);
            if !has_more || self.window.has_parsed_too_much() {
                break false;
            }
            if self.is_record(take) {
                break true;
            }
        };
        let end = self.position();
        let found = if found_next {
            format!("{found}; {} skipped", count(end - begin, "byte"))
        } else {
            format!("{found}; the rest of the file is left out")
        };
        take.damage(begin + error as u64, found, "a value in JSON");
        self.resumed = true;
        if found_next { Ok(()) } else { Err(Unreadable) }
    }

    /// Whether a record stands at `at`.
    fn is_record(&mut self, take: &mut impl Take) -> bool {
        let begin = self.position();
        let result = self.parse::<true>(take);
        let is_record = result.is_ok()
            && self.element.values().any(|(path, _)| {
                let first = path.split('.').next().unwrap_or("");
                OF_RECORDS.contains(&first)
            });
        let parsed = match result {
            Ok(()) => self.position() - begin,
            Err((error, _)) => error as u64,
        };
        self.window.at = (begin - self.window.offset) as usize;
        if !is_record {
            self.window.parsed += parsed;
        }
        is_record
    }
}
