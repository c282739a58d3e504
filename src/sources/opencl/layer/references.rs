//! Tracking of the program's objects for as long as the program holds references.
//!
//! The program's own references are counted, so that the last release is known without a query. An object that is not
//! tracked (it was created before the recording, or by a function that is not observed) is looked up in the runtime
//! when it is first used.

use super::ffi::*;
use super::handles::ObjectTable;
use bytemuck::Pod;

/// A kind of object that is reference-counted.
pub(super) trait ReferenceCounted: Copy + Into<u64> + 'static {
    type Info: Pod;

    /// The tracked objects.
    fn known() -> &'static ObjectTable<Self::Info>;

    /// The number of the program's references.
    fn references(info: &mut Self::Info) -> &mut u32;
}

/// Declares a [`ReferenceCounted`].
macro_rules! object {
    ($handle:ident, $info:ident, $table:ident) => {
        pub(super) static $table: ObjectTable<$info> = ObjectTable::new();

        impl ReferenceCounted for $handle {
            type Info = $info;

            fn known() -> &'static ObjectTable<$info> {
                &$table
            }

            fn references(info: &mut $info) -> &mut u32 {
                &mut info.references
            }
        }
    };
}
pub(super) use object;

/// Counts a reference that the program releases by `call`. For the last one, `going` is called, and the tracked state
/// is returned.
///
/// The count is decremented before the call: after it, the handle may belong to another object.
pub(super) fn released<O: ReferenceCounted>(
    object: O,
    going: impl FnOnce(&O::Info),
    call: impl FnOnce() -> cl_int,
) -> (cl_int, Option<O::Info>) {
    let last = O::known().update(object, |info| {
        let references = O::references(info);
        *references = references.saturating_sub(1);
        *references == 0
    });
    let gone = if last == Some(true) {
        O::known().remove(object)
    } else {
        None
    };
    if let Some(info) = &gone {
        going(info);
    }
    let result = call();
    if result != CL_SUCCESS {
        match gone {
            Some(mut info) => {
                *O::references(&mut info) += 1;
                O::known().insert(object, info);
            }
            None => drop(O::known().update(object, |info| *O::references(info) += 1)),
        }
        return (result, None);
    }
    (result, gone)
}
