//! Exports to Arrow: streams of messages, one for each table, behind each other in one file (`nsys export --type arrow`) or in files
//! of one folder (`arrowdir`).
//!
//! A stream is the schema of a table, whose metadata have the table's name (`table_name`), and batches of rows. Of a batch only
//! the buffers of the columns that are wanted are read. Compressed buffers, dictionaries and columns in columns are damage.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::flatbuffer::FlatTable;
use crate::import::InputFile;
use crate::import::row::{Damage, Row, RowField};
use crate::import::source::LocalFile;
use crate::import::table_source::{Damages, EachRow, TableInfo, TableSource};

/// The begin of each message.
const MESSAGE: [u8; 4] = [0xff; 4];
/// Bytes of the longest description of a message.
const MAX_METADATA: u64 = 64 << 20;
/// Most rows for each byte of a file.
const ROWS_PER_BYTE: u64 = 64;

/// Kinds of messages.
const SCHEMA: u64 = 1;
const DICTIONARY: u64 = 2;
const BATCH: u64 = 3;

/// The type of a column.
#[derive(Copy, Clone, Debug, PartialEq)]
enum ColumnType {
    None,
    Int {
        width: u64,
        signed: bool,
    },
    Float,
    Double,
    Bool,
    /// Texts or bytes, with offsets of so many bytes.
    Bytes {
        offset: u64,
    },
}

impl ColumnType {
    /// The type of a field of a schema; an error names one that is not read.
    fn of(field: &FlatTable<'_>) -> Result<ColumnType, String> {
        if field.table(4).is_some() {
            return Err("a dictionary".to_owned());
        }
        let own = field.table(3);
        let number = |slot, width| own.map_or(0, |own| own.number(slot, width));
        Ok(match field.number(2, 1) {
            1 => ColumnType::None,
            2 => ColumnType::Int {
                width: match number(0, 4) {
                    width @ (8 | 16 | 32 | 64) => width / 8,
                    width => return Err(format!("a number of {width} bits")),
                },
                signed: number(1, 1) != 0,
            },
            3 => match number(0, 2) {
                1 => ColumnType::Float,
                2 => ColumnType::Double,
                _ => return Err("a number of half precision".to_owned()),
            },
            4 | 5 => ColumnType::Bytes { offset: 4 },
            6 => ColumnType::Bool,
            // Times and spans of time.
            9 | 10 | 18 => ColumnType::Int {
                width: 8,
                signed: true,
            },
            19 | 20 => ColumnType::Bytes { offset: 8 },
            kind => return Err(format!("a column of type {kind}")),
        })
    }

    /// The number of its buffers in a batch.
    fn buffers(self) -> usize {
        match self {
            ColumnType::None => 0,
            ColumnType::Bytes { .. } => 3,
            _ => 2,
        }
    }
}

/// The rows of a batch.
struct Batch {
    rows: u64,
    /// Where its buffers begin in the file.
    body: u64,
    length: u64,
    /// Offset and length of each buffer.
    buffers: Vec<(u64, u64)>,
}

/// A table.
struct ArrowTable {
    file: usize,
    /// Types of its columns, or why they cannot be read.
    types: Result<Vec<ColumnType>, String>,
    batches: Vec<Batch>,
}

/// A file with tables.
struct ArrowFile {
    name: PathBuf,
    file: File,
    length: u64,
    /// Keeps an unpacked copy.
    _local: LocalFile,
}

/// The tables of an export.
pub(in crate::import) struct ArrowTables {
    infos: Vec<TableInfo>,
    tables: Vec<ArrowTable>,
    files: Vec<ArrowFile>,
}

/// The name of the table of a stream that begins so; `None` if it is no stream of an export.
fn name_in(schema: &FlatTable<'_>) -> Option<String> {
    let mut entries = schema.vector(2).tables().flatten();
    let entry = entries.find(|entry| entry.text(0) == Some("table_name"))?;
    entry.text(1).map(str::to_owned)
}

/// The description of the first message of a file that begins so.
fn first_message(head: &[u8]) -> Option<FlatTable<'_>> {
    let rest = head.strip_prefix(&MESSAGE)?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    FlatTable::root(rest.get(..length)?)
}

/// Whether a file that begins so is an export: its first table has a name.
pub(in crate::import) fn is_export(head: &[u8]) -> bool {
    first_message(head)
        .filter(|message| message.number(1, 1) == SCHEMA)
        .and_then(|message| message.table(2))
        .is_some_and(|schema| name_in(&schema).is_some())
}

/// Whether a file that begins so is a stream of Arrow.
pub(in crate::import) fn is_stream(head: &[u8]) -> bool {
    first_message(head).is_some_and(|message| message.number(1, 1) == SCHEMA)
}

impl ArrowTables {
    /// Opens files. Returns the damage of each as well.
    pub fn open(sources: &[InputFile]) -> io::Result<(ArrowTables, Vec<(PathBuf, Damage)>)> {
        let mut tables = ArrowTables {
            infos: Vec::new(),
            tables: Vec::new(),
            files: Vec::new(),
        };
        let mut damages = Vec::new();
        for source in sources {
            let local = source.local_file()?;
            let file = File::open(local.path())?;
            let length = file.metadata()?.len();
            tables.files.push(ArrowFile {
                name: source.name().to_owned(),
                file,
                length,
                _local: local,
            });
            if let Err(damage) = tables.survey(tables.files.len() - 1) {
                damages.push((source.name().to_owned(), damage));
            }
        }
        Ok((tables, damages))
    }

    /// Goes through the messages of a file.
    fn survey(&mut self, index: usize) -> Result<(), Damage> {
        let mut at = 0;
        let mut is_open = false;
        while at < self.files[index].length {
            let damage = move |found: &str| Damage {
                offset: Some(at),
                found: found.to_owned(),
                expected: "a message of Arrow".into(),
            };
            let begin = self.read(index, at, 8).map_err(|error| damage(&error))?;
            let (mark, length) = begin.split_at(4);
            if mark != MESSAGE {
                return Err(damage("other bytes"));
            }
            let length = length
                .iter()
                .rev()
                .fold(0, |length, byte| length << 8 | u64::from(*byte));
            at += 8;
            if length == 0 {
                is_open = false;
                continue;
            }
            if length > MAX_METADATA {
                return Err(damage("a message that is too long"));
            }
            let metadata = self
                .read(index, at, length)
                .map_err(|error| damage(&error))?;
            let message = FlatTable::root(&metadata).ok_or_else(|| damage("a damaged message"))?;
            at += length;
            let body = message.number(3, 8);
            let header = message
                .table(2)
                .ok_or_else(|| damage("a message without content"))?;
            if body > self.files[index].length - at.min(self.files[index].length) {
                return Err(damage("a message that goes beyond the end of the file"));
            }
            match message.number(1, 1) {
                SCHEMA => {
                    self.add_table(index, &header);
                    is_open = true;
                }
                BATCH if is_open => self.add_batch(&header, at, body),
                DICTIONARY => {}
                _ => return Err(damage("a message of another kind")),
            }
            at += body;
        }
        if is_open {
            return Err(Damage {
                offset: Some(at),
                found: "the end of the file".to_owned(),
                expected: "the end of a table".into(),
            });
        }
        Ok(())
    }

    fn add_table(&mut self, file: usize, schema: &FlatTable<'_>) {
        let stem = self.files[file].name.file_stem().unwrap_or_default();
        let name = name_in(schema).unwrap_or_else(|| stem.to_string_lossy().into_owned());
        let mut columns = Vec::new();
        let mut types = Ok(Vec::new());
        for field in schema.vector(1).tables() {
            let own = match &field {
                Some(field) => ColumnType::of(field),
                None => Err("a damaged column".to_owned()),
            };
            let name = field.and_then(|field| field.text(0)).unwrap_or("");
            columns.push(name.to_owned());
            types = match (types, own) {
                (Ok(mut types), Ok(own)) => {
                    types.push(own);
                    Ok(types)
                }
                (Ok(_), Err(found)) => Err(format!("{found} ({name})")),
                (error, _) => error,
            };
        }
        self.infos.push(TableInfo { name, columns });
        self.tables.push(ArrowTable {
            file,
            types,
            batches: Vec::new(),
        });
    }

    fn add_batch(&mut self, batch: &FlatTable<'_>, body: u64, length: u64) {
        let Some(table) = self.tables.last_mut() else {
            return;
        };
        if batch.table(3).is_some() {
            table.types = Err("compressed columns".to_owned());
        }
        let buffers: Option<Vec<_>> = batch.vector(2).pairs().collect();
        table.batches.push(Batch {
            rows: batch.number(0, 8),
            body,
            length,
            buffers: buffers.unwrap_or_default(),
        });
    }

    fn read(&self, file: usize, at: u64, length: u64) -> Result<Vec<u8>, String> {
        let file = &self.files[file];
        let end = at.checked_add(length).filter(|end| *end <= file.length);
        if end.is_none() {
            return Err("the end of the file".to_owned());
        }
        let mut bytes = vec![0; length as usize];
        let read = file.file.read_exact_at(&mut bytes, at);
        read.map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    /// The columns of a batch that are wanted, by their places.
    fn columns(
        &self,
        table: &ArrowTable,
        batch: &Batch,
        wanted: &[Option<usize>],
    ) -> Result<Vec<Option<ColumnBuffers>>, String> {
        let types = table.types.as_ref().map_err(Clone::clone)?;
        let load = |place: usize| -> Result<ColumnBuffers, String> {
            let kind = types[place];
            let first: usize = types[..place].iter().map(|kind| kind.buffers()).sum();
            let mut buffers = Vec::new();
            for buffer in first..first + kind.buffers() {
                let (offset, length) = batch
                    .buffers
                    .get(buffer)
                    .copied()
                    .ok_or("a missing buffer")?;
                let end = offset
                    .checked_add(length)
                    .filter(|end| *end <= batch.length);
                end.ok_or("a buffer beyond its message")?;
                buffers.push(self.read(table.file, batch.body + offset, length)?);
            }
            let column = ColumnBuffers { kind, buffers };
            column
                .has_rows(batch.rows)
                .then_some(column)
                .ok_or("a buffer that is too short".to_owned())
        };
        let columns = wanted.iter().map(|place| place.map(load).transpose());
        columns.collect()
    }
}

/// The buffers of a column: which rows have a value, the values or where they end, and the texts.
struct ColumnBuffers {
    kind: ColumnType,
    buffers: Vec<Vec<u8>>,
}

impl ColumnBuffers {
    /// Whether there are values of so many rows.
    fn has_rows(&self, rows: u64) -> bool {
        let has = |buffer: usize, bytes: Option<u64>| {
            let length = self.buffers[buffer].len() as u64;
            bytes.is_some_and(|bytes| length >= bytes)
        };
        let bits = rows.div_ceil(8);
        let values = match self.kind {
            ColumnType::None => return true,
            ColumnType::Int { width, .. } => rows.checked_mul(width),
            ColumnType::Float => rows.checked_mul(4),
            ColumnType::Double => rows.checked_mul(8),
            ColumnType::Bool => Some(bits),
            ColumnType::Bytes { offset } => rows
                .checked_add(1)
                .and_then(|ends| ends.checked_mul(offset)),
        };
        let is_empty = rows == 0;
        is_empty || has(1, values) && (self.buffers[0].is_empty() || has(0, Some(bits)))
    }

    fn number(&self, row: usize, width: usize) -> u64 {
        let bytes = &self.buffers[1][row * width..(row + 1) * width];
        bytes
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn bit(buffer: &[u8], row: usize) -> bool {
        buffer[row / 8] >> (row % 8) & 1 != 0
    }

    fn value(&self, row: usize) -> RowField<'_> {
        let is_there = self
            .buffers
            .first()
            .is_none_or(|bits| bits.is_empty() || Self::bit(bits, row));
        if !is_there {
            return RowField::Null;
        }
        match self.kind {
            ColumnType::None => RowField::Null,
            ColumnType::Int { width, signed } => {
                let number = self.number(row, width as usize);
                let unused = 64 - 8 * width as u32;
                RowField::Int(if signed {
                    (number << unused) as i64 >> unused
                } else {
                    number as i64
                })
            }
            ColumnType::Float => {
                let bits = self.number(row, 4) as u32;
                RowField::Real(f32::from_bits(bits).into())
            }
            ColumnType::Double => RowField::Real(f64::from_bits(self.number(row, 8))),
            ColumnType::Bool => RowField::Int(Self::bit(&self.buffers[1], row).into()),
            ColumnType::Bytes { offset } => {
                let place = |row| usize::try_from(self.number(row, offset as usize)).ok();
                let bytes = place(row).zip(place(row + 1));
                let bytes = bytes.and_then(|(begin, end)| self.buffers[2].get(begin..end));
                match bytes {
                    None => RowField::Null,
                    Some(bytes) => match std::str::from_utf8(bytes) {
                        Ok(text) => RowField::Text(text),
                        Err(_) => RowField::Bytes(bytes),
                    },
                }
            }
        }
    }
}

impl TableSource for ArrowTables {
    fn tables(&self) -> &[TableInfo] {
        &self.infos
    }

    fn each_row(&self, table: &TableInfo, columns: &[&str], each: &mut EachRow<'_>) -> Damages {
        let mut damages = Damages::default();
        let place = self.infos.iter().position(|one| one.name == table.name);
        let Some(own) = place.map(|place| &self.tables[place]) else {
            return damages;
        };
        let names = table.own(columns);
        let places: Vec<Option<usize>> = names
            .iter()
            .map(|name| table.columns.iter().position(|column| column == name))
            .collect();
        let mut number: u64 = 0;
        for batch in &own.batches {
            let most = self.files[own.file].length.saturating_mul(ROWS_PER_BYTE);
            let read = match number.checked_add(batch.rows).filter(|rows| *rows <= most) {
                Some(_) => self.columns(own, batch, &places),
                None => Err("more rows than the file has room for".to_owned()),
            };
            let read = match read {
                Ok(read) => read,
                Err(found) => {
                    let rows = gputrail_record::count(number, "row");
                    let found = format!("in {}, after {rows}: {found}", table.name);
                    damages.add(Damage::new(found, "the rest of the table"));
                    return damages;
                }
            };
            for row in 0..batch.rows as usize {
                number += 1;
                let values = read.iter().map(|column| {
                    let column = column.as_ref();
                    column.map_or(RowField::Null, |column| column.value(row))
                });
                let row = ArrowRow {
                    columns: &names,
                    values: values.collect(),
                    table: &table.name,
                    number,
                };
                if let Err(damage) = each(&row) {
                    damages.add(damage);
                }
            }
        }
        damages
    }

    fn count(&self, table: &TableInfo) -> u64 {
        let place = self.infos.iter().position(|one| one.name == table.name);
        let batches = place.map(|place| &self.tables[place].batches);
        let rows = batches.into_iter().flatten().map(|batch| batch.rows);
        rows.fold(0, u64::saturating_add)
    }
}

/// A row of a table.
struct ArrowRow<'r> {
    columns: &'r [&'r str],
    values: Vec<RowField<'r>>,
    table: &'r str,
    number: u64,
}

impl Row for ArrowRow<'_> {
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
