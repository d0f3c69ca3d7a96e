//! Plans whose chunks are divided into stripes, which are sent on several wavelengths at the same
//! time.
//!
//! Let a plan use the channels 0 to u - 1 of each direction, and let each direction have c usable
//! channels. Divide each chunk into k <= c / u stripes. A chunk that travels on channel x becomes
//! stripes 0 to k - 1. Stripe i travels on channel x + i u, on the same route. All stripes with the
//! same i form a copy of the plan on channels of its own, so lightpaths of different copies do not
//! collide. The number of slots is unchanged, and each slot needs a k-th of the transmission time.
//! Cuts, limits of reach and light trees affect every copy in the same way. If ranks have p ports
//! and send or receive at most s lightpaths per slot, k <= p / s. On a ring with converters, the
//! plan is first placed on fixed wavelengths if this needs no more slots.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{PlannerError, PlanningProblem, ensure, ring_of};
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wdm_ring::WdmRing;
use opticoll_plan::plan::{Lightpath, Plan, fold};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// Option `stripes`, the number of stripes, of every algorithm on a WDM ring.
pub(crate) const STRIPES: OptionRecord = OptionRecord::new(
    "stripes",
    "number of wavelengths of a wdm_ring that carry parts of each chunk in parallel",
)
.range("1 to the number that the plan leaves free, all")
.default("1");

/// Maximum number of lightpaths of a striped plan without rotation symmetry. At about 25 bytes per
/// lightpath, they need 3.4 GB.
const MAX_LIGHTPATHS: u64 = 1 << 27;

/// Returns the number u if a plan uses the channels 0 to u - 1 in each direction. `None` if the
/// plan cannot be striped.
fn used_channels(plan: &Plan) -> Option<u32> {
    let ring = ring_of(&plan.fabric)?;
    if !plan.schedule.has_single_chunks() {
        return None;
    }
    let mut lights = plan.light.iter();
    let used_channels = lights.try_fold(0, |used_channels, light| {
        Some(ring.usable_channel(*light)?.max(used_channels))
    })?;
    (!plan.is_empty()).then_some(used_channels + 1)
}

/// Returns the maximum number of lightpaths that a rank sends in a slot or receives in a slot.
fn max_lightpaths_of_rank(plan: &Plan) -> u32 {
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

/// Returns the maximum number of stripes per chunk.
fn max_stripes(plan: &Plan) -> u32 {
    let (Some(ring), Some(used_channels)) = (ring_of(&plan.fabric), used_channels(plan)) else {
        return 1;
    };
    let room = ring.channels() / used_channels;
    match ring.ports {
        Some(ports) => room.min(ports / max_lightpaths_of_rank(plan)).max(1),
        None => room,
    }
}

/// Replaces converted wavelengths by fixed wavelengths if the plan then has no more slots.
fn with_fixed_wavelengths(plan: Plan) -> Plan {
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

/// Returns an upper bound on the number of stripes that [`Striping::widest`] chooses for a plan of
/// at least `lightpaths` lightpaths. The bound follows from the maximum number of transfers.
pub(crate) fn max_by_transfers(lightpaths: u64, problem: &PlanningProblem<'_>) -> u64 {
    let written = match problem.keeps_representatives {
        true => lightpaths / u64::from(problem.fabric.ranks()).max(1),
        false => lightpaths,
    };
    (problem.max_transfers.min(MAX_LIGHTPATHS) / written.max(1)).max(1)
}

pub(crate) struct Striping {
    /// The plan before its chunks are divided into stripes.
    pub(crate) whole: Plan,
    /// Representatives of the plan, all with source 0, if the plan is rotation-symmetric.
    representatives: Option<Plan>,
    stripes: u32,
}

impl Striping {
    /// Chooses the maximum number of stripes for a plan. Fails if there are no free channels for
    /// two stripes, if the striped plan would have too many transfers, or if ports are limited; the
    /// error is the unchanged plan. With limited ports, stripes share the ports, so the time of one
    /// stripe is not the time of the striped plan.
    pub(crate) fn widest(
        whole: Plan,
        problem: &PlanningProblem<'_>,
    ) -> Result<Striping, Box<Plan>> {
        if ring_of(&whole.fabric).is_some_and(|ring| ring.ports.is_some()) {
            return Err(whole.into());
        }
        let whole = with_fixed_wavelengths(whole);
        let stripes = self::max_stripes(&whole);
        let collective = &whole.schedule.collective;
        let pieces = collective.pieces().saturating_mul(stripes);
        if stripes == 1 || collective.with_pieces(pieces).is_err() {
            return Err(whole.into());
        }
        let representatives = fold(&whole);
        let written = representatives
            .as_ref()
            .filter(|_| problem.keeps_representatives);
        let transfers = written.map_or(whole.len(), Plan::len) as u64;
        if transfers * u64::from(stripes) > problem.max_transfers.min(MAX_LIGHTPATHS) {
            return Err(whole.into());
        }
        Ok(Striping {
            whole,
            representatives,
            stripes,
        })
    }

    pub(crate) fn slots(&self) -> u32 {
        self.whole.slots()
    }

    /// Returns a smaller and a larger size. With the smaller size, the plan of undivided chunks
    /// takes at most as long as the striped plan with size `size`; with the larger size, at least
    /// as long.
    ///
    /// The two sizes are equal in three cases: all stripes have equal bytes; slots last as long as
    /// their longest stripe; or one stripe contains the longest part of every chunk.
    pub(crate) fn sizes(&self, size: Bytes, has_barriers: bool) -> [Bytes; 2] {
        let collective = &self.whole.schedule.collective;
        let stripes = u64::from(self.stripes);
        let (parts, bytes) = (collective.parts(), collective.payload(size).get());
        let (shortest, longer) = (bytes / (parts * stripes), bytes % (parts * stripes));
        // At size `upper`, chunk k has as many bytes as the longest stripe of chunk k.
        let upper = parts * shortest + longer.min(parts);
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
        let is_exact = longer == 0 || lasts_as_the_longest || (0..stripes).any(has_longest_parts);
        let lower = if is_exact { upper } else { parts * shortest };
        [Bytes::new(lower), Bytes::new(upper)]
    }

    pub(crate) fn plan(&self) -> Result<Plan, PlannerError> {
        let stripes = self.stripes;
        let used_channels = used_channels(&self.whole).unwrap_or(1);
        let mut plan = match &self.representatives {
            Some(rows) => cut(rows, stripes, used_channels)?,
            None => cut(&self.whole, stripes, used_channels)?,
        };
        plan.algorithm = self.name()?;
        Ok(plan)
    }

    pub(crate) fn name(&self) -> Result<String, PlannerError> {
        let spec: Spec = self.whole.algorithm.parse()?;
        Ok(spec.with(STRIPES.name, self.stripes).to_string())
    }
}

/// Divides each chunk of a plan into `stripes` stripes, or into as many as possible if `stripes` is
/// `None`. Fails if there are too few channels or too many lightpaths. If the plan is
/// rotation-symmetric, the result contains representatives only.
pub(crate) fn plan(plan: Plan, stripes: Option<u32>) -> Result<Plan, PlannerError> {
    if stripes == Some(1) {
        return Ok(plan);
    }
    let plan = with_fixed_wavelengths(plan);
    let max_stripes = max_stripes(&plan);
    let stripes = stripes.unwrap_or(max_stripes);
    let ranks = plan.schedule.collective.ranks();
    let reason = format!(
        "its lightpaths leave room for {max_stripes} stripes on these wavelengths, not for \
         {stripes}"
    );
    ensure(stripes <= max_stripes, "stripes", ranks, reason)?;
    let Some(used_channels) = used_channels(&plan).filter(|_| stripes > 1) else {
        return Ok(plan);
    };
    if let Some(representatives) = fold(&plan) {
        return cut(&representatives, stripes, used_channels);
    }
    let transfers = plan.len() as u64 * u64::from(stripes);
    if transfers > MAX_LIGHTPATHS {
        return Err(PlannerError::TooLarge {
            transfers,
            most: MAX_LIGHTPATHS,
        });
    }
    cut(&plan, stripes, used_channels)
}

fn cut(plan: &Plan, stripes: u32, used_channels: u32) -> Result<Plan, PlannerError> {
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
                    light: ring.shift_usable_channel(whole.light, stripe * used_channels),
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
    use crate::PlanningProblem;

    use opticoll_base::units::{Bytes, Time};
    use opticoll_fabric::fabric::Fabric;
    use opticoll_plan::collective::{Collective, CollectiveKind};
    use opticoll_plan::plan::Plan;
    use opticoll_simulate::{Policy, TimingModel};

    fn time(plan: &Plan, size: Bytes, method: &TimingModel) -> Time {
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
                let method = TimingModel {
                    policy: Some(policy),
                    ..TimingModel::default()
                };
                for bytes in [1, 5, 31, 32, 33, 100, 1000, 1024, 4097, 12345, 65536] {
                    let size = Bytes::new(bytes);
                    let problem = PlanningProblem::new(&fabric, collective, size, &method, &|_| {});
                    let problem = problem.expect("a connected ring");
                    let spec = name.parse().expect("a specification");
                    let schedule =
                        opticoll_algorithms::build(&spec, collective, &fabric).expect(name);
                    let plan = opticoll_placement::place_by_default(schedule, &fabric, name.into());
                    let Ok(striping) = Striping::widest(plan.expect(name), &problem) else {
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
        // The two bounds differ only if ports do not wait for each other between slots.
        let doubts: Vec<_> = seen.keys().filter(|(_, exact)| !exact).collect();
        assert_eq!(doubts, [&(false, false)]);
        assert!(seen[&(false, true)] > seen[&(false, false)], "{seen:?}");
    }
}
