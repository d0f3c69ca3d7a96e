//! Settings of planes, each of which changes all of its ports together.

use std::collections::BTreeMap;

use opticoll_base::ports::Ports;
use opticoll_fabric::fabric::circuits::{Port, Tuning};

/// The settings in force; `S` says since when.
pub(super) struct PlaneSettings<S> {
    /// The slot in which each port was used last.
    used: Ports<u32>,
    planes: BTreeMap<u32, PlaneSetting<S>>,
}

struct PlaneSetting<S> {
    /// The first slot of the setting in force.
    first: u32,
    /// Since when it is in force.
    ready: Option<S>,
    /// When all messages so far had ended.
    ended: Option<S>,
}

/// A plane that gets another setting.
pub(super) struct PlaneChange<S> {
    pub(super) plane: u32,
    pub(super) is_first: bool,
    /// When all messages so far have ended.
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
    /// Goes on to a slot: which planes get another setting, because a port of them changes its circuit.
    pub(super) fn enter(&mut self, slot: u32, tunings: &[Tuning]) -> Vec<PlaneChange<S>> {
        let mut ports: BTreeMap<u32, Vec<Port>> = BTreeMap::new();
        for one in tunings.iter().filter(|one| !one.is_fixed) {
            let own = ports.entry(one.plane).or_default();
            own.extend([one.transmitter, one.receiver]);
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

    /// Since when the setting of a plane is in force.
    pub(super) fn ready(&self, plane: u32) -> Option<S> {
        self.planes.get(&plane)?.ready
    }

    /// Moves the time when all messages of a plane have ended.
    pub(super) fn end(&mut self, plane: u32, later: impl FnOnce(Option<S>) -> S) {
        if let Some(setting) = self.planes.get_mut(&plane) {
            setting.ended = Some(later(setting.ended));
        }
    }
}
