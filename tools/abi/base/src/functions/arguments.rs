//! Calls of OpenCL, and of the simulated GPU's runtime, as calls of a function of another API that does the same: the values of its
//! parameters come from the arguments of the call.

use super::{Parameter, ROLES, Role, USUAL};
use gputrail_record::{Agent, Context, Operation, Stream, StreamId};
use gputrail_tool::{Callback, arguments_of_operation, describe};

/// The most arguments of a function of OpenCL.
const MOST_ARGUMENTS: usize = 16;

/// A value for a role. `A` stands for an argument: its name, or its place.
#[derive(Copy, Clone, Debug)]
pub enum Value<A = &'static str> {
    /// An argument.
    Of(A),
    /// A number.
    Number(u64),
    /// The place of what the call has made.
    Made,
    /// A place of what the call has made, which is this argument.
    Same(A),
    /// The place that this argument is, or one of what the call has made if it is null.
    Place(A),
    /// The place of the memory of the call's device, in bytes.
    Total,
    /// The handle of the stream whose number this argument is.
    Stream(A),
    /// An element of an array of words with this length.
    Element(A, usize, Length<A>),
    /// Workgroups in a dimension.
    Grid(usize),
    /// Work-items of a workgroup in a dimension.
    Block(usize),
    /// The first bytes of the pattern of a fill.
    Pattern,
}

/// The results of a call to which its parameters lead: what it has made, and the memory of its device.
pub type Made = [u64; 2];

/// The length of an array.
#[derive(Copy, Clone, Debug)]
pub enum Length<A = &'static str> {
    /// A number.
    Is(usize),
    /// That of an argument.
    Of(A),
}

impl Value {
    /// The value with the places of its arguments, if the function has them.
    fn placed(self, place: impl Fn(&str) -> Option<usize>) -> Option<Value<usize>> {
        Some(match self {
            Value::Of(name) => Value::Of(place(name)?),
            Value::Number(number) => Value::Number(number),
            Value::Made => Value::Made,
            Value::Same(name) => Value::Same(place(name)?),
            Value::Place(name) => Value::Place(place(name)?),
            Value::Total => Value::Total,
            Value::Stream(name) => Value::Stream(place(name)?),
            Value::Element(name, index, length) => {
                let length = match length {
                    Length::Is(length) => Length::Is(length),
                    Length::Of(name) => Length::Of(place(name)?),
                };
                Value::Element(place(name)?, index, length)
            }
            Value::Grid(dimension) => Value::Grid(dimension),
            Value::Block(dimension) => Value::Block(dimension),
            Value::Pattern => Value::Pattern,
        })
    }
}

/// The values of the arguments of a call, in the order of its function's.
#[derive(Copy, Clone, Debug)]
pub struct Arguments([u64; MOST_ARGUMENTS]);

impl Arguments {
    /// The arguments of the call of a callback.
    pub fn of(callback: &Callback<'_>) -> Arguments {
        let mut values = [0; MOST_ARGUMENTS];
        for (value, argument) in values.iter_mut().zip(callback.arguments()) {
            *value = argument.value();
        }
        Arguments(values)
    }

    /// The value at a place.
    pub fn at(&self, place: usize) -> u64 {
        self.0.get(place).copied().unwrap_or(0)
    }
}

/// How the values of parameters come from the arguments of a call.
#[derive(Debug)]
pub struct Translation {
    /// By role.
    sources: Box<[Value<usize>; ROLES]>,
    /// The arguments of a launch: the number of dimensions, the global and the local size.
    range: Option<[usize; 3]>,
    /// The arguments of a fill: the pattern and its size.
    pattern: Option<[usize; 2]>,
    /// The names of the arguments.
    names: Vec<&'static str>,
}

impl Translation {
    /// The translation of the arguments of `function`: roles have these values, or else the usual ones.
    pub fn new(function: Operation, values: &[(Role, Value)]) -> Translation {
        let names: Vec<&'static str> = arguments_of_operation(function)
            .take(MOST_ARGUMENTS)
            .map(|argument| argument.name())
            .collect();
        let place = |name: &str| names.iter().position(|one| *one == name);
        let mut sources = Box::new([Value::Number(0); ROLES]);
        // Values of the row replace usual ones. Of several usual ones the first that fits holds, so that they are set in reverse.
        for (role, value) in USUAL.iter().rev().chain(values) {
            if let Some(source) = value.placed(place) {
                sources[*role as usize] = source;
            }
        }
        let range = match ["work_dim", "global_work_size", "local_work_size"].map(place) {
            [Some(dimensions), Some(grid), Some(block)] => Some([dimensions, grid, block]),
            _ => None,
        };
        let pattern = match ["pattern", "pattern_size"].map(place) {
            [Some(pattern), Some(size)] => Some([pattern, size]),
            _ => None,
        };
        Translation {
            sources,
            range,
            pattern,
            names,
        }
    }

    /// The place of an argument.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|one| *one == name)
    }

    /// The arguments that a record keeps of a call, with their names. Arrays are left out: the call is over.
    pub fn recorded<'a>(&self, kept: impl Iterator<Item = (&'a str, u64)>) -> Arguments {
        let mut values = [0; MOST_ARGUMENTS];
        for (name, value) in kept {
            if let Some(place) = self.place(name) {
                values[place] = value;
            }
        }
        let of_sources = self.sources.iter().filter_map(|source| match source {
            Value::Element(array, ..) => Some(*array),
            _ => None,
        });
        let of_range = self
            .range
            .iter()
            .flat_map(|[_, grid, block]| [*grid, *block]);
        let of_pattern = self.pattern.iter().map(|[pattern, _]| *pattern);
        for array in of_sources.chain(of_range).chain(of_pattern) {
            values[array] = 0;
        }
        Arguments(values)
    }

    /// The results of a call at its exit, to which places lead: what it returned, or the argument that it has made something of, and
    /// the memory of its device. 0 if it has failed.
    pub fn made(&self, arguments: &Arguments, callback: &Callback<'_>) -> Made {
        if callback.return_code().is_some_and(|code| code != 0) {
            return Made::default();
        }
        let same = self.sources.iter().find_map(|source| match source {
            Value::Same(place) => Some(arguments.at(*place)),
            _ => None,
        });
        let of_device = || {
            let context = describe::<Context>(callback.runtime_context()).ok()?;
            Some(describe::<Agent>(context.agent).ok()?.memory)
        };
        let has_total = self
            .sources
            .iter()
            .any(|source| matches!(source, Value::Total));
        [
            same.or_else(|| callback.return_value()).unwrap_or(0),
            has_total.then(of_device).flatten().unwrap_or(0),
        ]
    }

    /// Puts the values of parameters into words, each at its offset. `made` is the address of the results ([`Made`]). Called during the call:
    /// arrays of the program's are read. What has no room is left out.
    pub fn put<'p>(
        &self,
        parameters: impl Iterator<Item = (usize, &'p Parameter)>,
        arguments: &Arguments,
        made: u64,
        to: &mut [u64],
    ) {
        for (place, parameter) in parameters {
            let bytes = parameter.of.bytes;
            let value = self.value(self.sources[parameter.role as usize], arguments, made);
            let Some(word) = to.get_mut(place / 8) else {
                return;
            };
            let mask = match bytes {
                8.. => u64::MAX,
                _ => (1 << (bytes * 8)) - 1,
            };
            let shift = place % 8 * 8;
            *word = *word & !(mask << shift) | (value & mask) << shift;
        }
    }

    fn value(&self, source: Value<usize>, arguments: &Arguments, made: u64) -> u64 {
        let of = |place: usize| arguments.at(place);
        match source {
            Value::Number(number) => number,
            Value::Of(place) => of(place),
            Value::Made | Value::Same(_) => made,
            Value::Place(place) => match of(place) {
                0 => made,
                place => place,
            },
            Value::Total => made + 8,
            Value::Stream(place) => {
                let stream = describe::<Stream>(StreamId(of(place) as u32));
                stream.map_or(0, |stream| stream.handle)
            }
            Value::Element(array, index, length) => {
                let length = match length {
                    Length::Is(length) => length,
                    Length::Of(place) => of(place) as usize,
                };
                element(of(array), length, index).unwrap_or(0)
            }
            Value::Grid(dimension) => {
                let (grid, block) = self.sizes(arguments, dimension);
                grid.div_ceil(block)
            }
            Value::Block(dimension) => self.sizes(arguments, dimension).1,
            Value::Pattern => self.pattern.map_or(0, |[pattern, size]| {
                // A word of a pattern that is as large; otherwise its first byte.
                match (of(pattern), of(size)) {
                    (0, _) | (_, 0) => 0,
                    // SAFETY: the program gives as many bytes as it says.
                    (from, 4..) => u64::from(unsafe {
                        core::ptr::with_exposed_provenance::<u32>(from as usize).read_unaligned()
                    }),
                    // SAFETY: as above, and there is one at least.
                    (from, _) => u64::from(unsafe {
                        core::ptr::with_exposed_provenance::<u8>(from as usize).read()
                    }),
                }
            }),
        }
    }

    /// The work-items of a launch and of its workgroups in a dimension: 1 where nothing is given.
    fn sizes(&self, arguments: &Arguments, dimension: usize) -> (u64, u64) {
        let Some([dimensions, grid, block]) = self.range else {
            return (1, 1);
        };
        let dimensions = match arguments.at(dimensions) {
            dimensions @ 1..=3 => dimensions as usize,
            _ => 0,
        };
        let size = |array: usize| {
            let size = element(arguments.at(array), dimensions, dimension);
            size.filter(|size| *size != 0).unwrap_or(1)
        };
        (size(grid), size(block))
    }
}

/// An element of an array of words that the program gave for a call; none if the array is null or too short.
fn element(array: u64, length: usize, index: usize) -> Option<u64> {
    if array == 0 || index >= length {
        return None;
    }
    let array = core::ptr::with_exposed_provenance::<u64>(array as usize);
    // SAFETY: the program gives an array with as many words as it says, which the runtime reads during the call.
    Some(unsafe { array.add(index).read_unaligned() })
}
