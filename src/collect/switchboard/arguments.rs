//! Arguments of calls: those passed to callbacks of calls in progress, and those stored in records.

use gputrail_buffer::platform::system::peek;
use gputrail_record::ArgumentType;
use std::fmt::Write;

/// An argument of a function.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ArgumentInfo {
    /// Its name.
    pub name: &'static str,
    /// Its type, as Rust writes it.
    pub type_name: &'static str,
    /// The type with which records store its value, if they do.
    pub kept: Option<ArgumentType>,
}

impl ArgumentInfo {
    /// The number of pointers to follow to its last value: 0 for a number or handle.
    pub fn dereference_depth(&self) -> usize {
        self.type_name.matches('*').count()
    }
}

/// The origin of argument values.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
enum Origin {
    /// A call in progress: all arguments as passed by the program, whose pointers are valid.
    #[default]
    InProgress,
    /// A record: the stored arguments. Their pointers may be invalid.
    Kept,
}

/// The arguments of a call, with their values.
#[derive(Copy, Clone, Debug, Default)]
pub struct CallArguments<'a> {
    infos: &'static [ArgumentInfo],
    values: &'a [u64],
    origin: Origin,
}

/// One argument with its value.
#[derive(Copy, Clone, Debug)]
pub struct CallArgument<'a> {
    /// The name and type.
    pub info: &'static ArgumentInfo,
    /// The value: numbers sign- or zero-extended, pointers and handles as addresses. A stored string is a
    /// [`StringId`](gputrail_record::StringId).
    pub value: u64,
    origin: Origin,
    call: std::marker::PhantomData<&'a ()>,
}

impl<'a> CallArguments<'a> {
    /// The arguments of a call in progress: `values` correspond to `infos`, as raw bits.
    pub fn in_progress(infos: &'static [ArgumentInfo], values: &'a [u64]) -> CallArguments<'a> {
        CallArguments {
            infos,
            values,
            origin: Origin::InProgress,
        }
    }

    /// Stored arguments: `values` are those among `infos` that records store.
    pub fn kept(infos: &'static [ArgumentInfo], values: &'a [u64]) -> CallArguments<'a> {
        CallArguments {
            infos,
            values,
            origin: Origin::Kept,
        }
    }

    /// The arguments with their values, in the order of the signature.
    pub fn iter(&self) -> impl Iterator<Item = CallArgument<'a>> + use<'a> {
        let origin = self.origin;
        let there = self
            .infos
            .iter()
            .filter(move |info| origin == Origin::InProgress || info.kept.is_some());
        there
            .zip(self.values.iter().copied())
            .map(move |(info, value)| CallArgument {
                info,
                value,
                origin,
                call: std::marker::PhantomData,
            })
    }

    /// The number of arguments.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there are no arguments.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of the argument `name`.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.iter()
            .find(|argument| argument.info.name == name)
            .map(|argument| argument.value)
    }
}

/// The most bytes of a string that [`CallArgument::text`] shows.
const MAX_TEXT_BYTES: usize = 256;

impl CallArgument<'_> {
    /// The value as text. For a call in progress, up to `depth` pointers are followed. Invalid addresses and `void`
    /// pointers are shown as addresses, arrays as their first element, stored strings as their id.
    pub fn text(&self, depth: usize) -> String {
        match (self.origin, self.info.kept) {
            (Origin::Kept, Some(ArgumentType::STRING)) => {
                format!("string {}", self.value as u32)
            }
            (Origin::Kept, Some(ArgumentType::POINTER | ArgumentType::FLAGS)) => {
                format!("{:#x}", self.value)
            }
            _ => {
                let mut text = String::new();
                show(&mut text, self.info.type_name, self.value, depth);
                text
            }
        }
    }
}

/// The type to which a pointer of type `type_name` points.
fn pointee(type_name: &str) -> Option<&str> {
    let rest = type_name.strip_prefix('*')?.trim_start();
    let rest = rest.strip_prefix("const").or(rest.strip_prefix("mut"))?;
    Some(rest.trim_start())
}

/// The size of a value of type `type_name` in bytes, and whether it is signed; `None` if it has no value.
fn layout(type_name: &str) -> Option<(usize, bool)> {
    Some(match type_name {
        "u8" => (1, false),
        "cl_int" | "i32" | "int" => (4, true),
        "cl_uint" | "u32" | "cl_bool" => (4, false),
        "isize" => (8, true),
        "usize" | "u64" | "cl_ulong" | "cl_bitfield" | "uint" => (8, false),
        _ if type_name.starts_with('*') || type_name.starts_with("cl_") => (8, false),
        _ => return None,
    })
}

fn show(text: &mut String, type_name: &str, value: u64, depth: usize) {
    let Some(pointee) = pointee(type_name) else {
        let number = match (type_name, layout(type_name)) {
            ("cl_bool" | "cl_uint" | "u32" | "usize" | "u64" | "cl_ulong" | "u8" | "uint", _) => {
                write!(text, "{value}")
            }
            (_, Some((4, true))) => write!(text, "{}", value as i32),
            (_, Some((_, true))) => write!(text, "{}", value as i64),
            _ => write!(text, "{value:#x}"),
        };
        return number.expect("a string takes everything");
    };
    write!(text, "{value:#x}").expect("a string takes everything");
    if depth == 0 || value == 0 {
        return;
    }
    if pointee == "c_char" {
        if let Some(string) = peek_string(value) {
            write!(text, " -> {string:?}").expect("a string takes everything");
        }
        return;
    }
    let Some((bytes, signed)) = layout(pointee) else {
        return;
    };
    let mut value_there = [0; 8];
    if peek(value, &mut value_there[..bytes]) {
        let there = u64::from_le_bytes(value_there);
        let there = match (bytes, signed) {
            (4, true) => i64::from(there as i32) as u64,
            _ => there,
        };
        text.push_str(" -> ");
        show(text, pointee, there, depth - 1);
    }
}

/// The string at `address`, up to the length shown.
fn peek_string(address: u64) -> Option<String> {
    const PAGE: u64 = 4096;
    let mut bytes = Vec::new();
    let mut at = address;
    while bytes.len() < MAX_TEXT_BYTES {
        // The next page may not be mapped.
        let length = (PAGE - at % PAGE).min((MAX_TEXT_BYTES - bytes.len()) as u64);
        let mut piece = vec![0; length as usize];
        if !peek(at, &mut piece) {
            break;
        }
        if let Some(end) = piece.iter().position(|byte| *byte == 0) {
            bytes.extend_from_slice(&piece[..end]);
            return Some(String::from_utf8_lossy(&bytes).into_owned());
        }
        bytes.extend_from_slice(&piece);
        at = at.checked_add(length)?;
    }
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned() + "...")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(type_name: &'static str, value: u64, depth: usize) -> String {
        let infos: &'static [ArgumentInfo] = Box::leak(Box::new([ArgumentInfo {
            name: "argument",
            type_name,
            kept: None,
        }]));
        let values = [value];
        let arguments = CallArguments::in_progress(infos, &values);
        let argument = arguments.iter().next().unwrap();
        argument.text(depth)
    }

    #[test]
    fn values_are_shown_by_their_types_and_pointers_followed_as_deep_as_asked() {
        assert_eq!(text("cl_uint", 7, 0), "7");
        assert_eq!(text("cl_int", -5i64 as u64, 3), "-5");
        assert_eq!(text("cl_kernel", 0xabc, 3), "0xabc");
        let number = 640usize;
        let at = &raw const number as u64;
        assert_eq!(text("*const usize", at, 0), format!("{at:#x}"));
        assert_eq!(text("*const usize", at, 1), format!("{at:#x} -> 640"));
        let strings = [c"-O2".as_ptr()];
        let outer = strings.as_ptr() as u64;
        let inner = strings[0] as u64;
        assert_eq!(
            text("*mut *const c_char", outer, 1),
            format!("{outer:#x} -> {inner:#x}")
        );
        assert_eq!(
            text("*mut *const c_char", outer, 2),
            format!("{outer:#x} -> {inner:#x} -> \"-O2\"")
        );
        assert_eq!(text("*const c_void", outer, 5), format!("{outer:#x}"));
    }

    #[test]
    fn addresses_that_lead_nowhere_are_shown_as_they_are() {
        for address in [1, 8, u64::MAX, u64::MAX - 7, 1 << 63] {
            for type_name in ["*const usize", "*const c_char", "*mut *const c_char"] {
                assert_eq!(text(type_name, address, 3), format!("{address:#x}"));
            }
        }
        assert_eq!(text("*const c_char", 0, 3), "0x0");
    }

    #[test]
    fn a_long_string_is_cut() {
        let long = std::ffi::CString::new("x".repeat(5000)).unwrap();
        let shown = text("*const c_char", long.as_ptr() as u64, 1);
        assert!(shown.ends_with("...\"") && shown.len() < 300, "{shown}");
    }
}
