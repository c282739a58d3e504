//! Exports to a folder of Parquet files (`nsys export --type parquetdir`): a file for each table, called by its name.
//!
//! A file is hostile input: no more rows and no more bytes of text are taken than its length allows, and codecs that are
//! not built in are damage.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use crate::import::InputFile;
use crate::import::row::{Damage, Row, RowField};
use crate::import::table_source::{Damages, EachRow, TableInfo, TableSource};

/// Most rows for each byte of a file, and most bytes of text: repeated values take next to nothing.
const ROWS_PER_BYTE: u64 = 64;
const TEXT_PER_BYTE: u64 = 1024;

/// The tables of a folder.
pub(in crate::import) struct ParquetTables {
    tables: Vec<TableInfo>,
    /// For each table its file, what messages call it, and its length.
    files: Vec<(File, PathBuf, u64)>,
}

impl ParquetTables {
    /// Opens the files of a folder. Returns the damage of those that are no tables, with their names.
    pub fn open(sources: &[InputFile]) -> (ParquetTables, Vec<(PathBuf, Damage)>) {
        let mut tables = ParquetTables {
            tables: Vec::new(),
            files: Vec::new(),
        };
        let mut damages = Vec::new();
        for source in sources {
            let path = source.name().to_owned();
            let name = path.file_stem().unwrap_or_default();
            let name = name.to_string_lossy().into_owned();
            let opened = source.file().try_clone().map_err(|error| error.to_string());
            let columns = opened.and_then(|file| Ok((columns_of(&file)?, file)));
            match columns {
                Ok((columns, file)) => {
                    tables.tables.push(TableInfo { name, columns });
                    tables.files.push((file, path, source.length()));
                }
                Err(found) => damages.push((path, Damage::new(found, "a Parquet file"))),
            }
        }
        (tables, damages)
    }
}

/// Runs a part of the decoder, which may panic on damaged files.
fn contained<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let result = catch_unwind(AssertUnwindSafe(run));
    result.unwrap_or_else(|_| Err("a value that the decoder of Parquet does not expect".to_owned()))
}

fn open(file: &File) -> Result<SerializedFileReader<File>, String> {
    let file = file.try_clone().map_err(|error| error.to_string())?;
    SerializedFileReader::new(file).map_err(|error| error.to_string())
}

/// The names of the columns of a file.
fn columns_of(file: &File) -> Result<Vec<String>, String> {
    contained(|| {
        let reader = open(file)?;
        let schema = reader.metadata().file_metadata().schema();
        let fields = schema.get_fields().iter();
        Ok(fields.map(|field| field.name().to_owned()).collect())
    })
}

impl TableSource for ParquetTables {
    fn tables(&self) -> &[TableInfo] {
        &self.tables
    }

    fn each_row(&self, table: &TableInfo, columns: &[&str], each: &mut EachRow<'_>) -> Damages {
        let mut damages = Damages::default();
        let place = self.tables.iter().position(|one| one.name == table.name);
        let Some((file, path, length)) = place.and_then(|place| self.files.get(place)) else {
            return damages;
        };
        let own = table.own(columns);
        let mut number = 0;
        let result = contained(|| {
            let reader = open(file)?;
            let rows = reader
                .get_row_iter(None)
                .map_err(|error| error.to_string())?;
            let places: Vec<Option<usize>> = own
                .iter()
                .map(|name| table.columns.iter().position(|column| column == name))
                .collect();
            let mut text = 0;
            for row in rows {
                let row = row.map_err(|error| error.to_string())?;
                number += 1;
                let fields: Vec<&Field> = row.get_column_iter().map(|(_, field)| field).collect();
                text += fields.iter().map(|field| length_of(field)).sum::<u64>();
                if number > length.saturating_mul(ROWS_PER_BYTE)
                    || text > length.saturating_mul(TEXT_PER_BYTE)
                {
                    return Err("more than the file has room for: it is damaged".to_owned());
                }
                let values = places.iter().map(|place| {
                    let field = place.and_then(|place| fields.get(place));
                    field.map_or(RowField::Null, |field| value_of(field))
                });
                let row = TableRow {
                    columns: &own,
                    values: values.collect(),
                    table: &table.name,
                    number,
                };
                if let Err(damage) = each(&row) {
                    damages.add(damage);
                }
            }
            Ok(())
        });
        if let Err(error) = result {
            let file = path.display();
            let rows = gputrail_record::count(number, "row");
            let found = format!("in {file}, after {rows}: {error}");
            damages.add(Damage::new(found, "the rest of the table"));
        }
        damages
    }

    fn count(&self, table: &TableInfo) -> u64 {
        let place = self.tables.iter().position(|one| one.name == table.name);
        let file = place.and_then(|place| self.files.get(place));
        let rows = file.and_then(|(file, ..)| {
            contained(|| Ok(open(file)?.metadata().file_metadata().num_rows())).ok()
        });
        rows.and_then(|rows| u64::try_from(rows).ok()).unwrap_or(0)
    }
}

/// Bytes of a text.
fn length_of(field: &Field) -> u64 {
    match field {
        Field::Str(text) => text.len() as u64,
        Field::Bytes(bytes) => bytes.len() as u64,
        _ => 0,
    }
}

fn value_of(field: &Field) -> RowField<'_> {
    match field {
        Field::Bool(value) => RowField::Int((*value).into()),
        Field::Byte(value) => RowField::Int((*value).into()),
        Field::Short(value) => RowField::Int((*value).into()),
        Field::Int(value) => RowField::Int((*value).into()),
        Field::Long(value) => RowField::Int(*value),
        Field::UByte(value) => RowField::Int((*value).into()),
        Field::UShort(value) => RowField::Int((*value).into()),
        Field::UInt(value) => RowField::Int((*value).into()),
        // Ids have all bits.
        Field::ULong(value) => RowField::Int(*value as i64),
        Field::Float(value) => RowField::Real((*value).into()),
        Field::Double(value) => RowField::Real(*value),
        Field::Str(text) => RowField::Text(text),
        Field::Bytes(bytes) => match std::str::from_utf8(bytes.data()) {
            Ok(text) => RowField::Text(text),
            Err(_) => RowField::Bytes(bytes.data()),
        },
        _ => RowField::Null,
    }
}

/// A row of a table.
struct TableRow<'r> {
    columns: &'r [&'r str],
    values: Vec<RowField<'r>>,
    table: &'r str,
    number: u64,
}

impl Row for TableRow<'_> {
    fn field(&self, place: usize) -> RowField<'_> {
        self.values[place]
    }

    fn column(&self, place: usize) -> &str {
        self.columns[place]
    }

    fn position(&self) -> (Option<u64>, String) {
        (None, format!("row {} of {}", self.number, self.table))
    }
}
