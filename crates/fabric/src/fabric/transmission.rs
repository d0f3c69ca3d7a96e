//! Time that a circuit needs for the bytes of a message: transmission, and conversion between light
//! and electrical signals flit by flit.
//!
//! A message of b bytes is sent at rate B in n = max(1, ceil(b / f)) *flits* of f bytes; the last
//! flit may be shorter. The conversion of a flit takes time c. Flits form m *packets* of K flits. A
//! packet has P = K * f bytes. While a packet is converted, flit after flit, the next packet is
//! sent. Packet i has arrived when min(i * P, b) bytes are sent. The conversion of packet i starts
//! after the conversion of packet i - 1. Therefore the time of the message is
//!
//! ```text
//! max over i = 1, ..., m of ceil(min(i * P, b) / B) + (n - (i - 1) * K) * c
//! ```
//!
//! For i <= m - 1 both terms are linear in i, so the maximum is at i = 1, m - 1 or m. Special
//! cases:
//!
//! * if flits are as long as the message: b / B + c, where c is a delay of each message;
//! * if packets have one flit, all of full length, with s = f / B: n * max(s, c) + min(s, c), the
//!   time of a pipeline of two stages, which equals b / B + c if c <= s;
//! * if packets are as long as the message: b / B + n * c, because conversion starts after
//!   transmission.
//!
//! **Lower bound.** The time of a message of b bytes is at least a + t * b, with latency a and time
//! per byte t. If a message is one flit, a = c and t = 1 / B. If packets overlap, a = min(s, c) and
//! t = max(1 / B, c / f), because longer packets only delay the pipeline above. If packets are as
//! long as the message, a = 0 and t = 1 / B + c / f. Therefore k consecutive messages of b bytes in
//! total take at least k * a + t * b.
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

use super::FabricError;
use super::options::{DefaultRule::Silent, Options};
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::{Bytes, Rate, Time, UnitError};

/// Model of the time that a circuit needs for the bytes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmission {
    /// Transmission rate, B.
    pub rate: Rate,
    /// Time to convert one flit, c.
    pub conversion: Time,
    /// Bytes per flit, f > 0; `None` if each message is one flit.
    pub flit: Option<Bytes>,
    /// Bytes per packet, P, a multiple of f; `None` if each message is one packet.
    pub packet: Option<Bytes>,
}

impl Transmission {
    /// Returns the model of a circuit that sends at `rate` and converts nothing.
    pub const fn at(rate: Rate) -> Transmission {
        Transmission {
            rate,
            conversion: Time::ZERO,
            flit: None,
            packet: None,
        }
    }

    /// Returns the time of a message of `bytes` bytes.
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

    /// Returns the time of a message in picoseconds, at most `u128::MAX`.
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

    /// Returns the constant a of the lower bound a + t * b on the time of a message (module
    /// header).
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

    /// Returns a lower bound on the time of messages with `bytes / parts` bytes in total. The bound
    /// is the term t * b of the module header, in picoseconds, rounded down. Returns `None` if an
    /// intermediate product exceeds 128 bits.
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

/// Returns n, the number of flits of a message. A message of 0 bytes has one flit.
fn flits(bytes: u128, flit: Bytes) -> u128 {
    bytes.div_ceil(flit.get().into()).max(1)
}

/// Conversion between light and electrical signals at the ends of a lightpath, with the fields of
/// [`Transmission`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conversion {
    pub(crate) conversion: Time,
    pub(crate) flit: Option<Bytes>,
    pub(crate) packet: Option<Bytes>,
}

/// Declares the options `conversion`, `flit` and `packet`. `of` returns the transmission of a
/// machine.
pub(crate) fn declare_conversion<M>(
    options: &mut Options<'_, M>,
    of: impl Fn(&M) -> Transmission,
) -> Result<Conversion, FabricError> {
    let conversion = options.value(
        OptionRecord::new(
            "conversion",
            "time to convert each flit (O/E/O); without flit, each message",
        )
        .source("Dai et al., OpTree, section IV.A: a cycle per flit"),
        Silent(Time::ZERO),
        |machine| of(machine).conversion,
    )?;
    let flit = options.option(
        OptionRecord::new("flit", "bytes converted at a time")
            .unit("B")
            .range("1B or more")
            .default("the whole message")
            .source("Dai et al., OpTree, section IV.A: 32 bytes"),
        |spec| match spec.value("flit")? {
            Some(flit) if flit == Bytes::new(0) => {
                Err(spec.refuse("flit", "must be at least 1B").into())
            }
            flit => Ok(flit),
        },
        |flit: &Option<Bytes>| flit.map(|flit| flit.to_string()),
        |machine| of(machine).flit,
    )?;
    let packet = options.option(
        OptionRecord::new(
            "packet",
            "size of a packet; a packet is converted while the next packet is sent",
        )
        .unit("B")
        .range("a whole number of flits, message")
        .default("flit")
        .source("Dai et al., OpTree, section IV.A: 128 bytes"),
        |spec| read_packet(spec, flit),
        |packet| match packet {
            Some(packet) => (Some(*packet) != flit).then(|| packet.to_string()),
            None => flit.map(|_| MESSAGE.to_owned()),
        },
        |machine| of(machine).packet,
    )?;
    Ok(Conversion {
        conversion,
        flit,
        packet,
    })
}

/// Value of the option `packet` for packets as long as the message.
const MESSAGE: &str = "message";

fn read_packet(spec: &Spec, flit: Option<Bytes>) -> Result<Option<Bytes>, FabricError> {
    let refuse = |problem| Err(spec.refuse("packet", problem).into());
    match (spec.option("packet"), flit) {
        (None, flit) => Ok(flit),
        (Some(_), None) => refuse("needs flit=..., such as 32B"),
        (Some(MESSAGE), Some(_)) => Ok(None),
        (Some(_), Some(flit)) => match spec.value::<Bytes>("packet")? {
            Some(packet) if packet >= flit && packet.get() % flit.get() == 0 => Ok(Some(packet)),
            _ => refuse("must be a whole number of flits, or message"),
        },
    }
}
