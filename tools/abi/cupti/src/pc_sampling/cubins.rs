//! Machine code that the process has loaded, by the number that its bytes have (`cubinCrc`), and its source lines.

use super::layout::{GetCubinCrcParams, GetSassToSourceCorrelationParams};
use crate::load::callee;
use crate::result::{Answer, CUptiResult};
use crate::with_gputrail;
use core::ffi::{c_char, c_void};
use gputrail_abi::{Watch, lock};
use gputrail_record::{CodeObject, CodeObjectId, StringId};
use gputrail_tool as tool;
use gputrail_tool::events::resource;
use std::collections::HashMap;
use std::ffi::CString;
use std::path::Path;
use std::sync::Mutex;

/// `CUpti_ComputeCrcCallbackFunc`
pub type ComputeCrc = unsafe extern "C-unwind" fn(*const c_void, usize, *mut u64);

/// The most code objects whose numbers are kept.
const MAX_OBJECTS: usize = 1 << 16;

#[derive(Default)]
struct Cubins {
    /// The numbers of code objects whose bytes the runtime gives.
    crcs: HashMap<CodeObjectId, u64>,
    /// The latest code object with a number.
    objects: HashMap<u64, CodeObjectId>,
    /// Is told of code objects that are loaded.
    watching: Option<Watch>,
}

static CUBINS: Mutex<Option<Cubins>> = Mutex::new(None);
/// The program's function in the place of [`hash`].
static COMPUTE: Mutex<Option<ComputeCrc>> = Mutex::new(None);

/// Keeps the numbers of code that is loaded from now on.
pub fn watch() -> Answer {
    let mut cubins = lock(&CUBINS);
    let cubins = cubins.get_or_insert_default();
    if cubins.watching.is_some() {
        return Ok(());
    }
    let new = Watch::new(&[resource::CODE_OBJECT_LOADED], |callback| {
        if let Some(object) = callback.record::<CodeObject>()
            && !callback.code().is_empty()
        {
            let crc = of_bytes(callback.code());
            let mut cubins = lock(&CUBINS);
            let cubins = cubins.get_or_insert_default();
            if cubins.crcs.len() < MAX_OBJECTS {
                cubins.crcs.insert(object.id, crc);
                cubins.objects.insert(crc, object.id);
            }
        }
    })?;
    cubins.watching = Some(new);
    Ok(())
}

/// Forgets all.
pub fn finish() {
    let cubins = lock(&CUBINS).take();
    drop(cubins);
    *lock(&COMPUTE) = None;
}

/// The number of a code object; of one whose bytes are not known, one that no other has.
pub fn crc(object: CodeObjectId) -> u64 {
    let cubins = lock(&CUBINS);
    let known = cubins
        .as_ref()
        .and_then(|cubins| cubins.crcs.get(&object).copied());
    known.unwrap_or_else(|| hash(&object.0.to_le_bytes()))
}

/// The number of bytes, by the program's function or [`hash`].
fn of_bytes(bytes: &[u8]) -> u64 {
    let compute = *lock(&COMPUTE);
    let Some(compute) = compute else {
        return hash(bytes);
    };
    let mut crc = 0;
    // SAFETY: the program's function for this, with bytes and a place for the number.
    let call = || unsafe { compute(bytes.as_ptr().cast(), bytes.len(), &raw mut crc) };
    callee("cuptiRegisterComputeCrcCallback", compute as *const ()).call(call);
    crc
}

/// The 64-bit FNV-1a hash.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Has the program's function number machine code.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiRegisterComputeCrcCallback(compute: Option<ComputeCrc>) -> CUptiResult {
    with_gputrail(|| {
        *lock(&COMPUTE) = Some(compute.ok_or(CUptiResult::INVALID_PARAMETER)?);
        watch()
    })
}

/// The number of machine code, as samples have it.
///
/// # Safety
///
/// `parameters` is null or leads to the structure, whose `cubin` is null or leads to `cubin_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetCubinCrc(parameters: *mut GetCubinCrcParams) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `parameters` is null or leads to the structure.
        let parameters = unsafe { super::checked(parameters) }?;
        // SAFETY: `parameters` is checked; `cubin` is null or leads to as many bytes.
        let bytes = unsafe { bytes((*parameters).cubin, (*parameters).cubin_size) }?;
        watch()?;
        let crc = of_bytes(bytes);
        // SAFETY: `parameters` is checked.
        unsafe { (*parameters).crc = crc };
        Ok(())
    })
}

/// The bytes of the caller's.
///
/// # Safety
///
/// `cubin` is null or leads to `size` bytes, which do not change meanwhile.
unsafe fn bytes<'a>(cubin: *const u8, size: usize) -> Answer<&'a [u8]> {
    if cubin.is_null() || size == 0 || size > isize::MAX as usize {
        return Err(CUptiResult::INVALID_PARAMETER);
    }
    // SAFETY: `cubin` is not null, so that it leads to `size` bytes.
    Ok(unsafe { core::slice::from_raw_parts(cubin, size) })
}

/// The file and the line of an instruction of code that the process has loaded.
///
/// # Safety
///
/// `parameters` is null or leads to the structure, whose `cubin` is null or leads to `cubin_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetSassToSourceCorrelation(
    parameters: *mut GetSassToSourceCorrelationParams,
) -> CUptiResult {
    with_gputrail(|| {
        // SAFETY: `parameters` is null or leads to the structure.
        let parameters = unsafe { super::checked(parameters) }?;
        // SAFETY: `parameters` is checked.
        let given = unsafe { *parameters };
        if given.function.is_null() {
            return Err(CUptiResult::INVALID_PARAMETER);
        }
        // SAFETY: `cubin` is null or leads to as many bytes.
        let crc = of_bytes(unsafe { bytes(given.cubin, given.cubin_size) }?);
        let object = {
            let cubins = lock(&CUBINS);
            cubins
                .as_ref()
                .and_then(|cubins| cubins.objects.get(&crc).copied())
        };
        let object = object.ok_or(CUptiResult::INVALID_MODULE)?;
        let line = tool::sampling::source_line(object, given.offset);
        let line = line.map_err(|_| CUptiResult::NOT_SUPPORTED)?;
        let path = file(line.file).ok_or(CUptiResult::NOT_SUPPORTED)?;
        let path = Path::new(&path);
        let text = |part: Option<&std::ffi::OsStr>| {
            let part = part.unwrap_or_default().to_string_lossy();
            duplicate(&part)
        };
        // SAFETY: `parameters` is checked.
        unsafe {
            (*parameters).line = line.line;
            (*parameters).file = text(path.file_name());
            (*parameters).folder = text(path.parent().map(Path::as_os_str));
        }
        Ok(())
    })
}

fn file(id: StringId) -> Option<String> {
    id.is_some().then(|| tool::string(id)).flatten()
}

/// A text in memory that C's `free` takes; null if there is none left.
pub fn duplicate(text: &str) -> *mut c_char {
    let bytes: Vec<u8> = text.bytes().filter(|byte| *byte != 0).collect();
    // Without zeros within, it is a text of C.
    let text = CString::new(bytes).unwrap_or_default();
    // SAFETY: a text that ends with a 0.
    unsafe { libc::strdup(text.as_ptr()) }
}
