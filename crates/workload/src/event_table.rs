//! Event tables built row by row, from text or from columns.

use super::error::TraceError;
use super::program::{Call, NONE};
use super::trace::{Event, MAX_RANKS, Trace};
use opticoll_base::interrupt;
use opticoll_base::names::terminal_text;

/// Row of an event table: a call. All ranks are ranks of the whole program.
#[derive(Debug, Clone, Copy)]
pub struct EventRow {
    /// Rank that makes the call.
    pub rank: u32,
    /// Name and kind of the call.
    pub call: CallName,
    /// Partner of a message, or root of a collective.
    pub peer: Option<u32>,
    /// Number of bytes that the rank sends.
    pub sent: u64,
    /// Number of bytes that the rank receives, or that its receive buffer can store.
    pub received: u64,
    /// Tag of the message.
    pub tag: u32,
    /// Identifier of the communicator.
    pub communicator: u32,
    /// Identifier of the request that the call opens, or for which the call waits.
    pub request: Option<u32>,
    /// Local work in nanoseconds since the rank's previous call.
    pub compute_ns: u64,
}

/// Valid name of a call, with the kind of the call.
pub type CallName = &'static (&'static str, Call);

const CALLS: [(&str, Call); 23] = [
    ("Init", Call::Local),
    ("Finalize", Call::Local),
    ("Comm_split", Call::Local),
    ("Comm_dup", Call::Local),
    ("Send", Call::Send),
    ("Isend", Call::ImmediateSend),
    ("Recv", Call::Receive),
    ("Irecv", Call::ImmediateReceive),
    ("Wait", Call::Wait),
    (WAIT_FOR_ALL, Call::Wait),
    ("Barrier", Call::Barrier),
    ("Bcast", Call::Broadcast),
    ("Reduce", Call::Reduce),
    ("Allreduce", Call::AllReduce),
    ("Gather", Call::Gather),
    ("Scatter", Call::Scatter),
    ("Allgather", Call::AllGather),
    ("Reduce_scatter", Call::ReduceScatter),
    ("Alltoall", Call::AllToAll),
    ("Alltoallv", Call::AllToAllVarious),
    ("Gatherv", Call::GatherVarious),
    ("Scatterv", Call::ScatterVarious),
    ("Allgatherv", Call::AllGatherVarious),
];
const WAIT_FOR_ALL: &str = "Waitall";

/// Returns the call with this name. The error message lists all names.
pub(super) fn call(name: &str) -> Result<CallName, String> {
    let entry = CALLS.iter().find(|(call_name, _)| *call_name == name);
    entry.ok_or_else(|| {
        let names = CALLS.map(|(known, _)| known).join(", ");
        format!("unknown call `{}`; known are {names}", terminal_text(name))
    })
}

/// Nouns that describe numbers in error messages.
pub(super) mod what {
    pub(crate) const RANK: &str = "a rank";
    pub(crate) const BYTES: &str = "a number of bytes";
    pub(crate) const TAG: &str = "a tag";
    pub(crate) const COMMUNICATOR: &str = "a communicator";
    pub(crate) const REQUEST: &str = "a request";
    pub(crate) const NANOSECONDS: &str = "a number of nanoseconds";
    pub(crate) const SIZE: &str = "a size";
}

pub(super) fn no_number(text: &str, what: &str) -> String {
    let text = terminal_text(text);
    format!("`{text}` is not {what}: a whole number that is not negative")
}

/// Trace under construction, row by row.
#[derive(Debug, Default)]
pub struct EventTable {
    trace: Trace,
    declared: Option<u32>,
    /// Rank whose last event is an Alltoallv that still needs its sizes.
    sizes_for: Option<usize>,
    rows: usize,
}

/// Rows of an event table as columns of equal length, each indexed by row. [`ABSENT`] stands for a
/// missing number.
pub struct EventColumns<'a> {
    /// Names of calls, to which `call` refers by index.
    pub names: &'a [String],
    /// Index in `names` of the call, indexed by row.
    pub call: &'a [u32],
    /// Columns of numbers: rank, peer, bytes sent, bytes received, tag, communicator, request,
    /// computation in nanoseconds.
    pub numbers: [&'a [u64]; 8],
    /// Sizes of each Alltoallv: index of its row, from 0, and number of bytes for each member.
    pub sizes: Vec<(usize, Vec<u64>)>,
}

/// Value that stands for a missing number.
pub const ABSENT: u64 = u64::MAX;

impl EventColumns<'_> {
    fn row(&self, index: usize, calls: &[Result<CallName, String>]) -> Result<EventRow, String> {
        let number = |column: usize| match self.numbers[column][index] {
            ABSENT => None,
            number => Some(number),
        };
        let needed = |column, what| number(column).ok_or_else(|| no_number("", what));
        let small = |column, what: &str, absent: u32| match number(column) {
            None => Ok(absent),
            Some(number) => u32::try_from(number).map_err(|_| no_number(&number.to_string(), what)),
        };
        let small_or_none = |column, what| match number(column) {
            None => Ok(None),
            Some(_) => small(column, what, 0).map(Some),
        };
        needed(0, what::RANK)?;
        let call = calls.get(self.call[index] as usize);
        Ok(EventRow {
            rank: small(0, what::RANK, 0)?,
            call: call
                .cloned()
                .unwrap_or_else(|| Err("a call is missing".into()))?,
            sent: needed(2, what::BYTES)?,
            received: needed(3, what::BYTES)?,
            compute_ns: needed(7, what::NANOSECONDS)?,
            peer: small_or_none(1, what::RANK)?,
            tag: small(4, what::TAG, 0)?,
            communicator: small(5, what::COMMUNICATOR, 0)?,
            request: small_or_none(6, what::REQUEST)?,
        })
    }
}

impl EventTable {
    /// Declares the number of ranks.
    pub fn declare(&mut self, ranks: u32) {
        self.declared = Some(ranks);
    }

    /// Declares the members of a communicator.
    ///
    /// # Errors
    /// Fails if the communicator was declared before.
    pub fn communicator(&mut self, id: u32, members: Vec<u32>) -> Result<(), String> {
        match self.trace.communicators.insert(id, members) {
            Some(_) => Err(format!("communicator {id} is declared twice")),
            None => Ok(()),
        }
    }

    /// Appends a row. `line` is the number of the row's line in the file, or 0 if the table has no
    /// lines.
    pub fn push(&mut self, row: &EventRow, line: u32) -> Result<(), String> {
        if self.sizes_for.is_some() {
            return Err("a row `# v B B ...` with the sizes of the Alltoallv is missing".into());
        }
        self.check_rank(row.rank)?;
        let event = event(row, line)?;
        let rank = row.rank as usize;
        if event.call == Call::AllToAllVarious {
            self.sizes_for = Some(rank);
        }
        self.trace.ranks[rank].push(event);
        Ok(())
    }

    /// Sets the number of bytes for each member of the Alltoallv in the last row.
    ///
    /// # Errors
    /// Fails if the last row is not an Alltoallv or sends a different total.
    pub fn sizes(&mut self, sizes: Vec<u64>) -> Result<(), String> {
        let rank = self.sizes_for.take();
        let rank = rank.ok_or("sizes must follow an Alltoallv")?;
        let sum: u128 = sizes.iter().map(|&size| u128::from(size)).sum();
        if let Some(event) = self.trace.ranks[rank].last_mut() {
            if sum != u128::from(event.bytes) {
                return Err(format!(
                    "the sizes add up to {sum} bytes, but the Alltoallv before them sends {} bytes",
                    event.bytes
                ));
            }
            event.request = self.trace.various.len() as u32;
        }
        self.trace.various.push(sizes);
        Ok(())
    }

    /// Appends all rows of `columns`.
    ///
    /// # Errors
    /// Fails at the first invalid row. The error contains the number of the row, counted from 1. If
    /// this function is executed again, the count continues.
    pub fn extend(&mut self, columns: EventColumns<'_>) -> Result<(), TraceError> {
        let calls: Vec<_> = columns.names.iter().map(|name| call(name)).collect();
        let mut sizes = columns.sizes.iter().peekable();
        for index in 0..columns.call.len() {
            interrupt::check();
            self.rows += 1;
            let row = self.rows;
            let refuse = |problem| TraceError::Row { row, problem };
            let event = columns.row(index, &calls).map_err(refuse)?;
            self.push(&event, 0).map_err(refuse)?;
            if let Some((_, sizes)) = sizes.next_if(|(row, _)| *row == index) {
                self.sizes(sizes.clone()).map_err(refuse)?;
            }
        }
        Ok(())
    }

    /// Returns the trace of all rows.
    ///
    /// # Errors
    /// Fails if there are no rows, if sizes are missing, or if the members of a communicator are
    /// not distinct ranks.
    pub fn finish(mut self) -> Result<Trace, String> {
        if self.sizes_for.is_some() {
            return Err("the text ends before the sizes of an Alltoallv".into());
        }
        if self.trace.ranks.is_empty() {
            return Err("the text ends before the first call".into());
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
                let range = format!(
                    "its members must be different ranks from 0 to {}",
                    ranks - 1
                );
                return Err(format!("communicator {id}: {range}"));
            }
        }
        Ok(self.trace)
    }

    /// Checks that `rank` exists. At the first row, sets the number of ranks: the declared number,
    /// or the number of members of communicator 0.
    fn check_rank(&mut self, rank: u32) -> Result<(), String> {
        if self.trace.ranks.is_empty() {
            let world = self.trace.communicators.get(&0);
            let ranks = self.declared.or(world.map(|world| world.len() as u32));
            let ranks = ranks.ok_or("`# app=NAME ranks=N` is missing before the first row")?;
            if !(1..=MAX_RANKS).contains(&ranks) {
                return Err(format!("a trace has 1 to {MAX_RANKS} ranks, not {ranks}"));
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
}

/// Converts a row to an event and checks that the call has its peer and its request.
fn event(row: &EventRow, line: u32) -> Result<Event, String> {
    let &(name, call) = row.call;
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
            | Call::GatherVarious
            | Call::ScatterVarious
    );
    if needs_peer && row.peer.is_none() {
        return Err(format!("{name} needs a peer"));
    }
    let needs_request = match call {
        Call::Wait => name != WAIT_FOR_ALL,
        _ => matches!(call, Call::ImmediateSend | Call::ImmediateReceive),
    };
    let bytes = match call {
        Call::Receive | Call::ImmediateReceive | Call::Scatter | Call::ScatterVarious => {
            row.received
        }
        // The root sends, the other members receive.
        Call::Broadcast => row.sent.max(row.received),
        _ => row.sent,
    };
    Ok(Event {
        compute: row
            .compute_ns
            .checked_mul(1000)
            .ok_or("the local work exceeds 64 bits of picoseconds")?,
        bytes,
        peer: row.peer.unwrap_or(NONE),
        tag: row.tag,
        communicator: row.communicator,
        request: match needs_request {
            true => row.request.ok_or_else(|| no_number("", what::REQUEST))?,
            false => NONE,
        },
        line,
        call,
        ..Event::NOTHING
    })
}
