//! How nodes, transceivers and switch ports of a grid are written.

use std::fmt;

use super::Plane;
use crate::names::shown;
use crate::spec::{Spec, SpecError, whole};

/// A transceiver of a node that neither sends nor receives; written `5.row`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeadTransceiver {
    /// The node, row by row.
    pub node: u32,
    /// Which of its two.
    pub plane: Plane,
}

/// A port of a switch; written `row3.2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchPort {
    /// Whether it is the switch of a row or of a column.
    pub plane: Plane,
    /// The row or column.
    pub switch: u32,
    /// The port: a column or row.
    pub port: u32,
}

impl fmt::Display for DeadTransceiver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.node, self.plane)
    }
}

impl fmt::Display for SwitchPort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}.{}", self.plane, self.switch, self.port)
    }
}

/// Several places, joined by `+`.
pub(super) fn joined<T: fmt::Display>(places: &[T]) -> String {
    let places: Vec<String> = places.iter().map(T::to_string).collect();
    places.join("+")
}

/// The nodes of an option: all, or those given as numbers and ranges.
pub(super) fn read_nodes(spec: &Spec, key: &str, count: u32) -> Result<Vec<u32>, SpecError> {
    let Some(text) = spec.option(key).filter(|text| *text != "all") else {
        return Ok((0..count).collect());
    };
    let number = |text: &str| {
        let node = whole(text).filter(|node| *node < count);
        node.ok_or_else(|| {
            let last = count - 1;
            spec.refuse(
                key,
                format!("`{}` is no node: they are 0 to {last}", shown(text)),
            )
        })
    };
    let mut nodes = Vec::new();
    for part in text.split('+') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(spec.refuse(key, format!("`{}` ends before it starts", shown(part))));
        }
        nodes.extend(first..=last);
    }
    nodes.sort_unstable();
    if let Some(twice) = nodes.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(spec.refuse(key, format!("node {} is given twice", twice[0])));
    }
    Ok(nodes)
}

/// The nodes as numbers and ranges.
pub(super) fn print_nodes(nodes: &[u32]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = nodes;
    while let Some(&first) = rest.first() {
        let run = (first..)
            .zip(rest)
            .take_while(|(number, node)| number == *node)
            .count();
        parts.push(match run {
            1 => first.to_string(),
            _ => format!("{first}-{}", rest[run - 1]),
        });
        rest = &rest[run..];
    }
    parts.join("+")
}

/// The dead transceivers, such as `5.row+9.column`.
pub(super) fn read_transceivers(
    spec: &Spec,
    nodes: u32,
) -> Result<Vec<DeadTransceiver>, SpecError> {
    read(spec, "dead_transceivers", |part| {
        let (node, plane) = part.split_once('.')?;
        let node = whole(node).filter(|node| *node < nodes)?;
        let plane = Plane::BOTH.into_iter().find(|one| one.name() == plane)?;
        Some(DeadTransceiver { node, plane })
    })
}

/// The dead switch ports, such as `row3.2+column1.0`.
pub(super) fn read_ports(
    spec: &Spec,
    rows: u32,
    columns: u32,
) -> Result<Vec<SwitchPort>, SpecError> {
    read(spec, "dead_ports", |part| {
        let (switch, port) = part.split_once('.')?;
        let (plane, number) = Plane::BOTH
            .into_iter()
            .find_map(|plane| Some((plane, switch.strip_prefix(plane.name())?)))?;
        let (switches, ports) = match plane {
            Plane::Row => (rows, columns),
            Plane::Column => (columns, rows),
        };
        let switch = whole(number).filter(|switch| *switch < switches)?;
        let port = whole(port).filter(|port| *port < ports)?;
        Some(SwitchPort {
            plane,
            switch,
            port,
        })
    })
}

/// Places joined by `+`, in order and once each.
fn read<T: Ord>(
    spec: &Spec,
    key: &str,
    place: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, SpecError> {
    let Some(text) = spec.option(key) else {
        return Ok(Vec::new());
    };
    let example = match key {
        "dead_ports" => "row3.2 (port 2 of the switch of row 3)",
        _ => "5.row (the transceiver of node 5 to its row)",
    };
    let mut places = Vec::new();
    for part in text.split('+') {
        let found = place(part).ok_or_else(|| {
            let problem = format!(
                "`{}` is no such place on the grid; write {example}",
                shown(part)
            );
            spec.refuse(key, problem)
        })?;
        places.push(found);
    }
    places.sort_unstable();
    places.dedup();
    Ok(places)
}
