//! All_gather in a single step: every rank sends its block to every other rank without relays.

use super::{Algorithm, AlgorithmError, CostFormulas, LinkLoadBound, Request, make_room};
use opticoll_fabric::fabric::circuits::RingShape;
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// Algorithms of this module.
pub const RECORDS: &[Algorithm] = &[Algorithm {
    summary: "Send each rank's block directly to every other rank",
    citation: "Dai et al., OpTree, section III.B, Lemma 1; after Liang and Shen, ToN 2006",
    costs: CostFormulas::new("1", "N - 1", "N - 1"),
    link_load_bound: |_, ring| Ok(link_load_bound(ring, 1)),
    ..Algorithm::new("one_stage", "One-stage", CollectiveKind::AllGather, build)
}];

/// Returns the minimum number of wavelengths of a one-stage all-to-all on a line of n = `ranks`
/// ranks. The minimum is floor(n^2 / 4), the load of the middle link (Lemma 1 of the OpTree paper).
pub fn line_wavelengths(ranks: u32) -> u64 {
    let ranks = u64::from(ranks);
    ranks * ranks / 4
}

/// Returns the minimum number of wavelengths per direction of a one-stage all-to-all on a ring of n
/// = `ranks` ranks. The minimum is ceil(floor(n^2 / 4) / 2) (Opatrny 2003).
pub fn ring_wavelengths(ranks: u32) -> u64 {
    line_wavelengths(ranks).div_ceil(2)
}

/// Returns the number of wavelengths that Lemma 1 of the OpTree paper states for a ring of n =
/// `ranks` ranks: ceil(n^2 / 8). For odd n this is one more than necessary.
pub fn paper_ring_wavelengths(ranks: u32) -> u64 {
    let ranks = u64::from(ranks);
    (ranks * ranks).div_ceil(8)
}

/// Returns the bound on link loads for `steps` one-stage all-to-alls one after another. Returns
/// `None` if a lightpath cannot reach half-way around the ring.
pub(super) fn link_load_bound(ring: RingShape, steps: u64) -> Option<LinkLoadBound> {
    let chunks = ring_wavelengths(ring.ranks);
    let loads = LinkLoadBound {
        busiest_link: (steps * line_wavelengths(ring.ranks)).div_ceil(2),
        pairs: line_wavelengths(ring.ranks) / 2,
        ..LinkLoadBound::uniform(steps, chunks, ring.channels)
    };
    (ring.longest >= ring.ranks / 2).then_some(loads)
}

fn build(request: &Request<'_>) -> Result<Schedule, AlgorithmError> {
    let ranks = request.ranks();
    let mut schedule = Schedule::new(request.collective);
    if ranks > 1 {
        make_room(&mut schedule, ranks)?;
        schedule.begin_step();
    }
    for source in 0..ranks {
        for destination in (0..ranks).filter(|&destination| destination != source) {
            schedule.push(Transfer::copy(source, source, destination));
        }
    }
    let channels = u64::from(request.ring()?.channels);
    schedule.claims = Claims {
        paper_steps: (ranks > 1).then(|| paper_ring_wavelengths(ranks).div_ceil(channels)),
        schedule_steps: Some(u32::from(ranks > 1)),
        chunks_sent_per_rank: Some(u64::from(ranks - 1)),
        ..Claims::default()
    };
    Ok(schedule)
}
