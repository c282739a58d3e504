//! Iteration over a run of records in place, for any bytes.

use super::*;
use std::borrow::Cow;

/// An iterator over the consecutive records in `bytes`, as a lane wrote them.
///
/// It yields every complete record and stops at bytes that are not one; [`Records::malformed`] then gives the
/// position. It never panics and never reads outside of `bytes`.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    /// All bytes of the run.
    length: usize,
    /// The bytes not yet yielded; empty after a malformed record.
    rest: &'a [u8],
    malformed: Option<Malformed>,
}

/// The position of a malformed record in a run.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: a record of {found} bytes, expected 8 to {expected}")]
pub struct Malformed {
    /// The offset of the record in the run.
    pub offset: usize,
    /// The size stated by its header, or the number of remaining bytes if they are too few for a header.
    pub found: usize,
    /// The largest possible size.
    pub expected: usize,
}

/// A reference to one record.
#[derive(Copy, Clone, Debug)]
pub struct RecordRef<'a> {
    bytes: &'a [u8],
    header: Header,
}

/// Room for a copy of any record with an external id of the call or work that it is about.
pub type RecordCopy = [u64; 24];

const _: () = assert!(
    size_of::<RecordCopy>() >= size_of::<KernelDispatch>()
        && size_of::<RecordCopy>() >= size_of::<MemoryCopy>()
        && size_of::<RecordCopy>() >= size_of::<MemorySet>()
        && size_of::<RecordCopy>() >= size_of::<Synchronization>()
        && size_of::<RecordCopy>() >= size_of::<Allocation>()
);

impl<'a> Records<'a> {
    /// Creates an iterator over the records in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Records<'a> {
        Records {
            length: bytes.len(),
            rest: bytes,
            malformed: None,
        }
    }

    /// The malformed record that ended the iteration, if there was one.
    pub fn malformed(&self) -> Option<Malformed> {
        self.malformed
    }

    /// Ends the iteration at the end of the bytes, or at a record that claims `found` bytes.
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
    /// A reference to a record; its header states its size.
    pub fn of<R: Record>(record: &'a R) -> RecordRef<'a> {
        let bytes = bytemuck::bytes_of(record);
        let header = bytemuck::pod_read_unaligned::<Header>(&bytes[..size_of::<Header>()]);
        let whole = header.bytes().clamp(size_of::<Header>(), bytes.len());
        RecordRef {
            bytes: &bytes[..whole],
            header,
        }
    }

    /// The record with `external` as its external id: a copy in `copy` unless it has that id already, or has none.
    pub fn with_external<'b>(self, external: ExternalId, copy: &'b mut RecordCopy) -> RecordRef<'b>
    where
        'a: 'b,
    {
        let Some(offset) = self.kind().external_offset() else {
            return self;
        };
        let (id, place) = (bytemuck::bytes_of(&external), offset..offset + 8);
        let to = bytemuck::bytes_of_mut(copy);
        if self.bytes.len() > to.len() || self.bytes.get(place.clone()).is_none_or(|has| has == id)
        {
            return self;
        }
        let to = &mut to[..self.bytes.len()];
        to.copy_from_slice(self.bytes);
        to[place].copy_from_slice(id);
        RecordRef { bytes: to, ..self }
    }

    /// The header.
    pub fn header(&self) -> Header {
        self.header
    }

    /// The kind.
    pub fn kind(&self) -> Kind {
        self.header.kind
    }

    /// All bytes including the header.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// A copy of the record as an `R`, or `None` if it is of another kind. The extra fields of a longer record (of a
    /// newer version) are ignored, the missing fields of a shorter one are 0.
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

    /// The record as an `R`, or `None` if it is of another kind: a reference if possible, otherwise a copy as by
    /// [`read`](RecordRef::read).
    #[inline]
    pub fn view<R: Record>(&self) -> Option<Cow<'a, R>> {
        match self.get() {
            Some(record) => Some(Cow::Borrowed(record)),
            None => self.read().map(Cow::Owned),
        }
    }

    /// A reference to the record as an `R`, or `None` if it is of another kind, shorter, or misaligned.
    #[inline]
    pub fn get<R: Record>(&self) -> Option<&'a R> {
        if self.header.kind != R::KIND {
            return None;
        }
        bytemuck::try_from_bytes(self.bytes.get(..size_of::<R>())?).ok()
    }

    /// The id and text of a [`StringName`], or `None` if the record is of another kind or damaged. Invalid UTF-8 is
    /// replaced.
    pub fn string(&self) -> Option<(StringId, Cow<'a, str>)> {
        let name = self.read::<StringName>()?;
        let text = self
            .bytes
            .get(size_of::<StringName>()..)?
            .get(..name.length as usize)?;
        Some((name.id, String::from_utf8_lossy(text)))
    }
}
