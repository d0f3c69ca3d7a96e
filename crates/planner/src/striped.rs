//! Plans whose lightpaths are cut into stripes over wavelengths side by side.
//!
//! Let a plan use the channels 0..u of each direction, of c that can be used. Cut each of its chunks into k <= c / u
//! parts, and let part i travel where the chunk did, on the channel i u further on. Two lightpaths that shared neither a
//! link nor a channel in a slot do not now either: the parts with one i are a copy of the plan on channels of
//! their own. So there are as many slots, and transmission takes a k-th of the time in each. Cuts, limits of reach and
//! light trees are the same for every copy. Where ranks have p ports and at most s lightpaths at a time, k <= p / s. With
//! converters the plan is placed on wavelengths that it keeps, if it takes no more slots so.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{PlannerError, Question, ensure, ring_of};
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_plan::plan::{Lightpath, Plan, fold};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// The option of every named algorithm on a ring of wavelengths: the plan below.
pub(crate) const STRIPES: OptionRecord = OptionRecord::new(
    "stripes",
    "on a wdm_ring, wavelengths that carry the parts of each chunk side by side",
)
.range("1 to as many as the plan leaves free, all")
.default("1");

/// The most lightpaths that are written out one by one.
const MOST_FULL: u64 = 1 << 27;

/// The channels 0..u of a direction that a plan uses, as u; none where its light cannot be striped.
fn used(plan: &Plan) -> Option<u32> {
    let ring = ring_of(&plan.fabric)?;
    if !plan.schedule.is_in_single_chunks() {
        return None;
    }
    let mut lights = plan.light.iter();
    let used = lights.try_fold(0, |used, light| {
        Some(ring.usable_channel(*light)?.max(used))
    })?;
    (!plan.is_empty()).then_some(used + 1)
}

/// The most lightpaths that a rank sends, or receives, in a slot.
fn at_once(plan: &Plan) -> u32 {
    let mut lightpaths = FxHashSet::default();
    let mut ends: FxHashMap<(u32, u32, bool), u32> = FxHashMap::default();
    for index in 0..plan.len() {
        interrupt::check();
        let ((source, destination), slot) = (plan.schedule.ends(index), plan.slot[index]);
        if lightpaths.insert((slot, source, destination, plan.light[index])) {
            *ends.entry((slot, source, true)).or_default() += 1;
            *ends.entry((slot, destination, false)).or_default() += 1;
        }
    }
    ends.into_values().max().unwrap_or(1)
}

/// The most stripes that a plan leaves room for, at least 1.
fn most(plan: &Plan) -> u32 {
    let (Some(ring), Some(used)) = (ring_of(&plan.fabric), used(plan)) else {
        return 1;
    };
    let room = ring.channels() / used;
    match ring.ports {
        Some(ports) => room.min(ports / at_once(plan)).max(1),
        None => room,
    }
}

/// The plan on wavelengths that its light keeps, where it takes no more slots so.
fn unconverted(plan: Plan) -> Plan {
    let Some(ring) = ring_of(&plan.fabric).filter(|ring| ring.converters) else {
        return plan;
    };
    let keeping = Fabric::new(WdmRing {
        converters: false,
        ..ring.clone()
    });
    let schedule = plan.schedule.clone();
    match opticoll_placement::place_by_default(schedule, &keeping, plan.algorithm.clone()) {
        Ok(placed) if placed.slots() <= plan.slots() => Plan {
            fabric: plan.fabric,
            ..placed
        },
        _ => plan,
    }
}

/// The plan in as many stripes as there is room for, if the striped plan has no more transfers than the question allows;
/// otherwise as it is.
///
/// # Errors
/// A plan whose algorithm is no specification.
pub(crate) fn widest(whole: Plan, question: &Question<'_>) -> Result<Plan, PlannerError> {
    let whole = unconverted(whole);
    let stripes = most(&whole);
    let collective = &whole.schedule.collective;
    let pieces = collective.pieces().saturating_mul(stripes);
    let Some(used) = used(&whole).filter(|_| stripes > 1) else {
        return Ok(whole);
    };
    if collective.with_pieces(pieces).is_err() {
        return Ok(whole);
    }
    let folded = fold(&whole);
    let written = folded.as_ref().filter(|_| question.keeps_folds);
    let transfers = written.map_or(whole.len(), Plan::len) as u64;
    if transfers * u64::from(stripes) > question.most_transfers.min(MOST_FULL) {
        return Ok(whole);
    }
    let spec: Spec = whole.algorithm.parse()?;
    let mut plan = cut(folded.as_ref().unwrap_or(&whole), stripes, used)?;
    plan.algorithm = spec.with(STRIPES.name, stripes).to_string();
    Ok(plan)
}

/// The plan with each chunk in so many stripes, or as many as there is room for; folded where it looks the same from
/// every rank.
///
/// # Errors
/// More stripes than there is room for, or more lightpaths than fit into memory.
pub(crate) fn plan(plan: Plan, stripes: Option<u32>) -> Result<Plan, PlannerError> {
    if stripes == Some(1) {
        return Ok(plan);
    }
    let plan = unconverted(plan);
    let most = most(&plan);
    let stripes = stripes.unwrap_or(most);
    let ranks = plan.schedule.collective.ranks();
    let reason =
        format!("its lightpaths leave room for {most} on these wavelengths, not for {stripes}");
    ensure(stripes <= most, "stripes", ranks, reason)?;
    let Some(used) = used(&plan).filter(|_| stripes > 1) else {
        return Ok(plan);
    };
    if let Some(folded) = fold(&plan) {
        let rows = cut(&folded, stripes, used)?;
        return Ok(rows);
    }
    let transfers = plan.len() as u64 * u64::from(stripes);
    if transfers > MOST_FULL {
        return Err(PlannerError::TooLarge {
            transfers,
            most: MOST_FULL,
        });
    }
    cut(&plan, stripes, used)
}

fn cut(plan: &Plan, stripes: u32, used: u32) -> Result<Plan, PlannerError> {
    let collective = plan.schedule.collective;
    let pieces = collective.pieces().saturating_mul(stripes);
    let mut striped = plan.without_lightpaths();
    striped.repetition = plan.repetition;
    striped.schedule = Schedule::new(collective.with_pieces(pieces)?);
    striped.schedule.claims = Claims {
        chunks_sent_per_rank: plan
            .schedule
            .claims
            .chunks_sent_per_rank
            .map(|chunks| chunks * u64::from(stripes)),
        ..plan.schedule.claims.clone()
    };
    striped.reserve(plan.len() * stripes as usize);
    let Some(ring) = ring_of(&plan.fabric) else {
        return Ok(striped);
    };
    for step in 0..plan.schedule.steps() {
        striped.schedule.begin_step();
        for index in plan.schedule.step(step) {
            let whole = plan.lightpath(index);
            for stripe in 0..stripes {
                striped.push(Lightpath {
                    light: ring.further_usable(whole.light, stripe * used),
                    transfer: Transfer {
                        chunk: whole.transfer.chunk * stripes + stripe,
                        ..whole.transfer
                    },
                    ..whole
                });
            }
        }
    }
    Ok(striped)
}
