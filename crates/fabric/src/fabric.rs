//! What a machine is to everything else: a shared handle with capabilities.
//!
//! A **family** is a kind of machine, such as `wdm_ring`; its type is a [`Machine`]. A **fabric** is a shared
//! handle on one machine. What a machine can do it offers as a *capability*: links that flows share
//! ([`Network`]), circuits placed in slots ([`Circuits`]), groups of routers ([`Groups`]), rows and columns
//! ([`Planes`]). Code outside a family asks for a capability, never for the family. A fabric knows nothing of
//! collectives, schedules or simulators; the list of families and the way to read a specification are in
//! [`families`](crate::families).
//!
//! ```
//! use opticoll_fabric::fabric::Fabric;
//! let fabric = Fabric::parse("wdm_ring:ranks=1024,wavelengths=64")?;
//! assert_eq!(fabric.ranks(), 1024);
//! assert!(fabric.circuits().is_some() && fabric.network().is_none());
//! let preset = Fabric::parse("terarack:ranks=256")?;
//! assert!(preset.to_string().contains("fibres=2"));
//! # Ok::<(), opticoll_fabric::fabric::FabricError>(())
//! ```

pub mod circuits;
pub mod groups;
pub mod light;
pub mod options;
pub(crate) mod part;
pub mod planes;
pub mod switches;
pub mod transmission;
pub mod wiring;

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use thiserror::Error;

use crate::drawing::Drawing;
use crate::network;
use crate::network::Network;
pub use circuits::Circuits;
pub use groups::Groups;
pub use light::{Hop, Light, LightKind, NumberedChannels, Rotation};
use opticoll_base::names::{plural, shown};
use opticoll_base::spec::{Role, Spec, SpecError};
use opticoll_base::units::{Bytes, Time};
pub use options::FabricOption;
pub use planes::{Plane, Planes};
pub use switches::Switches;
pub use transmission::Transmission;

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

/// A fabric of another family was given where one family is needed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} needs a {needed}; got {family}, {nature}")]
pub struct WrongFamily {
    /// What was asked for.
    pub what: &'static str,
    /// The family that it needs.
    pub needed: &'static str,
    /// The family given.
    pub family: &'static str,
    /// What the fabric given is.
    pub nature: &'static str,
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
    pub options: fn() -> Vec<FabricOption>,
    /// Builds the fabric from its options.
    pub build: fn(&Spec) -> Result<Fabric, FabricError>,
    /// Named machines of it.
    pub presets: &'static [PresetRecord],
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
    /// What no source says, or where sources contradict each other; empty: nothing.
    pub unconfirmed: &'static str,
}

/// What a handle needs of any machine; every type with equality has it.
pub trait Object: Any + fmt::Debug + Send + Sync {
    /// The machine by its own type.
    fn as_any(&self) -> &dyn Any;

    /// Whether another machine is of the same type and equal.
    fn equals(&self, other: &dyn Any) -> bool;
}

impl<T: Any + fmt::Debug + PartialEq + Send + Sync> Object for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }
}

/// A machine of some family.
pub trait Machine: Object {
    /// The declaration of its family.
    fn record(&self) -> &'static FamilyRecord;

    /// The complete specification, which [`Fabric::parse`] reads back to the same fabric.
    fn spec(&self) -> Spec;

    /// What it is, in words for the one who has given another family than is needed.
    fn nature(&self) -> &'static str {
        "an electrical fabric without wavelengths"
    }

    /// The number of ranks, N.
    fn ranks(&self) -> u32 {
        self.network().map_or(0, Network::ranks)
    }

    /// The number that a rank keeps when others leave.
    fn node(&self, rank: u32) -> u32 {
        rank
    }

    /// What is left after failures, where a family has words of its own for them; `None` where they are options of a
    /// fabric.
    fn after(&self, _failures: &str) -> Option<Result<Fabric, SpecError>> {
        None
    }

    /// What is left without a part that a family has a name of its own for, such as `cube 3`, or why nothing takes its
    /// place; `None` where no part has that name.
    fn replaced(&self, _part: &str) -> Option<Result<Fabric, String>> {
        None
    }

    /// The part that some of its ranks have for themselves, numbered anew in their order: of a fabric with links these
    /// ranks and all links, of circuits a fabric of as many ranks.
    ///
    /// # Errors
    /// A fabric that has no such part.
    fn part(&self, members: &[u32]) -> Result<Fabric, FabricError> {
        let nodes = members.iter().map(|&rank| self.node(rank));
        part::of_members(self.record(), &self.spec(), self.network().is_some(), nodes)
    }

    /// The ranks between which the circuits of a part lie: the first, and how many follow one
    /// another. Those of parts with spans that do not overlap share nothing.
    fn part_span(&self, _members: &[u32]) -> (u32, u32) {
        (0, self.ranks())
    }

    /// The number that a link has in the fabric of which this is a part.
    fn link_of_whole(&self, link: u32) -> u32 {
        link
    }

    /// The number here of a link of the fabric of which this is a part; none where it is gone.
    fn own_link(&self, whole: u32) -> Option<u32> {
        Some(whole)
    }

    /// Machines to plan for instead, where parts are slower or links are broken in one direction: at full rates; without the
    /// slower parts; without the opposite directions, too. Plans are made
    /// for these, and timed on this one.
    fn undegraded(&self) -> Vec<Fabric> {
        Vec::new()
    }

    /// What it is made of, in words: `16 ranks, 1 fibre per direction, ...`.
    fn words(&self) -> String {
        let links = self.network().map_or(0, |network| network.links().len());
        let ranks = plural(self.ranks() as usize, "rank");
        format!("{ranks}, {}", plural(links, "link"))
    }

    /// The bits per second that a rank can send, if nothing else sends: of ranks that differ, the least.
    /// Results of fabrics in which this number differs compare machines of different capacity.
    ///
    /// ```
    /// use opticoll_fabric::fabric::Fabric;
    /// let ring = Fabric::parse("wdm_ring:ranks=16,wavelengths=2,rate=40Gb/s")?;
    /// assert_eq!(ring.injection_bandwidth(), 160_000_000_000);
    /// # Ok::<(), opticoll_fabric::fabric::FabricError>(())
    /// ```
    fn injection_bandwidth(&self) -> u128 {
        self.network().map_or(0, network::injection_bandwidth)
    }

    /// The time in which a message without bytes comes from rank 0 to the rank farthest from it, where nothing else is
    /// sent: over links, or as light over one circuit that is up.
    ///
    /// ```
    /// use opticoll_fabric::fabric::Fabric;
    /// let star = Fabric::parse("crossbar:ranks=16,latency=500ns")?;
    /// assert_eq!(star.latency(), "1us".parse().unwrap());
    /// # Ok::<(), opticoll_fabric::fabric::FabricError>(())
    /// ```
    fn latency(&self) -> Time {
        let of_circuit = |circuits: &dyn Circuits| {
            let converted = circuits.transmission().time(Bytes::new(0))?;
            circuits.startup().plus(converted)?.plus(circuits.delay()?)
        };
        match (self.network(), self.circuits()) {
            (Some(network), _) => network::latency(network),
            (None, Some(circuits)) => of_circuit(circuits).unwrap_or(Time::from_ps(u64::MAX)),
            (None, None) => Time::ZERO,
        }
    }

    /// Links that flows share; `None` where data moves as light.
    fn network(&self) -> Option<&dyn Network> {
        None
    }

    /// Circuits that are placed in slots; `None` where data moves over shared links.
    fn circuits(&self) -> Option<&dyn Circuits> {
        None
    }

    /// Groups of routers, each joined to each.
    fn groups(&self) -> Option<&dyn Groups> {
        None
    }

    /// Rows and columns, within which circuits lead from any rank to any other.
    fn planes(&self) -> Option<&dyn Planes> {
        None
    }

    /// Circuit switches that join its parts, set before any plan runs.
    fn switches(&self) -> Option<&dyn Switches> {
        None
    }

    /// Where its vertices are drawn; by its links where a family says nothing else.
    fn drawing(&self) -> Option<Drawing> {
        self.network().map(|network| network.drawing())
    }

    /// What the light of a plan says; `None` where there is none.
    fn light(&self) -> Option<&'static LightKind> {
        self.circuits().map(|circuits| circuits.light())
    }

    /// Whether data moves as light.
    fn has_light(&self) -> bool {
        self.circuits().is_some()
    }

    /// Channels side by side, where the fabric numbers them: pipelined plans have their stripes on such channels.
    fn numbered_channels(&self) -> Option<&dyn NumberedChannels> {
        self.circuits()?.numbered_channels()
    }

    /// What a rotation of the ranks does to light, where the fabric looks the same from every rank: plans
    /// fold on such fabrics only.
    fn rotation(&self) -> Option<&dyn Rotation> {
        self.circuits()?.rotation()
    }
}

/// A family with one type of machine, by which its own code asks for it.
pub trait Named: Machine {
    /// The name of the family.
    const NAME: &'static str;
}

/// A shared handle on a machine.
#[derive(Clone)]
pub struct Fabric(Arc<dyn Machine>);

impl Fabric {
    /// A handle on a machine.
    pub fn new(machine: impl Machine) -> Fabric {
        Fabric(Arc::new(machine))
    }

    /// The machine, if it is of this type: for the code of a family.
    pub fn downcast<M: Machine>(&self) -> Option<&M> {
        // Of the machine, not of the handle around it.
        (*self.0).as_any().downcast_ref()
    }

    /// The machine of a family; `what` says who needs it.
    ///
    /// # Errors
    /// It is of another family.
    pub fn needed<M: Named>(&self, what: &'static str) -> Result<&M, WrongFamily> {
        self.downcast().ok_or(WrongFamily {
            what,
            needed: M::NAME,
            family: self.family(),
            nature: self.nature(),
        })
    }

    /// The name of its family.
    pub fn family(&self) -> &'static str {
        self.record().name
    }

    /// The part that some of its ranks have for themselves, as [`Machine::part`]; of all ranks the fabric itself.
    ///
    /// # Errors
    /// A fabric that has no such part.
    pub fn part(&self, members: &[u32]) -> Result<Fabric, FabricError> {
        match members.len() as u32 == self.ranks() {
            true => Ok(self.clone()),
            false => self.0.part(members),
        }
    }

    /// The same fabric with no time for what options of a role stand for.
    pub fn without(&self, role: Role) -> Fabric {
        let mut spec = self.spec();
        let record = self.record();
        let options = (record.options)();
        let records = options.iter().map(|option| &option.record);
        let mut fabric = self.clone();
        for option in records.filter(|option| option.role == role) {
            // Options that are no times, such as whether the first setting is charged, stay as they are.
            let tried = spec.without(option.name).with(option.name, Time::ZERO);
            if let Ok(without) = (record.build)(&tried) {
                (spec, fabric) = (tried, without);
            }
        }
        fabric
    }
}

impl Deref for Fabric {
    type Target = dyn Machine;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl PartialEq for Fabric {
    fn eq(&self, other: &Fabric) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.equals((*other.0).as_any())
    }
}

impl Eq for Fabric {}

impl fmt::Debug for Fabric {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Display for Fabric {
    /// The complete specification, which [`Fabric::parse`] reads back to the same fabric.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec().fmt(formatter)
    }
}
