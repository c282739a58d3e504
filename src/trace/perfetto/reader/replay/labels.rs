//! The names and categories of slices, and the functions of calls, by number.

use std::collections::HashMap;

use super::limits::MAX_NAME_BYTES;
use crate::arguments::StoredArguments;
use crate::model::{Function, FunctionIndex, Parameter, Value};
use crate::perfetto::reader::{NumberedText, TextId};
use gputrail_record::number_map::NumberMap;
use gputrail_record::{ArgumentType, Domain, OperationGroup};

/// Maximum number of pairs of a name and a category, and of functions.
const MAX_LABELS: usize = 1 << 18;

/// A name and a category.
#[derive(Debug)]
pub(super) struct Label {
    pub name: Box<str>,
    pub category: Box<str>,
}

/// Pairs of names and categories, and functions.
#[derive(Debug, Default)]
pub(super) struct Labels {
    /// Numbers by interned texts.
    interned: NumberMap<(TextId, TextId), u32>,
    /// Numbers by the texts themselves.
    own: HashMap<(Box<str>, Box<str>), u32>,
    list: Vec<Label>,
    functions: Vec<Function>,
    /// Indices of functions without arguments, by label and domain.
    plain: NumberMap<(u32, u32), u32>,
    /// Indices of functions with arguments; their names follow the label and the domain.
    with_arguments: HashMap<(u32, u32, String), u32>,
    /// Bytes of all texts.
    bytes: usize,
}

impl Labels {
    /// The number of a pair; `None` if there are too many.
    #[inline]
    pub fn number(&mut self, category: NumberedText<'_>, name: NumberedText<'_>) -> Option<u32> {
        let interned = category.id != TextId::OTHER && name.id != TextId::OTHER;
        if interned && let Some(number) = self.interned.get(&(category.id, name.id)) {
            return Some(*number);
        }
        let own = (Box::from(category.text), Box::from(name.text));
        let next = self.list.len();
        let bytes = 2 * (category.text.len() + name.text.len());
        let number = match self.own.get(&own) {
            Some(number) => *number,
            None if next >= MAX_LABELS || self.bytes + bytes > MAX_NAME_BYTES => return None,
            None => {
                self.bytes += bytes;
                self.list.push(Label {
                    name: name.text.into(),
                    category: category.text.into(),
                });
                self.own.insert(own, next as u32);
                next as u32
            }
        };
        if interned {
            self.interned.insert((category.id, name.id), number);
        }
        Some(number)
    }

    /// The pair with this number.
    pub fn get(&self, number: u32) -> &Label {
        &self.list[number as usize]
    }

    /// The index of the function of a call; `None` if there are too many. `api` is Perfetto's number of its API.
    pub fn function(
        &mut self,
        label: u32,
        api: u64,
        arguments: Option<&StoredArguments>,
    ) -> Option<u32> {
        let Label { name, category } = &self.list[label as usize];
        let domain = domain_of(category, api);
        let names = arguments.filter(|arguments| !arguments.is_empty());
        let plain = (label, u32::from(domain.0));
        let key = names.map(|arguments| {
            let names = arguments.iter().map(|argument| argument.name);
            (plain.0, plain.1, names.collect::<Vec<_>>().join("\0"))
        });
        let known = match &key {
            None => self.plain.get(&plain),
            Some(key) => self.with_arguments.get(key),
        };
        if let Some(known) = known {
            return Some(*known);
        }
        let next = self.functions.len() as u32;
        let bytes = key.as_ref().map_or(0, |(_, _, names)| 2 * names.len());
        let bytes = bytes + name.len() + category.len();
        if next as usize >= MAX_LABELS || self.bytes + bytes > MAX_NAME_BYTES {
            return None;
        }
        self.bytes += bytes;
        match key {
            None => self.plain.insert(plain, next),
            Some(key) => self.with_arguments.insert(key, next),
        };
        let own =
            domain.name() != Some(category) && !(domain == Domain(0) && &**category == "other");
        let parameters = names.into_iter().flat_map(StoredArguments::iter);
        self.functions.push(Function {
            index: FunctionIndex(next),
            name: name.clone(),
            domain,
            category: own.then(|| category.clone()),
            group: OperationGroup::OTHER,
            parameters: parameters
                .map(|argument| Parameter {
                    name: argument.name.into(),
                    kind: type_of(argument.value),
                })
                .collect(),
        });
        Some(next)
    }

    /// The function with this index.
    pub fn function_at(&self, index: u32) -> &Function {
        &self.functions[index as usize]
    }
}

/// The API of a category and of Perfetto's number, which does not distinguish parts of an API.
fn domain_of(category: &str, api: u64) -> Domain {
    let domain = match category {
        "cuda_driver" => Domain::CUDA_DRIVER,
        "cuda_runtime" => Domain::CUDA_RUNTIME,
        "hip_compiler" => Domain::HIP_COMPILER,
        // Of rocprof-sys and rocprofv3.
        "rocm_hip_api" | "hip_api" => Domain::HIP,
        "rocm_hsa_api" | "hsa_api" => Domain::HSA,
        category => Domain::from_name(category).unwrap_or(Domain(0)),
    };
    match (api, domain) {
        (3, _) => Domain::OPENCL,
        (4, Domain::CUDA_DRIVER) | (5, Domain::HSA | Domain::HIP_COMPILER) => domain,
        (4, _) => Domain::CUDA_RUNTIME,
        (5, _) => Domain::HIP,
        _ => domain,
    }
}

fn type_of(value: Value<'_>) -> ArgumentType {
    match value {
        Value::Bool(_) => ArgumentType::BOOLEAN,
        Value::Uint(_) => ArgumentType::UNSIGNED,
        Value::Int(_) => ArgumentType::SIGNED,
        Value::Double(_) => ArgumentType::FLOAT,
        Value::Text(_) | Value::Json(_) => ArgumentType::STRING,
        Value::Pointer(_) => ArgumentType::POINTER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_category_tells_the_part_of_an_api_and_the_number_the_api() {
        for (category, number, domain) in [
            ("", 3, Domain::OPENCL),
            ("cuda_driver", 4, Domain::CUDA_DRIVER),
            ("cuda_runtime", 4, Domain::CUDA_RUNTIME),
            ("", 4, Domain::CUDA_RUNTIME),
            (Domain::HSA.name().unwrap(), 5, Domain::HSA),
            ("", 5, Domain::HIP),
            ("cuda_driver", 0, Domain::CUDA_DRIVER),
            ("", 0, Domain(0)),
        ] {
            assert_eq!(domain_of(category, number), domain, "{category} {number}");
        }
    }
}
