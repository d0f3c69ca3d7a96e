//! Configurations of planes. A plane is one of several parallel switches; all of its ports change
//! at the same time.

use std::collections::BTreeMap;

use opticoll_base::ports::Ports;
use opticoll_fabric::fabric::circuits::{Port, Tuning};

/// Configuration of every plane (one of several parallel switches). `S` is a time together with its
/// cause.
pub(super) struct PlaneConfigurations<S> {
    /// Last slot in which each port was used.
    used: Ports<u32>,
    planes: BTreeMap<u32, PlaneConfiguration<S>>,
}

struct PlaneConfiguration<S> {
    /// First slot of the current configuration.
    first: u32,
    /// Time from which the configuration is up, if [`PlaneConfigurations::set_ready`] was called.
    ready: Option<S>,
    /// Time at which all messages of the plane so far have ended.
    ended: Option<S>,
}

pub(super) struct PlaneChange<S> {
    pub(super) plane: u32,
    pub(super) is_first: bool,
    /// Time at which all earlier messages of the plane have ended.
    pub(super) ended: Option<S>,
}

impl<S> Default for PlaneConfigurations<S> {
    fn default() -> PlaneConfigurations<S> {
        PlaneConfigurations {
            used: Ports::default(),
            planes: BTreeMap::new(),
        }
    }
}

impl<S: Copy> PlaneConfigurations<S> {
    /// Advances to a slot and returns the planes of which a port changes its circuit.
    pub(super) fn enter(&mut self, slot: u32, tunings: &[Tuning]) -> Vec<PlaneChange<S>> {
        let mut ports: BTreeMap<u32, Vec<Port>> = BTreeMap::new();
        for tuning in tunings.iter().filter(|tuning| !tuning.is_fixed) {
            let plane_ports = ports.entry(tuning.plane).or_default();
            plane_ports.extend([tuning.transmitter, tuning.receiver]);
        }
        let mut changes = Vec::new();
        for (plane, ports) in ports {
            let before = self.planes.get(&plane);
            let is_kept = before.is_some_and(|configuration| {
                ports.iter().all(|port| {
                    let taken = self.used.take(*port, |slot| slot);
                    taken.holds
                        || taken
                            .before
                            .is_none_or(|(_, used)| used < configuration.first)
                })
            });
            if !is_kept {
                let ended = before.and_then(|configuration| configuration.ended);
                changes.push(PlaneChange {
                    plane,
                    is_first: before.is_none(),
                    ended,
                });
                let configuration = PlaneConfiguration {
                    first: slot,
                    ready: None,
                    ended,
                };
                self.planes.insert(plane, configuration);
            }
            for port in ports {
                let taken = self.used.take(port, |slot| slot);
                self.used.set(port, taken.place, slot);
            }
        }
        changes
    }

    pub(super) fn set_ready(&mut self, plane: u32, since: S) {
        if let Some(configuration) = self.planes.get_mut(&plane) {
            configuration.ready = Some(since);
        }
    }

    /// Returns the time from which the configuration of a plane is up.
    pub(super) fn ready(&self, plane: u32) -> Option<S> {
        self.planes.get(&plane)?.ready
    }

    pub(super) fn end(&mut self, plane: u32, later: impl FnOnce(Option<S>) -> S) {
        if let Some(configuration) = self.planes.get_mut(&plane) {
            configuration.ended = Some(later(configuration.ended));
        }
    }
}
