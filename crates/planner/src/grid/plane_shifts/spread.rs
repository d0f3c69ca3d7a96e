//! The tree by which something of every rank spreads, the same from each but for rotation.

use super::torus::{Sequence, Shifts, Torus, steps};

/// What is sent in a slot along one plane: by which shift, and from which places on from where it began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SlotHops {
    /// The shift, as a place that is added.
    pub(super) shift: u32,
    /// The senders, as places on from the origin of what they send.
    pub(super) senders: Vec<u32>,
}

/// The tree, slot by slot, for rows and columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spread {
    pub(super) slots: Vec<[SlotHops; 2]>,
}

impl Spread {
    /// The tree of a sequence; none where it does not come to all places. Slots that carry nothing are left out.
    pub(super) fn of(torus: Torus, sequence: &Sequence) -> Option<Spread> {
        let mut reach = Reach::new(torus);
        let mut slots = Vec::new();
        for &shifts in &sequence.slots {
            let hops = reach.slot(torus, shifts, true);
            if hops.iter().any(|of_plane| !of_plane.senders.is_empty()) {
                slots.push(hops);
            }
        }
        let mut spread = Spread { slots };
        if let Some(shifts) = sequence.steady() {
            spread.keep_both_planes_busy(torus, shifts);
        }
        (reach.missing(torus) == 0).then_some(spread)
    }

    /// Where all slots have the same shifts, their circuits should be up from the first slot to the last, and backwards nothing should be
    /// waited for in the first. But the last slot tells one place alone. So of the last 3 + 2 + 1 places, by how many shifts along
    /// rows and columns they are on, each of the last three slots tells two, one by each plane:
    ///
    /// | slot | along a row | along a column |
    /// |---|---|---|
    /// | last but two | (m - 3, n - 1) | (m - 1, n - 3) |
    /// | last but one | (m - 2, n - 1) | (m - 2, n - 2) |
    /// | last | (m - 1, n - 1) | (m - 1, n - 2) |
    fn keep_both_planes_busy(&mut self, torus: Torus, shifts: Shifts) {
        let [across, down] = torus.most();
        let count = self.slots.len();
        if across.min(down) < 3 || count != (across + down) as usize {
            return;
        }
        let place = |[right, below]: [u32; 2]| {
            let column = right * shifts[0] % torus.columns;
            below * shifts[1] % torus.rows * torus.columns + column
        };
        let told = [
            [[across - 2, down], [across, down - 2]],
            [[across - 1, down], [across - 1, down - 1]],
            [[across, down], [across, down - 1]],
        ];
        for (hops, told) in self.slots[count - 3..].iter_mut().zip(told) {
            for ((plane, of_plane), at) in hops.iter_mut().enumerate().zip(told) {
                let mut before = at;
                before[plane] -= 1;
                of_plane.senders = vec![place(before)];
            }
        }
    }
}

/// The places that a sequence has come to so far; kept from one sequence to the next.
pub(super) struct Reach {
    told: Vec<u32>,
    /// By place: whether it is told (4), or could be along a row (1) or a column (2).
    marks: Vec<u8>,
    /// The sum over slots of the greater of the numbers along rows and along columns.
    load: u64,
}

const TOLD: u8 = 4;

impl Reach {
    pub(super) fn new(torus: Torus) -> Reach {
        let mut marks = vec![0; torus.places() as usize];
        marks[0] = TOLD;
        Reach {
            told: vec![0],
            marks,
            load: 0,
        }
    }

    /// The places that no slot comes to, and the blocks that go one after the other.
    pub(super) fn rate(&mut self, torus: Torus, slots: &[[u32; 2]]) -> (u64, u64) {
        self.told.truncate(1);
        self.marks.fill(0);
        self.marks[0] = TOLD;
        self.load = 0;
        for &shifts in slots {
            self.slot(torus, shifts, false);
        }
        (self.missing(torus), self.load)
    }

    fn missing(&self, torus: Torus) -> u64 {
        u64::from(torus.places()) - self.told.len() as u64
    }

    /// Tells all that a slot comes to. A place that both planes reach is told by the one that carries less.
    fn slot(&mut self, torus: Torus, shifts: [u32; 2], named: bool) -> [SlotHops; 2] {
        let by = steps(torus, shifts);
        let before = self.told.len();
        let mut only = [0u64; 2];
        for index in 0..before {
            for (plane, &by) in by.iter().enumerate().filter(|(_, by)| **by > 0) {
                let place = torus.plus(self.told[index], by);
                let mark = &mut self.marks[place as usize];
                match *mark {
                    TOLD => continue,
                    0 => {
                        self.told.push(place);
                        only[plane] += 1;
                    }
                    // The other plane reaches it already.
                    other => only[usize::from(other) - 1] -= 1,
                }
                *mark |= 1 << plane;
            }
        }
        let all = (self.told.len() - before) as u64;
        // Places that only rows reach, those that only columns reach, and the others as even as can be.
        let along_rows = (all / 2).clamp(only[0], all - only[1]);
        self.load += along_rows.max(all - along_rows);
        let mut free = along_rows - only[0];
        let mut hops = by.map(|shift| SlotHops {
            shift,
            senders: Vec::new(),
        });
        for &place in &self.told[before..] {
            let mark = std::mem::replace(&mut self.marks[place as usize], TOLD);
            if !named {
                continue;
            }
            let plane = match mark {
                1 => 0,
                2 => 1,
                _ if free > 0 => {
                    free -= 1;
                    0
                }
                _ => 1,
            };
            let sender = torus.minus(place, by[plane]);
            hops[plane].senders.push(sender);
        }
        hops
    }
}
