//! The ranks as elements of a group, sequences of shifts, and the hops from rank 0 to each rank.
//!
//! On a circuit switch of N ranks the group is Z_N, and any port can shift by any element. A grid
//! of n rows and m columns is Z_n x Z_m, numbered row by row: its first port shifts along the row,
//! its second port along the column.

use opticoll_base::spec::whole_number;

/// The group Z_rows x Z_columns; Z_N has one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) rows: u32,
    pub(super) columns: u32,
}

impl Group {
    pub(super) fn ranks(self) -> u32 {
        self.rows * self.columns
    }

    /// Returns the rank `by` after another rank.
    pub(super) fn plus(self, rank: u32, by: u32) -> u32 {
        let row = (rank / self.columns + by / self.columns) % self.rows;
        let column = (rank % self.columns + by % self.columns) % self.columns;
        row * self.columns + column
    }

    /// Returns the rank `by` before another rank.
    pub(super) fn minus(self, rank: u32, by: u32) -> u32 {
        let row = (rank / self.columns + self.rows - by / self.columns) % self.rows;
        let column = (rank % self.columns + self.columns - by % self.columns) % self.columns;
        row * self.columns + column
    }

    /// Combines the value of each rank with the value in `others` of the rank `by` before it.
    pub(super) fn combine<T: Copy>(
        self,
        values: &mut [T],
        others: &[T],
        by: u32,
        combined: impl Fn(T, T) -> T,
    ) {
        let columns = self.columns as usize;
        let (down, along) = (by as usize / columns, by as usize % columns);
        let mut enter = |to: usize, from: &[T]| {
            for (value, other) in values[to..].iter_mut().zip(from) {
                *value = combined(*value, *other);
            }
        };
        for (row, from) in others.chunks_exact(columns).enumerate() {
            let to = (row + down) % self.rows as usize * columns;
            let (start, end) = from.split_at(columns - along);
            enter(to + along, start);
            enter(to, end);
        }
    }
}

/// Shifts that a port allows: multiples of a unit, up to `max_units` units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PortShifts {
    pub(super) unit: u32,
    pub(super) max_units: u32,
}

/// Shifts of the ports in each setting, as elements of the group; shift 0 sends nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sequence(pub(super) Vec<Vec<u32>>);

impl Sequence {
    /// Returns the text of the sequence, in units of the ports, such as `1+63x12+52`.
    pub(super) fn text(&self, ports: &[PortShifts]) -> String {
        let setting_text = |shifts: &Vec<u32>| {
            let shifts = shifts.iter().zip(ports);
            let units: Vec<String> = shifts
                .map(|(shift, port)| (shift / port.unit).to_string())
                .collect();
            units.join("+")
        };
        let settings: Vec<String> = self.0.iter().map(setting_text).collect();
        settings.join("x")
    }

    pub(super) fn parse(text: &str, ports: &[PortShifts]) -> Option<Sequence> {
        let setting_text = |setting: &str| {
            let mut remaining = ports.iter();
            let shift = |units: &str| {
                let (port, units) = (remaining.next()?, whole_number(units)?);
                (units <= port.max_units).then_some(units * port.unit)
            };
            setting.split('+').map(shift).collect()
        };
        let settings: Option<Vec<Vec<u32>>> = text.split('x').map(setting_text).collect();
        settings.map(Sequence)
    }
}

/// Number of hops that stands for a rank that is not reached.
pub(super) const UNREACHED: i16 = i16::MAX / 2;

/// Maximum number of ranks: with more of them, a hop count would exceed [`UNREACHED`].
pub(super) const MAX_RANKS: u32 = UNREACHED as u32;

/// Least numbers of hops from rank 0 to each rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reach {
    pub(super) hops: Vec<i16>,
    group: Group,
}

impl Reach {
    /// Returns the hops before the first setting: only rank 0 is reached.
    pub(super) fn initial(group: Group) -> Reach {
        let mut hops = vec![UNREACHED; group.ranks() as usize];
        hops[0] = 0;
        Reach { hops, group }
    }

    /// Writes the hops after up to `max_slots` slots of a setting into the first of two scratch
    /// values. Returns the number of slots that reached further ranks or saved hops.
    pub(super) fn after(&self, shifts: &[u32], max_slots: u32, scratch: &mut [Reach; 2]) -> u32 {
        let [last, next] = scratch;
        last.hops.clone_from(&self.hops);
        for slot in 0..max_slots {
            next.hops.clone_from(&self.hops);
            shifts.iter().for_each(|shift| next.extend(last, *shift));
            if next == last {
                return slot;
            }
            std::mem::swap(last, next);
        }
        max_slots
    }

    /// Lowers the numbers of hops by the circuits of one shift, used after the hops of `last`.
    fn extend(&mut self, last: &Reach, shift: u32) {
        let lower = |hops: i16, other: i16| hops.min(other + 1);
        self.group.combine(&mut self.hops, &last.hops, shift, lower);
    }

    /// Returns the sum of hops; a rank that is not reached counts [`UNREACHED`].
    pub(super) fn sum(&self) -> u64 {
        self.hops.iter().map(|hops| *hops as u64).sum()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.hops.iter().all(|hops| *hops < UNREACHED)
    }
}
