//! The tree by which something of every rank of a grid spreads, the same from each but for
//! rotation.
//!
//! In a slot it comes to all ranks that are a shift away from those that have it. A rank that both
//! planes reach is told by the one that carries less.

use super::group::{Group, Sequence};

/// The hops of a slot along one plane: by which shift, and from which ranks, counted from where
/// it began.
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
    /// Returns the tree of a sequence; `None` where it does not come to all ranks. Slots that carry
    /// nothing are left out.
    pub(super) fn of(group: Group, sequence: &Sequence) -> Option<Spread> {
        let mut reach = Told::new(group);
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
        (reach.told.len() == reach.marks.len()).then_some(spread)
    }

    /// Returns the sum over slots of the greater of the numbers of blocks along rows and along
    /// columns.
    pub(super) fn load(&self) -> u64 {
        let slots = self.slots.iter();
        let greatest = slots.map(|[row, column]| row.senders.len().max(column.senders.len()));
        greatest.sum::<usize>() as u64
    }

    /// Where all slots have the same shifts, their circuits should be up from the first slot to the
    /// last, and backwards nothing should be waited for in the first. But the last slot tells one
    /// rank alone. So of the last 3 + 2 + 1 ranks, by how many shifts along rows and columns they
    /// are on, each of the last three slots tells two, one by each plane:
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
        let told = [
            [[across - 2, down], [across, down - 2]],
            [[across - 1, down], [across - 1, down - 1]],
            [[across, down], [across, down - 1]],
        ];
        for (hops, told) in self.slots[count - 3..].iter_mut().zip(told) {
            let [along_row, along_column] = [hops[0].shift, hops[1].shift / group.columns];
            for ((plane, of_plane), mut before) in hops.iter_mut().enumerate().zip(told) {
                before[plane] -= 1;
                let column = before[0] * along_row % group.columns;
                let row = before[1] * along_column % group.rows;
                of_plane.senders = vec![row * group.columns + column];
            }
        }
    }
}

/// The ranks that a sequence has come to so far.
struct Told {
    told: Vec<u32>,
    /// By rank: whether it is told (4), or could be along a row (1) or a column (2).
    marks: Vec<u8>,
}

const TOLD: u8 = 4;

impl Told {
    fn new(group: Group) -> Told {
        let mut marks = vec![0; group.ranks() as usize];
        marks[0] = TOLD;
        Told {
            told: vec![0],
            marks,
        }
    }

    /// Tells all ranks that a slot comes to.
    fn slot(&mut self, group: Group, shifts: [u32; 2]) -> [SlotHops; 2] {
        let before = self.told.len();
        let mut only = [0usize; 2];
        for index in 0..before {
            for (plane, &shift) in shifts.iter().enumerate().filter(|(_, shift)| **shift > 0) {
                let rank = group.plus(self.told[index], shift);
                let mark = &mut self.marks[rank as usize];
                match *mark {
                    TOLD => continue,
                    0 => {
                        self.told.push(rank);
                        only[plane] += 1;
                    }
                    // The other plane reaches it already.
                    other => only[usize::from(other) - 1] -= 1,
                }
                *mark |= 1 << plane;
            }
        }
        let all = self.told.len() - before;
        // Ranks that only rows reach, those that only columns reach, and the others as even as can
        // be.
        let along_rows = (all / 2).clamp(only[0], all - only[1]);
        let mut free = along_rows - only[0];
        let mut hops = shifts.map(|shift| SlotHops {
            shift,
            senders: Vec::new(),
        });
        for &rank in &self.told[before..] {
            let plane = match std::mem::replace(&mut self.marks[rank as usize], TOLD) {
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
