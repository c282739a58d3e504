//! The catalogue of an architecture: blocks of hardware, their counters, and the metrics derived from them.

mod library;
mod units;

pub use library::{CounterLibrary, LibraryCounter, LibraryError};

use super::expression::{
    CounterName, Expression, MalformedExpression, Node, Operator, Reduction, Resolution,
};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// A place in a definition file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DefinitionPlace {
    /// The file.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, in bytes.
    pub column: u32,
}

impl fmt::Display for DefinitionPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A definition that was refused. The others are in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Where it stands.
    pub at: DefinitionPlace,
    /// The reason.
    pub problem: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.problem)
    }
}

/// The unit of a counter's values.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum Usage {
    /// Events.
    #[default]
    Items,
    /// A share, in percent.
    Percentage,
    /// A share.
    Ratio,
    /// Bytes.
    Bytes,
    /// Kilobytes.
    Kilobytes,
    /// Milliseconds.
    Milliseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// Cycles of the agent's clock.
    Cycles,
    /// Microjoules.
    Microjoules,
}

impl Usage {
    /// The usage with this name in GPUPerfAPI's definitions.
    pub fn named(name: &str) -> Option<Usage> {
        Some(match name {
            "items" => Usage::Items,
            "percentage" => Usage::Percentage,
            "ratio" => Usage::Ratio,
            "bytes" => Usage::Bytes,
            "kilobytes" => Usage::Kilobytes,
            "milliseconds" => Usage::Milliseconds,
            "nanoseconds" => Usage::Nanoseconds,
            "cycles" => Usage::Cycles,
            "microjoules" => Usage::Microjoules,
            _ => return None,
        })
    }
}

/// A fact about an agent that expressions use.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Property {
    /// The number of compute units.
    ComputeUnits,
    /// The number of SIMDs of all compute units.
    Simds,
    /// The number of SIMDs of a compute unit.
    SimdsPerComputeUnit,
    /// The number of shader engines.
    ShaderEngines,
    /// The number of shader arrays.
    ShaderArrays,
    /// The number of shader arrays of a shader engine.
    ArraysPerEngine,
    /// The number of accelerator dies.
    Dies,
    /// The number of work-items of a wave.
    WaveSize,
    /// The clock of the compute units, in Hz.
    Clock,
    /// The duration of the kernel, in ns.
    KernelTime,
    /// The bandwidth of the agent's memory, in bytes a second.
    MemoryBandwidth,
}

impl Property {
    /// All of them, with the names that definitions use.
    pub const NAMES: [(&'static str, Property); 19] = [
        ("CU_NUM", Property::ComputeUnits),
        ("cu_count", Property::ComputeUnits),
        ("SIMD_NUM", Property::Simds),
        ("NUM_SIMDS", Property::Simds),
        ("simd_count", Property::Simds),
        ("simd_per_cu", Property::SimdsPerComputeUnit),
        ("SE_NUM", Property::ShaderEngines),
        ("NUM_SHADER_ENGINES", Property::ShaderEngines),
        ("num_shader_banks", Property::ShaderEngines),
        ("array_count", Property::ShaderArrays),
        ("simd_arrays_per_engine", Property::ArraysPerEngine),
        ("XCC_NUM", Property::Dies),
        ("num_xcc", Property::Dies),
        ("MAX_WAVE_SIZE", Property::WaveSize),
        ("wave_front_size", Property::WaveSize),
        ("max_engine_clk_fcompute", Property::Clock),
        ("CLOCK", Property::Clock),
        ("KERNEL_TIME", Property::KernelTime),
        ("MEMORY_BANDWIDTH", Property::MemoryBandwidth),
    ];

    /// The first of its names.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(_, property)| *property == self);
        found.map_or("", |(name, _)| name)
    }

    /// The property with this name.
    pub fn named(name: &str) -> Option<Property> {
        let found = Self::NAMES.iter().find(|(of, _)| *of == name);
        found.map(|(_, property)| *property)
    }
}

/// A block of hardware that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HardwareBlock {
    /// Its name.
    pub name: String,
    /// The number of its instances in an agent; `None`: not known.
    pub instances: Option<u32>,
    /// The number of counters that it counts at a time; `None`: not known.
    pub capacity: Option<u32>,
}

/// The place of a counter or metric in its architecture.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CounterIndex(pub u32);

/// The place of a block in its architecture.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockIndex(pub u32);

/// A counter, or a metric derived from counters.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// Its description, for people.
    pub description: String,
    /// The unit of its values.
    pub usage: Usage,
    /// Where its values come from.
    pub definition: Definition,
    /// Where it is defined.
    pub at: DefinitionPlace,
}

/// Where the values of a counter come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Definition {
    /// Hardware counts the event.
    Basic {
        /// The block.
        block: BlockIndex,
        /// The number of the event in the block.
        event: u32,
        /// The instance of the block; `None`: each has a value of its own.
        instance: Option<u32>,
    },
    /// It is computed.
    Derived(Expression, Formula),
}

/// The meaning of a counter's name in an expression.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum Dialect {
    /// The sum of its instances (ROCProfiler v1, GPUPerfAPI).
    Sum,
    /// The values of its instances, which must be reduced (rocprofiler-sdk).
    #[default]
    Instances,
}

/// An expression with its names looked up.
#[derive(Clone, Debug, PartialEq)]
pub enum Formula {
    /// A number.
    Number(f64),
    /// A property of the agent.
    Property(Property),
    /// The instances of a basic counter.
    Counter(CounterIndex, Resolution),
    /// One instance of a basic counter.
    Instance(CounterIndex, u32),
    /// A metric.
    Metric(CounterIndex),
    /// An operation on two values.
    Binary(Operator, Box<[Formula; 2]>),
    /// Instances made one; only the first so many, or all.
    Reduce(Reduction, Box<Formula>, Option<u32>),
    /// The instances with these coordinates of the dimensions.
    Select(Box<Formula>, Vec<(String, Vec<u32>)>),
}

/// The instances of a value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Shape {
    One,
    /// A value for each instance of the block.
    Of(BlockIndex),
}

/// The counters of one architecture.
#[derive(Clone, Debug, Default)]
pub struct Architecture {
    blocks: Vec<HardwareBlock>,
    counters: Vec<Counter>,
    by_name: HashMap<String, CounterIndex>,
    by_folded_name: HashMap<String, CounterIndex>,
    /// The metrics, each behind those that it uses.
    order: Vec<CounterIndex>,
    /// The meaning of a counter's name in its expressions.
    dialect: Dialect,
    library: Option<Arc<dyn CounterLibrary>>,
    /// Why metrics that are defined for it were refused, by their names.
    refused: HashMap<String, String>,
    /// The properties of its agents, as far as all of them have the same.
    properties: HashMap<Property, f64>,
}

/// At most three of `names` that are like `wanted`, the nearest first. Upper and lower case are alike.
pub fn nearest<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let wanted = wanted.to_ascii_lowercase();
    let limit = wanted.len() / 3 + 1;
    let distance = |name| {
        Some((
            distance(&wanted, &str::to_ascii_lowercase(name), limit)?,
            name,
        ))
    };
    let mut near: Vec<(usize, &str)> = names.filter_map(distance).collect();
    near.sort_unstable();
    near.truncate(3);
    near.into_iter().map(|(_, name)| name.to_owned()).collect()
}

impl Architecture {
    /// The architecture of agents with these properties.
    pub fn with_properties(mut self, properties: HashMap<Property, f64>) -> Architecture {
        self.properties = properties;
        self
    }

    /// The properties of its agents, as far as all of them have the same.
    pub fn properties(&self) -> &HashMap<Property, f64> {
        &self.properties
    }

    /// Its blocks.
    pub fn blocks(&self) -> &[HardwareBlock] {
        &self.blocks
    }

    /// Its counters and metrics.
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// The meaning of a counter's name in its expressions.
    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The metrics, each behind those that it uses.
    pub fn metrics_in_order(&self) -> &[CounterIndex] {
        &self.order
    }

    /// A counter by its index.
    pub fn counter(&self, index: CounterIndex) -> &Counter {
        &self.counters[index.0 as usize]
    }

    /// The counter with exactly this name.
    pub fn find(&self, name: &str) -> Option<CounterIndex> {
        self.by_name.get(name).copied()
    }

    /// The counter with this name, without regard to case.
    pub fn find_ignoring_case(&self, name: &str) -> Option<CounterIndex> {
        self.by_folded_name.get(&name.to_ascii_lowercase()).copied()
    }

    /// Why the metric with this name, which is defined, cannot be had: a counter that the agent lacks, say.
    pub fn refused(&self, name: &str) -> Option<&str> {
        self.refused.get(name).map(String::as_str)
    }

    /// The names that are most like `name`, at most three, the nearest first.
    pub fn nearest(&self, name: &str) -> Vec<String> {
        nearest(name, self.counters.iter().map(|counter| &*counter.name))
    }

    /// The basic counters that `counter` needs, each once, in the order of their indices.
    pub fn basic_counters(&self, counter: CounterIndex) -> Vec<(CounterIndex, Resolution)> {
        let mut found = Vec::new();
        let mut seen = vec![false; self.counters.len()];
        let mut open = vec![counter];
        while let Some(next) = open.pop() {
            if std::mem::replace(&mut seen[next.0 as usize], true) {
                continue;
            }
            match &self.counter(next).definition {
                Definition::Basic { .. } => found.push((next, Resolution::None)),
                Definition::Derived(_, formula) => formula.visit(&mut |part| match part {
                    Formula::Counter(index, resolution) => found.push((*index, *resolution)),
                    Formula::Instance(index, _) => found.push((*index, Resolution::None)),
                    Formula::Metric(index) => open.push(*index),
                    _ => {}
                }),
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

impl Formula {
    /// Calls `see` with each part.
    pub(super) fn visit(&self, see: &mut impl FnMut(&Formula)) {
        see(self);
        match self {
            Formula::Binary(_, operands) => operands.iter().for_each(|part| part.visit(see)),
            Formula::Reduce(_, of, _) | Formula::Select(of, _) => of.visit(see),
            _ => {}
        }
    }
}

/// The edits between two names, if at most `limit` are needed.
fn distance(left: &str, right: &str, limit: usize) -> Option<usize> {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if left.len().abs_diff(right.len()) > limit || left.len() > 256 {
        return None;
    }
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (place, from) in left.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], place + 1);
        for (column, to) in right.iter().enumerate() {
            let changed = diagonal + usize::from(from != to);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row.last().copied().filter(|distance| *distance <= limit)
}

/// The definition of a counter, as a reader of files found it.
#[derive(Clone, Debug)]
pub struct Defined {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The unit of its values.
    pub usage: Usage,
    /// Where its values come from.
    pub from: DefinedFrom,
    /// Where it is defined.
    pub at: DefinitionPlace,
}

/// Where the values of a defined counter come from.
#[derive(Clone, Debug)]
pub enum DefinedFrom {
    /// An event of a block.
    Event {
        /// The name of the block.
        block: String,
        /// The number of the event.
        event: u32,
        /// The instance of the block, where it has counters of its own.
        instance: Option<u32>,
    },
    /// An expression, and where its text begins.
    Expression(Expression, DefinitionPlace),
}

/// The definitions of one architecture.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// The meaning of a counter's name in expressions.
    pub dialect: Dialect,
    /// The blocks that are described.
    pub blocks: Vec<HardwareBlock>,
    /// The counters; of two with the same name the later one counts.
    pub counters: Vec<Defined>,
}

/// The definitions that were read from files.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The architectures, by name.
    pub architectures: BTreeMap<String, Definitions>,
    /// The definitions that all architectures have. Those that were read before them are not changed.
    pub global: Vec<Defined>,
    /// The definitions that were refused.
    pub refused: Vec<Refused>,
}

impl Sources {
    /// The definitions of an architecture, which are empty if it is new.
    pub fn architecture(&mut self, name: &str) -> &mut Definitions {
        self.architectures.entry(name.to_owned()).or_default()
    }
}

/// The counters of several architectures.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// The architectures, by name.
    pub architectures: BTreeMap<String, Architecture>,
    /// The definitions that were refused, in the order of their places.
    pub refused: Vec<Refused>,
}

impl From<Sources> for Catalogue {
    /// Looks up the names in all expressions. Definitions that are wrong are refused, once for all architectures that have
    /// them.
    fn from(sources: Sources) -> Catalogue {
        let mut refused = sources.refused;
        let resolve = |(name, definitions): (String, Definitions)| {
            let Definitions {
                dialect,
                blocks,
                counters,
            } = definitions;
            let resolver = Resolver::new(blocks, dialect);
            (name, resolver.resolve(counters, &mut refused))
        };
        let architectures = sources.architectures.into_iter().map(resolve).collect();
        refused.sort_by(|left, right| left.at.cmp(&right.at));
        refused.dedup();
        Catalogue {
            architectures,
            refused,
        }
    }
}

/// Looks up the names of definitions.
struct Resolver {
    architecture: Architecture,
    dialect: Dialect,
    blocks: HashMap<String, BlockIndex>,
}

/// The state of a metric while names are looked up.
#[derive(Clone, PartialEq)]
enum LookUp {
    New,
    Open,
    Known(Option<(Formula, Shape)>),
}

impl Resolver {
    fn new(blocks: Vec<HardwareBlock>, dialect: Dialect) -> Resolver {
        let numbered = blocks.iter().enumerate();
        let by_name = numbered.map(|(place, block)| (block.name.clone(), BlockIndex(place as u32)));
        Resolver {
            blocks: by_name.collect(),
            dialect,
            architecture: Architecture {
                blocks,
                dialect,
                ..Architecture::default()
            },
        }
    }

    fn resolve(mut self, definitions: Vec<Defined>, refused: &mut Vec<Refused>) -> Architecture {
        // The last definition of a name.
        let mut latest: HashMap<&str, usize> = HashMap::new();
        for (place, defined) in definitions.iter().enumerate() {
            latest.insert(&defined.name, place);
        }
        let mut taken: Vec<usize> = latest.values().copied().collect();
        taken.sort_unstable();
        let places: HashMap<&str, usize> = taken
            .iter()
            .enumerate()
            .map(|(place, of)| (definitions[*of].name.as_str(), place))
            .collect();
        let definitions: Vec<&Defined> = taken.iter().map(|place| &definitions[*place]).collect();
        let mut states = vec![LookUp::New; definitions.len()];
        let mut order = Vec::new();
        for start in 0..definitions.len() {
            self.resolve_from(
                start,
                &definitions,
                &places,
                &mut states,
                &mut order,
                refused,
            );
        }
        let mut indices = vec![None; definitions.len()];
        let mut count = 0;
        for (place, state) in states.iter().enumerate() {
            if *state != LookUp::Known(None) {
                indices[place] = Some(CounterIndex(count));
                count += 1;
            }
        }
        for (place, defined) in definitions.iter().enumerate() {
            let LookUp::Known(Some((mut formula, _))) =
                std::mem::replace(&mut states[place], LookUp::New)
            else {
                continue;
            };
            let definition = match &defined.from {
                DefinedFrom::Event {
                    block,
                    event,
                    instance,
                } => Definition::Basic {
                    block: self.blocks[block.as_str()],
                    event: *event,
                    instance: *instance,
                },
                DefinedFrom::Expression(expression, _) => {
                    formula.renumber(&indices);
                    Definition::Derived(expression.clone(), formula)
                }
            };
            let index = CounterIndex(self.architecture.counters.len() as u32);
            let name = &defined.name;
            self.architecture.by_name.insert(name.clone(), index);
            let folded = name.to_ascii_lowercase();
            self.architecture
                .by_folded_name
                .entry(folded)
                .or_insert(index);
            self.architecture.counters.push(Counter {
                name: name.clone(),
                description: defined.description.clone(),
                usage: defined.usage,
                definition,
                at: defined.at.clone(),
            });
        }
        let derived = order.into_iter().filter_map(|place: usize| indices[place]);
        self.architecture.order = derived.collect();
        self.architecture.infer_units();
        self.architecture
    }

    /// Looks up the names of a definition and of those that it uses, without recursion: a file may chain any number.
    fn resolve_from(
        &mut self,
        start: usize,
        definitions: &[&Defined],
        places: &HashMap<&str, usize>,
        states: &mut [LookUp],
        order: &mut Vec<usize>,
        refused: &mut Vec<Refused>,
    ) {
        let mut open = vec![start];
        while let Some(&place) = open.last() {
            let defined = definitions[place];
            match (&states[place], &defined.from) {
                (LookUp::Known(_), _) => {
                    open.pop();
                }
                (_, DefinedFrom::Event { block, .. }) => {
                    let block = self.block(block);
                    let counter = Formula::Counter(CounterIndex(place as u32), Resolution::None);
                    states[place] = LookUp::Known(Some((counter, Shape::Of(block))));
                }
                (_, DefinedFrom::Expression(expression, at)) => {
                    states[place] = LookUp::Open;
                    let mut names = Vec::new();
                    name_list(&expression.root, &mut names);
                    let used = names
                        .iter()
                        .filter_map(|name| Some((*name, *places.get(name.name.as_str())?)));
                    let unknown = used
                        .clone()
                        .find(|(_, used)| !matches!(states[*used], LookUp::Known(_)));
                    let outcome = match unknown {
                        Some((name, used)) if states[used] == LookUp::Open => Err(malformed(
                            name.at,
                            format!(
                                "{} is defined by itself, by way of {}",
                                defined.name, name.name
                            ),
                        )),
                        Some((_, used)) => {
                            open.push(used);
                            continue;
                        }
                        None => self.formula(&expression.root, places, states),
                    };
                    states[place] = LookUp::Known(match outcome {
                        Ok(known) => {
                            order.push(place);
                            Some(known)
                        }
                        Err(MalformedExpression {
                            at: within,
                            problem,
                        }) => {
                            let known = &mut self.architecture.refused;
                            known.insert(defined.name.clone(), problem.clone());
                            let column = at.column.saturating_add(within as u32);
                            refused.push(Refused {
                                at: DefinitionPlace {
                                    column,
                                    ..at.clone()
                                },
                                problem: format!("{}: {problem}", defined.name),
                            });
                            None
                        }
                    });
                }
            }
        }
    }

    /// The block with this name, which is added if it is new.
    fn block(&mut self, name: &str) -> BlockIndex {
        if let Some(known) = self.blocks.get(name) {
            return *known;
        }
        let index = BlockIndex(self.architecture.blocks.len() as u32);
        self.architecture.blocks.push(HardwareBlock {
            name: name.to_owned(),
            instances: None,
            capacity: None,
        });
        self.blocks.insert(name.to_owned(), index);
        index
    }

    fn formula(
        &self,
        node: &Node,
        places: &HashMap<&str, usize>,
        states: &[LookUp],
    ) -> Result<(Formula, Shape), MalformedExpression> {
        let of_name = |name: &CounterName| self.named(name, places, states);
        let inner = |node: &Node| self.formula(node, places, states);
        Ok(match node {
            Node::Number(number) => (Formula::Number(*number), Shape::One),
            Node::Name(name) => match (of_name(name)?, self.dialect) {
                ((formula, Shape::Of(_)), Dialect::Sum) => (
                    Formula::Reduce(Reduction::Sum, Box::new(formula), None),
                    Shape::One,
                ),
                (known, _) => known,
            },
            Node::Binary {
                operator,
                operands,
                at,
            } => {
                let (left, left_shape) = inner(&operands[0])?;
                let (right, right_shape) = inner(&operands[1])?;
                let shape = match (left_shape, right_shape) {
                    (Shape::One, shape) | (shape, Shape::One) => shape,
                    (left, right) if left == right => left,
                    _ => {
                        return Err(malformed(
                            *at,
                            "the values have instances of different blocks: reduce them before"
                                .to_owned(),
                        ));
                    }
                };
                (Formula::Binary(*operator, Box::new([left, right])), shape)
            }
            Node::Reduce {
                reduction,
                of,
                instances,
                dimensions,
            } => {
                if !dimensions.is_empty() {
                    return Err(malformed(
                        0,
                        "a reduction over some of the dimensions cannot be evaluated",
                    ));
                }
                let (of, shape) = self.instances(of, places, states)?;
                match shape {
                    Shape::One => (of, Shape::One),
                    Shape::Of(_) => (
                        Formula::Reduce(*reduction, Box::new(of), *instances),
                        Shape::One,
                    ),
                }
            }
            Node::Select { of, coordinates } => {
                if coordinates.len() != 1 {
                    return Err(malformed(
                        0,
                        "a selection by several dimensions cannot be evaluated",
                    ));
                }
                let (of, shape) = self.instances(of, places, states)?;
                (Formula::Select(Box::new(of), coordinates.clone()), shape)
            }
            Node::Accumulate { of, resolution } => match of_name(of)? {
                (Formula::Counter(counter, _), shape) => {
                    (Formula::Counter(counter, *resolution), shape)
                }
                _ => {
                    return Err(malformed(
                        of.at,
                        format!("expected a basic counter, and {} is a metric", of.name),
                    ));
                }
            },
        })
    }

    /// The value of `node` with its instances, also where a name alone means their sum.
    fn instances(
        &self,
        node: &Node,
        places: &HashMap<&str, usize>,
        states: &[LookUp],
    ) -> Result<(Formula, Shape), MalformedExpression> {
        match node {
            Node::Name(name) => self.named(name, places, states),
            node => self.formula(node, places, states),
        }
    }

    fn named(
        &self,
        name: &CounterName,
        places: &HashMap<&str, usize>,
        states: &[LookUp],
    ) -> Result<(Formula, Shape), MalformedExpression> {
        let Some(place) = places.get(name.name.as_str()) else {
            return match Property::named(&name.name) {
                Some(property) => Ok((Formula::Property(property), Shape::One)),
                None => Err(malformed(
                    name.at,
                    format!("there is no counter, metric or property {:?}", name.name),
                )),
            };
        };
        let LookUp::Known(Some((formula, shape))) = &states[*place] else {
            return Err(malformed(
                name.at,
                format!("the definition of {} was refused", name.name),
            ));
        };
        match (formula, name.instance) {
            (Formula::Counter(counter, _), Some(instance)) if matches!(shape, Shape::Of(_)) => {
                Ok((Formula::Instance(*counter, instance), Shape::One))
            }
            (_, Some(_)) => Err(malformed(
                name.at,
                format!("{} has no instances", name.name),
            )),
            (Formula::Counter(counter, _), None) if counter.0 as usize == *place => {
                Ok((formula.clone(), *shape))
            }
            _ => Ok((Formula::Metric(CounterIndex(*place as u32)), *shape)),
        }
    }
}

impl Formula {
    /// Replaces places among the definitions by indices among the counters.
    fn renumber(&mut self, indices: &[Option<CounterIndex>]) {
        match self {
            Formula::Counter(index, _) | Formula::Instance(index, _) | Formula::Metric(index) => {
                // A known formula uses known counters only.
                *index = indices[index.0 as usize].unwrap_or(*index);
            }
            Formula::Binary(_, operands) => {
                operands.iter_mut().for_each(|part| part.renumber(indices))
            }
            Formula::Reduce(_, of, _) | Formula::Select(of, _) => of.renumber(indices),
            Formula::Number(_) | Formula::Property(_) => {}
        }
    }
}

fn malformed(at: usize, problem: impl Into<String>) -> MalformedExpression {
    MalformedExpression {
        at,
        problem: problem.into(),
    }
}

/// The names of an expression.
fn name_list<'e>(node: &'e Node, names: &mut Vec<&'e CounterName>) {
    match node {
        Node::Number(_) => {}
        Node::Name(name) | Node::Accumulate { of: name, .. } => names.push(name),
        Node::Binary { operands, .. } => operands.iter().for_each(|part| name_list(part, names)),
        Node::Reduce { of, .. } | Node::Select { of, .. } => name_list(of, names),
    }
}

#[cfg(test)]
mod tests;
