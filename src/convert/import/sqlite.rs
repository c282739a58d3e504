//! SQLite databases of other programs.
//!
//! A database is hostile input. It is opened read-only and immutable, nothing that its schema defines is run (views, triggers,
//! virtual tables, functions), and only whole tables are read, row by row, without sorting and joining. A small file can be
//! made to hold endless rows, or the same long text many times; so no more rows and no more bytes of text are taken than its
//! length allows. Types of columns promise nothing: each value is looked at. A text that is not UTF-8 is read with U+FFFD in it.

use std::cell::{Cell, OnceCell};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::row::{Damage, Row, RowField};
use super::table_source::{Damages, EachRow, TableInfo, TableSource};
use gputrail_record::count;
use gputrail_trace::ahead::{Batch, BatchSender, ahead};

/// Most rows of a batch, and the bytes of texts beyond which it has no further row.
const BATCH: usize = 1 << 10;
const BATCH_BYTES: usize = 1 << 17;
/// Bytes of the longest value.
const MAX_VALUE: i32 = 64 << 20;
/// Bytes that a row takes at least: its length, its id and its header.
const MIN_ROW: u64 = 4;
/// Steps of SQLite's machine between two looks at their number, and how many a byte of the file may take.
const STEPS: i32 = 10_000;
const STEPS_PER_BYTE: u64 = 64;

/// A database.
pub(super) struct Database {
    connection: Mutex<Connection>,
    has_threads: bool,
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

    /// Sets whether rows are read ahead on another thread.
    pub fn with_threads(self, has_threads: bool) -> Database {
        Database {
            has_threads,
            ..self
        }
    }

    /// The database of a connection, whose file has `length` bytes.
    pub fn with(mut connection: Connection, length: u64) -> Result<Database, Damage> {
        secure(&mut connection, length).map_err(|error| sqlite(&error))?;
        let mut database = Database {
            connection: Mutex::new(connection),
            has_threads: false,
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
        let connection = lock(&self.connection);
        let mut statement = connection.prepare(sql)?;
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
            let columns = columns(&connection, &name)?;
            Ok(TableInfo { name, columns })
        };
        tables.into_iter().map(table).collect()
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
        let places: Vec<Option<usize>> = names
            .iter()
            .scan(0, |next, name| {
                let is_there = table.has(name);
                *next += usize::from(is_there);
                Some(is_there.then(|| *next - 1))
            })
            .collect();
        let mut repaired = Vec::new();
        repaired.resize_with(columns.len(), OnceCell::new);
        let mut take = |batch: &mut RowBatch| {
            for row in 0..batch.rows {
                walked.rows += 1;
                each(&SqlRow {
                    batch,
                    row,
                    places: &places,
                    columns: &names,
                    table: &table.name,
                    number: walked.rows,
                    repaired: &repaired,
                });
                let texts = repaired.iter_mut().filter_map(OnceCell::take);
                walked.repaired += texts.count() as u64;
            }
        };
        let own = names.iter().filter(|name| table.has(name));
        let own: Vec<String> = own.map(|name| quoted(name)).collect();
        let sql = match &own[..] {
            [] => format!("SELECT 1 FROM {}", quoted(&table.name)),
            _ => format!("SELECT {} FROM {}", own.join(", "), quoted(&table.name)),
        };
        let most = (self.max_rows, self.max_text);
        let connection = &self.connection;
        if !self.has_threads {
            let connection = lock(connection);
            return read_rows(&connection, (&sql, own.len()), most, |batch| {
                take(batch);
                batch.clear();
                Ok(())
            });
        }
        let read = |sender: &mut BatchSender<RowBatch>| {
            let connection = lock(connection);
            let send = |batch: &mut RowBatch| {
                let sent = sender.send(batch);
                sent.map_err(|error| error.to_string())
            };
            Ok(read_rows(&connection, (&sql, own.len()), most, send))
        };
        let taken = ahead(read, |batch| {
            take(batch);
            Ok(())
        });
        taken.unwrap_or_else(|error| Err(error.to_string()))
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

/// The names of the columns of a table.
fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let sql = format!("PRAGMA table_info({})", quoted(table));
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut columns = Vec::new();
    while let Some(row) = rows.next()? {
        columns.extend(row.get_ref(1)?.as_str().ok().map(str::to_owned));
    }
    Ok(columns)
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

/// Passes the rows of a query on to `send`, in batches, of which it empties each. The query has `columns`; those of a count have
/// none.
fn read_rows(
    connection: &Connection,
    (sql, columns): (&str, usize),
    (max_rows, max_text): (u64, u64),
    mut send: impl FnMut(&mut RowBatch) -> Result<(), String>,
) -> Result<(), String> {
    let failed = |error: rusqlite::Error| error.to_string();
    let mut statement = connection.prepare(sql).map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    let (mut count, mut bytes) = (0, 0);
    let mut batch = RowBatch {
        columns,
        ..RowBatch::default()
    };
    let read = loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => break Ok(()),
            Err(error) => break Err(failed(error)),
        };
        let before = batch.bytes.len();
        if let Err(error) = batch.add(row) {
            break Err(failed(error));
        }
        count += 1;
        bytes += (batch.bytes.len() - before) as u64;
        if count > max_rows || bytes > max_text {
            batch.remove_last();
            break Err("more than the file has room for: it is damaged".to_owned());
        }
        if batch.rows >= BATCH || batch.bytes.len() >= BATCH_BYTES {
            send(&mut batch)?;
            batch.columns = columns;
        }
    };
    send(&mut batch)?;
    read
}

/// Rows that were read.
#[derive(Default)]
struct RowBatch {
    rows: usize,
    /// The number of values of each row.
    columns: usize,
    values: Vec<StoredField>,
    /// Texts and bytes.
    bytes: Vec<u8>,
}

/// A value, of which texts and bytes are a part of the batch's.
enum StoredField {
    Null,
    Int(i64),
    Real(f64),
    Text(Range<usize>),
    Bytes(Range<usize>),
}

impl Batch for RowBatch {
    fn clear(&mut self) {
        self.rows = 0;
        self.values.clear();
        self.bytes.clear();
    }
}

impl RowBatch {
    fn add(&mut self, row: &rusqlite::Row<'_>) -> rusqlite::Result<()> {
        for place in 0..self.columns {
            let value = match row.get_ref(place)? {
                ValueRef::Null => StoredField::Null,
                ValueRef::Integer(value) => StoredField::Int(value),
                ValueRef::Real(value) => StoredField::Real(value),
                ValueRef::Text(text) => StoredField::Text(self.keep(text)),
                ValueRef::Blob(bytes) => StoredField::Bytes(self.keep(bytes)),
            };
            self.values.push(value);
        }
        self.rows += 1;
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        begin..self.bytes.len()
    }

    fn remove_last(&mut self) {
        self.rows -= 1;
        self.values.truncate(self.rows * self.columns);
    }
}

/// A row of a table.
struct SqlRow<'r> {
    batch: &'r RowBatch,
    /// Its place in the batch.
    row: usize,
    /// For each column, its place in the batch's rows; none if the table lacks it.
    places: &'r [Option<usize>],
    columns: &'r [&'r str],
    table: &'r str,
    number: u64,
    /// For each column, its text with U+FFFD in place of bytes that are not UTF-8.
    repaired: &'r [OnceCell<String>],
}

impl Row for SqlRow<'_> {
    fn field(&self, place: usize) -> RowField<'_> {
        let Some(own) = self.places.get(place).copied().flatten() else {
            return RowField::Null;
        };
        match &self.batch.values[self.row * self.batch.columns + own] {
            StoredField::Null => RowField::Null,
            StoredField::Int(value) => RowField::Int(*value),
            StoredField::Real(value) => RowField::Real(*value),
            StoredField::Text(text) => {
                let text = &self.batch.bytes[text.clone()];
                match std::str::from_utf8(text) {
                    Ok(text) => RowField::Text(text),
                    Err(_) => {
                        let repaired = || String::from_utf8_lossy(text).into_owned();
                        RowField::Text(self.repaired[place].get_or_init(repaired))
                    }
                }
            }
            StoredField::Bytes(bytes) => RowField::Bytes(&self.batch.bytes[bytes.clone()]),
        }
    }

    fn column(&self, place: usize) -> &str {
        self.columns[place]
    }

    fn position(&self) -> (Option<u64>, String) {
        (None, format!("row {} of {}", self.number, self.table))
    }
}

/// The connection, which one thread uses at a time.
fn lock(connection: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}
