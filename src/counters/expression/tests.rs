//! Expressions: how they are read, and what is refused with its place.

use super::*;

/// The expression with all parentheses written out.
fn shown(node: &Node) -> String {
    match node {
        Node::Number(number) => number.to_string(),
        Node::Name(name) => match name.instance {
            Some(instance) => format!("{}[{instance}]", name.name),
            None => name.name.clone(),
        },
        Node::Binary {
            operator, operands, ..
        } => {
            let sign = match operator {
                Operator::Add => "+",
                Operator::Subtract => "-",
                Operator::Multiply => "*",
                Operator::Divide => "/",
                Operator::Min => "min",
                Operator::Max => "max",
            };
            format!("({} {sign} {})", shown(&operands[0]), shown(&operands[1]))
        }
        Node::Reduce {
            reduction,
            of,
            instances,
            dimensions,
        } => format!(
            "{reduction:?}({}, {instances:?}, {dimensions:?})",
            shown(of)
        ),
        Node::Select { of, coordinates } => format!("select({}, {coordinates:?})", shown(of)),
        Node::Accumulate { of, resolution } => format!("{resolution:?}({})", of.name),
    }
}

fn infix(text: &str) -> String {
    shown(&Expression::parse(text).unwrap().root)
}

fn refused(text: &str) -> String {
    Expression::parse(text).unwrap_err().to_string()
}

#[test]
fn products_bind_closer_than_sums_and_operations_go_from_left_to_right() {
    assert_eq!(infix("a+b*c-d/2/e"), "((a + (b * c)) - ((d / 2) / e))");
    assert_eq!(infix(" - ( a + 1.5e3 ) * b"), "((0 - (a + 1500)) * b)");
}

#[test]
fn functions_are_those_of_both_profilers() {
    assert_eq!(
        infix("sum(A,16)/max(B,2)"),
        "(Sum(A, Some(16), []) / Max(B, Some(2), []))"
    );
    assert_eq!(infix("max(A/2, 4)"), "((A / 2) max 4)");
    assert_eq!(
        infix("reduce(accumulate(A, HIGH_RES), avr, [DIMENSION_XCC,DIMENSION_AID])"),
        r#"Average(High(A), None, ["DIMENSION_XCC", "DIMENSION_AID"])"#
    );
    assert_eq!(
        infix("reduce(select(A,[DIMENSION_XCC=[0:2,5]]),sum)"),
        r#"Sum(select(A, [("DIMENSION_XCC", [0, 1, 2, 5])]), None, [])"#
    );
    assert_eq!(infix("A[3]*2"), "(A[3] * 2)");
}

#[test]
fn errors_name_the_column_and_what_was_expected() {
    for (text, error) in [
        (
            "",
            "column 1: expected a number, a name or a parenthesis, found the end",
        ),
        (
            "a+",
            "column 3: expected a number, a name or a parenthesis, found the end",
        ),
        (
            "a b",
            "column 3: expected an operator or the end, found \"b\"",
        ),
        ("(a", "column 3: expected ')', found the end"),
        (
            "reduce(a,mean)",
            "column 10: expected sum, avr, min or max, found \"mean\"",
        ),
        (
            "median(a,3)",
            "column 1: expected reduce, select, accumulate, sum, avr, min or max, found \"median\"",
        ),
        (
            "sum(a,b)",
            "column 7: expected a number of instances, found \"b\"",
        ),
        (
            "a % b",
            "column 3: expected an operator or the end, found \"%\"",
        ),
        ("1e999", "column 1: expected a number, found \"1e999\""),
        (
            "accumulate(a, FULL)",
            "column 15: expected HIGH_RES, LOW_RES or NONE, found \"FULL\"",
        ),
        ("select(a,[D=[3:1]])", "column 14: the range 3:1 is empty"),
        (
            "ä",
            "column 1: expected a number, a name or a parenthesis, found \"ä\"",
        ),
    ] {
        assert_eq!(refused(text), error, "{text}");
    }
    let deep = "(".repeat(100_000);
    assert!(refused(&deep).contains("bytes") || refused(&deep).contains("levels"));
    let deep = "(".repeat(1000) + "a" + &")".repeat(1000);
    assert!(refused(&deep).contains("at most 64 levels"));
}

#[test]
fn postfix_takes_counters_by_their_number() {
    let counters: Vec<String> = ["W", "A", "B", "C", "D"].map(str::to_owned).into();
    let postfix = |text| Expression::parse_postfix(text, &counters);
    let root = postfix("1..4,sum4,0,/,(100),*,(100),min,NUM_SIMDS,-")
        .unwrap()
        .root;
    assert_eq!(
        shown(&root),
        "((((((A + B) + (C + D)) / W) * 100) min 100) - NUM_SIMDS)"
    );
    for (text, error) in [
        ("0,+", "column 3: \"+\" takes 2 values, and the stack has 1"),
        ("0,1", "column 4: left over on the stack: 1 value"),
        (
            "7",
            "column 1: expected the number of one of 5 counters, found \"7\"",
        ),
        (
            "0..9",
            "column 1: expected a range within 5 counters, found \"0..9\"",
        ),
        (
            "(x)",
            "column 1: expected a number in parentheses, found \"(x)\"",
        ),
        (
            "sum9",
            "column 1: \"sum9\" takes 9 values, and the stack has 0",
        ),
    ] {
        assert_eq!(postfix(text).unwrap_err().to_string(), error, "{text}");
    }
}
