//! Pipelined plans as statements, and back: one statement for each lightpath of the first chunks.

use super::compress::{CopyShift, RepeatedLightpath, Repetition};
use crate::fabric::circuits::LightSharing;
use crate::fabric::light::{Light, LightKind, MOST_FIELDS};
use crate::plan::{PipelinedPlan, Plan};

/// The statement that stands for all copies of a first lightpath: over the channels of a fibre, the fibres, and then the slots.
pub(super) fn statement(plan: &PipelinedPlan, first: usize) -> RepeatedLightpath {
    let base = plan.first.lightpath(first);
    let no_shift = CopyShift {
        chunk: 0,
        source: 0,
        destination: 0,
        slot: 0,
        turn: 0,
        light: [0; MOST_FIELDS],
    };
    let mut repetitions = Vec::new();
    let mut stripes = 1;
    for (field, count) in stripes_by_field(plan, base.light) {
        let mut light = [0; MOST_FIELDS];
        light[field] = 1;
        repetitions.push(Repetition {
            count,
            shift: CopyShift {
                chunk: stripes * plan.pieces,
                light,
                ..no_shift
            },
        });
        stripes *= count;
    }
    repetitions.push(Repetition {
        count: plan.pieces,
        shift: CopyShift {
            chunk: 1,
            slot: 1,
            ..no_shift
        },
    });
    repetitions.retain(|repetition| repetition.count > 1);
    RepeatedLightpath { base, repetitions }
}

/// The fields of light over which stripes go, the innermost first, with how many values of each. A fibre is full before the
/// next one begins.
fn stripes_by_field(plan: &PipelinedPlan, light: Light) -> Vec<(usize, u32)> {
    let Some(kind) = plan.first.fabric.light() else {
        return Vec::new();
    };
    let wavelengths = match plan.first.fabric.numbered_channels() {
        Some(channels) => {
            let last = last_shift(kind).unwrap_or(0);
            let on_fibre = |&by: &u32| {
                let beside = channels.further(light, by);
                kind.value(beside, last) == kind.value(light, last) + by
            };
            (0..plan.stripes).take_while(on_fibre).count() as u32
        }
        None => plan.stripes,
    };
    let mut fields = kind.fields.iter().enumerate().rev();
    let mut counts = [wavelengths.max(1), plan.stripes / wavelengths.max(1)].into_iter();
    let mut all = Vec::new();
    for (field, _) in fields.by_ref().filter(|(_, field)| field.shifts) {
        all.extend(counts.next().map(|count| (field, count)));
    }
    all
}

/// The last field of light that counts on.
fn last_shift(kind: &LightKind) -> Option<usize> {
    kind.fields.iter().rposition(|field| field.shifts)
}

/// First lightpaths as they are found among the statements of a file: every statement says the same stripes and pieces.
pub(super) struct PipelineReader {
    pub(super) plan: PipelinedPlan,
    pub(super) lightpaths: u64,
}

impl PipelineReader {
    /// A pipelined plan with this head, if its fabric has channels side by side.
    pub(super) fn new(head: Plan) -> Option<PipelineReader> {
        head.fabric.numbered_channels()?;
        let plan = PipelinedPlan {
            first: head,
            stripes: 1,
            pieces: 1,
        };
        Some(PipelineReader {
            plan,
            lightpaths: 0,
        })
    }

    /// Takes a statement; false where it is none of a pipelined plan.
    pub(super) fn gather(&mut self, block: &RepeatedLightpath) -> bool {
        let Some((pieces, stripes)) = block.repetitions.split_last() else {
            return false;
        };
        let counts = stripes.iter().map(|one| u64::from(one.count));
        if self.plan.first.is_empty() {
            let stripes = counts.fold(1, u64::saturating_mul);
            self.plan.stripes = u32::try_from(stripes).unwrap_or(u32::MAX);
            self.plan.pieces = pieces.count;
        }
        let first = self.plan.first.len();
        self.plan.first.push(block.base);
        self.lightpaths += block.lightpaths();
        pieces.shift.slot == 1 && statement(&self.plan, first) == *block
    }

    /// Whether two lightpaths of the first chunks are on one circuit, or could be branches of one light tree, on any of their
    /// stripes.
    fn shares_circuits(&self) -> bool {
        let PipelinedPlan { first, stripes, .. } = &self.plan;
        let sharing = first.fabric.circuits().map(|circuits| circuits.sharing());
        let has_trees = matches!(sharing, Some(LightSharing::Tree { .. }));
        let circuit = |index: usize| {
            let (source, destination) = first.schedule.ends(index);
            let ends = (source, (!has_trees).then_some(destination));
            (ends, first.light[index])
        };
        let mut circuits: Vec<_> = (0..first.len()).map(circuit).collect();
        circuits.sort_unstable();
        let Some(channels) = first.fabric.numbered_channels() else {
            return true;
        };
        circuits.windows(2).any(|pair| {
            let [(ends, light), (others, other)] = [pair[0], pair[1]];
            let numbers = channels
                .channel_number(light)
                .zip(channels.channel_number(other));
            let between = numbers.map(|(from, to)| to.saturating_sub(from));
            let beside = between.filter(|between| between < stripes);
            let meets = |by| channels.further(light, by) == other;
            ends == others && (light == other || beside.is_some_and(meets))
        })
    }

    /// The plan, where there is any lightpath, each step is a slot, and the verifier knows the form: chunks and circuits of their own
    /// for all first lightpaths.
    pub(super) fn finish(self) -> Option<PipelinedPlan> {
        let first = &self.plan.first;
        let copies = self.plan.copies();
        let pieces = u64::from(first.schedule.collective.pieces());
        let channels = first.fabric.numbered_channels()?;
        let is_first = |index: usize| {
            let transfer = first.schedule.transfer(index);
            // Light on no channel has no channels beside it.
            let has_stripes =
                self.plan.stripes == 1 || channels.channel_number(first.light[index]).is_some();
            u64::from(transfer.chunk) % copies == 0 && transfer.count == 1 && has_stripes
        };
        if pieces % copies != 0 || !(0..first.len()).all(is_first) {
            return None;
        }
        if self.shares_circuits() {
            return None;
        }
        let is_by_slot = first.step_slots.iter().all(|slots| slots.len() == 1);
        let last = u64::from(*first.slot.last()?);
        let ends = last + u64::from(self.plan.pieces) <= u64::from(first.slots());
        (is_by_slot && ends).then_some(self.plan)
    }
}
