//! SQLite databases with any values in tables of known names, and with some bytes changed.

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use rusqlite::Connection;
use rusqlite::types::Value;

fn value(input: &mut Unstructured<'_>) -> Result<Value> {
    Ok(match input.int_in_range(0..=9)? {
        0 => Value::Null,
        1 => Value::Real(input.arbitrary()?),
        2 => Value::Text(input.arbitrary()?),
        3 => Value::Blob(input.arbitrary()?),
        4 => Value::Integer(input.arbitrary()?),
        _ => Value::Integer(input.int_in_range(0..=9)?),
    })
}

/// The bytes of a database with these tables, each with its columns.
pub fn database_of<'t>(
    input: &mut Unstructured<'_>,
    tables: impl Iterator<Item = &'t (&'t str, &'t str)>,
) -> Result<Vec<u8>> {
    let mut connection = Connection::open_in_memory().expect("room in memory");
    for (name, columns) in tables {
        let _ = connection.execute_batch(&format!("CREATE TABLE \"{name}\" ({columns})"));
        let marks = vec!["?"; columns.split(',').count()].join(",");
        let insert = format!("INSERT INTO \"{name}\" VALUES ({marks})");
        for _ in 0..input.int_in_range(0..=6)? {
            let values: Result<Vec<Value>> = columns.split(',').map(|_| value(input)).collect();
            let _ = connection.execute(&insert, rusqlite::params_from_iter(values?));
        }
    }
    let mut bytes = connection.serialize("main").expect("a database").to_vec();
    for _ in 0..input.int_in_range(0..=4)? {
        let place = input.choose_index(bytes.len())?;
        bytes[place] = input.arbitrary()?;
    }
    Ok(bytes)
}
