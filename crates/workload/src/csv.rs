//! Reader of event tables in CSV: one row per call, the rows of each rank in order.
//!
//! The first line that is neither empty nor a comment names the columns, in any order; unknown
//! columns are ignored.
//!
//! | column | meaning |
//! |---|---|
//! | `rank` | rank of the whole program |
//! | `call` | name of the call: see the list below |
//! | `peer` | the partner or the root, a rank of the whole program; empty if the call has neither |
//! | `send_bytes`, `recv_bytes` | bytes that the rank sends; bytes that it receives or can receive |
//! | `tag`, `comm` | tag and communicator; an empty cell stands for 0 |
//! | `req` | the request that Isend or Irecv opens and Wait closes |
//! | `compute_ns` | local work since the rank's previous call |
//!
//! Calls are Init, Finalize, Comm_split, Comm_dup, Send, Isend, Recv, Irecv, Wait, Waitall,
//! Barrier, Bcast, Reduce, Allreduce, Gather, Scatter, Allgather, Reduce_scatter, Alltoall,
//! Alltoallv, Gatherv, Scatterv and Allgatherv.
//!
//! Three comments carry data: `# app=NAME ranks=N` (number of ranks), `# comm ID = R R ...`
//! (members of a communicator) and, after an Alltoallv, `# v B B ...` (bytes for each member).
//! Other comments are ignored.

use super::error::TraceError;
use super::event_table::{EventRow, EventTable, call, no_number, what};
use super::trace::Trace;
use opticoll_base::interrupt;

const COLUMNS: [&str; 9] = [
    "rank",
    "call",
    "peer",
    "send_bytes",
    "recv_bytes",
    "tag",
    "comm",
    "req",
    "compute_ns",
];

/// Reads an event table.
///
/// # Errors
/// Fails at the first line that cannot be read; the error says what was expected.
pub fn read(text: &str) -> Result<Trace, TraceError> {
    let mut reader = CsvReader::default();
    let mut last = 0;
    for (line, number) in text.lines().zip(1..) {
        interrupt::check();
        last = number;
        let refuse = |problem| TraceError::Line {
            line: number,
            problem,
        };
        match line.strip_prefix('#') {
            Some(comment) => reader.comment(comment.trim()).map_err(refuse)?,
            None if line.trim().is_empty() => {}
            None => reader.row(line, number).map_err(refuse)?,
        }
    }
    let refuse = |problem| TraceError::Line {
        line: last,
        problem,
    };
    reader.table.finish().map_err(refuse)
}

#[derive(Default)]
struct CsvReader {
    table: EventTable,
    /// Index of each column's cell in a row, in the order of [`COLUMNS`], and the number of cells
    /// per row.
    columns: Option<([usize; COLUMNS.len()], usize)>,
}

impl CsvReader {
    /// Reads a comment. A comment may declare the number of ranks, the members of a communicator,
    /// or the sizes of an Alltoallv.
    fn comment(&mut self, comment: &str) -> Result<(), String> {
        let mut words = comment.split_whitespace();
        match words.next() {
            Some("comm") => {
                let text = comment.strip_prefix("comm").unwrap_or_default();
                let (id, members) = text
                    .split_once('=')
                    .ok_or("a communicator is declared as `# comm ID = R R ...`")?;
                let members = numbers(members, what::RANK)?;
                self.table
                    .communicator(number(id.trim(), what::COMMUNICATOR)?, members)
            }
            Some("v") => self.table.sizes(numbers(
                comment.strip_prefix('v').unwrap_or_default(),
                what::SIZE,
            )?),
            _ => {
                let ranks = comment
                    .split_whitespace()
                    .find_map(|word| word.strip_prefix("ranks="));
                if let Some(ranks) = ranks {
                    self.table.declare(number(ranks, "a number of ranks")?);
                }
                Ok(())
            }
        }
    }

    /// Reads the row that names the columns.
    fn header(&mut self, line: &str) -> Result<(), String> {
        let names: Vec<&str> = line.split(',').map(str::trim).collect();
        let mut columns = [0; COLUMNS.len()];
        for (column, name) in columns.iter_mut().zip(COLUMNS) {
            *column = names
                .iter()
                .position(|other| *other == name)
                .ok_or_else(|| format!("the first row names the columns; `{name}` is missing"))?;
        }
        self.columns = Some((columns, names.len()));
        Ok(())
    }

    fn row(&mut self, line: &str, line_number: u32) -> Result<(), String> {
        let Some((columns, cells)) = self.columns else {
            return self.header(line);
        };
        let mut fields = [None; COLUMNS.len()];
        for (cell_index, field) in line.split(',').enumerate() {
            if let Some(index) = columns.iter().position(|&column| column == cell_index) {
                fields[index] = Some(field.trim());
            }
        }
        let missing = fields.iter().position(Option::is_none);
        if let Some(index) = missing {
            return Err(format!("the row ends before column `{}`", COLUMNS[index]));
        }
        let count = line.split(',').count();
        if count > cells {
            return Err(format!("{count} cells, but {cells} columns are named"));
        }
        let row = event_row(fields.map(Option::unwrap_or_default))?;
        self.table.push(&row, line_number)
    }
}

fn event_row(fields: [&str; COLUMNS.len()]) -> Result<EventRow, String> {
    let [
        rank,
        name,
        peer,
        sent,
        received,
        tag,
        communicator,
        request,
        compute,
    ] = fields;
    let call = call(name)?;
    let needed = [0, 3, 4, 8];
    if let Some(column) = needed.into_iter().find(|&column| fields[column].is_empty()) {
        let name = COLUMNS[column];
        return Err(format!(
            "column `{name}` is empty; it needs a number, such as 0"
        ));
    }
    Ok(EventRow {
        rank: number(rank, what::RANK)?,
        call,
        sent: number(sent, what::BYTES)?,
        received: number(received, what::BYTES)?,
        compute_ns: number(compute, what::NANOSECONDS)?,
        peer: optional(peer, what::RANK)?,
        request: optional(request, what::REQUEST)?,
        tag: optional(tag, what::TAG)?.unwrap_or(0),
        communicator: optional(communicator, what::COMMUNICATOR)?.unwrap_or(0),
    })
}

fn optional(text: &str, what: &str) -> Result<Option<u32>, String> {
    match text {
        "" => Ok(None),
        text => number(text, what).map(Some),
    }
}

fn number<N: std::str::FromStr>(text: &str, what: &str) -> Result<N, String> {
    text.parse().map_err(|_| no_number(text, what))
}

fn numbers<N: std::str::FromStr>(text: &str, what: &str) -> Result<Vec<N>, String> {
    text.split_whitespace()
        .map(|word| number(word, what))
        .collect()
}
