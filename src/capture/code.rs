//! The bytes of code objects in captures: pieces of at most half a MiB, from front to back.
//!
//! Sampled addresses are resolved when the trace is made. The file into which a runtime compiled a kernel may be
//! deleted by then, so the recorded process copies it into its capture.

use gputrail_record::{CodeBytes, CodeObjectId, Kind, MAX_CODE_PIECE, RecordRef, code_bytes};
use std::collections::BTreeMap;

/// The largest code object that is stored, in bytes.
pub const MAX_CODE_OBJECT: usize = 64 << 20;
/// The most bytes that are stored for all code objects of one capture.
const MAX_CODE: usize = 512 << 20;

/// An offset in a code object: the address that the object's file assigns, which is the address in memory minus
/// [`CodeObject::load_base`](gputrail_record::CodeObject::load_base).
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct CodeOffset(pub u64);

/// The code objects of one process whose bytes were stored.
#[derive(Clone, Debug, Default)]
pub struct CodeObjects {
    objects: BTreeMap<CodeObjectId, CodeObjectBytes>,
    bytes: usize,
    /// Pieces that were out of order or exceeded the limits.
    pub left_out: u64,
}

/// The bytes of one code object.
#[derive(Clone, Debug, Default)]
pub struct CodeObjectBytes {
    bytes: Vec<u8>,
    total: u64,
    flags: u32,
}

/// Why the bytes of a code object are unavailable.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoCode {
    /// The capture has none.
    #[error(
        "its bytes were not recorded: the file was deleted before it was noticed, or could not be read"
    )]
    Missing,
    /// The capture has only a part of them.
    #[error("only {have} of its {total} bytes are present: the recording ended early")]
    Truncated {
        /// Bytes in the capture.
        have: u64,
        /// Size of the code object.
        total: u64,
    },
}

impl CodeObjects {
    /// Adds a [`Kind::CODE_BYTES`] record; ignores other kinds.
    pub fn add(&mut self, record: &RecordRef<'_>) {
        if record.kind() != Kind::CODE_BYTES {
            return;
        }
        if self.take(record).is_none() {
            self.left_out += 1;
        }
    }

    fn take(&mut self, record: &RecordRef<'_>) -> Option<()> {
        let piece = record.read::<CodeBytes>()?;
        let bytes = record.bytes().get(size_of::<CodeBytes>()..)?;
        let bytes = bytes.get(..piece.length as usize)?;
        if piece.total > MAX_CODE_OBJECT as u64 {
            return None;
        }
        let object = self.objects.entry(piece.id).or_default();
        if piece.offset == 0 {
            self.bytes -= object.bytes.len();
            *object = CodeObjectBytes {
                bytes: Vec::new(),
                total: piece.total,
                flags: piece.flags,
            };
        }
        let end = piece.offset.checked_add(bytes.len() as u64)?;
        let fits = end <= object.total && self.bytes + bytes.len() <= MAX_CODE;
        if piece.offset != object.bytes.len() as u64 || !fits {
            return None;
        }
        object.bytes.extend_from_slice(bytes);
        self.bytes += bytes.len();
        Some(())
    }

    /// The bytes of a code object, if they are complete.
    pub fn get(&self, id: CodeObjectId) -> Result<&[u8], NoCode> {
        let object = self.objects.get(&id).ok_or(NoCode::Missing)?;
        match object.bytes.len() as u64 {
            have if have == object.total => Ok(&object.bytes),
            have => Err(NoCode::Truncated {
                have,
                total: object.total,
            }),
        }
    }

    /// Whether the bytes were copied from memory and so contain neither symbol table nor line table.
    pub fn is_from_memory(&self, id: CodeObjectId) -> bool {
        let flags = self.objects.get(&id).map_or(0, |object| object.flags);
        flags & code_bytes::FROM_MEMORY != 0
    }
}

/// Splits `bytes` into records, in order.
pub fn pieces(id: CodeObjectId, bytes: &[u8], flags: u32) -> impl Iterator<Item = Vec<u8>> {
    let total = bytes.len() as u64;
    let mut offset = 0;
    bytes.chunks(MAX_CODE_PIECE).map(move |chunk| {
        let mut piece = CodeBytes::blank();
        let size = (size_of::<CodeBytes>() + chunk.len()).next_multiple_of(8);
        piece.header.words = (size / 8) as u16;
        (piece.id, piece.length, piece.flags) = (id, chunk.len() as u32, flags);
        (piece.offset, piece.total) = (offset, total);
        offset += chunk.len() as u64;
        let mut record = bytemuck::bytes_of(&piece).to_vec();
        record.extend_from_slice(chunk);
        record.resize(size, 0);
        record
    })
}

/// The kernel of a PoCL symbol: `_pocl_kernel_NAME`, `_pocl_kernel_NAME_workgroup` or
/// `_pocl_kernel_NAME_workgroup_fast`.
pub fn pocl_kernel(symbol: &str) -> Option<&str> {
    let name = symbol.strip_prefix("_pocl_kernel_")?;
    let name = name.strip_suffix("_fast").unwrap_or(name);
    Some(name.strip_suffix("_workgroup").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_record::Records;

    fn read(objects: &mut CodeObjects, run: &[u8]) {
        Records::new(run).for_each(|record| objects.add(&record));
    }

    #[test]
    fn a_code_object_survives_its_way_in_pieces() {
        let id = CodeObjectId(3);
        let code: Vec<u8> = (0..1_200_001u32).map(|i| (i % 251) as u8).collect();
        let run: Vec<Vec<u8>> = pieces(id, &code, 0).collect();
        assert_eq!(run.len(), 3);
        let mut objects = CodeObjects::default();
        assert_eq!(objects.get(id), Err(NoCode::Missing));
        read(&mut objects, &run[0]);
        assert!(matches!(objects.get(id), Err(NoCode::Truncated { .. })));
        // Out of order: it is left out, and the object stays truncated.
        read(&mut objects, &run[2]);
        assert_eq!(objects.left_out, 1);
        read(&mut objects, &run[1]);
        read(&mut objects, &run[2]);
        assert_eq!(objects.get(id), Ok(&code[..]));
        // A repeated object replaces the first copy.
        run.iter().for_each(|piece| read(&mut objects, piece));
        assert_eq!(
            (objects.get(id), objects.bytes),
            (Ok(&code[..]), code.len())
        );
    }

    #[test]
    fn code_that_was_copied_from_memory_is_known_as_such() {
        let mut objects = CodeObjects::default();
        for (id, flags) in [(1, 0), (2, code_bytes::FROM_MEMORY)] {
            let id = CodeObjectId(id);
            pieces(id, &[7; 16], flags).for_each(|piece| read(&mut objects, &piece));
            assert_eq!(objects.is_from_memory(id), flags != 0);
        }
        assert!(!objects.is_from_memory(CodeObjectId(3)));
    }

    #[test]
    fn pieces_that_promise_too_much_are_left_out() {
        let mut objects = CodeObjects::default();
        let mut piece = pieces(CodeObjectId(1), &[7; 16], 0).next().unwrap();
        // The total, then the length.
        piece[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
        read(&mut objects, &piece);
        piece[24..32].copy_from_slice(&16u64.to_le_bytes());
        piece[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        read(&mut objects, &piece);
        assert_eq!(objects.left_out, 2);
        assert!(objects.get(CodeObjectId(1)).is_err());
    }

    #[test]
    fn kernels_are_found_in_symbols_of_pocl() {
        assert_eq!(pocl_kernel("_pocl_kernel_hot_workgroup"), Some("hot"));
        assert_eq!(pocl_kernel("_pocl_kernel_hot_workgroup_fast"), Some("hot"));
        assert_eq!(pocl_kernel("_pocl_kernel_hot"), Some("hot"));
        assert_eq!(pocl_kernel("hot"), None);
    }
}
