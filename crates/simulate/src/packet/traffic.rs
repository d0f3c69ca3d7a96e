//! Traffic without a schedule: every terminal sends messages at a fixed period.
//!
//! Terminal i of N sends its message j at time s_i + j T. All random numbers come from one hash
//! function, so that other simulators can generate the same traffic. With seed z, M messages per
//! terminal and period T in whole nanoseconds:
//!
//! ```text
//! hash(x):    the output function of SplitMix64 on x
//! foreground: s_i = 1 + hash(7919 z + i) mod T ns
//!             uniform: message j of i goes to (i + 1 + hash(i M + j + 2^28 z) mod (N - 1)) mod N
//! background: s_i = 1 + hash(104729 z + i) mod T ns
//!             uniform: (i + 1 + hash(182 * 2^40 xor (1000003 i + j)) mod (N - 1)) mod N
//! ```
//!
//! Multiplication and addition are modulo 2^64. Some patterns have fixed partners: with
//! [`Pattern::Shift`], terminal i sends to i + k; with [`Pattern::Nearest`], to i + 1; with
//! [`Pattern::Permutation`], to the next terminal of a cycle in the order of
//! [`shuffled`](opticoll_base::hash::shuffled). With [`Pattern::HotSpot`], let x be the argument of
//! the hash for the uniform destination of a message. If hash(x + 1) mod 100 is below the
//! percentage, the message goes to the hot terminal; otherwise it goes to the uniform destination.
//! The hot terminal itself sends to uniform destinations.

use crate::pattern::Pattern;
use opticoll_base::hash::hash;
use opticoll_base::units::{Bytes, Time};

/// Sequence of random numbers. Traffic with a collective has a different sequence from traffic
/// without a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draws {
    /// Sequence for traffic without a collective.
    Foreground,
    /// Sequence for traffic in addition to a collective.
    Background,
}

/// Traffic in which every terminal sends messages of one size at a fixed period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traffic {
    /// Destinations of the messages.
    pub pattern: Pattern,
    /// Size of each message.
    pub size: Bytes,
    /// Time between two messages of a terminal, at least 1 ns. Start times use whole nanoseconds.
    pub period: Time,
    /// Number of messages of each terminal; `None` if terminals send until the collective ends.
    pub messages: Option<u32>,
    /// Time before which no terminal sends.
    pub start: Time,
    /// Time from which no terminal sends; `None` if only `messages` or a collective ends the
    /// traffic.
    pub end: Option<Time>,
    /// Sequence of random numbers.
    pub draws: Draws,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Traffic {
    /// Returns whether terminals may still send at `time` (ps).
    pub(super) fn sends_at(&self, time: u64) -> bool {
        self.end.is_none_or(|end| time < end.ps())
    }
}

/// Traffic stream, with the number of messages that each terminal has sent.
pub(super) struct Stream {
    traffic: Traffic,
    terminals: u32,
    sent: Vec<u32>,
    /// Partner of each terminal, indexed by terminal; `None` if the pattern has no fixed partners.
    partners: Option<Vec<u32>>,
}

impl Stream {
    pub(super) fn new(traffic: Traffic, terminals: u32) -> Stream {
        let drawn = matches!(traffic.pattern, Pattern::HotSpot { .. });
        let fixed = traffic.pattern.partners(terminals, traffic.seed);
        Stream {
            terminals,
            sent: vec![0; terminals as usize],
            // The destinations of messages to a hot spot are drawn one by one.
            partners: fixed.filter(|_| !drawn),
            traffic,
        }
    }

    pub(super) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Returns the time (ps) of the first message of a terminal.
    pub(super) fn first(&self, terminal: u32) -> u64 {
        let prime: u64 = match self.traffic.draws {
            Draws::Foreground => 7919,
            Draws::Background => 104_729,
        };
        let draw = hash(
            prime
                .wrapping_mul(self.traffic.seed)
                .wrapping_add(terminal.into()),
        );
        let period_ns = (self.traffic.period.ps() / 1000).max(1);
        self.traffic.start.ps() + 1000 * (1 + draw % period_ns)
    }

    /// Returns the destination of a terminal's next message, and whether more messages follow.
    pub(super) fn next(&mut self, terminal: u32) -> (u32, bool) {
        let message = self.sent[terminal as usize];
        self.sent[terminal as usize] += 1;
        let more = self
            .traffic
            .messages
            .is_none_or(|count| message + 1 < count);
        (self.destination(terminal, message), more)
    }

    fn destination(&self, terminal: u32, message: u32) -> u32 {
        if let Some(partners) = &self.partners {
            return partners[terminal as usize];
        }
        if let Pattern::HotSpot {
            terminal: hot,
            percent,
        } = self.traffic.pattern
        {
            let draw = hash(self.argument(terminal, message).wrapping_add(1));
            if terminal != hot && draw % 100 < u64::from(percent) {
                return hot;
            }
        }
        self.uniform(terminal, message)
    }

    fn uniform(&self, terminal: u32, message: u32) -> u32 {
        let others = u64::from(self.terminals) - 1;
        let offset = hash(self.argument(terminal, message)) % others;
        ((u64::from(terminal) + 1 + offset) % u64::from(self.terminals)) as u32
    }

    fn argument(&self, terminal: u32, message: u32) -> u64 {
        let (terminal, message) = (u64::from(terminal), u64::from(message));
        match self.traffic.draws {
            Draws::Foreground => {
                let messages = u64::from(self.traffic.messages.unwrap_or(0));
                (terminal * messages + message).wrapping_add(self.traffic.seed << 28)
            }
            Draws::Background => (0xB6 << 40) ^ (terminal * 1_000_003 + message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_bit_exact() {
        // Terminal, message, then destination and start in ns of foreground and background traffic
        // among 72 terminals, computed by a program in another language.
        let cases = [
            (0, 0, (57, 515), (44, 1712)),
            (5, 3, (11, 530), (19, 319)),
            (71, 99, (9, 997), (29, 889)),
        ];
        let stream = |draws, period_us: u64| {
            let traffic = Traffic {
                pattern: Pattern::Uniform,
                size: Bytes::new(2048),
                period: Time::from_ps(period_us * 1_000_000),
                messages: Some(100),
                start: Time::ZERO,
                end: None,
                draws,
                seed: 1,
            };
            Stream::new(traffic, 72)
        };
        let foreground = stream(Draws::Foreground, 1);
        let background = stream(Draws::Background, 2);
        for (terminal, message, first, second) in cases {
            for (stream, expected) in [(&foreground, first), (&background, second)] {
                let start = stream.first(terminal) / 1000;
                assert_eq!((stream.destination(terminal, message), start), expected);
            }
        }
    }
}
