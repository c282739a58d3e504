//! Disassembly of code of AMD's GPUs by LLVM's `llvm-objdump`, which comes with ROCm and with LLVM. Rust has no well-kept disassembler
//! for it. Where the program is not found, or does not know the GPU, instructions have addresses and lines alone, which is said once.

use crate::messages::say;
use gputrail_code::disassembly::{DisassembledInstruction, Disassembler};
use gputrail_code::reader::truncated;
use std::env;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// The variable that names the program.
const VARIABLE: &str = "GPUTRAIL_OBJDUMP";
/// The name of the program.
const PROGRAM: &str = "llvm-objdump";
/// The versions of LLVM whose programs are looked for by name, as Debian calls them: the newest first.
const VERSIONS: std::ops::RangeInclusive<u32> = 14..=30;
/// Programs that are tried one after the other.
const MAX_PROGRAMS: usize = 8;

/// The disassembler.
pub static LLVM_OBJDUMP: LlvmObjdump = LlvmObjdump(Mutex::new(FoundProgram::NotAsked));

/// `llvm-objdump`, as it was found.
pub struct LlvmObjdump(Mutex<FoundProgram>);

enum FoundProgram {
    NotAsked,
    /// The one that has disassembled.
    Works(PathBuf),
    /// None does, which was said.
    None,
}

impl Disassembler for LlvmObjdump {
    fn function(&self, bytes: &[u8], symbol: &str) -> Vec<DisassembledInstruction> {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*found {
            FoundProgram::None => Vec::new(),
            FoundProgram::Works(program) => disassemble(program, bytes, symbol).unwrap_or_default(),
            FoundProgram::NotAsked => {
                let programs = programs(
                    env::var_os(VARIABLE),
                    |name| env::var_os(name),
                    Path::is_file,
                );
                match first(&programs, bytes, symbol) {
                    Ok((program, instructions)) => {
                        *found = FoundProgram::Works(program);
                        instructions
                    }
                    Err(why) => {
                        *found = FoundProgram::None;
                        say!(
                            "instructions of AMD's GPUs are shown by address and line, without their text: {why}"
                        );
                        Vec::new()
                    }
                }
            }
        }
    }
}

/// The first program that disassembles the function, and what it says; or why none does.
fn first(
    programs: &[PathBuf],
    bytes: &[u8],
    symbol: &str,
) -> Result<(PathBuf, Vec<DisassembledInstruction>), String> {
    let mut failed = Vec::new();
    for program in programs {
        match disassemble(program, bytes, symbol) {
            Ok(instructions) => return Ok((program.clone(), instructions)),
            Err(why) => failed.push(format!("{}: {why}", program.display())),
        }
    }
    if failed.is_empty() {
        return Err(format!(
            "no {PROGRAM} was found: install ROCm or LLVM, or name one with {VARIABLE}"
        ));
    }
    Err(format!(
        "{} (name a newer {PROGRAM}, such as ROCm's, with {VARIABLE})",
        failed.join("; ")
    ))
}

/// The programs that there are, those of ROCm before those of LLVM; the one alone that is `named`.
fn programs(
    named: Option<OsString>,
    variable: impl Fn(&str) -> Option<OsString>,
    exists: impl Fn(&Path) -> bool,
) -> Vec<PathBuf> {
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        return vec![PathBuf::from(named)];
    }
    let rocm = variable("ROCM_PATH").map(PathBuf::from);
    let rocm = rocm.into_iter().chain(["/opt/rocm".into()]);
    let of_rocm = rocm.map(|folder| folder.join("llvm/bin").join(PROGRAM));
    let path = variable("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path)
        .filter(|one| one.is_absolute())
        .collect();
    let names = VERSIONS.rev().map(|version| format!("{PROGRAM}-{version}"));
    let of_path = names
        .chain([PROGRAM.to_owned()])
        .flat_map(|name| folders.iter().map(move |folder| folder.join(&name)));
    let of_llvm = VERSIONS
        .rev()
        .map(|version| format!("/usr/lib/llvm-{version}/bin/{PROGRAM}").into());
    let mut found: Vec<PathBuf> = Vec::new();
    for program in of_rocm.chain(of_path).chain(of_llvm) {
        if found.len() < MAX_PROGRAMS && !found.contains(&program) && exists(&program) {
            found.push(program);
        }
    }
    found
}

/// The instructions of a function of the ELF file in `bytes`, as a program disassembles it; or a sentence of the program.
fn disassemble(
    program: &Path,
    bytes: &[u8],
    symbol: &str,
) -> Result<Vec<DisassembledInstruction>, String> {
    let mut child = Command::new(program)
        .arg(format!("--disassemble-symbols={symbol}"))
        .args(["--no-show-raw-insn", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let input = child.stdin.take();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // A program that ends early says why itself.
            let _ = input.map(|mut input| input.write_all(bytes));
        });
        child.wait_with_output()
    });
    let output = output.map_err(|error| error.to_string())?;
    let instructions = parse(&String::from_utf8_lossy(&output.stdout));
    if !instructions.is_empty() {
        return Ok(instructions);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().map(str::trim).find(|line| !line.is_empty());
    Err(said.map_or_else(
        || format!("it disassembles nothing of {symbol} ({})", output.status),
        str::to_owned,
    ))
}

/// The instructions in the output of `llvm-objdump`: each line ends with a comment that begins with the address, such as
/// `s_endpgm // 000000001940:`.
fn parse(output: &str) -> Vec<DisassembledInstruction> {
    let instruction = |line: &str| {
        let (text, comment) = line.split_once("// ")?;
        let (address, _) = comment.split_once(':')?;
        let address = u64::from_str_radix(address.trim(), 16).ok()?;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty()).then(|| (address, truncated(&text).into()))
    };
    output.lines().filter_map(instruction).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_capture::Metadata;
    use gputrail_capture::code::{CodeOffset, pieces};
    use gputrail_code::symbols::Symbols;
    use gputrail_harness::machine::Need;
    use gputrail_harness::needs;
    use gputrail_harness::program::run;
    use gputrail_record::{CodeObjectId, Records};

    const OUTPUT: &str = "
<stdin>:\tfile format elf64-amdgpu

Disassembly of section .text:

0000000000001900 <scale>:
\ts_load_dwordx2 s[0:1], s[4:5], 0x0                         // 000000001900: C0060002 00000000
\tv_mul_f32_e32 v1,  2.0, v1 // 000000001908:
\ts_cbranch_scc1 65530                                       // 00000000190C: BF85FFFA <scale+0x8>
\ts_endpgm                                                   // 000000001910: BF810000
";

    #[test]
    fn instructions_are_read_from_the_output() {
        let found = parse(OUTPUT);
        let expected = [
            (0x1900, "s_load_dwordx2 s[0:1], s[4:5], 0x0"),
            (0x1908, "v_mul_f32_e32 v1, 2.0, v1"),
            (0x190c, "s_cbranch_scc1 65530"),
            (0x1910, "s_endpgm"),
        ];
        let found: Vec<_> = found.iter().map(|(at, text)| (*at, &**text)).collect();
        assert_eq!(found, expected);
        assert!(parse("// 12:\nx // zz:\ny // 12\n").is_empty());
    }

    #[test]
    fn programs_of_rocm_go_before_those_of_llvm() {
        let variable = |name: &str| match name {
            "ROCM_PATH" => Some("/r".into()),
            "PATH" => Some("/usr/bin:relative".into()),
            _ => None,
        };
        let there = [
            "/r/llvm/bin/llvm-objdump",
            "/usr/bin/llvm-objdump-15",
            "/usr/bin/llvm-objdump",
            "/usr/lib/llvm-15/bin/llvm-objdump",
        ];
        let exists = |path: &Path| there.iter().any(|one| Path::new(one) == path);
        let found = programs(None, variable, exists);
        assert_eq!(found, there.map(PathBuf::from));
        let named = programs(Some("/x".into()), variable, exists);
        assert_eq!(named, [PathBuf::from("/x")]);
    }

    #[test]
    fn a_program_that_is_missing_or_fails_says_why() {
        let none = first(&[], b"", "scale").unwrap_err();
        assert!(none.contains("no llvm-objdump was found"), "{none}");
        let programs = ["/no/such/program", "/bin/false"].map(PathBuf::from);
        let failed = first(&programs, b"", "scale").unwrap_err();
        assert!(failed.contains("/no/such/program: "), "{failed}");
        assert!(failed.contains("/bin/false: "), "{failed}");
    }
    /// A kernel of gfx90a, whose three instructions come from lines 3 to 5 of `/src/scale.hip`. Addresses are numbers, since the file
    /// is not linked.
    const SOURCE: &str = r#"
    .amdgcn_target "amdgcn-amd-amdhsa--gfx90a"
    .text
    .globl scale
    .type scale,@function
scale:
    s_load_dwordx2 s[0:1], s[4:5], 0x0
    v_mul_f32_e32 v1, 2.0, v1
    s_endpgm
.Lend:
    .size scale, .Lend-scale
    .section .debug_abbrev,"",@progbits
    .byte 1, 0x11, 0, 0x10, 0x17, 0x11, 1, 0x12, 7, 3, 8, 0, 0, 0
    .section .debug_info,"",@progbits
    .long .Linfo_end - .Linfo
.Linfo:
    .short 4
    .long 0
    .byte 8, 1
    .long 0
    .quad 0, 16
    .asciz "/src/scale.hip"
.Linfo_end:
    .section .debug_line,"",@progbits
    .long .Lline_end - .Lline
.Lline:
    .short 4
    .long .Lheader_end - .Lheader
.Lheader:
    .byte 1, 1, 1, 0xfb, 14, 13
    .byte 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1
    .byte 0
    .asciz "/src/scale.hip"
    .byte 0, 0, 0, 0
.Lheader_end:
    .byte 0, 9, 2
    .quad 0
    .byte 3, 2, 1
    .byte 2, 8, 3, 1, 1
    .byte 2, 4, 3, 1, 1
    .byte 2, 4, 0, 1, 1
.Lline_end:
"#;

    #[test]
    fn code_of_an_amd_gpu_has_symbols_lines_and_instructions() {
        needs!(code_of_an_amd_gpu_has_symbols_lines_and_instructions: Need::Program("llvm-mc"), Need::Program("llvm-objdump"));
        let folder = tempfile::tempdir().unwrap();
        let [source, object] = ["scale.s", "scale.o"].map(|name| folder.path().join(name));
        std::fs::write(&source, SOURCE).unwrap();
        let mut assembler = Command::new("llvm-mc");
        assembler.args([
            "-triple=amdgcn-amd-amdhsa",
            "-mcpu=gfx90a",
            "-filetype=obj",
            "-o",
        ]);
        run(assembler.arg(&object).arg(&source)).well();
        let code = std::fs::read(&object).unwrap();

        gputrail_code::reader::link(&gputrail_symbols::GPUTRAIL_SYMBOLS);
        gputrail_code::disassembly::link(&LLVM_OBJDUMP);
        let id = CodeObjectId(1);
        let mut metadata = Metadata::default();
        for piece in pieces(id, &code, 0) {
            Records::new(&piece).for_each(|record| metadata.add(&record));
        }
        let mut symbols = Symbols::new();
        let mut at = |offset| symbols.resolve(&metadata, id, CodeOffset(offset));
        let expected = [
            (0, 3, "s_load_dwordx2 s[0:1], s[4:5], 0x0"),
            (8, 4, "v_mul_f32_e32 v1, 2.0, v1"),
            (12, 5, "s_endpgm"),
        ];
        for (offset, line, text) in expected {
            let found = at(offset);
            let symbol = found.symbol.as_ref().unwrap();
            assert_eq!((&*symbol.name, symbol.offset), ("scale", offset));
            let frame = &found.frames[0];
            assert_eq!(frame.file.as_deref(), Some("/src/scale.hip"));
            assert_eq!(
                (frame.line, found.instruction.as_deref()),
                (Some(line), Some(text))
            );
        }
        // In the middle of an instruction there is none.
        assert_eq!(at(4).instruction, None);
    }
}
