//! Reads the event table: comma-separated text, a row per call, rows of a rank in order.
//!
//! The first row that is no comment names the columns, in any order; others than these are ignored.
//!
//! | column | meaning |
//! |---|---|
//! | `rank` | rank of the world |
//! | `call` | Init, Finalize, Comm_split, Comm_dup, Send, Isend, Recv, Irecv, Wait, Waitall, Barrier, Bcast, Reduce, Allreduce, Gather, Scatter, Allgather, Reduce_scatter, Alltoall, Alltoallv |
//! | `peer` | the partner or the root, a rank of the world; empty where there is none |
//! | `send_bytes`, `recv_bytes` | bytes that this rank gives, and has room for or gets |
//! | `tag`, `comm` | tag and communicator; empty is 0 |
//! | `req` | the request that Isend or Irecv opens and Wait closes |
//! | `compute_ns` | local work since the rank's call before |
//!
//! `# app=NAME ranks=N` states the number of ranks, `# comm ID = R R ...` the members of a
//! communicator, `# v B B ...` after an Alltoallv the bytes for each member. Other comments are ignored.

use super::error::TraceError;
use super::program::{Call, NONE};
use super::trace::{Event, Trace};
use crate::interrupt;
use crate::spelling::shown;

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
const RANK: usize = 0;
const CALL: usize = 1;
const PEER: usize = 2;
const SENT: usize = 3;
const RECEIVED: usize = 4;
const TAG: usize = 5;
const COMMUNICATOR: usize = 6;
const REQUEST: usize = 7;
const COMPUTE: usize = 8;

/// Reads an event table.
///
/// # Errors
/// The first line that cannot be read, with what was expected.
pub fn read(text: &str) -> Result<Trace, TraceError> {
    let mut reader = Reader {
        trace: Trace::default(),
        columns: None,
        declared: None,
        sizes_for: None,
    };
    for (index, line) in text.lines().enumerate() {
        interrupt::check();
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
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
    reader.finish(text.lines().count())
}

struct Reader {
    trace: Trace,
    /// For each of [`COLUMNS`], its place in a row, and how many cells a row has.
    columns: Option<([usize; COLUMNS.len()], usize)>,
    declared: Option<u32>,
    /// The rank whose last event is an Alltoallv that lacks its sizes.
    sizes_for: Option<usize>,
}

impl Reader {
    fn comment(&mut self, comment: &str) -> Result<(), String> {
        let mut words = comment.split_whitespace();
        match words.next() {
            Some("comm") => {
                let text = comment.strip_prefix("comm").unwrap_or_default();
                let (id, members) = text
                    .split_once('=')
                    .ok_or("a communicator is declared as `# comm ID = R R ...`")?;
                let members = numbers(members, "a rank")?;
                let id = number(id.trim(), "a communicator")?;
                if self.trace.communicators.insert(id, members).is_some() {
                    return Err(format!("communicator {id} is declared twice"));
                }
            }
            Some("v") => {
                let rank = self
                    .sizes_for
                    .take()
                    .ok_or("sizes stand after an Alltoallv")?;
                let sizes = numbers(comment.strip_prefix('v').unwrap_or_default(), "a size")?;
                let index = self.trace.various.len() as u32;
                let sum: u128 = sizes.iter().map(|&size: &u64| u128::from(size)).sum();
                if let Some(event) = self.trace.ranks[rank].last_mut() {
                    if sum != u128::from(event.bytes) {
                        return Err(format!(
                            "the sizes make {sum} bytes, the Alltoallv before them sends {}",
                            event.bytes
                        ));
                    }
                    event.request = index;
                }
                self.trace.various.push(sizes);
            }
            _ => {
                let ranks = comment
                    .split_whitespace()
                    .find_map(|word| word.strip_prefix("ranks="));
                if let Some(ranks) = ranks {
                    self.declared = Some(number(ranks, "a number of ranks")?);
                }
            }
        }
        Ok(())
    }

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
        if self.sizes_for.is_some() {
            return Err("a row `# v B B ...` with the sizes of the Alltoallv is missing".into());
        }
        let mut fields = [None; COLUMNS.len()];
        for (place, field) in line.split(',').enumerate() {
            if let Some(index) = columns.iter().position(|&column| column == place) {
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
        let fields = fields.map(Option::unwrap_or_default);
        let rank: u32 = number(fields[RANK], "a rank")?;
        self.check_rank(rank)?;
        let event = event(fields, line_number)?;
        let rank = rank as usize;
        if event.call == Call::AllToAllVarious {
            self.sizes_for = Some(rank);
        }
        self.trace.ranks[rank].push(event);
        Ok(())
    }

    /// Makes room for a rank; the number of ranks is as declared, or that of communicator 0.
    fn check_rank(&mut self, rank: u32) -> Result<(), String> {
        if self.trace.ranks.is_empty() {
            let world = self
                .trace
                .communicators
                .get(&0)
                .map(|world| world.len() as u32);
            let ranks = self.declared.or(world);
            let ranks = ranks.ok_or("`# app=NAME ranks=N` is missing before the first row")?;
            if !(1..=MOST_RANKS).contains(&ranks) {
                return Err(format!("a trace has 1 to {MOST_RANKS} ranks, not {ranks}"));
            }
            self.trace.ranks = vec![Vec::new(); ranks as usize];
        }
        match self.trace.ranks.len() as u32 {
            ranks if rank < ranks => Ok(()),
            ranks => Err(format!(
                "there is no rank {rank}; ranks are 0 to {}",
                ranks - 1
            )),
        }
    }

    fn finish(mut self, line: usize) -> Result<Trace, TraceError> {
        let refuse = |problem: String| TraceError::Line {
            line: line as u32,
            problem,
        };
        if self.sizes_for.is_some() {
            return Err(refuse(
                "the text ends before the sizes of an Alltoallv".into(),
            ));
        }
        if self.trace.ranks.is_empty() {
            return Err(refuse("the text ends before the first call".into()));
        }
        let ranks = self.trace.ranks.len() as u32;
        let communicators = &mut self.trace.communicators;
        communicators
            .entry(0)
            .or_insert_with(|| (0..ranks).collect());
        for (id, members) in communicators {
            let mut sorted = members.clone();
            sorted.sort_unstable();
            sorted.dedup();
            if sorted.len() < members.len() || sorted.last().is_none_or(|&last| last >= ranks) {
                let range = format!("its members are different ranks of 0 to {}", ranks - 1);
                return Err(refuse(format!("communicator {id}: {range}")));
            }
        }
        Ok(self.trace)
    }
}

/// The most ranks of a trace: a million, so that a wrong number does not take all memory.
pub(super) const MOST_RANKS: u32 = 1 << 20;

fn event(fields: [&str; COLUMNS.len()], line: u32) -> Result<Event, String> {
    let call = call(fields[CALL])?;
    let sent: u64 = number(fields[SENT], "a number of bytes")?;
    let received: u64 = number(fields[RECEIVED], "a number of bytes")?;
    let compute: u64 = number(fields[COMPUTE], "a number of nanoseconds")?;
    let optional = |index: usize, what: &str, absent: u32| match fields[index] {
        "" => Ok(absent),
        text => number(text, what),
    };
    let needs_peer = matches!(
        call,
        Call::Send
            | Call::ImmediateSend
            | Call::Receive
            | Call::ImmediateReceive
            | Call::Broadcast
            | Call::Reduce
            | Call::Gather
            | Call::Scatter
    );
    let peer = optional(PEER, "a rank", NONE)?;
    if needs_peer && peer == NONE {
        return Err(format!("{} needs a peer", fields[CALL]));
    }
    let immediate = matches!(call, Call::ImmediateSend | Call::ImmediateReceive);
    let request = match call {
        Call::Wait if fields[CALL] == "Waitall" => NONE,
        Call::Wait => number(fields[REQUEST], "a request")?,
        _ if immediate => number(fields[REQUEST], "a request")?,
        _ => NONE,
    };
    let bytes = match call {
        Call::Receive | Call::ImmediateReceive | Call::Scatter => received,
        // The root gives, the others get.
        Call::Broadcast => sent.max(received),
        _ => sent,
    };
    Ok(Event {
        compute: compute
            .checked_mul(1000)
            .ok_or("the local work leaves 64 bits of picoseconds")?,
        bytes,
        peer,
        tag: optional(TAG, "a tag", 0)?,
        communicator: optional(COMMUNICATOR, "a communicator", 0)?,
        request,
        line,
        call,
    })
}

fn call(name: &str) -> Result<Call, String> {
    Ok(match name {
        "Init" | "Finalize" | "Comm_split" | "Comm_dup" => Call::Local,
        "Send" => Call::Send,
        "Isend" => Call::ImmediateSend,
        "Recv" => Call::Receive,
        "Irecv" => Call::ImmediateReceive,
        "Wait" | "Waitall" => Call::Wait,
        "Barrier" => Call::Barrier,
        "Bcast" => Call::Broadcast,
        "Reduce" => Call::Reduce,
        "Allreduce" => Call::AllReduce,
        "Gather" => Call::Gather,
        "Scatter" => Call::Scatter,
        "Allgather" => Call::AllGather,
        "Reduce_scatter" => Call::ReduceScatter,
        "Alltoall" => Call::AllToAll,
        "Alltoallv" => Call::AllToAllVarious,
        _ => return Err(format!("unknown call `{}`", shown(name))),
    })
}

fn number<N: std::str::FromStr>(text: &str, what: &str) -> Result<N, String> {
    text.parse().map_err(|_| {
        format!(
            "`{}` is not {what}: a whole number that is not negative",
            shown(text)
        )
    })
}

fn numbers<N: std::str::FromStr>(text: &str, what: &str) -> Result<Vec<N>, String> {
    text.split_whitespace()
        .map(|word| number(word, what))
        .collect()
}
