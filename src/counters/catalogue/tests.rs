//! Catalogues of definitions that are made here, with right and wrong ones.

use super::*;

fn at(line: u32) -> DefinitionPlace {
    DefinitionPlace {
        file: "made.yaml".into(),
        line,
        column: 10,
    }
}

fn event(name: &str, block: &str, event: u32) -> Defined {
    Defined {
        name: name.to_owned(),
        description: String::new(),
        usage: Usage::Items,
        from: DefinedFrom::Event {
            block: block.to_owned(),
            event,
            instance: None,
        },
        at: at(1),
    }
}

fn metric(name: &str, line: u32, expression: &str) -> Defined {
    Defined {
        from: DefinedFrom::Expression(Expression::parse(expression).unwrap(), at(line)),
        ..event(name, "", 0)
    }
}

fn made(dialect: Dialect, definitions: Vec<Defined>) -> (Architecture, Vec<String>) {
    let mut sources = Sources::default();
    let definitions = Definitions {
        dialect,
        blocks: Vec::new(),
        counters: definitions,
    };
    sources.architectures.insert("made".to_owned(), definitions);
    let mut catalogue = Catalogue::from(sources);
    let refused = catalogue.refused.iter().map(Refused::to_string).collect();
    (catalogue.architectures.remove("made").unwrap(), refused)
}

#[test]
fn a_metric_is_computed_behind_those_that_it_uses() {
    let (made, refused) = made(
        Dialect::Sum,
        vec![
            metric("Ratio", 2, "Both/A"),
            metric("Both", 3, "A+sum(B,16)"),
            event("A", "SQ", 4),
            event("B", "TA", 5),
        ],
    );
    assert_eq!(refused, [""; 0]);
    let names = |list: Vec<CounterIndex>| -> Vec<String> {
        list.into_iter()
            .map(|index| made.counter(index).name.clone())
            .collect()
    };
    assert_eq!(names(made.metrics_in_order().to_vec()), ["Both", "Ratio"]);
    let basic = made.basic_counters(made.find("Ratio").unwrap());
    assert_eq!(
        names(basic.into_iter().map(|(index, _)| index).collect()),
        ["A", "B"]
    );
    assert_eq!(made.find("ratio"), None);
    assert_eq!(made.find_ignoring_case("ratio"), made.find("Ratio"));
}

#[test]
fn cycles_unknown_names_and_unlike_instances_are_refused_with_their_place() {
    let (made, refused) = made(
        Dialect::Instances,
        vec![
            event("A", "SQ", 4),
            event("B", "TA", 5),
            metric("First", 2, "1+Second"),
            metric("Second", 3, "Third*2"),
            metric("Third", 4, "First"),
            metric("Lost", 5, "reduce(A,sum)/NOWHERE"),
            metric("Unlike", 6, "A+B"),
            metric("Late", 7, "2*Unlike"),
            metric("Deep", 8, "accumulate(Fine, LOW_RES)"),
            metric("Fine", 9, "reduce(A*2,max)"),
        ],
    );
    let expected = [
        "made.yaml:2:12: First: the definition of Second was refused",
        "made.yaml:3:10: Second: the definition of Third was refused",
        "made.yaml:4:10: Third: Third is defined by itself, by way of First",
        "made.yaml:5:24: Lost: there is no counter, metric or property \"NOWHERE\"",
        "made.yaml:6:11: Unlike: the values have instances of different blocks: reduce them before",
        "made.yaml:7:12: Late: the definition of Unlike was refused",
        "made.yaml:8:21: Deep: expected a basic counter, and Fine is a metric",
    ];
    assert_eq!(refused, expected);
    let left: Vec<&str> = made
        .counters()
        .iter()
        .map(|counter| counter.name.as_str())
        .collect();
    assert_eq!(left, ["A", "B", "Fine"]);
}

#[test]
fn a_chain_of_any_length_is_looked_up_without_recursion() {
    let mut definitions = vec![event("M0", "SQ", 1)];
    for number in 1..20_000 {
        definitions.push(metric(
            &format!("M{number}"),
            number,
            &format!("M{}+1", number - 1),
        ));
    }
    definitions.reverse();
    let (made, refused) = made(Dialect::Sum, definitions);
    assert_eq!((made.counters().len(), refused), (20_000, vec![]));
}

#[test]
fn the_last_definition_of_a_name_counts() {
    let (made, _) = made(
        Dialect::Sum,
        vec![
            event("A", "SQ", 4),
            metric("M", 2, "A"),
            event("A", "TA", 5),
        ],
    );
    let a = made.counter(made.find("A").unwrap());
    assert!(matches!(a.definition, Definition::Basic { event: 5, .. }));
    assert_eq!(made.counters().len(), 2);
}

#[test]
fn an_unknown_name_has_neighbours() {
    let (made, _) = made(
        Dialect::Sum,
        vec![
            event("SQ_WAVES", "SQ", 4),
            event("SQ_WAVE_CYCLES", "SQ", 5),
            event("TCC_HIT", "TCC", 1),
        ],
    );
    assert_eq!(made.nearest("sq_wave"), ["SQ_WAVES"]);
    assert_eq!(made.nearest("XYZ"), [""; 0]);
}

#[test]
fn metrics_have_the_unit_of_their_description_or_are_ratios_if_they_are_divided_by_counters() {
    let described = |name: &str, expression: &str, text: &str| Defined {
        description: text.to_owned(),
        ..metric(name, 1, expression)
    };
    let (made, refused) = made(
        Dialect::Sum,
        vec![
            event("A", "SQ", 1),
            event("B", "SQ", 2),
            described("SUM", "(A+B)/1024", ""),
            described("UNITS", "CU_NUM", ""),
            described("EACH_UNIT", "A/UNITS", ""),
            described("SIZE", "A*64/1024", "The total kilobytes"),
            described("SHARE", "100*A/B", "The percentage of A"),
            described("PER", "A/B", ""),
            described("OF_METRIC", "A/SUM", ""),
            described("MORE", "PER*2", ""),
        ],
    );
    assert_eq!(refused, [""; 0]);
    let unit = |name: &str| made.counter(made.find(name).unwrap()).usage;
    for name in ["A", "SUM", "UNITS", "EACH_UNIT"] {
        assert_eq!(unit(name), Usage::Items, "{name}");
    }
    assert_eq!(unit("SIZE"), Usage::Kilobytes);
    assert_eq!(unit("SHARE"), Usage::Percentage);
    for name in ["PER", "OF_METRIC", "MORE"] {
        assert_eq!(unit(name), Usage::Ratio, "{name}");
    }
}
