//! How long a circuit takes for the bytes of a message: sending, and O/E/O conversion flit by flit.
//!
//! A message of b bytes is sent at rate B in n = max(1, ceil(b / f)) *flits* of f bytes, the last of which may
//! be shorter. Converting a flit takes c. Flits form *packets* of K flits, P = K f bytes: while a packet is
//! converted, flit after flit, the next one is sent. Packet i of m has arrived when min(i P, b) bytes are sent,
//! and is converted once the packets before it are. So the message takes
//!
//! ```text
//! max over i = 1, ..., m of ceil(min(i P, b) / B) + (n - (i - 1) K) c
//! ```
//!
//! Up to i = m - 1 both terms are linear in i: the maximum is at i = 1, m - 1 or m. Special cases:
//!
//! * flits as long as the message: b / B + c, a delay of each message;
//! * packets of one flit, all whole, with s = f / B: n max(s, c) + min(s, c), the time of a pipeline of two
//!   stages, which is b / B + c where a flit is converted no slower than it is sent;
//! * packets as long as the message: b / B + n c, nothing overlaps.
//!
//! **What no messages go below.** A message of b bytes takes a + t b at least. Where a message is one flit, a = c
//! and t = 1 / B. Where packets overlap, a = min(s, c) and t = max(1 / B, c / f), for longer packets only delay
//! the pipeline above. Where packets are as long as the message, a = 0 and t = 1 / B + c / f. So messages of
//! b bytes in all that follow one another take t b and as many times a.
//!
//! ```
//! use opticoll_fabric::fabric::transmission::Transmission;
//! use opticoll_base::units::Bytes;
//! let flits = Transmission {
//!     conversion: "1ns".parse()?,
//!     flit: Some(Bytes::new(32)),
//!     packet: Some(Bytes::new(128)),
//!     ..Transmission::at("40Gb/s".parse()?)
//! };
//! // 32 packets are sent in 25.6 ns each; the last of them is converted in 4 ns.
//! assert_eq!(flits.time(Bytes::new(4096))?, "823.2ns".parse()?);
//! # Ok::<(), opticoll_base::units::UnitError>(())
//! ```

use opticoll_base::units::{Bytes, Rate, Time, UnitError};

/// What a circuit takes for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmission {
    /// The rate at which bytes are sent, B.
    pub rate: Rate,
    /// The time to convert a flit, c.
    pub conversion: Time,
    /// The bytes of a flit, f > 0; `None`: a message is one flit.
    pub flit: Option<Bytes>,
    /// The bytes of a packet, P, a multiple of f; `None`: a message is one packet.
    pub packet: Option<Bytes>,
}

impl Transmission {
    /// Sending at a rate, without conversion.
    pub const fn at(rate: Rate) -> Transmission {
        Transmission {
            rate,
            conversion: Time::ZERO,
            flit: None,
            packet: None,
        }
    }

    /// The time of a message.
    ///
    /// # Errors
    /// A time beyond 64 bits of picoseconds.
    #[inline]
    pub fn time(self, bytes: Bytes) -> Result<Time, UnitError> {
        match self.flit {
            None => self.conversion.plus(self.rate.transmission(bytes)?),
            Some(_) => u64::try_from(self.ps(bytes))
                .map(Time::from_ps)
                .map_err(|_| UnitError::Overflow {
                    what: format!("sending {bytes} at {} and converting its flits", self.rate),
                    smallest: "picoseconds",
                }),
        }
    }

    /// The time of a message in picoseconds; too long counts as the greatest number.
    pub fn ps(self, bytes: Bytes) -> u128 {
        let bytes = u128::from(bytes.get());
        let sent = |bytes: u128| (8_000_000_000_000 * bytes).div_ceil(self.bits_per_second());
        let converted = |flits: u128| flits.saturating_mul(self.conversion.ps().into());
        let flits = self.flit.map_or(1, |flit| flits(bytes, flit));
        let (Some(flit), Some(packet)) = (self.flit, self.packet) else {
            return sent(bytes).saturating_add(converted(flits));
        };
        let per_packet = u128::from(packet.get() / flit.get());
        let packets = flits.div_ceil(per_packet);
        let end = |number: u128| {
            let arrived = sent(bytes.min(number * u128::from(packet.get())));
            arrived.saturating_add(converted(flits - (number - 1) * per_packet))
        };
        end(1).max(end((packets - 1).max(1))).max(end(packets))
    }

    /// a: what each message takes at least, beside [`Transmission::least`].
    pub fn latency(self) -> Time {
        match (self.flit, self.packet) {
            (None, _) => self.conversion,
            (Some(_), None) => Time::ZERO,
            (Some(flit), Some(_)) => {
                let sent = 8_000_000_000_000 * u128::from(flit.get()) / self.bits_per_second();
                let sent = Time::from_ps(u64::try_from(sent).unwrap_or(u64::MAX));
                self.conversion.min(sent)
            }
        }
    }

    /// t b: what messages of `bytes / parts` bytes in all take at least, one after the other, in picoseconds
    /// rounded down; `None` where it leaves 128 bits.
    pub fn least(self, bytes: u128, parts: u128) -> Option<u128> {
        let sent = bytes.checked_mul(8_000_000_000_000)?;
        let sent = sent / self.bits_per_second().checked_mul(parts)?;
        let Some(flit) = self.flit else {
            return Some(sent);
        };
        let converted = bytes.checked_mul(self.conversion.ps().into())?;
        let converted = converted / u128::from(flit.get()).checked_mul(parts)?;
        match self.packet {
            Some(_) => Some(sent.max(converted)),
            None => sent.checked_add(converted),
        }
    }

    fn bits_per_second(self) -> u128 {
        self.rate.bits_per_second().into()
    }
}

/// n: a message without bytes is a flit, too.
fn flits(bytes: u128, flit: Bytes) -> u128 {
    bytes.div_ceil(flit.get().into()).max(1)
}
