//! Plans whose lightpaths are cut into stripes over wavelengths side by side.
//!
//! Let a plan use the channels 0..u of each direction, of c. Cut each of its chunks into k <= c / u parts, and
//! let part i travel where the chunk did, on the channel i u further on. Two lightpaths that shared neither a
//! link nor a channel in a slot do not now either: the parts with one i are a copy of the plan on channels of
//! their own. So there are as many slots, and transmission takes a k-th of the time in each.

use super::{PlannerError, Question};
use crate::algorithm::AlgorithmError;
use crate::fabric::Light;
use crate::family::wdm_ring::{CONVERTED, WdmLight, WdmRing};
use crate::plan::{AnyPlan, FoldedPlan, Lightpath, Plan, fold};
use crate::schedule::{Claims, Schedule, Transfer};
use crate::spec::{OptionRecord, Spec};
use crate::units::Bytes;

/// The option of every named algorithm on a ring of wavelengths: the plan below.
pub(super) const STRIPES: OptionRecord = OptionRecord::new(
    "stripes",
    "on a wdm_ring, wavelengths that carry the parts of each chunk side by side",
)
.range("1 to as many as the plan leaves free, all")
.default("1");

/// The most lightpaths that are written out one by one.
const MOST_FULL: u64 = 1 << 27;

/// The channels 0..u of a direction that a plan uses, as u; none where its light cannot be striped.
fn used(plan: &Plan) -> Option<u32> {
    let ring = plan.fabric.downcast::<WdmRing>()?;
    let single = plan.schedule.is_in_single_chunks();
    let light = plan.light.iter().map(|light| WdmLight::from(*light));
    let converted = light.clone().any(|light| light.wavelength == CONVERTED);
    if !single || !ring.is_even() || ring.ports.is_some() || converted {
        return None;
    }
    light.map(|light| channel(ring, light) + 1).max()
}

fn channel(ring: &WdmRing, light: WdmLight) -> u32 {
    u32::from(light.fibre) * ring.wavelengths + u32::from(light.wavelength)
}

/// The most stripes that a plan leaves room for, at least 1.
pub(super) fn most(plan: &Plan) -> u32 {
    let channels = plan
        .fabric
        .downcast::<WdmRing>()
        .map_or(1, WdmRing::channels);
    used(plan).map_or(1, |used| channels / used)
}

/// A plan whose chunks are to be cut into so many stripes.
pub(super) struct Striping {
    /// The plan of whole chunks.
    pub(super) whole: Plan,
    /// What leaves rank 0, where the plan looks the same from every rank.
    orbits: Option<Plan>,
    stripes: u32,
}

impl Striping {
    /// In as many stripes as there is room for, if that is more than one and the striped plan has no more transfers than the question
    /// allows; otherwise the plan as it is.
    pub(super) fn widest(whole: Plan, question: &Question<'_>) -> Result<Striping, Box<Plan>> {
        let stripes = self::most(&whole);
        let collective = &whole.schedule.collective;
        let pieces = collective.pieces().saturating_mul(stripes);
        if stripes == 1 || collective.with_pieces(pieces).is_err() {
            return Err(whole.into());
        }
        let orbits = fold(&whole).map(|folded| folded.orbits);
        let written = orbits.as_ref().filter(|_| question.keeps_folds);
        let transfers = written.map_or(whole.len(), Plan::len) as u64;
        if transfers * u64::from(stripes) > question.most_transfers.min(MOST_FULL) {
            return Err(whole.into());
        }
        Ok(Striping {
            whole,
            orbits,
            stripes,
        })
    }

    /// The slots of the striped plan.
    pub(super) fn slots(&self) -> u32 {
        self.whole.slots()
    }

    /// A size with which the plan of whole chunks takes no longer than the striped one with `size`, and whether it takes as
    /// long.
    pub(super) fn narrow(&self, size: Bytes) -> (Bytes, bool) {
        let collective = &self.whole.schedule.collective;
        let chunk = collective.least_chunk_bytes(size).get();
        let uniform = collective.uniform_chunk_bytes(size).is_some();
        let stripe = chunk / u64::from(self.stripes);
        let all_alike = uniform && chunk % u64::from(self.stripes) == 0;
        (collective.size_of_chunks(Bytes::new(stripe)), all_alike)
    }

    /// A size with which the plan of whole chunks takes no less time than the striped one, whose shortest stripes have the bytes of
    /// `shortest`: chunks differ by a byte, and so do their stripes.
    pub(super) fn a_byte_more(&self, shortest: Bytes) -> Bytes {
        let collective = &self.whole.schedule.collective;
        let stripe = collective.least_chunk_bytes(shortest).get();
        collective.size_of_chunks(Bytes::new(stripe + 1))
    }

    /// The striped plan.
    ///
    /// # Errors
    /// More chunks than 32 bits count.
    pub(super) fn plan(&self) -> Result<AnyPlan, PlannerError> {
        let stripes = self.stripes;
        let used = used(&self.whole).unwrap_or(1);
        let mut plan = match &self.orbits {
            Some(orbits) => AnyPlan::Folded(FoldedPlan {
                orbits: cut(orbits, stripes, used)?,
            }),
            None => AnyPlan::Full(cut(&self.whole, stripes, used)?),
        };
        plan.kept_mut().algorithm = self.name()?;
        Ok(plan)
    }

    /// The name of the striped plan.
    ///
    /// # Errors
    /// A plan whose algorithm is no specification.
    pub(super) fn name(&self) -> Result<String, PlannerError> {
        let spec: Spec = self.whole.algorithm.parse()?;
        Ok(spec.with(STRIPES.name, self.stripes).to_string())
    }
}

/// The plan with each chunk in so many stripes; folded where it looks the same from every rank.
///
/// # Errors
/// More stripes than there is room for, or more lightpaths than fit into memory.
pub(super) fn plan(plan: Plan, stripes: u32) -> Result<AnyPlan, PlannerError> {
    let most = most(&plan);
    if stripes > most {
        let reason =
            format!("its lightpaths leave room for {most} on these wavelengths, not for {stripes}");
        return Err(AlgorithmError::Refused {
            name: "stripes",
            ranks: plan.schedule.collective.ranks(),
            reason,
        }
        .into());
    }
    let Some(used) = used(&plan).filter(|_| stripes > 1) else {
        return Ok(AnyPlan::Full(plan));
    };
    if let Some(folded) = fold(&plan) {
        let orbits = cut(&folded.orbits, stripes, used)?;
        return Ok(AnyPlan::Folded(FoldedPlan { orbits }));
    }
    let transfers = plan.len() as u64 * u64::from(stripes);
    if transfers > MOST_FULL {
        return Err(PlannerError::TooLarge {
            transfers,
            most: MOST_FULL,
        });
    }
    cut(&plan, stripes, used).map(AnyPlan::Full)
}

fn cut(plan: &Plan, stripes: u32, used: u32) -> Result<Plan, PlannerError> {
    let collective = plan.schedule.collective;
    let pieces = collective.pieces().saturating_mul(stripes);
    let mut striped = plan.without_lightpaths();
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
    let Some(ring) = plan.fabric.downcast::<WdmRing>() else {
        return Ok(striped);
    };
    for step in 0..plan.schedule.steps() {
        striped.schedule.begin_step();
        for index in plan.schedule.step(step) {
            let whole = plan.lightpath(index);
            let light = WdmLight::from(whole.light);
            for stripe in 0..stripes {
                let beside = channel(ring, light) + stripe * used;
                let (fibre, wavelength) = ring.channel(beside);
                striped.push(Lightpath {
                    light: Light::from(WdmLight {
                        fibre,
                        wavelength,
                        ..light
                    }),
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
