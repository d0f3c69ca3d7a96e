//! How the slow switches are set: for each input port and wavelength one output port.

use super::{Plane, SwitchPort};

/// One setting of one switch: what enters at `input` on `wavelength` leaves at `output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchSetting {
    /// Whether it is the switch of a row or of a column.
    pub plane: Plane,
    /// The row or column.
    pub switch: u32,
    /// The port at which light enters.
    pub input: u32,
    /// Its wavelength.
    pub wavelength: u32,
    /// The port at which it leaves.
    pub output: u32,
}

/// The settings of all switches for a task: at most one output for each input and wavelength.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    settings: Vec<SwitchSetting>,
}

impl Configuration {
    /// The settings given, in order. Of two for one input and wavelength the first in order counts.
    pub fn new(mut settings: Vec<SwitchSetting>) -> Configuration {
        settings.sort_unstable();
        settings.dedup_by_key(|one| (one.plane, one.switch, one.input, one.wavelength));
        Configuration { settings }
    }

    /// All settings, by plane, switch, input and wavelength.
    pub fn settings(&self) -> &[SwitchSetting] {
        &self.settings
    }

    /// Where light of a wavelength that enters a switch at a port leaves it.
    pub fn output(&self, plane: Plane, switch: u32, input: u32, wavelength: u32) -> Option<u32> {
        let key = (plane, switch, input, wavelength);
        let found = self
            .settings
            .binary_search_by_key(&key, |one| {
                (one.plane, one.switch, one.input, one.wavelength)
            })
            .ok()?;
        Some(self.settings[found].output)
    }

    /// The ports at which light enters or leaves, in order.
    pub fn ports(&self) -> Vec<SwitchPort> {
        let ends = self.settings.iter().flat_map(|one| {
            let port = |port| SwitchPort {
                plane: one.plane,
                switch: one.switch,
                port,
            };
            [port(one.input), port(one.output)]
        });
        let mut ports: Vec<SwitchPort> = ends.collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// The most wavelengths that an input port of a plane uses.
    pub fn wavelengths(&self, plane: Plane) -> u32 {
        let of_plane = self.settings.iter().filter(|one| one.plane == plane);
        of_plane
            .map(|one| one.wavelength + 1)
            .max()
            .unwrap_or_default()
    }
}
