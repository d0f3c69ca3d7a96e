//! Rules for the score of a lightpath, which decides the order in which lightpaths are added.
//!
//! The score is gain^a / length^b, for several exponents. A lightpath to a rank that is far from
//! all holders of a chunk has a high gain, because this rank can serve its neighbours in later
//! slots. Where few ranks have chunks at the start of a slot, so that each of their lightpaths
//! could have L links, lengths below L count as L.
//!
//! The score is also divided by the number of lightpaths that the rank can receive in a slot, and
//! by (r + 1)^2 if it has received r chunks in this slot. The chunks of a slot then spread over
//! many ranks, which all send in the next slot. Some rules multiply by the number of chunks that
//! the rank lacks instead, so that no rank lacks many chunks in the last slots.

/// Exponents of the gain and of the length, and whether chunks spread over many ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    gain: u32,
    length: u32,
    pub(super) spreads: bool,
}

/// Rules to try, the best on most graphs first. Tried on tori, meshes, lines, hypercubes and two
/// national networks, no other exponents needed fewer slots than all of these.
pub(super) const RULES: [Rule; 5] = [
    Rule::new(1, 1, false),
    Rule::new(1, 1, true),
    Rule::new(2, 1, true),
    Rule::new(1, 2, true),
    Rule::new(1, 3, true),
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
    const fn new(gain: u32, length: u32, spreads: bool) -> Rule {
        Rule {
            gain,
            length,
            spreads,
        }
    }

    /// Returns the score of a lightpath, as an integer with the same order. `reception` is that of
    /// its end; `None` if all ranks receive alike.
    pub(super) fn score(&self, gain: u32, length: u32, reception: Option<Reception>) -> u64 {
        let power = |base: u32, exponent: u32| {
            (0..exponent).fold(1.0, |product, _| product * f64::from(base))
        };
        let mut score = power(gain, self.gain) / power(length, self.length);
        if let Some(reception) = reception {
            score /= f64::from(reception.at_once.max(1));
            match self.spreads {
                true => score /= power(reception.received + 1, 2),
                false => score *= f64::from(reception.missing + 1),
            }
        }
        // The bits of positive floating-point numbers have the order of the numbers.
        score.to_bits()
    }
}
