//! The library that programs load is kept in the user's cache: it is used again unless it has changed, and recording
//! also works without a cache.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::pocl::Driver;

use crate::command::{TestDir, kernels, well};

const NEEDS: [Need; 3] = [Need::Pocl, Need::OpenClToolchain, Need::TraceProcessor];

/// Records a program with its cache in `cache`, and checks that the trace is complete.
fn record(dir: &TestDir, lives: &Path, cache: &Path) {
    let mut command = dir.record(Driver::Basic, lives, &["5"]);
    well(command.env("XDG_CACHE_HOME", cache));
    assert_eq!(kernels(&mut dir.trace(), "work"), 5);
}

/// The injected library in the cache. The only other file there is the reader of source lines.
fn kept(cache: &Path) -> PathBuf {
    let files = fs::read_dir(cache.join("gputrail")).unwrap();
    let size = |path: &PathBuf| fs::metadata(path).unwrap().len();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 2, "{files:?}");
    files.sort_by_key(size);
    files.pop().unwrap()
}

#[test]
fn the_library_is_written_once_and_anew_where_it_is_damaged() {
    needs!(the_library_is_written_once_and_anew_where_it_is_damaged: NEEDS[0], NEEDS[1], NEEDS[2]);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    let cache = dir.join("cache");
    well(&mut dir.gputrail(["library", "carried.so"]));
    let carried = fs::read(dir.join("carried.so")).unwrap();

    record(&dir, &lives, &cache);
    let file = kept(&cache);
    let inode = fs::metadata(&file).unwrap().ino();
    assert!(fs::read(&file).unwrap() == carried, "it is what is carried");
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    assert_eq!(mode(&file) & 0o022, 0);
    record(&dir, &lives, &cache);
    assert_eq!(
        fs::metadata(kept(&cache)).unwrap().ino(),
        inode,
        "used again"
    );

    let mut damaged = carried.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    for bytes in [&damaged, &carried[..middle].to_vec(), &Vec::new()] {
        fs::write(&file, bytes).unwrap();
        record(&dir, &lives, &cache);
        assert!(
            fs::read(kept(&cache)).unwrap() == carried,
            "it is whole again"
        );
    }
}

#[test]
fn recording_works_without_a_cache() {
    needs!(recording_works_without_a_cache: NEEDS[0], NEEDS[1], NEEDS[2]);
    let dir = TestDir::new();
    let lives = dir.program("lives");
    // A file, a directory of others, and a path that does not exist.
    let file = dir.join("file");
    fs::write(&file, "").unwrap();
    let open = dir.join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    for cache in [&file, &open, &PathBuf::from("/proc/no-such-place")] {
        record(&dir, &lives, cache);
    }
    assert!(
        !open.join("gputrail").exists(),
        "nothing for others to exchange"
    );

    let mut command = dir.record(Driver::Basic, &lives, &["5"]);
    well(command.env_remove("XDG_CACHE_HOME").env_remove("HOME"));
    assert_eq!(kernels(&mut dir.trace(), "work"), 5);
}
