//! The layouts of activity records. Records begin at multiples of 8 bytes.
//!
//! From one version of CUPTI to the next, a structure grows at its end alone. The tables have the newest structure of each kind, and
//! with it, for each [`Layout`], the document's name of the structure and its bytes: so many bytes of the newest one are
//! written. A structure of 0 bytes is not written in a layout: another one with its kind is.

mod code;
mod work;

pub use code::*;
pub use work::*;

use super::kind::{ActivityKind, COUNT};
use crate::layout::{LAYOUTS, Layout, layout};
use crate::result::{Answer, CUptiResult};

/// An activity record.
///
/// # Safety
///
/// A `repr(C)` structure without padding bytes, a multiple of 8 bytes long, that begins with its kind.
pub unsafe trait ActivityRecord: Copy {
    /// The kind of the records, where they have one kind alone.
    const KIND: ActivityKind;
    /// The bytes that are written in each layout, at most those of the structure.
    const BYTES: [usize; LAYOUTS];
    /// The places of the times, in words of 8 bytes.
    const TIMES: &'static [usize];

    /// A record with its kind and zeros.
    fn blank() -> Self;
}

/// Nanoseconds of gputrail's clock, which are told in CUPTI's; 0 for none.
pub type Time = u64;

/// The object of a record (`CUpti_ActivityObjectKindId`): process and thread; or device, context and stream.
pub type ObjectId = [u32; 3];

/// `CUpti_ActivityObjectKind`.
#[allow(missing_docs)]
pub mod object {
    pub const THREAD: u32 = 2;
    pub const DEVICE: u32 = 3;
    pub const CONTEXT: u32 = 4;
    pub const STREAM: u32 = 5;
}

/// The attributes of a device in [`Pcie`].
#[derive(Copy, Clone)]
#[repr(C)]
pub struct PcieAttributes {
    pub uuid_dev: [u8; 16],
    pub peer_dev: [i32; 32],
}

/// Whether a field's type is [`Time`].
const fn is_time(name: &str) -> bool {
    matches!(name.as_bytes(), b"Time")
}

/// The number of the fields that are times.
const fn times_among(fields: &[(usize, &str)]) -> usize {
    let (mut count, mut at) = (0, 0);
    while at < fields.len() {
        if is_time(fields[at].1) {
            count += 1;
        }
        at += 1;
    }
    count
}

/// The words at which times lie.
const fn times_of<const COUNT: usize>(fields: &[(usize, &str)]) -> [usize; COUNT] {
    let mut times = [0; COUNT];
    let (mut count, mut at) = (0, 0);
    while at < fields.len() {
        if is_time(fields[at].1) {
            times[count] = fields[at].0 / 8;
            count += 1;
        }
        at += 1;
    }
    times
}

/// A table of structures: `name = kind [structure of the document, its bytes; in each layout, or one for all] { fields }`.
macro_rules! records {
    ($($name:ident = $kind:ident [$($of_c:ident $bytes:literal),*] { $($field:ident: $type:ty,)* })*) => {
        $(
            #[doc = concat!("A record of [`", stringify!($kind), "`](ActivityKind::", stringify!($kind), ").")]
            #[allow(missing_docs)]
            #[derive(Copy, Clone)]
            #[repr(C, align(8))]
            pub struct $name { $(pub $field: $type,)* }

            const _: () = {
                const FIELDS: &[(usize, &str)] = &[$((core::mem::offset_of!($name, $field), stringify!($type))),*];

                // SAFETY: the fields fill the structure, as checked below.
                unsafe impl super::ActivityRecord for $name {
                    const KIND: ActivityKind = ActivityKind::$kind;
                    const BYTES: [usize; crate::layout::LAYOUTS] = super::in_each_layout(&[$($bytes),*]);
                    const TIMES: &'static [usize] = &super::times_of::<{ super::times_among(FIELDS) }>(FIELDS);

                    fn blank() -> Self {
                        // SAFETY: zeros are a value of each field: numbers and pointers.
                        let mut blank: Self = unsafe { core::mem::zeroed() };
                        blank.kind = <Self as super::ActivityRecord>::KIND.0;
                        blank
                    }
                }

                assert!(size_of::<$name>() == 0 $(+ size_of::<$type>())*);
                assert!(super::all_fit(&[$($bytes),*], size_of::<$name>()));
            };
        )*

        /// The kind of each structure, and its bytes in each layout.
        pub(super) const BYTES: &[(ActivityKind, [usize; crate::layout::LAYOUTS])] =
            &[$((ActivityKind::$kind, <$name as super::ActivityRecord>::BYTES)),*];

        /// Names of the document in each layout or in all, field, offset and bytes of every field, for the test of layouts.
        #[cfg(test)]
        pub(super) fn fields() -> Vec<super::Field> {
            let mut all = Vec::new();
            $(for (structure, layouts, bytes) in super::in_layouts(&[$((stringify!($of_c), $bytes)),*]) {
                $(all.push(super::Field {
                    structure,
                    layouts: layouts.clone(),
                    structure_bytes: bytes,
                    name: stringify!($field),
                    offset: core::mem::offset_of!($name, $field),
                    bytes: size_of::<$type>(),
                });)*
            })*
            all
        }
    };
}
use records;

/// The bytes in each layout, of a structure that has some for each, or one number for all.
const fn in_each_layout(bytes: &[usize]) -> [usize; LAYOUTS] {
    let mut each = [bytes[0]; LAYOUTS];
    if bytes.len() == 1 {
        return each;
    }
    assert!(bytes.len() == LAYOUTS);
    let mut at = 0;
    while at < LAYOUTS {
        each[at] = bytes[at];
        at += 1;
    }
    each
}

/// Whether the bytes are whole words within a structure.
const fn all_fit(bytes: &[usize], structure: usize) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] > structure || !bytes[at].is_multiple_of(8) {
            return false;
        }
        at += 1;
    }
    true
}

/// The bytes of a record of each kind, by layout; 0 for none.
static OF_KINDS: [[usize; LAYOUTS]; COUNT as usize] = {
    let mut all = [[0; LAYOUTS]; COUNT as usize];
    let tables = [work::BYTES, code::BYTES];
    let mut table = 0;
    while table < tables.len() {
        let mut at = 0;
        while at < tables[table].len() {
            let (kind, bytes) = tables[table][at];
            let mut layout = 0;
            while layout < LAYOUTS {
                if bytes[layout] != 0 {
                    all[kind.0 as usize][layout] = bytes[layout];
                }
                layout += 1;
            }
            at += 1;
        }
        table += 1;
    }
    all[ActivityKind::CONCURRENT_KERNEL.0 as usize] = all[ActivityKind::KERNEL.0 as usize];
    all[ActivityKind::RUNTIME.0 as usize] = all[ActivityKind::DRIVER.0 as usize];
    all
};

/// The bytes of a record of a kind, if the kind has records here.
pub fn size_of_kind(kind: ActivityKind, layout: Layout) -> Option<usize> {
    let bytes = OF_KINDS.get(kind.0 as usize)?[layout as usize];
    (bytes != 0).then_some(bytes)
}

/// The bytes of the structures of CUDA 13 of kinds that have no records here.
const WITHOUT_RECORDS: [(ActivityKind, usize); 9] = [
    (ActivityKind::MEMORY_POOL, 80),
    (ActivityKind::GRAPH_TRACE, 56),
    (ActivityKind::DEVICE_GRAPH_TRACE, 56),
    (ActivityKind::MEM_DECOMPRESS, 64),
    (ActivityKind::CONFIDENTIAL_COMPUTE_ROTATION, 32),
    (ActivityKind::GRAPH_HOST_NODE, 56),
    (ActivityKind::COMPUTE_ENGINE_CTX_SWITCH, 24),
    (ActivityKind::HOST_LAUNCH, 48),
    (ActivityKind::GREEN_CONTEXT, 304),
];

/// The bytes of the structure of a kind in a version of CUPTI: the library's (0), or one that is known here.
///
/// # Errors
///
/// `INVALID_KIND`; `NOT_SUPPORTED` for another version.
pub fn size_in_version(kind: ActivityKind, version: u32) -> Answer<usize> {
    let own = layout();
    let of = match version {
        0 => own,
        _ if version == own.version() => own,
        _ if version == Layout::Cuda13.version() => Layout::Cuda13,
        _ => return Err(CUptiResult::NOT_SUPPORTED),
    };
    let mut others = WITHOUT_RECORDS.into_iter();
    let other = others.find(|(one, _)| *one == kind && of == Layout::Cuda13);
    let bytes = size_of_kind(kind, of).or(other.map(|(_, bytes)| bytes));
    bytes.ok_or(CUptiResult::INVALID_KIND)
}

/// A field of a structure of the document.
#[cfg(test)]
pub struct Field {
    pub structure: &'static str,
    /// The layouts that have the structure.
    pub layouts: Vec<Layout>,
    pub structure_bytes: usize,
    pub name: &'static str,
    pub offset: usize,
    pub bytes: usize,
}

/// The structures that are written, each with its layouts.
#[cfg(test)]
fn in_layouts(structures: &[(&'static str, usize)]) -> Vec<(&'static str, Vec<Layout>, usize)> {
    let all = Layout::ALL.into_iter().zip(structures.iter().cycle());
    let mut found: Vec<(&'static str, Vec<Layout>, usize)> = Vec::new();
    for (layout, (name, bytes)) in all.filter(|(_, (_, bytes))| *bytes != 0) {
        match found.iter_mut().find(|one| one.0 == *name) {
            Some(one) => one.1.push(layout),
            None => found.push((*name, vec![layout], *bytes)),
        }
    }
    found
}

/// Every field that is written, of every structure.
#[cfg(test)]
pub fn fields() -> Vec<Field> {
    let mut all = work::fields();
    all.extend(code::fields());
    all.retain(|field| field.offset < field.structure_bytes);
    all
}
