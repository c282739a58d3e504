//! Tests with listings. ELF files made by a compiler are tested in `tests/symbols.rs`.

use super::*;
use gputrail_capture::code::pieces;
use gputrail_record::{CodeObject, Module, Records};
use proptest::prelude::*;

const ID: CodeObjectId = CodeObjectId(1);

/// Links the reader, whose crate sees this one as it is without its tests.
fn link_the_reader() {
    let functions = std::ptr::from_ref(&gputrail_symbols::GPUTRAIL_SYMBOLS);
    // SAFETY: both types are the same structure of C, whose version is looked at.
    let functions = unsafe { &*functions.cast::<crate::reader::ReaderFunctions>() };
    assert_eq!(functions.version, crate::reader::VERSION);
    crate::reader::link(functions);
}

fn metadata(code: &[u8]) -> Metadata {
    link_the_reader();
    let mut metadata = Metadata::default();
    for piece in pieces(ID, code, 0) {
        Records::new(&piece).for_each(|record| metadata.add(&record));
    }
    metadata
}

fn lines() -> Vec<u8> {
    let line = |offset, function, line, instruction| ListingLine {
        offset: CodeOffset(offset),
        function,
        file: "saxpy.cl",
        line,
        instruction,
    };
    listing(&[
        line(0x10, "saxpy", 4, "load r1, [x]"),
        line(0x18, "saxpy", 4, "fma r1, a, r1"),
        line(0x20, "store", 9, "store [y],\tr1"),
    ])
}

#[test]
fn a_listing_gives_function_line_and_instruction() {
    let metadata = metadata(&lines());
    let mut symbols = Symbols::new();
    let found = symbols.resolve(&metadata, ID, CodeOffset(0x1c));
    assert_eq!(found.symbol.as_ref().unwrap().offset, 0xc);
    let frame = &found.frames[0];
    assert_eq!((&*frame.function, frame.line), ("saxpy", Some(4)));
    assert_eq!(frame.file.as_deref(), Some("saxpy.cl"));
    assert_eq!(found.instruction.as_deref(), Some("fma r1, a, r1"));
    assert_eq!(found.missing, None);
    let last = symbols.resolve(&metadata, ID, CodeOffset(0x27));
    assert_eq!(last.instruction.as_deref(), Some("store [y], r1"));
    for outside in [0, 0xf, 0x28, u64::MAX] {
        let found = symbols.resolve(&metadata, ID, CodeOffset(outside));
        assert!(matches!(found.missing, Some(Missing::OutOfRange(..))));
    }
}

#[test]
fn a_listing_that_has_come_again_has_further_instructions() {
    let line = |offset, file, line| ListingLine {
        offset: CodeOffset(offset),
        function: "saxpy",
        file,
        line,
        instruction: "",
    };
    let mut stored = metadata(&listing(&[line(0x10, "", 0)]));
    let mut symbols = Symbols::new();
    let found = symbols.resolve(&stored, ID, CodeOffset(0x10));
    assert_eq!(found.missing, Some(Missing::NoListedLines));
    assert_eq!(
        (&*found.frames[0].function, &found.instruction),
        ("saxpy", &None)
    );
    let again = listing(&[line(0x10, "", 0), line(0x20, "saxpy.cu", 7)]);
    for piece in pieces(ID, &again, 0) {
        Records::new(&piece).for_each(|record| stored.add(&record));
    }
    symbols.forget(ID);
    let mut missing = |offset| {
        symbols
            .resolve(&stored, ID, CodeOffset(offset))
            .missing
            .clone()
    };
    assert_eq!(missing(0x20), None);
    assert_eq!(missing(0x10), Some(Missing::NoLine(ID, CodeOffset(0x10))));
}

#[test]
fn an_address_is_looked_up_once() {
    let metadata = metadata(&lines());
    let mut symbols = Symbols::new();
    for _ in 0..100 {
        symbols.resolve(&metadata, ID, CodeOffset(0x10));
        symbols.resolve(&metadata, ID, CodeOffset(0x20));
    }
    assert_eq!(symbols.looked_up(), 2);
}

#[test]
fn missing_symbols_are_reported_with_a_remedy() {
    let says = |metadata: &Metadata, id| {
        let found = Symbols::new().resolve(metadata, id, CodeOffset(0x10));
        found
            .missing
            .as_ref()
            .expect("something missing")
            .to_string()
    };
    let none = Metadata::default();
    assert!(says(&none, CodeObjectId::NONE).contains("no known code object"));
    assert!(
        says(&none, ID).contains("not recorded"),
        "{}",
        says(&none, ID)
    );
    let truncated = pieces(ID, &vec![1; 600_000], 0).next().unwrap();
    let mut half = Metadata::default();
    Records::new(&truncated).for_each(|record| half.add(&record));
    assert!(
        says(&half, ID).contains("of its 600000 bytes"),
        "{}",
        says(&half, ID)
    );
    let damaged = says(&metadata(b"\x7fELF and nothing more"), ID);
    assert!(damaged.contains("damaged"), "{damaged}");
    let listing = says(&metadata(b"gputrail listing\n10\tf\tg\tx\ty\n"), ID);
    assert!(
        listing.contains("line 2: the line is not a number"),
        "{listing}"
    );
}

#[test]
fn the_source_of_a_code_object_is_its_modules() {
    let mut metadata = Metadata::default();
    let mut module = Module::blank();
    (module.id, module.source) = (ModuleId(2), gputrail_record::StringId(5));
    let mut object = CodeObject::blank();
    (object.id, object.module) = (ID, module.id);
    let text =
        gputrail_capture::names::string_record(module.source, "kernel void f() {\n  g();\n}\n");
    Records::new(&text).for_each(|record| metadata.add(&record));
    metadata.add(&gputrail_record::RecordRef::of(&module));
    metadata.add(&gputrail_record::RecordRef::of(&object));
    let source = source(&metadata, ID).unwrap();
    assert_eq!(source_line(source, 2), Some("  g();"));
    assert_eq!(
        (source_line(source, 0), source_line(source, 4)),
        (None, None)
    );
}

proptest! {
    #[test]
    fn no_code_object_makes_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), offset in any::<u64>()) {
        for head in [&b"\x7fELF\x02\x01\x01"[..], b"gputrail listing\n", b""] {
            let code: Vec<u8> = head.iter().chain(&bytes).copied().collect();
            let (mut symbols, metadata) = (Symbols::new(), metadata(&code));
            symbols.resolve(&metadata, ID, CodeOffset(offset));
            symbols.instructions(&metadata, ID, CodeOffset(offset));
        }
    }
}
