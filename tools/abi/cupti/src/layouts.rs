//! The layouts and numbers of the headers in `include/`: against the structures of this crate, and against NVIDIA's own headers
//! of several versions.

use crate::activity::{ActivityKind, Field, fields, size_in_version};
use crate::cuda::functions;
use crate::layout::Layout;
use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::program::run;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The value of `CUPTI_GPUTRAIL_LAYOUT` of a layout.
fn number_of(layout: Layout) -> u32 {
    10 + layout as u32
}

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

/// The headers that are compared.
const INCLUDES: &str = "#include <cuda.h>\n#include <cupti.h>\n#if __has_include(<cupti_pcsampling.h>)\n\
    #include <cupti_pcsampling.h>\n#endif\n";

/// A folder for a program, with a header of C++ that CUDA's includes without need, and the compiler with the `includes` in its path.
fn compiler(includes: &[PathBuf], layout: Layout) -> (tempfile::TempDir, Command) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("string"), "").unwrap();
    let mut compiler = Command::new("cc");
    compiler.arg(format!("-DCUPTI_GPUTRAIL_LAYOUT={}", number_of(layout)));
    for include in includes.iter().map(PathBuf::as_path).chain([folder.path()]) {
        compiler.arg("-I").arg(include);
    }
    (folder, compiler)
}

/// The declarations of headers: structures with the names of their fields, names of types, enumerators and functions.
#[derive(Default)]
struct Declared {
    structures: BTreeMap<String, Vec<String>>,
    types: Vec<String>,
    numbers: Vec<String>,
    functions: Vec<String>,
}

/// The name of CUPTI's function that a declaration is of.
fn function(declaration: &str) -> Option<String> {
    let name = declaration.split('(').next()?.split_whitespace().last()?;
    let is_cuptis = name.starts_with("cupti") && declaration.contains('(');
    is_cuptis.then(|| name.to_owned())
}

/// The last word of a declaration, without the length of an array and the value of an enumerator.
fn name(declaration: &str) -> String {
    let text = declaration
        .split(['[', '=', ':'])
        .next()
        .unwrap_or_default();
    let is_in_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = text.rsplit(|c: char| !is_in_word(c));
    let last = words.find(|word| !word.is_empty());
    last.unwrap_or_default().to_owned()
}

impl Declared {
    fn of(includes: &[PathBuf], layout: Layout) -> Declared {
        let (folder, mut compiler) = compiler(includes, layout);
        let source = folder.path().join("all.c");
        std::fs::write(&source, INCLUDES).unwrap();
        let text = run(compiler.args(["-E", "-P"]).arg(&source)).well().text();
        let mut found = Declared::default();
        // The kind of what is declared, outermost first.
        let mut open: Vec<bool> = Vec::new();
        let (mut declaration, mut fields) = (String::new(), Vec::new());
        // Whether a structure or enumeration has ended, whose name follows.
        let mut ended = None;
        for c in text.chars() {
            match (c, open.len()) {
                ('{', depth) => {
                    if depth == 0 {
                        fields.clear();
                    }
                    open.push(declaration.contains("enum"));
                    declaration.clear();
                }
                ('}', depth) => {
                    let is_enum = open.pop().unwrap_or_default();
                    if depth == 1 {
                        if is_enum {
                            fields.push(name(&declaration));
                        }
                        ended = Some(is_enum);
                    }
                    declaration.clear();
                }
                (';', 0) => {
                    let is_cuptis = |one: &String| one.starts_with("CUPTI_");
                    match ended.take() {
                        Some(true) => {
                            found.numbers.extend(fields.drain(..).filter(is_cuptis));
                            found.types.push(name(&declaration));
                        }
                        Some(false) => {
                            let of = std::mem::take(&mut fields);
                            found.types.push(name(&declaration));
                            found.structures.insert(name(&declaration), of);
                        }
                        // Another name of a structure.
                        None if declaration.contains("typedef") => {
                            found.types.push(name(&declaration));
                        }
                        None => found.functions.extend(function(&declaration)),
                    }
                    declaration.clear();
                }
                (';', 1) | (',', 1) => {
                    if c == ';' || open[0] {
                        fields.push(name(&declaration));
                        declaration.clear();
                    }
                }
                _ => declaration.push(c),
            }
        }
        let is_cuptis = |one: &String| one.starts_with("CUpti_") || one.ends_with("_params");
        found
            .structures
            .retain(|one, of| is_cuptis(one) && !of.is_empty());
        found
    }
}

/// What a compiler says of the headers that `includes` finds: lines with a name and its numbers.
fn ask(includes: &[PathBuf], layout: Layout, body: &str) -> BTreeMap<String, String> {
    let (folder, mut compiler) = compiler(includes, layout);
    let (source, program) = (folder.path().join("ask.c"), folder.path().join("ask"));
    let text = format!(
        "#include <stddef.h>\n#include <stdio.h>\n{INCLUDES}\
         #define FIELD(s, f) printf(#s \".\" #f \" %zu %zu\\n\", offsetof(s, f), sizeof ((s *)0)->f)\n\
         #define SIZE(s) printf(#s \" %zu\\n\", sizeof(s))\n#define NUMBER(n) printf(#n \" %lld\\n\", (long long)n)\n\
         int main(void) {{\n{body}return 0;\n}}\n"
    );
    std::fs::write(&source, text).unwrap();
    run(compiler.arg("-w").arg("-o").arg(&program).arg(&source)).well();
    let text = run(&mut Command::new(&program)).well().text();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .map(|(name, numbers)| (name.to_owned(), numbers.to_owned()))
        .collect()
}

/// The questions about structures.
fn questions<'a>(structures: impl Iterator<Item = (&'a String, &'a Vec<String>)>) -> String {
    let mut body = String::new();
    for (name, fields) in structures {
        body += &format!("SIZE({name});\n");
        // An anonymous union has no name.
        for field in fields.iter().filter(|field| !field.is_empty()) {
            body += &format!("FIELD({name}, {field});\n");
        }
    }
    body
}

/// Whether a field has no meaning. Versions have other names for some.
fn is_padding(field: &str) -> bool {
    field.starts_with("pad") || field.starts_with("reserved")
}

/// A name without what C and Rust write differently.
fn plain(name: &str) -> String {
    name.replace("r#", "").replace('_', "").to_lowercase()
}

#[test]
fn records_have_the_layouts_of_the_headers() {
    needs!(records_have_the_layouts_of_the_headers: Need::Program("cc"));
    for layout in Layout::ALL {
        let declared = Declared::of(&[include()], layout).structures;
        assert!(declared.len() > 160, "{:?}", declared.keys());
        let said = ask(&[include()], layout, &questions(declared.iter()));
        let mut checked = 0;
        let of_layout = |field: &Field| field.layouts.contains(&layout);
        for field in fields().into_iter().filter(of_layout) {
            let wanted = plain(&format!("cuptiactivity{}", field.structure));
            let found = declared.keys().find(|name| plain(name) == wanted);
            let name = found.unwrap_or_else(|| panic!("{} is in no header", field.structure));
            let mut of_c = declared[name].iter();
            let of_c = of_c.find(|one| plain(one) == plain(field.name));
            let numbers = |of_c: &str| -> Vec<usize> {
                let numbers = said[&format!("{name}.{of_c}")].split(' ');
                numbers.map(|number| number.parse().unwrap()).collect()
            };
            match of_c {
                Some(of_c) if !is_padding(of_c) => {
                    assert_eq!(numbers(of_c), [field.offset, field.bytes], "{name}.{of_c}");
                }
                // Padding, or a field of a later version where this one has padding.
                _ => {
                    let overlaps = |of_c: &String| {
                        let place = numbers(of_c);
                        place[0] < field.offset + field.bytes && field.offset < place[0] + place[1]
                    };
                    let mut used = declared[name].iter().filter(|one| !is_padding(one));
                    let hit = used.find(|one| overlaps(one));
                    assert_eq!(hit, None, "{name}: {}", field.name);
                }
            }
            assert_eq!(said[name], field.structure_bytes.to_string(), "{name}");
            checked += 1;
        }
        assert!(checked > 390, "{checked} fields");
    }
}

#[test]
fn pc_sampling_has_the_structures_of_its_header() {
    needs!(pc_sampling_has_the_structures_of_its_header: Need::Program("cc"));
    let declared = Declared::of(&[include()], Layout::Cuda13).structures;
    let said = ask(&[include()], Layout::Cuda13, &questions(declared.iter()));
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (structure, field, offset, bytes) in crate::pc_sampling::fields() {
        let place = places.entry(structure).or_default();
        let of_c = &declared[structure][*place];
        let expected = format!("{offset} {bytes}");
        assert_eq!(said[&format!("{structure}.{of_c}")], expected, "{field}");
        *place += 1;
    }
    assert_eq!(places.len(), 11);
    for (structure, fields) in places {
        assert_eq!(declared[structure].len(), fields, "{structure}");
    }
}

#[test]
fn parameters_lie_where_the_headers_have_them() {
    needs!(parameters_lie_where_the_headers_have_them: Need::Program("cc"));
    let mut body = String::new();
    let mut expected = BTreeMap::new();
    for function in functions::DRIVER.iter().chain(functions::RUNTIME) {
        let structure = format!("{}_params", function.name.to_str().unwrap());
        for (offset, parameter) in function.places() {
            let field = parameter.name.to_str().unwrap();
            body += &format!("FIELD({structure}, {field});\n");
            let place = format!("{offset} {}", parameter.of.bytes);
            expected.insert(format!("{structure}.{field}"), place);
        }
    }
    assert_eq!(ask(&[include()], Layout::Cuda13, &body), expected);
}

/// A field that earlier versions have as padding, and the structures.
const WAS_PADDING: (&[&str], &str) = (
    &["CUpti_ActivityMemset4", "CUpti_ActivityMemcpy6"],
    "isDeviceLaunched",
);

#[test]
fn structures_and_numbers_are_those_of_nvidias_headers() {
    needs!(structures_and_numbers_are_those_of_nvidias_headers: Need::Cupti, Need::Program("cc"));
    let installed = gputrail_harness::machine::tools().join("cupti");
    let cuda = installed.join("13.5.25/nvidia/cu13/include");
    for (layout, version) in [
        (Layout::Cuda10, "11.8.87/nvidia/cuda_cupti"),
        (Layout::Cuda11, "11.8.87/nvidia/cuda_cupti"),
        (Layout::Cuda12, "12.9.79/nvidia/cuda_cupti"),
        (Layout::Cuda13, "13.0.85/nvidia/cu13"),
        (Layout::Cuda13, "13.5.25/nvidia/cu13"),
    ] {
        let theirs = [installed.join(version).join("include"), cuda.clone()];
        let here = Declared::of(&[include()], layout);
        let there = Declared::of(&theirs, layout);
        let is_newest = version.starts_with("13.5");
        // A version has these otherwise than the one whose layout is compared with it.
        let changed: &[&str] = match (layout, is_newest) {
            (Layout::Cuda10, _) => &[
                "CUpti_ActivityNvLink2",
                "CUpti_ActivityNvLink3",
                "CUpti_GraphData",
                "CUpti_NvtxData",
            ],
            (Layout::Cuda13, false) => &[
                "CUpti_ActivityNvLink2",
                "CUpti_ActivityNvLink3",
                "CUpti_SubscriberParams",
            ],
            _ => &[],
        };
        let mut structures = here.structures;
        structures.retain(|name, _| {
            there.structures.contains_key(name) && !changed.contains(&name.as_str())
        });
        for (name, fields) in &mut structures {
            let later = |field: &str| {
                let (structures, was_padding) = WAS_PADDING;
                let is_it = structures.contains(&name.as_str()) && field == was_padding;
                is_it && !there.structures[name].iter().any(|one| one == field)
            };
            fields.retain(|field| !is_padding(field) && !later(field));
        }
        let mut body = questions(structures.iter());
        let mut numbers = 0;
        for number in here
            .numbers
            .iter()
            .filter(|one| there.numbers.contains(one))
        {
            // The number of kinds and the like grow from version to version.
            let grows = ["_COUNT", "_SIZE", "_FORCE_INT", "_UNKNOWN_LAST"];
            let counts = grows.iter().any(|end| number.ends_with(end));
            let compares_counts = number.ends_with("TRACE_CBID_SIZE")
                || number.ends_with("_KIND_COUNT")
                || number.ends_with("DOMAIN_SIZE")
                || number.ends_with("RESOURCE_SIZE");
            let is_same_version = layout != Layout::Cuda10 && !version.starts_with("13.0");
            if !counts || (compares_counts && is_same_version) {
                body += &format!("NUMBER({number});\n");
                numbers += 1;
            }
        }
        if layout != Layout::Cuda10 && !version.starts_with("13.0") {
            body += "NUMBER(CUPTI_API_VERSION);\n";
        }
        assert!(
            structures.len() > 80 && numbers > 700,
            "{} {numbers}",
            structures.len()
        );
        let ours = ask(&[include()], layout, &body);
        let answers = ask(&theirs, layout, &body);
        for (name, numbers) in &ours {
            assert_eq!(answers[name], *numbers, "{name} in {version}");
        }
    }
}

/// Whether the headers here leave a name out: functions of CUDA have callback ids by their numbers as well, and no record has fields that the
/// program chooses.
fn is_left_out(name: &str) -> bool {
    name.contains("_TRACE_CBID_") || name.ends_with("FieldIds")
}

#[test]
fn nothing_that_nvidias_headers_declare_is_missing() {
    needs!(nothing_that_nvidias_headers_declare_is_missing: Need::Cupti, Need::Program("cc"));
    let installed = gputrail_harness::machine::tools().join("cupti");
    let cuda = installed.join("13.5.25/nvidia/cu13/include");
    for (layout, version) in [
        (Layout::Cuda11, "11.8.87/nvidia/cuda_cupti"),
        (Layout::Cuda12, "12.1.105/nvidia/cuda_cupti"),
        (Layout::Cuda12, "12.9.79/nvidia/cuda_cupti"),
        (Layout::Cuda13, "13.0.85/nvidia/cu13"),
        (Layout::Cuda13, "13.5.25/nvidia/cu13"),
    ] {
        let theirs = [installed.join(version).join("include"), cuda.clone()];
        let here = Declared::of(&[include()], layout);
        let there = Declared::of(&theirs, layout);
        let count = there.functions.len() + there.types.len();
        assert!(count > 250, "{count} of {version}");
        for (of, ours) in [
            (&there.numbers, &here.numbers),
            (&there.types, &here.types),
            (&there.functions, &here.functions),
        ] {
            let is_cuptis = |name: &&String| name.to_lowercase().starts_with("cupti");
            let wanted = of.iter().filter(is_cuptis);
            let missing = wanted.filter(|name| !ours.contains(name) && !is_left_out(name));
            let missing: Vec<&String> = missing.collect();
            assert!(missing.is_empty(), "of {version}: {missing:?}");
        }
    }
}

#[test]
fn structures_have_the_sizes_that_the_library_tells() {
    needs!(structures_have_the_sizes_that_the_library_tells: Need::Program("cc"));
    let newest = [
        (3, "Kernel13"),
        (50, "MemoryPool3"),
        (51, "GraphTrace2"),
        (53, "DeviceGraphTrace"),
        (54, "MemDecompress"),
        (55, "ConfidentialComputeRotation"),
        (56, "GraphHostNode"),
        (57, "ComputeEngineCtxSwitch"),
        (58, "HostLaunch"),
        (59, "GreenContext3"),
    ];
    let asked = newest.map(|(_, name)| format!("SIZE(CUpti_Activity{name});\n"));
    let said = ask(&[include()], Layout::Cuda13, &asked.concat());
    for (kind, name) in newest {
        let told = size_in_version(ActivityKind(kind), Layout::Cuda13.version()).unwrap();
        assert_eq!(said[&format!("CUpti_Activity{name}")], told.to_string());
    }
}
