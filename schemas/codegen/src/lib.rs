//! Generates the Rust code that `src/trace/perfetto/schema.rs` includes from `schemas/perfetto_*.proto`: prost's
//! structs, and the number of each field.
//!
//! The generated files are checked in, so that building gputrail needs no protobuf compiler. The test of this package
//! generates them again and compares; `cargo run -p gputrail-schemas` writes them.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use prost_types::DescriptorProto;

/// The messages that gputrail writes, for which structs and field numbers are generated.
const MESSAGES: [&str; 4] = [
    "perfetto_trace.proto",
    "perfetto_track_event.proto",
    "perfetto_gpu.proto",
    "perfetto_sampling.proto",
];
/// Further fields that gputrail reads, for which field numbers are generated.
const FOREIGN: &str = "perfetto_foreign.proto";

/// A generated file: its path in the repository, and its text.
pub type Generated = (PathBuf, String);

/// Generates all files.
pub fn generate() -> Result<[Generated; 2], Box<dyn Error>> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let schemas = [repository.join("schemas")];
    let messages = protox::compile(MESSAGES, &schemas)?.file;
    let foreign = protox::compile([FOREIGN], &schemas)?.file;
    let mut fields = Module::default();
    for file in messages.iter().chain(&foreign) {
        fields.add(&file.message_type);
    }
    let mut numbers = String::from("// This file is @generated from schemas/perfetto_*.proto.\n");
    fields.write(&mut numbers, 0);

    let mut config = prost_build::Config::new();
    // Far larger than the other variants, and infrequent.
    config.boxed(".perfetto.protos.TracePacket.data.pc_samples");
    let files = messages.into_iter().map(|file| {
        let module = prost_build::Module::from_protobuf_package_name(file.package());
        (module, file)
    });
    let structs = config.generate(files.collect())?;
    let folder = repository.join("src/trace/perfetto/schema");
    Ok([
        (
            folder.join("perfetto.protos.rs"),
            structs.into_values().collect(),
        ),
        (folder.join("field.rs"), numbers),
    ])
}

/// The constants of one message, and of the messages that are declared in it.
#[derive(Default)]
struct Module {
    fields: BTreeMap<i32, String>,
    messages: BTreeMap<String, Module>,
}

impl Module {
    fn add(&mut self, messages: &[DescriptorProto]) {
        for message in messages {
            let module = self.messages.entry(snake_case(message.name())).or_default();
            for field in &message.field {
                let name = field.name().to_uppercase();
                module.fields.insert(field.number(), name);
            }
            module.add(&message.nested_type);
        }
    }

    fn write(&self, text: &mut String, depth: usize) {
        let indent = "    ".repeat(depth);
        for (number, name) in &self.fields {
            let _ = writeln!(text, "{indent}pub const {name}: u32 = {number};");
        }
        for (name, message) in &self.messages {
            let _ = writeln!(text, "{indent}pub mod {name} {{");
            message.write(text, depth + 1);
            let _ = writeln!(text, "{indent}}}");
        }
    }
}

/// `CamelCase` as `camel_case`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_bindings_that_are_checked_in_match_the_schemas() {
        for (path, text) in super::generate().expect("the schemas compile") {
            let checked_in = std::fs::read_to_string(&path).expect("the checked-in file");
            assert!(
                checked_in == text,
                "{} is stale: run `cargo run -p gputrail-schemas`",
                path.display()
            );
        }
    }
}
