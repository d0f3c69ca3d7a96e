//! Optical signal-to-noise ratio (OSNR): the power of a signal divided by the power of the noise in
//! a band of 0.1 nm.
//!
//! Independent sources of noise add up, so that
//!
//! ```text
//! 1 / OSNR = sum of 1 / OSNR_i        (ratios of powers, not decibels)
//! ```
//!
//! An amplifier with the noise figure F adds spontaneous emission (ASE). Referred to the
//! amplifier's input, its power in a band of width B at frequency f is h * f * B * F, where h is
//! Planck's constant. Hence 1 / OSNR_i = h * f * B * F / P for a signal of power P at the input.
//! Crosstalk with a ratio x to the signal has 1 / OSNR_i = x. Nonlinear effects of fibres are not
//! modelled; GNPy (its generalised OSNR) and XLRON model them.
//!
//! ```
//! use opticoll_fabric::fabric::noise::Noise;
//! // Two sources with an OSNR of 30 dB each.
//! let noise = Noise::from_osnr(30.0).plus(Noise::from_osnr(30.0));
//! assert_eq!(noise.osnr().unwrap().to_string(), "26.9897");
//! ```

use super::loss::Decibels;

/// Planck's constant in J s (exact in SI).
const PLANCK: f64 = 6.626_070_15e-34;

/// Frequency of light of 1550 nm in Hz.
const FREQUENCY: f64 = 299_792_458.0 / 1550e-9;

/// Band of 0.1 nm at 1550 nm in Hz, as instruments measure OSNR.
const BAND: f64 = 12.5e9;

/// Power of noise, relative to the power of the signal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise(f64);

/// Converts decibels to a ratio of powers.
fn ratio(decibels: f64) -> f64 {
    libm::exp10(decibels / 10.0)
}

impl Noise {
    /// No noise.
    pub const NONE: Noise = Noise(0.0);

    /// Returns the noise of a source that alone has the OSNR `osnr` in dB.
    pub fn from_osnr(osnr: f64) -> Noise {
        Noise(1.0 / ratio(osnr))
    }

    /// Returns the noise of crosstalk. `crosstalk` is its power relative to the signal in dB, such
    /// as -40 dB.
    pub fn from_crosstalk(crosstalk: f64) -> Noise {
        Noise(ratio(crosstalk))
    }

    /// Returns the noise of an amplifier with the noise figure `noise_figure` in dB. `input` is the
    /// power of the signal at its input in dBm.
    pub fn from_amplifier(input: f64, noise_figure: f64) -> Noise {
        let milliwatts = PLANCK * FREQUENCY * BAND * 1e3;
        Noise(milliwatts * ratio(noise_figure) / ratio(input))
    }

    /// Returns the noise of both sources.
    pub fn plus(self, other: Noise) -> Noise {
        Noise(self.0 + other.0)
    }

    /// Returns the noise of `count` equal sources.
    pub fn times(self, count: u64) -> Noise {
        Noise(self.0 * count as f64)
    }

    /// Returns the power of the noise relative to the power of the signal.
    pub fn to_signal(self) -> f64 {
        self.0
    }

    /// Returns the OSNR in dB, rounded to the nearest millionth; `None` without noise.
    pub fn osnr(self) -> Option<Decibels> {
        let osnr = -10.0 * libm::log10(self.0);
        (self.0 > 0.0).then(|| Decibels::from_millionths(libm::round(osnr * 1e6) as i64))
    }
}
