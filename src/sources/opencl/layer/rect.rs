//! Rectangular regions: width in bytes, rows, slices.

/// The size of a region in bytes; in pixels for images.
///
/// # Safety
///
/// `region` is null or leads to three numbers.
pub unsafe fn bytes(region: *const usize) -> usize {
    if region.is_null() {
        return 0;
    }
    // SAFETY: `region` is not null, so that it leads to three numbers.
    let [width, rows, slices] = unsafe { region.cast::<[usize; 3]>().read() };
    width.wrapping_mul(rows).wrapping_mul(slices)
}

/// The offset of a region's first byte; pitches of 0 mean that rows and slices are contiguous.
///
/// # Safety
///
/// `origin` and `region` are null or lead to three numbers each.
pub unsafe fn offset(
    origin: *const usize,
    region: *const usize,
    row: usize,
    slice: usize,
) -> usize {
    if origin.is_null() || region.is_null() {
        return 0;
    }
    // SAFETY: `origin` and `region` are not null, so that they lead to three numbers each.
    let ([x, y, z], [width, rows, _]) = unsafe {
        let (origin, region) = (origin.cast::<[usize; 3]>(), region.cast::<[usize; 3]>());
        (origin.read(), region.read())
    };
    let row = if row == 0 { width } else { row };
    let slice = if slice == 0 {
        row.wrapping_mul(rows)
    } else {
        slice
    };
    x.wrapping_add(y.wrapping_mul(row))
        .wrapping_add(z.wrapping_mul(slice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rectangles_offset_follows_its_pitches() {
        let (origin, region) = ([4, 2, 1], [16, 8, 2]);
        // SAFETY: three numbers each.
        unsafe {
            assert_eq!(bytes(region.as_ptr()), 256);
            assert_eq!(
                offset(origin.as_ptr(), region.as_ptr(), 0, 0),
                4 + 2 * 16 + 16 * 8
            );
            assert_eq!(
                offset(origin.as_ptr(), region.as_ptr(), 100, 1000),
                4 + 200 + 1000
            );
        }
    }
}
