//! Walking over a run of records, in place, whatever the bytes are.

use super::*;
use std::borrow::Cow;

/// Records that stand one after the other in `bytes`, as a lane wrote them.
///
/// The iterator yields every whole record. Bytes that cannot be a record end it, and
/// [`Records::malformed`] then says where; it never panics and never reads outside `bytes`.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    /// Bytes of all of them, those that have been yielded included.
    length: usize,
    /// What has not been yielded; nothing once it is malformed.
    rest: &'a [u8],
    malformed: Option<Malformed>,
}

/// Where a run of records stops making sense.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: a record of {found} bytes, expected 8 to {expected}")]
pub struct Malformed {
    /// Offset of the record in the run.
    pub offset: usize,
    /// Size that its header gives (or the bytes that are left, if they cannot hold a header).
    pub found: usize,
    /// Most bytes that it could have.
    pub expected: usize,
}

/// One record in place.
#[derive(Copy, Clone, Debug)]
pub struct RecordRef<'a> {
    bytes: &'a [u8],
    header: Header,
}

impl<'a> Records<'a> {
    /// The records of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Records<'a> {
        Records {
            length: bytes.len(),
            rest: bytes,
            malformed: None,
        }
    }

    /// After the iterator has ended: what stopped it before the end of the bytes, if anything did.
    pub fn malformed(&self) -> Option<Malformed> {
        self.malformed
    }

    /// Ends the iteration: at the end of the bytes, or before what claims `found` bytes.
    #[cold]
    fn stop(&mut self, found: usize) -> Option<RecordRef<'a>> {
        if !self.rest.is_empty() {
            self.malformed = Some(Malformed {
                offset: self.length - self.rest.len(),
                found,
                expected: self.rest.len(),
            });
            self.rest = &[];
        }
        None
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = RecordRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<RecordRef<'a>> {
        let Some(raw) = self.rest.first_chunk::<{ size_of::<Header>() }>() else {
            return self.stop(self.rest.len());
        };
        let header: Header = bytemuck::cast(*raw);
        let size = header.bytes();
        if size == 0 {
            return self.stop(size);
        }
        let Some((bytes, rest)) = self.rest.split_at_checked(size) else {
            return self.stop(size);
        };
        self.rest = rest;
        Some(RecordRef { bytes, header })
    }
}

impl<'a> RecordRef<'a> {
    /// A record that stands by itself: its header says how much of it there is.
    pub fn of<R: Record>(record: &'a R) -> RecordRef<'a> {
        let bytes = bytemuck::bytes_of(record);
        let header = bytemuck::pod_read_unaligned::<Header>(&bytes[..size_of::<Header>()]);
        let whole = header.bytes().clamp(size_of::<Header>(), bytes.len());
        RecordRef {
            bytes: &bytes[..whole],
            header,
        }
    }

    /// Its header.
    pub fn header(&self) -> Header {
        self.header
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.header.kind
    }

    /// All of its bytes, header included.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// A copy of the record as an `R`, if that is what it is. A longer record (of a newer version)
    /// is read as far as this version knows it; a shorter one is filled up with zeros.
    #[inline]
    pub fn read<R: Record>(&self) -> Option<R> {
        if self.header.kind != R::KIND {
            return None;
        }
        match self.bytes.get(..size_of::<R>()) {
            Some(known) => Some(bytemuck::pod_read_unaligned(known)),
            None => {
                let mut record = R::zeroed();
                bytemuck::bytes_of_mut(&mut record)[..self.bytes.len()].copy_from_slice(self.bytes);
                Some(record)
            }
        }
    }

    /// The record as an `R`, if that is what it is: in place where it can be, else a copy as [`read`](RecordRef::read)
    /// makes it.
    #[cfg(feature = "perfetto")]
    #[inline]
    pub(crate) fn view<R: Record>(&self) -> Option<Cow<'a, R>> {
        match self.get() {
            Some(record) => Some(Cow::Borrowed(record)),
            None => self.read().map(Cow::Owned),
        }
    }

    /// The record in place as an `R`: `None` if it is something else, shorter, or misaligned.
    #[inline]
    pub fn get<R: Record>(&self) -> Option<&'a R> {
        if self.header.kind != R::KIND {
            return None;
        }
        bytemuck::try_from_bytes(self.bytes.get(..size_of::<R>())?).ok()
    }

    /// The id and text of a [`StringName`], or `None` if it is something else or damaged. Invalid
    /// UTF-8 is replaced.
    pub fn string(&self) -> Option<(StringId, Cow<'a, str>)> {
        let name = self.read::<StringName>()?;
        let text = self
            .bytes
            .get(size_of::<StringName>()..)?
            .get(..name.length as usize)?;
        Some((name.id, String::from_utf8_lossy(text)))
    }
}
