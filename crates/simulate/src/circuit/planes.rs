//! Settings of planes (parallel switches), each of which changes all of its ports at the same time.

use std::collections::BTreeMap;

use opticoll_base::ports::Ports;
use opticoll_fabric::fabric::circuits::{Port, Tuning};

/// Current setting of every plane; `S` is a time with its cause.
pub(super) struct PlaneSettings<S> {
    /// Slot in which each port was used last.
    used: Ports<u32>,
    planes: BTreeMap<u32, PlaneSetting<S>>,
}

struct PlaneSetting<S> {
    /// First slot of the current setting.
    first: u32,
    /// Time from which the setting is in force; `None` until [`PlaneSettings::set_ready`] sets it.
    ready: Option<S>,
    /// Time at which all messages so far have ended.
    ended: Option<S>,
}

/// Change of a plane's setting.
pub(super) struct PlaneChange<S> {
    pub(super) plane: u32,
    pub(super) is_first: bool,
    /// Time at which all messages so far have ended.
    pub(super) ended: Option<S>,
}

impl<S> Default for PlaneSettings<S> {
    fn default() -> PlaneSettings<S> {
        PlaneSettings {
            used: Ports::default(),
            planes: BTreeMap::new(),
        }
    }
}

impl<S: Copy> PlaneSettings<S> {
    /// Advances to a slot and returns the planes whose setting changes because one of their ports
    /// changes its circuit.
    pub(super) fn enter(&mut self, slot: u32, tunings: &[Tuning]) -> Vec<PlaneChange<S>> {
        let mut ports: BTreeMap<u32, Vec<Port>> = BTreeMap::new();
        for tuning in tunings.iter().filter(|tuning| !tuning.is_fixed) {
            let plane_ports = ports.entry(tuning.plane).or_default();
            plane_ports.extend([tuning.transmitter, tuning.receiver]);
        }
        let mut changes = Vec::new();
        for (plane, ports) in ports {
            let before = self.planes.get(&plane);
            let holds = before.is_some_and(|setting| {
                ports.iter().all(|port| {
                    let taken = self.used.take(*port, |slot| slot);
                    taken.holds || taken.before.is_none_or(|(_, used)| used < setting.first)
                })
            });
            if !holds {
                let ended = before.and_then(|setting| setting.ended);
                changes.push(PlaneChange {
                    plane,
                    is_first: before.is_none(),
                    ended,
                });
                let setting = PlaneSetting {
                    first: slot,
                    ready: None,
                    ended,
                };
                self.planes.insert(plane, setting);
            }
            for port in ports {
                let taken = self.used.take(port, |slot| slot);
                self.used.set(port, taken.place, slot);
            }
        }
        changes
    }

    pub(super) fn set_ready(&mut self, plane: u32, since: S) {
        if let Some(setting) = self.planes.get_mut(&plane) {
            setting.ready = Some(since);
        }
    }

    /// Returns the time from which the setting of a plane is in force.
    pub(super) fn ready(&self, plane: u32) -> Option<S> {
        self.planes.get(&plane)?.ready
    }

    /// Updates the time at which all messages of a plane have ended.
    pub(super) fn end(&mut self, plane: u32, later: impl FnOnce(Option<S>) -> S) {
        if let Some(setting) = self.planes.get_mut(&plane) {
            setting.ended = Some(later(setting.ended));
        }
    }
}
