//! Programs that are replayed: the nodes of each rank, with dependencies.
//!
//! A node is local work, a setup of lightpaths, a send, a receive, or a rank's part in a planned
//! collective. A node starts when every node that it *requires* has ended and every node that it
//! *follows* has started. Dependencies connect nodes of one rank; messages connect ranks. Among the
//! sends with the same source, destination and tag, the k-th send matches the k-th receive with
//! these three values, as MPI does within a communicator. A node takes 32 bytes, a dependency 4
//! bytes.

use rustc_hash::FxHashMap;

use super::error::{Place, TraceError};
use opticoll_plan::plan::NamedRoutes;
use opticoll_simulate::live::PlannedCollective;
use opticoll_simulate::table::{Cell, Value, Values};

/// Value that stands for an absent partner, event or line.
pub const NONE: u32 = u32::MAX;

/// Kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum NodeKind {
    /// Local work of `amount` picoseconds.
    Compute,
    /// Start of a call in a sequential program, after local work of `amount` picoseconds.
    Enter,
    /// Setup or teardown of lightpaths in `amount` picoseconds; `tag` is 1 for a setup.
    Setup,
    /// Part of one rank in the planned collective with index `amount`.
    Collective,
    /// Message to `peer` of `amount` bytes.
    Send,
    /// Message from `peer` of at most `amount` bytes.
    Receive,
}

opticoll_base::named_enum! {
    /// Kind of the call to which a node belongs.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Call {
        /// Local work, and calls without communication: init, finalize, creation of a communicator.
        Local = "local",
        /// Blocking send.
        Send = "send",
        /// Non-blocking send.
        ImmediateSend = "isend",
        /// Blocking receive.
        Receive = "recv",
        /// Non-blocking receive.
        ImmediateReceive = "irecv",
        /// Wait for requests.
        Wait = "wait",
        /// Barrier.
        Barrier = "barrier",
        /// Broadcast.
        Broadcast = "broadcast",
        /// Reduction to a root.
        Reduce = "reduce",
        /// Reduction to all ranks.
        AllReduce = "all_reduce",
        /// Gather to a root.
        Gather = "gather",
        /// Scatter from a root.
        Scatter = "scatter",
        /// Gather to all ranks.
        AllGather = "all_gather",
        /// Reduction after which each rank has its block of the result.
        ReduceScatter = "reduce_scatter",
        /// Total exchange of equal blocks.
        AllToAll = "all_to_all",
        /// Total exchange of blocks of different sizes.
        AllToAllVarious = "all_to_all_v",
        /// Gather to a root of blocks of different sizes.
        GatherVarious = "gather_v",
        /// Scatter from a root of blocks of different sizes.
        ScatterVarious = "scatter_v",
        /// Gather to all ranks of blocks of different sizes.
        AllGatherVarious = "all_gather_v",
        /// Reduction after which each rank has its block, of its own size, of the result.
        ReduceScatterVarious = "reduce_scatter_v",
    }
}

impl Call {
    /// Returns whether each member states the bytes of its own block, and these may differ.
    pub(super) fn has_own_blocks(self) -> bool {
        matches!(
            self,
            Call::GatherVarious
                | Call::ScatterVarious
                | Call::AllGatherVarious
                | Call::ReduceScatterVarious
        )
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

/// Operation of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Picoseconds of local work, bytes of a message, or index of a collective.
    pub amount: u64,
    /// Rank at the other end of a message; [`NONE`] for local work.
    pub peer: u32,
    /// Tag of a message.
    pub tag: u32,
    /// Index of the node at the other end of a message, after messages have been matched.
    pub partner: u32,
    /// Index of the event in the rank's list of events, from 0.
    pub event: u32,
    /// Number of the line in the trace file, from 1; 0 if the file has no lines.
    pub line: u32,
    /// Kind of the node.
    pub kind: NodeKind,
    /// Kind of the call to which the node belongs.
    pub call: Call,
    /// Index of the rank's processor that executes the node. A processor executes one node at a
    /// time.
    pub processor: u8,
    /// True if a message leaves only after its receive has started, regardless of the eager limit.
    pub is_rendezvous: bool,
}

impl Node {
    /// Creates a node without a partner and without a position in the trace.
    pub(super) const fn work(kind: NodeKind, amount: u64) -> Node {
        Node {
            amount,
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

/// Bit that marks a dependency on the start, not the end, of a node.
pub(super) const FOLLOWS: u32 = 1 << 31;

/// Maximum number of nodes of a program, because the highest bit of a 32-bit index is reserved.
pub const MAX_NODES: usize = FOLLOWS as usize - 1;

/// Planned collective, which starts when all its members have entered it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JointCollective {
    /// Time of the collective and the part of the fabric that it occupies.
    pub(super) planned: PlannedCollective,
    /// Number of messages of the plan.
    pub(super) messages: u64,
    /// Index of the node of each member, and the number of bytes that the member sends.
    pub(super) members: Vec<(u32, u64)>,
}

/// Nodes of all ranks, with dependencies and matched messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// Index of the first node of each rank, indexed by rank, followed by the number of nodes.
    pub(super) rank_starts: Vec<u32>,
    pub(super) nodes: Vec<Node>,
    /// Number of dependencies of each node, indexed by node.
    pub(super) waits: Vec<u32>,
    /// Index in `dependents` at which the list of each node starts, indexed by node, followed by
    /// the number of dependents.
    pub(super) dependent_starts: Vec<u32>,
    /// Lists of the nodes that wait for each node. A waiting node is marked by [`FOLLOWS`] if it
    /// waits only for the start.
    pub(super) dependents: Vec<u32>,
    /// Planned collectives.
    pub(super) joint_collectives: Vec<JointCollective>,
    /// Route of the message of each node, indexed by node, if the plan names a route.
    pub(super) routes: NamedRoutes,
    /// Network interface of the message of each node, indexed by node. Nodes beyond the end have
    /// interface 0.
    pub(super) interfaces: Vec<u8>,
}

impl Program {
    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        (self.rank_starts.len() - 1) as u32
    }

    /// Returns the nodes of a rank, in the order of the trace.
    pub fn rank_nodes(&self, rank: u32) -> &[Node] {
        let rank = rank as usize;
        &self.nodes[self.rank_starts[rank] as usize..self.rank_starts[rank + 1] as usize]
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether the program has no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the total number of dependencies.
    pub fn dependencies(&self) -> usize {
        self.dependents.len()
    }

    /// Returns the number of messages and their total bytes.
    pub fn messages(&self) -> (u64, u128) {
        let sends = self.nodes.iter().filter(|node| node.kind == NodeKind::Send);
        sends.fold((0, 0), |(count, bytes), node| {
            (count + 1, bytes + u128::from(node.amount))
        })
    }

    /// Returns the number of bytes of memory that this value occupies.
    pub fn memory(&self) -> usize {
        let words = self.rank_starts.capacity()
            + self.waits.capacity()
            + self.dependent_starts.capacity()
            + self.dependents.capacity();
        let bytes = self.nodes.capacity() * size_of::<Node>() + self.interfaces.capacity();
        bytes + words * size_of::<u32>()
    }

    /// Returns the network interface of the message of `node`.
    pub(super) fn interface(&self, node: u32) -> u8 {
        self.interfaces.get(node as usize).copied().unwrap_or(0)
    }

    /// Returns the rank to which `node` belongs.
    pub(super) fn rank_of(&self, node: u32) -> u32 {
        (self.rank_starts.partition_point(|&start| start <= node) - 1) as u32
    }

    /// Returns the position of `node` in the trace.
    pub(super) fn place(&self, node: u32) -> Place {
        let Node { event, line, .. } = self.nodes[node as usize];
        Place {
            rank: self.rank_of(node),
            event,
            line,
        }
    }
}

/// Builder of a [`Program`], rank by rank.
#[derive(Debug, Default)]
pub struct ProgramBuilder {
    rank_starts: Vec<u32>,
    nodes: Vec<Node>,
    /// Node for which a later node waits, indexed by dependency. The node is marked by [`FOLLOWS`]
    /// if the later node waits only for the start.
    awaited: Vec<u32>,
    waits: Vec<u32>,
    joint_collectives: Vec<JointCollective>,
    routes: NamedRoutes,
    interfaces: Vec<u8>,
}

impl ProgramBuilder {
    /// Creates a builder of a program without ranks.
    pub fn new() -> ProgramBuilder {
        ProgramBuilder::default()
    }

    /// Starts the next rank, to which the following nodes belong.
    pub fn begin_rank(&mut self) {
        self.rank_starts.push(self.nodes.len() as u32);
    }

    /// Returns the node with this index.
    pub(super) fn node(&self, index: u32) -> &Node {
        &self.nodes[index as usize]
    }

    /// Returns the index that the next node will have.
    pub fn next(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Adds a node and returns its index. Fails if the program has too many nodes.
    pub fn push(&mut self, node: Node) -> Result<u32, TraceError> {
        if self.nodes.len() >= MAX_NODES {
            return Err(TraceError::TooLarge {
                max_nodes: MAX_NODES,
            });
        }
        self.nodes.push(node);
        self.waits.push(0);
        Ok(self.nodes.len() as u32 - 1)
    }

    /// Makes the last node wait until the node `earlier` has ended.
    pub fn require(&mut self, earlier: u32) {
        self.awaited.push(earlier);
        *self.waits.last_mut().expect("a node was pushed") += 1;
    }

    /// Makes the last node wait until the node `earlier` has started.
    pub fn follow(&mut self, earlier: u32) {
        self.require(earlier | FOLLOWS);
    }

    /// Adds a planned collective with `messages` messages and returns its index.
    pub(super) fn add_collective(&mut self, planned: PlannedCollective, messages: u64) -> u64 {
        self.joint_collectives.push(JointCollective {
            planned,
            messages,
            members: Vec::new(),
        });
        self.joint_collectives.len() as u64 - 1
    }

    /// Makes the last node a member of a planned collective. The member sends `bytes` bytes.
    pub(super) fn join(&mut self, collective: u64, bytes: u64) {
        let node = self.nodes.len() as u32 - 1;
        self.joint_collectives[collective as usize]
            .members
            .push((node, bytes));
    }

    /// Sets the links of the route of the last node's message.
    pub(super) fn take_route(&mut self, links: &[u32]) {
        self.routes.assign(self.nodes.len() - 1, links);
    }

    /// Sets the network interface of the last node's message.
    pub(super) fn take_interface(&mut self, interface: u8) {
        if interface > 0 {
            self.interfaces.resize(self.nodes.len(), 0);
            self.interfaces[self.nodes.len() - 1] = interface;
        }
    }

    /// Builds the program: matches messages and lists the nodes that wait for each node.
    ///
    /// # Errors
    /// Fails for a message from or to a rank that does not exist, and for a send or receive without
    /// a match. Also fails if a message is larger than the capacity of its receive.
    pub fn finish(mut self) -> Result<Program, TraceError> {
        self.rank_starts.push(self.nodes.len() as u32);
        self.rank_starts.shrink_to_fit();
        let (dependent_starts, dependents) = invert(&self.waits, &self.awaited);
        let mut program = Program {
            rank_starts: self.rank_starts,
            nodes: self.nodes,
            waits: self.waits,
            dependent_starts,
            dependents,
            joint_collectives: self.joint_collectives,
            routes: self.routes,
            interfaces: self.interfaces,
        };
        match_messages(&mut program)?;
        Ok(program)
    }
}

/// Inverts the dependencies. `waits` contains the number of dependencies of each node. `awaited`
/// contains, node by node, the earlier nodes for which the node waits. Returns
/// [`Program::dependent_starts`] and [`Program::dependents`].
fn invert(waits: &[u32], awaited: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0u32; waits.len() + 1];
    for &earlier in awaited {
        starts[(earlier & !FOLLOWS) as usize] += 1;
    }
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    // Filling from the end keeps each list in the order of nodes.
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

/// Unmatched sends with one tag from one rank to another.
#[derive(Default)]
struct MessageQueue {
    /// First and last node of the list. The field `partner` of a node is the next node of the list.
    first: u32,
    last: u32,
}

/// Sets the field `partner` of each send and receive to its match. Checks ranks and sizes.
fn match_messages(program: &mut Program) -> Result<(), TraceError> {
    let ranks = program.ranks();
    // The sends of a channel are a list, linked through `partner`; a receive removes the first.
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
                    format!("rank {peer} sends no message that matches this receive (tag {tag})");
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

/// Checks that every send has a receive. The error names the first send without a receive;
/// `matched` is the number of receives that have a send.
fn unmatched_send(program: &Program, matched: usize) -> Result<(), TraceError> {
    let sends = |node: &Node| node.kind == NodeKind::Send;
    if program.nodes.iter().filter(|node| sends(node)).count() == matched {
        return Ok(());
    }
    let unmatched = (0..program.nodes.len() as u32).find(|&index| {
        let node = &program.nodes[index as usize];
        let back = program.nodes.get(node.partner as usize);
        sends(node)
            && back.is_none_or(|other| other.kind != NodeKind::Receive || other.partner != index)
    });
    let index = unmatched.expect("fewer receives than sends");
    let Node { peer, tag, .. } = program.nodes[index as usize];
    let problem = format!("no receive of rank {peer} matches this send (tag {tag})");
    Err(TraceError::at(program.place(index), problem))
}

fn pair(source: u32, destination: u32) -> u64 {
    u64::from(source) << 32 | u64::from(destination)
}
