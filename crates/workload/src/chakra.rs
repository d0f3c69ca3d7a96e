//! Reader of Chakra execution traces: the computations and communications of each rank, with their
//! dependencies.
//!
//! | node of the Chakra trace | event of a rank |
//! |---|---|
//! | COMP | local work of the CPU or, if `is_cpu_op` is 0 or absent, of the device |
//! | MEM_LOAD, MEM_STORE | local work of a separate processor |
//! | COMM_COLL with `comm_type` | a collective of the group `pg_name`, of `comm_size` bytes |
//! | COMM_COLL on the CPU without `comm_type` | local work: the launch of a collective |
//! | COMM_SEND, COMM_RECV | a message of `comm_size` bytes with `comm_tag` |
//! | METADATA | groups of ranks, if the node defines any |
//!
//! The duration of local work is `duration_micros`, or the attribute `duration_ns`, with which
//! opticoll's readers of other formats state nanoseconds.
//!
//! A node waits for its data and control dependencies. If all dependencies together contain a
//! cycle, only the data dependencies count. Such cycles occur in captures whose control
//! dependencies are a call tree. Dependencies on missing nodes are ignored. The collectives of a
//! group run in the order of the file. A group with an empty list of ranks contains all ranks. If
//! no trace defines groups, every group name stands for all ranks.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::error::TraceError;
use super::program::{Call, NONE};
use super::trace::{Event, MAX_RANKS, Trace};
use opticoll_base::{graph, interrupt};
use opticoll_program::chakra::{ChakraError, ChakraFile, ChakraNode, NodeKind};

/// Calls of the collectives of Chakra, indexed by the value of `comm_type`.
const COLLECTIVES: [Call; 10] = [
    Call::AllReduce,
    Call::Reduce,
    Call::AllGather,
    Call::Gather,
    Call::Scatter,
    Call::Broadcast,
    Call::AllToAll,
    Call::ReduceScatter,
    Call::ReduceScatter,
    Call::Barrier,
];

/// Index of a rank's processor: device, CPU, memory, or the network for messages.
const DEVICE: u8 = 0;
const CPU: u8 = 1;
const MEMORY: u8 = 2;
const NETWORK: u8 = 3;

const PICOSECONDS_PER_MICROSECOND: u64 = 1_000_000;
const PICOSECONDS_PER_NANOSECOND: u64 = 1000;

/// Reads the traces of all ranks, indexed by rank.
///
/// # Errors
/// Fails if a trace cannot be parsed, if a node lacks a field that its type needs, or if nodes wait
/// for each other in a cycle. The error contains the rank of the trace and the offset of the
/// problem in bytes.
pub fn read(traces: &[&[u8]]) -> Result<Trace, TraceError> {
    let ranks = u32::try_from(traces.len()).unwrap_or(u32::MAX);
    if ranks == 0 || ranks > MAX_RANKS {
        return Err(TraceError::Binary {
            offset: 0,
            problem: format!(
                "there are traces of {ranks} ranks, but the limit is 1 to {MAX_RANKS} ranks"
            ),
        });
    }
    let files = traces.iter().enumerate().map(|(rank, bytes)| {
        let file = ChakraFile::read(bytes);
        file.map_err(|error| at(rank as u32, error))
    });
    let files: Vec<ChakraFile> = files.collect::<Result<_, _>>()?;
    let mut trace = Trace::new(ranks);
    let mut groups = Groups::default();
    for (rank, file) in files.iter().enumerate() {
        for node in &file.nodes {
            if node.kind == NodeKind::Metadata && node.inputs.contains("pg_name") {
                let defined = groups.define(&node.inputs, ranks);
                defined.map_err(|problem| at(rank as u32, node.error(problem)))?;
            }
        }
    }
    for (rank, file) in files.iter().enumerate() {
        let (rank, rows) = (rank as u32, &file.nodes);
        let (events, after) = rank_events(rank, rows, &groups).map_err(|error| at(rank, error))?;
        trace.ranks[rank as usize] = events;
        trace.after.push(after);
    }
    trace.communicators.extend(groups.members);
    Ok(trace)
}

fn at(rank: u32, error: ChakraError) -> TraceError {
    TraceError::Binary {
        offset: error.offset,
        problem: format!("of the trace of rank {rank}: {}", error.problem),
    }
}

/// Groups of ranks. Group 0 contains all ranks.
#[derive(Default)]
struct Groups {
    /// Index of each group, indexed by name of the group.
    numbers: FxHashMap<String, u32>,
    /// Members of each group, indexed by index of the group. Group 0 is absent.
    members: BTreeMap<u32, Vec<u32>>,
}

impl Groups {
    /// Adds the groups in `text`, which contains objects `{"pg_name": "0", "ranks": [0, 1]}`.
    /// Backslashes are ignored.
    fn define(&mut self, text: &str, ranks: u32) -> Result<(), String> {
        let unescaped = text.replace('\\', "");
        for part in unescaped.split("\"pg_name\"").skip(1) {
            let value =
                |text: &str| Some(text.trim_start().strip_prefix(':')?.trim_start().to_owned());
            let name = value(part).and_then(|text| {
                let quoted = text.strip_prefix('"')?;
                quoted.split_once('"').map(|(name, _)| name.to_owned())
            });
            let name = name.ok_or("a group has no name")?;
            let object = part.split('}').next().unwrap_or("");
            let list = object.split_once("\"ranks\"").and_then(|(_, rest)| {
                let rest = value(rest)?;
                let inside = rest.strip_prefix('[')?;
                inside.split_once(']').map(|(list, _)| list.to_owned())
            });
            let list = list.ok_or_else(|| format!("group `{name}` has no list of ranks"))?;
            let words = list
                .split(',')
                .map(str::trim)
                .filter(|word| !word.is_empty());
            let mut members = Vec::new();
            for word in words {
                let member = word.parse::<u32>().ok().filter(|member| *member < ranks);
                members.push(member.ok_or_else(|| {
                    format!(
                        "`{word}` of group `{name}` is not one of the {ranks} ranks; give the \
                         traces of all ranks"
                    )
                })?);
            }
            if members.is_empty() {
                members = (0..ranks).collect();
            }
            let next = self.numbers.len() as u32 + 1;
            let number = *self.numbers.entry(name.clone()).or_insert(next);
            let earlier = self
                .members
                .entry(number)
                .or_insert_with(|| members.clone());
            if *earlier != members {
                return Err(format!(
                    "group `{name}` has different ranks in another trace"
                ));
            }
        }
        Ok(())
    }

    /// Returns the index and the members of the group called `name`. The group of all ranks has
    /// index 0 and no list of members. If no group is defined, every name stands for the group of
    /// all ranks.
    fn named(&self, name: Option<&str>) -> Result<(u32, Option<&[u32]>), String> {
        let Some(name) = name.filter(|name| !name.is_empty() && !self.numbers.is_empty()) else {
            return Ok((0, None));
        };
        let number = self.numbers.get(name);
        let number = *number.ok_or_else(|| format!("group `{name}` is not defined"))?;
        Ok((number, self.members.get(&number).map(Vec::as_slice)))
    }
}

/// Events of a rank in topological order, and the indices of the earlier events for which each
/// event waits, indexed by event.
type Ordered = (Vec<Event>, Vec<Vec<u32>>);

/// Sorts the events of a rank topologically. Each event follows the events on which it depends, and
/// the previous collective of its group. If this order contains a cycle, control dependencies are
/// ignored.
fn rank_events(rank: u32, nodes: &[ChakraNode], groups: &Groups) -> Result<Ordered, ChakraError> {
    let mut node_indices: FxHashMap<u64, u32> = FxHashMap::default();
    for (place, node) in nodes.iter().enumerate() {
        if node_indices.insert(node.id, place as u32).is_some() {
            return Err(node.error("two nodes have this number"));
        }
    }
    let mut events = Vec::with_capacity(nodes.len());
    let mut last_of_group: FxHashMap<u32, u32> = FxHashMap::default();
    // Previous collective of the same group, indexed by node; `NONE` for the first collective.
    let mut previous = vec![NONE; nodes.len()];
    for (place, node) in nodes.iter().enumerate() {
        interrupt::check();
        let event = event(rank, node, groups)?;
        if COLLECTIVES.contains(&event.call) {
            let last = last_of_group.insert(event.communicator, place as u32);
            previous[place] = last.unwrap_or(NONE);
        }
        events.push(event);
    }
    let dependencies = |control: bool| -> Vec<Vec<u32>> {
        let lists = nodes.iter().zip(&previous).map(|(node, &previous)| {
            let control: &[u64] = if control { &node.control } else { &[] };
            let ids = node.data.iter().chain(control);
            let mut awaited: Vec<u32> =
                ids.filter_map(|id| node_indices.get(id).copied()).collect();
            awaited.extend(Some(previous).filter(|previous| *previous != NONE));
            awaited.sort_unstable();
            awaited.dedup();
            awaited
        });
        lists.collect()
    };
    let mut awaited = dependencies(true);
    let ordered = |awaited: &[Vec<u32>]| {
        graph::topological_order(awaited.len(), |node| awaited[node as usize].iter().copied())
    };
    let mut order = ordered(&awaited);
    if order.len() < nodes.len() {
        awaited = dependencies(false);
        order = ordered(&awaited);
    }
    if order.len() < nodes.len() {
        let mut sorted = vec![false; nodes.len()];
        order
            .iter()
            .for_each(|&place| sorted[place as usize] = true);
        let stuck = sorted.iter().position(|sorted| !sorted).unwrap_or(0);
        return Err(nodes[stuck].error(
            "the node is part of a cycle of dependencies (data dependencies, and collectives of a \
             group in the order of the file)",
        ));
    }
    let mut turn = vec![0u32; nodes.len()];
    for (number, &place) in order.iter().enumerate() {
        turn[place as usize] = number as u32;
    }
    let rows = order.iter().map(|&place| {
        let awaited = awaited[place as usize]
            .iter()
            .map(|&earlier| turn[earlier as usize]);
        (events[place as usize], awaited.collect())
    });
    Ok(rows.unzip())
}

fn event(rank: u32, node: &ChakraNode, groups: &Groups) -> Result<Event, ChakraError> {
    let on_cpu = node.whole("is_cpu_op")?.is_some_and(|on_cpu| on_cpu != 0);
    let work = |processor: u8| {
        let compute = match node.whole("duration_ns")? {
            None => node.duration_us.checked_mul(PICOSECONDS_PER_MICROSECOND),
            Some(duration) => u64::try_from(duration)
                .ok()
                .and_then(|duration| duration.checked_mul(PICOSECONDS_PER_NANOSECOND)),
        };
        let compute = compute.ok_or_else(|| node.error("its duration exceeds 64 bits"))?;
        Ok(Event {
            compute,
            line: node.record,
            processor,
            ..Event::NOTHING
        })
    };
    let bytes = || {
        let size = node.whole("comm_size")?;
        let size = size.ok_or_else(|| node.error("it has no comm_size"))?;
        u64::try_from(size).map_err(|_| node.error(format!("comm_size is {size}")))
    };
    let network = Event {
        line: node.record,
        processor: NETWORK,
        ..Event::NOTHING
    };
    match node.kind {
        NodeKind::Compute => work(if on_cpu { CPU } else { DEVICE }),
        NodeKind::MemoryLoad | NodeKind::MemoryStore => work(MEMORY),
        NodeKind::Collective => {
            let Some(number) = node.whole("comm_type")? else {
                return match on_cpu {
                    true => work(CPU),
                    false => Err(node.error("it is a collective without comm_type")),
                };
            };
            let index = usize::try_from(number).ok();
            let call = index.and_then(|number| COLLECTIVES.get(number).copied());
            let call = call.ok_or_else(|| {
                node.error(format!("comm_type is {number}, but types are 0 to 9"))
            })?;
            let group = groups.named(node.text("pg_name"));
            let (communicator, members) = group.map_err(|problem| node.error(problem))?;
            if members.is_some_and(|members| !members.contains(&rank)) {
                let name = node.text("pg_name").unwrap_or("");
                return Err(node.error(format!("rank {rank} is not in its group `{name}`")));
            }
            let rooted = matches!(
                call,
                Call::Broadcast | Call::Reduce | Call::Gather | Call::Scatter
            );
            let first = members
                .and_then(|members| members.first().copied())
                .unwrap_or(0);
            let peer = match node.whole("root")? {
                _ if !rooted => NONE,
                None => first,
                Some(root) => u32::try_from(root).unwrap_or(NONE - 1),
            };
            Ok(Event {
                bytes: if call == Call::Barrier { 0 } else { bytes()? },
                peer,
                communicator,
                call,
                ..network
            })
        }
        NodeKind::Send | NodeKind::Receive => {
            let (call, name) = match node.kind {
                NodeKind::Send => (Call::Send, "comm_dst"),
                _ => (Call::Receive, "comm_src"),
            };
            let peer = node.whole(name)?;
            let peer = peer.ok_or_else(|| node.error(format!("it has no {name}")))?;
            let tag = node.whole("comm_tag")?.unwrap_or(0);
            let word = |name: &str, value: i128| {
                let word = u32::try_from(value).ok().filter(|word| *word < NONE - 1);
                word.ok_or_else(|| node.error(format!("{name} is {value}")))
            };
            Ok(Event {
                bytes: bytes()?,
                peer: word(name, peer)?,
                tag: word("comm_tag", tag)?,
                call,
                ..network
            })
        }
        NodeKind::Metadata | NodeKind::Invalid => Ok(network),
    }
}
