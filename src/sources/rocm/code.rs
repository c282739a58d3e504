//! The machine code of agents, for the samples that are taken of it: the bytes of each code object that is loaded while an agent is
//! configured to be sampled.
//!
//! A code object is an ELF file, in memory or as a part of a file. A sample names it by the SDK's number, and an offset from where it
//! was loaded; a record has the address in the file.

use super::sdk::text_of;
use gputrail_buffer::platform::sync::PerProcess;
use gputrail_capture::code::MAX_CODE_OBJECT;
use gputrail_capture::names::Names;
use gputrail_record::{AgentId, CodeObject, CodeObjectId, ModuleId};
use gputrail_rocprofiler::{CodeObjectLoadData, Pc};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The most bytes of code objects that are kept.
const MAX_BYTES: usize = 256 << 20;

/// Whether code objects are kept.
static KEEPS: AtomicBool = AtomicBool::new(false);
static CODE: PerProcess<LoadedCode> = PerProcess::new();

/// The code objects of this process.
#[derive(Default)]
struct LoadedCode {
    /// By the SDK's number, which no other gets later.
    objects: HashMap<u64, LoadedObject>,
    bytes: usize,
    missing: MissingCode,
}

/// A code object that is, or was, loaded.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct LoadedObject {
    id: CodeObjectId,
    /// The number that is added to an offset from where it was loaded, which gives the address in its file.
    file_base: u64,
}

impl LoadedObject {
    /// The code object, and the address in its file.
    pub fn place(&self, pc: Pc) -> (CodeObjectId, u64) {
        let address = pc.code_object_offset.wrapping_add(self.file_base);
        (self.id, address)
    }
}

/// Code objects whose bytes are not kept.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MissingCode {
    /// Too large, or too many.
    pub left_out: u64,
    /// Not to be read.
    pub unread: u64,
}

/// Keeps the code objects that are loaded from now on.
pub(super) fn keep() {
    KEEPS.store(true, Ordering::Relaxed);
}

/// A code object is loaded on `agent` as the code of `module`: keeps its bytes, if code is kept.
///
/// # Safety
///
/// `data` is what the SDK describes a code object with, in the callback that tells of it.
pub(super) unsafe fn loaded(
    names: &Names,
    (agent, module): (AgentId, ModuleId),
    data: &CodeObjectLoadData,
) {
    if !KEEPS.load(Ordering::Relaxed) {
        return;
    }
    if CODE.lock().objects.contains_key(&data.code_object_id) {
        return;
    }
    // SAFETY: null or a text that ends with a 0, which stays during the callback (the caller's promise).
    let uri = unsafe { text_of(data.uri) }.unwrap_or_default();
    let mut object = CodeObject::blank();
    (object.agent, object.module) = (agent, module);
    object.path = names.string(&uri);
    // A record's base is what an address in memory has more than that in the file.
    object.load_base = match data.load_delta {
        0 => data.load_base,
        delta => delta as u64,
    };
    object.load_size = data.load_size;
    let id = names.code_object(object);
    let known = LoadedObject {
        id,
        file_base: data.load_base.wrapping_sub(object.load_base),
    };
    // SAFETY: the bytes of a code object that is being loaded (the caller's promise).
    let bytes = unsafe { bytes_of(data, &uri) };
    let mut code = CODE.lock();
    code.objects.insert(data.code_object_id, known);
    let kept = match bytes {
        None => {
            code.missing.unread += 1;
            None
        }
        Some(bytes) if bytes.len() > MAX_CODE_OBJECT || code.bytes + bytes.len() > MAX_BYTES => {
            code.missing.left_out += 1;
            None
        }
        Some(bytes) => {
            code.bytes += bytes.len();
            Some(bytes)
        }
    };
    drop(code);
    if let Some(bytes) = kept {
        names.code_bytes(id, &bytes, 0);
    }
}

/// The code object with the SDK's number.
pub(super) fn object(number: u64) -> Option<LoadedObject> {
    CODE.lock().objects.get(&number).copied()
}

/// The code objects whose bytes are not kept.
pub(super) fn missing() -> MissingCode {
    CODE.lock().missing
}

/// The bytes of a code object; no more than one too many for it to be kept.
///
/// # Safety
///
/// As for [`loaded`].
unsafe fn bytes_of(data: &CodeObjectLoadData, uri: &str) -> Option<Vec<u8>> {
    let most = MAX_CODE_OBJECT + 1;
    if data.storage_type == CodeObjectLoadData::MEMORY {
        let length = usize::try_from(data.memory_size).unwrap_or(usize::MAX);
        if data.memory_base == 0 || length == 0 {
            return None;
        }
        let start = core::ptr::with_exposed_provenance::<u8>(data.memory_base as usize);
        // SAFETY: the SDK says that the code object lies there, in the callback that tells of its load (the caller's promise).
        let bytes = unsafe { core::slice::from_raw_parts(start, length.min(most)) };
        return Some(bytes.to_vec());
    }
    let part = FilePart::of_uri(uri)?;
    let file = File::open(&part.path).ok()?;
    let rest = file.metadata().ok()?.len().checked_sub(part.offset)?;
    let length = part.size.unwrap_or(rest).min(rest);
    let mut bytes = vec![0; usize::try_from(length).ok()?.min(most)];
    file.read_exact_at(&mut bytes, part.offset).ok()?;
    (!bytes.is_empty()).then_some(bytes)
}

/// The part of a file that a URI of a code object names: `file:///path#offset=0x1000&size=2048`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FilePart {
    path: PathBuf,
    offset: u64,
    size: Option<u64>,
}

impl FilePart {
    fn of_uri(uri: &str) -> Option<FilePart> {
        let rest = uri.strip_prefix("file://")?;
        let (path, part) = rest.split_once(['#', '?']).unwrap_or((rest, ""));
        let mut found = FilePart {
            path: Path::new(&unescaped(path)).to_owned(),
            offset: 0,
            size: None,
        };
        for field in part.split('&') {
            match field.split_once('=') {
                Some(("offset", number)) => found.offset = number_of(number)?,
                Some(("size", number)) => found.size = Some(number_of(number)?),
                _ => {}
            }
        }
        found.path.is_absolute().then_some(found)
    }
}

/// A number, in hexadecimal after `0x`.
fn number_of(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The text, with the characters that `%` and two digits stand for.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (first, escaped) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputrail_capture::Metadata;
    use gputrail_rocprofiler::AgentId as SdkAgentId;
    use std::ffi::CString;

    /// Numbers that no other test of this process uses.
    const IN_MEMORY: u64 = 0xc0de_0001;
    const IN_FILE: u64 = 0xc0de_0002;
    const UNREAD: u64 = 0xc0de_0003;

    fn described(number: u64, uri: &CString) -> CodeObjectLoadData {
        CodeObjectLoadData {
            size: size_of::<CodeObjectLoadData>() as u64,
            code_object_id: number,
            agent_id: SdkAgentId { handle: 1 },
            hsa_agent: 0,
            uri: uri.as_ptr(),
            load_base: 0x7000_1000,
            load_size: 0x2000,
            load_delta: 0x7000_0000,
            storage_type: CodeObjectLoadData::FILE,
            memory_base: 0,
            memory_size: 0,
        }
    }

    /// The bytes that are kept of a code object.
    fn kept(names: &Names, id: CodeObjectId) -> Option<Vec<u8>> {
        let mut metadata = Metadata::default();
        names.read_code(id, |piece| {
            metadata.add(piece);
        });
        metadata.code.get(id).ok().map(<[u8]>::to_vec)
    }

    #[test]
    fn code_in_memory_and_in_files_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a program");
        std::fs::write(&path, b"....\x7fELF of the file").unwrap();
        let escaped = path.display().to_string().replace(' ', "%20");
        let in_file = CString::new(format!("file://{escaped}#offset=0x4&size=4")).unwrap();
        let in_memory = CString::new("memory://1#offset=0x1&size=12").unwrap();
        let names = Names::new();
        let bytes = b"\x7fELF in memory".to_vec();
        let mut of_memory = described(IN_MEMORY, &in_memory);
        of_memory.storage_type = CodeObjectLoadData::MEMORY;
        of_memory.memory_base = bytes.as_ptr().expose_provenance() as u64;
        of_memory.memory_size = bytes.len() as u64;
        // SAFETY: descriptions of code objects, as the SDK would make them.
        let load = |data: &CodeObjectLoadData| unsafe {
            loaded(&names, (AgentId(3), ModuleId(4)), data);
        };
        keep();
        load(&of_memory);
        load(&described(IN_FILE, &in_file));
        load(&described(UNREAD, &c"file:///no/such/file".to_owned()));
        let id = |number| object(number).unwrap().id;
        assert_eq!(kept(&names, id(IN_MEMORY)).as_deref(), Some(&bytes[..]));
        assert_eq!(kept(&names, id(IN_FILE)).as_deref(), Some(&b"\x7fELF"[..]));
        assert_eq!(kept(&names, id(UNREAD)), None);
        assert!(missing().unread >= 1);
        let record: CodeObject = names.get(id(IN_FILE).0).unwrap();
        assert_eq!((record.agent, record.module), (AgentId(3), ModuleId(4)));
        assert_eq!(record.load_base, 0x7000_0000);

        // The file begins 0x1000 before what is loaded.
        let pc = Pc {
            code_object_id: IN_FILE,
            code_object_offset: 0x240,
        };
        let loaded = object(IN_FILE).unwrap();
        assert_eq!(loaded.place(pc), (id(IN_FILE), 0x1240));
    }

    #[test]
    fn uris_name_a_part_of_a_file() {
        let part = |uri| FilePart::of_uri(uri);
        let whole = part("file:///a/b%20c").unwrap();
        assert_eq!(whole.path, Path::new("/a/b c"));
        assert_eq!((whole.offset, whole.size), (0, None));
        let some = part("file:///a#offset=0x1000&size=2048").unwrap();
        assert_eq!((some.offset, some.size), (0x1000, Some(2048)));
        let wrong = [
            "memory://1#offset=0x1&size=2",
            "file://a",
            "file:///a#size=x",
            "",
        ];
        assert!(wrong.iter().all(|uri| part(uri).is_none()));
        assert_eq!(unescaped("100%"), "100%");
        assert_eq!(unescaped("%zz%41"), "%zzA");
    }
}
