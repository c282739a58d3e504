//! Structures that programs pass to NVTX version 3, as its public documentation describes them.

use super::text::text;
use core::ffi::c_void;
use gputrail_collect::marker::{EventValue, MarkerEvent};
use gputrail_record::PayloadKind;

/// Types of payloads of [`EventAttributes`].
mod payload {
    pub const UINT64: i32 = 1;
    pub const INT64: i32 = 2;
    pub const DOUBLE: i32 = 3;
    pub const UINT32: i32 = 4;
    pub const INT32: i32 = 5;
    pub const FLOAT: i32 = 6;
    /// An array of [`super::PayloadData`], whose length is in `reserved`.
    pub const EXTENDED: i32 = 0xdfbd_0009_u32 as i32;
}

/// The type of a colour: alpha, red, green, blue.
const COLOR_ARGB: i32 = 1;

/// The attributes of a marker.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct EventAttributes {
    version: u16,
    size: u16,
    pub(super) category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    message: *const c_void,
}

const _: () = assert!(size_of::<EventAttributes>() == 48);

/// Data of an extended payload.
#[derive(Copy, Clone)]
#[repr(C)]
pub struct PayloadData {
    pub(super) schema: u64,
    pub(super) size: usize,
    pub(super) data: *const u8,
}

impl EventAttributes {
    /// The attributes at `given`, unless they are null or of a version without a message.
    ///
    /// # Safety
    ///
    /// `given` is null or leads to attributes of the size that they name.
    #[inline]
    pub unsafe fn read<'a>(given: *const EventAttributes) -> Option<&'a EventAttributes> {
        if given.is_null() {
            return None;
        }
        // SAFETY: the size is in the first four bytes of each version.
        let size = unsafe { (*given).size };
        // SAFETY: there are as many bytes as the structure names.
        (usize::from(size) >= size_of::<EventAttributes>()).then(|| unsafe { &*given })
    }

    /// The marker without domain, category and extended payload.
    ///
    /// # Safety
    ///
    /// The message is null or what its type says, and lives for `'a`.
    #[inline]
    pub unsafe fn event<'a>(&self) -> MarkerEvent<'a> {
        MarkerEvent {
            // SAFETY: the message is null or what its type says, and lives for `'a`.
            name: unsafe { text(self.message_type, self.message) },
            color: match self.color_type {
                COLOR_ARGB => self.color,
                _ => 0,
            },
            payload: self.payload(),
            ..MarkerEvent::default()
        }
    }

    #[inline]
    fn payload<'a>(&self) -> EventValue<'a> {
        let low = self.payload as u32;
        let (kind, bits) = match self.payload_type {
            payload::UINT64 => (PayloadKind::UNSIGNED, self.payload),
            payload::INT64 => (PayloadKind::SIGNED, self.payload),
            payload::DOUBLE => (PayloadKind::FLOAT, self.payload),
            payload::UINT32 => (PayloadKind::UNSIGNED, u64::from(low)),
            payload::INT32 => (PayloadKind::SIGNED, i64::from(low as i32) as u64),
            payload::FLOAT => (PayloadKind::FLOAT, f64::from(f32::from_bits(low)).to_bits()),
            _ => return EventValue::None,
        };
        EventValue::Number(kind, bits)
    }

    /// The extended payload, if the marker has one.
    #[inline]
    pub fn extended(&self) -> Option<(*const PayloadData, usize)> {
        (self.payload_type == payload::EXTENDED).then(|| {
            let count = usize::try_from(self.reserved).unwrap_or(0);
            (self.payload as usize as *const PayloadData, count)
        })
    }
}

/// The attributes of a resource.
#[repr(C)]
pub struct ResourceAttributes {
    version: u16,
    pub(super) size: u16,
    pub(super) identifier_type: i32,
    pub(super) identifier: u64,
    pub(super) message_type: i32,
    pub(super) message: *const c_void,
}

const _: () = assert!(size_of::<ResourceAttributes>() == 32);

/// The attributes of a lock of the program's.
#[repr(C)]
pub struct SyncAttributes {
    version: u16,
    pub(super) size: u16,
    pub(super) message_type: i32,
    pub(super) message: *const c_void,
}

const _: () = assert!(size_of::<SyncAttributes>() == 16);
