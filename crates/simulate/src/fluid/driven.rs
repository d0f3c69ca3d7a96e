//! Flows that the caller starts one by one, for programs that compute between messages.
//!
//! Instants inside the simulator are fractions of a picosecond, but the caller sees rounded times.
//! A flow that the caller starts at the rounded time of an instant starts at the exact instant.
//!
//! ```
//! use opticoll_fabric::fabric::Fabric;
//! use opticoll_simulate::fluid::{DrivenFlows, FlowOptions};
//! use opticoll_simulate::live::{Live, ReadyMessage};
//! use opticoll_base::units::{Bytes, Time};
//! let fabric = Fabric::parse("crossbar:ranks=2,rate=8Gb/s,latency=0s")?;
//! let options = FlowOptions::default();
//! let mut flows = DrivenFlows::new(fabric.network().unwrap(), &options)?;
//! flows.send(7, ReadyMessage::new((0, 1), Bytes::new(1000), Time::from_ps(500)))?;
//! let end = flows.next_time()?;
//! assert_eq!(end, Some(Time::from_ps(1_000_500)));
//! let mut happened = Vec::new();
//! flows.advance(&mut happened)?;
//! assert!(happened[0].message == 7 && happened[0].arrived);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::conversion::to_time;
use super::engine::FluidEngine;
use super::program::FlowStart;
use super::{FlowOptions, FluidError, check_background, check_ends};
use crate::SimulationError;
use crate::live::{BusiestLink, Live, MessageEvent, MessageTimes, ReadyMessage};
use crate::table::Details;
use opticoll_base::units::Time;
use opticoll_fabric::network::Network;
use opticoll_plan::plan::NamedRoutes;

/// Network in which the caller starts the flows.
pub struct DrivenFlows<'a> {
    network: &'a dyn Network,
    options: FlowOptions,
    engine: FluidEngine<'a>,
    now: f64,
    /// Instant (ps) of the engine's next event, or infinity if there is none. `None` if a flow has
    /// started since the instant was computed.
    next: Option<f64>,
    ended: Vec<u32>,
    flows: u64,
}

impl<'a> DrivenFlows<'a> {
    /// Creates a network without flows. Single flows are not recorded, whatever `options` says.
    ///
    /// # Errors
    /// Background traffic uses a rank that does not exist. The options contain endpoint costs,
    /// which the calling program must model. The bins of link use have no length.
    pub fn new(
        network: &'a dyn Network,
        options: &FlowOptions,
    ) -> Result<DrivenFlows<'a>, FluidError> {
        check_background(network, options)?;
        if options.endpoint.is_some() {
            return Err(FluidError::Endpoint);
        }
        let mut engine = FluidEngine::new(network, options)?;
        engine.ledger.record_no_flows();
        engine.announce_background();
        Ok(DrivenFlows {
            network,
            options: options.clone(),
            engine,
            now: 0.0,
            next: None,
            ended: Vec::new(),
            flows: 0,
        })
    }
}

impl Live for DrivenFlows<'_> {
    fn ranks(&self) -> Option<u32> {
        Some(self.network.ranks())
    }

    fn take_routes(&mut self, routes: &NamedRoutes) -> Result<(), SimulationError> {
        self.engine.take_routes(routes);
        Ok(())
    }

    fn send(
        &mut self,
        flow: u32,
        message: ReadyMessage,
    ) -> Result<Option<MessageTimes>, SimulationError> {
        let ReadyMessage {
            source,
            destination,
            route,
            bytes,
            ready,
            ..
        } = message;
        if let Some(times) = message.local_delivery() {
            return Ok(Some(times));
        }
        check_ends(flow as usize, source, destination, self.network.ranks())?;
        // The caller may know the present instant only as a rounded time.
        let present = to_time(self.now)? == ready;
        let now = match present {
            true => self.now,
            false => self.now.max(ready.ps() as f64),
        };
        if now > self.now {
            self.engine.next_instant(self.now)?;
            self.engine.ledger.flow_until(now);
            self.now = now;
        }
        self.next = None;
        self.flows += 1;
        let start = FlowStart {
            flow,
            source,
            destination,
            route,
            bytes: bytes.get(),
            cap: f64::INFINITY,
            start: now,
        };
        self.engine.begin(start, now)?;
        Ok(None)
    }

    fn next_time(&mut self) -> Result<Option<Time>, SimulationError> {
        let next = match self.next {
            Some(next) => next,
            None if !self.engine.events.is_empty() => self.now,
            None => self.engine.next_instant(self.now)?,
        };
        self.next = Some(next);
        if next == f64::INFINITY {
            return Ok(None);
        }
        Ok(Some(to_time(next)?))
    }

    fn advance(&mut self, happened: &mut Vec<MessageEvent>) -> Result<(), SimulationError> {
        let Some(time) = self.next_time()? else {
            return Ok(());
        };
        if self.engine.events.is_empty()
            && let Some(next) = self.next
        {
            self.now = next;
            self.engine.move_to(next, &mut self.ended)?;
        }
        self.next = None;
        let events = &mut self.engine.events;
        events.sort_unstable_by_key(|event| event.flow);
        let ended = events.drain(..);
        happened.extend(ended.map(|event| MessageEvent::arrival(event.flow, time)));
        Ok(())
    }

    fn close(mut self: Box<Self>, time: Time) -> Result<Details, SimulationError> {
        self.engine.end_all_background(self.now);
        let counts = (self.flows, 0);
        let ledger = self.engine.ledger;
        let (found, _) = ledger.close(self.network, &self.options, "driven", counts)?;
        Ok(BusiestLink::details(self.network, &found.links.bytes, time))
    }
}
