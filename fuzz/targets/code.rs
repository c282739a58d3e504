//! Code objects of any bytes: ELF files and their DWARF, as they come from disk, and listings.
#![no_main]

use gputrail_capture::Metadata;
use gputrail_capture::code::{CodeOffset, pieces};
use gputrail_code::symbols::Symbols;
use gputrail_record::{CodeObjectId, Records};
use libfuzzer_sys::fuzz_target;

/// A shared library with functions and lines, to be damaged.
static LIBRARY: &[u8] = include_bytes!("code.so");

fuzz_target!(|data: &[u8]| {
    let Some((how, data)) = data.split_first() else {
        return;
    };
    let code = match how % 3 {
        0 => data.to_vec(),
        1 => [b"gputrail listing\n", data].concat(),
        _ => damaged(data),
    };
    let id = CodeObjectId(1);
    let mut metadata = Metadata::default();
    for piece in pieces(id, &code, 0) {
        Records::new(&piece).for_each(|record| metadata.add(&record));
    }
    gputrail_code::reader::link(&gputrail_symbols::GPUTRAIL_SYMBOLS);
    let mut symbols = Symbols::new();
    for offset in (0..0x1400).step_by(37).chain([u64::MAX, 1 << 32]) {
        let found = symbols.resolve(&metadata, id, CodeOffset(offset));
        assert!(found.missing.is_some() || !found.frames.is_empty());
        assert!(found.frames.len() <= 64);
        let all = symbols.instructions(&metadata, id, CodeOffset(offset));
        assert!(all.len() <= 1 << 16);
    }
});

/// The library with some of its bytes changed: three bytes of input say which one, and into what.
fn damaged(data: &[u8]) -> Vec<u8> {
    let mut code = LIBRARY.to_vec();
    for change in data.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % code.len();
        code[place] = change[2];
    }
    code
}
