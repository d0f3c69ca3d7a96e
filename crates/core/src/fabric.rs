//! What the machine is: ranks, fibres, wavelengths, rates and delays. A fabric knows nothing of
//! collectives, schedules or simulators.
//!
//! Fabrics are spelled `family:key=value,...`, or by the name of a preset:
//!
//! ```
//! use opticoll::fabric::Fabric;
//! let fabric = Fabric::parse("wdm_ring:ranks=1024,wavelengths=64")?;
//! assert_eq!(fabric.ranks(), 1024);
//! let preset = Fabric::parse("terarack:ranks=256")?;
//! assert!(preset.to_string().contains("fibres=2"));
//! # Ok::<(), opticoll::fabric::FabricError>(())
//! ```

pub mod circuits;
pub mod crossbar;
pub mod custom;
pub mod dragonfly;
pub mod fat_tree;
pub mod fully_connected;
mod injection;
pub mod light;
pub mod light_path_grid;
mod medium;
mod message_cost;
mod options;
pub mod torus;
pub mod wdm_ring;
pub mod wiring;
pub mod wss_grid;

use std::fmt;

use thiserror::Error;

use crate::network::Network;
use crate::spec::{OptionRecord, Role, Spec, SpecError};
use crate::spelling::{plural, shown};
use crate::units::Time;
pub use circuits::Circuits;
pub use crossbar::Crossbar;
pub use custom::Custom;
pub use dragonfly::Dragonfly;
pub use fat_tree::FatTree;
pub use fully_connected::FullyConnected;
pub use light::{Hop, Light, LightKind, Rotation};
pub use light_path_grid::{LightPathGrid, PortsLight};
pub use medium::{Bursts, Medium};
pub use message_cost::MessageCost;
pub use torus::Grid;
pub use wdm_ring::{CONVERTED, Direction, WdmLight, WdmRing};
pub use wss_grid::{Plane, TunedLight, WssGrid};

/// Why a fabric was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FabricError {
    /// Neither a family nor a preset has this name.
    #[error("unknown fabric `{}`{hint}", shown(name))]
    Unknown {
        /// The name as given.
        name: String,
        /// The nearest known name, or all of them.
        hint: String,
    },
    /// The specification or an option is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A family needs an option that was not given.
    #[error("`{family}` needs {key}=..., for example {example}")]
    Missing {
        /// The family.
        family: &'static str,
        /// The option that is missing.
        key: &'static str,
        /// A complete specification.
        example: &'static str,
    },
    /// More ranks or links than are accepted.
    #[error("`{family}` would have {count} {what}; at most {most} are accepted")]
    TooLarge {
        /// The family.
        family: &'static str,
        /// `ranks` or `links`.
        what: &'static str,
        /// How many there would be.
        count: u128,
        /// How many there may be.
        most: u64,
    },
    /// Plans are made for none of its kind.
    #[error("no plan is made for {family}: {reason}")]
    NoFabric {
        /// The family.
        family: &'static str,
        /// Why, and what takes it.
        reason: &'static str,
    },
    /// A custom fabric whose links do not fit.
    #[error("`custom`: {problem}")]
    Graph {
        /// What is wrong, with the link or the vertices.
        problem: String,
        /// The number of the link at fault, in the order given.
        link: Option<usize>,
    },
}

/// Another fabric was given where light around a ring is planned or measured.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} needs a wdm_ring; got {family}, {}", what_it_is(family))]
pub struct NotARing {
    /// What was asked for.
    pub what: &'static str,
    /// The family given.
    pub family: &'static str,
}

/// What a fabric is that is no ring of light.
fn what_it_is(family: &str) -> &'static str {
    match family {
        _ if family == wss_grid::RECORD.name => {
            "a grid of tunable circuits, where light goes around no ring"
        }
        _ if family == light_path_grid::RECORD.name => {
            "a grid of light paths, whose way and wavelength nothing says"
        }
        _ => "an electrical fabric without wavelengths",
    }
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fabric {
    /// A bidirectional ring of ranks with wavelength-division multiplexing.
    WdmRing(WdmRing),
    /// One switch and a cable to each rank.
    Crossbar(Crossbar),
    /// Levels of switches.
    FatTree(FatTree),
    /// Groups of routers.
    Dragonfly(Dragonfly),
    /// A torus, mesh, ladder or electrical ring.
    Grid(Grid),
    /// A cable between every two ranks.
    FullyConnected(FullyConnected),
    /// Any network.
    Custom(Custom),
    /// A grid of nodes with tunable lasers and a slow switch per row and column.
    WssGrid(WssGrid),
    /// Ranks with ports for light paths that are set up and released.
    LightPathGrid(LightPathGrid),
}

/// The declaration of a fabric family.
pub struct FamilyRecord {
    /// As typed.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Where the model comes from.
    pub citation: &'static str,
    /// A complete specification.
    pub example: &'static str,
    /// Its options.
    pub options: fn() -> Vec<OptionRecord>,
    /// Builds the fabric from its options.
    build: fn(&Spec) -> Result<Fabric, FabricError>,
}

/// A named machine: a family with values from a stated source.
pub struct PresetRecord {
    /// As typed.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Where the values come from.
    pub citation: &'static str,
    /// The family and values it stands for.
    pub spec: &'static str,
}

/// All fabric families.
pub const FAMILIES: &[FamilyRecord] = &[
    wdm_ring::RECORD,
    crossbar::RECORD,
    fat_tree::RECORD,
    dragonfly::RECORD,
    torus::TORUS,
    torus::MESH,
    torus::LADDER,
    torus::RING,
    fully_connected::RECORD,
    custom::RECORD,
    wss_grid::RECORD,
    light_path_grid::RECORD,
    message_cost::ZERO,
    message_cost::HOCKNEY,
    message_cost::LOGGP,
];

/// All presets.
pub const PRESETS: &[PresetRecord] = wdm_ring::PRESETS;

impl Fabric {
    /// Reads a specification such as `wdm_ring:ranks=16,wavelengths=2` or `optree_paper:ranks=512`;
    /// options given to a preset replace its own.
    pub fn parse(text: &str) -> Result<Fabric, FabricError> {
        Medium::parse(text)?.fabric()
    }

    /// The same fabric with no time for what options of a role stand for.
    pub fn without(&self, role: Role) -> Fabric {
        let mut spec = self.spec();
        let family = FAMILIES.iter().find(|family| family.name == spec.name());
        let options = family.map_or(Vec::new(), |family| (family.options)());
        for option in options.iter().filter(|option| option.role == role) {
            spec = spec.without(option.name).with(option.name, Time::ZERO);
        }
        let without = family.and_then(|family| (family.build)(&spec).ok());
        without.unwrap_or_else(|| self.clone())
    }

    /// The family's name.
    pub fn family(&self) -> &'static str {
        match self {
            Fabric::WdmRing(_) => wdm_ring::RECORD.name,
            Fabric::Crossbar(_) => crossbar::RECORD.name,
            Fabric::FatTree(_) => fat_tree::RECORD.name,
            Fabric::Dragonfly(_) => dragonfly::RECORD.name,
            Fabric::Grid(grid) => grid.shape().record().name,
            Fabric::FullyConnected(_) => fully_connected::RECORD.name,
            Fabric::Custom(_) => custom::RECORD.name,
            Fabric::WssGrid(_) => wss_grid::RECORD.name,
            Fabric::LightPathGrid(_) => light_path_grid::RECORD.name,
        }
    }

    /// The number of ranks, N.
    pub fn ranks(&self) -> u32 {
        match (self, self.network()) {
            (Fabric::WdmRing(ring), _) => ring.ranks,
            (Fabric::WssGrid(grid), _) => grid.ranks(),
            (Fabric::LightPathGrid(grid), _) => grid.ranks,
            (_, network) => network.map_or(0, Network::ranks),
        }
    }

    /// The optical ring, if it is one.
    pub fn ring(&self) -> Option<&WdmRing> {
        match self {
            Fabric::WdmRing(ring) => Some(ring),
            _ => None,
        }
    }

    /// The grid of tunable circuits, if it is one.
    pub fn wss_grid(&self) -> Option<&WssGrid> {
        match self {
            Fabric::WssGrid(grid) => Some(grid),
            _ => None,
        }
    }

    /// The grid of light paths, if it is one.
    pub fn light_path_grid(&self) -> Option<&LightPathGrid> {
        match self {
            Fabric::LightPathGrid(grid) => Some(grid),
            _ => None,
        }
    }

    /// What the light of a plan says; `None` on an electrical fabric, where there is none.
    pub fn light(&self) -> Option<&'static LightKind> {
        match self {
            Fabric::WdmRing(_) => Some(&wdm_ring::LIGHT),
            Fabric::WssGrid(_) => Some(&wss_grid::LIGHT),
            Fabric::LightPathGrid(_) => Some(&light_path_grid::LIGHT),
            _ => None,
        }
    }

    /// Its circuits, where these are placed in slots.
    pub fn circuits(&self) -> Option<&dyn Circuits> {
        match self {
            Fabric::WdmRing(ring) => Some(ring),
            Fabric::WssGrid(grid) => Some(grid),
            Fabric::LightPathGrid(grid) => Some(grid),
            _ => None,
        }
    }

    /// Whether data moves as light.
    pub fn has_light(&self) -> bool {
        self.light().is_some()
    }

    /// What a rotation of the ranks does to light, where the fabric looks the same from every rank: plans
    /// fold on such fabrics only.
    pub fn rotation(&self) -> Option<&dyn Rotation> {
        let ring = self.ring().filter(|ring| ring.is_even())?;
        Some(ring)
    }

    /// The optical ring; `what` says who needs one.
    pub fn needed_ring(&self, what: &'static str) -> Result<&WdmRing, NotARing> {
        let family = self.family();
        self.ring().ok_or(NotARing { what, family })
    }

    /// The links and routes of an electrical fabric; `None` where data moves as light.
    pub fn network(&self) -> Option<&dyn Network> {
        match self {
            Fabric::WdmRing(_) | Fabric::WssGrid(_) | Fabric::LightPathGrid(_) => None,
            Fabric::Crossbar(crossbar) => Some(crossbar),
            Fabric::FatTree(tree) => Some(tree),
            Fabric::Dragonfly(dragonfly) => Some(dragonfly),
            Fabric::Grid(grid) => Some(grid),
            Fabric::FullyConnected(connected) => Some(connected),
            Fabric::Custom(custom) => Some(custom),
        }
    }

    /// What it is made of, in words: `16 ranks, 1 fibre per direction, ...`.
    pub fn words(&self) -> String {
        match self {
            Fabric::WdmRing(ring) => ring.words(),
            Fabric::WssGrid(grid) => grid.words(),
            Fabric::LightPathGrid(grid) => grid.words(),
            _ => {
                let links = self.network().map_or(0, |network| network.links().len());
                let ranks = plural(self.ranks() as usize, "rank");
                format!("{ranks}, {}", plural(links, "link"))
            }
        }
    }

    /// The complete specification, with its parts.
    fn spec(&self) -> Spec {
        match self {
            Fabric::WdmRing(ring) => ring.spec(),
            Fabric::Crossbar(crossbar) => crossbar.spec(),
            Fabric::FatTree(tree) => tree.spec(),
            Fabric::Dragonfly(dragonfly) => dragonfly.spec(),
            Fabric::Grid(grid) => grid.spec(),
            Fabric::FullyConnected(connected) => connected.spec(),
            Fabric::Custom(custom) => custom.spec(),
            Fabric::WssGrid(grid) => grid.spec(),
            Fabric::LightPathGrid(grid) => grid.spec(),
        }
    }
}

impl fmt::Display for Fabric {
    /// The complete specification, which [`Fabric::parse`] reads back to the same fabric.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec().fmt(formatter)
    }
}
