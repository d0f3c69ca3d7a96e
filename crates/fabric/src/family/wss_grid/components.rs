//! Text forms of the nodes, transceivers and switch ports of a grid.

use std::fmt;

use super::Plane;
use crate::fabric::part;
use opticoll_base::names::terminal_text;
use opticoll_base::spec::{Spec, SpecError, whole_number};
use opticoll_base::units::Rate;

/// Transceiver of a node, written `5.row` for node 5 and the row plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transceiver {
    /// Index of the node; nodes are numbered row by row.
    pub node: u32,
    /// Plane of the switch to which the transceiver is connected.
    pub plane: Plane,
}

/// Port of a switch, written `row3.2` for port 2 of the switch of row 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchPort {
    /// Plane of the switch: row or column.
    pub plane: Plane,
    /// Index of the row or column to which the switch belongs.
    pub switch: u32,
    /// Index of the port. At a row switch, the index is the column of a node; at a column switch,
    /// the index is the row of a node.
    pub port: u32,
}

impl fmt::Display for Transceiver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.node, self.plane)
    }
}

impl fmt::Display for SwitchPort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}.{}", self.plane, self.switch, self.port)
    }
}

/// Parses an option that lists nodes: `all`, or numbers and ranges joined by `+`. Returns the node
/// numbers, sorted; nodes are 0 to `count` - 1.
///
/// # Errors
/// A node does not exist or is listed twice, or a range ends before it starts.
pub(super) fn read_nodes(spec: &Spec, key: &str, count: u32) -> Result<Vec<u32>, SpecError> {
    let Some(text) = spec.option(key).filter(|text| *text != "all") else {
        return Ok((0..count).collect());
    };
    let number = |text: &str| {
        let node = whole_number(text).filter(|node| *node < count);
        node.ok_or_else(|| {
            let last = count - 1;
            spec.refuse(
                key,
                format!(
                    "`{}` is not a node: nodes are 0 to {last}",
                    terminal_text(text)
                ),
            )
        })
    };
    let mut nodes = Vec::new();
    for part in text.split('+') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(spec.refuse(
                key,
                format!("`{}` ends before it starts", terminal_text(part)),
            ));
        }
        nodes.extend(first..=last);
    }
    nodes.sort_unstable();
    if let Some(twice) = nodes.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(spec.refuse(key, format!("node {} is given twice", twice[0])));
    }
    Ok(nodes)
}

/// Formats nodes as numbers and ranges, joined by `+`.
pub(super) fn print_nodes(nodes: &[u32]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut remaining = nodes;
    while let Some(&first) = remaining.first() {
        let run = (first..)
            .zip(remaining)
            .take_while(|(number, node)| number == *node)
            .count();
        parts.push(match run {
            1 => first.to_string(),
            _ => format!("{first}-{}", remaining[run - 1]),
        });
        remaining = &remaining[run..];
    }
    parts.join("+")
}

/// Parses the option `dead_transceivers`, such as `5.row+9.column`.
pub(super) fn read_transceivers(spec: &Spec, nodes: u32) -> Result<Vec<Transceiver>, SpecError> {
    read(spec, "dead_transceivers", |part| transceiver(part, nodes))
}

/// Parses a transceiver such as `5.row`. Returns `None` if the grid has no such node or plane.
fn transceiver(text: &str, nodes: u32) -> Option<Transceiver> {
    let (node, plane) = text.split_once('.')?;
    let node = whole_number(node).filter(|node| *node < nodes)?;
    let plane = Plane::BOTH
        .into_iter()
        .find(|known| known.name() == plane)?;
    Some(Transceiver { node, plane })
}

/// Parses the option `degraded`, such as `5.row@25Gb/s+9.column@50Gb/s`. Returns the transceivers
/// with their reduced rates, sorted by transceiver.
pub(super) fn read_degraded(
    spec: &Spec,
    nodes: u32,
    full: Rate,
) -> Result<Vec<(Transceiver, Rate)>, SpecError> {
    let slower = part::read_degraded(spec, |name| {
        let named = transceiver(name, nodes);
        Ok((
            named.ok_or_else(|| no_such_component(spec, "degraded", name))?,
            full,
        ))
    })?;
    Ok(part::slowest_first(slower))
}

/// Formats degraded transceivers such that [`read_degraded`] parses them.
pub(super) fn print_degraded(degraded: &[(Transceiver, Rate)]) -> String {
    part::joined(degraded, |(transceiver, rate)| {
        format!("{transceiver}@{rate}")
    })
}

/// Parses the option `dead_ports`, such as `row3.2+column1.0`.
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
        let switch = whole_number(number).filter(|switch| *switch < switches)?;
        let port = whole_number(port).filter(|port| *port < ports)?;
        Some(SwitchPort {
            plane,
            switch,
            port,
        })
    })
}

/// Parses items joined by `+`, each with `parse_item`. The result is sorted and has no duplicates.
fn read<T: Ord>(
    spec: &Spec,
    key: &str,
    parse_item: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, SpecError> {
    let Some(text) = spec.option(key) else {
        return Ok(Vec::new());
    };
    let items = text.split('+');
    let items =
        items.map(|part| parse_item(part).ok_or_else(|| no_such_component(spec, key, part)));
    let mut components: Vec<T> = items.collect::<Result<_, SpecError>>()?;
    components.sort_unstable();
    components.dedup();
    Ok(components)
}

fn no_such_component(spec: &Spec, key: &str, text: &str) -> SpecError {
    let example = match key {
        "dead_ports" => "row3.2 (port 2 of the switch of row 3)",
        _ => "5.row (the transceiver of node 5 to its row)",
    };
    let text = terminal_text(text);
    let problem = format!("`{text}` does not exist on the grid; write {example}");
    spec.refuse(key, problem)
}
