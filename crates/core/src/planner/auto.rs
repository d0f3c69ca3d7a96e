//! The plan that takes the least time, of all that are known here.
//!
//! Candidates are the named algorithms, relay trees for blocks in 1, 2, 3, ... pieces, and levels of
//! circuits that stay up. Each is estimated from its number of slots (for relay trees the lower bound,
//! which they mostly meet), then the most promising are made and simulated, until none that is left is
//! estimated to be faster than the fastest found.

use super::grouped::{self, search};
use super::levels::{self, Layout};
use super::pace::Pace;
use super::{Kept, MOST_KEPT, PlannerError, candidates, capability, named, relay_tree_within};
use crate::bound;
use crate::bound::light_path_grid::SetUps;
use crate::bound::time::{Charge, TimeBound};
use crate::collective::{Collective, CollectiveKind};
use crate::fabric::{Fabric, WdmRing};
use crate::plan::AnyPlan;
use crate::simulate::{self, Paths, Policy};
use crate::spec::Spec;
use crate::units::{Bytes, Time, UnitError};

impl From<Policy> for Charge {
    fn from(policy: Policy) -> Charge {
        match policy {
            Policy::EveryStep => Charge::EverySlot,
            Policy::OnChange => Charge::Once,
            // Lasers are tuned flow by flow, and nothing waits for the end of a slot.
            Policy::PerPort | Policy::TwoTier => Charge::OncePerPort,
            // Light paths are of a fabric that has charges of its own.
            Policy::Free | Policy::EstablishRelease => Charge::Never,
        }
    }
}

impl From<(Policy, Paths)> for SetUps {
    /// Policies of other fabrics charge nothing for light paths.
    fn from((policy, paths): (Policy, Paths)) -> SetUps {
        match (policy, paths) {
            (Policy::EveryStep, _) => SetUps::EverySlot,
            (Policy::EstablishRelease, Paths::Released) => SetUps::Released,
            (Policy::EstablishRelease, Paths::Kept) => SetUps::Kept,
            (Policy::EstablishRelease, Paths::Warm) => SetUps::Warm,
            _ => SetUps::Never,
        }
    }
}

/// What a plan is to be good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aim {
    /// The size of the collective: for all_gather the bytes of one rank's block.
    pub size: Bytes,
    /// When reconfiguration is charged.
    pub policy: Policy,
    /// The most transfers that a plan may have, or orbits where it is folded: what fits into memory.
    /// Each takes about 25 bytes.
    pub most_transfers: u64,
}

/// One of the ways to carry the collective out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// As spelled, such as `relay_tree:pieces=2`.
    pub name: String,
    /// Its slots; where it was not made, the least it may take.
    pub slots: u64,
    /// Its time: simulated, or estimated where it was not made.
    pub time: Time,
    /// Whether it was made and simulated.
    pub made: bool,
}

/// The plan chosen, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The plan.
    pub plan: AnyPlan,
    /// Its simulated time.
    pub time: Time,
    /// The bound on its slots, for the plan's own number of pieces.
    pub slots_bound: bound::Bound,
    /// The bound on the time of any plan.
    pub time_bound: TimeBound,
    /// All candidates by time, the chosen one first.
    pub candidates: Vec<Candidate>,
    /// Why this one, in sentences.
    pub reasons: Vec<String>,
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

/// At most so many candidates are made and simulated.
const MOST_MADE: usize = 4;

/// How a candidate is made.
enum Recipe {
    Named(&'static str),
    RelayTree(u32),
    Levels(Layout),
    Grouped(grouped::Layout),
}

struct Prospect {
    recipe: Recipe,
    slots: u64,
    estimate: Time,
}

impl Prospect {
    fn name(&self) -> String {
        match &self.recipe {
            Recipe::Named(name) => (*name).into(),
            Recipe::RelayTree(1) => "relay_tree".into(),
            Recipe::RelayTree(pieces) => format!("relay_tree:pieces={pieces}"),
            Recipe::Levels(layout) => layout.spelling(),
            Recipe::Grouped(layout) => layout.spelling(),
        }
    }
}

/// The fastest plan found for an all_gather of whole blocks.
///
/// # Errors
/// Another collective, one with another number of ranks than the fabric, or a time beyond 64 bits.
pub fn auto(fabric: &Fabric, collective: Collective, aim: Aim) -> Result<Choice, PlannerError> {
    let ring = fabric.needed_ring("auto")?;
    if collective.kind() != CollectiveKind::AllGather {
        return Err(PlannerError::Collective {
            kind: collective.kind(),
            hint: "reduce_scatter is an all_gather reversed",
        });
    }
    capability::connected(ring)?;
    let mut prospects = prospects(ring, collective, aim)?;
    prospects.sort_by_key(|prospect| (prospect.estimate, prospect.slots));
    let mut best: Option<(AnyPlan, Time)> = None;
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut made = 0;
    for prospect in &prospects {
        let promising = best
            .as_ref()
            .is_none_or(|(_, time)| prospect.estimate < *time);
        let mut candidate = Candidate {
            name: prospect.name(),
            slots: prospect.slots,
            time: prospect.estimate,
            made: false,
        };
        if promising && (made < MOST_MADE || best.is_none()) {
            if let Some(mut plan) = make(fabric, collective, &prospect.recipe, aim)? {
                made += 1;
                let time = simulate::simulate(&plan, aim.size, aim.policy, "circuit")?.time;
                candidate.slots = plan.slots().into();
                candidate.time = time;
                candidate.made = true;
                if matches!(prospect.recipe, Recipe::Levels(_)) {
                    // Made with a shorter reach, perhaps.
                    candidate.name.clone_from(&plan.kept().algorithm);
                }
                if best.as_ref().is_none_or(|(_, least)| time < *least) {
                    plan.kept_mut().algorithm.clone_from(&candidate.name);
                    best = Some((plan, time));
                }
            } else {
                continue;
            }
        }
        candidates.push(candidate);
    }
    let Some((mut plan, time)) = best else {
        return Err(PlannerError::NothingFits {
            most: aim.most_transfers,
        });
    };
    plan.kept_mut().size = Some(aim.size);
    candidates.sort_by_key(|candidate| (!candidate.made, candidate.time, candidate.slots));
    let slots_bound = bound::best(ring, &plan.kept().schedule.collective);
    let time_bound = bound::time::best(ring, &collective, aim.size, aim.policy.into())?;
    let reasons = reasons(&plan, time, &candidates, &time_bound, aim);
    Ok(Choice {
        plan,
        time,
        slots_bound,
        time_bound,
        candidates,
        reasons,
    })
}

/// Why the first candidate was taken.
pub(super) fn reasons(
    plan: &AnyPlan,
    time: Time,
    candidates: &[Candidate],
    bound: &TimeBound,
    aim: Aim,
) -> Vec<String> {
    let least = bound.time;
    let above = if least > Time::ZERO {
        let gap = (time.seconds() / least.seconds() - 1.0) * 100.0;
        format!(", {gap:.1} % above the {} bound of {least}", bound.name)
    } else {
        String::new()
    };
    let mut reasons = vec![format!(
        "{} takes {time} in {} slots under {}{above}",
        plan.kept().algorithm,
        plan.slots(),
        aim.policy.name(),
    )];
    if let Some(next) = candidates.get(1) {
        let how = if next.made { "simulated" } else { "estimated" };
        reasons.push(format!(
            "next is {} with {} slots and {} ({how})",
            next.name, next.slots, next.time
        ));
    }
    reasons
}

fn make(
    fabric: &Fabric,
    collective: Collective,
    recipe: &Recipe,
    aim: Aim,
) -> Result<Option<AnyPlan>, PlannerError> {
    let cut = |pieces| collective.with_pieces(pieces);
    match recipe {
        Recipe::Named(name) => match named::plan(&Spec::new(name), fabric, collective) {
            Err(error) if named::does_not_fit(&error) => Ok(None),
            other => other.map(|plan| Some(AnyPlan::Full(plan))),
        },
        Recipe::RelayTree(pieces) => {
            match relay_tree_within(fabric, cut(*pieces)?, most_kept(aim, *pieces)) {
                Err(PlannerError::NotFound { .. } | PlannerError::TooLarge { .. }) => Ok(None),
                other => other.map(Some),
            }
        }
        Recipe::Levels(layout) => Ok(levels::plan(fabric, cut(layout.pieces)?, layout)),
        Recipe::Grouped(layout) => match grouped::all_gather(fabric, layout) {
            Err(PlannerError::NotFound { .. }) => Ok(None),
            other => other.map(|plan| Some(AnyPlan::Full(plan))),
        },
    }
}

/// The most transfers or orbits of a plan; whole blocks are not refused for the aim's sake.
fn most_kept(aim: Aim, pieces: u32) -> u64 {
    if pieces == 1 {
        MOST_KEPT
    } else {
        aim.most_transfers
    }
}

/// All candidates with their estimates.
fn prospects(
    ring: &WdmRing,
    collective: Collective,
    aim: Aim,
) -> Result<Vec<Prospect>, PlannerError> {
    let ranks = u64::from(ring.ranks);
    let mut prospects = Vec::new();
    let special = capability::is_special(ring);
    // Elsewhere the algorithms' own numbers are sharper.
    let least = if special && !ring.multicast {
        bound::best(ring, &collective).steps
    } else {
        0
    };
    for (name, slots, settings) in named::estimates(ring) {
        if ranks * ranks > MOST_KEPT {
            break;
        }
        let slots = slots.max(least);
        let estimate = estimate(ring, aim, slots, settings, 1)?;
        let recipe = Recipe::Named(name);
        prospects.push(Prospect {
            recipe,
            slots,
            estimate,
        });
    }
    if ranks < 2 {
        return Ok(prospects);
    }
    let pace = Pace::new(ring, aim.policy);
    let grouped = candidates::suits(ring)
        .then(|| search::layouts(ring, pace, search::Kind::AllGather, aim.size));
    for found in grouped.unwrap_or_default() {
        prospects.push(Prospect {
            estimate: Time::from_ps(found.time),
            slots: found.slots,
            recipe: Recipe::Grouped(found.layout),
        });
    }
    for pieces in pieces_to_try(ring.channels()) {
        let orbits = ranks * u64::from(pieces);
        if orbits > most_kept(aim, pieces) {
            break;
        }
        let kept = Kept::of(orbits * ranks, most_kept(aim, pieces));
        let Ok(cut) = collective.with_pieces(pieces) else {
            break;
        };
        if u64::from(pieces) > aim.size.get().max(1) {
            break;
        }
        let slots = bound::best(ring, &cut).steps;
        prospects.push(Prospect {
            recipe: Recipe::RelayTree(pieces),
            slots,
            // Lightpaths to neighbours over all channels never change; all others do.
            estimate: estimate(
                ring,
                aim,
                slots,
                if pieces >= ring.channels() { 1 } else { slots },
                pieces,
            )?,
        });
        if !ring.broken.is_empty() || capability::has_few_ports(ring) {
            continue;
        }
        for layout in levels::layouts(ring, pieces, levels::MOST_LEVELS, kept) {
            let slots = u64::from(layout.slots());
            let settings = layout.levels.len() as u64;
            prospects.push(Prospect {
                estimate: estimate(ring, aim, slots, settings, pieces)?,
                recipe: Recipe::Levels(layout),
                slots,
            });
        }
    }
    Ok(prospects)
}

/// The time of so many slots with so many settings of circuits, if lightpaths are as short as can
/// be.
fn estimate(
    ring: &WdmRing,
    aim: Aim,
    slots: u64,
    settings: u64,
    pieces: u32,
) -> Result<Time, UnitError> {
    let chunk = Bytes::new(aim.size.get() / u64::from(pieces));
    let sending = ring.rate.transmission(chunk)?;
    let hop = ring.conversion.plus(ring.propagation)?;
    let charged = match aim.policy {
        Policy::EveryStep => slots,
        // A port waits for nearly every change of a setting, for all of them are busy.
        Policy::OnChange | Policy::PerPort => settings,
        Policy::Free | Policy::TwoTier | Policy::EstablishRelease => 0,
    };
    sending
        .plus(hop)?
        .times(slots)?
        .plus(ring.reconfiguration.times(charged)?)
}
