//! Configuration of the slow switches: the output port for each input port and wavelength.

use super::{Plane, SwitchPort};

/// Connection in one switch: light that enters at `input` on `wavelength` leaves at `output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchConfiguration {
    /// Plane of the switch: row or column.
    pub plane: Plane,
    /// Index of the row or column to which the switch belongs.
    pub switch: u32,
    /// Index of the port at which the light enters.
    pub input: u32,
    /// Index of the wavelength.
    pub wavelength: u32,
    /// Index of the port at which the light leaves.
    pub output: u32,
}

impl SwitchConfiguration {
    /// Returns plane, switch, input port and wavelength, which determine the output port.
    fn key(&self) -> (Plane, u32, u32, u32) {
        (self.plane, self.switch, self.input, self.wavelength)
    }
}

/// Connections in all switches for a task, at most one for each input port and wavelength.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    settings: Vec<SwitchConfiguration>,
}

impl Configuration {
    /// Creates a configuration. If two connections have the same input port and wavelength, keeps
    /// only the connection with the lower output port.
    pub fn new(mut settings: Vec<SwitchConfiguration>) -> Configuration {
        settings.sort_unstable();
        settings.dedup_by_key(|setting| setting.key());
        Configuration { settings }
    }

    /// Returns all connections, sorted by plane, switch, input port and wavelength.
    pub fn settings(&self) -> &[SwitchConfiguration] {
        &self.settings
    }

    /// Returns the port at which light leaves a switch, given its input port and wavelength.
    /// Returns `None` if the switch has no connection for this light.
    pub fn output(&self, plane: Plane, switch: u32, input: u32, wavelength: u32) -> Option<u32> {
        let key = (plane, switch, input, wavelength);
        let index = self
            .settings
            .binary_search_by_key(&key, SwitchConfiguration::key)
            .ok()?;
        Some(self.settings[index].output)
    }

    /// Returns all ports at which light enters or leaves a switch, sorted.
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

    /// Returns the number of wavelengths of `plane`: the highest wavelength number plus one.
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
