//! A table by numbers that mostly follow each other, such as correlation ids.

use gputrail_record::number_map::NumberMap;

/// Entries of a page.
const PAGE: u64 = 16;

/// Values by numbers. Those of 16 numbers stand together, so that numbers that follow each other in time are found where the one
/// before was; in a hash table each is somewhere else. A number by itself takes some 300 bytes.
#[derive(Debug)]
pub(super) struct Pages<V> {
    places: NumberMap<u64, u32>,
    pages: Vec<[V; PAGE as usize]>,
    /// The page that was found last.
    latest: (u64, u32),
}

impl<V> Default for Pages<V> {
    fn default() -> Pages<V> {
        Pages {
            places: NumberMap::default(),
            pages: Vec::new(),
            latest: (u64::MAX, 0),
        }
    }
}

impl<V: Copy + Default> Pages<V> {
    fn place(&self, number: u64) -> Option<usize> {
        let page = number / PAGE;
        let place = match self.latest {
            (latest, place) if latest == page => place,
            _ => *self.places.get(&page)?,
        };
        Some(place as usize)
    }

    /// The value of a number; none if no number near it has one.
    pub fn get(&self, number: u64) -> Option<&V> {
        let place = self.place(number)?;
        Some(&self.pages[place][(number % PAGE) as usize])
    }

    /// As [`Pages::get`].
    pub fn get_mut(&mut self, number: u64) -> Option<&mut V> {
        let place = self.place(number)?;
        self.latest = (number / PAGE, place as u32);
        Some(&mut self.pages[place][(number % PAGE) as usize])
    }

    /// The value of a number, which is the default one if it has none.
    pub fn entry(&mut self, number: u64) -> &mut V {
        let place = self.place(number).unwrap_or_else(|| {
            self.pages.push([V::default(); PAGE as usize]);
            let place = self.pages.len() - 1;
            self.places.insert(number / PAGE, place as u32);
            place
        });
        self.latest = (number / PAGE, place as u32);
        &mut self.pages[place][(number % PAGE) as usize]
    }

    /// All values, also those of numbers near to others.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.pages.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_values_of_their_own() {
        let mut pages = Pages::default();
        let numbers = [0, 1, 15, 16, 17, 1 << 40, u64::MAX, u64::MAX - 16];
        for (value, number) in (1..).zip(numbers) {
            assert!(matches!(pages.get(number), None | Some(0)));
            *pages.entry(number) = value;
        }
        for (value, number) in (1..).zip(numbers) {
            assert_eq!(pages.get(number), Some(&value));
            assert_eq!(pages.get_mut(number), Some(&mut value.clone()));
            assert_eq!(*pages.entry(number), value);
        }
        assert_eq!(pages.get(2), Some(&0));
        assert_eq!(pages.get(99), None);
        assert_eq!(pages.values().filter(|value| **value != 0).count(), 8);
    }
}
