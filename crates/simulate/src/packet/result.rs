//! Outcome of a run, computed from the counters of all parts.

use super::PacketError;
use super::engine::{Counters, PacketEngine};
use super::routes::Routes;
use super::steps::ScheduleProgress;
use crate::outcome::meter::timeline;
use crate::outcome::packets::{
    ChannelColumns, FinishColumns, Latency, PacketLinks, PacketOutcome, PacketSteps,
};
use opticoll_base::units::{Time, UnitError};

impl Counters {
    fn join(&mut self, other: &Counters) {
        for (finish, other) in self.finish.iter_mut().zip(&other.finish) {
            *finish = (*finish).max(*other);
        }
        self.message_latency.join(&other.message_latency);
        self.background_latency.join(&other.background_latency);
        self.chunk_latency.join(&other.chunk_latency);
        self.routers_passed += other.routers_passed;
        self.minimal_chunks += other.minimal_chunks;
        self.detoured_chunks += other.detoured_chunks;
        self.bytes_sent += other.bytes_sent;
        self.bytes_delivered += other.bytes_delivered;
        self.forwards += other.forwards;
        self.events += other.events;
        self.delivered += other.delivered;
        self.occupancy.join(&other.occupancy);
        self.stalled.join(&other.stalled);
    }
}

/// Returns the outcome of a run that ended at `time` (ps). `placement` is the terminal of each
/// rank, and `links` the number of links of the network.
pub(super) fn outcome<R: Routes>(
    mut parts: Vec<PacketEngine<R>>,
    time: u64,
    placement: &[u32],
    links: usize,
) -> Result<PacketOutcome, PacketError> {
    let shift = parts[0].channels.shift;
    for part in &mut parts {
        part.resolve_uncertain_peaks(u64::MAX);
        for number in 0..part.stalls.len() as u32 {
            part.end_stall(number >> shift, number, time);
        }
    }
    let setup = &parts[0].setup;
    let owner = |link: u32| &parts[usize::from(setup.partition.part_of_link[link as usize])];
    let mut columns = ChannelColumns::default();
    for link in 0..links as u32 {
        let part = owner(link);
        for channel_number in 0..part.routes.channels() {
            let number = part.channels.number(link, channel_number);
            let (place, channel) = (number as usize, &part.channels.list[number as usize]);
            columns.link.push(link);
            columns.channel.push(channel_number);
            let full = channel.chunks * setup.chunk;
            columns.bytes.push(full - part.short_bytes[place]);
            columns.chunks.push(channel.chunks);
            columns.stall.push(Time::from_ps(part.stalls[place].sum));
            columns.peak_chunks.push(channel.peak);
            columns.capacity_chunks.push(channel.capacity);
        }
    }
    let ports = (0..links as u32).map(|link| &owner(link).ports[link as usize]);
    let (classes, busy) = ports
        .map(|port| (port.class, Time::from_ps(port.busy)))
        .unzip();
    let chunk = setup.chunk;
    let first = parts.swap_remove(0);
    let (mut counters, mut steps) = (first.counters, first.steps);
    for part in parts {
        counters.join(&part.counters);
        if let (Some(steps), Some(more)) = (&mut steps, &part.steps) {
            steps.join(more);
        }
    }
    let finish = |&terminal: &u32| Time::from_ps(counters.finish[terminal as usize]);
    let bytes_sent = u64::try_from(counters.bytes_sent).map_err(|_| UnitError::Overflow {
        what: "all messages' bytes".into(),
        smallest: "bytes",
    })?;
    let (timeline_bin, timeline) = timeline(counters.occupancy, counters.stalled, chunk)?;
    let links = PacketLinks::new(busy, classes, &columns);
    let bottleneck = links.bottleneck();
    let ranks = FinishColumns {
        finish: placement.iter().map(finish).collect(),
    };
    let finished: u128 = ranks.finish.iter().map(|time| u128::from(time.ps())).sum();
    let chunks = (counters.minimal_chunks + counters.detoured_chunks).max(1);
    Ok(PacketOutcome {
        time: Time::from_ps(time),
        mean_finish: Time::from_ps((finished / ranks.finish.len().max(1) as u128) as u64),
        mean_hops: counters.routers_passed as f64 / chunks as f64,
        bottleneck: bottleneck.map(|(link, _)| link),
        bottleneck_busy: bottleneck.map_or(Time::ZERO, |(_, busy)| busy),
        latencies: vec![
            Latency::new("message", &counters.message_latency),
            Latency::new("background", &counters.background_latency),
            Latency::new("chunk", &counters.chunk_latency),
        ],
        ranks,
        message_latency: counters.message_latency,
        background_latency: counters.background_latency,
        chunk_latency: counters.chunk_latency,
        routers_passed: counters.routers_passed,
        minimal_chunks: counters.minimal_chunks,
        detoured_chunks: counters.detoured_chunks,
        bytes_sent,
        bytes_delivered: counters.bytes_delivered,
        channels: columns,
        classes: links.class_sums(),
        links,
        timeline_bin,
        timeline,
        steps: steps.map_or_else(PacketSteps::default, ScheduleProgress::columns),
        router_forwards: counters.forwards,
        events: counters.events,
    })
}
