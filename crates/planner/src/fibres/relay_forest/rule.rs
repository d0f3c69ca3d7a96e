//! Rules for the score of a lightpath, which decides the order in which lightpaths are added.
//!
//! The score is gain^a / length^b, for several exponents. A lightpath to a rank that is far from
//! all holders of a chunk has a high gain, because this rank can serve its neighbours in later
//! slots. Where few ranks have chunks at the start of a slot, so that each of their lightpaths
//! could have L links, lengths below L count as L.
//!
//! Most rules also divide the score by the number of lightpaths that the rank can receive in a
//! slot. Some of them divide by (r + 1)^2 if the rank has received r chunks in this slot. The
//! chunks of a slot then spread over many ranks, which all send in the next slot. Others
//! multiply by the number of chunks that the rank lacks, so that no rank lacks many chunks in
//! the last slots.

/// Effect on the score of the chunks that a rank receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Balance {
    None,
    /// Ranks that lack many chunks come first.
    Missing,
    /// Ranks that have received few chunks in this slot come first.
    Received,
}

/// Exponents of the gain and of the length, and the balance between ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    gain: u32,
    length: u32,
    balance: Balance,
}

/// Rules to try, the best on most graphs first. Each needs fewer slots than all others on one of
/// these: tori, meshes, lines, hypercubes and two national networks.
pub(super) const RULES: [Rule; 6] = [
    Rule::new(1, 1, Balance::Missing),
    Rule::new(1, 1, Balance::Received),
    Rule::new(2, 1, Balance::Received),
    Rule::new(1, 2, Balance::Missing),
    Rule::new(1, 1, Balance::None),
    Rule::new(1, 3, Balance::None),
];

/// Chunks that a rank receives.
pub(super) struct Reception {
    /// Number of chunks received in this slot.
    pub(super) received: u32,
    /// Number of chunks that the rank lacks.
    pub(super) missing: u32,
    /// Maximum number of lightpaths in a slot.
    pub(super) at_once: u32,
}

impl Rule {
    const fn new(gain: u32, length: u32, balance: Balance) -> Rule {
        Rule {
            gain,
            length,
            balance,
        }
    }

    /// Returns whether the rule differs from all rules before it if all ranks receive alike.
    pub(super) fn differs_if_alike(&self) -> bool {
        let others = RULES
            .iter()
            .filter(|rule| (rule.gain, rule.length) == (self.gain, self.length));
        let first = others.map(|rule| rule.balance).next();
        first == Some(self.balance)
    }

    /// Returns the score of a lightpath, as an integer with the same order. `reception` is that of
    /// its end; `None` if all ranks receive alike.
    pub(super) fn score(&self, gain: u32, length: u32, reception: Option<Reception>) -> u64 {
        let power = |base: u32, exponent: u32| {
            (0..exponent).fold(1.0, |product, _| product * f64::from(base))
        };
        let mut score = power(gain, self.gain) / power(length, self.length);
        if let Some(reception) = reception {
            let at_once = f64::from(reception.at_once.max(1));
            match self.balance {
                Balance::None => {}
                Balance::Missing => score *= f64::from(reception.missing + 1) / at_once,
                Balance::Received => score /= power(reception.received + 1, 2) * at_once,
            }
        }
        // The bits of positive floating-point numbers have the order of the numbers.
        score.to_bits()
    }
}
