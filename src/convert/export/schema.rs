//! The tables into which the model is written: one for each family of records, with typed columns.
//!
//! `docs/parquet.md` has these tables for readers; a test compares the two.

/// The type of a column.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// A 64-bit signed integer.
    Int,
    /// A 64-bit floating-point number.
    Double,
    /// Yes or no.
    Bool,
    /// UTF-8.
    Text,
}

/// A column.
#[derive(Copy, Clone, Debug)]
pub struct ColumnSchema {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: ColumnType,
    /// Whether a value of the column may be missing.
    pub optional: bool,
    /// A description of its values.
    pub about: &'static str,
}

/// A table.
#[derive(Debug)]
pub struct TableSchema {
    /// Its name.
    pub name: &'static str,
    /// A description of a row.
    pub about: &'static str,
    /// Its columns.
    pub columns: &'static [ColumnSchema],
}

/// A value of a row.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum RowValue<'a> {
    /// No value.
    Null,
    /// For [`ColumnType::Int`].
    Int(i64),
    /// For [`ColumnType::Double`].
    Double(f64),
    /// For [`ColumnType::Bool`].
    Bool(bool),
    /// For [`ColumnType::Text`].
    Text(&'a str),
}

macro_rules! tables {
    ($($(#[$about:meta])* $id:ident $name:literal $text:literal {
        $($column:literal $kind:ident $($optional:ident)?, $column_text:literal;)*
    })*) => {
        $(
            #[doc = concat!("The table `", $name, "`.")]
            pub static $id: TableSchema = TableSchema {
                name: $name,
                about: $text,
                columns: &[$(ColumnSchema {
                    name: $column,
                    kind: ColumnType::$kind,
                    optional: tables!(@ $($optional)?),
                    about: $column_text,
                }),*],
            };
        )*

        /// All tables.
        pub static TABLES: &[&TableSchema] = &[$(&$id),*];
    };
    (@) => { false };
    (@ optional) => { true };
}

tables! {
    RECORDINGS "recordings" "A fact about a recording as a whole." {
        "key" Text, "what is told: `format`, `clock`, `source`, ...";
        "value" Text, "";
    }
    PROCESSES "processes" "A process." {
        "process" Int, "its number; all other tables name it by this";
        "pid" Int, "its id in the operating system";
        "name" Text, "";
        "rank_name" Text optional, "its rank as the recording gives it: `rank 3 of 8`";
        "command" Text optional, "its command line";
    }
    TRACKS "tracks" "A thread, or another row of the timeline." {
        "track" Int, "its number";
        "process" Int optional, "";
        "thread" Int optional, "id of the thread in the operating system";
        "parent" Int optional, "the track that it stands below";
        "kind" Text, "`thread`, `ranges of a thread`, `ranges`, `slices`, `counter`, `samples`";
        "name" Text, "";
    }
    AGENTS "agents" "A device that work, counters or queues of this rank name." {
        "agent" Int, "its number";
        "title" Text, "`GPU 0`";
        "name" Text, "";
        "vendor" Text optional, "";
        "model" Text optional, "";
        "architecture" Text optional, "";
        "pci_address" Text optional, "";
    }
    QUEUES "queues" "A queue or stream of a process on a device." {
        "queue" Int, "its number";
        "process" Int, "";
        "agent" Int optional, "";
        "api" Text, "";
        "name" Text, "";
        "out_of_order" Bool, "whether its work may overtake";
    }
    CALLS "calls" "An API call." {
        "process" Int, "";
        "thread" Int, "";
        "track" Int, "";
        "name" Text, "the function";
        "category" Text, "the API, or the category that the recording gives";
        "purpose" Text, "`enqueue`, `synchronize`, `query`, `create`, `lifetime`, `build`, `set`, `other`";
        "start_ns" Int, "";
        "end_ns" Int optional, "none if it did not return";
        "duration_ns" Int optional, "";
        "depth" Int, "number of calls and slices around it on its thread";
        "correlation" Int optional, "its id";
        "external" Int optional, "id that the program had pushed";
        "error" Int optional, "return code, if it failed";
        "arguments" Text optional, "a JSON object";
    }
    WORK "work" "A kernel, copy, fill or barrier of a device." {
        "process" Int, "";
        "thread" Int optional, "that enqueued it";
        "agent" Int optional, "";
        "queue" Int, "";
        "stream" Int, "number of the stream in its process";
        "kind" Text, "`kernel`, `copy`, `fill`, `synchronization`, `unknown`";
        "name" Text, "";
        "full_name" Text optional, "the whole name of a C++ function, where it differs";
        "start_ns" Int optional, "none if it is not known when it ran";
        "end_ns" Int optional, "";
        "duration_ns" Int optional, "";
        "enqueued_ns" Int optional, "begin of the call";
        "queued_ns" Int optional, "the runtime accepted it";
        "submitted_ns" Int optional, "it was passed to the device";
        "work" Int optional, "its id";
        "correlation" Int optional, "id of the call that enqueued it";
        "bytes" Int optional, "copied or filled";
        "grid_x" Int optional, "work-items";
        "grid_y" Int optional, "";
        "grid_z" Int optional, "";
        "workgroup_x" Int optional, "work-items of a workgroup";
        "workgroup_y" Int optional, "";
        "workgroup_z" Int optional, "";
        "registers" Int optional, "of a work-item";
        "static_local" Int optional, "bytes of local memory that the kernel declares";
        "dynamic_local" Int optional, "bytes of local memory that the launch added";
        "private" Int optional, "bytes of private memory of a work-item";
        "collective" Text optional, "the collective operation of communication that it executes";
        "process_group" Text optional, "the ranks that take part in it";
        "status" Int optional, "of the runtime; negative for errors";
        "unfinished" Text optional, "why it is not known when it ran";
        "arguments" Text optional, "a JSON object";
    }
    SLICES "slices" "Anything that lasts and is no API call: ranges, operators, functions, overheads." {
        "process" Int optional, "";
        "thread" Int optional, "";
        "track" Int, "";
        "name" Text, "";
        "category" Text, "";
        "start_ns" Int, "";
        "end_ns" Int optional, "";
        "duration_ns" Int optional, "";
        "depth" Int, "number of calls and slices around it on its track";
        "correlation" Int optional, "id of the call that it belongs to";
        "arguments" Text optional, "a JSON object";
    }
    MARKERS "markers" "Something that happens at a point in time." {
        "process" Int optional, "";
        "thread" Int optional, "";
        "track" Int, "";
        "name" Text, "";
        "category" Text, "";
        "time_ns" Int, "";
        "arguments" Text optional, "a JSON object";
    }
    COUNTERS "counters" "A value of a counter." {
        "process" Int optional, "";
        "agent" Int optional, "";
        "track" Int optional, "of counters that have one";
        "name" Text, "";
        "unit" Text, "`count`, `percent`, `bytes`, `bytes/s`, or empty";
        "time_ns" Int, "counters of tracks: from when on it holds; counters of devices: up to when it counts";
        "value" Double, "";
        "whole" Int optional, "the exact value, if it is a whole number";
    }
    SAMPLES "samples" "Number of samples of the program counter of one kernel at one address with one outcome." {
        "process" Int optional, "";
        "agent" Text, "";
        "kernel" Text, "";
        "symbol" Text, "function of the symbol table";
        "function" Text optional, "innermost function of the source";
        "file" Text optional, "";
        "line" Int optional, "";
        "instruction" Text, "";
        "code_object" Int optional, "";
        "offset" Int, "bytes from the load base of the code object";
        "method" Text, "`host-trap`, `stochastic`";
        "state" Text, "`issued`, why the wave did not issue, or `unknown`";
        "samples" Int, "";
    }
    SINGLE_SAMPLES "single_samples" "A sample of the program counter, where they were kept." {
        "process" Int optional, "";
        "time_ns" Int, "";
        "agent" Text, "";
        "kernel" Text, "";
        "instruction" Text, "";
        "function" Text optional, "";
        "file" Text optional, "";
        "line" Int optional, "";
        "state" Text, "as in `samples`";
        "work" Int optional, "the dispatch";
        "correlation" Int optional, "";
        "external" Int optional, "";
        "active_lanes" Int, "";
    }
    DEPENDENCIES "dependencies" "A call or a piece of work depends on device work." {
        "kind" Text, "`submits` and `waits`: the call with `correlation`; `after`: the work `work`";
        "process" Int, "";
        "correlation" Int optional, "the call";
        "work" Int optional, "the work that waits";
        "other" Int, "the work that is submitted or waited for";
    }
    FLOWS "flows" "A point of an arrow between slices." {
        "flow" Int, "its number";
        "track" Int, "";
        "time_ns" Int, "begin of the slice or marker that it passes through";
        "ends" Bool, "whether it ends here";
    }
    LOSSES "losses" "Records that are missing." {
        "process" Int optional, "";
        "thread" Int optional, "";
        "kind" Text, "their kind; empty for several";
        "records" Int, "how many";
        "first_ns" Int, "a time before the first loss";
        "last_ns" Int, "a time after the last loss";
    }
    NOTES "notes" "A fact about the recording of a process." {
        "process" Int, "";
        "time_ns" Int, "";
        "name" Text, "";
        "arguments" Text optional, "a JSON object";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table as it stands in the documentation.
    fn documented(table: &TableSchema) -> String {
        let mut text = format!(
            "## {}\n\n{}\n\n| column | type | |\n|---|---|---|\n",
            table.name, table.about
        );
        for column in table.columns {
            let kind = match column.kind {
                ColumnType::Int => "int64",
                ColumnType::Double => "double",
                ColumnType::Bool => "boolean",
                ColumnType::Text => "text",
            };
            let optional = if column.optional { ", optional" } else { "" };
            text += &format!(
                "| `{}` | {kind}{optional} | {} |\n",
                column.name, column.about
            );
        }
        text
    }

    #[test]
    fn the_documentation_has_all_tables_with_their_columns() {
        let page = include_str!("../../../docs/parquet.md");
        for table in TABLES {
            let text = documented(table);
            assert!(page.contains(&text), "docs/parquet.md lacks:\n{text}");
        }
    }
}
