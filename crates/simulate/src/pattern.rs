//! Traffic patterns, which define the destination of each message without a schedule.

use opticoll_base::hash::shuffled;

/// Rule for the destinations of the terminals' messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// Any other terminal, with equal probabilities.
    Uniform,
    /// Terminal whose number is higher by the given number of terminals, modulo the number of
    /// terminals. A shift by the size of a group is the worst case of a dragonfly.
    Shift(u32),
    /// Next terminal of a random cycle through all terminals.
    Permutation,
    /// Terminal with the next number; the last terminal sends to terminal 0.
    Nearest,
    /// A given percentage of the messages goes to one terminal, the hot terminal. The other
    /// messages go to any other terminal.
    HotSpot {
        /// Number of the hot terminal.
        terminal: u32,
        /// Percentage of the messages that go to the hot terminal, from 0 to 100.
        percent: u32,
    },
}

impl Pattern {
    /// Returns the destination of each of `terminals` terminals, indexed by terminal, or `None` if
    /// destinations are drawn for each message. The hot terminal of a `HotSpot` with 100 percent
    /// sends to itself.
    pub fn partners(&self, terminals: u32, seed: u64) -> Option<Vec<u32>> {
        let shifted = |offset: u32| {
            let partner = |terminal: u32| {
                let sum = u64::from(terminal) + u64::from(offset);
                (sum % u64::from(terminals)) as u32
            };
            Some((0..terminals).map(partner).collect())
        };
        match self {
            Pattern::Uniform => None,
            Pattern::Shift(offset) => shifted(*offset),
            Pattern::Nearest => shifted(1),
            Pattern::Permutation => {
                let cycle = shuffled(terminals, seed);
                let mut partners = vec![0; cycle.len()];
                for (position, &terminal) in cycle.iter().enumerate() {
                    partners[terminal as usize] = cycle[(position + 1) % cycle.len()];
                }
                Some(partners)
            }
            Pattern::HotSpot { terminal, percent } => {
                (*percent == 100).then(|| vec![*terminal; terminals as usize])
            }
        }
    }
}
