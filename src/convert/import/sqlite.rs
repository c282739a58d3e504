//! SQLite databases of other programs.
//!
//! A database is hostile input. It is opened read-only and immutable, nothing that its schema defines is run (views, triggers,
//! virtual tables, functions), and only whole tables are read, row by row, without sorting and joining. A small file can be
//! made to hold endless rows, or the same long text many times; so no more rows and no more bytes of text are taken than its
//! length allows. Types of columns promise nothing: each value is looked at. A text that is not UTF-8 is read with U+FFFD in it.

use std::cell::{Cell, OnceCell};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::row::{Damage, Row, RowField};
use super::table_source::{Damages, EachRow, TableInfo, TableSource};
use gputrail_record::count;

/// Bytes of the longest value.
const MAX_VALUE: i32 = 64 << 20;
/// Bytes that a row takes at least: its length, its id and its header.
const MIN_ROW: u64 = 4;
/// Steps of SQLite's machine between two looks at their number, and how many a byte of the file may take.
const STEPS: i32 = 10_000;
const STEPS_PER_BYTE: u64 = 64;

/// A database.
pub(super) struct Database {
    connection: Connection,
    tables: Vec<TableInfo>,
    /// Descriptions of tables that are damaged.
    lost_tables: Cell<u64>,
    /// Most rows of a table, and most bytes of text of all.
    max_rows: u64,
    max_text: u64,
}

impl Database {
    /// Opens a database and reads its schema.
    pub fn open(path: &Path) -> Result<Database, Damage> {
        let length = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        let mut uri = String::from("file:");
        for byte in OsStr::as_bytes(path.as_os_str()) {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                    uri.push(char::from(*byte));
                }
                byte => write!(uri, "%{byte:02X}").expect("a string can be written to"),
            }
        }
        uri += "?mode=ro&immutable=1";
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(uri, flags);
        let connection = connection.map_err(|error| sqlite(&error))?;
        Database::with(connection, length)
    }

    /// The database of a connection, whose file has `length` bytes.
    pub fn with(mut connection: Connection, length: u64) -> Result<Database, Damage> {
        secure(&mut connection, length).map_err(|error| sqlite(&error))?;
        let mut database = Database {
            connection,
            tables: Vec::new(),
            lost_tables: Cell::default(),
            max_rows: length / MIN_ROW + 1,
            max_text: length,
        };
        database.tables = database.schema().map_err(|error| sqlite(&error))?;
        Ok(database)
    }

    fn schema(&self) -> rusqlite::Result<Vec<TableInfo>> {
        let sql = "SELECT type, name, sql FROM sqlite_master";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut tables = Vec::new();
        while let Some(row) = rows.next()? {
            let Ok(kind) = row.get_ref(0)?.as_str() else {
                // So are rows of a file that was cut.
                self.lost_tables.set(self.lost_tables.get() + 1);
                continue;
            };
            let (Ok(name), Ok(sql)) = (row.get_ref(1)?.as_str(), row.get_ref(2)?.as_str()) else {
                self.lost_tables
                    .set(self.lost_tables.get() + u64::from(kind == "table"));
                continue;
            };
            if kind != "table" {
                continue;
            }
            let is_virtual = sql
                .trim_start()
                .to_ascii_lowercase()
                .starts_with("create virtual");
            if !is_virtual && !name.starts_with("sqlite_") {
                tables.push(name.to_owned());
            }
        }
        let table = |name: String| {
            let columns = self.columns(&name)?;
            Ok(TableInfo { name, columns })
        };
        tables.into_iter().map(table).collect()
    }

    fn columns(&self, table: &str) -> rusqlite::Result<Vec<String>> {
        let sql = format!("PRAGMA table_info({})", quoted(table));
        let mut statement = self.connection.prepare(&sql)?;
        let mut rows = statement.query([])?;
        let mut columns = Vec::new();
        while let Some(row) = rows.next()? {
            columns.extend(row.get_ref(1)?.as_str().ok().map(str::to_owned));
        }
        Ok(columns)
    }

    /// Damage of the description of the tables: what they hold is not known.
    pub fn schema_damage(&self) -> Option<Damage> {
        let lost = self.lost_tables.get();
        let found = format!("{} whose description cannot be read", count(lost, "table"));
        (lost > 0).then(|| Damage::new(found, "the tables of the database"))
    }

    /// The tables.
    pub fn tables(&self) -> &[TableInfo] {
        &self.tables
    }

    /// The table of a name.
    pub fn table(&self, name: &str) -> Option<&TableInfo> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// Calls `each` with every row of a table, with the values of `columns`; columns that the table lacks are `NULL`. Returns
    /// the damage of rows, and that which ends the table early.
    pub fn rows(
        &self,
        table: &TableInfo,
        columns: &[&str],
        mut each: impl FnMut(&dyn Row) -> Result<(), Damage>,
    ) -> Damages {
        let mut walked = Walked::default();
        let mut damages = Damages::default();
        let result = self.walk(table, columns, &mut walked, |row| {
            if let Err(damage) = each(row) {
                damages.add(damage);
            }
        });
        damages.repaired = walked.repaired;
        if let Err(error) = result {
            let rows = count(walked.rows, "row");
            let found = format!("after {rows} of {}: {error}", table.name);
            damages.add(Damage::new(found, "the rest of the table"));
        }
        damages
    }

    fn walk(
        &self,
        table: &TableInfo,
        columns: &[&str],
        walked: &mut Walked,
        mut each: impl FnMut(&SqlRow<'_>),
    ) -> Result<(), String> {
        let names = table.own(columns);
        let expression = |name: &&str| {
            if table.has(name) {
                quoted(name)
            } else {
                "NULL".to_owned()
            }
        };
        let expressions: Vec<String> = names.iter().map(expression).collect();
        let sql = match &expressions[..] {
            [] => format!("SELECT 1 FROM {}", quoted(&table.name)),
            _ => format!(
                "SELECT {} FROM {}",
                expressions.join(", "),
                quoted(&table.name)
            ),
        };
        let failed = |error: rusqlite::Error| error.to_string();
        let mut statement = self.connection.prepare(&sql).map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        let mut text = 0;
        let mut repaired = Vec::new();
        repaired.resize_with(columns.len(), OnceCell::new);
        while let Some(row) = rows.next().map_err(failed)? {
            walked.rows += 1;
            for place in 0..columns.len() {
                text += match row.get_ref(place).map_err(failed)? {
                    ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len() as u64,
                    _ => 0,
                };
            }
            if walked.rows > self.max_rows || text > self.max_text {
                return Err("more than the file has room for: it is damaged".to_owned());
            }
            each(&SqlRow {
                row,
                columns: &names,
                table: &table.name,
                number: walked.rows,
                repaired: &repaired,
            });
            let texts = repaired.iter_mut().filter_map(OnceCell::take);
            walked.repaired += texts.count() as u64;
        }
        Ok(())
    }

    /// The number of rows of a table, as far as they can be read.
    pub fn count(&self, table: &TableInfo) -> u64 {
        let mut walked = Walked::default();
        let _ = self.walk(table, &[], &mut walked, |_| ());
        walked.rows
    }
}

impl TableSource for Database {
    fn tables(&self) -> &[TableInfo] {
        Database::tables(self)
    }

    fn each_row(&self, table: &TableInfo, columns: &[&str], each: &mut EachRow<'_>) -> Damages {
        self.rows(table, columns, each)
    }

    fn count(&self, table: &TableInfo) -> u64 {
        Database::count(self, table)
    }
}

/// Rows of a table that were read, and their repaired texts.
#[derive(Default)]
struct Walked {
    rows: u64,
    /// Texts that are not UTF-8.
    repaired: u64,
}

/// Keeps the schema of a file from doing anything.
fn secure(connection: &mut Connection, length: u64) -> rusqlite::Result<()> {
    // A file that was cut, or has a damaged schema, is then read as far as it goes. Nothing is written.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 64),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 2),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, value)?;
    }
    connection.execute_batch("PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0")?;
    let most = 100_000_000 + length.saturating_mul(STEPS_PER_BYTE);
    let mut steps: u64 = 0;
    connection.progress_handler(
        STEPS,
        Some(move || {
            steps += STEPS as u64;
            steps > most
        }),
    )
}

fn sqlite(error: &rusqlite::Error) -> Damage {
    Damage::new(error.to_string(), "an SQLite database")
}

/// A name as SQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A row of a table.
struct SqlRow<'r> {
    row: &'r rusqlite::Row<'r>,
    columns: &'r [&'r str],
    table: &'r str,
    number: u64,
    /// For each column, its text with U+FFFD in place of bytes that are not UTF-8.
    repaired: &'r [OnceCell<String>],
}

impl Row for SqlRow<'_> {
    fn field(&self, place: usize) -> RowField<'_> {
        match self.row.get_ref(place).unwrap_or(ValueRef::Null) {
            ValueRef::Null => RowField::Null,
            ValueRef::Integer(value) => RowField::Int(value),
            ValueRef::Real(value) => RowField::Real(value),
            ValueRef::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => RowField::Text(text),
                Err(_) => {
                    let repaired = || String::from_utf8_lossy(text).into_owned();
                    RowField::Text(self.repaired[place].get_or_init(repaired))
                }
            },
            ValueRef::Blob(bytes) => RowField::Bytes(bytes),
        }
    }

    fn column(&self, place: usize) -> &str {
        self.columns[place]
    }

    fn position(&self) -> (Option<u64>, String) {
        (None, format!("row {} of {}", self.number, self.table))
    }
}
