//! Rails: collectives of two levels, within groups of ranks and along rails across the groups.
//!
//! The ranks form b groups of g ranks, such as servers of GPUs. A rail consists of the ranks that
//! have the same index in their groups. Data between groups travel along rails, so each rank uses
//! its own network interface, and each block is sent once to every group.
//!
//! * all_gather, in two steps: a rank sends its block along its rail and to its group; then it
//!   forwards to its group the blocks that it received along the rail.
//! * all_reduce: each rank of a group sums up one g-th of the vector. Then each rail sums up these
//!   sums. Finally every rank sends its part of the result to its group. There are two ways to sum
//!   up on a rail. Either each rank sums up one b-th and sends the result to the others (two
//!   steps), or each rank sends its whole sum to all others (one step, but b / 2 times the bytes).
//!
//! `nvls_rails` is the all_reduce in which the switches of the groups add and multicast (as within
//! servers by `nvls_tree`): the sum of a group is one aggregation per rank, and the distribution
//! of the results one multicast per rank.
//!
//! With K segments, the steps of consecutive segments overlap, so the collective needs K - 1
//! additional steps.

use super::{
    Algorithm, AlgorithmError, CostFormulas, OptionRecord, Request, all_pairs, choice,
    make_room_for, size_of_several_groups,
};
use opticoll_base::interrupt;
use opticoll_base::spec::Role;
use opticoll_fabric::network::InNetwork;
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Action, Claims, Schedule, Transfer};

const NAME: &str = "rails";

const LABEL: &str = "Rails";

const CITATION: &str = "Cho et al., BlueConnect: Decomposing All-Reduce for Deep Learning on \
    Heterogeneous Network Hierarchy, MLSys 2019; Ueno and Yokota, Exhaustive Study of \
    Hierarchical AllReduce Patterns for Large Messages Between GPUs, CCGRID 2019";

const FAMILIES: &[&str] = &["gpu_servers", "fat_tree", "dragonfly"];

const SEGMENTS: OptionRecord = OptionRecord {
    role: Role::Pieces,
    tries: &["2", "4", "8"],
    ..OptionRecord::new("segments", "number of pieces, sent one after the other")
        .range("1 to 4096")
        .default("1")
};

const MINIMIZE: OptionRecord = OptionRecord::new(
    "minimize",
    "quantity to minimize between groups: bytes, in two steps; steps, in one step in which all \
     ranks send whole sums",
)
.range("bytes, steps")
.default("bytes")
.tries(&["steps"]);

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[
    Algorithm {
        aliases: &["hierarchical"],
        summary: "Send blocks to the ranks with the same number in all groups, then within each \
        group",
        citation: CITATION,
        options: &[SEGMENTS],
        families: FAMILIES,
        costs: CostFormulas::new("2", "N - 1", "N - 1"),
        ..Algorithm::new(NAME, LABEL, CollectiveKind::AllGather, all_gather)
    },
    Algorithm {
        aliases: &["hierarchical"],
        summary: "Reduce within groups, then among the ranks of the same number in all groups, \
                  then distribute the results within groups",
        citation: CITATION,
        options: &[SEGMENTS, MINIMIZE],
        families: FAMILIES,
        costs: CostFormulas {
            sent: None,
            received: None,
            ..CostFormulas::new("4", "", "")
        },
        transfers: all_pairs,
        ..Algorithm::new(NAME, LABEL, CollectiveKind::AllReduce, |request| {
            all_reduce(request, [Action::Reduce, Action::Copy])
        })
    },
    Algorithm {
        summary: "As rails, but the switches of the groups add and multicast",
        citation: "NVIDIA, NCCL 2.18 (NVLS Tree); Cho et al., BlueConnect, MLSys 2019",
        options: &[
            OptionRecord {
                tries: &["2", "4", "8", "16", "32", "64"],
                ..SEGMENTS
            },
            MINIMIZE,
        ],
        families: &["gpu_servers", "fat_tree"],
        in_network: InNetwork::Both,
        costs: CostFormulas {
            steps: Some("4"),
            ..CostFormulas::VARIOUS
        },
        transfers: all_pairs,
        ..Algorithm::new(
            "nvls_rails",
            "NVLS rails",
            CollectiveKind::AllReduce,
            |request| all_reduce(request, [Action::Aggregate, Action::Multicast]),
        )
    },
];

#[derive(Clone, Copy)]
struct Rails {
    groups: u32,
    /// Number of ranks per group.
    size: u32,
    segments: u32,
}

impl Rails {
    fn of(request: &Request<'_>) -> Result<Rails, AlgorithmError> {
        let size = size_of_several_groups(request)?;
        let segments = request.spec.count("segments", 1, 4096)?.unwrap_or(1);
        Ok(Rails {
            groups: request.ranks() / size,
            size,
            segments,
        })
    }

    /// Returns the other ranks of the rail of `rank`: the ranks with the same index in the other
    /// groups.
    fn rail(self, rank: u32) -> impl Iterator<Item = u32> {
        let number = rank % self.size;
        let ranks = (0..self.groups).map(move |group| group * self.size + number);
        ranks.filter(move |&other| other != rank)
    }

    /// Returns the other ranks of the group of `rank`.
    fn group(self, rank: u32) -> impl Iterator<Item = u32> {
        let first = rank / self.size * self.size;
        (first..first + self.size).filter(move |&other| other != rank)
    }
}

fn all_gather(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let rails = Rails::of(request)?;
    let (ranks, segments) = (request.ranks(), rails.segments);
    let mut schedule = Schedule::new(request.collective.with_pieces(segments)?);
    let blocks = u64::from(ranks) * u64::from(ranks - 1);
    make_room_for(&mut schedule, blocks * u64::from(segments))?;
    for step in 0..=segments {
        interrupt::check();
        schedule.begin_step();
        for rank in 0..ranks {
            if step < segments {
                for other in rails.rail(rank).chain(rails.group(rank)) {
                    schedule.push(Transfer::copy(rank * segments + step, rank, other));
                }
            }
            if let Some(before) = step.checked_sub(1) {
                for origin in rails.rail(rank) {
                    for other in rails.group(rank) {
                        schedule.push(Transfer::copy(origin * segments + before, rank, other));
                    }
                }
            }
        }
    }
    schedule.claims = Claims {
        schedule_steps: Some(segments + 1),
        chunks_sent_per_rank: Some(u64::from(ranks - 1) * u64::from(segments)),
        ..Claims::default()
    };
    Ok(schedule)
}

#[derive(Clone, Copy)]
enum Phase {
    SumGroup,
    /// Sum along a rail. Let the share be the part of the segment that the ranks of a rail sum up.
    /// Each of these ranks sums up one part of the share, or the whole share.
    SumRail,
    DistributeInRail,
    DistributeInGroup,
}

/// Builds the all_reduce. `sum` and `distribute` are the actions within groups.
fn all_reduce(
    request: &Request<'_>,
    [sum, distribute]: [Action; 2],
) -> Result<Schedule, AlgorithmError> {
    let rails = Rails::of(request)?;
    let whole = choice(
        request.spec,
        "minimize",
        &[("bytes", false), ("steps", true)],
    )?;
    let (ranks, segments, size) = (request.ranks(), rails.segments, rails.size);
    // Number of chunks in a rail's share of a segment.
    let chunks_per_share = if whole { 1 } else { rails.groups };
    let pieces = size
        .saturating_mul(segments)
        .saturating_mul(chunks_per_share);
    let mut schedule = Schedule::new(request.collective.with_pieces(pieces)?);
    let phases: &[Phase] = match whole {
        true => &[Phase::SumGroup, Phase::SumRail, Phase::DistributeInGroup],
        false => &[
            Phase::SumGroup,
            Phase::SumRail,
            Phase::DistributeInRail,
            Phase::DistributeInGroup,
        ],
    };
    let within = 2 * u64::from(ranks) * u64::from(size - 1);
    let across = (phases.len() as u64 - 2) * u64::from(ranks) * u64::from(rails.groups - 1);
    make_room_for(&mut schedule, (within + across) * u64::from(segments))?;
    let steps = segments + phases.len() as u32 - 1;
    for step in 0..steps {
        interrupt::check();
        schedule.begin_step();
        for (delay, phase) in (0..).zip(phases) {
            let Some(segment) = step
                .checked_sub(delay)
                .filter(|&segment| segment < segments)
            else {
                continue;
            };
            let share = |rank: u32| (rank % size * segments + segment) * chunks_per_share;
            let own_part = |rank: u32| match whole {
                true => share(rank),
                false => share(rank) + rank / size,
            };
            let action = match phase {
                Phase::SumGroup => sum,
                Phase::SumRail => Action::Reduce,
                Phase::DistributeInRail => Action::Copy,
                Phase::DistributeInGroup => distribute,
            };
            for rank in 0..ranks {
                match phase {
                    Phase::SumGroup | Phase::DistributeInGroup => {
                        rails.group(rank).for_each(|other| {
                            let kept = |rank| (share(rank), chunks_per_share);
                            schedule.push(Transfer::for_kept_chunks(action, rank, other, kept));
                        })
                    }
                    Phase::SumRail | Phase::DistributeInRail => {
                        rails.rail(rank).for_each(|other| {
                            let kept = |rank| (own_part(rank), 1);
                            schedule.push(Transfer::for_kept_chunks(action, rank, other, kept));
                        })
                    }
                }
            }
        }
    }
    let within = 2 * u64::from(size - 1) * u64::from(chunks_per_share);
    let across = (phases.len() as u64 - 2) * u64::from(rails.groups - 1);
    schedule.claims = Claims {
        schedule_steps: Some(steps),
        chunks_sent_per_rank: Some((within + across) * u64::from(segments)),
        ..Claims::default()
    };
    Ok(schedule)
}
