//! The record of `packet`.

use super::fluid::has_links;
use super::{Case, Simulator};
use crate::fabric::Fabric;
use crate::network::Network;
use crate::outcome::Outcome;
use crate::simulate::live::{BusiestLink, Happening, Live};
use crate::simulate::{Method, SimulationError, needed_network, packet, packet_settings};
use crate::table::Details;
use crate::units::{Bytes, Time};

pub(super) const RECORD: Simulator = Simulator {
    run: Some(run),
    live: Some(live),
    rule: |_, _| "packet by packet".into(),
    beside_bound: |fabric, method| {
        let given = method.packet.placement.terminals(fabric.ranks()).is_some();
        let place = if given { "given" } else { "natural" };
        Some(format!("ranks sit where the {place} placement puts them"))
    },
    ..Simulator::new(
        "packet",
        "Chunks of messages on electrical fabrics, with virtual channels, credits and buffers",
        "Mubarak et al., A Case Study in Using Massively Parallel Simulation for \
               Extreme-Scale Torus Network Codesign, 2014; CODES's dragonfly",
        |fabric, _| has_links(fabric),
    )
};

fn run(case: Case<'_>) -> Result<Outcome, SimulationError> {
    let plan = case.plan.kept();
    let settings = packet_settings(&plan.fabric, case.method)?;
    packet::simulate_plan(plan, case.size, &settings, case.watch)
}

fn live<'a>(fabric: &'a Fabric, method: &'a Method) -> Result<Box<dyn Live + 'a>, SimulationError> {
    Ok(Box::new(Packets {
        packets: packet::Driven::new(fabric, &packet_settings(fabric, method)?)?,
        network: needed_network(fabric, RECORD.name)?,
        reports: Vec::new(),
    }))
}

struct Packets<'a> {
    packets: packet::Driven<'a>,
    network: &'a dyn Network,
    reports: Vec<packet::Report>,
}

impl Live for Packets<'_> {
    fn send(
        &mut self,
        number: u32,
        ends: (u32, u32),
        bytes: Bytes,
        ready: Time,
    ) -> Result<(), SimulationError> {
        Ok(self.packets.send(number, ends, bytes, ready)?)
    }

    fn next_time(&mut self) -> Result<Option<Time>, SimulationError> {
        Ok(self.packets.next_time())
    }

    fn advance(&mut self, happened: &mut Vec<Happening>) -> Result<(), SimulationError> {
        self.packets.advance(&mut self.reports)?;
        happened.extend(self.reports.drain(..).map(|report| Happening {
            message: report.message,
            left: !report.arrived,
            arrived: report.arrived,
            time: report.time,
        }));
        Ok(())
    }

    fn close(self: Box<Self>, time: Time) -> Result<Details, SimulationError> {
        let links = self.packets.close(time)?.links.bytes;
        Ok(BusiestLink::of_links(self.network, &links, time))
    }
}
