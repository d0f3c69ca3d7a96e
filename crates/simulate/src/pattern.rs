//! Who sends to whom, in traffic that no schedule asks for.

use opticoll_base::hash::shuffled;

/// To whom terminals send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// To any other terminal, each as likely.
    Uniform,
    /// To the terminal so many places on; by the size of a group it is the dragonfly's worst case.
    Shift(u32),
    /// Along a random cycle through all terminals.
    Permutation,
    /// To the next terminal.
    Nearest,
    /// Some of the messages, in percent, to one terminal, the others to any.
    HotSpot {
        /// The terminal.
        terminal: u32,
        /// From 0 to 100.
        percent: u32,
    },
}

impl Pattern {
    /// To whom each of so many terminals sends, where that stays the same; the hot terminal of a
    /// pattern with 100 percent sends to itself. `None` where partners are drawn anew.
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
