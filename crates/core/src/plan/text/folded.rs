//! Orbits of folded plans as statements, and back.

use super::compress::{CopyShift, RepeatedLightpath, Repetition};
use crate::collective::CollectiveKind;
use crate::fabric::light::{LightKind, MOST_FIELDS};
use crate::interrupt;
use crate::plan::folded::chunks_per_rank;
use crate::plan::{FoldedPlan, Plan};

/// The statements that stand for an orbit with all rotations.
///
/// Those on one channel leave every l-th rank; the ranks in between are on the channels beside it, as
/// far as these are one further in the last field of light that counts on: on one fibre. An orbit that does not close, for l does not divide N, is written out.
pub(super) fn statements(plan: &FoldedPlan, orbit: usize) -> Vec<RepeatedLightpath> {
    let ranks = plan.orbits.fabric.ranks();
    let span = plan.span(orbit);
    if ranks % span != 0 {
        let alone = |source| RepeatedLightpath {
            base: plan.copy(orbit, source),
            repetitions: Vec::new(),
        };
        return (0..ranks).map(alone).collect();
    }
    let last = last_shift(plan);
    let mut blocks: Vec<RepeatedLightpath> = Vec::new();
    let mut next = None;
    for source in 0..span {
        interrupt::check();
        let base = plan.copy(orbit, source);
        match blocks.last_mut() {
            Some(block) if next == Some(base.light) => block.repetitions[1].count += 1,
            _ => blocks.push(RepeatedLightpath {
                base,
                repetitions: vec![turns(plan, ranks / span, span, 0), turns(plan, 1, 1, 1)],
            }),
        }
        next = last.map(|(kind, field)| {
            let value = kind.value(base.light, field);
            kind.with(
                base.light,
                field,
                (value + 1).min(kind.fields[field].most()),
            )
        });
    }
    for block in &mut blocks {
        block.repetitions.retain(|repetition| repetition.count > 1);
    }
    blocks
}

/// The last field of light that counts on.
fn last_shift(plan: &FoldedPlan) -> Option<(&'static LightKind, usize)> {
    let kind = plan.orbits.fabric.light()?;
    let field = kind.fields.iter().rposition(|field| field.shifts)?;
    Some((kind, field))
}

/// So many rotations, each by so many ranks and channels.
fn turns(plan: &FoldedPlan, count: u32, ranks: u32, channels: u32) -> Repetition {
    let collective = plan.orbits.schedule.collective;
    // The blocks of an all_to_all do not move by the same number of chunks.
    let (chunks, turn) = match collective.kind() {
        CollectiveKind::AllToAll => (0, ranks),
        _ => (chunks_per_rank(&collective).unwrap_or(0) * ranks, 0),
    };
    let mut light = [0; MOST_FIELDS];
    if let Some((_, field)) = last_shift(plan) {
        light[field] = channels;
    }
    Repetition {
        count,
        shift: CopyShift {
            chunk: chunks,
            source: if turn > 0 { 0 } else { ranks },
            destination: if turn > 0 { 0 } else { ranks },
            slot: 0,
            turn,
            light,
        },
    }
}

/// Orbits as they are found among the statements of a file.
///
/// The first statement of an orbit begins at rank 0 and hence says what the orbit is; the file holds
/// the orbit if this and the statements that follow are those that are written for it.
pub(super) struct OrbitReader {
    pub(super) plan: FoldedPlan,
    pub(super) lightpaths: u64,
    /// What has to follow for the last orbit to be complete, in reverse order.
    awaited: Vec<RepeatedLightpath>,
}

impl OrbitReader {
    /// A folded plan with this head, if its fabric and its collective look the same from every rank.
    pub(super) fn new(orbits: Plan) -> Option<OrbitReader> {
        orbits.fabric.rotation()?;
        chunks_per_rank(&orbits.schedule.collective)?;
        Some(OrbitReader {
            plan: FoldedPlan { orbits },
            lightpaths: 0,
            awaited: Vec::new(),
        })
    }

    /// Whether the last orbit is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.awaited.is_empty()
    }

    /// Takes a statement; false where it does not belong to an orbit.
    pub(super) fn gather(&mut self, block: &RepeatedLightpath) -> bool {
        if self.awaited.is_empty() {
            let orbit = self.plan.orbits.len();
            self.plan.orbits.push(block.base);
            if !self.may_begin(orbit) {
                return false;
            }
            self.awaited = statements(&self.plan, orbit);
            self.awaited.reverse();
        }
        self.lightpaths += block.lightpaths();
        self.awaited.pop().as_ref() == Some(block)
    }

    /// Whether a lightpath leaves rank 0 for another, and its rotations close.
    fn may_begin(&self, orbit: usize) -> bool {
        let orbits = &self.plan.orbits;
        let transfer = orbits.schedule.transfer(orbit);
        let closes = orbits.fabric.ranks() % self.plan.span(orbit) == 0;
        transfer.source == 0 && transfer.destination != 0 && closes
    }
}
