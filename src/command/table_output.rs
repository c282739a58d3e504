//! Tables that verbs print: which, how many rows, and where they go.

use crate::cli::answers::TableOptions;
use crate::failure::Failure;
use crate::stdout;
use crate::tables::{self, Format, Table};
use anyhow::{Context, anyhow};

/// Number of rows of a table that people get without asking for more.
const MAX_ROWS: usize = 30;

impl TableOptions {
    /// The tables and rows that are wanted.
    pub fn choose(&self, mut all: Vec<Table>) -> Result<Vec<Table>, Failure> {
        for wanted in &self.table {
            if !all.iter().any(|table| table.name.key == wanted) {
                let mut keys: Vec<_> = all.iter().map(|table| table.name.key).collect();
                keys.sort_unstable();
                return Err(anyhow!(
                    "--table {wanted}: there is no such table; there are {}",
                    keys.join(", ")
                )
                .into());
            }
        }
        if !self.table.is_empty() {
            all.retain(|table| self.table.iter().any(|wanted| table.name.key == wanted));
        }
        if let Some(top) = self.top {
            all.iter_mut().for_each(|table| table.rows.truncate(top));
        }
        Ok(all)
    }

    /// Prints the chosen tables, or writes them into files.
    pub fn print(&self, all: Vec<Table>) -> Result<(), Failure> {
        let chosen = self.choose(all)?;
        match &self.output {
            None => {
                // A table that is asked for, or cut off on request, is shown as it was.
                let is_asked = !self.table.is_empty() || self.top.is_some();
                let most = if is_asked { usize::MAX } else { MAX_ROWS };
                stdout::print_tables(&chosen, self.format, most)
            }
            Some(_) => self.write(&chosen),
        }
    }

    /// Writes each table into a file of its own.
    fn write(&self, chosen: &[Table]) -> Result<(), Failure> {
        let Some(folder) = &self.output else {
            return Ok(());
        };
        let cannot = || format!("cannot write {}", folder.display());
        std::fs::create_dir_all(folder).with_context(cannot)?;
        let extension = match self.format {
            Format::Table => "txt",
            Format::Json => "json",
            Format::Csv => "csv",
            Format::Markdown => "md",
        };
        for table in chosen {
            let text = tables::write_one(table, self.format);
            let path = folder.join(format!("{}.{extension}", table.name.key));
            let written = std::fs::write(&path, text);
            written.with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}
