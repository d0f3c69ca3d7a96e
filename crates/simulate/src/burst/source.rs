//! Generators of bursts.
//!
//! The Poisson processes of all hosts together are one Poisson process, each of whose points
//! belongs to every host with the same probability. Each gap between points is therefore drawn once
//! for all hosts together.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::network::BurstNetwork;
use super::settings::{BurstAssembly, BurstSettings, BurstSource, Destinations, Length};
use super::{Burst, BurstWork};
use libm::log;
use opticoll_base::units::{Rate, Time};

/// Time of an event that never happens, in picoseconds.
pub(super) const NEVER: u64 = u64::MAX;

/// Burst that is ready to be sent at the time `at`; times are in picoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadyBurst {
    pub(super) at: u64,
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) length: u64,
}

/// Event that the generator returns at time [`Generator::next`].
pub(super) enum Generated {
    Burst(ReadyBurst),
    /// First packet of burst `number` of a pair of hosts; its time-out ends at `due` (ps).
    Started {
        pair: u32,
        number: u32,
        due: u64,
    },
    Nothing,
}

pub(super) struct Generator {
    network: HostPairs,
    length: Length,
    mean_length: f64,
    /// Mean time between two points of the common Poisson process of all hosts, in picoseconds.
    mean_gap: f64,
    /// Mean pause of an on/off source, in picoseconds.
    mean_pause: f64,
    kind: GeneratorKind,
    pub(super) next: u64,
}

enum GeneratorKind {
    Whole,
    OnOff,
    Packets {
        assembly: BurstAssembly,
        rate: Rate,
        /// Current burst of each pair of hosts, indexed by pair: its bytes so far, and the number
        /// of earlier bursts of the pair.
        begun: Vec<(u64, u32)>,
    },
    Given {
        bursts: Vec<Burst>,
        next: usize,
    },
}

/// Ordered pairs of hosts between which bursts are sent.
#[derive(Clone, Copy)]
struct HostPairs {
    hosts: u32,
    at_node: u32,
    destinations: Destinations,
}

impl Generator {
    pub(super) fn new(
        network: &BurstNetwork,
        settings: &BurstSettings,
        work: &BurstWork,
        mean_length_ps: u64,
        random: &mut Pcg64Mcg,
    ) -> Generator {
        let mean_length = mean_length_ps as f64;
        let (kind, unit) = match (work, settings.assembly) {
            (BurstWork::Given(bursts), _) => {
                let bursts = bursts.clone();
                (GeneratorKind::Given { bursts, next: 0 }, mean_length)
            }
            (BurstWork::Random, Some(assembly)) => {
                let pairs = (network.hosts() as usize).pow(2);
                let rate = network.rate();
                let bits = assembly.packet.get() as f64 * 8.0;
                let packet_ps = bits / rate.bits_per_second() as f64 * 1e12;
                let begun = vec![(0, 0); pairs];
                let kind = GeneratorKind::Packets {
                    assembly,
                    rate,
                    begun,
                };
                (kind, packet_ps)
            }
            (BurstWork::Random, None) if settings.source == BurstSource::OnOff => {
                (GeneratorKind::OnOff, mean_length)
            }
            (BurstWork::Random, None) => (GeneratorKind::Whole, mean_length),
        };
        let mut generator = Generator {
            network: HostPairs {
                hosts: network.hosts(),
                at_node: network.hosts_per_node(),
                destinations: settings.destinations,
            },
            length: settings.length,
            mean_length,
            mean_gap: unit / (settings.offered_load * f64::from(network.hosts())),
            mean_pause: mean_length * (1.0 - settings.offered_load) / settings.offered_load,
            kind,
            next: NEVER,
        };
        generator.next = match &generator.kind {
            GeneratorKind::OnOff => NEVER,
            GeneratorKind::Given { bursts, .. } => {
                bursts.first().map_or(NEVER, |burst| burst.time.ps())
            }
            _ => exponential(generator.mean_gap, random),
        };
        generator
    }

    /// Returns whether a host draws its next burst only after its previous burst has been sent.
    pub(super) fn is_on_off(&self) -> bool {
        matches!(self.kind, GeneratorKind::OnOff)
    }

    /// Returns the event at time [`next`](Generator::next), and advances `next` to the next event.
    pub(super) fn generate(&mut self, random: &mut Pcg64Mcg) -> Generated {
        let now = self.next;
        if let GeneratorKind::Given { bursts, next } = &mut self.kind {
            let burst = bursts[*next];
            *next += 1;
            self.next = bursts.get(*next).map_or(NEVER, |burst| burst.time.ps());
            return Generated::Burst(ReadyBurst {
                at: now,
                source: burst.source,
                destination: burst.destination,
                length: burst.length.ps(),
            });
        }
        self.next = now + exponential(self.mean_gap, random);
        let source = random.random_range(0..self.network.hosts);
        if !matches!(self.kind, GeneratorKind::Packets { .. }) {
            return Generated::Burst(self.burst_of(source, now, random));
        }
        let destination = self.network.destination(source, random);
        self.packet(source * self.network.hosts + destination, now)
    }

    /// Draws a burst that the host `source` sends at time `now`, in picoseconds.
    #[inline]
    pub(super) fn burst_of(&self, source: u32, now: u64, random: &mut Pcg64Mcg) -> ReadyBurst {
        let destination = self.network.destination(source, random);
        let length = match self.length {
            Length::Constant => self.mean_length as u64,
            Length::Exponential => exponential(self.mean_length, random),
            Length::Uniform => (2.0 * self.mean_length * unit(random)).round() as u64,
        };
        ReadyBurst {
            at: now,
            source,
            destination,
            length: length.max(1),
        }
    }

    pub(super) fn pause(&self, random: &mut Pcg64Mcg) -> u64 {
        exponential(self.mean_pause, random)
    }

    /// Adds a packet to the current burst of a pair of hosts. Returns the burst if it is complete.
    fn packet(&mut self, pair: u32, now: u64) -> Generated {
        let GeneratorKind::Packets {
            assembly, begun, ..
        } = &mut self.kind
        else {
            return Generated::Nothing;
        };
        let (bytes, number) = &mut begun[pair as usize];
        let first = *bytes == 0;
        *bytes += assembly.packet.get();
        let number = *number;
        if assembly.size.is_some_and(|size| *bytes >= size.get()) {
            return match self.complete(pair, number, now) {
                Some(burst) => Generated::Burst(burst),
                None => Generated::Nothing,
            };
        }
        match assembly.time_out {
            Some(wait) if first => Generated::Started {
                pair,
                number,
                due: now + wait.ps(),
            },
            _ => Generated::Nothing,
        }
    }

    /// Returns the burst `number` of a pair of hosts, or `None` if this burst was sent before.
    pub(super) fn complete(&mut self, pair: u32, number: u32, now: u64) -> Option<ReadyBurst> {
        let hosts = self.network.hosts;
        let GeneratorKind::Packets { rate, begun, .. } = &mut self.kind else {
            return None;
        };
        let (bytes, current) = &mut begun[pair as usize];
        if *current != number {
            return None;
        }
        let length = rate.transmission(opticoll_base::units::Bytes::new(*bytes));
        *bytes = 0;
        *current = current.wrapping_add(1);
        Some(ReadyBurst {
            at: now,
            source: pair / hosts,
            destination: pair % hosts,
            length: length.map_or(NEVER >> 4, Time::ps),
        })
    }
}

impl HostPairs {
    #[inline]
    fn destination(&self, source: u32, random: &mut Pcg64Mcg) -> u32 {
        let (first, excluded) = match self.destinations {
            Destinations::Everyone => (source, 1),
            Destinations::OtherNodes => (source / self.at_node * self.at_node, self.at_node),
        };
        let drawn = random.random_range(0..self.hosts - excluded);
        match drawn < first {
            true => drawn,
            false => drawn + excluded,
        }
    }
}

/// Draws a multiple of 2^-53 between 2^-53 and 1, all with equal probabilities.
#[inline]
fn unit(random: &mut Pcg64Mcg) -> f64 {
    ((random.random::<u64>() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// Draws an exponential time with the given mean, rounded to the nearest picosecond.
#[inline]
fn exponential(mean: f64, random: &mut Pcg64Mcg) -> u64 {
    (-log(unit(random)) * mean).round() as u64
}
