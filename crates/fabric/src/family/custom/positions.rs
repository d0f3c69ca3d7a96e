//! Geographical positions of vertices, and pictures in which the vertices have these positions.

use std::fmt;
use std::str::FromStr;

use crate::drawing::{Drawing, Point};
use crate::fabric::FabricError;
use opticoll_base::names::terminal_text;
use opticoll_base::spec::{OptionRecord, Spec};

/// Number of the smallest units of a [`Position`] in a degree. A unit is 1.1 m or less.
const PER_DEGREE: f64 = 1e5;

/// Position on the earth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    /// Latitude in units of 0.00001 degrees, positive in the north.
    latitude: i32,
    /// Longitude in units of 0.00001 degrees, positive in the east.
    longitude: i32,
}

/// Option with the positions of all vertices.
pub(super) const OPTION: OptionRecord = OptionRecord::new(
    "positions",
    "latitude and longitude of all vertices in degrees, for pictures",
)
.range("40.71/-74.01, or unknown; joined by +")
.default("none");

/// Word in place of an unknown position.
const UNKNOWN: &str = "unknown";

/// Parses the option for a graph of `vertices` vertices.
///
/// # Errors
/// A position is outside the earth, or the number of positions is wrong.
pub(super) fn read(spec: &Spec, vertices: u32) -> Result<Vec<Option<Position>>, FabricError> {
    let Some(text) = spec.option(OPTION.name) else {
        return Ok(Vec::new());
    };
    let position = |part: &str| match part {
        UNKNOWN => Ok(None),
        _ => part.parse().map(Some),
    };
    let positions: Result<Vec<_>, String> = text.split('+').map(position).collect();
    let positions = positions.map_err(|problem| spec.refuse(OPTION.name, problem))?;
    match positions.len() {
        count if count == vertices as usize => Ok(positions),
        count => {
            let problem = format!("has {count} positions for {vertices} ranks and switches");
            Err(spec.refuse(OPTION.name, problem).into())
        }
    }
}

/// Returns the text of the option, or `None` if no position is known.
pub(super) fn print(positions: &[Option<Position>]) -> Option<String> {
    let text = |position: &Option<Position>| match position {
        Some(position) => position.to_string(),
        None => UNKNOWN.to_owned(),
    };
    let texts: Vec<String> = positions.iter().map(text).collect();
    (!texts.is_empty()).then(|| texts.join("+"))
}

/// Returns the picture in which all vertices have their positions: an equirectangular map that is
/// true to scale at the mean latitude. Returns `None` if some positions are unknown.
/// `ends` contains the two vertices of each cable.
pub(super) fn drawing(
    positions: &[Option<Position>],
    ends: impl Iterator<Item = (u32, u32)>,
) -> Option<Drawing> {
    let known: Vec<Position> = positions.iter().copied().collect::<Option<_>>()?;
    let degrees = |units: i32| f64::from(units) / PER_DEGREE;
    let north = known.iter().map(|position| degrees(position.latitude));
    let mean = north.sum::<f64>() / known.len().max(1) as f64;
    let width = mean.to_radians().cos();
    let at = |position: &Position| {
        [
            degrees(position.longitude) * width,
            degrees(position.latitude),
        ]
    };
    let places: Vec<Point> = known.iter().map(at).collect();
    let apart = |(from, to): (u32, u32)| {
        let [from, to] = [from, to].map(|vertex| places[vertex as usize]);
        (to[0] - from[0]).hypot(to[1] - from[1])
    };
    let apart: Vec<f64> = ends.map(apart).filter(|apart| *apart > 0.0).collect();
    let scale = apart.len() as f64 / apart.iter().sum::<f64>();
    let scale = if scale.is_finite() {
        scale
    } else {
        return None;
    };
    let scaled = places.iter().map(|[x, y]| [x * scale, y * scale]);
    Some(Drawing::new(scaled.collect()))
}

impl FromStr for Position {
    type Err = String;

    fn from_str(text: &str) -> Result<Position, String> {
        let degrees = |text: &str, most: f64| {
            let degrees: f64 = text.trim().parse().ok()?;
            let units = || (degrees * PER_DEGREE).round() as i32;
            (-most..=most).contains(&degrees).then(units)
        };
        text.split_once('/')
            .and_then(|(latitude, longitude)| {
                Some(Position {
                    latitude: degrees(latitude, 90.0)?,
                    longitude: degrees(longitude, 180.0)?,
                })
            })
            .ok_or_else(|| {
                let text = terminal_text(text);
                format!("`{text}` is not a latitude and a longitude in degrees, as 40.71/-74.01")
            })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [latitude, longitude] =
            [self.latitude, self.longitude].map(|units| f64::from(units) / PER_DEGREE);
        write!(formatter, "{latitude}/{longitude}")
    }
}
