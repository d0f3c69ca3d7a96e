//! Configuration of the slow switches: one output port for each input port and wavelength.

use super::{Plane, SwitchPort};

/// Setting of one switch: light that enters at `input` on `wavelength` leaves at `output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchSetting {
    /// Plane of the switch: a row or a column.
    pub plane: Plane,
    /// Number of the row or column.
    pub switch: u32,
    /// Port at which light enters.
    pub input: u32,
    /// Wavelength of the light.
    pub wavelength: u32,
    /// Port at which the light leaves.
    pub output: u32,
}

impl SwitchSetting {
    /// Returns plane, switch, input and wavelength, which determine the output.
    fn key(&self) -> (Plane, u32, u32, u32) {
        (self.plane, self.switch, self.input, self.wavelength)
    }
}

/// Settings of all switches for a task, with at most one output for each input and wavelength.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    settings: Vec<SwitchSetting>,
}

impl Configuration {
    /// Creates a configuration. If two settings have the same input and wavelength, keeps the one
    /// with the lower output.
    pub fn new(mut settings: Vec<SwitchSetting>) -> Configuration {
        settings.sort_unstable();
        settings.dedup_by_key(|setting| setting.key());
        Configuration { settings }
    }

    /// Returns all settings, ordered by plane, switch, input and wavelength.
    pub fn settings(&self) -> &[SwitchSetting] {
        &self.settings
    }

    /// Returns the output port of light that enters a switch at a port, or `None` if the switch
    /// does not guide it.
    pub fn output(&self, plane: Plane, switch: u32, input: u32, wavelength: u32) -> Option<u32> {
        let key = (plane, switch, input, wavelength);
        let index = self
            .settings
            .binary_search_by_key(&key, SwitchSetting::key)
            .ok()?;
        Some(self.settings[index].output)
    }

    /// Returns the ports at which light enters or leaves, in order.
    pub fn ports(&self) -> Vec<SwitchPort> {
        let ends = self.settings.iter().flat_map(|setting| {
            let port = |port| SwitchPort {
                plane: setting.plane,
                switch: setting.switch,
                port,
            };
            [port(setting.input), port(setting.output)]
        });
        let mut ports: Vec<SwitchPort> = ends.collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// Returns the number of wavelengths that a plane needs: the highest wavelength plus one.
    pub fn wavelengths(&self, plane: Plane) -> u32 {
        let settings = self
            .settings
            .iter()
            .filter(|setting| setting.plane == plane);
        settings
            .map(|setting| setting.wavelength + 1)
            .max()
            .unwrap_or_default()
    }
}
