//! The structures of rocprofiler-sdk as they are declared here, compared with AMD's headers where those are installed: a C compiler
//! says where the fields lie. Nothing of the headers is in the repository.

use std::path::PathBuf;
use std::process::Command;

use gputrail_harness::machine::{Need, skipped};
use gputrail_harness::needs;
use gputrail_harness::program::run;
use gputrail_rocprofiler::Layout;

use crate::command::TestDir;

/// Folders for the compiler's search, if they are not those of a package of Python's, with colons between them.
const FOLDERS: &str = "GPUTRAIL_TEST_ROCPROFILER_HEADERS";

/// The headers that declare the structures.
const HEADERS: [&str; 2] = [
    "rocprofiler-sdk/rocprofiler.h",
    "rocprofiler-sdk/registration.h",
];

/// Fields that AMD declares as bits, which have no place of their own.
const BITS: [(&str, &str); 3] = [
    ("rocprofiler_pc_sampling_record_host_trap_v0_t", "wave"),
    ("rocprofiler_pc_sampling_record_stochastic_v0_t", "issue"),
    ("", "flags"),
];
/// Fields that headers before 1.3 do not have, or have otherwise.
const SINCE_1_3: [&str; 3] = ["spm_support", "reserved_padding", "memory_counters"];

/// The folders of Python's packages.
fn packages() -> Vec<PathBuf> {
    let python = "import site; print(*site.getsitepackages(), site.getusersitepackages(), sep=':')";
    let mut command = Command::new("python3");
    let Ok(output) = command.args(["-c", python]).output() else {
        return Vec::new();
    };
    std::env::split_paths(String::from_utf8_lossy(&output.stdout).trim()).collect()
}

/// The folders with AMD's headers: `triton` 3.9 has them.
fn headers() -> Vec<PathBuf> {
    if let Some(folders) = std::env::var_os(FOLDERS) {
        return std::env::split_paths(&folders).collect();
    }
    let triton = "triton/backends/amd/include";
    let mut folders = packages().into_iter().map(|folder| folder.join(triton));
    let found = folders.find(|folder| folder.join(HEADERS[0]).exists());
    found.into_iter().collect()
}

/// A program that prints the bytes of a structure and the places of fields.
fn program(layout: &Layout, fields: &[&str]) -> String {
    let include: String = HEADERS
        .iter()
        .map(|name| format!("#include <{name}>\n"))
        .collect();
    let of = |field: &&str| {
        format!(
            "    printf(\" %zu\", offsetof({}, {field}));\n",
            layout.name
        )
    };
    let fields: String = fields.iter().map(of).collect();
    format!(
        "#include <stddef.h>\n#include <stdio.h>\n{include}int main(void) {{\n    printf(\"%zu\", sizeof({}));\n{fields}    return 0;\n}}\n",
        layout.name
    )
}

#[test]
fn structures_are_declared_as_amds_headers_declare_them() {
    needs!(structures_are_declared_as_amds_headers_declare_them: Need::Program("cc"));
    let folders = headers();
    if folders.is_empty() {
        let why =
            format!("AMD's headers are not installed (pip install triton==3.9.0, or {FOLDERS})");
        return skipped("structures_are_declared_as_amds_headers_declare_them", &why);
    }
    let dir = TestDir::new();
    let (source, compiled) = (dir.join("layout.c"), dir.join("layout"));
    let mut compared = 0;
    for layout in gputrail_rocprofiler::layouts() {
        let is_bits = |field: &str| {
            let of = |(name, bits): &(&str, &str)| {
                *bits == field && (name.is_empty() || *name == layout.name)
            };
            BITS.iter().any(of)
        };
        let fields = layout.fields.iter().filter(|(field, _)| !is_bits(field));
        let fields: Vec<(&str, usize)> = fields
            .map(|(field, offset)| (field.trim_end_matches('_'), *offset))
            .collect();
        let compile = |fields: &[&str]| {
            std::fs::write(&source, program(layout, fields)).unwrap();
            let mut compiler = Command::new("cc");
            compiler.args(["-std=gnu11", "-w", "-D__HIP_PLATFORM_AMD__=1"]);
            compiler.args(
                folders
                    .iter()
                    .flat_map(|folder| [PathBuf::from("-I"), folder.clone()]),
            );
            run(compiler.arg("-o").arg(&compiled).arg(&source))
        };
        let names: Vec<&str> = fields.iter().map(|(field, _)| *field).collect();
        let all = compile(&names);
        let is_old = all.code() != 0 || names.contains(&"memory_counters");
        let known: Vec<(&str, usize)> = match is_old {
            true => fields
                .iter()
                .copied()
                .filter(|(field, _)| !SINCE_1_3.contains(field))
                .collect(),
            false => fields.clone(),
        };
        if is_old {
            let names: Vec<&str> = known.iter().map(|(field, _)| *field).collect();
            let ended = compile(&names);
            assert_eq!(ended.code(), 0, "{}: {}", layout.name, ended.stderr);
        }
        let said = run(&mut Command::new(&compiled)).well().text();
        let said: Vec<usize> = said.split(' ').map(|word| word.parse().unwrap()).collect();
        if !is_old {
            assert_eq!(said[0], layout.size, "{}", layout.name);
        }
        for ((field, offset), said) in known.iter().zip(&said[1..]) {
            assert_eq!(offset, said, "{}.{field}", layout.name);
        }
        compared += known.len();
    }
    assert!(compared > 200, "{compared}");
}
