//! Checks of the form: every entry is in range, and every transfer is in a slot of its step.
//! Transfers with entries out of range are reported, and later checks ignore them.

use std::ops::Range;

use super::report::{Fault, Report, WrongLight, transfer_violation, up_to};
use super::{Violation, ViolationKind};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::Light;
use opticoll_plan::plan::{Lightpath, Plan};
use opticoll_plan::schedule::Transfer;

/// Maximum number of transfers, and of steps. Their numbers have 32 bits, and two values are
/// reserved.
const MAX_ENTRIES: usize = u32::MAX as usize - 2;

/// Transfers that the later checks examine.
pub(super) struct Admitted {
    /// Number of transfers that have an entry in every column. They are the first transfers.
    pub(super) transfers: usize,
    /// True for transfers whose ranks, chunks or slot do not exist, indexed by transfer; empty if
    /// there are no such transfers.
    malformed: Vec<bool>,
    /// True for transfers whose light does not exist, indexed by transfer; empty if there are no
    /// such transfers.
    dark: Vec<bool>,
}

impl Admitted {
    /// Admits the first `transfers` transfers.
    pub(super) fn all(transfers: usize) -> Admitted {
        Admitted {
            transfers,
            malformed: Vec::new(),
            dark: Vec::new(),
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.malformed.is_empty()
    }

    pub(super) fn transfers(&self) -> impl Iterator<Item = usize> + '_ {
        self.among(0..self.transfers)
    }

    /// Returns the indices of the admitted transfers of `step`.
    pub(super) fn transfers_in_step(
        &self,
        plan: &Plan,
        step: usize,
    ) -> impl Iterator<Item = usize> + '_ {
        let transfers = plan.schedule.step(step);
        self.among(transfers.start..transfers.end.min(self.transfers))
    }

    /// Returns the admitted transfers of `step`, each with its index.
    pub(super) fn moved<'a>(
        &'a self,
        plan: &'a Plan,
        step: usize,
    ) -> impl Iterator<Item = (usize, Transfer)> + 'a {
        let admits_all = self.is_complete();
        let transfers = plan.schedule.step(step);
        let columns = plan.schedule.columns(step).transfers();
        (transfers.start..transfers.end.min(self.transfers))
            .zip(columns)
            .inspect(|_| interrupt::check())
            .filter(move |&(index, _)| admits_all || !self.malformed[index])
    }

    fn among(&self, transfers: Range<usize>) -> impl Iterator<Item = usize> + '_ {
        let admits_all = self.is_complete();
        transfers
            .inspect(|_| interrupt::check())
            .filter(move |&transfer| admits_all || !self.malformed[transfer])
    }

    /// Records that the light of some transfers does not exist.
    pub(super) fn darken(&mut self, transfers: &[usize]) {
        if self.dark.is_empty() && !transfers.is_empty() {
            self.dark = vec![false; self.transfers];
        }
        for &transfer in transfers {
            self.dark[transfer] = true;
        }
    }

    /// Returns whether the light of `transfer` exists.
    pub(super) fn is_lit(&self, transfer: usize) -> bool {
        self.dark.is_empty() || !self.dark[transfer]
    }
}

/// Plan, and the numbers of ranks, chunks and slots that limit the entries of its transfers.
struct Ranges<'a> {
    plan: &'a Plan,
    wrong_light: &'a WrongLight<'a>,
    ranks: u32,
    chunks: u32,
    slots: u32,
    combines: bool,
}

/// Checks the ranges of all entries and the order of the steps. Returns `None` if the plan cannot
/// be examined any further.
pub(super) fn check(
    plan: &Plan,
    wrong_light: &WrongLight<'_>,
    report: &mut Report,
) -> Option<Admitted> {
    let collective = plan.schedule.collective;
    let ranks = plan.fabric.ranks();
    if ranks != collective.ranks() {
        report.add(ViolationKind::RankCount, || {
            let sentence = format!(
                "the collective has {} ranks, the fabric {}",
                collective.ranks(),
                ranks
            );
            Violation::new(ViolationKind::RankCount, sentence)
        });
    }
    let mut admitted = columns(plan, report)?;
    steps(plan, report);
    let ranges = Ranges {
        plan,
        wrong_light,
        ranks: ranks.min(collective.ranks()),
        chunks: collective.chunks(),
        slots: plan.slots(),
        combines: collective.combines(),
    };
    for step in 0..plan.schedule.steps() {
        interrupt::check();
        ranges.check_step(step, &mut admitted, report);
    }
    Some(admitted)
}

/// Compares the lengths of the columns. Transfers without an entry in every column are not
/// admitted. On a fabric without light, the column of light must be empty.
fn columns(plan: &Plan, report: &mut Report) -> Option<Admitted> {
    let transfers = plan.schedule.len();
    let mut lengths = vec![("slot", plan.slot.len())];
    if plan.fabric.has_light() {
        lengths.push(("light", plan.light.len()));
    } else if !plan.light.is_empty() {
        report.add(ViolationKind::Columns, || {
            let sentence = format!(
                "the plan has {} entries in the column light, but its fabric {} has no light",
                plan.light.len(),
                plan.fabric.family()
            );
            Violation::new(ViolationKind::Columns, sentence)
        });
    }
    for (column, length) in lengths.iter().filter(|(_, length)| *length != transfers) {
        report.add(ViolationKind::Columns, || {
            let sentence = format!(
                "the plan has {transfers} transfers but {length} entries in the column {column}"
            );
            Violation::new(ViolationKind::Columns, sentence)
        });
    }
    let steps = plan.schedule.steps();
    if transfers.max(steps) > MAX_ENTRIES {
        report.add(ViolationKind::TooLarge, || {
            let sentence = format!(
                "the plan has {transfers} transfers in {steps} steps; no more than {MAX_ENTRIES} \
                 of either can be checked"
            );
            Violation::new(ViolationKind::TooLarge, sentence)
        });
        return None;
    }
    let complete = lengths
        .iter()
        .map(|(_, length)| *length)
        .fold(transfers, usize::min);
    Some(Admitted {
        transfers: complete,
        malformed: Vec::new(),
        dark: Vec::new(),
    })
}

/// Checks that the steps have consecutive ranges of slots, starting at slot 0.
fn steps(plan: &Plan, report: &mut Report) {
    let kind = ViolationKind::StepOrder;
    let (steps, ranges) = (plan.schedule.steps(), plan.step_slots.len());
    if steps != ranges {
        let sentence =
            format!("the schedule has {steps} steps, but the plan has slots for {ranges} steps");
        report.add(kind, || Violation::new(kind, sentence));
    }
    let mut next = 0;
    for (step, slots) in plan.step_slots.iter().enumerate() {
        interrupt::check();
        if slots.start != next || slots.end < slots.start {
            report.add(kind, || {
                let sentence = format!(
                    "step {step} has the slots {}..{}, but they should start at {next}",
                    slots.start, slots.end
                );
                Violation {
                    slot: Some(slots.start),
                    ..Violation::new(kind, sentence)
                }
            });
        }
        if !plan.fabric.has_light() && slots.len() != 1 {
            report.add(kind, || {
                let sentence = format!(
                    "step {step} has {} slots; on an electrical fabric every step has one",
                    slots.len()
                );
                Violation::new(kind, sentence)
            });
        }
        next = slots.end;
    }
}

impl Ranges<'_> {
    /// Checks the transfers of `step` by column, and examines each transfer that breaks a rule.
    fn check_step(&self, step: usize, admitted: &mut Admitted, report: &mut Report) {
        let schedule = &self.plan.schedule;
        let transfers = schedule.step(step);
        let (start, end) = (transfers.start, transfers.end.min(admitted.transfers));
        if start >= end {
            return;
        }
        let step_slots = self
            .plan
            .step_slots
            .get(step)
            .cloned()
            .unwrap_or(0..u32::MAX);
        let columns = schedule.columns(step).transfers();
        let unlit = match self.plan.fabric.has_light() {
            true => (self.wrong_light)(&self.plan.light[start..end]),
            false => Vec::new(),
        };
        let all_lit = unlit.is_empty();
        let mut unlit = unlit.into_iter().peekable();
        let slot = &self.plan.slot[start..end];
        for (index, moved) in (0..end - start).zip(columns) {
            interrupt::check();
            let has_valid_ranks = moved.source < self.ranks
                && moved.destination < self.ranks
                && moved.source != moved.destination;
            let has_valid_chunks = moved.count > 0
                && moved.count <= self.chunks
                && moved.chunk <= self.chunks - moved.count;
            let has_valid_slot = slot[index] < self.slots && step_slots.contains(&slot[index]);
            let has_valid_light = all_lit
                || unlit
                    .next_if(|(wrong_index, _)| *wrong_index == index)
                    .is_none();
            let has_valid_action = self.combines || !moved.action.adds();
            if !(has_valid_ranks
                && has_valid_chunks
                && has_valid_slot
                && has_valid_light
                && has_valid_action)
            {
                self.examine(start + index, step, admitted, report);
            }
        }
    }

    /// Reports all faults of the transfer `index`, and marks it if later checks must ignore it.
    fn examine(&self, index: usize, step: usize, admitted: &mut Admitted, report: &mut Report) {
        let Lightpath {
            transfer,
            light,
            slot,
        } = self.plan.lightpath(index);
        let unusable = [self.wrong_data(transfer), self.wrong_slot(slot)].concat();
        let unlit = match self.plan.fabric.has_light() {
            true => (self.wrong_light)(&[light])
                .pop()
                .map_or(Vec::new(), |(_, faults)| faults),
            false => Vec::new(),
        };
        let length = admitted.transfers;
        mark(!unusable.is_empty(), index, &mut admitted.malformed, length);
        mark(!unlit.is_empty(), index, &mut admitted.dark, length);
        let others = [self.wrong_step(slot, step), self.wrong_action(transfer)];
        for (kind, problem) in [unusable, unlit, others.concat()].concat() {
            report.add(kind, || Violation {
                wavelength: (kind == ViolationKind::WavelengthRange)
                    .then(|| wavelength(self.plan, light))
                    .flatten(),
                chunk: (kind == ViolationKind::ChunkRange).then_some(transfer.chunk),
                ..transfer_violation(self.plan, kind, slot, index, &problem)
            });
        }
    }

    fn wrong_data(&self, transfer: Transfer) -> Vec<Fault> {
        let mut faults = Vec::new();
        for rank in [transfer.source, transfer.destination] {
            if rank >= self.ranks {
                let ranks = up_to(self.ranks);
                let problem = format!("has an end at rank {rank}, but ranks are {ranks}");
                faults.push((ViolationKind::RankRange, problem));
            }
        }
        if transfer.source == transfer.destination {
            let problem = format!("ends at rank {}, where it starts", transfer.source);
            faults.push((ViolationKind::SelfTransfer, problem));
        }
        let chunk_end = u64::from(transfer.chunk) + u64::from(transfer.count);
        if transfer.count == 0 {
            faults.push((ViolationKind::ChunkRange, "carries no chunk".into()));
        } else if chunk_end > u64::from(self.chunks) {
            let (last, chunks) = (chunk_end - 1, up_to(self.chunks));
            let problem = format!("carries chunk {last}, but chunks are {chunks}");
            faults.push((ViolationKind::ChunkRange, problem));
        }
        faults
    }

    fn wrong_slot(&self, slot: u32) -> Vec<Fault> {
        if slot < self.slots {
            return Vec::new();
        }
        let problem = format!("is in slot {slot}, but slots are {}", up_to(self.slots));
        vec![(ViolationKind::SlotRange, problem)]
    }

    /// Returns the fault of a slot that belongs to a step other than `step`.
    fn wrong_step(&self, slot: u32, step: usize) -> Vec<Fault> {
        match self.plan.step_slots.get(step) {
            Some(own) if slot < self.slots && !own.contains(&slot) => {
                let slots = match own.end.checked_sub(1) {
                    Some(last) if last >= own.start => format!("slots {} to {last}", own.start),
                    _ => "no slots".into(),
                };
                let problem = format!("belongs to step {step}, which has {slots}");
                vec![(ViolationKind::StepOrder, problem)]
            }
            _ => Vec::new(),
        }
    }

    /// Returns the fault of a reduction in a collective without reductions.
    fn wrong_action(&self, transfer: Transfer) -> Vec<Fault> {
        if self.combines || !transfer.action.adds() {
            return Vec::new();
        }
        let kind = self.plan.schedule.collective.kind();
        let problem = format!("reduces, but {kind} combines nothing");
        vec![(ViolationKind::WrongAction, problem)]
    }
}

/// Returns the wavelength of `light`; `None` if this kind of light has no field for a wavelength.
fn wavelength(plan: &Plan, light: Light) -> Option<u16> {
    let kind = plan.fabric.light()?;
    let field = kind
        .fields
        .iter()
        .position(|field| field.name == "wavelength")?;
    Some(kind.value(light, field) as u16)
}

/// Sets the flag of the transfer `index` in `flags` if `is_set` is true. The first call that sets a
/// flag creates flags for `length` transfers.
fn mark(is_set: bool, index: usize, flags: &mut Vec<bool>, length: usize) {
    if is_set {
        flags.resize(length, false);
        flags[index] = true;
    }
}
