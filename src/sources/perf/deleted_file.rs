//! Reconstruction of a kernel's library whose file was deleted, from its mappings in memory. The result contains the
//! loaded parts: code and dynamic symbols, but no full symbol table and no line table. The crate object needs the section table of
//! a file, which memory does not have.

use super::image::word;
use gputrail_capture::code::MAX_CODE_OBJECT;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The suffix of the path of a deleted file in `/proc/self/maps`.
pub const DELETED: &str = " (deleted)";
/// The most dynamic section entries and dynamic symbols.
const MAX_DYNAMIC_ENTRIES: u64 = 1 << 14;

/// A mapping of a file.
#[derive(Clone, Copy, Debug)]
pub struct FileMapping {
    /// Start address.
    pub start: u64,
    /// End address.
    pub end: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Whether the memory may have been modified.
    pub is_writable: bool,
}

/// Reconstructs the file from its mappings. The file may be loaded several times; `address` is the start of a
/// mapping of the copy to use.
pub fn rebuild(mut parts: Vec<FileMapping>, address: u64) -> Option<Vec<u8>> {
    parts.sort_by_key(|part| part.start);
    let begins = |part: &FileMapping| part.offset == 0;
    let first = parts
        .iter()
        .rposition(|part| begins(part) && part.start <= address)?;
    let after = parts[first + 1..].iter().position(begins);
    let after = after.map_or(parts.len(), |next| first + 1 + next);
    let parts = &parts[first..after];
    let memory = ProcessMemory(File::open("/proc/self/mem").ok()?);
    let ends = parts
        .iter()
        .map(|part| part.offset.saturating_add(part.end - part.start));
    let size = usize::try_from(ends.max()?).ok()?;
    if size > MAX_CODE_OBJECT / 2 {
        return None;
    }
    let mut file = vec![0; size];
    // Writable mappings first: read-only mappings of the same pages contain the original and overwrite them.
    for is_writable in [true, false] {
        for part in parts.iter().filter(|part| part.is_writable == is_writable) {
            let length = (part.end - part.start) as usize;
            let at = part.offset as usize;
            // Guard pages between segments are unreadable and contain nothing.
            let _ = memory.read_into(part.start, &mut file[at..at + length]);
        }
    }
    add_sections(&mut file, &memory, parts[0].start)?;
    Some(file)
}

/// The memory of this process. Reading an unmapped address returns an error.
struct ProcessMemory(File);

impl ProcessMemory {
    fn read_into(&self, address: u64, to: &mut [u8]) -> Option<()> {
        self.0.read_exact_at(to, address).ok()
    }

    fn word(&self, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        self.read_into(address, &mut word)?;
        Some(u64::from_le_bytes(word))
    }

    fn half(&self, address: u64) -> Option<u32> {
        let mut half = [0; 4];
        self.read_into(address, &mut half)?;
        Some(u32::from_le_bytes(half))
    }
}

/// A section header to be written.
struct SectionHeader {
    name: &'static str,
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    size: u64,
    /// The index of the string table section.
    link: u32,
    entry: u64,
}

/// Appends section headers to the file loaded at `start`: the original ones were not loaded.
fn add_sections(file: &mut Vec<u8>, memory: &ProcessMemory, start: u64) -> Option<()> {
    const LOAD: u32 = 1;
    const DYNAMIC: u32 = 2;
    const EXECUTABLE: u32 = 1;
    let header = file.get(..64)?;
    if header[..6] != *b"\x7fELF\x02\x01" {
        return None;
    }
    let count = u16::from_le_bytes([header[56], header[57]]).min(128);
    let table = usize::try_from(word(file, 32)?).ok()?;
    let programs = file
        .get(table..table.checked_add(usize::from(count) * 56)?)?
        .to_vec();
    let programs = || programs.chunks_exact(56);
    let of = |program: &[u8], kind| half(program, 0) == Some(kind);
    let first = programs().find(|program| of(program, LOAD) && word(program, 8) == Some(0))?;
    let load_base = start.wrapping_sub(word(first, 16)?);
    let to_offset = |address: u64| {
        programs().find_map(|program| {
            let within = address.checked_sub(word(program, 16)?)?;
            (of(program, LOAD) && within < word(program, 32)?)
                .then(|| word(program, 8)?.checked_add(within))?
        })
    };
    let dynamic = word(programs().find(|program| of(program, DYNAMIC))?, 16)?;
    let mut entries = Vec::new();
    for number in 0..MAX_DYNAMIC_ENTRIES {
        let at = load_base.wrapping_add(dynamic).wrapping_add(16 * number);
        match (memory.word(at)?, memory.word(at + 8)?) {
            (0, _) => break,
            entry => entries.push(entry),
        }
    }
    let entry = |tag| entries.iter().find(|(of, _)| *of == tag).map(|of| of.1);
    // On some architectures the dynamic linker has relocated the addresses in the dynamic section.
    let address = |tag| {
        entry(tag).map(|value| {
            if value >= load_base {
                value - load_base
            } else {
                value
            }
        })
    };
    const STRINGS: u64 = 5;
    const SYMBOLS: u64 = 6;
    const STRINGS_SIZE: u64 = 10;
    let (strings, symbols) = (address(STRINGS)?, address(SYMBOLS)?);
    let symbol_count = symbol_count(memory, load_base, &address)?;
    let code = programs()
        .find(|program| of(program, LOAD) && half(program, 4).unwrap_or(0) & EXECUTABLE != 0)?;
    let sections = [
        SectionHeader {
            name: ".text",
            kind: 1,
            flags: 6,
            address: word(code, 16)?,
            offset: word(code, 8)?,
            size: word(code, 32)?,
            link: 0,
            entry: 0,
        },
        SectionHeader {
            name: ".dynsym",
            kind: 11,
            flags: 2,
            address: symbols,
            offset: to_offset(symbols)?,
            size: symbol_count * 24,
            link: 3,
            entry: 24,
        },
        SectionHeader {
            name: ".dynstr",
            kind: 3,
            flags: 2,
            address: strings,
            offset: to_offset(strings)?,
            size: entry(STRINGS_SIZE)?,
            link: 0,
            entry: 0,
        },
    ];
    write(file, &sections);
    Some(())
}

/// The number of dynamic symbols, taken from the hash table.
fn symbol_count(
    memory: &ProcessMemory,
    load_base: u64,
    address: &dyn Fn(u64) -> Option<u64>,
) -> Option<u64> {
    const HASH: u64 = 4;
    const GNU_HASH: u64 = 0x6fff_fef5;
    if let Some(table) = address(HASH) {
        let count = memory.half(load_base.wrapping_add(table) + 4)?;
        return (u64::from(count) <= MAX_DYNAMIC_ENTRIES).then_some(count.into());
    }
    let table = load_base.wrapping_add(address(GNU_HASH)?);
    let number = |index: u64| memory.half(table + 4 * index).map(u64::from);
    let (buckets, first, bloom) = (number(0)?, number(1)?, number(2)?);
    if buckets > MAX_DYNAMIC_ENTRIES || bloom > MAX_DYNAMIC_ENTRIES {
        return None;
    }
    let bucket = |index| number(4 + 2 * bloom + index);
    let mut last = 0;
    for index in 0..buckets {
        last = last.max(bucket(index)?);
    }
    if last < first {
        return Some(first);
    }
    // An odd hash ends a chain.
    (last..MAX_DYNAMIC_ENTRIES)
        .find(|symbol| {
            number(4 + 2 * bloom + buckets + symbol - first).is_none_or(|hash| hash & 1 == 1)
        })
        .map(|symbol| symbol + 1)
}

/// Appends the table of `sections`, between the null section and the section name table.
fn write(file: &mut Vec<u8>, sections: &[SectionHeader]) {
    let mut names = vec![0];
    let mut table = vec![0; 64];
    let name_of = |names: &mut Vec<u8>, name: &str| {
        let at = names.len() as u32;
        names.extend_from_slice(name.as_bytes());
        names.push(0);
        at
    };
    let mut put = |name: u32, section: &SectionHeader| {
        table.extend_from_slice(&name.to_le_bytes());
        table.extend_from_slice(&section.kind.to_le_bytes());
        for word in [
            section.flags,
            section.address,
            section.offset,
            section.size,
            u64::from(section.link),
            8,
            section.entry,
        ] {
            table.extend_from_slice(&word.to_le_bytes());
        }
    };
    for section in sections {
        put(name_of(&mut names, section.name), section);
    }
    let name = name_of(&mut names, ".shstrtab");
    let own = SectionHeader {
        name: ".shstrtab",
        kind: 3,
        flags: 0,
        address: 0,
        offset: file.len() as u64,
        size: names.len() as u64,
        link: 0,
        entry: 0,
    };
    put(name, &own);
    file.extend_from_slice(&names);
    file.resize(file.len().next_multiple_of(8), 0);
    let (at, count) = (file.len() as u64, sections.len() as u16 + 2);
    file.extend_from_slice(&table);
    file[40..48].copy_from_slice(&at.to_le_bytes());
    for (at, half) in [(58, 64), (60, count), (62, count - 1)] {
        file[at..at + 2].copy_from_slice(&u16::to_le_bytes(half));
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
