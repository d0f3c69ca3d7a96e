//! The tree along which the block of every rank of a grid spreads; all ranks use the same tree,
//! rotated.
//!
//! In each slot the block reaches all ranks that are a shift away from a rank that holds it. If
//! both planes reach a rank, the plane that carries fewer blocks delivers the block.

use super::group::{Group, Sequence};

/// Hops of a slot along one plane: their shift, and the ranks that send, counted from the origin of
/// the block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SlotHops {
    pub(super) shift: u32,
    pub(super) senders: Vec<u32>,
}

/// The tree, slot by slot, for rows and columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spread {
    pub(super) slots: Vec<[SlotHops; 2]>,
}

impl Spread {
    /// Returns the tree of a sequence without slots that carry nothing; `None` if the sequence does
    /// not reach all ranks.
    pub(super) fn of(group: Group, sequence: &Sequence) -> Option<Spread> {
        let mut reach = Reached::new(group);
        let mut slots = Vec::new();
        for shifts in &sequence.0 {
            let hops = reach.slot(
                group,
                [0, 1].map(|plane| shifts.get(plane).copied().unwrap_or(0)),
            );
            if hops.iter().any(|of_plane| !of_plane.senders.is_empty()) {
                slots.push(hops);
            }
        }
        let mut spread = Spread { slots };
        if let [first, others @ ..] = &sequence.0[..] {
            if others.iter().all(|shifts| shifts == first) {
                spread.keep_both_planes_busy(group);
            }
        }
        (reach.reached.len() == reach.marks.len()).then_some(spread)
    }

    /// Returns the sum over slots of the numbers of blocks on the busier plane.
    pub(super) fn load(&self) -> u64 {
        let slots = self.slots.iter();
        let greatest = slots.map(|[row, column]| row.senders.len().max(column.senders.len()));
        greatest.sum::<usize>() as u64
    }

    /// Evens out the last three slots of a sequence whose slots all have the same shifts.
    ///
    /// The circuits of such a sequence should stay up from the first slot to the last, and in the
    /// reverse direction no rank should wait in the first slot. Without this change the last slot
    /// reaches one rank only. The last three slots reach 3 + 2 + 1 ranks; afterwards each of them
    /// reaches two ranks, one along each plane. A rank is given by its number of shifts along the
    /// row and along the column, on a grid of n rows and m columns:
    ///
    /// | slot | along a row | along a column |
    /// |---|---|---|
    /// | last but two | (m - 3, n - 1) | (m - 1, n - 3) |
    /// | last but one | (m - 2, n - 1) | (m - 2, n - 2) |
    /// | last | (m - 1, n - 1) | (m - 1, n - 2) |
    fn keep_both_planes_busy(&mut self, group: Group) {
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

/// Ranks that a sequence has reached.
struct Reached {
    reached: Vec<u32>,
    /// Mark of each rank: 4 if reached, else 1 if reachable along a row plus 2 if reachable along a
    /// column.
    marks: Vec<u8>,
}

/// Mark of a rank that is reached.
const REACHED: u8 = 4;

impl Reached {
    fn new(group: Group) -> Reached {
        let mut marks = vec![0; group.ranks() as usize];
        marks[0] = REACHED;
        Reached {
            reached: vec![0],
            marks,
        }
    }

    /// Adds the ranks that a slot reaches and returns the hops.
    fn slot(&mut self, group: Group, shifts: [u32; 2]) -> [SlotHops; 2] {
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
                    // The other plane reaches this rank, too.
                    other => only[usize::from(other) - 1] -= 1,
                }
                *mark |= 1 << plane;
            }
        }
        let count = self.reached.len() - before;
        // Ranks that both planes reach are divided as evenly as possible.
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
