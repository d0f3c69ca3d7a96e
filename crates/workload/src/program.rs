//! What each rank does, in the one form that is replayed: nodes with dependencies.
//!
//! A node is local work, a send, or a receive. It begins when every node that it *requires* has ended
//! and every node that it *follows* has begun; dependencies are within a rank, ranks are coupled by
//! messages. The k-th send of a (source, destination, tag) in the order of nodes belongs to the k-th
//! receive of the same three, which is MPI's order for one communicator. A node is 32 bytes, a
//! dependency 4.

use rustc_hash::FxHashMap;

use super::error::{Place, TraceError};
use opticoll_plan::plan::NamedRoutes;
use opticoll_simulate::live::PlannedCollective;
use opticoll_simulate::table::{Cell, Value, Values};

/// No partner, no event, no line.
pub const NONE: u32 = u32::MAX;

/// What a node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum NodeKind {
    /// Local work; `amount` is picoseconds.
    Compute,
    /// The begin of a call of a program in order: local work before the call, as [`NodeKind::Compute`].
    Enter,
    /// Setting up or releasing lightpaths; `amount` is picoseconds, `tag` 1 if any are set up.
    SetUp,
    /// A rank's part in a planned collective; `amount` is its index in the program.
    Collective,
    /// A message to `peer`; `amount` is bytes.
    Send,
    /// A message from `peer`; `amount` is the room for it in bytes.
    Receive,
}

opticoll_base::named_enum! {
    /// The call that a node belongs to.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Call {
        /// Local work, and what communicates with nobody: init, finalize, making a communicator.
        Local = "local",
        /// A blocking send.
        Send = "send",
        /// A send that returns at once.
        ImmediateSend = "isend",
        /// A blocking receive.
        Receive = "recv",
        /// A receive that returns at once.
        ImmediateReceive = "irecv",
        /// Waiting for requests.
        Wait = "wait",
        /// A barrier.
        Barrier = "barrier",
        /// A broadcast.
        Broadcast = "broadcast",
        /// A reduction to a root.
        Reduce = "reduce",
        /// A reduction to all.
        AllReduce = "all_reduce",
        /// A gather to a root.
        Gather = "gather",
        /// A scatter from a root.
        Scatter = "scatter",
        /// A gather to all.
        AllGather = "all_gather",
        /// A reduction of which each rank keeps its block.
        ReduceScatter = "reduce_scatter",
        /// A total exchange of equal blocks.
        AllToAll = "all_to_all",
        /// A total exchange of blocks of various sizes.
        AllToAllVarious = "all_to_all_v",
    }
}

impl Cell for Call {
    fn value(&self) -> Value<'_> {
        Value::Whole(*self as u128)
    }

    fn column(cells: &[Call]) -> Values<'_> {
        Values::Whole(Box::new(|row| cells[row] as u64))
    }
}

/// One thing that a rank does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Picoseconds of local work, or bytes of a message.
    pub amount: u64,
    /// The other rank of a message; [`NONE`] for local work.
    pub peer: u32,
    /// The tag of a message.
    pub tag: u32,
    /// The node at the other end of a message, known once messages are matched.
    pub partner: u32,
    /// The event of the trace, counted from 0 within its rank.
    pub event: u32,
    /// The line of the trace's file, from 1; 0 where the file has no lines.
    pub line: u32,
    /// What it does.
    pub kind: NodeKind,
    /// What it belongs to.
    pub call: Call,
    /// The processor of the rank that does it; the work of one processor is done one after another.
    pub processor: u8,
    /// Whether a message leaves only when its receive has begun, whatever the eager limit.
    pub is_rendezvous: bool,
}

impl Node {
    /// Local work of a kind, with nothing said of where it stands.
    pub(super) const fn work(kind: NodeKind, ps: u64) -> Node {
        Node {
            amount: ps,
            peer: NONE,
            tag: 0,
            partner: NONE,
            event: 0,
            line: 0,
            kind,
            call: Call::Local,
            processor: 0,
            is_rendezvous: false,
        }
    }
}

/// A dependent with this bit follows the begin of its node; without it, the end.
pub(super) const FOLLOWS: u32 = 1 << 31;

/// The most nodes that a program may have.
pub const MOST_NODES: usize = FOLLOWS as usize - 1;

/// A collective that is carried out by its plan, when all its members have come to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MeetingOfRanks {
    /// What the network carries out.
    pub(super) planned: PlannedCollective,
    /// Messages of the plan.
    pub(super) messages: u64,
    /// The node of each member, and the bytes that it sends.
    pub(super) members: Vec<(u32, u64)>,
}

/// Nodes of all ranks with their dependencies, messages matched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// Index of each rank's first node, and the number of nodes.
    pub(super) rank_starts: Vec<u32>,
    pub(super) nodes: Vec<Node>,
    /// How many dependencies each node has.
    pub(super) waits: Vec<u32>,
    /// Index of each node's first dependent, and the number of dependents.
    pub(super) dependent_starts: Vec<u32>,
    /// Nodes that depend, with [`FOLLOWS`] where on the begin.
    pub(super) dependents: Vec<u32>,
    /// Collectives that are carried out by their plans.
    pub(super) meetings: Vec<MeetingOfRanks>,
    /// By node, the route that a plan names for its message.
    pub(super) routes: NamedRoutes,
}

impl Program {
    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        (self.rank_starts.len() - 1) as u32
    }

    /// The nodes of a rank, in the order of the trace.
    pub fn rank_nodes(&self, rank: u32) -> &[Node] {
        let rank = rank as usize;
        &self.nodes[self.rank_starts[rank] as usize..self.rank_starts[rank + 1] as usize]
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of dependencies.
    pub fn dependencies(&self) -> usize {
        self.dependents.len()
    }

    /// The number of messages and their bytes.
    pub fn messages(&self) -> (u64, u128) {
        let sends = self.nodes.iter().filter(|node| node.kind == NodeKind::Send);
        sends.fold((0, 0), |(count, bytes), node| {
            (count + 1, bytes + u128::from(node.amount))
        })
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        let words = self.rank_starts.capacity()
            + self.waits.capacity()
            + self.dependent_starts.capacity()
            + self.dependents.capacity();
        self.nodes.capacity() * size_of::<Node>() + words * size_of::<u32>()
    }

    /// The rank of a node.
    pub(super) fn rank_of(&self, node: u32) -> u32 {
        (self.rank_starts.partition_point(|&start| start <= node) - 1) as u32
    }

    /// Where in its trace a node stands.
    pub(super) fn place(&self, node: u32) -> Place {
        let Node { event, line, .. } = self.nodes[node as usize];
        Place {
            rank: self.rank_of(node),
            event,
            line,
        }
    }
}

/// Makes a [`Program`] rank by rank.
#[derive(Debug, Default)]
pub struct ProgramBuilder {
    rank_starts: Vec<u32>,
    nodes: Vec<Node>,
    /// Per dependency, in the order of dependents: what it waits for, with [`FOLLOWS`].
    awaited: Vec<u32>,
    waits: Vec<u32>,
    meetings: Vec<MeetingOfRanks>,
    routes: NamedRoutes,
}

impl ProgramBuilder {
    /// A program without ranks.
    pub fn new() -> ProgramBuilder {
        ProgramBuilder::default()
    }

    /// Opens the next rank; nodes pushed from here on are its own.
    pub fn begin_rank(&mut self) {
        self.rank_starts.push(self.nodes.len() as u32);
    }

    /// A node that was pushed.
    pub(super) fn node(&self, index: u32) -> &Node {
        &self.nodes[index as usize]
    }

    /// The index that the next node gets.
    pub fn next(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Adds a node; returns its index, or an error where there are too many.
    pub fn push(&mut self, node: Node) -> Result<u32, TraceError> {
        if self.nodes.len() >= MOST_NODES {
            return Err(TraceError::TooLarge { most: MOST_NODES });
        }
        self.nodes.push(node);
        self.waits.push(0);
        Ok(self.nodes.len() as u32 - 1)
    }

    /// The node pushed last begins after `earlier` has ended.
    pub fn require(&mut self, earlier: u32) {
        self.awaited.push(earlier);
        *self.waits.last_mut().expect("a node was pushed") += 1;
    }

    /// The node pushed last begins after `earlier` has begun.
    pub fn follow(&mut self, earlier: u32) {
        self.require(earlier | FOLLOWS);
    }

    /// Adds a collective that its members' nodes name by the index that it gets.
    pub(super) fn meeting(&mut self, planned: PlannedCollective, messages: u64) -> u64 {
        self.meetings.push(MeetingOfRanks {
            planned,
            messages,
            members: Vec::new(),
        });
        self.meetings.len() as u64 - 1
    }

    /// The node pushed last is a member of a collective, in which it sends so many bytes.
    pub(super) fn join(&mut self, meeting: u64, bytes: u64) {
        let node = self.nodes.len() as u32 - 1;
        self.meetings[meeting as usize].members.push((node, bytes));
    }

    /// The message of the node pushed last takes these links.
    pub(super) fn take_route(&mut self, links: &[u32]) {
        self.routes.assign(self.nodes.len() - 1, links);
    }

    /// Matches the messages and turns dependencies around.
    ///
    /// # Errors
    /// A message from or to a rank that does not exist, a send without a receive, a receive
    /// without a send, or a receive with less room than is sent.
    pub fn finish(mut self) -> Result<Program, TraceError> {
        self.rank_starts.push(self.nodes.len() as u32);
        self.rank_starts.shrink_to_fit();
        let (dependent_starts, dependents) = turn_around(&self.waits, &self.awaited);
        let mut program = Program {
            rank_starts: self.rank_starts,
            nodes: self.nodes,
            waits: self.waits,
            dependent_starts,
            dependents,
            meetings: self.meetings,
            routes: self.routes,
        };
        match_messages(&mut program)?;
        Ok(program)
    }
}

/// From what each node waits for to what waits for each node, in order of nodes.
fn turn_around(waits: &[u32], awaited: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0u32; waits.len() + 1];
    for &earlier in awaited {
        starts[(earlier & !FOLLOWS) as usize] += 1;
    }
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    // Filled from behind, so that each list ends up in the order of its nodes.
    let mut dependents = vec![0u32; awaited.len()];
    let mut index = awaited.len();
    for (node, &count) in waits.iter().enumerate().rev() {
        for _ in 0..count {
            index -= 1;
            let start = &mut starts[(awaited[index] & !FOLLOWS) as usize];
            *start -= 1;
            dependents[*start as usize] = node as u32 | awaited[index] & FOLLOWS;
        }
    }
    (starts, dependents)
}

/// The messages of one (tag) between two ranks that wait for their other end.
#[derive(Default)]
struct MessageQueue {
    /// First and last of a list that is chained through `partner`.
    first: u32,
    last: u32,
}

fn match_messages(program: &mut Program) -> Result<(), TraceError> {
    let ranks = program.ranks();
    // Sends of a channel form a chain through `partner`, taken off by receives in order.
    let mut channels: FxHashMap<(u64, u32), MessageQueue> = FxHashMap::default();
    for source in 0..ranks {
        for index in program.rank_starts[source as usize]..program.rank_starts[source as usize + 1]
        {
            let Node {
                kind, peer, tag, ..
            } = program.nodes[index as usize];
            if !matches!(kind, NodeKind::Send | NodeKind::Receive) {
                continue;
            }
            if peer >= ranks {
                let place = program.place(index);
                let last = ranks - 1;
                let problem = format!("there is no rank {peer}; ranks are 0 to {last}");
                return Err(TraceError::at(place, problem));
            }
            program.nodes[index as usize].partner = NONE;
            if kind == NodeKind::Receive {
                continue;
            }
            let channel = channels
                .entry((pair(source, peer), tag))
                .or_insert(MessageQueue {
                    first: index,
                    last: NONE,
                });
            match channel.last {
                NONE if channel.first == NONE => channel.first = index,
                NONE => {}
                last => program.nodes[last as usize].partner = index,
            }
            channel.last = index;
        }
    }
    let mut matched = 0usize;
    for destination in 0..ranks {
        let range = program.rank_starts[destination as usize]
            ..program.rank_starts[destination as usize + 1];
        for index in range {
            let receive = program.nodes[index as usize];
            if receive.kind != NodeKind::Receive {
                continue;
            }
            let channel = channels.get_mut(&(pair(receive.peer, destination), receive.tag));
            let Some(channel) = channel.filter(|channel| channel.first != NONE) else {
                let Node { peer, tag, .. } = receive;
                let problem =
                    format!("rank {peer} sends nothing that this receive takes (tag {tag})");
                return Err(TraceError::at(program.place(index), problem));
            };
            let send = channel.first;
            channel.first = program.nodes[send as usize].partner;
            program.nodes[send as usize].partner = index;
            program.nodes[index as usize].partner = send;
            matched += 1;
            let sent = program.nodes[send as usize].amount;
            if receive.amount < sent {
                let (room, sender) = (receive.amount, program.place(send));
                let problem = format!("receives at most {room} bytes, but {sender} sends {sent}");
                return Err(TraceError::at(program.place(index), problem));
            }
        }
    }
    unmatched_send(program, matched)
}

/// The first send that no receive took: its partner is no receive that points back.
fn unmatched_send(program: &Program, matched: usize) -> Result<(), TraceError> {
    let sends = |node: &Node| node.kind == NodeKind::Send;
    if program.nodes.iter().filter(|node| sends(node)).count() == matched {
        return Ok(());
    }
    let alone = (0..program.nodes.len() as u32).find(|&index| {
        let node = &program.nodes[index as usize];
        let back = program.nodes.get(node.partner as usize);
        sends(node)
            && back.is_none_or(|other| other.kind != NodeKind::Receive || other.partner != index)
    });
    let index = alone.expect("fewer receives than sends");
    let Node { peer, tag, .. } = program.nodes[index as usize];
    let problem = format!("no receive of rank {peer} takes this send (tag {tag})");
    Err(TraceError::at(program.place(index), problem))
}

fn pair(source: u32, destination: u32) -> u64 {
    u64::from(source) << 32 | u64::from(destination)
}
