//! Identification of mapped ELF files: whether one is the code of a PoCL kernel, and where it is loaded. Reads a few
//! hundred bytes of most files; full parsing happens when the trace is made.

use gputrail_capture::code::pocl_kernel;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The largest dynamic symbol table and string table. A kernel has a handful of symbols.
const MAX_SYMBOLS: u64 = 64 << 10;
/// The most program and section headers.
const MAX_HEADERS: u16 = 128;

/// Reads a length at an offset of a file.
type ReadAt<'a> = &'a dyn Fn(u64, u64) -> Option<Vec<u8>>;

/// The ELF image of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelImage {
    /// The kernel's name.
    pub kernel: String,
    segments: Vec<ImageSegment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ImageSegment {
    offset: u64,
    address: u64,
    file_bytes: u64,
    memory_bytes: u64,
}

impl KernelImage {
    /// The image in `file`, if it is the code of a kernel.
    pub fn of(file: &File) -> Option<KernelImage> {
        KernelImage::read(&|offset, length| {
            let mut bytes = vec![0; usize::try_from(length).ok()?];
            file.read_exact_at(&mut bytes, offset).ok()?;
            Some(bytes)
        })
    }

    /// The image in `file`, given as bytes.
    pub fn of_bytes(file: &[u8]) -> Option<KernelImage> {
        KernelImage::read(&|offset, length| {
            let from = usize::try_from(offset).ok()?;
            let to = from.checked_add(usize::try_from(length).ok()?)?;
            Some(file.get(from..to)?.to_vec())
        })
    }

    fn read(read: ReadAt<'_>) -> Option<KernelImage> {
        let header: [u8; 64] = read(0, 64)?.try_into().ok()?;
        let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        // A 64-bit little-endian shared object.
        if header[..6] != *b"\x7fELF\x02\x01" || half(16) != 3 {
            return None;
        }
        let (programs, program_size) = (word(&header, 32)?, half(54));
        let (sections, section_size) = (word(&header, 40)?, half(58));
        if program_size != 56 || section_size != 64 {
            return None;
        }
        let (program_count, section_count) = (half(56), half(60));
        if program_count > MAX_HEADERS || section_count > MAX_HEADERS {
            return None;
        }
        let sections = read(sections, u64::from(section_count) * 64)?;
        let kernel = kernel(read, &sections)?;
        let programs = read(programs, u64::from(program_count) * 56)?;
        let segments = programs.chunks_exact(56).filter_map(|program| {
            const LOAD: u64 = 1;
            (word(program, 0)? & 0xffff_ffff == LOAD).then_some(ImageSegment {
                offset: word(program, 8)?,
                address: word(program, 16)?,
                file_bytes: word(program, 32)?,
                memory_bytes: word(program, 40)?,
            })
        });
        Some(KernelImage {
            kernel,
            segments: segments.collect(),
        })
    }

    /// The difference between addresses in memory and in the file, given a mapping of `offset` at `start`.
    pub fn load_base(&self, start: u64, offset: u64) -> Option<u64> {
        let page = !(rustix::param::page_size() as u64 - 1);
        let segment = self.segments.iter().find(|segment| {
            let begin = segment.offset & page;
            begin <= offset && offset < segment.offset.saturating_add(segment.file_bytes)
        })?;
        let address = segment
            .address
            .wrapping_add(offset.wrapping_sub(segment.offset));
        Some(start.wrapping_sub(address))
    }

    /// The size of the image in memory.
    pub fn load_size(&self) -> u64 {
        let ends = self
            .segments
            .iter()
            .map(|segment| segment.address.saturating_add(segment.memory_bytes));
        ends.max().unwrap_or(0)
    }
}

/// The kernel that a dynamic symbol names.
fn kernel(read: ReadAt<'_>, sections: &[u8]) -> Option<String> {
    const DYNAMIC_SYMBOLS: u64 = 11;
    let section = |number: usize| sections.get(number * 64..(number + 1) * 64);
    let dynamic = sections
        .chunks_exact(64)
        .find(|section| word(section, 0).is_some_and(|kind| kind >> 32 == DYNAMIC_SYMBOLS))?;
    let names = section((word(dynamic, 40)? & 0xffff_ffff) as usize)?;
    let bytes = |section: &[u8]| {
        let (offset, size) = (word(section, 24)?, word(section, 32)?);
        (size <= MAX_SYMBOLS).then(|| read(offset, size))?
    };
    let (symbols, names) = (bytes(dynamic)?, bytes(names)?);
    symbols.chunks_exact(24).find_map(|symbol| {
        let name = names.get((word(symbol, 0)? & 0xffff_ffff) as usize..)?;
        let end = name.iter().position(|byte| *byte == 0)?;
        // Only defined symbols: undefined ones refer to other libraries.
        let defined = u16::from_le_bytes([symbol[6], symbol[7]]) != 0;
        let name = std::str::from_utf8(&name[..end]).ok()?;
        defined.then(|| pocl_kernel(name))?.map(str::to_owned)
    })
}

pub(super) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
