//! The values of structured payloads, read from bytes of a layout.

use super::schema::{
    Enumeration, LAYOUTS, MAX_ALIGNMENT, PayloadLayout, Schema, SchemaEntry, array, flag, form,
    is_string, kind, size_of_kind, unit,
};
use super::scope;
use super::text::{message, text};
use super::time::Timestamp;
use gputrail_collect::marker::KeptText;
use gputrail_record::PayloadKind;

/// Maximum number of values of one marker.
const MAX_VALUES: usize = 64;
/// Maximum number of elements of an array that are shown.
const MAX_ELEMENTS: usize = 16;
/// Maximum number of bytes of a text.
const MAX_TEXT: usize = 1024;
/// Maximum depth of layouts in layouts.
const MAX_DEPTH: u32 = 8;
/// Maximum number of entries that are read for one marker.
const MAX_STEPS: u32 = 4096;

/// A value that was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ReadValue {
    Number(PayloadKind, u64),
    Text(String),
}

/// All that was read of a marker's payloads.
#[derive(Default)]
pub(super) struct PayloadValues {
    pub fields: Vec<(String, ReadValue)>,
    pub message: Option<String>,
    pub category: Option<u32>,
    pub color: Option<u32>,
    /// Begin, end and moment of a deferred event.
    pub times: [Option<Timestamp>; 3],
    /// The time of a sample, and the place of this value in `fields`.
    pub sampled: Option<(usize, Timestamp)>,
    /// The scope given by an entry of kind SCOPE.
    pub scope: Option<&'static KeptText>,
    /// The scope given by the semantics of the layout's entries.
    pub layout_scope: Option<&'static KeptText>,
    /// The number of entries so far.
    pub steps: u32,
    /// Whether entries of unknown size were skipped or missing, so that the place of those behind them is unknown.
    pub is_cut: bool,
    /// Whether it is unknown where the data begins exactly.
    pub is_displaced: bool,
}

/// The bytes of all payloads of a marker.
pub(super) struct PayloadBytes<'a> {
    pub domain: u32,
    pub payloads: &'a [&'a [u8]],
}

fn number(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

fn unsigned(bytes: &[u8]) -> ReadValue {
    ReadValue::Number(PayloadKind::UNSIGNED, number(bytes))
}

fn float(value: f64) -> ReadValue {
    ReadValue::Number(PayloadKind::FLOAT, value.to_bits())
}

/// The value of a predefined type in bytes of its size.
fn scalar(kind: u64, bytes: &[u8]) -> ReadValue {
    let raw = number(&bytes[..bytes.len().min(8)]);
    let signed = |bits: u32| {
        let value = (raw as i64) << (64 - bits) >> (64 - bits);
        ReadValue::Number(PayloadKind::SIGNED, value as u64)
    };
    match kind {
        1 => signed(8),
        11 => signed(8),
        3 | 13 => signed(16),
        5 | 15 => signed(32),
        7 | 9 | 17 => signed(64),
        19 | 43 | 52 => float(f64::from(f32::from_bits(raw as u32))),
        20 | 44 => float(f64::from_bits(raw)),
        42 => float(half(raw as u16)),
        50 => float(f64::from(f32::from_bits((raw as u32) << 16))),
        21 => float(extended(bytes)),
        kind::ADDRESS => ReadValue::Number(PayloadKind::POINTER, raw),
        33 | 34 | 45 => {
            let digits: String = bytes
                .iter()
                .rev()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            ReadValue::Text(format!("0x{digits}"))
        }
        _ => unsigned(&bytes[..bytes.len().min(8)]),
    }
}

/// A number of 16 bits: sign, 5 bits of exponent, 10 of fraction.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let value = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    };
    if bits >> 15 == 0 { value } else { -value }
}

/// A number of 80 bits, as `long double` is on x86.
fn extended(bytes: &[u8]) -> f64 {
    let (fraction, high) = (number(&bytes[..8]), number(&bytes[8..10]));
    let value = fraction as f64 * 2f64.powi((high & 0x7fff) as i32 - 16383 - 63);
    if high >> 15 == 0 { value } else { -value }
}

/// Text of code units of a string type, up to the first zero.
fn text_of(kind: u64, bytes: &[u8]) -> String {
    let mut text = match kind {
        77 => {
            let units = bytes.chunks_exact(2).map(|unit| number(unit) as u16);
            let units: Vec<u16> = units.take_while(|unit| *unit != 0).take(MAX_TEXT).collect();
            String::from_utf16_lossy(&units)
        }
        kind::STRING_UTF32 => {
            let units = bytes.chunks_exact(4).map(|unit| number(unit) as u32);
            let units = units.take_while(|unit| *unit != 0).take(MAX_TEXT);
            units
                .map(|unit| char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect()
        }
        _ => {
            let bytes = &bytes[..bytes.len().min(MAX_TEXT)];
            let end = bytes.iter().position(|byte| *byte == 0);
            String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
        }
    };
    while text.len() > MAX_TEXT {
        text.pop();
    }
    text
}

impl ReadValue {
    fn to_text(&self) -> String {
        match self {
            ReadValue::Text(text) => text.clone(),
            ReadValue::Number(PayloadKind::SIGNED, bits) => (*bits as i64).to_string(),
            ReadValue::Number(PayloadKind::FLOAT, bits) => f64::from_bits(*bits).to_string(),
            ReadValue::Number(PayloadKind::POINTER, bits) => format!("{bits:#x}"),
            ReadValue::Number(_, bits) => bits.to_string(),
        }
    }
}

impl PayloadValues {
    /// Reads the payload `data` of the layout or type `schema`. A value without a name is called `name`.
    pub fn read(&mut self, source: &PayloadBytes<'_>, schema: u64, data: &[u8], name: &str) {
        self.is_cut = false;
        match (schema, LAYOUTS.get(&(source.domain, schema))) {
            (kind::REFERENCED, _) => {}
            (kind::RAW, _) => {
                let bytes = data.iter().take(2 * MAX_ELEMENTS);
                let digits: String = bytes.map(|byte| format!("{byte:02x}")).collect();
                self.add(name.to_owned(), ReadValue::Text(digits));
            }
            (_, Some(PayloadLayout::Schema(schema))) => {
                self.structure(source, schema, data, "", None, 0);
            }
            (_, Some(PayloadLayout::Enumeration(names))) if data.len() >= names.size => {
                let value = names.read(number(&data[..names.size.min(8)]));
                self.add(name.to_owned(), value);
            }
            (schema, None) if is_string(schema) => {
                self.add(name.to_owned(), ReadValue::Text(text_of(schema, data)));
            }
            (schema, None) if size_of_kind(schema) > 0 => {
                let size = size_of_kind(schema);
                let value = match data.len() / size {
                    0 => return,
                    1 => scalar(schema, &data[..size]),
                    _ => elements(data.chunks_exact(size).map(|one| scalar(schema, one))),
                };
                self.add(name.to_owned(), value);
            }
            _ => {}
        }
    }

    /// Reads the event of the layout `schema` at the beginning of `data`. Returns its size: 0 if there is none, and that of
    /// `data` if it is unknown.
    pub fn read_event(&mut self, source: &PayloadBytes<'_>, schema: u64, data: &[u8]) -> usize {
        let Some(PayloadLayout::Schema(schema)) = LAYOUTS.get(&(source.domain, schema)) else {
            return 0;
        };
        let data = match schema.form {
            form::DYNAMIC => Some(data),
            _ => data.get(..schema.size),
        };
        let Some(data) = data else {
            return 0;
        };
        let scope = schema.entries.iter().map(|entry| entry.facts.scope);
        let size = self.structure(source, schema, data, "", None, 0);
        let mut of_layout = scope.filter_map(|scope| scope::path(source.domain, scope));
        self.layout_scope = of_layout.next_back();
        if self.message.is_none() && !schema.name.is_empty() {
            self.message = Some(schema.name.to_string());
        }
        match schema.form {
            form::DYNAMIC if self.is_cut => data.len(),
            _ => size.min(data.len()),
        }
    }

    /// Whether addresses are followed: only where they are at their place.
    fn follows_addresses(&self) -> bool {
        !self.is_cut && !self.is_displaced
    }

    /// Adds a value.
    pub fn add(&mut self, name: String, value: ReadValue) {
        if self.fields.len() < MAX_VALUES {
            self.fields.push((name, value));
        }
    }

    /// Reads a structure at the beginning of `data`. Returns its size.
    fn structure(
        &mut self,
        source: &PayloadBytes<'_>,
        schema: &Schema,
        data: &[u8],
        prefix: &str,
        selected: Option<u64>,
        depth: u32,
    ) -> usize {
        let is_union = matches!(schema.form, form::UNION | form::UNION_WITH_SELECTOR);
        let (mut cursor, mut numbers) = (0, Vec::new());
        let mut selected = selected;
        for (place, entry) in schema.entries.iter().enumerate() {
            if self.steps == MAX_STEPS {
                self.is_cut = true;
                break;
            }
            self.steps += 1;
            let (size, align) = entry.size_and_alignment(source.domain);
            let align = match schema.pack {
                0 => align,
                pack => align.min(pack),
            };
            let at = match entry.offset {
                0 if is_union || place == 0 => 0,
                0 => usize::next_multiple_of(cursor, align.clamp(1, MAX_ALIGNMENT)),
                offset => usize::try_from(offset).unwrap_or(usize::MAX),
            };
            let Some(bytes) = data.get(at..) else {
                self.is_cut = true;
                break;
            };
            let is_selector = entry.kind == kind::UNION_SELECTOR;
            if is_union && !is_selector && selected != Some(place as u64) {
                // Members that are not selected hold no values of their types.
                numbers.push(None);
                continue;
            }
            let (used, number) = if depth < MAX_DEPTH && self.fields.len() < MAX_VALUES {
                let around = (size, align.clamp(1, MAX_ALIGNMENT), &numbers[..]);
                self.entry(source, entry, bytes, around, prefix, depth)
            } else {
                self.is_cut |= size == 0 || entry.flags & flag::ARRAY != 0;
                (size, None)
            };
            if is_selector {
                selected = number;
            }
            numbers.push(number);
            cursor = at + used.min(bytes.len());
        }
        schema.size.max(cursor)
    }

    /// Reads an entry at the beginning of `bytes`. Returns its size, and its value if that is a number.
    fn entry(
        &mut self,
        source: &PayloadBytes<'_>,
        entry: &SchemaEntry,
        bytes: &[u8],
        (size, align, numbers): (usize, usize, &[Option<u64>]),
        prefix: &str,
        depth: u32,
    ) -> (usize, Option<u64>) {
        let name = format!("{prefix}{}", entry.name);
        let known = |place: u64| *numbers.get(usize::try_from(place).ok()?)?;
        let form = (entry.flags & flag::ARRAY) >> 4;
        let length = match form {
            array::FIXED => entry.detail,
            // A negative length is 0.
            array::LENGTH_INDEX => known(entry.detail)
                .filter(|length| *length <= i64::MAX as u64)
                .unwrap_or(0),
            _ => 0,
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if is_string(entry.kind) {
            let unit = unit(entry.kind);
            let units = |count: usize| bytes.len().min(count.saturating_mul(unit));
            let inline = match form {
                _ if entry.flags & flag::POINTER != 0 => None,
                array::NONE if entry.detail > 0 => {
                    Some(units(usize::try_from(entry.detail).unwrap_or(usize::MAX)))
                }
                array::FIXED | array::LENGTH_INDEX => Some(units(length)),
                array::ZERO_TERMINATED => {
                    let zero = bytes.chunks_exact(unit).position(|one| number(one) == 0);
                    Some(zero.map_or(bytes.len(), |zero| (zero + 1) * unit))
                }
                _ => None,
            };
            let text = match inline {
                Some(used) => text_of(entry.kind, &bytes[..used]),
                None if bytes.len() < 8 => {
                    self.is_cut = true;
                    return (bytes.len(), None);
                }
                None => {
                    let ends_with_zero = form == array::NONE;
                    let may_follow = ends_with_zero && self.follows_addresses();
                    source.pointed(entry, number(&bytes[..8]), may_follow)
                }
            };
            self.value(source.domain, entry, name, ReadValue::Text(text));
            return (inline.unwrap_or(8), None);
        }
        if entry.flags & flag::POINTER != 0 && bytes.len() >= 8 {
            let address = number(&bytes[..8]);
            self.value(
                source.domain,
                entry,
                name,
                ReadValue::Number(PayloadKind::POINTER, address),
            );
            return (8, None);
        }
        let read_one = |values: &mut PayloadValues, bytes: &[u8], name: &str| match LAYOUTS
            .get(&(source.domain, entry.kind))
        {
            Some(PayloadLayout::Schema(schema)) => {
                let selected = known(entry.detail).filter(|_| schema.form == form::UNION);
                let inner = format!("{name}.");
                let next = depth + 1;
                let used = values.structure(source, schema, bytes, &inner, selected, next);
                (used, None)
            }
            Some(PayloadLayout::Enumeration(names)) if bytes.len() >= names.size => {
                let value = number(&bytes[..names.size.min(8)]);
                values.value(source.domain, entry, name.to_owned(), names.read(value));
                (names.size, Some(value))
            }
            _ if size > 0 && bytes.len() >= size => {
                let value = match entry.kind {
                    kind::REGISTERED if values.follows_addresses() => {
                        source.registered(number(&bytes[..8]))
                    }
                    kind => scalar(kind, &bytes[..size]),
                };
                let found = match value {
                    ReadValue::Number(_, bits) => Some(bits),
                    ReadValue::Text(_) => None,
                };
                values.value(source.domain, entry, name.to_owned(), value);
                (size, found)
            }
            _ => {
                values.is_cut = true;
                (bytes.len(), None)
            }
        };
        match form {
            array::NONE => read_one(self, bytes, &name),
            _ => {
                let is_scalar = LAYOUTS.get(&(source.domain, entry.kind)).is_none() && size > 0;
                let there = bytes.len() / size.max(1);
                self.is_cut |= length > there;
                let length = match form {
                    array::ZERO_TERMINATED => bytes
                        .chunks_exact(size.max(1))
                        .position(|one| one.iter().all(|byte| *byte == 0))
                        .unwrap_or(there),
                    _ => length.min(there),
                };
                if is_scalar {
                    let all = bytes.chunks_exact(size).take(length);
                    let value = elements(all.map(|one| scalar(entry.kind, one)));
                    self.value(source.domain, entry, name, value);
                } else {
                    let mut end = 0;
                    for place in 0..length.min(MAX_ELEMENTS) {
                        // Elements of a fixed size have their padding in it.
                        let at = match size {
                            0 => usize::next_multiple_of(end, align),
                            _ => end,
                        };
                        let Some(bytes) = bytes.get(at..).filter(|_| size > 0 || !self.is_cut)
                        else {
                            self.is_cut = true;
                            break;
                        };
                        let (used, _) = read_one(self, bytes, &format!("{name}[{place}]"));
                        end = at + if size > 0 { size } else { used };
                    }
                    if size == 0 {
                        self.is_cut |= length > MAX_ELEMENTS || form == array::ZERO_TERMINATED;
                        return (end, None);
                    }
                }
                let zero = usize::from(form == array::ZERO_TERMINATED);
                (bytes.len().min((length + zero).saturating_mul(size)), None)
            }
        }
    }

    /// Takes the value of an entry for what the entry's type and flags say.
    fn value(&mut self, domain: u32, entry: &SchemaEntry, name: String, value: ReadValue) {
        let bits = match &value {
            ReadValue::Number(_, bits) => Some(*bits),
            ReadValue::Text(_) => None,
        };
        let (role, event) = (entry.flags & flag::ROLE, entry.flags & flag::EVENT);
        let place = match event {
            flag::RANGE_BEGIN => Some(0),
            flag::RANGE_END => Some(1),
            flag::MARK => Some(2),
            _ => None,
        };
        let time = |bits: u64| Timestamp {
            time_domain: entry.facts.time_domain,
            value: bits as i64,
        };
        match (role, entry.kind, bits) {
            (flag::MESSAGE, ..) => self.message = Some(value.to_text()),
            (_, kind::CATEGORY, Some(bits)) => self.category = Some(bits as u32),
            (_, kind::COLOR, Some(bits)) => self.color = Some(bits as u32),
            (_, kind::SCOPE, Some(bits)) => match scope::path(domain, bits) {
                Some(path) => self.scope = Some(path),
                None => self.add(name, value),
            },
            (_, _, Some(bits)) if place.is_some() => {
                place.map(|place| self.times[place].insert(time(bits)));
            }
            (flag::TIMESTAMP, _, Some(bits)) => {
                self.sampled = Some((self.fields.len(), time(bits)));
                self.add(name, value);
            }
            _ if entry.flags & flag::HIDE != 0 => {}
            _ => self.add(name, value),
        }
    }
}

/// The elements of an array as one text.
fn elements(all: impl ExactSizeIterator<Item = ReadValue>) -> ReadValue {
    let more = all.len().saturating_sub(MAX_ELEMENTS);
    let list: Vec<String> = all.take(MAX_ELEMENTS).map(|one| one.to_text()).collect();
    let rest = match more {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    ReadValue::Text(list.join(", ") + &rest)
}

impl Enumeration {
    /// The name of a value, or the names of its flags.
    fn read(&self, value: u64) -> ReadValue {
        if let Some((_, _, name)) = self.values.iter().find(|(of, _, _)| *of == value) {
            return ReadValue::Text(name.to_string());
        }
        let flags = self
            .values
            .iter()
            .filter(|(of, is_flag, _)| *is_flag && *of != 0 && value & of == *of);
        let names: Vec<&str> = flags.clone().map(|(_, _, name)| &**name).collect();
        let known = flags.fold(0, |all, (of, _, _)| all | of);
        if known == value && !names.is_empty() {
            ReadValue::Text(names.join(" | "))
        } else {
            ReadValue::Number(PayloadKind::UNSIGNED, value)
        }
    }
}

impl PayloadBytes<'_> {
    /// The text at an address: in another payload of the marker, or anywhere if the entry says that it may be copied and
    /// `may_follow` that it is the address of a text that ends with a zero.
    fn pointed(&self, entry: &SchemaEntry, address: u64, may_follow: bool) -> String {
        let inside = self.payloads.iter().find_map(|bytes| {
            let offset = usize::try_from(address.checked_sub(bytes.as_ptr() as u64)?).ok()?;
            bytes.get(offset..)
        });
        if let Some(bytes) = inside {
            return text_of(entry.kind, bytes);
        }
        let may_be_copied = entry.flags & flag::DEEP_COPY != 0 || entry.flags & flag::POINTER == 0;
        let is_address = address != 0 && entry.flags & flag::OFFSET == 0;
        if !(is_address && may_be_copied && may_follow) {
            return format!("{address:#x}");
        }
        let (kind, start) = match unit(entry.kind) {
            1 => (message::ASCII, address as usize as *const core::ffi::c_void),
            4 => (
                message::UNICODE,
                address as usize as *const core::ffi::c_void,
            ),
            _ => return format!("{address:#x}"),
        };
        // SAFETY: by its flags the entry is the address of a text that ends with a zero and may be copied.
        let text = unsafe { text(kind, start) };
        let text = text.read();
        text_of(kind::STRING, text.as_bytes())
    }

    /// The text of a registered string.
    fn registered(&self, handle: u64) -> ReadValue {
        let start = handle as usize as *const core::ffi::c_void;
        // SAFETY: the program says that it is the handle of a string, which lives for ever.
        let text = unsafe { text(message::REGISTERED, start) };
        ReadValue::Text(text.read().into_owned())
    }
}

#[cfg(test)]
mod tests;
