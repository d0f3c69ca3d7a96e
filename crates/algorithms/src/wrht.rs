//! WRHT (Wavelength Reused Hierarchical Tree): levels of groups, each with its middle rank as
//! representative.
//!
//! At first all ranks are representatives. On each level, the representatives are cut in ring order
//! into groups of m; the middle rank of each group collects from the other members and becomes a
//! representative of the next level. The levels end when r representatives can perform a one-stage
//! all-to-all, that is if ceil(r^2 / 8) <= w for w wavelengths. Then the representatives return the
//! data to their groups, level by level in reverse order. With m = 2w + 1 each group needs
//! floor(m / 2) = w wavelengths per direction. The all_reduce sends the whole vector in every step.
//! The all_gather uses the same tree with blocks, as in the OpTree paper.
//!
//! *Striping* (all_reduce): a group of m uses floor(m / 2) of the w wavelengths per direction, so
//! the vector can be cut into floor(w / floor(m / 2)) pieces on separate wavelengths.

use std::ops::Range;

use super::{Algorithm, AlgorithmError, OptionRecord, Request, one_stage};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

const GROUP_SIZE: OptionRecord = OptionRecord::new("group_size", "ranks of a group")
    .range("2 or more")
    .default("2w + 1 at w wavelengths")
    .tries(&["3", "5", "9", "17", "33", "65"]);

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[
    Algorithm {
        summary: "Gather blocks group by group, exchange among the last representatives, then \
                  return the blocks",
        citation: "Dai et al., OpTree, section III.D and Table I; after the WRHT poster, PPoPP \
            2023",
        options: &[GROUP_SIZE],
        ..Algorithm::new("wrht", "WRHT", CollectiveKind::AllGather, all_gather)
    },
    Algorithm {
        summary: "Reduce whole vectors group by group, exchange among the last representatives, \
                  then return the results",
        citation: "Dai et al., POSTER: Efficient All-reduce for Distributed DNN Training in \
                   Optical Interconnect Systems, PPoPP 2023",
        options: &[
            GROUP_SIZE,
            OptionRecord::new(
                "striping",
                "true, to divide the vector among the wavelengths that a group leaves unused",
            )
            .range("true, false")
            .default("false")
            .tries(&["true"]),
        ],
        ..Algorithm::new("wrht", "WRHT", CollectiveKind::AllReduce, all_reduce)
    },
];

/// Returns the maximum group size for which w = `channels` wavelengths per direction suffice to
/// collect from a group in one step: 2w + 1.
pub fn default_group_size(channels: u32) -> u32 {
    2 * channels + 1
}

/// Returns the number of levels L = ceil(log_m N), for N = `ranks` and m = `group_size`, and m^(L -
/// 1).
fn levels(ranks: u32, group_size: u32) -> (u32, u64) {
    let (mut levels, mut power) = (0, 1u64);
    let mut below = 1;
    while power < u64::from(ranks) {
        below = power;
        power *= u64::from(group_size);
        levels += 1;
    }
    (levels, below)
}

/// Returns the number of steps of the WRHT all_reduce, where L = ceil(log_m N) (WRHT poster,
/// section 2). The number is 2L - 1 if the ceil(N / m^(L - 1)) representatives of the last level
/// can perform an all-to-all, otherwise 2L.
pub fn paper_all_reduce_steps(ranks: u32, channels: u32, group_size: u32) -> u64 {
    let (levels, below) = levels(ranks, group_size);
    let last = u64::from(ranks).div_ceil(below) as u32;
    let exchange = one_stage::paper_ring_wavelengths(last) <= u64::from(channels);
    (2 * u64::from(levels)).saturating_sub(u64::from(exchange))
}

/// Returns the number of steps of the WRHT all_gather as the OpTree paper evaluates it: 1 +
/// p(p^(t-1) - 1)/(p - 1) + (t - 1) p^(t-1). Here p = 2w + 1 for w = `channels` wavelengths, and t
/// = ceil(log_p N).
///
/// Table I of the OpTree paper prints another formula. Only the formula above gives the table's 259
/// steps and the paper's percentages.
pub fn paper_all_gather_steps(ranks: u32, channels: u32) -> u64 {
    let base = u64::from(default_group_size(channels));
    let (levels, _) = levels(ranks, default_group_size(channels));
    let mut steps = u64::from(levels > 0);
    let mut power = 1u64;
    for _ in 1..levels {
        power *= base;
        steps += power;
    }
    // The powers stay below N, so no sum overflows.
    steps + u64::from(levels.saturating_sub(1)) * power
}

struct Hierarchy {
    /// Groups of each level, as (representative, other members); indexed by level.
    levels: Vec<Vec<(u32, Vec<u32>)>>,
    /// Representatives that exchange after the last level; a single rank if there is nothing to
    /// exchange.
    last: Vec<u32>,
}

/// Cuts `ranks` ranks into levels of groups until `exchanges` is true for the number of
/// representatives.
fn hierarchy(ranks: u32, group_size: u32, exchanges: impl Fn(u32) -> bool) -> Hierarchy {
    let mut levels = Vec::new();
    let mut representatives: Vec<u32> = (0..ranks).collect();
    while representatives.len() > 1 && !exchanges(representatives.len() as u32) {
        let groups: Vec<(u32, Vec<u32>)> = representatives
            .chunks(group_size as usize)
            .map(|group| {
                let middle = group[group.len() / 2];
                (
                    middle,
                    group
                        .iter()
                        .copied()
                        .filter(|&member| member != middle)
                        .collect(),
                )
            })
            .collect();
        representatives = groups.iter().map(|(middle, _)| *middle).collect();
        levels.push(groups);
    }
    Hierarchy {
        levels,
        last: representatives,
    }
}

fn group_size(request: &Request<'_>) -> Result<u32, AlgorithmError> {
    let default = default_group_size(request.ring()?.channels);
    Ok(request
        .spec
        .count("group_size", 2, u32::MAX)?
        .unwrap_or(default))
}

fn ordered_pairs(ranks: &[u32]) -> impl Iterator<Item = (u32, u32)> + '_ {
    ranks.iter().flat_map(move |&source| {
        ranks
            .iter()
            .filter(move |&&other| other != source)
            .map(move |&other| (source, other))
    })
}

fn all_reduce(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let channels = request.ring()?.channels;
    let group_size = group_size(request)?;
    let stripes = match request.spec.option("striping") {
        None | Some("false") => 1,
        Some("true") => (channels / (group_size / 2)).max(1),
        Some(_) => {
            return Err(request
                .spec
                .refuse("striping", "must be true or false")
                .into());
        }
    };
    let collective = request.collective.with_pieces(stripes)?;
    let hierarchy = hierarchy(request.ranks(), group_size, |representatives| {
        one_stage::paper_ring_wavelengths(representatives) * u64::from(stripes)
            <= u64::from(channels)
    });
    let mut schedule = Schedule::new(collective);
    let send = |schedule: &mut Schedule, transfer: Transfer| {
        for chunk in 0..stripes {
            schedule.push(Transfer { chunk, ..transfer });
        }
    };
    for groups in &hierarchy.levels {
        schedule.begin_step();
        for (middle, members) in groups {
            for &member in members {
                send(&mut schedule, Transfer::reduce(0, member, *middle));
            }
        }
    }
    if hierarchy.last.len() > 1 {
        schedule.begin_step();
        for (source, destination) in ordered_pairs(&hierarchy.last) {
            send(&mut schedule, Transfer::reduce(0, source, destination));
        }
    }
    for groups in hierarchy.levels.iter().rev() {
        schedule.begin_step();
        for (middle, members) in groups {
            for &member in members {
                send(&mut schedule, Transfer::copy(0, *middle, member));
            }
        }
    }
    schedule.claims = Claims {
        paper_steps: Some(paper_all_reduce_steps(
            request.ranks(),
            channels,
            group_size,
        )),
        ..Claims::default()
    };
    Ok(schedule)
}

fn all_gather(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let channels = request.ring()?.channels;
    let group_size = group_size(request)?;
    let ranks = request.ranks();
    let hierarchy = hierarchy(ranks, group_size, |representatives| {
        one_stage::paper_ring_wavelengths(representatives) <= u64::from(channels)
    });
    let mut schedule = Schedule::new(request.collective);
    let send = |schedule: &mut Schedule, blocks: Range<u32>, source, destination| {
        if !blocks.is_empty() {
            schedule.push(Transfer {
                count: blocks.len() as u32,
                ..Transfer::copy(blocks.start, source, destination)
            });
        }
    };
    // Range of blocks that each rank has after the collection; indexed by rank. A member of a group
    // keeps only the blocks that it had before its representative collected them.
    let mut held: Vec<Range<u32>> = (0..ranks).map(|rank| rank..rank + 1).collect();
    for groups in &hierarchy.levels {
        schedule.begin_step();
        for (middle, members) in groups {
            for &member in members {
                send(
                    &mut schedule,
                    held[member as usize].clone(),
                    member,
                    *middle,
                );
            }
            let ranges = members
                .iter()
                .chain([middle])
                .map(|&rank| held[rank as usize].clone());
            let (first, last) = ranges.fold((u32::MAX, 0), |(first, last), range| {
                (first.min(range.start), last.max(range.end))
            });
            held[*middle as usize] = first..last;
        }
    }
    if hierarchy.last.len() > 1 {
        schedule.begin_step();
        for (source, destination) in ordered_pairs(&hierarchy.last) {
            send(
                &mut schedule,
                held[source as usize].clone(),
                source,
                destination,
            );
        }
    }
    for groups in hierarchy.levels.iter().rev() {
        schedule.begin_step();
        for (middle, members) in groups {
            for &member in members {
                let member_blocks = held[member as usize].clone();
                for missing in [0..member_blocks.start, member_blocks.end..ranks] {
                    send(&mut schedule, missing, *middle, member);
                }
            }
        }
    }
    schedule.claims = Claims {
        paper_steps: Some(paper_all_gather_steps(ranks, channels)),
        ..Claims::default()
    };
    Ok(schedule)
}
