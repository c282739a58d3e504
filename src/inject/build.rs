//! Links the library so that dlclose does not unload it: the runtime keeps pointers into it. Its soname lets a tool
//! that was linked with any copy of it find the copy that is already in the process. Its own functions are found in itself: a
//! process may have two copies of it, and the one that was loaded first exports functions of the same names.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libgputrail.so.0");
    }
}
