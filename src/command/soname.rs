//! The name that a shared library has of itself (`DT_SONAME`), by which programs that are linked with it find it.

use anyhow::{Context, Result, bail};

/// `library`, whose name is `from`, with the name `to`, which is no longer: the text is overwritten in its place.
pub fn renamed(library: &[u8], from: &str, to: &str) -> Result<Vec<u8>> {
    let mut renamed = library.to_vec();
    if from == to {
        return Ok(renamed);
    }
    let place = place_of_name(library).context("no ELF file of 64 bits with a DT_SONAME")?;
    let text = renamed.get_mut(place..).unwrap_or_default();
    let (is_it, fits) = (text.starts_with(from.as_bytes()), to.len() <= from.len());
    match text.get_mut(..from.len()) {
        Some(text) if is_it && fits => {
            text.fill(0);
            text[..to.len()].copy_from_slice(to.as_bytes());
            Ok(renamed)
        }
        _ => bail!("its name is not {from}, or has no room for {to}"),
    }
}

/// The place of the text in the file.
fn place_of_name(file: &[u8]) -> Option<usize> {
    const LOADED: u32 = 1;
    const DYNAMIC: u32 = 2;
    const STRINGS: u64 = 5;
    const NAME: u64 = 14;
    // 64 bits, the lower byte first.
    file.starts_with(b"\x7fELF\x02\x01").then_some(())?;
    let count = u16::from_le_bytes(bytes(file, 56)?);
    let headers = long(file, 32)?;
    let segments: Vec<(u32, [u64; 3])> = (0..u64::from(count))
        .map_while(|number| {
            let header = usize::try_from(headers.checked_add(number * 56)?).ok()?;
            let kind = u32::from_le_bytes(bytes(file, header)?);
            // The place in the file and in memory, and the size.
            let at = |offset| long(file, header.checked_add(offset)?);
            Some((kind, [at(8)?, at(16)?, at(32)?]))
        })
        .collect();
    let [start, _, size] = segments.iter().find(|(kind, _)| *kind == DYNAMIC)?.1;
    let start = usize::try_from(start).ok()?;
    let end = start.checked_add(usize::try_from(size).ok()?)?;
    let entries = file.get(start..end)?.chunks_exact(16);
    let value = |tag| {
        let mut entries = entries.clone();
        let entry = entries.find(|entry| long(entry, 0) == Some(tag))?;
        long(entry, 8)
    };
    let address = value(STRINGS)?.checked_add(value(NAME)?)?;
    let place = segments.iter().find_map(|(kind, [place, from, size])| {
        let offset = address.checked_sub(*from).filter(|offset| offset < size)?;
        (*kind == LOADED)
            .then(|| place.checked_add(offset))
            .flatten()
    });
    usize::try_from(place?).ok()
}

fn bytes<const SIZE: usize>(file: &[u8], at: usize) -> Option<[u8; SIZE]> {
    file.get(at..at.checked_add(SIZE)?)?.try_into().ok()
}

fn long(file: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes(file, at)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link_library::file;
    use proptest::prelude::*;

    #[test]
    fn a_library_gets_another_name_of_at_most_the_same_length() {
        let made = |name| file(name, &["function"], "libother.so").unwrap();
        let renamed = |to| renamed(&made("libcupti.so.10.0"), "libcupti.so.10.0", to);
        assert_eq!(
            renamed("libcupti.so.11.8").unwrap(),
            made("libcupti.so.11.8")
        );
        let shorter = renamed("libcupti.so.12").unwrap();
        let name = b"\0libcupti.so.12\0\0\0libother.so\0";
        assert!(shorter.windows(name.len()).any(|part| part == name));
        assert!(renamed("libcupti.so.10.0.1").is_err());
        assert!(super::renamed(&made("libcupti.so.1"), "libcupti.so.2", "libcupti.so.3").is_err());
    }

    proptest! {
        #[test]
        fn no_file_ends_the_command(mut bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let head = b"\x7fELF\x02\x01";
            let count = bytes.len().min(head.len());
            bytes[..count].copy_from_slice(&head[..count]);
            let _ = renamed(&bytes, "a", "b");
        }
    }
}
