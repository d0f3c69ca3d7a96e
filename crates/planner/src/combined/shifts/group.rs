//! The ranks as elements of an algebraic group, sequences of shifts, and the numbers of hops from
//! rank 0 to each rank.
//!
//! On a circuit switch of N ranks, the group is Z_N, and each port can shift by any element. On a
//! grid of n rows and m columns, the group is Z_n x Z_m, and ranks are numbered row by row. The
//! first port shifts along the row, and the second port shifts along the column.

use opticoll_base::spec::whole_number;

/// Algebraic group Z_rows x Z_columns, whose elements are ranks. (The group of a circuit switch has
/// one row.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) rows: u32,
    pub(super) columns: u32,
}

impl Group {
    pub(super) fn ranks(self) -> u32 {
        self.rows * self.columns
    }

    /// Returns the sum of two group elements: the rank to which `shift` leads from `rank`.
    pub(super) fn plus(self, rank: u32, shift: u32) -> u32 {
        let row = (rank / self.columns + shift / self.columns) % self.rows;
        let column = (rank % self.columns + shift % self.columns) % self.columns;
        row * self.columns + column
    }

    /// Returns the difference of two group elements: the rank from which `shift` leads to `rank`.
    pub(super) fn minus(self, rank: u32, shift: u32) -> u32 {
        let row = (rank / self.columns + self.rows - shift / self.columns) % self.rows;
        let column = (rank % self.columns + self.columns - shift % self.columns) % self.columns;
        row * self.columns + column
    }

    /// Replaces the value of each rank r by `combined(values[r], others[s])`, where s is the rank
    /// from which `shift` leads to r.
    pub(super) fn combine<T: Copy>(
        self,
        values: &mut [T],
        others: &[T],
        shift: u32,
        combined: impl Fn(T, T) -> T,
    ) {
        let columns = self.columns as usize;
        let (down, along) = (shift as usize / columns, shift as usize % columns);
        let mut combine_from = |to: usize, from: &[T]| {
            for (value, other) in values[to..].iter_mut().zip(from) {
                *value = combined(*value, *other);
            }
        };
        for (row, from) in others.chunks_exact(columns).enumerate() {
            let to = (row + down) % self.rows as usize * columns;
            let (start, end) = from.split_at(columns - along);
            combine_from(to + along, start);
            combine_from(to, end);
        }
    }
}

/// Shifts that a port allows: the multiples `unit`, 2 `unit`, ..., `max_units` `unit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PortShifts {
    pub(super) unit: u32,
    /// Maximum shift as a multiple of `unit`; 0 if the port allows no shift.
    pub(super) max_units: u32,
}

/// Sequence of configurations: shifts, indexed by configuration and port. A port with shift 0 sends
/// nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sequence(pub(super) Vec<Vec<u32>>);

impl Sequence {
    /// Formats the sequence as the value of the option `shifts`, such as `1+63x12+52`. The text
    /// states each shift as a multiple of the port's unit.
    pub(super) fn text(&self, ports: &[PortShifts]) -> String {
        let configuration_text = |shifts: &Vec<u32>| {
            let shifts = shifts.iter().zip(ports);
            let units: Vec<String> = shifts
                .map(|(shift, port)| (shift / port.unit).to_string())
                .collect();
            units.join("+")
        };
        let configurations: Vec<String> = self.0.iter().map(configuration_text).collect();
        configurations.join("x")
    }

    pub(super) fn parse(text: &str, ports: &[PortShifts]) -> Option<Sequence> {
        let configuration_text = |configuration: &str| {
            let mut remaining = ports.iter();
            let shift = |units: &str| {
                let (port, units) = (remaining.next()?, whole_number(units)?);
                (units <= port.max_units).then_some(units * port.unit)
            };
            configuration.split('+').map(shift).collect()
        };
        let configurations: Option<Vec<Vec<u32>>> =
            text.split('x').map(configuration_text).collect();
        configurations.map(Sequence)
    }
}

/// Number of hops that marks an unreachable rank.
pub(super) const UNREACHED: i16 = i16::MAX / 2;

/// Maximum number of ranks. (With more ranks, numbers of hops could exceed [`UNREACHED`].)
pub(super) const MAX_RANKS: u32 = UNREACHED as u32;

/// Minimum numbers of hops from rank 0 to each rank, over the circuits of some configurations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HopCounts {
    /// Minimum number of hops, indexed by rank; [`UNREACHED`] if the rank is unreachable.
    pub(super) hops: Vec<i16>,
    group: Group,
}

impl HopCounts {
    pub(super) fn initial(group: Group) -> HopCounts {
        let mut hops = vec![UNREACHED; group.ranks() as usize];
        hops[0] = 0;
        HopCounts { hops, group }
    }

    /// Computes the numbers of hops if blocks may also make up to `max_slots` hops by the shifts
    /// `shifts` of a further configuration. Writes the result to `scratch[0]`. Returns the number
    /// of slots that reduced some number of hops.
    pub(super) fn after(
        &self,
        shifts: &[u32],
        max_slots: u32,
        scratch: &mut [HopCounts; 2],
    ) -> u32 {
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

    /// Lowers the number of hops to each rank for which a route of `last` plus one hop by `shift`
    /// has fewer hops.
    fn extend(&mut self, last: &HopCounts, shift: u32) {
        let lower = |hops: i16, other: i16| hops.min(other + 1);
        self.group.combine(&mut self.hops, &last.hops, shift, lower);
    }

    /// Returns the sum of the numbers of hops to all ranks. An unreachable rank counts as
    /// [`UNREACHED`] hops.
    pub(super) fn sum(&self) -> u64 {
        self.hops.iter().map(|hops| *hops as u64).sum()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.hops.iter().all(|hops| *hops < UNREACHED)
    }
}
