//! Reads the declarations that cbindgen does not see, since it expands no macros: numbers and their values, handles,
//! statuses, flag bits, and the names of structures in C.

use std::error::Error;
use std::path::Path;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{
    Attribute, Expr, Ident, Item, Lit, LitStr, Token, Visibility, braced, parenthesized, token,
};

/// A constant: its name without prefix, its value, its documentation.
pub type Constant = (String, i64, String);

/// A number type: an id, or an enumeration.
pub struct Number {
    /// Its Rust name.
    pub name: String,
    /// Its integer type in Rust.
    pub integer: String,
    pub documentation: String,
    pub values: Vec<Constant>,
    pub fields: Vec<BitField>,
}

/// A bit field of a number.
pub struct BitField {
    pub name: String,
    pub documentation: String,
    pub shift: u32,
    pub width: u32,
}

/// The constants of a module, or of an enumeration.
pub struct Constants {
    /// Its Rust name.
    pub name: String,
    /// The C prefix of its constants.
    pub prefix: String,
    pub documentation: String,
    pub values: Vec<Constant>,
}

/// The operations of a domain that reaches subscribers only.
pub struct EventDomain {
    /// Its constant in Rust: `MEMORY_COPY`.
    pub name: String,
    pub documentation: String,
    pub operations: Vec<EventOperation>,
}

/// An operation that is no function.
pub struct EventOperation {
    /// Its constant in Rust: `COPY_ENQUEUE`.
    pub constant: String,
    pub number: u16,
    /// Its name in callbacks.
    pub name: String,
    /// The phases in which it is reported: `Enter`.
    pub phases: Vec<String>,
    /// The Rust name of the record that its callbacks have.
    pub record: Option<String>,
    pub documentation: String,
}

/// A structure that tools fill, and the initialisers of its fields after its size.
pub struct Initialiser {
    /// Its Rust name.
    pub name: String,
    pub fields: Vec<&'static str>,
}

/// The declarations in the sources.
#[derive(Default)]
pub struct Sources {
    pub numbers: Vec<Number>,
    /// Rust name and documentation of each handle.
    pub handles: Vec<(String, String)>,
    pub statuses: Vec<Constant>,
    pub constants: Vec<Constants>,
    /// Public constants with an integer value.
    pub limits: Vec<Constant>,
    /// Rust names and C names of types.
    pub types: Vec<(String, String)>,
    pub event_domains: Vec<EventDomain>,
    pub initialisers: Vec<Initialiser>,
    /// The signatures of the functions of the C API.
    pub functions: Vec<syn::Signature>,
}

impl Sources {
    /// Reads a source file.
    pub fn read(&mut self, path: &Path) -> Result<(), Box<dyn Error>> {
        let text = std::fs::read_to_string(path)?;
        for item in syn::parse_file(&text)?.items {
            self.item(item)
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }

    fn item(&mut self, item: Item) -> syn::Result<()> {
        match item {
            Item::Macro(item) => {
                let tokens = item.mac.tokens;
                let name = item
                    .mac
                    .path
                    .segments
                    .last()
                    .map(|last| last.ident.to_string());
                match name.as_deref() {
                    Some("open_enum" | "vocabulary" | "absent") => {
                        self.numbers.push(enumeration.parse2(tokens)?);
                    }
                    Some("bit_fields") => self.numbers.push(bit_fields.parse2(tokens)?),
                    Some("number") => self.numbers.extend(numbers.parse2(tokens)?),
                    Some("statuses") => self.statuses = statuses.parse2(tokens)?,
                    Some("handles") => self.handles = handles.parse2(tokens)?,
                    Some("callback_domains") => {
                        self.event_domains = callback_domains.parse2(tokens)?;
                    }
                    Some("sized") => {
                        let named = sized.parse2(tokens)?;
                        self.types.retain(|(rust, _)| *rust != named.0);
                        self.types.push(named);
                    }
                    _ => {}
                }
            }
            Item::Mod(item) => {
                let items = item.content.map_or_else(Vec::new, |(_, items)| items);
                let constants: Vec<Constant> = items.iter().filter_map(constant).collect();
                if !constants.is_empty() {
                    let name = item.ident.to_string();
                    self.constants.push(Constants {
                        prefix: singular(&name).to_uppercase(),
                        name,
                        documentation: documentation(&item.attrs),
                        values: constants,
                    });
                }
            }
            Item::Enum(item) if is_public(&item.vis) && represented(&item.attrs, "u32") => {
                let value = |variant: &syn::Variant| {
                    let (_, value) = variant.discriminant.as_ref()?;
                    let name = snake(&variant.ident.to_string()).to_uppercase();
                    Some((name, integer(value)?, documentation(&variant.attrs)))
                };
                let name = item.ident.to_string();
                self.constants.push(Constants {
                    prefix: snake(&name).to_uppercase(),
                    name,
                    documentation: documentation(&item.attrs),
                    values: item.variants.iter().filter_map(value).collect(),
                });
            }
            // Structures with private fields are not visible in C.
            Item::Struct(item)
                if is_public(&item.vis)
                    && represented(&item.attrs, "C")
                    && item.fields.iter().all(|field| is_public(&field.vis)) =>
            {
                let rust = item.ident.to_string();
                let has_header = item
                    .fields
                    .iter()
                    .any(|field| field.ident.as_ref().is_some_and(|name| name == "header"));
                let c = if has_header || rust.ends_with("Header") {
                    format!("gputrail_record_{}", snake(&rust))
                } else {
                    format!("gputrail_{}", snake(&rust))
                };
                self.initialisers.extend(initialiser(&item));
                self.types.push((rust, c));
            }
            Item::Type(item) if is_public(&item.vis) => {
                let rust = item.ident.to_string();
                let c = format!("gputrail_{}", snake(&rust));
                self.types.push((rust, c));
            }
            Item::Const(_) => self.limits.extend(constant(&item)),
            Item::Fn(item) if item.sig.abi.is_some() && is_public(&item.vis) => {
                self.functions.push(item.sig);
            }
            _ => {}
        }
        Ok(())
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The initialisers of a structure whose size the tool sets, which its comment says.
fn initialiser(item: &syn::ItemStruct) -> Option<Initialiser> {
    let mut fields = item.fields.iter();
    let size = fields.next()?;
    let is_size = size.ident.as_ref().is_some_and(|name| name == "size");
    if !is_size || !documentation(&size.attrs).starts_with("`sizeof(") {
        return None;
    }
    let zero = |field: &syn::Field| match &field.ty {
        _ if field
            .ident
            .as_ref()
            .is_some_and(|name| name == "api_version") =>
        {
            "GPUTRAIL_API_VERSION"
        }
        syn::Type::Ptr(_) => "NULL",
        syn::Type::Array(_) => "{0}",
        syn::Type::Path(path) => {
            let name = path.path.segments.last().map(|last| last.ident.to_string());
            let name = name.unwrap_or_default();
            let ends = |end: &str| name.ends_with(end);
            match (ends("Function") || ends("Handler"), ends("Handle")) {
                (true, _) => "NULL",
                (_, true) => "{0}",
                _ => "0",
            }
        }
        _ => "0",
    };
    Some(Initialiser {
        name: item.ident.to_string(),
        fields: fields.map(zero).collect(),
    })
}

/// Whether the attributes have `repr(layout)`.
fn represented(attributes: &[Attribute], layout: &str) -> bool {
    attributes.iter().any(|attribute| {
        let mut found = false;
        if attribute.path().is_ident("repr") {
            let _ = attribute.parse_nested_meta(|meta| {
                found |= meta.path.is_ident(layout);
                if meta.input.peek(token::Paren) {
                    let content;
                    parenthesized!(content in meta.input);
                    content.parse::<Lit>()?;
                }
                Ok(())
            });
        }
        found
    })
}

/// The text of documentation comments.
fn documentation(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| {
        let syn::Meta::NameValue(pair) = &attribute.meta else {
            return None;
        };
        match &pair.value {
            Expr::Lit(literal) if pair.path.is_ident("doc") => match &literal.lit {
                Lit::Str(text) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A public constant that is an integer.
fn constant(item: &Item) -> Option<Constant> {
    match item {
        Item::Const(item) if is_public(&item.vis) => Some((
            item.ident.to_string(),
            integer(&item.expr)?,
            documentation(&item.attrs),
        )),
        _ => None,
    }
}

/// The value of an integer, or of one shifted to the left.
fn integer(value: &Expr) -> Option<i64> {
    match value {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_parse().ok(),
            _ => None,
        },
        Expr::Unary(negative) => Some(-integer(&negative.expr)?),
        Expr::Binary(shift) if matches!(shift.op, syn::BinOp::Shl(_)) => {
            Some(integer(&shift.left)? << integer(&shift.right)?)
        }
        _ => None,
    }
}

/// `/// documentation` `Name(integer)`.
struct Head {
    documentation: String,
    name: String,
    integer: String,
}

impl Parse for Head {
    fn parse(input: ParseStream<'_>) -> syn::Result<Head> {
        let attributes = input.call(Attribute::parse_outer)?;
        let name: Ident = input.parse()?;
        let content;
        parenthesized!(content in input);
        Ok(Head {
            documentation: documentation(&attributes),
            name: name.to_string(),
            integer: content.parse::<Ident>()?.to_string(),
        })
    }
}

/// `NAME = value, "text";` with documentation before it; without one, the text is the documentation.
fn value(input: ParseStream<'_>) -> syn::Result<Constant> {
    let attributes = input.call(Attribute::parse_outer)?;
    let name: Ident = input.parse()?;
    input.parse::<Token![=]>()?;
    let value = integer(&input.parse()?).ok_or_else(|| input.error("not an integer"))?;
    input.parse::<Token![,]>()?;
    let text = input.parse::<LitStr>()?.value();
    // Some have a name in a vendor's API, too.
    if input.peek(Token![,]) {
        input.parse::<Token![,]>()?;
        input.parse::<LitStr>()?;
    }
    input.parse::<Token![;]>()?;
    let documentation = match documentation(&attributes) {
        none if none.is_empty() => text,
        documentation => documentation,
    };
    Ok((name.to_string(), value, documentation))
}

fn until_end<T>(
    input: ParseStream<'_>,
    one: impl Fn(ParseStream<'_>) -> syn::Result<T>,
) -> syn::Result<Vec<T>> {
    let mut all = Vec::new();
    while !input.is_empty() {
        all.push(one(input)?);
    }
    Ok(all)
}

fn enumeration(input: ParseStream<'_>) -> syn::Result<Number> {
    let head: Head = input.parse()?;
    if input.parse::<Option<Token![,]>>()?.is_some() {
        input.parse::<LitStr>()?;
    }
    let content;
    braced!(content in input);
    Ok(Number {
        name: head.name,
        integer: head.integer,
        documentation: head.documentation,
        values: until_end(&content, value)?,
        fields: Vec::new(),
    })
}

fn bit_fields(input: ParseStream<'_>) -> syn::Result<Number> {
    let head: Head = input.parse()?;
    let content;
    braced!(content in input);
    let fields = until_end(&content, |input| {
        let attributes = input.call(Attribute::parse_outer)?;
        let name: Ident = input.parse()?;
        input.parse::<Token![,]>()?;
        input.parse::<Ident>()?;
        input.parse::<Token![:]>()?;
        let shift: syn::LitInt = input.parse()?;
        input.parse::<Token![,]>()?;
        let width: syn::LitInt = input.parse()?;
        input.parse::<Token![;]>()?;
        Ok(BitField {
            name: name.to_string(),
            documentation: documentation(&attributes),
            shift: shift.base10_parse()?,
            width: width.base10_parse()?,
        })
    });
    Ok(Number {
        name: head.name,
        integer: head.integer,
        documentation: head.documentation,
        values: Vec::new(),
        fields: fields?,
    })
}

fn numbers(input: ParseStream<'_>) -> syn::Result<Vec<Number>> {
    until_end(input, |input| {
        let head: Head = input.parse()?;
        input.parse::<Token![;]>()?;
        Ok(Number {
            name: head.name,
            integer: head.integer,
            documentation: head.documentation,
            values: Vec::new(),
            fields: Vec::new(),
        })
    })
}

fn statuses(input: ParseStream<'_>) -> syn::Result<Vec<Constant>> {
    until_end(input, value)
}

/// `Handle;` with documentation before it.
fn handles(input: ParseStream<'_>) -> syn::Result<Vec<(String, String)>> {
    until_end(input, |input| {
        let attributes = input.call(Attribute::parse_outer)?;
        let name: Ident = input.parse()?;
        input.parse::<Token![;]>()?;
        Ok((name.to_string(), documentation(&attributes)))
    })
}

/// `module: DOMAIN { CONSTANT = number, "name", Phase | Phase (Record); }` with documentation before both.
fn callback_domains(input: ParseStream<'_>) -> syn::Result<Vec<EventDomain>> {
    until_end(input, |input| {
        let attributes = input.call(Attribute::parse_outer)?;
        input.parse::<Ident>()?;
        input.parse::<Token![:]>()?;
        let name: Ident = input.parse()?;
        let content;
        braced!(content in input);
        Ok(EventDomain {
            name: name.to_string(),
            documentation: documentation(&attributes),
            operations: until_end(&content, event_operation)?,
        })
    })
}

fn event_operation(input: ParseStream<'_>) -> syn::Result<EventOperation> {
    let attributes = input.call(Attribute::parse_outer)?;
    let constant: Ident = input.parse()?;
    input.parse::<Token![=]>()?;
    let number: syn::LitInt = input.parse()?;
    input.parse::<Token![,]>()?;
    let name: LitStr = input.parse()?;
    input.parse::<Token![,]>()?;
    let mut phases = vec![input.parse::<Ident>()?.to_string()];
    while input.parse::<Option<Token![|]>>()?.is_some() {
        phases.push(input.parse::<Ident>()?.to_string());
    }
    let mut record = None;
    if input.peek(token::Paren) {
        let content;
        parenthesized!(content in input);
        record = Some(content.parse::<Ident>()?.to_string());
    }
    input.parse::<Token![;]>()?;
    Ok(EventOperation {
        constant: constant.to_string(),
        number: number.base10_parse()?,
        name: name.value(),
        phases,
        record,
        documentation: documentation(&attributes),
    })
}

/// `Type, "name in C", bytes`.
fn sized(input: ParseStream<'_>) -> syn::Result<(String, String)> {
    let rust: Ident = input.parse()?;
    input.parse::<Token![,]>()?;
    let c = input.parse::<LitStr>()?.value();
    input.parse::<Token![,]>()?;
    input.parse::<Lit>()?;
    Ok((rust.to_string(), c))
}

/// `CamelCase` as `snake_case`.
pub fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (place, letter) in name.char_indices() {
        if letter.is_uppercase() && place > 0 {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// `properties` as `property`, `flags` as `flag`.
fn singular(name: &str) -> String {
    match (name.strip_suffix("ies"), name.strip_suffix('s')) {
        (Some(stem), _) => format!("{stem}y"),
        (None, Some(stem)) => stem.to_owned(),
        (None, None) => name.to_owned(),
    }
}
