//! OpTree: all_gather along an m-ary tree of contiguous groups (Dai et al.).
//!
//! The whole ring is the group of level 0. Stage j cuts each group of level j - 1 into at most m_j
//! contiguous children, whose sizes differ by at most one. The rank at position i of a child sends
//! all blocks that it has to the rank at position i of each sibling, one block per wavelength and
//! slot. After stage j, the ranks of any group of level j together have every block exactly once.
//! When all groups have one rank, every rank has all blocks. Stage 1 uses the whole ring.
//! Lightpaths of later stages stay on the segment of their group, which is shorter than half the
//! ring.
//!
//! If two siblings have different sizes a and b, position i of the child of size a sends to
//! position floor(i b / a) of the child of size b. This position is always valid, and each block is
//! sent once.
//!
//! On a fabric that is not a ring of lightpaths the stages are the same, and ranks send to their
//! siblings over any connection. The default there is to halve groups, which minimises the number
//! of messages per rank.
//!
//! If N = m^k, the load of the busiest link is (N/m) ceil(m^2/8) blocks in stage 1 (a ring; exact
//! for even m) and (N/m) floor(m^2/4) blocks in each later stage (a line).

pub mod tree;

use super::{
    Algorithm, AlgorithmError, LinkLoadBound, OptionRecord, Request, make_room, one_stage,
};
use opticoll_base::spec::Spec;
use opticoll_fabric::fabric::circuits::RingShape;
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[Algorithm {
    summary: "Exchange among ranks at equal positions of sibling groups, for each level of an \
    m-ary tree",
    citation: "Dai et al., OpTree: An Efficient Algorithm for All-gather Operation in Optical \
               Interconnect Systems",
    options: &[
        OptionRecord::new(
            "depth",
            "number of stages: auto, the number with the fewest slots on a ring, and ceil(log2 N) \
             on other fabrics; paper, the number of Eq. 2 of the paper",
        )
        .range("auto, paper, 1 or more")
        .default("auto"),
        OptionRecord::new("k", "same as depth")
            .range("auto, paper, 1 or more")
            .default("auto"),
        OptionRecord::new(
            "radices",
            "number of children of a group at each stage, such as 4x4x4; instead of depth",
        )
        .range("numbers joined by x")
        .default("those of depth"),
    ],
    link_load_bound,
    ..Algorithm::new("optree", "OpTree", CollectiveKind::AllGather, build)
}];

/// Returns the number of steps of Theorem 1 for N ranks, depth k and w channels: ceil((2k - 1)
/// N^(1 + 1/k) / (8w)), or the one-stage value ceil(N^2 / (8w)) if k = 1.
///
/// The formula uses m = N^(1/k) even if this is no whole number, so it is not the exact number of
/// steps of any tree. A rounding error of at most 1 part in 10^13 above a whole number is ignored.
pub fn paper_steps(ranks: u32, channels: u32, depth: u32) -> u64 {
    if depth <= 1 {
        return one_stage::paper_ring_wavelengths(ranks).div_ceil(u64::from(channels));
    }
    let (ranks, depth) = (f64::from(ranks), f64::from(depth));
    let steps = (2.0 * depth - 1.0) * ranks.powf(1.0 + 1.0 / depth) / (8.0 * f64::from(channels));
    (steps - 1e-13 * steps).ceil() as u64
}

/// Returns the depth of Theorem 2 for N ranks: k* = (ln N + sqrt(ln N (ln N - 2))) / 2, rounded up
/// as in Table I of the paper. `None` for N <= 7, because the square root is then not real.
pub fn paper_depth(ranks: u32) -> Option<u32> {
    let log = f64::from(ranks).ln();
    if log < 2.0 {
        return None;
    }
    let depth = (log + (log * (log - 2.0)).sqrt()) / 2.0;
    Some(depth.ceil() as u32)
}

/// Returns the radices of the requested tree, and the depth k at which the paper's formula is
/// evaluated. The depth is `None` on a fabric without a ring.
fn choose_tree(
    spec: &Spec,
    ranks: u32,
    ring: Option<RingShape>,
) -> Result<(Vec<u32>, Option<u32>), AlgorithmError> {
    let stated: Vec<&str> = ["depth", "k", "radices"]
        .into_iter()
        .filter(|key| spec.option(key).is_some())
        .collect();
    if let [_, second, ..] = stated[..] {
        let problem = format!(
            "{} states the tree already; give one of both options",
            stated[0]
        );
        return Err(spec.refuse(second, problem).into());
    }
    if let Some(text) = spec.option("radices") {
        let radices =
            tree::parse_radices(text, ranks).map_err(|problem| spec.refuse("radices", problem))?;
        let depth = radices.len() as u32;
        return Ok((radices, Some(depth)));
    }
    let key = stated.first().copied().unwrap_or("depth");
    let paper = paper_depth(ranks);
    match spec.option(key).unwrap_or("auto") {
        "auto" => Ok(match ring {
            Some(ring) => (tree::best_radices(ranks, ring.channels), paper),
            None => (vec![2; tree::deepest(ranks) as usize], None),
        }),
        "paper" => {
            let depth = paper.ok_or_else(|| {
                spec.refuse(
                    key,
                    format!("Eq. 2 is undefined for {ranks} ranks: it needs 8 or more"),
                )
            })?;
            Ok((tree::uniform_radices(ranks, depth), paper))
        }
        _ => {
            let max_depth = tree::deepest(ranks).max(1);
            let depth = spec.count(key, 1, u32::MAX).map_err(|_| {
                spec.refuse(
                    key,
                    format!("must be auto, paper or a whole number from 1 to {max_depth}"),
                )
            })?;
            let depth = depth.unwrap_or(1);
            if depth > max_depth {
                let problem =
                    format!("too many stages: {max_depth} halvings leave single ranks of {ranks}");
                return Err(spec.refuse(key, problem).into());
            }
            Ok((tree::uniform_radices(ranks, depth), Some(depth)))
        }
    }
}

/// Maximum number of pairs of ranks, summed over the stages, for which the link loads are counted.
/// For more pairs, counting takes longer than the bound saves.
const MAX_COUNTED_PAIRS: u64 = 1 << 25;

/// Returns the bound on link loads of the requested tree. Returns `None` if the tree has more than
/// [`MAX_COUNTED_PAIRS`] pairs of ranks. Also returns `None` if `one_stage` has no bound, or if the
/// default tree is requested, but `one_stage` needs no more slots than this tree.
fn link_load_bound(spec: &Spec, ring: RingShape) -> Result<Option<LinkLoadBound>, AlgorithmError> {
    let channels = ring.channels;
    let (radices, _) = choose_tree(spec, ring.ranks, Some(ring))?;
    let pairs = radices
        .iter()
        .map(|&radix| u64::from(radix) * u64::from(ring.ranks));
    if pairs.sum::<u64>() > MAX_COUNTED_PAIRS {
        return Ok(None);
    }
    let mut loads = tree::stage_loads(ring.ranks, &radices);
    for load in &mut loads {
        // Other routes of the pairs of opposite ranks may lower the load by one.
        *load = load.saturating_sub(1);
    }
    let slots = loads.iter().map(|load| load.div_ceil(channels.into()));
    let max_load = loads.iter().copied().max().unwrap_or(0);
    let loads = LinkLoadBound {
        slots: slots.sum(),
        step_maxima: loads.iter().sum(),
        busiest_link: max_load,
        max_step_load: max_load,
        pairs: 0,
    };
    let is_default = spec.options().next().is_none();
    let one_stage = one_stage::link_load_bound(ring, 1);
    Ok(one_stage
        .filter(|one_stage| !is_default || loads.slots < one_stage.slots)
        .map(|_| loads))
}

fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let ring = request.ring().ok();
    let mut schedule = Schedule::new(request.collective);
    make_room(&mut schedule, ranks)?;
    let (radices, claimed_depth) = choose_tree(request.spec, ranks, ring)?;
    let mut groups = vec![tree::Group {
        start: 0,
        len: ranks,
    }];
    let mut held: Vec<Vec<u32>> = (0..ranks).map(|rank| vec![rank]).collect();
    for &radix in &radices {
        if groups.iter().all(|group| group.len == 1) {
            break;
        }
        schedule.begin_step();
        let mut received: Vec<Vec<u32>> = vec![Vec::new(); ranks as usize];
        for group in &groups {
            tree::for_each_pair(*group, radix, |source, destination| {
                let blocks = &held[source as usize];
                for &chunk in blocks {
                    schedule.push(Transfer::copy(chunk, source, destination));
                }
                received[destination as usize].extend_from_slice(blocks);
            });
        }
        for (held, received) in held.iter_mut().zip(received) {
            held.extend(received);
            held.sort_unstable();
        }
        groups = groups
            .iter()
            .flat_map(|group| group.children(radix))
            .collect();
    }
    schedule.claims = Claims {
        paper_steps: ring
            .zip(claimed_depth)
            .filter(|_| ranks > 1)
            .map(|(ring, depth)| paper_steps(ranks, ring.channels, depth)),
        schedule_steps: Some(schedule.steps() as u32),
        ..Claims::default()
    };
    Ok(schedule)
}
