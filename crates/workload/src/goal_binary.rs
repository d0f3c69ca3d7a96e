//! Reads binary GOAL.
//!
//! Little-endian and packed. Offsets count from byte 8.
//!
//! ```text
//! 0    u64 magic 4223, u32 ranks, u8 highest processor, u8 highest port
//! 14   per rank: u64 begin, u64 end
//! per rank at 8 + begin:
//!      u32 nodes, u32 roots, u32 x roots
//!      nodes x 39 bytes: u32 dependencies, u8 kind (1 send, 2 receive, 3 work), u32 peer, u64 amount,
//!          u32 tag, u8 processor, u8 port, u32 dependents, u32 first, u32 followers, u32 first
//!      u32 x edges: for each node its dependents, then its followers
//! ```
//!
//! Work is in nanoseconds. Dependents wait for the end of a node, followers for its begin. The port of a
//! message is not used here.

use std::io::{Cursor, Read, Seek, SeekFrom};

use super::error::{Place, TraceError};
use super::goal_text::{ANY, wildcard};
use super::program::{Call, NONE, Node, NodeKind, Program, ProgramBuilder};
use opticoll_base::interrupt;

pub(super) const MAGIC: u64 = 4223;
/// The magic number of a file that a run overwrote.
const SPENT: u64 = 2342;
pub(super) const NODE_BYTES: usize = 39;

/// Reads binary GOAL.
///
/// # Errors
/// The first place at which the bytes are no GOAL, with what was expected; a message that is not matched;
/// a wildcard.
pub fn read(bytes: &[u8]) -> Result<Program, TraceError> {
    read_from(&mut Cursor::new(bytes))
}

/// Reads binary GOAL rank by rank, and holds no more of the source than one rank's part.
///
/// # Errors
/// As [`read`]; a source that cannot be read.
pub fn read_from(source: &mut (impl Read + Seek)) -> Result<Program, TraceError> {
    let mut source = BinaryReader::new(source)?;
    let head = source.part(0, 14)?;
    let head = Input::new(&head, 0);
    match head.u64(0)? {
        MAGIC => {}
        SPENT => {
            return Err(refuse(
                0,
                "the file was overwritten by a run that saved memory; convert it anew",
            ));
        }
        _ => return Err(refuse(0, "no binary GOAL: it begins with 4223")),
    }
    let ranks = head.u32(8)?;
    if ranks == 0 {
        return Err(refuse(8, "GOAL has at least one rank"));
    }
    let table = source.part(14, 16 * ranks as usize)?;
    let table = Input::new(&table, 14);
    let mut builder = ProgramBuilder::new();
    let mut total = 0;
    for rank in 0..ranks as usize {
        let begin = table.offset(14 + 16 * rank)?;
        let count = source.part(begin, 4)?;
        total += Input::new(&count, begin).u32(begin)? as usize;
    }
    // Each node takes 39 bytes: a wrong number cannot ask for more memory than the file is long.
    builder.reserve(total.min(source.length / NODE_BYTES), 0);
    for rank in 0..ranks {
        builder.begin_rank();
        let at = 14 + 16 * rank as usize;
        let (begin, end) = (table.offset(at)?, table.offset(at + 8)?);
        let Some(length) = end.checked_sub(begin) else {
            return Err(refuse(at + 8, format!("rank {rank} ends before it begins")));
        };
        let part = source.part(begin, length)?;
        read_rank(Input::new(&part, begin), rank, begin, &mut builder)?;
    }
    builder.finish()
}

fn read_rank(
    input: Input<'_>,
    rank: u32,
    begin: usize,
    builder: &mut ProgramBuilder,
) -> Result<(), TraceError> {
    let (count, roots) = (input.u32(begin)?, input.u32(begin + 4)?);
    input.slice(begin + 8, roots as usize, 4)?;
    let nodes_at = begin + 8 + 4 * roots as usize;
    let nodes = input.slice(nodes_at, count as usize, NODE_BYTES)?;
    let edges_at = nodes_at + nodes.len();
    let edges = Edges::read(input, nodes_at, edges_at, count)?;
    let first = builder.next();
    for index in 0..count {
        interrupt::check();
        let at = nodes_at + NODE_BYTES * index as usize;
        let place = Place {
            rank,
            event: index,
            line: 0,
        };
        builder.push(node(input, at, place)?)?;
        let waits = edges.of(index);
        if waits.len() != input.u32(at)? as usize {
            let problem = format!(
                "{} edges lead to a node of {} dependencies",
                waits.len(),
                input.u32(at)?
            );
            return Err(refuse(at, problem));
        }
        for &(earlier, follows) in waits {
            match follows {
                false => builder.require(first + earlier),
                true => builder.follow(first + earlier),
            }
        }
    }
    Ok(())
}

fn node(input: Input<'_>, at: usize, place: Place) -> Result<Node, TraceError> {
    let (kind, call) = match input.u8(at + 4)? {
        1 => (NodeKind::Send, Call::Send),
        2 => (NodeKind::Receive, Call::Receive),
        3 => (NodeKind::Compute, Call::Local),
        other => {
            return Err(refuse(
                at + 4,
                format!("a node is of kind 1, 2 or 3, not {other}"),
            ));
        }
    };
    let (peer, amount, tag) = (input.u32(at + 5)?, input.u64(at + 9)?, input.u32(at + 17)?);
    let node = Node {
        peer,
        tag,
        event: place.event,
        call,
        processor: input.u8(at + 21)?,
        ..Node::work(kind, amount)
    };
    if kind == NodeKind::Compute {
        let picoseconds = amount.checked_mul(1000);
        let amount =
            picoseconds.ok_or_else(|| refuse(at + 9, "work leaves 64 bits of picoseconds"))?;
        return Ok(Node {
            amount,
            peer: NONE,
            ..node
        });
    }
    if peer == ANY || tag == ANY {
        return Err(wildcard(place));
    }
    Ok(node)
}

/// The edges of a rank by the node that waits.
struct Edges {
    starts: Vec<u32>,
    awaited: Vec<(u32, bool)>,
}

impl Edges {
    fn read(
        input: Input<'_>,
        nodes_at: usize,
        edges_at: usize,
        count: u32,
    ) -> Result<Edges, TraceError> {
        let mut starts = vec![0u32; count as usize + 1];
        for_each_edge(input, nodes_at, edges_at, count, |_, _, to| {
            starts[to as usize + 1] += 1
        })?;
        for index in 0..count as usize {
            interrupt::check();
            starts[index + 1] += starts[index];
        }
        let mut awaited = vec![(0, false); starts[count as usize] as usize];
        let mut next = starts.clone();
        for_each_edge(input, nodes_at, edges_at, count, |from, follows, to| {
            let slot = &mut next[to as usize];
            awaited[*slot as usize] = (from, follows);
            *slot += 1;
        })?;
        Ok(Edges { starts, awaited })
    }

    fn of(&self, node: u32) -> &[(u32, bool)] {
        let node = node as usize;
        &self.awaited[self.starts[node] as usize..self.starts[node + 1] as usize]
    }
}

fn for_each_edge(
    input: Input<'_>,
    nodes_at: usize,
    edges_at: usize,
    count: u32,
    mut each: impl FnMut(u32, bool, u32),
) -> Result<(), TraceError> {
    // Lists that overlap would let a short file name any number of edges.
    let room = (input.end() - edges_at) / 4;
    let mut total = 0usize;
    for from in 0..count {
        interrupt::check();
        let at = nodes_at + NODE_BYTES * from as usize;
        for (field, follows) in [(at + 23, false), (at + 31, true)] {
            let (edges, first) = (input.u32(field)? as usize, input.u32(field + 4)? as usize);
            total += edges;
            if total > room {
                return Err(refuse(field, "more edges than the file has"));
            }
            input.slice(edges_at + 4 * first, edges, 4)?;
            for edge in first..first + edges {
                let to = input.u32(edges_at + 4 * edge)?;
                if to >= count || to == from {
                    return Err(refuse(
                        edges_at + 4 * edge,
                        format!("an edge from node {from} to {to} of {count}"),
                    ));
                }
                each(from, follows, to);
            }
        }
    }
    Ok(())
}

/// What is read part by part.
struct BinaryReader<'a, S> {
    from: &'a mut S,
    length: usize,
}

impl<'a, S: Read + Seek> BinaryReader<'a, S> {
    fn new(from: &'a mut S) -> Result<BinaryReader<'a, S>, TraceError> {
        let length = from
            .seek(SeekFrom::End(0))
            .map_err(|error| unread(0, &error))?;
        let length = usize::try_from(length);
        let length = length.map_err(|_| refuse(0, "the file is longer than memory can be"))?;
        Ok(BinaryReader { from, length })
    }

    fn part(&mut self, at: usize, length: usize) -> Result<Vec<u8>, TraceError> {
        // Before memory is asked for.
        if at.checked_add(length).is_none_or(|end| end > self.length) {
            return Err(ends(at, "file", self.length));
        }
        let mut part = vec![0; length];
        let found = self.from.seek(SeekFrom::Start(at as u64));
        let found = found.and_then(|_| self.from.read_exact(&mut part));
        found.map_err(|error| unread(at, &error))?;
        Ok(part)
    }
}

/// Bytes of a part that are read by their offset in the file, never beyond the part's end.
#[derive(Clone, Copy)]
struct Input<'a> {
    bytes: &'a [u8],
    /// The offset of the first.
    begin: usize,
}

impl<'a> Input<'a> {
    const fn new(bytes: &'a [u8], begin: usize) -> Input<'a> {
        Input { bytes, begin }
    }

    const fn end(self) -> usize {
        self.begin + self.bytes.len()
    }

    fn slice(self, at: usize, count: usize, size: usize) -> Result<&'a [u8], TraceError> {
        let own = at.checked_sub(self.begin);
        let end = count
            .checked_mul(size)
            .zip(own)
            .and_then(|(length, own)| own.checked_add(length));
        let found = own.zip(end).and_then(|(own, end)| self.bytes.get(own..end));
        found.ok_or_else(|| ends(at, "part of the rank", self.end()))
    }

    fn u8(self, at: usize) -> Result<u8, TraceError> {
        Ok(self.slice(at, 1, 1)?[0])
    }

    fn u32(self, at: usize) -> Result<u32, TraceError> {
        let bytes = self.slice(at, 1, 4)?;
        Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
    }

    fn u64(self, at: usize) -> Result<u64, TraceError> {
        let bytes = self.slice(at, 1, 8)?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }

    /// An offset that counts from byte 8.
    fn offset(self, at: usize) -> Result<usize, TraceError> {
        let offset = self
            .u64(at)?
            .checked_add(8)
            .and_then(|offset| usize::try_from(offset).ok());
        offset.ok_or_else(|| refuse(at, "an offset beyond every file"))
    }
}

fn ends(at: usize, what: &str, end: usize) -> TraceError {
    refuse(at, format!("the {what} ends at byte {end}"))
}

fn unread(offset: usize, error: &std::io::Error) -> TraceError {
    refuse(offset, format!("it cannot be read: {error}"))
}

fn refuse(offset: usize, problem: impl Into<String>) -> TraceError {
    TraceError::Binary {
        offset,
        problem: problem.into(),
    }
}
