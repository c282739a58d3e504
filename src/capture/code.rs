//! The bytes of code objects, as captures carry them: pieces of at most half a MiB, from front to back.
//!
//! What is sampled looks its addresses up when the trace is made, and by then the file that a runtime compiled a
//! kernel into may be gone. So the process that saw it copies it into its capture.

use crate::record::{CodeBytes, CodeObjectId, Kind, MAX_CODE_PIECE, RecordRef, code_bytes};
use std::collections::BTreeMap;

/// Most bytes of one code object; larger ones are not kept.
pub const MAX_CODE_OBJECT: usize = 64 << 20;
/// Most bytes that are kept of all code objects of one capture.
const MAX_CODE: usize = 512 << 20;

/// Where in a code object something is: the address that its file gives it, which is where it lies in memory less
/// [`CodeObject::load_base`](crate::record::CodeObject::load_base).
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct CodeOffset(pub u64);

/// The code objects of one process, as far as their bytes were kept.
#[derive(Clone, Debug, Default)]
pub struct CodeObjects {
    objects: BTreeMap<CodeObjectId, CodeObjectBytes>,
    bytes: usize,
    /// Pieces that came out of order, or of objects beyond what is kept.
    pub left_out: u64,
}

/// The bytes of one code object.
#[derive(Clone, Debug, Default)]
pub struct CodeObjectBytes {
    bytes: Vec<u8>,
    total: u64,
    flags: u32,
}

/// Why a code object has no bytes to look into.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoCode {
    /// None came.
    #[error("its bytes were not kept: the file was gone before it was seen, or could not be read")]
    Missing,
    /// Not all of them came.
    #[error("only {have} of its {total} bytes are there: the recording ended early")]
    Truncated {
        /// Bytes that came.
        have: u64,
        /// Bytes that it has.
        total: u64,
    },
}

impl CodeObjects {
    /// Takes in one record; those of other kinds are ignored.
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

    /// The bytes of a code object, if all of them are there.
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

    /// Whether the bytes were copied from memory, where there is neither a symbol table nor lines.
    pub fn is_from_memory(&self, id: CodeObjectId) -> bool {
        let flags = self.objects.get(&id).map_or(0, |object| object.flags);
        flags & code_bytes::FROM_MEMORY != 0
    }
}

/// The records that carry `bytes`, one after the other.
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

/// The kernel whose machine code a symbol of PoCL's is: `_pocl_kernel_NAME`, `_pocl_kernel_NAME_workgroup` or
/// `_pocl_kernel_NAME_workgroup_fast`.
pub fn pocl_kernel(symbol: &str) -> Option<&str> {
    let name = symbol.strip_prefix("_pocl_kernel_")?;
    let name = name.strip_suffix("_fast").unwrap_or(name);
    Some(name.strip_suffix("_workgroup").unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Records;

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
        // Not the next one: left out, and the object stays truncated.
        read(&mut objects, &run[2]);
        assert_eq!(objects.left_out, 1);
        read(&mut objects, &run[1]);
        read(&mut objects, &run[2]);
        assert_eq!(objects.get(id), Ok(&code[..]));
        // Told again, it is kept once.
        run.iter().for_each(|piece| read(&mut objects, piece));
        assert_eq!(
            (objects.get(id), objects.bytes),
            (Ok(&code[..]), code.len())
        );
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
