//! Texts of C, of bytes or of wide characters, which end with a zero.

use core::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Maximum length of a wide text, in characters.
const MAX_WIDE: usize = 1 << 16;

/// A text that ends with a zero byte. Its length is unknown until it is read.
#[derive(Copy, Clone, Debug)]
pub struct CText<'a>(NonNull<c_char>, PhantomData<&'a CStr>);

impl<'a> CText<'a> {
    /// # Safety
    ///
    /// The text at `start` ends with a zero byte, and lives and stays as it is for `'a`.
    #[inline]
    pub unsafe fn new(start: NonNull<c_char>) -> CText<'a> {
        CText(start, PhantomData)
    }

    /// The text.
    pub fn to_c_str(self) -> &'a CStr {
        // SAFETY: promised at construction.
        unsafe { CStr::from_ptr(self.0.as_ptr()) }
    }

    /// Whether both texts are equal. Reads no further than the first difference.
    #[inline]
    pub fn equals(self, other: &CStr) -> bool {
        // SAFETY: both end with a zero byte.
        unsafe { libc::strcmp(self.0.as_ptr(), other.as_ptr()) == 0 }
    }

    /// Whether the text begins with `beginning`. Reads no further than the first difference.
    #[inline]
    pub fn begins_with(self, beginning: &[u8]) -> bool {
        let Some(first) = beginning.first() else {
            return true;
        };
        let start = self.0.as_ptr();
        // SAFETY: the text ends with a zero byte, at which the comparison stops.
        unsafe {
            start.cast::<u8>().read() == *first
                && libc::strncmp(start, beginning.as_ptr().cast(), beginning.len()) == 0
        }
    }

    /// A number that is the same for texts at the same address.
    #[inline]
    pub fn address_hash(self) -> usize {
        let address = self.0.as_ptr() as u64;
        (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
    }
}

/// A text of wide characters, 32 bits each, that ends with a zero.
#[derive(Copy, Clone, Debug)]
pub struct WideText<'a>(NonNull<u32>, PhantomData<&'a [u32]>);

impl WideText<'_> {
    /// # Safety
    ///
    /// As for [`CText::new`], with a zero character at the end.
    pub unsafe fn new(start: NonNull<u32>) -> Self {
        WideText(start, PhantomData)
    }

    /// The text. Characters that are none are replaced.
    pub fn to_text(self) -> String {
        // SAFETY: promised at construction: all characters up to the zero can be read.
        let at = |place: usize| unsafe { self.0.add(place).read_unaligned() };
        (0..MAX_WIDE)
            .map(at)
            .take_while(|character| *character != 0)
            .map(|character| char::from_u32(character).unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    }
}
