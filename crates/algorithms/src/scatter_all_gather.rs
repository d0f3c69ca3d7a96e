//! Scatter and all_gather: a broadcast of long vectors. The root scatters the N parts of the
//! vector, and an all_gather collects them at every rank. By default the scatter follows a binomial
//! tree and the all_gather follows a ring.
//!
//! Ranks that relayed parts in the scatter keep them, and the all_gather leaves out parts that a
//! rank already has. By default, the rank at distance v from the root has the parts v, ..., min(v +
//! D, N) - 1, where D is the largest power of two that divides v. The root has all parts.

use super::{
    Algorithm, AlgorithmError, CostFormulas, LinkLoadBound, OptionRecord, Request, all_pairs,
    build_ranges, make_room,
};
use opticoll_base::spec::Spec;
use opticoll_fabric::fabric::circuits::RingShape;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[Algorithm {
    summary: "Scatter the parts of the vector along a binomial tree, then all_gather them around \
        a ring",
    citation: "Barnett, Gupta, Payne, Shuler, van de Geijn and Watts, Interprocessor Collective \
               Communication Library, SHPCC 1994",
    options: &[
        OptionRecord::new("scatter", "algorithm of the scatter")
            .range("algorithms of scatter, without options")
            .default("binomial")
            .tries(&["direct"]),
        OptionRecord::new("all_gather", "algorithm of the all_gather")
            .range("algorithms of all_gather, without options")
            .default("ring")
            .tries(&[
                "one_stage",
                "recursive_doubling",
                "bruck",
                "ring_bidirectional",
            ]),
    ],
    costs: CostFormulas::new("ceil(log2 N) + N - 1", "2 (N - 1) / N", "1"),
    transfers: all_pairs,
    link_load_bound,
    ..Algorithm::new(
        "scatter_all_gather",
        "Scatter and all_gather",
        CollectiveKind::Broadcast,
        build,
    )
}];

/// Returns the bound on link loads of the all_gather alone. The all_gather leaves out parts that
/// ranks have from the scatter. There are at most (N / 2) ceil(log2 N) such parts at the ranks
/// other than the root, and N parts at the root. If the all_gather follows a ring, some rank has
/// none of these parts, so no step is shorter. Otherwise all parts together cross at least N^2 / 4
/// links on their way to one rank, hence N^3 / 4 links in total. Each part that is left out saves
/// at most N / 2 links. There are 2 N links, counting both directions. Over distances 1, 2, 4, ...
/// the parts cross more links, at least if N is a power of two.
fn link_load_bound(spec: &Spec, ring: RingShape) -> Result<Option<LinkLoadBound>, AlgorithmError> {
    let ranks = u64::from(ring.ranks);
    let ring_steps = ranks.saturating_sub(1);
    let steps = match spec.option("all_gather") {
        Some("ring_bidirectional") => Some(ring_steps.div_ceil(2)),
        None | Some("ring") => Some(ring_steps),
        _ => None,
    };
    if let Some(steps) = steps {
        return Ok(Some(LinkLoadBound::uniform(steps, 1, ring.channels)));
    }
    let is_known = match spec.option("all_gather") {
        Some("one_stage") => true,
        Some("recursive_doubling" | "bruck") => ring.ranks.is_power_of_two(),
        _ => false,
    };
    let keeps_few = matches!(spec.option("scatter"), None | Some("binomial" | "direct"));
    if !is_known || !keeps_few || ring.longest < ring.ranks / 2 {
        return Ok(None);
    }
    let kept = ranks / 2 * u64::from(ring.ranks.next_power_of_two().ilog2()) + ranks;
    let links = (ranks * (ranks * ranks / 4)).saturating_sub(kept * (ranks / 2));
    let chunks = links.div_ceil(2 * ranks.max(1));
    Ok(Some(LinkLoadBound::uniform(1, chunks, ring.channels)))
}

fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let (ranks, root) = (request.ranks(), request.collective.root());
    let scatter = Collective::new(CollectiveKind::Scatter, ranks)?.with_root(root)?;
    let scattering = half(request, "scatter", "binomial", scatter)?;
    let all_gather = Collective::new(CollectiveKind::AllGather, ranks)?;
    let gathering = half(request, "all_gather", "ring", all_gather)?;
    let mut schedule = composed(request.collective, &scattering, &gathering)?;
    // On a grid of tunable circuits, the neighbour of the root on the ring may have more parts.
    let is_default = request.fabric.planes().is_none() && request.spec.options().next().is_none();
    schedule.claims = Claims {
        // Steps that send no new part to any rank are left out.
        schedule_steps: Some(schedule.steps() as u32),
        // The root sends N - 1 parts in either phase, because its neighbour on the ring has only
        // one part.
        chunks_sent_per_rank: is_default.then_some(2 * u64::from(ranks - 1)),
        ..Claims::default()
    };
    Ok(schedule)
}

/// Builds the broadcast that scatters the parts of the vector by the schedule `scattering` and
/// collects them by the schedule `gathering`, without parts that the receiver already has. Neither
/// schedule may cut parts into pieces.
pub fn composed(
    collective: Collective,
    scattering: &Schedule,
    gathering: &Schedule,
) -> Result<Schedule, AlgorithmError> {
    let ranks = collective.ranks();
    let mut schedule = Schedule::new(collective.with_pieces(ranks)?);
    make_room(&mut schedule, ranks)?;
    schedule.append(scattering, 1);
    let mut held = HeldParts::after(scattering);
    for step in 0..gathering.steps() {
        let begun = schedule.len();
        for index in gathering.step(step) {
            let transfer = gathering.transfer(index);
            for chunk in transfer.chunk..transfer.chunk + transfer.count {
                if !held.insert(transfer.destination, chunk) {
                    continue;
                }
                if schedule.len() == begun {
                    schedule.begin_step();
                }
                schedule.push(Transfer::copy(chunk, transfer.source, transfer.destination));
            }
        }
    }
    Ok(schedule)
}

/// Builds one half of the broadcast by the algorithm that option `key` names.
fn half(
    request: &Request<'_>,
    key: &'static str,
    default: &str,
    collective: Collective,
) -> Result<Schedule, AlgorithmError> {
    let name = request.spec.option(key).unwrap_or(default);
    let schedule = build_ranges(&Spec::new(name), collective, request.fabric)?;
    if schedule.collective.pieces() != 1 {
        let problem = "cuts blocks into pieces, but the blocks here are parts of a vector already";
        return Err(request.spec.refuse(key, problem).into());
    }
    Ok(schedule)
}

/// Parts that each rank has, as a bit set per rank.
struct HeldParts {
    words_per_rank: usize,
    words: Vec<u64>,
}

impl HeldParts {
    /// Returns the parts of each rank after a scatter: the root has all parts, and the other ranks
    /// have the parts that they received.
    fn after(scattering: &Schedule) -> HeldParts {
        let ranks = scattering.collective.ranks();
        let words_per_rank = (ranks as usize).div_ceil(64);
        let mut held = HeldParts {
            words_per_rank,
            words: vec![0; words_per_rank * ranks as usize],
        };
        for part in 0..ranks {
            held.insert(scattering.collective.root(), part);
        }
        for transfer in scattering.transfers() {
            for part in transfer.chunk..transfer.chunk + transfer.count {
                held.insert(transfer.destination, part);
            }
        }
        held
    }

    /// Adds a part to a rank. Returns whether the rank did not have the part before.
    fn insert(&mut self, rank: u32, part: u32) -> bool {
        let word = rank as usize * self.words_per_rank + part as usize / 64;
        let bit = 1 << (part % 64);
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }
}
