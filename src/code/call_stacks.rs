//! The names of the functions on call stacks of the host.
//!
//! They come from the symbols of the files that the program had loaded, if these are still the same files, and from the map
//! that Python and JITs write for perf. All memory here is bounded.

mod perf_map;

use crate::symbols::elf::ElfCode;
use gputrail_capture::Metadata;
use gputrail_record::number_map::NumberMap;
use gputrail_record::{CallStackId, FrameAddress, HostModuleId, printable};
use perf_map::PerfMap;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Stands between a function and its caller in the text of a stack.
pub const CALLED_BY: &str = " < ";
/// The most names and bytes of texts that are kept; beyond it, they are made again.
const MAX_NAMES: usize = 1 << 18;
const MAX_TEXTS: usize = 64 << 20;
/// The longest name of a function, and the longest text of a stack, in bytes. Longer ones are cut.
const MAX_NAME: usize = 512;
const MAX_TEXT: usize = 16 << 10;

/// Names the functions on the call stacks of one process.
#[derive(Default)]
pub struct CallStackNames {
    modules: HashMap<HostModuleId, Option<ElfCode>>,
    names: HashMap<FrameAddress, Arc<str>>,
    perf_map: Option<PerfMap>,
    texts: NumberMap<CallStackId, StackText>,
    text_bytes: usize,
}

/// The text of a stack.
struct StackText {
    text: Arc<str>,
    /// Whether all frames outside of modules have names.
    has_names: bool,
}

impl std::fmt::Debug for CallStackNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallStackNames").finish_non_exhaustive()
    }
}

/// Reads a map for perf; the number of its functions. For tests with foreign bytes.
#[doc(hidden)]
pub fn read_perf_map(bytes: &[u8]) -> usize {
    perf_map::count(bytes)
}

impl CallStackNames {
    /// The functions of a stack, innermost first, with [`CALLED_BY`] between them; `None` if the stack is unknown.
    pub fn text(&mut self, metadata: &Metadata, id: CallStackId) -> Option<Arc<str>> {
        // A map for perf grows while the program runs.
        if let Some(known) = self.texts.get(&id)
            && (known.has_names || !self.perf_map.as_ref().is_some_and(PerfMap::has_grown))
        {
            return Some(known.text.clone());
        }
        let frames = metadata.call_stacks.get(&id)?;
        let mut text = String::new();
        let mut has_names = true;
        for frame in frames {
            let (name, is_final) = self.name(metadata, *frame);
            has_names &= is_final;
            if text.len() + CALLED_BY.len() + name.len() > MAX_TEXT {
                break;
            }
            if !text.is_empty() {
                text.push_str(CALLED_BY);
            }
            text.push_str(&name);
        }
        if self.text_bytes + text.len() > MAX_TEXTS {
            self.texts.clear();
            self.text_bytes = 0;
        }
        self.text_bytes += text.len();
        let text: Arc<str> = text.into();
        let known = StackText {
            text: text.clone(),
            has_names,
        };
        self.texts.insert(id, known);
        Some(text)
    }

    /// The name of a frame, and whether it stays so.
    fn name(&mut self, metadata: &Metadata, frame: FrameAddress) -> (Arc<str>, bool) {
        if let Some(name) = self.names.get(&frame) {
            return (name.clone(), true);
        }
        if self.names.len() >= MAX_NAMES {
            self.names.clear();
        }
        let (name, is_found) = self.find(metadata, frame);
        // The name of a frame stands between separators.
        let name = printable(&name).replace(CALLED_BY, "<");
        let name: Arc<str> = name[..name.floor_char_boundary(name.len().min(MAX_NAME))].into();
        let is_final = is_found || frame.module().is_some();
        if is_final {
            self.names.insert(frame, name.clone());
        }
        (name, is_final)
    }

    /// The name of a frame, and whether it is that of a function.
    fn find(&mut self, metadata: &Metadata, frame: FrameAddress) -> (Arc<str>, bool) {
        let address = frame.address();
        let Some(module) = metadata.host_modules.get(&frame.module()) else {
            let map = self.perf_map.get_or_insert_with(|| PerfMap::of(metadata));
            return match map.name(address) {
                Some(name) => (name.into(), true),
                None => (format!("{address:#x}").into(), false),
            };
        };
        let path = metadata.string(module.path);
        let code = self.modules.entry(module.id);
        let code =
            code.or_insert_with(|| ElfCode::open_names(path, metadata.string(module.build_id)));
        match code.as_mut().and_then(|code| code.name(address)) {
            Some(name) => (name, true),
            None => {
                let file = Path::new(path).file_name().unwrap_or_default();
                let name = format!("{}+{address:#x}", file.to_string_lossy());
                (name.into(), false)
            }
        }
    }
}
