//! Tables as Parquet files in a folder: `TABLE/rank=N/part-0.parquet`, which DuckDB, Polars and Spark read as one table with
//! a column `rank`.
//!
//! Rows collect in memory, column by column. When all of them together use up the budget, the largest tables are written, each
//! as a row group. The number of open files is limited, too: a file that is closed for another one is complete, and its table
//! goes on in the next part.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use super::rows::RowSink;
use super::schema::{ColumnType, RowValue, TableSchema};

/// Bytes of rows in memory, over all tables.
const BUDGET: usize = 48 << 20;
/// Maximum number of rows of a row group.
const MAX_ROWS: usize = 1 << 17;
/// Maximum number of open files.
const MAX_FILES: usize = 64;
/// Bytes of one row beside its texts, for each column: a value and its level.
const CELL: usize = 10;

/// Writes rows into a folder of Parquet files.
pub struct ParquetFolder {
    root: PathBuf,
    parts: HashMap<(&'static str, i64), RankTable>,
    /// Bytes of all rows in memory.
    bytes: usize,
    /// Counts row groups, to find the file that was written to longest ago.
    groups: u64,
}

/// One table of one rank.
struct RankTable {
    table: &'static TableSchema,
    rank: i64,
    columns: Vec<ColumnValues>,
    rows: usize,
    bytes: usize,
    file: Option<ParquetFile>,
    /// Number of the next file.
    next: u32,
}

struct ParquetFile {
    writer: SerializedFileWriter<BufWriter<File>>,
    /// When it was last written to.
    used: u64,
}

/// The values of one column. For optional columns, levels say which rows have one.
struct ColumnValues {
    levels: Vec<i16>,
    data: TypedValues,
}

enum TypedValues {
    Int(Vec<i64>),
    Double(Vec<f64>),
    Bool(Vec<bool>),
    /// Places of the rows' texts in the list of distinct texts.
    Text(Vec<u32>, DistinctTexts),
}

/// The distinct texts of a column in this row group.
#[derive(Default)]
struct DistinctTexts {
    list: Vec<ByteArray>,
    places: HashMap<Box<str>, u32>,
}

impl DistinctTexts {
    /// The place of a text, and the bytes that it takes if it is new.
    fn place(&mut self, text: &str) -> (u32, usize) {
        if let Some(place) = self.places.get(text) {
            return (*place, 0);
        }
        let place = self.list.len() as u32;
        self.list.push(ByteArray::from(text));
        self.places.insert(text.into(), place);
        (place, 2 * text.len() + 96)
    }
}

fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}

impl ColumnValues {
    fn of(kind: ColumnType) -> ColumnValues {
        let data = match kind {
            ColumnType::Int => TypedValues::Int(Vec::new()),
            ColumnType::Double => TypedValues::Double(Vec::new()),
            ColumnType::Bool => TypedValues::Bool(Vec::new()),
            ColumnType::Text => TypedValues::Text(Vec::new(), DistinctTexts::default()),
        };
        ColumnValues {
            levels: Vec::new(),
            data,
        }
    }

    /// Adds a value; the result is the number of bytes of a new text. Of a type that is not the column's, nothing is
    /// kept, so that its row has no value there.
    fn add(&mut self, cell: RowValue<'_>, optional: bool) -> usize {
        let mut bytes = 0;
        let mut present = true;
        match (&mut self.data, cell) {
            (TypedValues::Int(list), RowValue::Int(value)) => list.push(value),
            (TypedValues::Double(list), RowValue::Double(value)) => list.push(value),
            (TypedValues::Bool(list), RowValue::Bool(value)) => list.push(value),
            (TypedValues::Text(list, texts), RowValue::Text(value)) => {
                let (place, added) = texts.place(value);
                list.push(place);
                bytes = added;
            }
            (data, cell) => {
                debug_assert!(cell == RowValue::Null && optional, "{cell:?}");
                present = false;
                if !optional {
                    data.push_default();
                }
            }
        }
        if optional {
            self.levels.push(i16::from(present));
        }
        bytes
    }
}

impl TypedValues {
    fn push_default(&mut self) {
        match self {
            TypedValues::Int(list) => list.push(0),
            TypedValues::Double(list) => list.push(0.0),
            TypedValues::Bool(list) => list.push(false),
            TypedValues::Text(list, texts) => list.push(texts.place("").0),
        }
    }
}

/// The schema of a table.
fn schema(table: &TableSchema) -> ParquetResult<TypePtr> {
    let mut fields = Vec::new();
    for column in table.columns {
        let (physical, logical) = match column.kind {
            ColumnType::Int => (Physical::INT64, None),
            ColumnType::Double => (Physical::DOUBLE, None),
            ColumnType::Bool => (Physical::BOOLEAN, None),
            ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if column.optional {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        let field = Type::primitive_type_builder(column.name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical);
        fields.push(Arc::new(field.build()?));
    }
    let table = Type::group_type_builder(table.name).with_fields(fields);
    Ok(Arc::new(table.build()?))
}

impl RankTable {
    fn new(table: &'static TableSchema, rank: i64) -> RankTable {
        let mut part = RankTable {
            table,
            rank,
            columns: Vec::new(),
            rows: 0,
            bytes: 0,
            file: None,
            next: 0,
        };
        part.clear();
        part
    }

    /// Empties the rows; the result is the number of bytes that they took.
    fn clear(&mut self) -> usize {
        let columns = self.table.columns.iter();
        self.columns = columns
            .map(|column| ColumnValues::of(column.kind))
            .collect();
        self.rows = 0;
        std::mem::take(&mut self.bytes)
    }

    fn add(&mut self, cells: &[RowValue<'_>]) -> usize {
        debug_assert_eq!(cells.len(), self.table.columns.len());
        let mut bytes = CELL * cells.len();
        let columns = self.columns.iter_mut().zip(self.table.columns);
        for ((values, column), cell) in columns.zip(cells) {
            bytes += values.add(*cell, column.optional);
        }
        self.rows += 1;
        self.bytes += bytes;
        bytes
    }

    /// Begins the next file.
    fn open(&mut self, root: &std::path::Path, used: u64) -> io::Result<()> {
        let folder = root
            .join(self.table.name)
            .join(format!("rank={}", self.rank));
        fs::create_dir_all(&folder)?;
        let file = File::create_new(folder.join(format!("part-{}.parquet", self.next)))?;
        self.next += 1;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .build();
        let schema = schema(self.table).map_err(failed)?;
        let writer = SerializedFileWriter::new(BufWriter::new(file), schema, Arc::new(properties))
            .map_err(failed)?;
        self.file = Some(ParquetFile { writer, used });
        Ok(())
    }

    /// Writes the rows as a row group.
    fn write(&mut self) -> ParquetResult<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let mut group = file.writer.next_row_group()?;
        for values in &self.columns {
            let Some(mut column) = group.next_column()? else {
                break;
            };
            let levels = Some(&values.levels[..]).filter(|levels| !levels.is_empty());
            match &values.data {
                TypedValues::Int(list) => column
                    .typed::<Int64Type>()
                    .write_batch(list, levels, None)?,
                TypedValues::Double(list) => column
                    .typed::<DoubleType>()
                    .write_batch(list, levels, None)?,
                TypedValues::Bool(list) => {
                    column.typed::<BoolType>().write_batch(list, levels, None)?
                }
                TypedValues::Text(list, texts) => {
                    let list = list.iter().map(|place| texts.list[*place as usize].clone());
                    let list: Vec<ByteArray> = list.collect();
                    column
                        .typed::<ByteArrayType>()
                        .write_batch(&list, levels, None)?
                }
            };
            column.close()?;
        }
        group.close()?;
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        match self.file.take() {
            Some(file) => file.writer.close().map(drop).map_err(failed),
            None => Ok(()),
        }
    }
}

impl ParquetFolder {
    /// Writes into the folder `root`, which exists and is empty.
    pub fn new(root: impl Into<PathBuf>) -> ParquetFolder {
        ParquetFolder {
            root: root.into(),
            parts: HashMap::new(),
            bytes: 0,
            groups: 0,
        }
    }

    /// Writes the rows of one table.
    fn write(&mut self, key: (&'static str, i64)) -> io::Result<()> {
        self.groups += 1;
        if self.parts.get(&key).is_some_and(|part| part.file.is_none()) {
            self.close_oldest()?;
        }
        let Some(part) = self.parts.get_mut(&key) else {
            return Ok(());
        };
        match &mut part.file {
            Some(file) => file.used = self.groups,
            None => part.open(&self.root, self.groups)?,
        }
        part.write().map_err(failed)?;
        self.bytes -= part.clear();
        Ok(())
    }

    /// Closes the file that was written to longest ago, if there are as many as may be open.
    fn close_oldest(&mut self) -> io::Result<()> {
        let open = self.parts.values_mut().filter(|part| part.file.is_some());
        let open: Vec<&mut RankTable> = open.collect();
        if open.len() < MAX_FILES {
            return Ok(());
        }
        let used = |part: &RankTable| part.file.as_ref().map_or(0, |file| file.used);
        let oldest = open.into_iter().min_by_key(|part| used(part));
        oldest.map_or(Ok(()), RankTable::close)
    }
}

impl RowSink for ParquetFolder {
    fn row(
        &mut self,
        table: &'static TableSchema,
        rank: i64,
        cells: &[RowValue<'_>],
    ) -> io::Result<()> {
        let key = (table.name, rank);
        let part = self
            .parts
            .entry(key)
            .or_insert_with(|| RankTable::new(table, rank));
        self.bytes += part.add(cells);
        if part.rows >= MAX_ROWS {
            self.write(key)?;
        }
        while self.bytes > BUDGET {
            let largest = self.parts.iter().max_by_key(|(_, part)| part.bytes);
            let Some((&key, _)) = largest else { break };
            self.write(key)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let mut keys: Vec<_> = self.parts.keys().copied().collect();
        keys.sort();
        for key in keys {
            if self.parts.get(&key).is_some_and(|part| part.rows > 0) {
                self.write(key)?;
            }
            if let Some(mut part) = self.parts.remove(&key) {
                part.close()?;
            }
        }
        Ok(())
    }
}
