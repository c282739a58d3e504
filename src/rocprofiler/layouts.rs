//! Declares structures, and lists where their fields lie.

/// A structure as it lies in memory, for comparisons with AMD's headers.
#[derive(Copy, Clone, Debug)]
pub struct Layout {
    /// Its name in the headers.
    pub name: &'static str,
    /// Its bytes.
    pub size: usize,
    /// The names of its fields in the headers, and their offsets.
    pub fields: &'static [(&'static str, usize)],
}

/// Structures, with their names in AMD's headers. The fields have AMD's names. Those that are `growing` begin with their size.
macro_rules! layouts {
    ($list:ident: $($(#[$what:meta])* $kind:ident $type:ident = $name:literal { $($field:ident: $of:ty,)* })*) => {
        $($(#[$what])*
        #[allow(missing_docs)]
        #[derive(Copy, Clone, Debug)]
        #[repr(C)]
        pub struct $type {
            $(pub $field: $of,)*
        }
        layouts!(@ $kind $type);)*

        /// Where the fields of the structures of this module lie.
        pub const $list: &[$crate::Layout] = &[$($crate::Layout {
            name: $name,
            size: size_of::<$type>(),
            fields: &[$((stringify!($field), core::mem::offset_of!($type, $field)),)*],
        },)*];
    };
    (@ growing $type:ident) => {
        // SAFETY: the first field is the size, and the others have numbers and pointers that are not followed.
        unsafe impl $crate::Growing for $type {}
    };
    (@ fixed $type:ident) => {};
}
pub(crate) use layouts;
