//! How the slow switches are set: for each input port and wavelength one output port.

use super::{Plane, WssGrid};

/// One setting of one switch: what enters at `input` on `wavelength` leaves at `output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Setting {
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
    settings: Vec<Setting>,
}

impl Configuration {
    /// The settings given, in order. Of two for one input and wavelength the first in order counts.
    pub fn new(mut settings: Vec<Setting>) -> Configuration {
        settings.sort_unstable();
        settings.dedup_by_key(|one| (one.plane, one.switch, one.input, one.wavelength));
        Configuration { settings }
    }

    /// What the grid's wavelength plan sets for all ports that work; nothing for a plan that is made
    /// for the circuits of a task.
    pub fn by_formula(grid: &WssGrid) -> Configuration {
        let mut settings = Vec::new();
        for source in 0..grid.ranks() {
            for plane in Plane::BOTH {
                let (switch, input) = grid.port(source, plane);
                for output in 0..grid.side(plane) {
                    let (row, column) = match plane {
                        Plane::Row => (switch, output),
                        Plane::Column => (output, switch),
                    };
                    let wavelength = grid.plan.wavelength(grid.side(plane), input, output);
                    let (Some(wavelength), Some(receiver)) =
                        (wavelength, grid.rank_at(row, column))
                    else {
                        continue;
                    };
                    if grid.works(source, plane) && grid.works(receiver, plane) {
                        settings.push(Setting {
                            plane,
                            switch,
                            input,
                            wavelength,
                            output,
                        });
                    }
                }
            }
        }
        Configuration::new(settings)
    }

    /// All settings, by plane, switch, input and wavelength.
    pub fn settings(&self) -> &[Setting] {
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

    /// The most wavelengths that an input port of a plane uses.
    pub fn wavelengths(&self, plane: Plane) -> u32 {
        let of_plane = self.settings.iter().filter(|one| one.plane == plane);
        of_plane
            .map(|one| one.wavelength + 1)
            .max()
            .unwrap_or_default()
    }
}
