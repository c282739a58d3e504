//! Source lines of addresses in code objects.

use super::library::board;
use super::status::FailedCall;
use super::{done, place};
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_capture::code::CodeOffset;
use gputrail_code::symbols::{Resolved, SymbolFrame};
use gputrail_collect::sampling::code::LoadedCode;
use gputrail_interface::c::{SourceLine, Status};
use gputrail_record::CodeObjectId;
use std::sync::Arc;

/// The code that has been read for tools.
#[derive(Default)]
struct ReadCode {
    code: LoadedCode,
    /// The number of replacements in the names store that `code` reflects.
    replaced: u64,
}

static CODE: PerProcess<ReadCode> = PerProcess::new();

/// The source line of an address, given as records of samples have it: a code object and the offset from its load base (CUPTI:
/// `cuptiGetSassToSourceCorrelation`). The code objects of sampled and counted agents can be looked up, also after they were
/// unloaded. Each is read at the first look-up in it, which takes a while. ELF files are read by `libgputrail-symbols.so.0`, which
/// lies beside the library.
///
/// Errors: `GPUTRAIL_NOT_FOUND` if the line is not known, and `gputrail_last_error` says why: without debug information, say; the
/// function is written if it is known, and 0 for everything else. `GPUTRAIL_NULL_POINTER`, `GPUTRAIL_NOT_INITIALISED`.
///
/// # Safety
///
/// `line` is null or a place for a source line.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gputrail_source_line_of(
    code_object: CodeObjectId,
    offset: u64,
    line: *mut SourceLine,
) -> Status {
    done(|| {
        // SAFETY: `line` is null or a place for a source line (the caller's promise).
        let line = unsafe { place(line, "line") }?.write(SourceLine::default());
        let names = board()?.names();
        let resolved = {
            let mut read = CODE.lock();
            let replaced = names.replaced_code();
            if read.replaced != replaced {
                *read = ReadCode {
                    replaced,
                    ..ReadCode::default()
                };
            }
            read.code.resolve(names, code_object, CodeOffset(offset))
        };
        let not_found = |why: String| FailedCall::new(Status::NOT_FOUND, why);
        let Some(resolved) = resolved else {
            let text = format!("the bytes of code object {code_object} are not known: {NOT_KEPT}");
            return Err(not_found(text));
        };
        let text = |text: &str| names.string(text);
        if let Some(function) = function(&resolved) {
            line.function = text(function);
        }
        let Some((file, number, column)) = resolved.frames.first().and_then(place_of) else {
            let missing = resolved.missing.as_ref();
            return Err(not_found(missing.map_or_else(
                || format!("code object {code_object} has no line for {offset:#x}"),
                ToString::to_string,
            )));
        };
        (line.file, line.line, line.column) = (text(file), number, column);
        if let Some(instruction) = &resolved.instruction {
            line.instruction = text(instruction);
        }
        Ok(())
    })
}

/// Why the bytes of a code object may be missing.
const NOT_KEPT: &str =
    "it is not that of an agent that is sampled or counted, or is too large to be kept";

fn function(resolved: &Resolved) -> Option<&Arc<str>> {
    let frame = resolved.frames.first().map(|frame| &frame.function);
    frame.or(resolved.symbol.as_ref().map(|symbol| &symbol.name))
}

/// The file, line and column of a frame that has a line.
fn place_of(frame: &SymbolFrame) -> Option<(&str, u32, u32)> {
    let file = frame.file.as_ref()?;
    Some((file, frame.line?, frame.column.unwrap_or(0)))
}
