use super::super::semantics::Facts;
use super::*;

const DOMAIN: u32 = u32::MAX;

fn entry(kind: u64, name: &str, flags: u64, detail: u64) -> SchemaEntry {
    SchemaEntry {
        flags,
        kind,
        name: name.into(),
        detail,
        offset: 0,
        facts: Facts::default(),
    }
}

fn register(id: u64, form: u64, entries: Vec<SchemaEntry>) {
    let schema = Schema::new(DOMAIN, "".into(), form, entries, 0, 0);
    LAYOUTS.put((DOMAIN, id), PayloadLayout::Schema(schema));
}

fn read(schema: u64, data: &[u8]) -> (PayloadValues, usize) {
    let source = PayloadBytes {
        domain: DOMAIN,
        payloads: &[data],
    };
    let mut values = PayloadValues::default();
    let size = values.read_event(&source, schema, data);
    (values, size)
}

fn text_and_number(text: u64, number: u32) -> Vec<u8> {
    [&text.to_le_bytes()[..], &number.to_le_bytes(), &[0; 4]].concat()
}

fn pointer_and_number() -> Vec<SchemaEntry> {
    vec![
        entry(kind::STRING, "text", 0, 0),
        entry(5, "number", flag::HIDE, 0),
    ]
}

#[test]
fn dynamic_structures_of_an_array_are_read_behind_each_other() {
    let (element, whole) = (1 << 30, (1 << 30) + 1);
    register(element, form::DYNAMIC, pointer_and_number());
    let array = array::FIXED << 4;
    register(whole, form::DYNAMIC, vec![entry(element, "all", array, 2)]);
    let texts = [c"one", c"two"].map(|text| text.as_ptr().addr() as u64);
    for text in [c"one", c"two"] {
        let _ = text.as_ptr().expose_provenance();
    }
    let data = [text_and_number(texts[0], 1), text_and_number(texts[1], 2)].concat();
    let (values, size) = read(whole, &data);
    let text = |place: usize, text: &str| {
        (
            format!("all[{place}].text"),
            ReadValue::Text(text.to_owned()),
        )
    };
    assert_eq!(values.fields, [text(0, "one"), text(1, "two")]);
    assert_eq!(size, 28);
    // The second element is not there.
    let (values, size) = read(whole, &data[..12]);
    assert_eq!((values.fields, size), (vec![text(0, "one")], 12));
    assert!(values.is_cut);
}

#[test]
fn addresses_behind_entries_of_unknown_size_are_not_followed() {
    let (element, whole) = (1 << 29, (1 << 29) + 1);
    register(element, form::DYNAMIC, pointer_and_number());
    let many = array::FIXED << 4;
    register(
        whole,
        form::DYNAMIC,
        vec![
            entry(element, "all", many, MAX_ELEMENTS as u64 + 1),
            entry(kind::STRING, "wild", 0, 0),
            entry(kind::REGISTERED, "handle", 0, 0),
        ],
    );
    let mut data = text_and_number(0, 7).repeat(MAX_ELEMENTS);
    data.extend([1; 64]);
    let (values, size) = read(whole, &data);
    let wild = "0x101010101010101";
    let [.., (_, text), (_, handle)] = &values.fields[..] else {
        panic!("{:?}", values.fields);
    };
    assert_eq!(*text, ReadValue::Text(wild.to_owned()));
    assert_eq!(
        *handle,
        ReadValue::Number(PayloadKind::UNSIGNED, 0x0101_0101_0101_0101)
    );
    assert_eq!(size, data.len());
}
