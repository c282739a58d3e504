//! Libraries that programs are linked with in the place of the injected one: each has a name of its own and the functions
//! of one interface, and passes all calls on.
//!
//! A program that is linked with the injected library under another name would need it under its own (`DT_SONAME`). So each
//! name gets a small ELF file, an auxiliary filter: the loader takes its functions from the injected library, which
//! it finds in the folder above or in the process. Where that is missing, and under loaders that know no filters, such as musl's, the functions of
//! the file itself are taken, which do nothing and return 0.

use std::env::consts::ARCH;
use std::ops::Range;

/// Multiple of which segments begin: the largest page of the processors that there are.
const PAGE: usize = 0x1_0000;
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SECTION_HEADER: usize = 64;
const SYMBOL: usize = 24;

/// The processor in the file's header, and code that returns 0.
fn processor() -> Option<(u16, &'static [u8])> {
    match ARCH {
        // xor eax, eax; ret
        "x86_64" => Some((62, &[0x31, 0xc0, 0xc3])),
        // mov w0, #0; ret
        "aarch64" => Some((183, &[0x00, 0x00, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6])),
        _ => None,
    }
}

/// The file of the library `name` with `functions`, which takes them from the library `from` in the folder above; none for
/// processors on which programs cannot be recorded.
pub fn file(name: &str, functions: &[&str], from: &str) -> Option<Vec<u8>> {
    let (machine, code) = processor()?;
    let mut strings = Strings(vec![0]);
    let (soname, filtee) = (strings.add(name), strings.add(from));
    let folder = strings.add("$ORIGIN/..");
    let names: Vec<u32> = functions.iter().map(|name| strings.add(name)).collect();

    const SEGMENTS: usize = 4;
    let mut file = File(vec![0; HEADER + SEGMENTS * PROGRAM_HEADER]);
    let hash = file.section(8, |file| {
        // One bucket, in which each symbol leads to the next.
        let count = names.len() as u32 + 1;
        let next = |symbol: u32| {
            if symbol == 0 || symbol + 1 == count {
                0
            } else {
                symbol + 1
            }
        };
        let first = u32::from(count > 1);
        file.words(&[1, count, first]);
        file.words(&(0..count).map(next).collect::<Vec<u32>>());
    });
    let text = file.section(16, |file| file.0.extend_from_slice(code));
    let symbols = file.section(8, |file| {
        file.0.extend([0; SYMBOL]);
        for name in &names {
            file.words(&[*name]);
            // A global function, in the section of the code.
            file.0.extend([0x12, 0, TEXT as u8, 0]);
            file.longs(&[text.start as u64, code.len() as u64]);
        }
    });
    let text_strings = file.section(1, |file| file.0.extend_from_slice(&strings.0));
    let read_only = file.0.len();

    file.align(PAGE);
    let dynamic = file.section(16, |file| {
        for (tag, value) in [
            (14, u64::from(soname)),          // DT_SONAME
            (0x7fff_fffd, u64::from(filtee)), // DT_AUXILIARY
            (29, u64::from(folder)),          // DT_RUNPATH
            (4, hash.start as u64),           // DT_HASH
            (5, text_strings.start as u64),   // DT_STRTAB
            (6, symbols.start as u64),        // DT_SYMTAB
            (10, text_strings.len() as u64),  // DT_STRSZ
            (11, SYMBOL as u64),              // DT_SYMENT
            (0, 0),
        ] {
            file.longs(&[tag, value]);
        }
    });

    // For the linker, which reads sections.
    const NAMES: &[u8] = b"\0.hash\0.text\0.dynsym\0.dynstr\0.dynamic\0.shstrtab\0";
    let section_names = file.section(1, |file| file.0.extend_from_slice(NAMES));
    file.align(8);
    let sections = file.0.len();
    let name_of = |name: &[u8]| {
        let found = NAMES.windows(name.len()).position(|part| part == name);
        found.unwrap_or_default() as u32
    };
    let of: [SectionHeader<'_>; 6] = [
        (b".hash\0", [5, 2, SYMBOLS, 0], [8, 4], &hash),
        (b".text\0", [1, 6, 0, 0], [16, 0], &text),
        (
            b".dynsym\0",
            [11, 2, STRINGS, 1],
            [8, SYMBOL as u64],
            &symbols,
        ),
        (b".dynstr\0", [3, 2, 0, 0], [1, 0], &text_strings),
        (b".dynamic\0", [6, 3, STRINGS, 0], [16, 16], &dynamic),
        (b".shstrtab\0", [3, 0, 0, 0], [1, 0], &section_names),
    ];
    file.0.extend([0; SECTION_HEADER]);
    for (name, [kind, flags, link, info], sizes, place) in of {
        let (start, size) = (place.start as u64, place.len() as u64);
        let address = if flags == 0 { 0 } else { start };
        file.words(&[name_of(name), kind]);
        file.longs(&[flags.into(), address, start, size]);
        file.words(&[link, info]);
        file.longs(&sizes);
    }

    // Flags: 4 read, 2 write, 1 execute. Addresses are places in the file.
    let headers = [
        (1, 5, 0..read_only, PAGE),    // PT_LOAD
        (1, 6, dynamic.clone(), PAGE), // PT_LOAD
        (2, 6, dynamic.clone(), 16),   // PT_DYNAMIC
        (0x6474_e551, 6, 0..0, 16),    // PT_GNU_STACK
    ];
    let mut head = File(Vec::new());
    // 64 bits, the lower byte first, version 1.
    head.0.extend(*b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    head.halves(&[3, machine]); // ET_DYN
    head.words(&[1]);
    head.longs(&[0, HEADER as u64, sections as u64]);
    head.words(&[0]);
    let counts = [
        HEADER,
        PROGRAM_HEADER,
        SEGMENTS,
        SECTION_HEADER,
        of.len() + 1,
        of.len(),
    ];
    head.halves(&counts.map(|count| count as u16));
    for (kind, flags, place, align) in headers {
        head.words(&[kind, flags]);
        let (start, size) = (place.start as u64, place.len() as u64);
        head.longs(&[start, start, start, size, size, align as u64]);
    }
    file.0[..head.0.len()].copy_from_slice(&head.0);
    Some(file.0)
}

/// Name; type, flags, the section it refers to and a number of it; alignment and size of an entry; place.
type SectionHeader<'a> = (&'a [u8], [u32; 4], [u64; 2], &'a Range<usize>);

/// The numbers of sections.
const TEXT: u32 = 2;
const SYMBOLS: u32 = 3;
const STRINGS: u32 = 4;

/// Texts that end with a 0.
struct Strings(Vec<u8>);

impl Strings {
    /// The place of a text.
    fn add(&mut self, text: &str) -> u32 {
        let place = self.0.len() as u32;
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(0);
        place
    }
}

/// The bytes of a file.
struct File(Vec<u8>);

impl File {
    fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    /// The place of what `fill` adds.
    fn section(&mut self, align: usize, fill: impl FnOnce(&mut File)) -> Range<usize> {
        self.align(align);
        let start = self.0.len();
        fill(self);
        start..self.0.len()
    }

    fn halves(&mut self, values: &[u16]) {
        self.0
            .extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }

    fn words(&mut self, values: &[u32]) {
        self.0
            .extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }

    fn longs(&mut self, values: &[u64]) {
        self.0
            .extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn a_library_whose_filtee_is_missing_has_functions_that_return_0() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libnothing.so.1");
        let Some(bytes) = file("libnothing.so.1", &["first", "second"], "libmissing.so") else {
            return;
        };
        std::fs::write(&path, bytes).unwrap();
        // SAFETY: the library has no constructors.
        let library = unsafe { libloading::Library::new(&path) }.unwrap();
        for name in [c"first", c"second"] {
            // SAFETY: the function takes nothing and returns a number.
            let function =
                unsafe { library.get::<extern "C" fn() -> i32>(CStr::to_bytes_with_nul(name)) };
            assert_eq!(function.unwrap()(), 0);
        }
        // SAFETY: as above; no such function is called.
        assert!(unsafe { library.get::<extern "C" fn()>(b"third\0") }.is_err());
    }
}
