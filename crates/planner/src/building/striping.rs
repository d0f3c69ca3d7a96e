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
use opticoll_base::units::Bytes;
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
    if !plan.schedule.has_single_chunks() {
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

/// The most stripes into which [`Striping::widest`] can cut a plan of at least so many lightpaths, by the transfers that the question
/// allows.
pub(crate) fn most_by_transfers(lightpaths: u64, question: &Question<'_>) -> u64 {
    let written = match question.keeps_folds {
        true => lightpaths / u64::from(question.fabric.ranks()).max(1),
        false => lightpaths,
    };
    (question.most_transfers.min(MOST_FULL) / written.max(1)).max(1)
}

/// A plan whose chunks are to be cut into so many stripes.
pub(crate) struct Striping {
    /// The plan of whole chunks.
    pub(crate) whole: Plan,
    /// What leaves rank 0, where the plan looks the same from every rank.
    folded: Option<Plan>,
    stripes: u32,
}

impl Striping {
    /// In as many stripes as there is room for, if that is more than one and the striped plan has no more transfers than the question
    /// allows; otherwise the plan as it is. Where ports are limited, stripes share them, and one stripe does not tell the time of all.
    pub(crate) fn widest(whole: Plan, question: &Question<'_>) -> Result<Striping, Box<Plan>> {
        if ring_of(&whole.fabric).is_some_and(|ring| ring.ports.is_some()) {
            return Err(whole.into());
        }
        let whole = unconverted(whole);
        let stripes = self::most(&whole);
        let collective = &whole.schedule.collective;
        let pieces = collective.pieces().saturating_mul(stripes);
        if stripes == 1 || collective.with_pieces(pieces).is_err() {
            return Err(whole.into());
        }
        let folded = fold(&whole);
        let written = folded.as_ref().filter(|_| question.keeps_folds);
        let transfers = written.map_or(whole.len(), Plan::len) as u64;
        if transfers * u64::from(stripes) > question.most_transfers.min(MOST_FULL) {
            return Err(whole.into());
        }
        Ok(Striping {
            whole,
            folded,
            stripes,
        })
    }

    /// The slots of the striped plan.
    pub(crate) fn slots(&self) -> u32 {
        self.whole.slots()
    }

    /// Sizes with which the plan of whole chunks takes no longer, and no less time, than the striped one with `size`.
    /// They are equal where the stripes are alike; where slots last as long as their longest stripe; and where one
    /// stripe has the longest part of every chunk.
    pub(crate) fn sizes(&self, size: Bytes, has_barriers: bool) -> [Bytes; 2] {
        let collective = &self.whole.schedule.collective;
        let stripes = u64::from(self.stripes);
        let (parts, bytes) = (collective.parts(), collective.payload(size).get());
        let (shortest, longer) = (bytes / (parts * stripes), bytes % (parts * stripes));
        // The longest part of chunk k has what chunk k of this size has.
        let most = parts * shortest + longer.min(parts);
        let has_longest_parts = |stripe: u64| {
            let edge =
                |part: u64| u128::from(longer) * u128::from(part) / u128::from(parts * stripes);
            let edge_of_chunk =
                |chunk: u64| u128::from(longer.min(parts)) * u128::from(chunk) / u128::from(parts);
            (0..parts).all(|chunk| {
                let part = chunk * stripes + stripe;
                edge(part + 1) - edge(part) == edge_of_chunk(chunk + 1) - edge_of_chunk(chunk)
            })
        };
        let lasts_as_the_longest = has_barriers && self.whole.has_one_chunk_per_lightpath();
        let alike = longer == 0 || lasts_as_the_longest || (0..stripes).any(has_longest_parts);
        let least = if alike { most } else { parts * shortest };
        [Bytes::new(least), Bytes::new(most)]
    }

    /// The striped plan.
    ///
    /// # Errors
    /// More chunks than 32 bits count.
    pub(crate) fn plan(&self) -> Result<Plan, PlannerError> {
        let stripes = self.stripes;
        let used = used(&self.whole).unwrap_or(1);
        let mut plan = match &self.folded {
            Some(rows) => cut(rows, stripes, used)?,
            None => cut(&self.whole, stripes, used)?,
        };
        plan.algorithm = self.name()?;
        Ok(plan)
    }

    /// The name of the striped plan.
    ///
    /// # Errors
    /// A plan whose algorithm is no specification.
    pub(crate) fn name(&self) -> Result<String, PlannerError> {
        let spec: Spec = self.whole.algorithm.parse()?;
        Ok(spec.with(STRIPES.name, self.stripes).to_string())
    }
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
                    light: ring.shift_usable_channel(whole.light, stripe * used),
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::Striping;
    use crate::Question;

    use opticoll_base::units::{Bytes, Time};
    use opticoll_fabric::fabric::Fabric;
    use opticoll_plan::collective::{Collective, CollectiveKind};
    use opticoll_plan::plan::Plan;
    use opticoll_simulate::{Method, Policy};

    fn time(plan: &Plan, size: Bytes, method: &Method) -> Time {
        let outcome = opticoll_simulate::run_watched(plan, size, method, &mut |_| true);
        outcome.expect("the plan fits the fabric").time
    }

    #[test]
    fn whole_chunks_take_as_long_as_their_stripes() {
        let fabric = Fabric::parse("wdm_ring:ranks=6,wavelengths=16").expect("a ring");
        let names = [
            (CollectiveKind::Broadcast, "chain:segments=3"),
            (CollectiveKind::Broadcast, "double_tree:segments=2"),
            (CollectiveKind::Reduce, "chain:segments=7"),
            (CollectiveKind::AllGather, "ring_bidirectional"),
            (CollectiveKind::AllGather, "bruck"),
            (CollectiveKind::AllReduce, "ring"),
            (CollectiveKind::Scatter, "direct"),
            (CollectiveKind::AllToAll, "pairwise"),
        ];
        let mut seen = BTreeMap::new();
        for (kind, name) in names {
            let collective = Collective::new(kind, 6).expect("six ranks");
            for policy in [
                Policy::EveryStep,
                Policy::OnChange,
                Policy::Free,
                Policy::PerPort,
            ] {
                let method = Method {
                    policy: Some(policy),
                    ..Method::default()
                };
                for bytes in [1, 5, 31, 32, 33, 100, 1000, 1024, 4097, 12345, 65536] {
                    let size = Bytes::new(bytes);
                    let question = Question::new(&fabric, collective, size, &method, &|_| {});
                    let question = question.expect("a connected ring");
                    let spec = name.parse().expect("a specification");
                    let schedule =
                        opticoll_algorithms::build(&spec, collective, &fabric).expect(name);
                    let plan = opticoll_placement::place_by_default(schedule, &fabric, name.into());
                    let Ok(striping) = Striping::widest(plan.expect(name), &question) else {
                        panic!("{name} has room for stripes");
                    };
                    let has_barriers = policy != Policy::PerPort;
                    let [smaller, larger] = striping.sizes(size, has_barriers);
                    let striped = striping.plan().expect(name);
                    let exact = time(&striped, size, &method);
                    let least = time(&striping.whole, smaller, &method);
                    let most = time(&striping.whole, larger, &method);
                    let case = format!("{name} {bytes} {policy:?}: {least} {exact} {most}");
                    assert!(least <= exact && exact <= most, "{case}");
                    *seen.entry((has_barriers, smaller == larger)).or_insert(0) += 1;
                }
            }
        }
        // Only ports that do not wait for one another leave a doubt.
        let doubts: Vec<_> = seen.keys().filter(|(_, exact)| !exact).collect();
        assert_eq!(doubts, [&(false, false)]);
        assert!(seen[&(false, true)] > seen[&(false, false)], "{seen:?}");
    }
}
