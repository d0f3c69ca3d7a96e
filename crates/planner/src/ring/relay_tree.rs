//! Plans that are an all_gather on a ring, one run backwards, or both one after the other; and the planner of
//! relay trees.

pub(crate) mod capability;
pub(crate) mod few_ranks;
pub(crate) mod fronts;
pub(crate) mod knapsack;
pub(crate) mod lightpath_requests;
pub(crate) mod multicast;
pub(crate) mod pack;
pub(crate) mod ports;
pub(crate) mod prices;
pub(crate) mod reachable;
pub(crate) mod rotations;
pub(crate) mod split;
pub(crate) mod tree;

use self::rotations::{NAME, on_ring};
use crate::selection::contest::{Contender, Made};
use crate::{
    GATHERED, MOST_TRANSFERS, OnMachine, Planned, Planner, PlannerError, Question, Scope,
    selection::least, time_reversal,
};
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Time;
use opticoll_bounds::wdm_ring;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_simulate::Policy;

/// The planner of relay trees.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("pieces", "chunks that a block is cut into")
            .range("1 to 4096")
            .default("1"),
    ],
    ..Planner::new(
        NAME,
        "Relay tree",
        GATHERED,
        "One tree of lightpaths rotated to all ranks, in the fewest slots found",
        "opticoll; trees of lightpaths after Gu and Peng, TPDS 2003",
        Scope::Rings(OnMachine::new(plan, contenders)),
    )
};

/// More pieces than that are more than any fibre has channels.
const MOST_PIECES: u32 = 4096;

fn plan(spec: &Spec, question: &Question<'_>, ring: &WdmRing) -> Result<Planned, PlannerError> {
    let collective = question.collective;
    let pieces = spec.count("pieces", 1, MOST_PIECES)?.unwrap_or(1);
    let gather = Collective::new(CollectiveKind::AllGather, collective.ranks())?;
    let gather = gather.with_pieces(pieces)?;
    let mut plan = turned(ring, collective.kind(), |ring| on_ring(ring, gather))?;
    plan.algorithm = spec.to_string();
    Ok(plan.into())
}

fn contenders<'a>(
    question: &Question<'a>,
    ring: &'a WdmRing,
) -> Result<Vec<Contender<'a>>, PlannerError> {
    let Some(gathering) = Gathering::new(question, ring) else {
        return Ok(Vec::new());
    };
    let cuts = gathering.cuts();
    cuts.map(|(gather, most)| gathering.contender(gather, most))
        .collect()
}

/// A question for a collective that is made of an all_gather on a ring.
struct Gathering<'a> {
    question: Question<'a>,
    ring: &'a WdmRing,
    /// The ring on which the all_gather is planned.
    there: WdmRing,
    /// The bytes of its block.
    block: u64,
    /// How often its slots come.
    times: u64,
}

impl<'a> Gathering<'a> {
    /// Returns none where there is a single rank.
    fn new(question: &Question<'a>, ring: &'a WdmRing) -> Option<Gathering<'a>> {
        if ring.ranks < 2 {
            return None;
        }
        let ranks = u64::from(ring.ranks);
        let (block, times, there) = match question.collective.kind() {
            CollectiveKind::AllGather => (question.size.get(), 1, ring.clone()),
            kind => {
                // The way back may take light trees, which the way there cannot.
                let both = kind == CollectiveKind::AllReduce && !ring.multicast;
                let block = question.size.get() / ranks;
                (block, 1 + u64::from(both), capability::backwards(ring))
            }
        };
        Some(Gathering {
            question: *question,
            ring,
            there,
            block,
            times,
        })
    }

    /// All_gathers of blocks in as many pieces as are worth trying, with the most transfers or orbits of their
    /// plans; whole blocks are not refused for the limit's sake.
    fn cuts(&self) -> impl Iterator<Item = (Collective, u64)> + '_ {
        let ranks = self.ring.ranks;
        let cut = move |pieces: u32| {
            let gather = Collective::new(CollectiveKind::AllGather, ranks).ok()?;
            let most = match pieces {
                1 => MOST_TRANSFERS,
                _ => self.question.most_transfers,
            };
            let orbits = u64::from(ranks) * u64::from(pieces);
            let fits = match self.question.keeps_folds {
                true => orbits <= most,
                false => orbits * u64::from(ranks) < most,
            };
            let whole = u64::from(pieces) <= self.block.max(1);
            Some((gather.with_pieces(pieces).ok()?, most)).filter(|_| fits && whole)
        };
        let pieces = pieces_to_try(self.ring.channels());
        pieces.into_iter().map_while(cut)
    }

    /// The bytes of the smallest piece.
    fn piece(&self, gather: Collective) -> u64 {
        self.block / u64::from(gather.pieces())
    }

    /// Returns the contender of a cut, with the most transfers or orbits of its plan.
    fn contender(&self, gather: Collective, most: u64) -> Result<Contender<'a>, PlannerError> {
        let slots = self.times * wdm_ring::best(&self.there, &gather).steps;
        // A piece on every channel goes on over the same circuits in all slots.
        let settings = match gather.pieces() >= self.ring.channels() {
            true => 1,
            false => slots,
        };
        let spec = match gather.pieces() {
            1 => Spec::new(NAME),
            pieces => Spec::new(NAME).with("pieces", pieces),
        };
        let (ring, policy) = (self.ring, self.question.policy());
        let bytes = self.piece(gather).saturating_mul(slots);
        let least = match policy {
            Policy::PerPort => {
                // A rank hears all pieces of the others over the channels of both directions.
                let pieces = u64::from(ring.ranks - 1) * u64::from(gather.pieces());
                let most = pieces.div_ceil(2 * u64::from(ring.channels()));
                let heard = self.piece(gather).saturating_mul(most);
                least::of_slots(ring, policy, most, heard, 1)?
            }
            _ => least::of_slots(ring, policy, slots, bytes, 1)?,
        };
        // A port waits for nearly every change of a setting, for all of them are busy. Circuits that fit side by side change
        // together; those of all pieces of a rank take so many settings.
        let hears = self.times * u64::from(ring.ranks - 1) * u64::from(gather.pieces());
        let side_by_side = hears.div_ceil(2 * u64::from(ring.channels()));
        let after = |settings: u64| match policy {
            Policy::OnChange | Policy::PerPort => {
                let changes = ring.reconfiguration.times(settings.saturating_sub(1))?;
                let steady: Time = least::of_slots(ring, Policy::OnChange, slots, bytes, 1)?;
                Ok(steady.plus(changes)?)
            }
            _ => Ok::<_, PlannerError>(least),
        };
        let (estimate, expected) = (after(settings)?, after(settings.min(side_by_side))?);
        // Most slots take as long as the largest piece.
        let largest = self.block.div_ceil(gather.pieces().into());
        let rest = (largest - self.piece(gather)).saturating_mul(slots);
        let longer = least::of_slots(ring, Policy::Free, 0, rest, 1)?;
        let estimate = estimate.plus(longer)?;
        let kind = self.question.collective.kind();
        let transfers = u64::from(gather.chunks()) * u64::from(ring.ranks - 1);
        // A plan that stays folded is joined at once.
        let joined = self.question.joined.filter(|_| !self.question.keeps_folds);
        let saves_little = joined.is_some_and(|joined| !joined.is_worth(estimate, transfers));
        Ok(Contender {
            name: spec.to_string(),
            slots,
            least,
            estimate,
            transfers: gather.chunks().into(),
            make: Box::new(move |limit| match limit {
                _ if saves_little => Ok(Made::NotExpected(
                    "it is expected to save too little for so many transfers",
                )),
                Some(limit) if expected > limit => Ok(Made::NotExpected(
                    "its circuits are expected to change too often",
                )),
                _ => {
                    let mut plan =
                        turned(ring, kind, |ring| rotations::within(ring, gather, most))?;
                    plan.algorithm = spec.to_string();
                    Ok(plan.into())
                }
            }),
        })
    }
}

/// The numbers of pieces that are tried: powers of two and halfway between them, and as many as fill
/// the channels when circuits reach 1, 2, 3 or 4 ranks far. More pieces than channels only make more
/// slots.
fn pieces_to_try(channels: u32) -> Vec<u32> {
    let powers = (0..31).map(|bit| 1u32 << bit);
    let halfway = (0..30).map(|bit| 3u32 << bit);
    let filling = [1, 3, 6, 10].map(|load| channels / load);
    let mut pieces: Vec<u32> = powers.chain(halfway).chain(filling).collect();
    pieces.retain(|pieces| (1..=channels).contains(pieces));
    pieces.sort_unstable();
    pieces.dedup();
    pieces
}

/// The all_gather that `make` plans, or what it gives backwards, or there and back.
fn turned(
    ring: &WdmRing,
    kind: CollectiveKind,
    make: impl Fn(&WdmRing) -> Result<Plan, PlannerError>,
) -> Result<Plan, PlannerError> {
    if !matches!(
        kind,
        CollectiveKind::ReduceScatter | CollectiveKind::AllReduce
    ) {
        return make(ring);
    }
    let there = capability::backwards(ring);
    let gathering = make(&there)?;
    let mut scattering = time_reversal::reduce_scatter(&gathering)?;
    if !ring.is_even() {
        scattering = scattering.into_written_out();
    }
    scattering.fabric = Fabric::new(ring.clone());
    if kind == CollectiveKind::ReduceScatter {
        return Ok(scattering);
    }
    if there == *ring {
        return time_reversal::joined(scattering, gathering);
    }
    let back = on_ring(ring, gathering.schedule.collective)?;
    time_reversal::joined(scattering, back)
}
