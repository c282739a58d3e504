//! Expressions of derived metrics: their text, parsed once, with the position of whatever is wrong.
//!
//! Two notations are read. The infix one is that of ROCProfiler v1 and of rocprofiler-sdk:
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = factor { ("*" | "/") factor }
//! factor  = [ "-" ] ( number | name [ "[" number "]" ] | function | "(" sum ")" )
//! ```
//!
//! | function | value |
//! |---|---|
//! | `reduce(X, sum)` | of all instances of `X`; also `avr`, `min`, `max`. A third argument `[DIMENSION_XCC, ...]` names the dimensions that are reduced |
//! | `sum(X, 16)` | of the first 16 instances of `X`; also `avr`, `min`, `max` (ROCProfiler v1) |
//! | `min(a, b)`, `max(a, b)` | the smaller or larger of two values |
//! | `select(X, [DIMENSION_XCC=[0]])` | the instances of `X` with these coordinates; ranges are `[0:3]` |
//! | `accumulate(X, HIGH_RES)` | `X`, added up by the hardware in every cycle; also `LOW_RES` (every fourth) and `NONE` |
//! | `X[3]` | instance 3 of `X` (ROCProfiler v1) |
//!
//! Reducing only some dimensions, selecting in several, and combining instances of different blocks are refused. A counter's bare
//! name is the sum of its instances for ROCProfiler v1 and GPUPerfAPI; for rocprofiler-sdk it is all of them, which must be
//! reduced.
//!
//! The postfix notation is that of GPUPerfAPI's definitions ([`Expression::parse_postfix`]).

use std::fmt;

/// Maximum depth of parentheses and calls.
const MAX_DEPTH: u32 = 64;
/// Maximum number of bytes of an expression. It bounds the depth of a chain of operations, over which functions recurse.
const MAX_BYTES: usize = 1 << 11;

/// An expression whose names have not been looked up.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// Its text.
    pub text: String,
    /// Its outermost operation.
    pub root: Node,
}

/// A part of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A number.
    Number(f64),
    /// A counter, metric or property by name.
    Name(CounterName),
    /// An operation on two values.
    Binary {
        /// The operation.
        operator: Operator,
        /// The operands.
        operands: Box<[Node; 2]>,
        /// The offset of the operator in the text.
        at: usize,
    },
    /// The instances of a value, made one.
    Reduce {
        /// The operation over the instances.
        reduction: Reduction,
        /// The value.
        of: Box<Node>,
        /// The number of instances, from the first one on; `None`: all.
        instances: Option<u32>,
        /// The dimensions that are reduced; empty: all.
        dimensions: Vec<String>,
    },
    /// Some of the instances of a value.
    Select {
        /// The value.
        of: Box<Node>,
        /// For each dimension, the coordinates that are taken.
        coordinates: Vec<(String, Vec<u32>)>,
    },
    /// A counter that the hardware adds up over time.
    Accumulate {
        /// The counter.
        of: CounterName,
        /// How often.
        resolution: Resolution,
    },
}

/// A name in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterName {
    /// The name.
    pub name: String,
    /// The instance, where one is named.
    pub instance: Option<u32>,
    /// Its offset in the text.
    pub at: usize,
}

/// An operation on two values.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`; a divisor of 0 makes the value invalid.
    Divide,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
}

/// An operation over instances.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The sum.
    Sum,
    /// The mean.
    Average,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

impl Reduction {
    fn named(name: &str) -> Option<Reduction> {
        Some(match name {
            "sum" => Reduction::Sum,
            "avr" | "avg" => Reduction::Average,
            "min" => Reduction::Min,
            "max" => Reduction::Max,
            _ => return None,
        })
    }
}

/// How often the hardware adds a counter up.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resolution {
    /// Not at all: the counter counts events.
    None,
    /// Every fourth cycle.
    Low,
    /// In every cycle.
    High,
}

/// The error of an expression that cannot be used, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MalformedExpression {
    /// The offset in the text, in bytes.
    pub at: usize,
    /// The problem there: the expected part, or the reason.
    pub problem: String,
}

impl fmt::Display for MalformedExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.at + 1, self.problem)
    }
}

impl std::error::Error for MalformedExpression {}

type Parsed<T> = Result<T, MalformedExpression>;

impl Expression {
    /// Parses the infix notation.
    pub fn parse(text: &str) -> Parsed<Expression> {
        let mut parser = Parser::new(text)?;
        let root = parser.sum(0)?;
        match parser.next {
            None => Ok(Expression {
                text: text.to_owned(),
                root,
            }),
            Some(_) => Err(parser.expected("an operator or the end")),
        }
    }

    /// Parses the postfix notation of GPUPerfAPI: items separated by commas.
    ///
    /// | item | effect |
    /// |---|---|
    /// | `3`, `1..16` | pushes the counters with these numbers in the list of the definition |
    /// | `(100)` | pushes a number |
    /// | `NUM_SIMDS` | pushes a property |
    /// | `+`, `-`, `*`, `/`, `min`, `max` | takes two values and pushes the result |
    /// | `sum16`, `max16`, `min16`, `avg16` | takes 16 values and pushes the result |
    ///
    /// `counters` are the names of the list.
    pub fn parse_postfix(text: &str, counters: &[String]) -> Parsed<Expression> {
        bounded(text)?;
        let mut stack = Vec::new();
        let mut at = 0;
        for item in text.split(',') {
            let start = at + (item.len() - item.trim_start().len());
            at += item.len() + 1;
            postfix_item(item.trim(), start, counters, &mut stack)?;
            if stack.len() > MAX_BYTES {
                return Err(malformed(start, "fewer values on the stack"));
            }
        }
        let root = stack.pop();
        match (root, stack.len()) {
            (Some(root), 0) => Ok(Expression {
                text: text.to_owned(),
                root,
            }),
            (None, _) => Err(malformed(0, "expected a value".to_owned())),
            (_, left) => Err(malformed(
                text.len(),
                format!(
                    "left over on the stack: {}",
                    gputrail_record::count(left as u64, "value")
                ),
            )),
        }
    }
}

fn malformed(at: usize, problem: impl Into<String>) -> MalformedExpression {
    MalformedExpression {
        at,
        problem: problem.into(),
    }
}

fn bounded(text: &str) -> Parsed<()> {
    if text.len() > MAX_BYTES {
        Err(malformed(
            MAX_BYTES,
            format!("an expression has at most {MAX_BYTES} bytes"),
        ))
    } else {
        Ok(())
    }
}

fn postfix_item(item: &str, at: usize, counters: &[String], stack: &mut Vec<Node>) -> Parsed<()> {
    let counter = |number: &str| -> Parsed<Node> {
        let known = number
            .parse()
            .ok()
            .and_then(|place: usize| counters.get(place));
        match known {
            Some(name) => Ok(Node::Name(CounterName {
                name: name.clone(),
                instance: None,
                at,
            })),
            None => Err(malformed(
                at,
                format!(
                    "expected the number of one of {} counters, found {number:?}",
                    counters.len()
                ),
            )),
        }
    };
    let mut take = |count: usize| -> Parsed<Vec<Node>> {
        match stack.len().checked_sub(count) {
            Some(rest) => Ok(stack.split_off(rest)),
            None => Err(malformed(
                at,
                format!(
                    "{item:?} takes {}, and the stack has {}",
                    gputrail_record::count(count as u64, "value"),
                    stack.len()
                ),
            )),
        }
    };
    let operator = match item {
        "+" => Some(Operator::Add),
        "-" => Some(Operator::Subtract),
        "*" => Some(Operator::Multiply),
        "/" => Some(Operator::Divide),
        "min" => Some(Operator::Min),
        "max" => Some(Operator::Max),
        _ => None,
    };
    let node = if let Some(operator) = operator {
        let mut operands = take(2)?.into_iter();
        let (Some(left), Some(right)) = (operands.next(), operands.next()) else {
            return Err(malformed(at, "expected two values"));
        };
        binary(operator, left, right, at)
    } else if let Some((from, to)) = item.split_once("..") {
        let bounds = (from.parse::<usize>(), to.parse::<usize>());
        let (Ok(from), Ok(to)) = bounds else {
            return Err(malformed(
                at,
                format!("expected a range such as 1..16, found {item:?}"),
            ));
        };
        if from > to || to >= counters.len() {
            return Err(malformed(
                at,
                format!(
                    "expected a range within {} counters, found {item:?}",
                    counters.len()
                ),
            ));
        }
        for place in from..=to {
            stack.push(counter(&place.to_string())?);
        }
        return Ok(());
    } else if let Some(number) = item
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
    {
        match number.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Node::Number(number),
            _ => {
                return Err(malformed(
                    at,
                    format!("expected a number in parentheses, found {item:?}"),
                ));
            }
        }
    } else if item.starts_with(|first: char| first.is_ascii_digit()) {
        counter(item)?
    } else {
        let letters = item.trim_end_matches(|last: char| last.is_ascii_digit());
        let count = item[letters.len()..]
            .parse::<usize>()
            .ok()
            .filter(|count| *count > 0);
        match (Reduction::named(letters), count) {
            (Some(reduction), Some(count)) => {
                let values = take(count)?;
                reduce_values(reduction, values, at)
            }
            _ if is_name(item) => Node::Name(CounterName {
                name: item.to_owned(),
                instance: None,
                at,
            }),
            _ => {
                return Err(malformed(
                    at,
                    format!(
                        "expected a counter's number, a number in parentheses, a property or an operation, found {item:?}"
                    ),
                ));
            }
        }
    };
    stack.push(node);
    Ok(())
}

/// The reduction of values that are listed one by one, as a balanced tree of operations.
fn reduce_values(reduction: Reduction, mut values: Vec<Node>, at: usize) -> Node {
    let operator = match reduction {
        Reduction::Sum | Reduction::Average => Operator::Add,
        Reduction::Min => Operator::Min,
        Reduction::Max => Operator::Max,
    };
    let count = values.len();
    while values.len() > 1 {
        let mut halves = values.into_iter();
        let mut next = Vec::with_capacity(count / 2 + 1);
        while let Some(left) = halves.next() {
            next.push(match halves.next() {
                Some(right) => binary(operator, left, right, at),
                None => left,
            });
        }
        values = next;
    }
    let value = values.pop().unwrap_or(Node::Number(0.0));
    match reduction {
        Reduction::Average => binary(Operator::Divide, value, Node::Number(count as f64), at),
        _ => value,
    }
}

fn binary(operator: Operator, left: Node, right: Node, at: usize) -> Node {
    Node::Binary {
        operator,
        operands: Box::new([left, right]),
        at,
    }
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    let is_first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    bytes.next().is_some_and(is_first) && bytes.all(|byte| is_first(byte) || byte.is_ascii_digit())
}

#[derive(Copy, Clone, Debug, PartialEq)]
enum Token<'a> {
    Number(f64),
    Name(&'a str),
    Sign(char),
}

/// The infix notation.
struct Parser<'a> {
    text: &'a str,
    /// The offset behind `next`.
    end: usize,
    /// The next token and its offset.
    next: Option<(usize, Token<'a>)>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parsed<Parser<'a>> {
        bounded(text)?;
        let mut parser = Parser {
            text,
            end: 0,
            next: None,
        };
        parser.advance()?;
        Ok(parser)
    }

    /// Reads the token behind `next`, which becomes the next one.
    fn advance(&mut self) -> Parsed<()> {
        let rest = &self.text[self.end..];
        let start = self.end + (rest.len() - rest.trim_start().len());
        let rest = &self.text[start..];
        let Some(first) = rest.chars().next() else {
            (self.end, self.next) = (start, None);
            return Ok(());
        };
        let is_part = |next: char| next.is_ascii_alphanumeric() || next == '_';
        let (length, token) = if first.is_ascii_digit() || first == '.' {
            let length = number_length(rest);
            match rest[..length].parse::<f64>() {
                Ok(number) if number.is_finite() => (length, Token::Number(number)),
                _ => {
                    return Err(malformed(
                        start,
                        format!("expected a number, found {:?}", &rest[..length]),
                    ));
                }
            }
        } else if first.is_ascii_alphabetic() || first == '_' {
            let length = rest.find(|next| !is_part(next)).unwrap_or(rest.len());
            (length, Token::Name(&rest[..length]))
        } else {
            (first.len_utf8(), Token::Sign(first))
        };
        self.end = start + length;
        self.next = Some((start, token));
        Ok(())
    }

    fn at(&self) -> usize {
        self.next.map_or(self.text.len(), |(at, _)| at)
    }

    fn expected(&self, what: &str) -> MalformedExpression {
        let found = match self.next {
            None => "the end".to_owned(),
            Some((at, _)) => format!("{:?}", &self.text[at..self.end]),
        };
        malformed(self.at(), format!("expected {what}, found {found}"))
    }

    /// Takes the sign if it is next.
    fn takes(&mut self, sign: char) -> Parsed<bool> {
        let is_next = matches!(self.next, Some((_, Token::Sign(next))) if next == sign);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn must_take(&mut self, sign: char) -> Parsed<()> {
        if self.takes(sign)? {
            Ok(())
        } else {
            Err(self.expected(&format!("{sign:?}")))
        }
    }

    fn name(&mut self, what: &str) -> Parsed<(usize, &'a str)> {
        match self.next {
            Some((at, Token::Name(name))) => {
                self.advance()?;
                Ok((at, name))
            }
            _ => Err(self.expected(what)),
        }
    }

    fn count(&mut self, what: &str) -> Parsed<u32> {
        match self.next {
            Some((_, Token::Number(number)))
                if number.fract() == 0.0 && number >= 0.0 && number <= f64::from(u16::MAX) =>
            {
                self.advance()?;
                Ok(number as u32)
            }
            _ => Err(self.expected(what)),
        }
    }

    fn sum(&mut self, depth: u32) -> Parsed<Node> {
        let mut left = self.product(depth)?;
        loop {
            let at = self.at();
            let operator = match self.next {
                Some((_, Token::Sign('+'))) => Operator::Add,
                Some((_, Token::Sign('-'))) => Operator::Subtract,
                _ => return Ok(left),
            };
            self.advance()?;
            left = binary(operator, left, self.product(depth)?, at);
        }
    }

    fn product(&mut self, depth: u32) -> Parsed<Node> {
        let mut left = self.factor(depth)?;
        loop {
            let at = self.at();
            let operator = match self.next {
                Some((_, Token::Sign('*'))) => Operator::Multiply,
                Some((_, Token::Sign('/'))) => Operator::Divide,
                _ => return Ok(left),
            };
            self.advance()?;
            left = binary(operator, left, self.factor(depth)?, at);
        }
    }

    fn factor(&mut self, depth: u32) -> Parsed<Node> {
        if depth >= MAX_DEPTH {
            return Err(malformed(
                self.at(),
                format!("expected at most {MAX_DEPTH} levels of parentheses"),
            ));
        }
        let at = self.at();
        match self.next {
            Some((_, Token::Number(number))) => {
                self.advance()?;
                Ok(Node::Number(number))
            }
            Some((_, Token::Sign('-'))) => {
                self.advance()?;
                let value = self.factor(depth + 1)?;
                Ok(binary(Operator::Subtract, Node::Number(0.0), value, at))
            }
            Some((_, Token::Sign('('))) => {
                self.advance()?;
                let value = self.sum(depth + 1)?;
                self.must_take(')')?;
                Ok(value)
            }
            Some((_, Token::Name(name))) => {
                self.advance()?;
                if self.takes('(')? {
                    return self.call(name, at, depth);
                }
                Ok(Node::Name(self.instance_of(name, at)?))
            }
            _ => Err(self.expected("a number, a name or a parenthesis")),
        }
    }

    /// A name and the instance behind it, if one is named.
    fn instance_of(&mut self, name: &str, at: usize) -> Parsed<CounterName> {
        let mut instance = None;
        if self.takes('[')? {
            instance = Some(self.count("the number of an instance")?);
            self.must_take(']')?;
        }
        Ok(CounterName {
            name: name.to_owned(),
            instance,
            at,
        })
    }

    /// A function, whose opening parenthesis has been taken.
    fn call(&mut self, function: &str, at: usize, depth: u32) -> Parsed<Node> {
        let node = match function {
            "reduce" => {
                let of = Box::new(self.sum(depth + 1)?);
                self.must_take(',')?;
                let (place, name) = self.name("sum, avr, min or max")?;
                let reduction = Reduction::named(name).ok_or_else(|| {
                    malformed(
                        place,
                        format!("expected sum, avr, min or max, found {name:?}"),
                    )
                })?;
                let mut dimensions = Vec::new();
                if self.takes(',')? {
                    self.must_take('[')?;
                    loop {
                        dimensions.push(self.name("a dimension")?.1.to_owned());
                        if !self.takes(',')? {
                            break;
                        }
                    }
                    self.must_take(']')?;
                }
                Node::Reduce {
                    reduction,
                    of,
                    instances: None,
                    dimensions,
                }
            }
            "select" => {
                let of = Box::new(self.sum(depth + 1)?);
                self.must_take(',')?;
                let coordinates = self.coordinates()?;
                Node::Select { of, coordinates }
            }
            "accumulate" => {
                let (place, name) = self.name("a counter")?;
                let of = self.instance_of(name, place)?;
                self.must_take(',')?;
                let (place, resolution) = self.name("HIGH_RES, LOW_RES or NONE")?;
                let resolution = match resolution {
                    "HIGH_RES" => Resolution::High,
                    "LOW_RES" => Resolution::Low,
                    "NONE" => Resolution::None,
                    other => {
                        return Err(malformed(
                            place,
                            format!("expected HIGH_RES, LOW_RES or NONE, found {other:?}"),
                        ));
                    }
                };
                Node::Accumulate { of, resolution }
            }
            name => {
                let Some(reduction) = Reduction::named(name) else {
                    return Err(malformed(
                        at,
                        format!(
                            "expected reduce, select, accumulate, sum, avr, min or max, found {name:?}"
                        ),
                    ));
                };
                let first = self.sum(depth + 1)?;
                self.must_take(',')?;
                self.reduction_or_choice(reduction, first, at, depth)?
            }
        };
        self.must_take(')')?;
        Ok(node)
    }

    /// `sum(X, 16)` is a reduction, `max(a, b)` a choice: a number behind a name is a number of instances.
    fn reduction_or_choice(
        &mut self,
        reduction: Reduction,
        first: Node,
        at: usize,
        depth: u32,
    ) -> Parsed<Node> {
        let operator = match reduction {
            Reduction::Min => Some(Operator::Min),
            Reduction::Max => Some(Operator::Max),
            Reduction::Sum | Reduction::Average => None,
        };
        let is_count = matches!(self.next, Some((_, Token::Number(_))));
        match operator {
            Some(operator) if !(is_count && matches!(first, Node::Name(_))) => {
                Ok(binary(operator, first, self.sum(depth + 1)?, at))
            }
            _ => Ok(Node::Reduce {
                reduction,
                of: Box::new(first),
                instances: Some(self.count("a number of instances")?),
                dimensions: Vec::new(),
            }),
        }
    }

    /// `[DIMENSION_XCC=[0], DIMENSION_SHADER_ENGINE=[0:3]]`.
    fn coordinates(&mut self) -> Parsed<Vec<(String, Vec<u32>)>> {
        let mut coordinates = Vec::new();
        self.must_take('[')?;
        loop {
            let dimension = self.name("a dimension")?.1.to_owned();
            self.must_take('=')?;
            self.must_take('[')?;
            let mut taken = Vec::new();
            loop {
                let at = self.at();
                let from = self.count("a coordinate")?;
                let to = if self.takes(':')? {
                    self.count("a coordinate")?
                } else {
                    from
                };
                if to < from {
                    return Err(malformed(at, format!("the range {from}:{to} is empty")));
                }
                taken.extend(from..=to);
                if taken.len() > usize::from(u16::MAX) {
                    return Err(malformed(at, "too many coordinates"));
                }
                if !self.takes(',')? {
                    break;
                }
            }
            self.must_take(']')?;
            coordinates.push((dimension, taken));
            if !self.takes(',')? {
                break;
            }
        }
        self.must_take(']')?;
        Ok(coordinates)
    }
}

/// The number of bytes of the number that `text` begins with: digits, a point, an exponent.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(signed);
        if exponent > signed {
            end = exponent;
        }
    }
    end
}

#[cfg(test)]
mod tests;
