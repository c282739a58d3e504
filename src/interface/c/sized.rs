//! Structures that begin with their size: the tool's and the library's may be of different versions.

/// A structure of the API that begins with its size.
///
/// # Safety
///
/// `repr(C)`, begins with a `usize` that is the size of the structure, without padding, and any bytes are a valid
/// value of it.
pub unsafe trait SizedStruct: Copy {
    /// Its name in C.
    const NAME: &'static str;
    /// The size that it had in the first version.
    const FIRST: usize;
    /// All zeros, but for its size.
    fn blank() -> Self {
        // SAFETY: any bytes are valid.
        let mut blank: Self = unsafe { std::mem::zeroed() };
        // SAFETY: it begins with its size.
        unsafe { (&raw mut blank).cast::<usize>().write(size_of::<Self>()) };
        blank
    }
}

macro_rules! sized {
    ($type:ty, $name:literal, $first:expr) => {
        const _: () =
            assert!(std::mem::offset_of!($type, size) == 0 && $first <= size_of::<$type>());
        // SAFETY: `repr(C)`, of integers, pointers and functions that may be null, as declared beside this.
        unsafe impl crate::c::sized::SizedStruct for $type {
            const NAME: &'static str = $name;
            const FIRST: usize = $first;
        }
    };
}
pub(super) use sized;
