//! Conversion between rows that stand for several lightpaths and statements of a plan file.

use super::compress::{CopyShift, RepeatedLightpath, Repetition};
use crate::collective::CollectiveKind;
use crate::plan::Plan;
use crate::plan::repetition::chunks_per_rank;
use opticoll_base::interrupt;
use opticoll_fabric::fabric::circuits::LightSharing;
use opticoll_fabric::fabric::light::{Light, LightKind, MAX_FIELDS};

const NO_SHIFT: CopyShift = CopyShift {
    chunk: 0,
    source: 0,
    destination: 0,
    slot: 0,
    turn: 0,
    light: [0; MAX_FIELDS],
};

/// Returns the statements that represent a row with all its copies.
pub(super) fn statements(plan: &Plan, row: usize) -> Vec<RepeatedLightpath> {
    let mut statements = match plan.repetition.is_rotation_symmetric() {
        true => rotations(plan, row),
        false => vec![pieces(plan, row)],
    };
    for statement in &mut statements {
        statement
            .repetitions
            .retain(|repetition| repetition.count > 1);
    }
    statements
}

/// Returns the statements that represent a row with all its rotations.
///
/// The copies on one channel leave every l-th rank, where l is the number of channels of the row.
/// The ranks in between use the next channels. They belong to the same statement while the channels
/// are on one fibre. If l does not divide the number of ranks, each rotation gets its own
/// statement.
fn rotations(plan: &Plan, row: usize) -> Vec<RepeatedLightpath> {
    let ranks = plan.fabric.ranks();
    let span = plan.span(row);
    if ranks % span != 0 {
        let single_rotation = |source| RepeatedLightpath {
            base: plan.copy(row, source, 0),
            repetitions: Vec::new(),
        };
        return (0..ranks).map(single_rotation).collect();
    }
    let kind = plan.fabric.light();
    let last = kind.and_then(|kind| Some((kind, last_shift(kind)?)));
    let mut blocks: Vec<RepeatedLightpath> = Vec::new();
    let mut next = None;
    for source in 0..span {
        interrupt::check();
        let base = plan.copy(row, source, 0);
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
                (value + 1).min(kind.fields[field].max_value()),
            )
        });
    }
    blocks
}

fn last_shift(kind: &LightKind) -> Option<usize> {
    kind.fields.iter().rposition(|field| field.shifts)
}

/// Returns a repetition of `count` rotations, each by `ranks` ranks and `channels` channels.
fn turns(plan: &Plan, count: u32, ranks: u32, channels: u32) -> Repetition {
    let collective = plan.schedule.collective;
    let mut shift = match collective.kind() {
        // A rotation moves the blocks of an all_to_all by different numbers of chunks.
        CollectiveKind::AllToAll => CopyShift {
            turn: ranks,
            ..NO_SHIFT
        },
        _ => CopyShift {
            chunk: chunks_per_rank(&collective).unwrap_or(0) * ranks,
            source: ranks,
            destination: ranks,
            ..NO_SHIFT
        },
    };
    if let Some(field) = plan.fabric.light().and_then(last_shift) {
        shift.light[field] = channels;
    }
    Repetition { count, shift }
}

/// Returns the statement that represents all stripes and pieces of a row. Its repetitions go over
/// the channels of a fibre, then over the fibres, and then over the slots.
fn pieces(plan: &Plan, row: usize) -> RepeatedLightpath {
    let base = plan.lightpath(row);
    let mut repetitions = Vec::new();
    let mut stripes = 1;
    for (field, count) in stripes_by_field(plan, base.light) {
        let mut shift = CopyShift {
            chunk: stripes * plan.repetition.pieces,
            ..NO_SHIFT
        };
        shift.light[field] = 1;
        repetitions.push(Repetition { count, shift });
        stripes *= count;
    }
    repetitions.push(Repetition {
        count: plan.repetition.pieces,
        shift: CopyShift {
            chunk: 1,
            slot: 1,
            ..NO_SHIFT
        },
    });
    RepeatedLightpath { base, repetitions }
}

/// Returns (index of a field, number of its values) for each field of light over which the stripes
/// extend, the innermost field first. Stripes fill a fibre before they use the next fibre.
fn stripes_by_field(plan: &Plan, light: Light) -> Vec<(usize, u32)> {
    let Some(kind) = plan.fabric.light() else {
        return Vec::new();
    };
    let stripes = plan.repetition.stripes;
    let wavelengths = match plan.fabric.numbered_channels() {
        Some(channels) => {
            let last = last_shift(kind).unwrap_or(0);
            let on_fibre = |&by: &u32| {
                let shifted = channels.shift_channel(light, by);
                kind.value(shifted, last) == kind.value(light, last) + by
            };
            (0..stripes).take_while(on_fibre).count() as u32
        }
        None => stripes,
    };
    let fields = kind.fields.iter().enumerate().rev();
    let fields = fields.filter(|(_, field)| field.shifts);
    let counts = [wavelengths.max(1), stripes / wavelengths.max(1)];
    fields.map(|(field, _)| field).zip(counts).collect()
}

/// Reader of rows from the statements of a file; all rows have the same repetition.
///
/// The first statement of a row defines the row. The reader accepts the row if this statement and
/// the following ones are exactly those that the writer produces for the row.
pub(super) struct RowReader {
    pub(super) plan: Plan,
    pub(super) lightpaths: u64,
    /// Statements that must follow to complete the last row, in reverse order.
    awaited: Vec<RepeatedLightpath>,
}

impl RowReader {
    fn new(plan: Plan) -> RowReader {
        RowReader {
            plan,
            lightpaths: 0,
            awaited: Vec::new(),
        }
    }

    /// Returns a reader of rows with all rotations. `None` if the fabric or the collective does not
    /// look the same from every rank.
    pub(super) fn for_rotations(head: Plan) -> Option<RowReader> {
        head.fabric.rotation()?;
        chunks_per_rank(&head.schedule.collective)?;
        Some(RowReader::new(head.with_all_rotations()))
    }

    /// Returns a reader of rows with stripes and pieces. The first statement defines the numbers of
    /// stripes and pieces. `None` if the fabric has no adjacent channels.
    pub(super) fn for_pieces(head: Plan) -> Option<RowReader> {
        head.fabric.numbered_channels()?;
        Some(RowReader::new(head))
    }

    /// Returns whether all statements of the last row have been read.
    pub(super) fn is_complete(&self) -> bool {
        self.awaited.is_empty()
    }

    /// Adds a statement. Returns false if the statement does not belong to a row.
    pub(super) fn add_block(&mut self, block: &RepeatedLightpath) -> bool {
        if self.awaited.is_empty() {
            let row = self.plan.len();
            self.plan.push(block.base);
            let may_begin = match self.plan.repetition.is_rotation_symmetric() {
                true => self.leaves_rank_0(row),
                false => self.has_pieces(row, block),
            };
            if !may_begin {
                return false;
            }
            self.awaited = statements(&self.plan, row);
            self.awaited.reverse();
        }
        self.lightpaths = self.lightpaths.saturating_add(block.lightpaths());
        self.awaited.pop().as_ref() == Some(block)
    }

    /// Returns whether `row` leads from rank 0 to another rank, and its rotations fill the ring.
    fn leaves_rank_0(&self, row: usize) -> bool {
        let transfer = self.plan.schedule.transfer(row);
        let divides_ring = self.plan.fabric.ranks() % self.plan.span(row) == 0;
        transfer.source == 0 && transfer.destination != 0 && divides_ring
    }

    /// Returns whether the copies of `row` are in consecutive slots. The first row defines the
    /// numbers of pieces and stripes.
    fn has_pieces(&mut self, row: usize, block: &RepeatedLightpath) -> bool {
        let Some((pieces, stripes)) = block.repetitions.split_last() else {
            return false;
        };
        if row == 0 {
            let counts = stripes.iter().map(|one| u64::from(one.count));
            let stripes = counts.fold(1, u64::saturating_mul);
            self.plan.repetition.stripes = u32::try_from(stripes).unwrap_or(u32::MAX);
            self.plan.repetition.pieces = pieces.count;
        }
        pieces.shift.slot == 1
    }

    /// Returns the plan if it has at least one row. Rows with pieces must also have one slot per
    /// step, a chunk of their own and a circuit of their own, because the verifier proves only this
    /// form. Otherwise returns `None`.
    pub(super) fn finish(self) -> Option<Plan> {
        let plan = &self.plan;
        let last = u64::from(*plan.slot.last()?);
        if plan.repetition.is_rotation_symmetric() {
            return Some(self.plan);
        }
        let copies = plan.repetition.copies();
        let pieces = u64::from(plan.schedule.collective.pieces());
        let channels = plan.fabric.numbered_channels()?;
        let is_first = |row: usize| {
            let transfer = plan.schedule.transfer(row);
            // Light without a channel number cannot have several stripes.
            let has_stripes =
                plan.repetition.stripes == 1 || channels.channel_number(plan.light[row]).is_some();
            u64::from(transfer.chunk) % copies == 0 && transfer.count == 1 && has_stripes
        };
        let is_by_slot = plan.step_slots.iter().all(|slots| slots.len() == 1);
        let fits_slots = last + u64::from(plan.repetition.pieces) <= u64::from(plan.slots());
        let is_known = pieces % copies == 0 && (0..plan.len()).all(is_first);
        (is_known && !shares_circuits(plan) && is_by_slot && fits_slots).then_some(self.plan)
    }
}

/// Returns whether two rows can share a circuit or a light tree on any of their stripes.
fn shares_circuits(plan: &Plan) -> bool {
    let sharing = plan.fabric.circuits().map(|circuits| circuits.sharing());
    let has_trees = matches!(sharing, Some(LightSharing::Tree { .. }));
    let circuit = |row: usize| {
        let (source, destination) = plan.schedule.ends(row);
        let ends = (source, (!has_trees).then_some(destination));
        (ends, plan.light[row])
    };
    let mut circuits: Vec<_> = (0..plan.len()).map(circuit).collect();
    circuits.sort_unstable();
    let Some(channels) = plan.fabric.numbered_channels() else {
        return true;
    };
    circuits.windows(2).any(|pair| {
        let [(ends, light), (others, other)] = [pair[0], pair[1]];
        let numbers = channels
            .channel_number(light)
            .zip(channels.channel_number(other));
        let between = numbers.map(|(from, to)| to.saturating_sub(from));
        let offset = between.filter(|&between| between < plan.repetition.stripes);
        let is_same_channel = |by| channels.shift_channel(light, by) == other;
        ends == others && (light == other || offset.is_some_and(is_same_channel))
    })
}
