//! Torus of cubes that are joined by optical circuit switches (OCSes), as in TPU v4 and its
//! successors.
//!
//! A **cube** has c x c x c chips, which are ranks; cables join neighbours within the cube. On each
//! of the six faces, every chip has a fibre, so a cube has 6 c^2 fibres. The two fibres at the same
//! position of opposite faces lead to the same OCS. Therefore there are 3 c^2 switches with two
//! ports for each cube, and B cubes need 2 * B ports of each switch. A **slice** is a box of cubes.
//! Each switch joins the high face of a cube to the low face of the next cube, around the box, so
//! the slice is a torus.
//!
//! | slice | graph |
//! |---|---|
//! | sides that are multiples of c | torus, optionally twisted; cubes are joined by switches only |
//! | all sides at most c, some below c | mesh within one cube, without switches |
//!
//! **Twisted**: in a box with sides n and 2n, at least one of each, a step that wraps around a side
//! n also moves n positions along every side 2n ([`Translations`]). Since n is a whole number of
//! cubes, the twist joins fibres at the same position of faces, as the switches require. TPU v4 has
//! the slice 4x4x8: with the twist, an all_to_all loads a link with 220/3 instead of 128 blocks,
//! and the diameter is 6 instead of 8.
//!
//! **Failure of a cube** (`without=cube 3`): the first free spare cube replaces the failed cube.
//! The switches join the 6 c^2 fibres of the spare instead of the fibres of the failed cube. All
//! other circuits stay. Links, ranks and routes do not change.
//!
//! **Routes** use the fewest links: all hops along x, then along y, then along z. Among equally
//! long routes, the route that wraps around fewer sides is chosen, then the route upwards.
//!
//! Jouppi et al., TPU v4: An Optically Reconfigurable Supercomputer for Machine Learning with
//! Hardware Support for Embeddings, ISCA 2023; Zu et al., Resiliency at Scale: Managing Google's
//! TPUv4 Machine Learning Supercomputer, NSDI 2024.

use std::sync::Arc;

use crate::bill::{AT_RANKS, Bill, MovedBytes, PartKind};
use crate::drawing;
use crate::drawing::Drawing;
use crate::fabric;
use crate::fabric::options;
use crate::fabric::options::DefaultRule::*;
use crate::fabric::options::Options;
use crate::fabric::part::WITHOUT;
use crate::fabric::switches::Switches;
use crate::fabric::wiring;
use crate::fabric::wiring::Wire;
use crate::fabric::{Fabric, FabricError, FamilyRecord, PresetRecord};
use crate::network::translations::Translations;
use crate::network::{Network, Wiring};
use opticoll_base::interrupt;
use opticoll_base::names::plural;
use opticoll_base::spec::{OptionRecord, REQUIRED, Spec, whole_number};

const MAX_SIDE: u32 = 64;

/// Maximum number of spare cubes, and of ports of a switch.
const MAX_CUBES: u32 = 1 << 20;

const AXES: [char; 3] = ['x', 'y', 'z'];

/// Marker of a direction in which a rank has no link.
const NONE: u32 = u32::MAX;

/// Slice of cubes that are joined by circuit switches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OcsTorus {
    slice: Slice,
    wire: Wire,
    /// Index of the cube at each position, indexed by position in the slice. x varies fastest.
    cubes: Vec<u32>,
    /// Indices of the failed cubes, in the order of failure.
    failed: Vec<u32>,
    /// Translations of the torus; `None` if the slice is within a cube.
    translations: Option<Translations>,
    /// Index of the link that leaves a rank in a direction, or [`NONE`]. Indexed by rank and then
    /// by direction: 2 * axis for upwards, 2 * axis + 1 for downwards.
    leaving: Arc<[[u32; 6]]>,
    /// Number of hops of the route from rank 0, indexed by destination and axis. Hops downwards
    /// count negative. On a torus, the route from rank a to rank b has the same hops as the route
    /// from rank 0 to the rank whose coordinates are those of b minus those of a.
    hops: Arc<[[i32; 3]]>,
    wiring: Arc<Wiring>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slice {
    sides: [u32; 3],
    cube: u32,
    twisted: bool,
    spares: u32,
    /// Number of ports per switch; `None` if unlimited.
    ports: Option<u32>,
}

/// Record of the family.
pub const RECORD: FamilyRecord = FamilyRecord {
    name: "ocs_torus",
    summary: "Torus of cubes joined by optical circuit switches, twisted or not, with spare cubes",
    citation: "Jouppi et al., TPU v4: An Optically Reconfigurable Supercomputer, ISCA 2023; \
        Camara et al., Twisted Torus Topologies for Enhanced Interconnection Networks, TPDS 2010",
    example: "ocs_torus:dims=4x4x8,twisted=yes,rate=100GB/s",
    options: || options::list(&RECORD, declared),
    build: |spec| OcsTorus::parse(spec).map(Fabric::new),
    presets: PRESETS,
};

/// Presets of the family.
pub const PRESETS: &[PresetRecord] = &[PresetRecord {
    name: "tpu7x",
    summary: "TPU7x (Ironwood), one cube or a slice of dims=...: cubes of 4x4x4 chips, 100 GB/s \
        per link and direction",
    citation: "Google Cloud, TPU7x: 1,200 GB/s of each chip, both directions of six links; 9,216 \
        chips in a pod. Cubes: Jouppi et al., TPU v4, ISCA 2023",
    spec: "ocs_torus:dims=4x4x4,cube=4,rate=100GB/s",
    unconfirmed: "InfraGraph's blueprint of an Ironwood rack gives a link 1,400 Gb/s in place of \
        800 Gb/s; latency, spare cubes and ports of the switches are not published",
}];

const DIMS: OptionRecord = OptionRecord::new(
    "dims",
    "ranks along x, y and z: all multiples of cube, or all at most cube (a slice within a cube)",
)
.range("three numbers from 1 to 1048576, such as 4x4x8")
.default(REQUIRED);
const CUBE: OptionRecord = OptionRecord::new("cube", "ranks along a side of a cube");
const TWISTED: OptionRecord = OptionRecord::new(
    "twisted",
    "twist: a step that wraps around a side n also moves n positions along each side 2n",
);
const SPARES: OptionRecord = OptionRecord::new(
    "spares",
    "number of spare cubes, which replace failed cubes",
)
.range("0 to 1048576")
.default("0");
const PORTS: OptionRecord = OptionRecord::new(
    "ports",
    "ports of a switch; two for each cube and spare cube are needed",
);
const YES_OR_NO: &[(&str, bool)] = &[("no", false), ("yes", true)];

fn declared(options: &mut Options<'_, OcsTorus>) -> Result<(Slice, Wire), FabricError> {
    let missing = options.missing(DIMS.name);
    let read = |spec: &Spec| -> Result<[u32; 3], FabricError> {
        let sides = wiring::counts(spec, DIMS.name, wiring::MAX_RANKS)?.ok_or(missing)?;
        let side_count = sides.len();
        sides.try_into().map_err(|_| {
            let problem = format!(
                "has {} for 3 sides, such as 4x4x8",
                plural(side_count, "number")
            );
            spec.refuse(DIMS.name, problem).into()
        })
    };
    let print = |sides: &[u32; 3]| Some(wiring::print_counts(sides));
    let sides = options.option(DIMS, read, print, |machine| machine.slice.sides)?;
    let cube = options.count(CUBE, MAX_SIDE, Printed(4), |machine| machine.slice.cube)?;
    let twisted = options.word(TWISTED, YES_OR_NO, Silent(false), |machine| {
        machine.slice.twisted
    })?;
    let read = |spec: &Spec| Ok(spec.count(SPARES.name, 0, MAX_CUBES)?.unwrap_or(0));
    let print = |spares: &u32| (*spares > 0).then(|| spares.to_string());
    let spares = options.option(SPARES, read, print, |machine| machine.slice.spares)?;
    let ports = options.limit(PORTS, Some("any"), MAX_CUBES, |machine| machine.slice.ports)?;
    let link = wiring::rate_and_latency(options, |machine| machine.wire.link)?;
    let wire = Wire::declared(options, link, |machine| machine.wire)?;
    let slice = Slice {
        sides,
        cube,
        twisted,
        spares,
        ports,
    };
    Ok((slice, wire))
}

impl Slice {
    /// Returns whether the slice is smaller than a cube and needs no switches.
    fn is_within_cube(&self) -> bool {
        let small = |side: &u32| *side <= self.cube;
        self.sides.iter().all(small) && self.sides.iter().any(|side| *side < self.cube)
    }

    fn cubes_along(&self, axis: usize) -> u32 {
        self.sides[axis].div_ceil(self.cube)
    }

    fn cubes_in_use(&self) -> u32 {
        (0..3).map(|axis| self.cubes_along(axis)).product()
    }

    /// Returns the number of cubes of the slice, including spares.
    fn all_cubes(&self) -> u64 {
        u64::from(self.cubes_in_use()) + u64::from(self.spares)
    }

    /// Checks the options and returns the translations of the torus; `None` within a cube.
    fn checked(&self, spec: &Spec) -> Result<Option<Translations>, FabricError> {
        let cube = self.cube;
        let ranks = self.sides.iter().map(|side| u128::from(*side));
        let ranks = ranks.fold(1, u128::saturating_mul);
        wiring::check_size(&RECORD, ranks, 0)?;
        wiring::check_size(&RECORD, ranks, 3 * ranks)?;
        if cube == 1 {
            let problem = "a cube has 2 ranks or more along a side";
            return Err(spec.refuse(CUBE.name, problem).into());
        }
        let within = self.is_within_cube();
        if !within && self.sides.iter().any(|side| side % cube != 0) {
            let problem = format!(
                "each side must be whole cubes, a multiple of {cube}, or all sides at most \
                 {cube}, within one cube"
            );
            return Err(spec.refuse(DIMS.name, problem).into());
        }
        let needed = 2 * self.all_cubes();
        if let Some(ports) = self.ports.filter(|ports| u64::from(*ports) < needed) {
            let (slice, spares) = (self.cubes_in_use() as usize, self.spares as usize);
            let spares = match spares {
                0 => String::new(),
                _ => format!(" and {}", plural(spares, "spare")),
            };
            let problem = format!(
                "{}{spares} need {needed} ports of each of the {} switches, which have {ports}; \
                 take switches with more ports, or fewer cubes",
                plural(slice, "cube"),
                3 * cube * cube,
            );
            return Err(spec.refuse(PORTS.name, problem).into());
        }
        match (within, self.twisted) {
            (true, true) => {
                let problem = "a slice within a cube does not wrap around; remove twisted";
                Err(spec.refuse(TWISTED.name, problem).into())
            }
            (true, false) => Ok(None),
            (false, false) => Ok(Some(Translations::straight(self.sides.into()))),
            (false, true) => {
                let twisted = Translations::twisted(self.sides.into());
                let problem = "a twist is defined for sides of n and 2n, at least one of each, \
                    such as 4x4x8 and 4x8x8";
                Ok(Some(
                    twisted.ok_or_else(|| spec.refuse(TWISTED.name, problem))?,
                ))
            }
        }
    }

    fn coordinates(&self, rank: u32) -> [u32; 3] {
        let [x, y, _] = self.sides;
        [rank % x, rank / x % y, rank / x / y]
    }

    fn rank(&self, [x, y, z]: [u32; 3]) -> u32 {
        (z * self.sides[1] + y) * self.sides[0] + x
    }

    /// Returns the hops of the shortest route from rank 0 to `rank`, indexed by axis. Hops
    /// downwards count negative.
    fn hops(&self, rank: u32, translations: Option<&Translations>) -> [i32; 3] {
        let coordinates = self.coordinates(rank).map(|coordinate| coordinate as i32);
        let Some(translations) = translations else {
            return coordinates;
        };
        // Axes on which a wrap also moves along other sides. Empty without a twist.
        let short = |axis: usize| {
            let side = self.sides[axis];
            let shifts = self
                .sides
                .iter()
                .any(|&along| translations.shift(side, along) > 0);
            shifts.then_some(axis)
        };
        let short: Vec<usize> = (0..3).filter_map(short).collect();
        let mut shortest: Option<(u32, [i32; 3])> = None;
        for wraps in 0..1u32 << short.len() {
            let mut hops = coordinates;
            let mut shift = 0;
            for (bit, &axis) in short.iter().enumerate() {
                if wraps >> bit & 1 == 1 {
                    // A wrap downwards also moves backwards along the other sides.
                    hops[axis] -= self.sides[axis] as i32;
                    shift += self.sides[axis] as i32;
                }
            }
            for axis in (0..3).filter(|axis| !short.contains(axis)) {
                let side = self.sides[axis] as i32;
                let offset = (coordinates[axis] + shift).rem_euclid(side);
                hops[axis] = if offset > side / 2 {
                    offset - side
                } else {
                    offset
                };
            }
            let length = hops.iter().map(|hops| hops.unsigned_abs()).sum();
            if shortest.is_none_or(|(least, _)| length < least) {
                shortest = Some((length, hops));
            }
        }
        shortest.map_or(coordinates, |(_, hops)| hops)
    }
}

impl OcsTorus {
    /// Builds the machine of a specification such as
    /// `ocs_torus:dims=4x4x8,twisted=yes,spares=1,ports=136`.
    pub fn parse(spec: &Spec) -> Result<OcsTorus, FabricError> {
        let (slice, wire) = options::read(spec, &RECORD, declared)?;
        let translations = slice.checked(spec)?;
        let ranks = slice.sides.iter().product::<u32>();
        let mut wiring = Wiring::new(wire.duplex);
        let mut leaving = vec![[NONE; 6]; ranks as usize];
        let mut cable = 0;
        for rank in 0..ranks {
            interrupt::check();
            let at = slice.coordinates(rank);
            for axis in 0..3 {
                let mut step = [0; 3];
                step[axis] = 1;
                let next = match &translations {
                    Some(translations) => translations.moved(rank, slice.rank(step), false),
                    None if at[axis] + 1 == slice.sides[axis] => continue,
                    None => rank + slice.rank(step),
                };
                wiring.add(rank, next, wire.link);
                leaving[rank as usize][2 * axis] = wiring.forth(cable);
                leaving[next as usize][2 * axis + 1] = wiring.back(cable);
                cable += 1;
            }
        }
        let hops = (0..ranks).map(|rank| slice.hops(rank, translations.as_ref()));
        Ok(OcsTorus {
            cubes: (0..slice.cubes_in_use()).collect(),
            failed: Vec::new(),
            hops: hops.collect(),
            wiring: Arc::new(wiring),
            slice,
            wire,
            translations,
            leaving: leaving.into(),
        })
    }

    /// Returns the machine after the failure of a cube.
    fn without_cube(&self, cube: u32) -> Result<OcsTorus, String> {
        let all_cubes = self.slice.all_cubes() as u32;
        if cube >= all_cubes {
            return Err(format!(
                "there is no cube {cube}: cubes are 0 to {}",
                all_cubes - 1
            ));
        }
        if self.failed.contains(&cube) {
            return Err(format!("cube {cube} is named twice"));
        }
        let mut torus = self.clone();
        torus.failed.push(cube);
        if let Some(place) = self.cubes.iter().position(|cube_here| *cube_here == cube) {
            let is_free = |cube: &u32| !torus.cubes.contains(cube) && !torus.failed.contains(cube);
            let Some(spare) = (self.slice.cubes_in_use()..all_cubes).find(is_free) else {
                let spares = match self.slice.spares {
                    0 => "the slice has none".to_owned(),
                    1 => "its spare is in use or has failed".to_owned(),
                    many => format!("all {many} spares are in use or have failed"),
                };
                let more = self.slice.spares + 1;
                return Err(format!(
                    "no spare cube can replace cube {cube}: {spares}; give spares={more}, or a \
                     slice of fewer cubes"
                ));
            };
            torus.cubes[place] = spare;
        }
        Ok(torus)
    }
}

impl OcsTorus {
    /// Returns the number of cables: each leads upwards from one rank.
    fn leaving_upwards(&self) -> u64 {
        let upwards = self.leaving.iter().flatten().step_by(2);
        upwards.filter(|link| **link != NONE).count() as u64
    }
}

impl fabric::Machine for OcsTorus {
    fn record(&self) -> &'static FamilyRecord {
        &RECORD
    }

    fn spec(&self) -> Spec {
        let spec = options::print(self, &RECORD, declared);
        if self.failed.is_empty() {
            return spec;
        }
        let failed = self.failed.iter().map(|cube| format!("cube{cube}"));
        spec.with(WITHOUT.name, failed.collect::<Vec<String>>().join("+"))
    }

    /// Returns the parts: copper cables within cubes; at each of the 6 c^2 fibres of a cube, a
    /// transceiver and a cable to a switch; and the switches. Spare cubes and failed cubes count. A
    /// slice within a cube has no switches.
    fn bill(&self) -> Bill {
        let copper = PartKind::new("copper_cable");
        if self.slice.is_within_cube() {
            return Bill::default().with(self.leaving_upwards(), copper);
        }
        let (cubes, side) = (self.slice.all_cubes(), u64::from(self.slice.cube));
        let face = side * side;
        let transceiver = PartKind::new("transceiver").at(AT_RANKS);
        let ports = self.slice.ports.unwrap_or(2 * cubes as u32);
        Bill::default()
            .with(3 * face * (side - 1) * cubes, copper)
            .with(6 * face * cubes, transceiver.rate(self.wire.link.rate))
            .with(6 * face * cubes, PartKind::new("fibre_cable"))
            .with(3 * face, PartKind::new("ocs").ports(ports))
    }

    /// Returns the bytes over copper cables within cubes, and over the fibres between faces.
    fn bill_of_bytes(&self, moved: &MovedBytes<'_>) -> Bill {
        let copper = PartKind::new("copper_cable");
        let transceiver = PartKind::new("transceiver").at(AT_RANKS);
        let transceiver = transceiver.rate(self.wire.link.rate);
        let links_per_cable = self.wiring.back(0) + 1;
        let links = moved.links.iter().zip(0..);
        links.fold(Bill::default(), |bill, (&bytes, link): (_, u32)| {
            // Each cable leads upwards from a rank along an axis.
            let cable = link / links_per_cable;
            let (rank, axis) = (cable / 3, cable as usize % 3);
            let is_top = (self.slice.coordinates(rank)[axis] + 1) % self.slice.cube == 0;
            match is_top && !self.slice.is_within_cube() {
                true => bill.with(2 * u128::from(bytes), transceiver),
                false => bill.with(2 * u128::from(bytes), copper),
            }
        })
    }

    fn with_replacement(&self, part: &str) -> Option<Result<Fabric, String>> {
        let cube = whole_number(part.strip_prefix("cube")?.trim_start())?;
        Some(self.without_cube(cube).map(Fabric::new))
    }

    fn description(&self) -> String {
        let ranks = plural(self.leaving.len(), "rank");
        let links = plural(self.links().len(), "link");
        let side = self.slice.cube;
        let mut words = format!("{ranks}, {links}");
        if self.slice.is_within_cube() {
            words += &format!(" within a cube of {side}x{side}x{side}");
            return words;
        }
        let cubes = plural(self.cubes.len(), "cube");
        words += &format!(", {cubes} of {side}x{side}x{side}");
        let free_spares = self.slice.spares as usize - self.failed.len();
        if self.slice.spares > 0 {
            words += &format!(", {} left", plural(free_spares, "spare"));
        }
        let needed_ports = Switches::ports(self);
        let of = self.slice.ports.map(|ports| format!(" of {ports}"));
        let of = of.unwrap_or_default();
        words += &format!(
            ", {needed_ports}{of} ports of each of {} circuit switches",
            self.count()
        );
        words
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(self)
    }

    fn switches(&self) -> Option<&dyn Switches> {
        (!self.slice.is_within_cube()).then_some(self)
    }
}

impl Switches for OcsTorus {
    fn count(&self) -> u32 {
        3 * self.slice.cube * self.slice.cube
    }

    fn ports(&self) -> u32 {
        2 * self.slice.all_cubes() as u32
    }

    /// Returns a name such as `switch x 3.1`. The letter is the axis of the switch, and 3.1 is the
    /// position of the switch's fibres on each face.
    fn switch_name(&self, switch: u32) -> String {
        let side = self.slice.cube;
        let place = switch % (side * side);
        let axis = AXES[(switch / (side * side)) as usize % 3];
        format!("switch {axis} {}.{}", place % side, place / side)
    }

    /// Returns the cube and the face at a port. Port 2 * i belongs to the low face of cube i, and
    /// port 2 * i + 1 belongs to the high face.
    fn port_name(&self, switch: u32, port: u32) -> String {
        let axis = AXES[(switch / (self.slice.cube * self.slice.cube)) as usize % 3];
        let sign = if port % 2 == 1 { '+' } else { '-' };
        format!("cube {} {sign}{axis}", port / 2)
    }

    fn joined(&self, switch: u32) -> Vec<(u32, u32)> {
        let (slice, side) = (&self.slice, self.slice.cube);
        let axis = (switch / (side * side)) as usize;
        let Some(translations) = &self.translations else {
            return Vec::new();
        };
        let place = |[x, y, z]: [u32; 3]| {
            let number =
                (z / side * slice.cubes_along(1) + y / side) * slice.cubes_along(0) + x / side;
            self.cubes[number as usize]
        };
        let mut pairs = Vec::new();
        for rank in 0..self.ranks() {
            let at = slice.coordinates(rank);
            let face = |any_axis: usize| match any_axis == axis {
                true => at[any_axis] % side == side - 1,
                false => at[any_axis] % side == 0,
            };
            if (0..3).all(face) {
                let mut step = [0; 3];
                step[axis] = 1;
                let next = translations.moved(rank, slice.rank(step), false);
                pairs.push((2 * place(at) + 1, 2 * place(slice.coordinates(next))));
            }
        }
        pairs
    }
}

impl Network for OcsTorus {
    fn ranks(&self) -> u32 {
        self.leaving.len() as u32
    }

    fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        let hops = match &self.translations {
            Some(translations) => self.hops[translations.moved(destination, source, true) as usize],
            None => {
                let [from, to] = [source, destination].map(|rank| self.slice.coordinates(rank));
                [0, 1, 2].map(|axis| to[axis] as i32 - from[axis] as i32)
            }
        };
        let mut at = source;
        for (axis, hops) in hops.into_iter().enumerate() {
            let direction = 2 * axis + usize::from(hops < 0);
            for _ in 0..hops.unsigned_abs() {
                let link = self.leaving[at as usize][direction];
                links.push(link);
                let (from, to) = self.ends(link).unwrap_or((at, at));
                at = if at == from { to } else { from };
            }
        }
    }

    /// Returns 0 for a cable within a cube and 1 for a cable that wraps around, if the side has
    /// length 2. Both cables join the same two ranks. Returns `None` on other sides and in twisted
    /// slices.
    fn cable_number(&self, link: u32) -> Option<u32> {
        let untwisted = self
            .translations
            .as_ref()
            .filter(|translations| !translations.is_twisted());
        let cable = link / (self.wiring.back(0) + 1);
        let (rank, axis) = (cable / 3, cable as usize % 3);
        untwisted.filter(|translations| translations.sides()[axis] == 2)?;
        Some(self.slice.coordinates(rank)[axis])
    }

    fn translations(&self) -> Option<&Translations> {
        self.translations.as_ref()
    }

    fn drawing(&self) -> Drawing {
        let links = 0..self.links().len() as u32;
        let leads_around = |&link: &u32| {
            self.ends(link).is_some_and(|(first, second)| {
                let [first, second] = [first, second].map(|rank| self.slice.coordinates(rank));
                first
                    .iter()
                    .zip(second)
                    .any(|(first, second)| first.abs_diff(second) > 1)
            })
        };
        Drawing {
            places: drawing::grid(&self.slice.sides),
            around: links.filter(leads_around).collect(),
        }
    }
}
