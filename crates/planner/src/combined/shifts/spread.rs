//! Tree along which the block of a rank of a grid reaches all other ranks. The blocks of all ranks
//! use the same tree, rotated.
//!
//! In each slot, every rank that has the block sends it by the shifts of the slot, to ranks that do
//! not have the block yet. If a rank could receive the block over both planes, the plane with fewer
//! blocks delivers the block.

use super::group::{Group, Sequence};

/// Hops of rank 0's block in a slot, over one plane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SlotHops {
    pub(super) shift: u32,
    pub(super) senders: Vec<u32>,
}

/// Tree along which the block of rank 0 reaches all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShiftTree {
    /// Hops along rows and hops along columns, indexed by slot.
    pub(super) slots: Vec<[SlotHops; 2]>,
}

impl ShiftTree {
    /// Creates the tree of a sequence of configurations. Leaves out slots without hops. Returns
    /// `None` if the tree does not reach all ranks.
    pub(super) fn of(group: Group, sequence: &Sequence) -> Option<ShiftTree> {
        let mut reach = ReachedRanks::new(group);
        let mut slots = Vec::new();
        for shifts in &sequence.0 {
            let hops = reach.add_slot(
                group,
                [0, 1].map(|plane| shifts.get(plane).copied().unwrap_or(0)),
            );
            if hops.iter().any(|of_plane| !of_plane.senders.is_empty()) {
                slots.push(hops);
            }
        }
        let mut tree = ShiftTree { slots };
        if let [first, others @ ..] = &sequence.0[..] {
            if others.iter().all(|shifts| shifts == first) {
                tree.balance_last_slots(group);
            }
        }
        (reach.reached.len() == reach.marks.len()).then_some(tree)
    }

    /// Returns the sum, over all slots, of the number of hops on the plane with more hops.
    pub(super) fn load(&self) -> u64 {
        let slots = self.slots.iter();
        let greatest = slots.map(|[row, column]| row.senders.len().max(column.senders.len()));
        greatest.sum::<usize>() as u64
    }

    /// Balances the last three slots of a sequence in which all slots have the same shifts.
    ///
    /// Without this change, the last three slots reach 3, 2 and 1 ranks, and the last slot uses one
    /// plane only. After this change, each slot reaches one rank over each plane. The table lists
    /// these ranks as (number of shifts along the row, number of shifts along the column), on a
    /// grid of n rows and m columns:
    ///
    /// | slot | along a row | along a column |
    /// |---|---|---|
    /// | third to last | (m - 3, n - 1) | (m - 1, n - 3) |
    /// | second to last | (m - 2, n - 1) | (m - 2, n - 2) |
    /// | last | (m - 1, n - 1) | (m - 1, n - 2) |
    fn balance_last_slots(&mut self, group: Group) {
        let (across, down) = (group.columns - 1, group.rows - 1);
        let count = self.slots.len();
        if across.min(down) < 3 || count != (across + down) as usize {
            return;
        }
        let reached = [
            [[across - 2, down], [across, down - 2]],
            [[across - 1, down], [across - 1, down - 1]],
            [[across, down], [across, down - 1]],
        ];
        for (hops, reached) in self.slots[count - 3..].iter_mut().zip(reached) {
            let [along_row, along_column] = [hops[0].shift, hops[1].shift / group.columns];
            for ((plane, of_plane), mut before) in hops.iter_mut().enumerate().zip(reached) {
                before[plane] -= 1;
                let column = before[0] * along_row % group.columns;
                let row = before[1] * along_column % group.rows;
                of_plane.senders = vec![row * group.columns + column];
            }
        }
    }
}

/// Ranks that have the block of rank 0.
struct ReachedRanks {
    reached: Vec<u32>,
    /// Mark of each rank: [`REACHED`] if the rank has the block. Otherwise bit 0 is set if the rank
    /// can receive the block along its row in the current slot, and bit 1 if along its column.
    marks: Vec<u8>,
}

/// Mark of a rank that has the block.
const REACHED: u8 = 4;

impl ReachedRanks {
    fn new(group: Group) -> ReachedRanks {
        let mut marks = vec![0; group.ranks() as usize];
        marks[0] = REACHED;
        ReachedRanks {
            reached: vec![0],
            marks,
        }
    }

    /// Adds the ranks that receive the block in a slot. `shifts` are the shifts along rows and
    /// along columns. Returns the hops along rows and along columns.
    fn add_slot(&mut self, group: Group, shifts: [u32; 2]) -> [SlotHops; 2] {
        let before = self.reached.len();
        let mut only = [0usize; 2];
        for index in 0..before {
            for (plane, &shift) in shifts.iter().enumerate().filter(|(_, shift)| **shift > 0) {
                let rank = group.plus(self.reached[index], shift);
                let mark = &mut self.marks[rank as usize];
                match *mark {
                    REACHED => continue,
                    0 => {
                        self.reached.push(rank);
                        only[plane] += 1;
                    }
                    other => only[usize::from(other) - 1] -= 1,
                }
                *mark |= 1 << plane;
            }
        }
        let count = self.reached.len() - before;
        // Divide the ranks that both planes reach, such that the planes have equal loads.
        let along_rows = (count / 2).clamp(only[0], count - only[1]);
        let mut free = along_rows - only[0];
        let mut hops = shifts.map(|shift| SlotHops {
            shift,
            senders: Vec::new(),
        });
        for &rank in &self.reached[before..] {
            let plane = match std::mem::replace(&mut self.marks[rank as usize], REACHED) {
                1 => 0,
                2 => 1,
                _ if free > 0 => {
                    free -= 1;
                    0
                }
                _ => 1,
            };
            let sender = group.minus(rank, shifts[plane]);
            hops[plane].senders.push(sender);
        }
        hops
    }
}
