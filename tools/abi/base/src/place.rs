//! Memory of the caller's for an answer.

use std::fmt;
use std::ptr::NonNull;

/// A place for an answer.
#[derive(Copy, Clone)]
pub struct Place<T>(NonNull<T>);

/// The reason why an answer cannot be written to a place.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// A null pointer.
    Null,
    /// A misaligned pointer.
    Misaligned,
}

impl fmt::Display for Misplaced {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Misplaced::Null => "is null",
            Misplaced::Misaligned => "is not aligned",
        })
    }
}

impl<T> Place<T> {
    /// The place that the caller gave.
    ///
    /// # Errors
    ///
    /// The place is null or misaligned.
    ///
    /// # Safety
    ///
    /// `place` is null, or can be written to until the answer has been. If it is for [`get`](Place::get), too, it holds a
    /// value.
    pub unsafe fn new(place: *mut T) -> Result<Place<T>, Misplaced> {
        let place = NonNull::new(place).ok_or(Misplaced::Null)?;
        let is_aligned = place.is_aligned();
        is_aligned
            .then_some(Place(place))
            .ok_or(Misplaced::Misaligned)
    }

    /// Writes the answer.
    pub fn put(&self, answer: T) {
        // SAFETY: the promise of `new`: the place can be written to.
        unsafe { self.0.write(answer) };
    }
}

impl<T: Copy> Place<T> {
    /// The value that the caller has put there.
    pub fn get(&self) -> T {
        // SAFETY: the promise of `new`: the place holds a value.
        unsafe { self.0.read() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_go_to_places_that_are_neither_null_nor_misaligned() {
        let mut words = [7_u32, 8];
        let first = words.as_mut_ptr();
        // SAFETY: null, an odd address that is not used, and a number.
        let [none, odd, place] = unsafe {
            [
                Place::<u32>::new(std::ptr::null_mut()),
                Place::new(first.wrapping_byte_add(1)),
                Place::new(first),
            ]
        };
        assert_eq!(none.err(), Some(Misplaced::Null));
        assert_eq!(odd.err(), Some(Misplaced::Misaligned));
        let place = place.unwrap();
        assert_eq!(place.get(), 7);
        place.put(9);
        assert_eq!(words, [9, 8]);
    }
}
