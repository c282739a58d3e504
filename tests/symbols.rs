//! Code objects made by a compiler: symbols, inlined functions, lines and instructions are found, and damaged files are
//! distinguished from complete ones.

use gputrail_capture::Metadata;
use gputrail_capture::code::CodeOffset;
use gputrail_code::symbols::{Missing, Resolved, Symbols};
use gputrail_record::{CodeObjectId, Records};
use std::process::Command;
use std::sync::Arc;

const ID: CodeObjectId = CodeObjectId(1);

const SOURCE: &str = "\
static inline __attribute__((always_inline)) float step(float x) {
    return x * 1.5f + 1.0f;
}
float _pocl_kernel_sum_workgroup(const float *data, int count) {
    float sum = 0;
    for (int i = 0; i < count; i++)
        sum += step(data[i]);
    return sum;
}
";

/// The shared library that gcc makes of the source with these options.
fn library(options: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let (source, library) = (
        directory.path().join("kernel.c"),
        directory.path().join("kernel.so"),
    );
    std::fs::write(&source, SOURCE).unwrap();
    let status = Command::new("gcc")
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .args([&library, &source])
        .args(options)
        .status()
        .expect("gcc");
    assert!(status.success());
    std::fs::read(&library).unwrap()
}

fn metadata(code: &[u8]) -> Metadata {
    gputrail_code::reader::link(&gputrail_symbols::GPUTRAIL_SYMBOLS);
    let mut metadata = Metadata::default();
    for piece in gputrail_capture::code::pieces(ID, code, 0) {
        Records::new(&piece).for_each(|record| metadata.add(&record));
    }
    metadata
}

/// Every address at which an instruction may begin.
fn resolve_all(code: &[u8]) -> Vec<Arc<Resolved>> {
    let metadata = metadata(code);
    let mut symbols = Symbols::new();
    (0..code.len() as u64)
        .map(|offset| symbols.resolve(&metadata, ID, CodeOffset(offset)))
        .collect()
}

#[test]
fn the_instructions_of_a_function_are_those_between_its_ends() {
    let metadata = metadata(&library(&["-g"]));
    let mut symbols = Symbols::new();
    let name = |symbols: &mut Symbols, offset| {
        let found = symbols.resolve(&metadata, ID, offset);
        let symbol = found.symbol.as_ref().map(|symbol| symbol.name.clone());
        (symbol, found.instruction.is_some())
    };
    let kernel = Some("_pocl_kernel_sum_workgroup");
    let inside = (0..0x4000)
        .map(CodeOffset)
        .filter(|offset| name(&mut symbols, *offset).0.as_deref() == kernel);
    let inside: Vec<CodeOffset> = inside.collect();
    let all = symbols.instructions(&metadata, ID, inside[inside.len() / 2]);
    assert_eq!(all.first(), inside.first());
    assert!(all.len() > 5 && all.len() < inside.len());
    assert!(all.is_sorted());
    for offset in all {
        assert_eq!(name(&mut symbols, offset).1, cfg!(target_arch = "x86_64"));
        assert!(inside.contains(&offset));
    }
}

#[test]
fn inlined_functions_lines_and_instructions_are_found() {
    let all = resolve_all(&library(&["-g"]));
    let in_kernel = |found: &&Arc<Resolved>| {
        let symbol = found.symbol.as_ref();
        symbol.is_some_and(|symbol| &*symbol.name == "_pocl_kernel_sum_workgroup")
    };
    let kernel: Vec<_> = all.iter().filter(in_kernel).collect();
    assert!(!kernel.is_empty());
    let inlined = kernel.iter().find(|found| found.frames.len() == 2);
    let inlined = inlined.expect("an address in the inlined function");
    let told: Vec<_> = inlined
        .frames
        .iter()
        .map(|frame| (&*frame.function, frame.line))
        .collect();
    assert_eq!(told, [("step", Some(2)), ("sum", Some(7))]);
    let file = inlined.frames[0].file.as_deref().unwrap();
    assert!(file.ends_with("kernel.c"), "{file}");
    let instructions = kernel
        .iter()
        .filter_map(|found| found.instruction.as_deref());
    let texts: Vec<&str> = instructions.collect();
    if cfg!(target_arch = "x86_64") {
        assert!(texts.contains(&"ret"), "{texts:?}");
        assert!(
            texts.iter().any(|text| text.starts_with("mulss")),
            "{texts:?}"
        );
    } else {
        assert!(texts.is_empty());
    }
}

#[test]
fn without_lines_the_function_is_known_and_what_would_help() {
    let all = resolve_all(&library(&["-g0"]));
    let found = all
        .iter()
        .find(|found| {
            found
                .frames
                .first()
                .is_some_and(|frame| &*frame.function == "sum")
        })
        .expect("the kernel");
    assert_eq!((found.frames.len(), found.frames[0].line), (1, None));
    assert_eq!(found.missing, Some(Missing::NoLines(ID)));
    let help = found.missing.as_ref().unwrap().to_string();
    assert!(help.contains("--kernel-debug-info"), "{help}");
}

#[test]
fn of_a_stripped_file_the_address_is_named_and_what_would_help() {
    let stripped = library(&["-g0", "-s", "-fvisibility=hidden"]);
    let metadata = metadata(&stripped);
    let mut symbols = Symbols::new();
    let mut resolve = |offset| symbols.resolve(&metadata, ID, CodeOffset(offset));
    let inside = (0..0x4000).find(|offset| {
        let found = resolve(*offset);
        found.missing == Some(Missing::NoSymbol(ID, CodeOffset(*offset)))
    });
    let inside = inside.expect("code");
    let found = resolve(inside);
    assert!(found.symbol.is_none() && found.frames.is_empty());
    assert_eq!(found.instruction.is_some(), cfg!(target_arch = "x86_64"));
    let says = found.missing.as_ref().expect("no symbol").to_string();
    let expected = format!(
        "code object {} has neither a symbol nor lines for {inside:#x}",
        ID.0
    );
    assert!(says.starts_with(&expected), "{says}");
    assert!(says.contains("--kernel-debug-info"), "{says}");
}

#[test]
fn truncated_files_are_damaged_or_less_known_but_never_a_panic() {
    let code = library(&["-g"]);
    for length in (0..code.len()).step_by(61) {
        let metadata = metadata(&code[..length]);
        let mut symbols = Symbols::new();
        for offset in (0..0x1200).step_by(16) {
            let found = symbols.resolve(&metadata, ID, CodeOffset(offset));
            assert!(found.missing.is_some() || !found.frames.is_empty());
        }
    }
}

#[test]
fn damaged_files_make_no_panic() {
    let code = library(&["-g"]);
    // Any numbers will do, if they are the same in each run.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..200 {
        let mut damaged = code.clone();
        for _ in 0..1 + next() % 8 {
            let place = next() as usize % damaged.len();
            damaged[place] = next() as u8;
        }
        let metadata = metadata(&damaged);
        let mut symbols = Symbols::new();
        for offset in (0..0x1200).step_by(32) {
            symbols.resolve(&metadata, ID, CodeOffset(offset));
            symbols.instructions(&metadata, ID, CodeOffset(offset));
        }
    }
}
