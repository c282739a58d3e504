//! Names of kernels as traces show them.

/// The name of a kernel in traces, from its own name and that name as C++ writes it, which is empty if it is none of C++.
pub fn kernel_name<'a>(name: &'a str, demangled: &'a str) -> &'a str {
    match demangled {
        "" => name,
        // Compilers of SYCL name kernels after types.
        kind if name.starts_with("_ZTS") => kind,
        function => short_name(function),
    }
}

/// The name of a function without its return type and parameters: `nn::gelu<half, 8>` of `void nn::gelu<half, 8>(half*,
/// long)`.
pub fn short_name(demangled: &str) -> &str {
    let mut depth = 0;
    let opens = |(_, letter): &(usize, char)| {
        depth += match letter {
            ')' => 1,
            '(' => -1,
            _ => 0,
        };
        depth == 0
    };
    let name = match demangled.strip_suffix(" const").unwrap_or(demangled) {
        function if function.ends_with(')') => {
            let parameters = function.char_indices().rev().find(opens);
            parameters.map_or(function, |(at, _)| &function[..at])
        }
        function => function,
    };
    let mut depth = 0;
    let separates = |(_, letter): &(usize, char)| {
        depth += match letter {
            '>' | ')' => 1,
            '<' | '(' => -1,
            _ => 0,
        };
        depth == 0 && *letter == ' '
    };
    let returns = name.char_indices().rev().find(separates);
    match returns.map_or(name, |(at, _)| &name[at + 1..]) {
        "" => demangled,
        short => short,
    }
}

#[cfg(test)]
mod tests {
    use super::{kernel_name, short_name};

    #[test]
    fn a_short_name_leaves_out_what_a_function_returns_and_takes() {
        for (demangled, short) in [
            (
                "void nn::gelu<half, 8>(half const*, long)",
                "nn::gelu<half, 8>",
            ),
            (
                "data::augment<unsigned char>(int (*)(long))",
                "data::augment<unsigned char>",
            ),
            ("f(int) const", "f"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("Functor::operator()(int)", "Functor::operator()"),
            ("saxpy", "saxpy"),
            ("", ""),
            ("()", "()"),
            ("void ", "void "),
            (")))", ")))"),
        ] {
            assert_eq!(short_name(demangled), short);
        }
    }

    #[test]
    fn a_kernel_that_is_named_after_a_type_has_its_whole_name() {
        let kind =
            "main::{lambda(sycl::handler&)#1}::operator()(sycl::handler&) const::{lambda(auto)#1}";
        assert_eq!(kernel_name("_ZTSZZ4mainENKUlRN4sycl", kind), kind);
        assert_eq!(kernel_name("_Z4geluf", "gelu(float)"), "gelu");
        assert_eq!(kernel_name("saxpy", ""), "saxpy");
    }
}
