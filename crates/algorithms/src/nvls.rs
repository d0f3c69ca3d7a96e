//! Collectives by switches that add and multicast, as NCCL's NVLS on NVSwitches.
//!
//! **all_reduce**: each of N ranks owns an N-th of the vector, cut into K pieces. In step s, every
//! owner receives the sum of its piece s, which the switches add, and multicasts the sum of its
//! piece s - 1. In one step a rank sends N - 1 summands of 1/(NK) of the vector, and its own
//! summands and its result once. Therefore, a vector of M bytes loads the cable of each rank with
//! M (1 + 1/N) bytes per direction, in K + 1 steps. Theorem N1 of `docs/proofs.md` says that no
//! plan loads the cables of all ranks less.
//!
//! **all_gather** and **broadcast** multicast each block once, in one step. **reduce_scatter** and
//! **reduce** are their time reversals: aggregations.

use super::{
    Algorithm, AlgorithmError, CostFormulas, Request, SEGMENTS, check_size, make_room_for, segments,
};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::network::InNetwork;
use opticoll_fabric::network::in_network::GroupFinder;
use opticoll_plan::collective::{CollectiveKind, Holders};
use opticoll_plan::schedule::{Action, Claims, Schedule, Transfer};
use rustc_hash::FxHashSet;

const CITATION: &str = "NVIDIA, NCCL 2.17 (NVLS); Graham et al., Scalable Hierarchical \
    Aggregation Protocol (SHArP), COM-HPC 2016";

/// Families whose switches may add and multicast.
const FAMILIES: &[&str] = &["gpu_servers", "fat_tree", "crossbar", "custom"];

const fn one_step(collective: CollectiveKind, summary: &'static str) -> Algorithm {
    Algorithm {
        summary,
        citation: CITATION,
        families: FAMILIES,
        in_network: InNetwork::Multicast,
        costs: CostFormulas {
            steps: Some("1"),
            ..CostFormulas::VARIOUS
        },
        ..Algorithm::new("nvls", "NVLS", collective, multicasts)
    }
}

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[
    Algorithm {
        summary: "Switches add the part of each rank, and multicast the sum, piece after piece",
        citation: CITATION,
        options: SEGMENTS,
        families: FAMILIES,
        in_network: InNetwork::Both,
        costs: CostFormulas {
            steps: Some("K + 1"),
            ..CostFormulas::VARIOUS
        },
        transfers: super::all_pairs,
        ..Algorithm::new("nvls", "NVLS", CollectiveKind::AllReduce, all_reduce)
    },
    one_step(
        CollectiveKind::AllGather,
        "Multicast the block of every rank, all at the same time",
    ),
    one_step(
        CollectiveKind::Broadcast,
        "Multicast the vector of the root",
    ),
];

fn all_reduce(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let (ranks, pieces) = (request.ranks(), segments(request.spec)?);
    let chunks = u64::from(ranks) * u64::from(pieces);
    let sent = 2 * u64::from(ranks - 1) * u64::from(pieces);
    let transfers = u64::from(ranks).saturating_mul(sent);
    check_size(ranks, transfers)?;
    // The number of chunks has 32 bits, because it is at most the number of transfers.
    let mut schedule = Schedule::new(request.collective.with_pieces(chunks.max(1) as u32)?);
    schedule.reserve(transfers as usize);
    let steps = if ranks > 1 { pieces + 1 } else { 0 };
    for step in 0..steps {
        schedule.begin_step();
        let mut push = |piece: u32, action: Action| {
            for owner in 0..ranks {
                interrupt::check();
                for other in (0..ranks).filter(|&other| other != owner) {
                    let (source, destination) = match action.adds() {
                        true => (other, owner),
                        false => (owner, other),
                    };
                    schedule.push(Transfer {
                        chunk: owner * pieces + piece,
                        count: 1,
                        source,
                        destination,
                        action,
                    });
                }
            }
        };
        if step < pieces {
            push(step, Action::Aggregate);
        }
        if let Some(piece) = step.checked_sub(1) {
            push(piece, Action::Multicast);
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(steps),
        chunks_sent_per_rank: Some(sent),
        ..Claims::default()
    };
    Ok(schedule)
}

fn multicasts(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let (collective, ranks) = (request.collective, request.ranks());
    let mut schedule = Schedule::new(collective);
    make_room_for(
        &mut schedule,
        u64::from(collective.chunks()) * u64::from(ranks - 1),
    )?;
    if ranks > 1 {
        schedule.begin_step();
    }
    for chunk in 0..collective.chunks() {
        interrupt::check();
        let Holders::One(source) = collective.before(chunk) else {
            continue;
        };
        for destination in (0..ranks).filter(|&destination| destination != source) {
            schedule.push(Transfer {
                action: Action::Multicast,
                ..Transfer::copy(chunk, source, destination)
            });
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(u32::from(ranks > 1)),
        chunks_sent_per_rank: Some(u64::from(ranks - 1)),
        ..Claims::default()
    };
    Ok(schedule)
}

/// Checks that the switches of the fabric carry out every multicast and aggregation of a schedule
/// in which all groups with the same action and the same hub have the same members.
pub(super) fn check_switches(
    name: &'static str,
    schedule: &Schedule,
    fabric: &Fabric,
) -> Result<(), AlgorithmError> {
    let ranks = schedule.collective.ranks();
    let refused = |reason: &str| AlgorithmError::refused(name, ranks, reason);
    let Some(network) = fabric.network() else {
        return Err(refused("it needs switches that add or multicast"));
    };
    let mut finder = GroupFinder::new(network);
    let mut checked: FxHashSet<(Action, u32)> = FxHashSet::default();
    for step in 0..schedule.steps() {
        let mut groups: Vec<(Action, u32, u32, u32)> = Vec::new();
        for transfer in schedule.columns(step).transfers() {
            let Transfer {
                action,
                source,
                destination,
                chunk,
                ..
            } = transfer;
            let (hub, member) = match action {
                Action::Multicast => (source, destination),
                Action::Aggregate => (destination, source),
                Action::Copy | Action::Reduce => continue,
            };
            if !checked.contains(&(action, hub)) {
                groups.push((action, hub, chunk, member));
            }
        }
        groups.sort_unstable();
        for group in groups.chunk_by(|one, next| (one.0, one.1, one.2) == (next.0, next.1, next.2))
        {
            interrupt::check();
            let (action, hub, ..) = group[0];
            let route = |&(.., member): &(Action, u32, u32, u32)| {
                let mut links = Vec::new();
                match action.adds() {
                    true => network.route(member, hub, &mut links),
                    false => network.route(hub, member, &mut links),
                }
                links
            };
            let routes = group.iter().map(route).collect();
            if finder.links(action.adds(), routes).is_none() {
                return Err(refused(match action.adds() {
                    true => {
                        "routes join where no switch adds, or form no tree; give the fabric \
                         in_network=reduce+multicast if all its switches add"
                    }
                    false => {
                        "routes branch where no switch multicasts, or form no tree; give the \
                         fabric in_network=reduce+multicast if all its switches multicast"
                    }
                }));
            }
        }
        checked.extend(groups.iter().map(|(action, hub, ..)| (*action, *hub)));
    }
    Ok(())
}
