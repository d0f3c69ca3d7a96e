//! What the planner makes of its own on rings of wavelengths, as contenders: relay trees for blocks in 1, 2, 3,
//! ... pieces, levels of circuits that stay up, light trees, and plans of few slots.

use super::auto::Question;
use super::contest::{Contender, Made};
use super::levels;
use super::{
    Kept, MOST_KEPT, PlannerError, candidates, capability, least, multicast, relay_tree_within,
};
use crate::algorithm::AlgorithmError;
use crate::bound;
use crate::collective::{Collective, CollectiveKind};
use crate::fabric::{Fabric, WdmRing};
use crate::plan::AnyPlan;
use crate::simulate::Policy;
use crate::spec::Spec;
use crate::units::{Bytes, Time};

/// The contenders for a collective; none where there is no ring, or a single rank.
///
/// # Errors
/// A time beyond 64 bits.
pub(super) fn contenders<'a>(question: &Question<'a>) -> Result<Vec<Contender<'a>>, PlannerError> {
    let Some(ring) = question.fabric.ring().filter(|ring| ring.ranks > 1) else {
        return Ok(Vec::new());
    };
    let kind = question.collective.kind();
    let mut contenders = match kind {
        CollectiveKind::AllGather | CollectiveKind::ReduceScatter | CollectiveKind::AllReduce => {
            along_trees(question, ring)?
        }
        CollectiveKind::Broadcast if ring.multicast => light_trees(question, ring)?,
        _ => Vec::new(),
    };
    contenders.extend(candidates::contenders(question)?);
    Ok(contenders)
}

/// The numbers of pieces that are tried: powers of two and halfway between them, and as many as fill
/// the channels when circuits reach 1, 2, 3 or 4 ranks far. More pieces than channels only make more
/// slots.
pub(super) fn pieces_to_try(channels: u32) -> Vec<u32> {
    let powers = (0..31).map(|bit| 1u32 << bit);
    let halfway = (0..30).map(|bit| 3u32 << bit);
    let filling = [1, 3, 6, 10].map(|load| channels / load);
    let mut pieces: Vec<u32> = powers.chain(halfway).chain(filling).collect();
    pieces.retain(|pieces| (1..=channels).contains(pieces));
    pieces.sort_unstable();
    pieces.dedup();
    pieces
}

/// All_gathers along relay trees and over levels of circuits, or these backwards, or there and back.
fn along_trees<'a>(
    question: &Question<'a>,
    ring: &'a WdmRing,
) -> Result<Vec<Contender<'a>>, PlannerError> {
    let (kind, ranks) = (question.collective.kind(), u64::from(ring.ranks));
    let gather = Collective::new(CollectiveKind::AllGather, ring.ranks)?;
    // The bytes of an all_gather's block, and how often its slots come.
    let (block, times) = match kind {
        CollectiveKind::AllGather => (question.size.get(), 1),
        CollectiveKind::ReduceScatter => (question.size.get() / ranks, 1),
        // The way back may take light trees, which the way there cannot.
        _ if ring.multicast => (question.size.get() / ranks, 1),
        _ => (question.size.get() / ranks, 2),
    };
    let there = match kind {
        CollectiveKind::AllGather => question.fabric.clone(),
        _ => capability::backwards(ring),
    };
    let there = there.needed_ring("the planner")?;
    let timed = |slots: u64, settings: u64, pieces: u32| {
        let policy = question.policy();
        let bytes = (block / u64::from(pieces)).saturating_mul(slots);
        let least = match policy {
            Policy::PerPort => least::of_collective(question.collective, question.size, question)?,
            _ => least::of_slots(ring, policy, slots, bytes, 1)?,
        };
        // A port waits for nearly every change of a setting, for all of them are busy.
        let estimate = match policy {
            Policy::OnChange | Policy::PerPort => {
                let others = settings.saturating_sub(1);
                let changes = ring.reconfiguration.times(others)?;
                least::of_slots(ring, Policy::OnChange, slots, bytes, 1)?.plus(changes)?
            }
            _ => least,
        };
        Ok::<(Time, Time), PlannerError>((least, estimate))
    };
    let mut contenders = Vec::new();
    for pieces in pieces_to_try(ring.channels()) {
        let most = most_kept(question, pieces);
        let orbits = ranks * u64::from(pieces);
        let Ok(cut) = gather.with_pieces(pieces) else {
            break;
        };
        if orbits > most || u64::from(pieces) > block.max(1) {
            break;
        }
        let slots = times * bound::best(there, &cut).steps;
        let settings = if pieces >= ring.channels() { 1 } else { slots };
        let (least, estimate) = timed(slots, settings, pieces)?;
        let name = match pieces {
            1 => Spec::new("relay_tree"),
            _ => Spec::new("relay_tree").with("pieces", pieces),
        };
        contenders.push(contender(
            question,
            name.to_string(),
            slots,
            (least, estimate),
            orbits,
            move |fabric: &Fabric| relay_tree_within(fabric, cut, most).map(Some),
        ));
        if !ring.broken.is_empty() || capability::has_few_ports(ring) {
            continue;
        }
        let kept = Kept::of(orbits * ranks, most);
        for layout in levels::layouts(ring, pieces, levels::MOST_LEVELS, kept) {
            let slots = times * u64::from(layout.slots());
            let (least, estimate) = timed(slots, layout.levels.len() as u64, pieces)?;
            let name = layout.spelling();
            contenders.push(contender(
                question,
                name,
                slots,
                (least, estimate),
                orbits,
                move |fabric: &Fabric| Ok(levels::plan(fabric, cut, &layout)),
            ));
        }
    }
    Ok(contenders)
}

/// A contender that makes an all_gather and turns it into the collective.
fn contender<'a>(
    question: &Question<'a>,
    name: String,
    slots: u64,
    (least, estimate): (Time, Time),
    transfers: u64,
    gather: impl Fn(&Fabric) -> Result<Option<AnyPlan>, PlannerError> + 'a,
) -> Contender<'a> {
    let (fabric, kind) = (question.fabric, question.collective.kind());
    let spelled = name.clone();
    Contender {
        name,
        slots,
        least,
        estimate,
        transfers,
        make: Box::new(move |_| {
            let mut plan = capability::turned(fabric, kind, |fabric| {
                gather(fabric)?.ok_or(PlannerError::NotFound { pieces: 1 })
            })?;
            // Levels may have been made with a shorter reach.
            if !plan.kept().algorithm.starts_with("levels") {
                plan.kept_mut().algorithm = spelled;
            }
            Ok(plan.into())
        }),
    }
}

/// The most transfers or orbits of a plan; whole blocks are not refused for the limit's sake.
fn most_kept(question: &Question<'_>, pieces: u32) -> u64 {
    match pieces {
        1 => MOST_KEPT,
        _ => question.most_transfers,
    }
}

/// Broadcasts along light trees, of the whole vector and of as many pieces as fill one direction, or
/// both.
fn light_trees<'a>(
    question: &Question<'a>,
    ring: &'a WdmRing,
) -> Result<Vec<Contender<'a>>, PlannerError> {
    let mut contenders = Vec::new();
    for pieces in [1, ring.channels(), 2 * ring.channels()] {
        let transfers = u64::from(pieces) * u64::from(ring.ranks);
        let size = question.size.get().max(1);
        if transfers > question.most_transfers || u64::from(pieces) > size {
            continue;
        }
        let least = least::of_collective(question.collective, question.size, question)?;
        let (fabric, collective) = (question.fabric, question.collective);
        let spec = Spec::new("light_tree").with("pieces", pieces);
        contenders.push(Contender {
            name: spec.to_string(),
            slots: 1,
            least,
            estimate: least,
            transfers,
            make: Box::new(move |_| light_tree(&spec, fabric, collective).map(Made::from)),
        });
    }
    Ok(contenders)
}

/// A broadcast along light trees of so many pieces.
pub(super) fn light_tree(
    spec: &Spec,
    fabric: &Fabric,
    collective: Collective,
) -> Result<AnyPlan, PlannerError> {
    let ring = fabric.needed_ring("light_tree")?;
    if !ring.multicast {
        let reason =
            "its ranks take no share of passing light; multicast=drop_and_continue lets them";
        return Err(AlgorithmError::Refused {
            name: "light_tree",
            ranks: ring.ranks,
            reason: reason.into(),
        }
        .into());
    }
    let pieces = spec.count("pieces", 1, MOST_PIECES)?.unwrap_or(1);
    let plan = multicast::broadcast(fabric, collective.with_pieces(pieces)?);
    let mut plan = plan.ok_or(PlannerError::CutOff)?;
    plan.algorithm = spec.to_string();
    Ok(AnyPlan::Full(plan))
}

/// More pieces than that are more than any two directions have channels.
const MOST_PIECES: u32 = 1 << 13;

/// A size's part for one rank, rounded up.
pub(super) fn block(ring: &WdmRing, size: Bytes) -> Bytes {
    Bytes::new(size.get().div_ceil(u64::from(ring.ranks)))
}
