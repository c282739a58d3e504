//! Links the library so that dlclose leaves it where it is: the runtime keeps pointers into it. Its soname lets a tool
//! that was linked with any copy of it find the one that is in the process already.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libgputrail.so.0");
    }
}
