//! The layouts and numbers of the headers in `include/`: against the structures of this crate, and against NVIDIA's own headers
//! of later versions, which keep those of CUDA 10.0.

use crate::activity::fields;
use gputrail_harness::machine::Need;
use gputrail_harness::needs;
use gputrail_harness::program::run;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const HEADERS: [&str; 5] = [
    "cupti_result.h",
    "cupti_events.h",
    "cupti_metrics.h",
    "cupti_callbacks.h",
    "cupti_activity.h",
];

/// Structures of this library's own, and those that later versions have changed under the same name.
const NOT_NVIDIAS: [&str; 7] = [
    "CUpti_GputrailParams",
    "CUpti_GputrailMarkerParams",
    "CUpti_ActivityNvLink2",
    "CUpti_ActivityNvLink3",
    "CUpti_GraphData",
    // A field was added at the end of each.
    "CUpti_NvtxData",
    "CUpti_ActivityPCSamplingConfig",
];

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

/// The structures of a header with the names of their fields, and its enumerators.
fn declared() -> (BTreeMap<String, Vec<String>>, Vec<String>) {
    let (mut structures, mut numbers) = (BTreeMap::new(), Vec::new());
    for header in HEADERS {
        let text = std::fs::read_to_string(include().join(header)).unwrap();
        let (mut depth, mut fields, mut is_enum) = (0, Vec::new(), false);
        for line in text.lines().map(str::trim) {
            let line = line.split("/*").next().unwrap_or_default().trim();
            let name = |text: &str| {
                let text = text
                    .split(['[', ';', '=', ',', ':'])
                    .next()
                    .unwrap_or_default();
                let word = |c: char| !c.is_alphanumeric() && c != '_';
                text.trim()
                    .rsplit(word)
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            };
            if line.ends_with('{') && !line.starts_with("extern") {
                if depth == 0 {
                    is_enum = line.contains("enum");
                }
                depth += 1;
            } else if line.starts_with('}') && depth > 0 {
                depth -= 1;
                match depth {
                    0 if is_enum => numbers.append(&mut fields),
                    0 => {
                        structures.insert(name(line), std::mem::take(&mut fields));
                    }
                    1 => fields.push(name(line)),
                    _ => {}
                }
            } else if depth == 1 && !line.is_empty() {
                fields.push(name(line));
            }
        }
    }
    (structures, numbers)
}

/// What a compiler says of the headers that `includes` finds: lines with a name and its numbers.
fn ask(includes: &[PathBuf], body: &str) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    // A header of C that includes one of C++, without need.
    std::fs::write(folder.path().join("string"), "").unwrap();
    let (source, program) = (folder.path().join("ask.c"), folder.path().join("ask"));
    let text = format!(
        "#include <stddef.h>\n#include <stdio.h>\n#if __has_include(<cuda.h>)\n#include <cuda.h>\n#endif\n\
         #include <cupti.h>\n#define FIELD(s, f) printf(#s \".\" #f \" %zu %zu\\n\", offsetof(s, f), sizeof ((s *)0)->f)\n\
         #define SIZE(s) printf(#s \" %zu\\n\", sizeof(s))\n#define NUMBER(n) printf(#n \" %lld\\n\", (long long)n)\n\
         int main(void) {{\n{body}return 0;\n}}\n"
    );
    std::fs::write(&source, text).unwrap();
    let mut compiler = Command::new("cc");
    for include in includes.iter().map(PathBuf::as_path).chain([folder.path()]) {
        compiler.arg("-I").arg(include);
    }
    run(compiler.arg("-o").arg(&program).arg(&source)).well();
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
        for field in fields {
            body += &format!("FIELD({name}, {field});\n");
        }
    }
    body
}

#[test]
fn records_have_the_layouts_of_the_headers() {
    needs!(records_have_the_layouts_of_the_headers: Need::Program("cc"));
    let (structures, _) = declared();
    assert!(structures.len() > 60, "{structures:?}");
    let said = ask(&[include()], &questions(structures.iter()));
    let plain = |name: &str| {
        name.replace(['_', '#'], "")
            .to_lowercase()
            .replace("r#", "")
    };
    let mut checked = 0;
    for (structure, field, offset, bytes) in fields() {
        let wanted = plain(&format!("cuptiactivity{structure}"));
        let found = structures.keys().find(|name| plain(name) == wanted);
        let name = found.unwrap_or_else(|| panic!("{structure} has no structure in the headers"));
        let field = field.trim_start_matches("r#");
        let of_c = structures[name]
            .iter()
            .find(|one| plain(one) == plain(field));
        let of_c = of_c.unwrap_or_else(|| panic!("{name} has no field {field}"));
        let key = format!("{name}.{of_c}");
        assert_eq!(said[&key], format!("{offset} {bytes}"), "{key}");
        checked += 1;
    }
    assert!(checked > 390, "{checked} fields");
}

#[test]
fn structures_and_numbers_are_those_of_nvidias_headers() {
    needs!(structures_and_numbers_are_those_of_nvidias_headers: Need::Cupti, Need::Program("cc"));
    let (structures, numbers) = declared();
    let own = structures
        .iter()
        .filter(|(name, _)| !NOT_NVIDIAS.contains(&name.as_str()));
    // The number of kinds and the like grow from version to version.
    let kept = numbers.iter().filter(|name| {
        let grows = ["_COUNT", "_SIZE", "_FORCE_INT", "_UNKNOWN_LAST"];
        // Later versions have no names for the answers of cuptiDeviceSupported.
        let answers = ["_UNSUPPORTED", "_SUPPORTED", "_VIRTUAL"];
        let is_answer = |name: &str| {
            let rest = name.strip_prefix("CUPTI_DEVICE");
            rest.is_some_and(|rest| answers.contains(&rest))
        };
        let is_own = name.starts_with("CUPTI_GPUTRAIL_") || is_answer(name);
        !is_own && !grows.iter().any(|end| name.ends_with(end))
    });
    let mut body = questions(own);
    for number in kept {
        body += &format!("NUMBER({number});\n");
    }
    let here = ask(&[include()], &body);
    assert!(here.len() > 900, "{} answers", here.len());
    let installed = gputrail_harness::machine::tools().join("cupti");
    let cuda = installed.join("13.5.25/nvidia/cu13/include");
    for version in ["11.8.87", "12.9.79"] {
        let folder = installed.join(version).join("nvidia/cuda_cupti/include");
        let theirs = ask(&[folder, cuda.clone()], &body);
        assert_eq!(theirs.len(), here.len());
        for (name, numbers) in &here {
            assert_eq!(theirs[name], *numbers, "{name} in {version}");
        }
    }
}
