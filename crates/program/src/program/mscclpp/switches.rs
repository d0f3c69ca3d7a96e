//! Operations of MSCCL++ that execute a plan whose switches add or multicast.
//!
//! `gstore` writes chunks of a rank to the same place of all ranks; `glres` adds the chunks at one
//! place of all ranks and writes the sum to one place of all ranks. Both include the rank that
//! executes them. There is no operation by which one rank alone receives a sum of switches.
//!
//! A rank that executes such operations, a **hub**, waits until all ranks have begun the call. At
//! the end, all ranks wait for all hubs. The operations depend on no other operations.

use std::collections::{BTreeMap, BTreeSet};

use super::super::lowering::{input_operand, output_operand};
use super::super::{CollectiveProgram, Operand, ProgramError, SwitchedChunk};
use super::MAX_CHANNELS_PER_OPERATION;
use super::emission::{Emission, Emitted, Link, MEMORY, Span};
use opticoll_base::interrupt;
use opticoll_plan::collective::CollectiveKind;

/// Rank of a span that consists of the same chunks of all ranks, which switches read or write.
pub(super) const ALL_RANKS: u32 = u32::MAX;

/// Chunks of a hub that one operation handles.
struct Store {
    hub: u32,
    adds: bool,
    source: Operand,
    destination: Operand,
    count: u32,
}

pub(super) fn emit_switched(
    program: &CollectiveProgram,
    in_place: bool,
) -> Result<Emission, ProgramError> {
    let stores = stores(program, in_place)?;
    let ranks = program.ranks.len() as u32;
    let hubs: BTreeSet<u32> = stores.iter().map(|store| store.hub).collect();
    let mut operations = Vec::new();
    for rank in 0..ranks {
        interrupt::check();
        let link = |peer: u32| Link { peer, channel: 0 };
        let others = (0..ranks).filter(|&other| other != rank);
        let others: Vec<Link> = others.map(link).collect();
        let other_hubs = hubs.iter().copied().filter(|&hub| hub != rank);
        let other_hubs: Vec<Link> = other_hubs.map(link).collect();
        let mut own = Vec::new();
        push_groups(&mut own, "signal", &other_hubs);
        if hubs.contains(&rank) {
            push_groups(&mut own, "wait", &others);
            own.push(named("nop", Vec::new()));
            let of_rank = stores.iter().filter(|store| store.hub == rank);
            own.extend(of_rank.map(operation));
            own.push(named("nop", Vec::new()));
            push_groups(&mut own, "signal", &others);
        }
        push_groups(&mut own, "wait", &other_hubs);
        operations.push(own);
    }
    Ok(Emission {
        operations,
        scratch: vec![0; program.ranks.len()],
    })
}

/// Returns the operations of all hubs. Fails if operations of MSCCL++ cannot express the plan.
fn stores(program: &CollectiveProgram, in_place: bool) -> Result<Vec<Store>, ProgramError> {
    let collective = &program.collective;
    let ranks = program.ranks.len() as u32;
    let mut of_chunk: BTreeMap<u32, Vec<SwitchedChunk>> = BTreeMap::new();
    for one in &program.switched {
        of_chunk.entry(one.chunk).or_default().push(*one);
    }
    let place = |rank: u32, operand: Operand| {
        let (buffer, shift) = program.address(rank, operand.buffer, in_place);
        let offset = operand.offset + shift as i32;
        Operand {
            buffer,
            offset,
            ..operand
        }
    };
    let is_near = program.ranks_per_server.is_none_or(|size| size >= ranks);
    let mut stores: Vec<Store> = Vec::new();
    for chunk in 0..collective.chunks() {
        interrupt::check();
        let moves = of_chunk.get(&chunk).map_or(&[][..], Vec::as_slice);
        use CollectiveKind::{AllGather, AllReduce, Broadcast};
        let is_whole = match (collective.kind(), moves) {
            (AllGather | Broadcast, [one]) => !one.adds,
            (AllReduce, [first, then]) => first.adds && !then.adds && first.hub == then.hub,
            _ => false,
        };
        let reaches_all = moves.iter().all(|one| one.members == ranks - 1);
        let ends = moves.first().and_then(|one| {
            let source = input_operand(collective, one.hub, chunk)?;
            // The place of a chunk in the output is the same at all ranks that receive it.
            let destination = output_operand(collective, one.hub, chunk)?;
            Some((one.hub, place(one.hub, source), place(one.hub, destination)))
        });
        let Some((hub, source, destination)) = ends.filter(|_| is_near && is_whole && reaches_all)
        else {
            return Err(ProgramError::Refused(format!(
                "in MSCCL++, switches multicast from a rank to all ranks, and add only what they \
                 multicast at once; chunk {chunk} of this plan moves in another way; plan on a \
                 fabric with in_network=none"
            )));
        };
        let adds = moves.len() > 1;
        let after = |first: Operand, count: u32| Operand {
            offset: first.offset + count as i32,
            ..first
        };
        match stores.last_mut() {
            Some(last)
                if (last.hub, last.adds) == (hub, adds)
                    && after(last.source, last.count) == source
                    && after(last.destination, last.count) == destination =>
            {
                last.count += 1;
            }
            _ => stores.push(Store {
                hub,
                adds,
                source,
                destination,
                count: 1,
            }),
        }
    }
    Ok(stores)
}

fn operation(store: &Store) -> Emitted {
    let span = |rank: u32, operand: Operand| Span {
        rank,
        buffer: operand.buffer,
        first: operand.offset as u32,
        count: store.count,
    };
    let (name, reader) = match store.adds {
        true => ("glres", ALL_RANKS),
        false => ("gstore", store.hub),
    };
    Emitted {
        name,
        sources: vec![span(reader, store.source)],
        destinations: vec![span(ALL_RANKS, store.destination)],
        links: Vec::new(),
        channel_type: None,
    }
}

fn named(name: &'static str, links: Vec<Link>) -> Emitted {
    Emitted {
        name,
        sources: Vec::new(),
        destinations: Vec::new(),
        channel_type: (!links.is_empty()).then_some(MEMORY),
        links,
    }
}

fn push_groups(operations: &mut Vec<Emitted>, name: &'static str, links: &[Link]) {
    let groups = links.chunks(MAX_CHANNELS_PER_OPERATION);
    operations.extend(groups.map(|group| named(name, group.to_vec())));
}
