//! Traffic patterns: the partners of each terminal, without a schedule.

use opticoll_base::hash::shuffled;

/// Destinations of the terminals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// Any other terminal, all with the same probability.
    Uniform,
    /// Terminal a fixed number of places further. A shift by the size of a group is the worst case
    /// of a dragonfly.
    Shift(u32),
    /// Next terminal of a random cycle through all terminals.
    Permutation,
    /// Next terminal.
    Nearest,
    /// A single terminal for a percentage of the messages, any other terminal for the rest.
    HotSpot {
        /// Number of the hot terminal.
        terminal: u32,
        /// Percentage from 0 to 100.
        percent: u32,
    },
}

impl Pattern {
    /// Returns the partner of each of `terminals` terminals, if partners are fixed; the hot
    /// terminal of a pattern with 100 percent sends to itself. `None` if partners are drawn for
    /// each message.
    pub fn partners(&self, terminals: u32, seed: u64) -> Option<Vec<u32>> {
        let shifted = |places: u32| {
            let partner = |terminal: u32| {
                let sum = u64::from(terminal) + u64::from(places);
                (sum % u64::from(terminals)) as u32
            };
            Some((0..terminals).map(partner).collect())
        };
        match self {
            Pattern::Uniform => None,
            Pattern::Shift(places) => shifted(*places),
            Pattern::Nearest => shifted(1),
            Pattern::Permutation => {
                let cycle = shuffled(terminals, seed);
                let mut partners = vec![0; cycle.len()];
                for (place, &terminal) in cycle.iter().enumerate() {
                    partners[terminal as usize] = cycle[(place + 1) % cycle.len()];
                }
                Some(partners)
            }
            Pattern::HotSpot { terminal, percent } => {
                (*percent == 100).then(|| vec![*terminal; terminals as usize])
            }
        }
    }
}
