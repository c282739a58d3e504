//! Devices of the machine. They are there before the program makes a context: who looks for one that is not known by then has
//! OpenCL asked for its devices.

use gputrail_tool::find_agents;

/// The answer of `look`, which is called again with the devices of OpenCL if it finds nothing.
///
/// # Errors
///
/// An error of `look`.
pub fn sought<T, E>(look: impl Fn() -> Result<Option<T>, E>) -> Result<Option<T>, E> {
    if let Some(found) = look()? {
        return Ok(Some(found));
    }
    // Without OpenCL there are none to find.
    let _ = find_agents();
    look()
}

/// The devices of a list, which is made again with those of OpenCL if it is empty.
///
/// # Errors
///
/// An error of `list`.
pub fn any<T, E>(list: impl Fn() -> Result<Vec<T>, E>) -> Result<Vec<T>, E> {
    let found = sought(|| Ok(Some(list()?).filter(|all| !all.is_empty())));
    Ok(found?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_device_that_is_not_known_is_looked_for_twice() {
        let looked = Cell::new(0);
        let look = || {
            looked.set(looked.get() + 1);
            Ok::<_, ()>((looked.get() == 2).then_some("found"))
        };
        assert_eq!(sought(look), Ok(Some("found")));
        assert_eq!(any(|| Ok::<_, ()>(vec![1])), Ok(vec![1]));
        assert_eq!(any(|| Ok::<_, ()>(Vec::<u8>::new())), Ok(vec![]));
        assert_eq!(sought(|| Err::<Option<u8>, _>("failed")), Err("failed"));
    }
}
