//! The text of the page: its frame, escaped texts, and tables.

use super::style::STYLE;
use crate::figures::{grouped, shortened};
use crate::tables::{Cell, Table};
use gputrail_record::printable;
use std::fmt;
use std::ops::AddAssign;

/// Maximum number of characters of a text from the input.
const LONGEST_TEXT: usize = 400;
/// Number of characters of a cell from which its text is also shown when the mouse is over it.
const LONG_TEXT: usize = 60;

/// A text as HTML, in an element or in an attribute between double quotes: shortened, on one line, with `&<>"'` escaped.
pub fn text(text: &str) -> String {
    let short = shortened(text, LONGEST_TEXT);
    let mut html = String::with_capacity(short.len());
    for letter in printable(&short).chars() {
        match letter {
            '&' => html += "&amp;",
            '<' => html += "&lt;",
            '>' => html += "&gt;",
            '"' => html += "&quot;",
            '\'' => html += "&#39;",
            other => html.push(other),
        }
    }
    html
}

/// A text of gputrail's own, in which commands stand between backticks.
pub fn with_code(words: &str) -> String {
    let mut html = String::new();
    for (number, part) in words.split('`').enumerate() {
        html += &match number % 2 {
            0 => text(part),
            _ => format!("<code>{}</code>", text(part)),
        };
    }
    html
}

/// A page that grows. What is added to it is HTML.
pub struct Page {
    title: String,
    body: String,
    /// The sections: id and title.
    sections: Vec<(&'static str, &'static str)>,
}

impl fmt::Write for Page {
    fn write_str(&mut self, html: &str) -> fmt::Result {
        self.body.push_str(html);
        Ok(())
    }
}

impl AddAssign<&str> for Page {
    fn add_assign(&mut self, html: &str) {
        self.body += html;
    }
}

impl Page {
    pub fn new(title: &str) -> Page {
        Page {
            title: text(title),
            body: String::new(),
            sections: Vec::new(),
        }
    }

    pub fn section(&mut self, id: &'static str, title: &'static str) {
        self.sections.push((id, title));
        self.body += &format!("<section id=\"{id}\"><h2>{title}</h2>");
    }

    pub fn end_section(&mut self) {
        self.body += "</section>\n";
    }

    /// A table with at most `top` rows. Numbers carry their exact values, as JSON has them.
    pub fn table(&mut self, table: &Table, top: usize, is_open: bool) {
        let rows = table.rows.len();
        let open = if is_open { " open" } else { "" };
        self.body += &format!(
            "<details id=\"table-{key}\"{open}><summary>{} <small>{}</small></summary><div class=\"wide\"><table data-table=\"{key}\"><thead><tr>",
            text(table.name.title),
            grouped(rows as u64),
            key = table.name.key,
        );
        let columns = &table.columns;
        for (place, column) in columns.iter().enumerate() {
            let class = if table.is_text(place) {
                ""
            } else {
                " class=\"n\""
            };
            let title = text(column.title);
            self.body += &format!("<th data-key=\"{}\"{class}>{title}</th>", column.key);
        }
        self.body += "</tr></thead><tbody>\n";
        for row in table.rows.iter().take(top) {
            self.body += "<tr>";
            row.iter().for_each(|cell| self.cell(cell));
            self.body += "</tr>\n";
        }
        self.body += "</tbody></table></div>";
        if rows > top {
            let more = grouped((rows - top) as u64);
            self.body += &format!(
                "<p class=\"note\">and {more} more: <code>gputrail summary --table {}</code></p>",
                table.name.key
            );
        }
        self.body += "</details>\n";
    }

    fn cell(&mut self, cell: &Cell) {
        let words = text(&cell.for_people());
        self.body += &match cell {
            Cell::Text(long) | Cell::Name(long) if long.chars().nth(LONG_TEXT).is_some() => {
                format!("<td class=\"t\" title=\"{words}\"><div>{words}</div></td>")
            }
            Cell::Text(_) | Cell::Name(_) => format!("<td class=\"t\">{words}</td>"),
            Cell::Nothing => "<td class=\"n\">-</td>".to_owned(),
            Cell::Share(share) => format!(
                "<td class=\"n s\" style=\"--s:{:.1}%\"><data value=\"{}\">{words}</data></td>",
                100.0 * share.clamp(0.0, 1.0),
                cell.exact()
            ),
            _ => format!(
                "<td class=\"n\"><data value=\"{}\">{words}</data></td>",
                cell.exact()
            ),
        };
    }

    /// The whole page, with links to its sections and tables.
    pub fn finish(self, tables: &[&Table]) -> String {
        let mut links = String::new();
        for (id, title) in &self.sections {
            links += &format!("<li><a href=\"#{id}\">{title}</a></li>");
        }
        for table in tables {
            // Titles have an explanation behind their first words.
            let title = table.name.title.split([':', ',']).next();
            let title = title.and_then(|title| title.split(" from ").next());
            links += &format!(
                "<li class=\"sub\"><a href=\"#table-{}\">{}</a></li>",
                table.name.key,
                text(title.unwrap_or_default())
            );
        }
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{} - gputrail</title>\n<style>\n{STYLE}</style></head>\n<body>\n\
             <nav><b>gputrail report</b><ul>{links}</ul></nav>\n<main>\n{}\
             <footer>Made by gputrail {}. This page loads nothing and runs no script.</footer></main></body></html>\n",
            self.title,
            self.body,
            env!("CARGO_PKG_VERSION"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_leave_their_place() {
        let hostile = "</td><script>alert('x')</script>\"&\u{1b}[2J\u{202e}";
        let html = text(hostile);
        assert!(
            !html.contains(['<', '>', '"', '\'', '\u{1b}', '\u{202e}']),
            "{html}"
        );
        assert!(html.starts_with("&lt;/td&gt;&lt;script&gt;"), "{html}");
        assert!(html.contains("&quot;&amp;"), "{html}");
    }

    #[test]
    fn long_texts_are_cut() {
        assert!(text(&"x".repeat(1 << 20)).len() <= LONGEST_TEXT);
    }
}
