//! `gputrail report`: one page of HTML with the figures of `gputrail summary`, that loads nothing and that no input gets out of.

use std::collections::BTreeMap;
use std::fs;

use gputrail_harness::program::run;
use gputrail_harness::repository;
use serde_json::{Value, json};

use crate::command::{TestDir, well};

/// A tag of the page: its name, with `/` before that of an end, its attributes, and the text behind it.
struct Tag {
    name: String,
    attributes: BTreeMap<String, String>,
    text: String,
}

/// Elements without an end.
const VOID: [&str; 2] = ["!DOCTYPE", "meta"];

fn unescaped(text: &str) -> String {
    let letters = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
    ];
    let text = letters
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    text.replace("&amp;", "&")
}

/// Splits a page at its tags. Attributes are in double quotes, or have no value; elements are closed in the order in which they
/// were opened.
fn tags(html: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for piece in html.split('<').skip(1) {
        let (inside, text) = piece.split_once('>').expect("the end of a tag");
        let (name, mut rest) = inside.split_once(' ').unwrap_or((inside, ""));
        let name = name.trim_end_matches('/').to_owned();
        let mut attributes = BTreeMap::new();
        while let Some((key, behind)) = rest.split_once("=\"") {
            let (value, behind) = behind.split_once('"').expect("the end of an attribute");
            attributes.insert(key.trim().to_owned(), unescaped(value));
            rest = behind;
        }
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(closed));
        } else if !VOID.contains(&&*name) && !inside.ends_with('/') {
            open.push(name.clone());
        }
        let text = unescaped(text);
        tags.push(Tag {
            name,
            attributes,
            text,
        });
    }
    assert!(open.is_empty(), "{open:?} have no end");
    tags
}

/// The tables of a page: rows by key of the column. Numbers are the exact ones.
fn tables(tags: &[Tag]) -> BTreeMap<String, Vec<BTreeMap<String, Value>>> {
    let mut tables: BTreeMap<String, Vec<BTreeMap<String, Value>>> = BTreeMap::new();
    let (mut table, mut keys) = (String::new(), Vec::new());
    let mut place = 0;
    let mut is_body = false;
    let mut rows = Vec::new();
    for tag in tags {
        match &*tag.name {
            "table" => {
                table.clone_from(&tag.attributes["data-table"]);
                keys.clear();
                is_body = false;
            }
            "th" => keys.push(tag.attributes["data-key"].clone()),
            "tbody" => is_body = true,
            "tr" if is_body => {
                place = 0;
                rows.push((table.clone(), BTreeMap::new()));
            }
            "td" => {
                let long = tag.attributes.get("title").cloned();
                let value = match &*tag.text {
                    "-" if tag.attributes["class"] == "n" => Value::Null,
                    text => json!(long.unwrap_or_else(|| text.to_owned())),
                };
                let (_, row) = rows.last_mut().expect("a row");
                row.insert(keys[place].clone(), value);
                place += 1;
            }
            "data" => {
                let value = serde_json::from_str(&tag.attributes["value"]).expect("a number");
                let (_, row) = rows.last_mut().expect("a row");
                row.insert(keys[place - 1].clone(), value);
            }
            _ => {}
        }
    }
    for (table, row) in rows {
        tables.entry(table).or_default().push(row);
    }
    tables
}

fn page(dir: &TestDir, name: &str) -> String {
    fs::read_to_string(dir.join(name)).expect("a page")
}

/// A page that loads nothing and runs nothing.
fn assert_alone(html: &str, tags: &[Tag]) {
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    assert!(tags.iter().any(|tag| {
        tag.name == "meta"
            && tag
                .attributes
                .get("content")
                .is_some_and(|content| content == policy)
    }));
    for tag in tags {
        for loading in [
            "script", "link", "img", "image", "iframe", "object", "embed", "use", "base", "form",
        ] {
            assert_ne!(tag.name, loading);
        }
        for (key, value) in &tag.attributes {
            assert!(!key.starts_with("on") && key != "src", "{key}={value}");
            assert!(key != "href" || value.starts_with('#'), "{value}");
        }
    }
    for word in ["http://", "https://", "url(", "@import"] {
        assert!(!html.contains(word), "{word}");
    }
}

/// Whether two values are equal: texts, or numbers that may be written as whole ones or not.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => (one - other).abs() <= 1e-6 * one.abs().max(1.0),
        _ => one == other,
    }
}

#[test]
fn a_page_has_the_figures_of_the_summary_and_loads_nothing() {
    let dir = TestDir::new();
    let counters = "SQ_INSTS_VALU,FETCH_SIZE,WRITE_SIZE,VALUBusy";
    well(&mut dir.gputrail(["demo", "-q", "--counters", counters]));
    well(&mut dir.gputrail(["demo", "-q", "--ranks", "4", "-o", "job"]));
    let profile = repository("tests/data/kineto/v100-resnet-nccl.json.gz");
    let profile = profile.to_str().expect("UTF-8");
    for input in ["demo.pftrace", "job", profile] {
        well(&mut dir.gputrail(["report", "-q", input, "-o", "a.html", "--top", "1000000"]));
        let html = page(&dir, "a.html");
        let tags = tags(&html);
        assert_alone(&html, &tags);
        let found = tables(&tags);
        let text = well(&mut dir.gputrail(["summary", input, "--format", "json"])).text();
        let told: BTreeMap<String, Vec<BTreeMap<String, Value>>> =
            serde_json::from_str(&text).expect("JSON");
        for (table, rows) in told
            .iter()
            .filter(|(table, rows)| *table != "advice" && !rows.is_empty())
        {
            let shown = found
                .get(table)
                .unwrap_or_else(|| panic!("{input}: no {table}"));
            assert_eq!(shown.len(), rows.len(), "{table}");
            for (shown, row) in shown.iter().zip(rows) {
                for (key, value) in row {
                    let is_long = value.as_str().is_some_and(|text| text.len() > 400);
                    assert!(
                        is_long || is_same(&shown[key], value),
                        "{table}: {key}: {} instead of {value}",
                        shown[key]
                    );
                }
            }
        }
        // The advice, numbered.
        let advice: Value = {
            let text = well(&mut dir.gputrail(["advise", input, "--format", "json"])).text();
            serde_json::from_str(&text).expect("JSON")
        };
        let cards = tags.iter().filter(|tag| {
            let id = tag.attributes.get("id");
            tag.name == "li" && id.is_some_and(|id| id.starts_with("advice-"))
        });
        assert_eq!(
            cards.count(),
            advice["advice"].as_array().map_or(0, Vec::len)
        );
        // A lane for each device at least, and the roofline where counters tell it.
        let lanes = tags.iter().filter(|tag| tag.name == "svg").count();
        assert!(lanes >= told["devices"].len(), "{lanes}");
        assert_eq!(
            html.contains("id=\"roofline\""),
            !told["roofline"].is_empty()
        );
    }
}

#[test]
fn names_of_the_input_stay_texts() {
    let dir = TestDir::new();
    let name = "</title></style></td><script>alert(\"1\")</script><img src=x onerror='alert(2)'>\u{202e}\u{1b}[31m&lt;";
    let mut events = Vec::new();
    for place in 0..40 {
        events.push(json!({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 1000 + 100 * place, "dur": 10,
            "args": {"device": 0, "stream": 7, "correlation": place}}));
        events.push(json!({"ph": "X", "cat": "user_annotation", "name": format!("{name} step {place}"), "pid": 9, "tid": 9,
            "ts": 900 + 100 * place, "dur": 90, "args": {}}));
        events.push(json!({"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 9, "tid": 9, "ts": 910 + 100 * place, "dur": 20,
            "args": {"correlation": place}}));
    }
    let file = json!({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": name}], "traceEvents": events});
    fs::write(dir.join("<b onclick=x>&.json"), file.to_string()).expect("room");
    well(&mut dir.gputrail(["report", "-q", "<b onclick=x>&.json"]));
    let html = page(&dir, "<b onclick=x>&.html");
    let tags = tags(&html);
    assert_alone(&html, &tags);
    assert!(!html.contains(['\u{202e}', '\u{1b}']));
    let kernels = &tables(&tags)["kernels"];
    let shown = kernels[0]["name"].as_str().expect("a name");
    assert!(
        shown.starts_with("</title></style></td><script>alert(\"1\")"),
        "{shown}"
    );
}

#[test]
fn a_page_is_bounded_and_an_empty_one_says_so() {
    let dir = TestDir::new();
    fs::write(dir.join("empty.json"), r#"{"traceEvents":[]}"#).expect("room");
    well(&mut dir.gputrail(["report", "empty.json"]));
    let html = page(&dir, "empty.html");
    assert_alone(&html, &tags(&html));
    assert!(html.contains("Nothing was recorded"), "{html}");
    // Many devices, queues, names and steps.
    let mut events = Vec::new();
    for number in 0..30_000_u64 {
        let name = format!("{number}{}", "long_name".repeat(100));
        events.push(json!({"ph": "X", "cat": "kernel", "name": name, "pid": number % 100, "tid": number % 1000, "ts": 13 * number, "dur": 9,
            "args": {"device": number % 100, "stream": number % 1000, "correlation": number}}));
        events.push(json!({"ph": "X", "cat": "user_annotation", "name": format!("step {number}"), "pid": 9, "tid": 9,
            "ts": 20 * number, "dur": 19, "args": {}}));
    }
    let devices: Vec<_> = (0..100)
        .map(|id| json!({"id": id, "name": "A GPU"}))
        .collect();
    let file = json!({"schemaVersion": 1, "deviceProperties": devices, "traceEvents": events});
    fs::write(dir.join("many.json"), file.to_string()).expect("room");
    let said = well(&mut dir.gputrail(["report", "many.json", "-o", "many.html"])).stderr;
    assert!(said.contains("report: many.html ("), "{said}");
    let html = page(&dir, "many.html");
    assert_alone(&html, &tags(&html));
    assert!(
        html.contains("and 36 devices more"),
        "devices that are not drawn"
    );
    assert!(html.len() < 8 << 20, "{}", html.len());
    let inputs = run(&mut dir.gputrail(["report", "many.json", "-o", "many.json"]));
    assert_eq!(inputs.code(), 125);
    assert!(inputs.stderr.contains("is an input"), "{}", inputs.stderr);
}
