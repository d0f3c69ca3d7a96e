//! Chunks, and the virtual channels whose buffers they hold.
//!
//! A channel's occupancy is the number of chunks that hold a place of its buffer: waiting to be sent,
//! on the wire, and arrived but not yet accepted further on. Credits on their way back are kept as
//! times in a list and taken in when somebody looks; an event is only made for a credit that somebody
//! waits for. The first of them stands in the channel itself, for mostly it is the only one.

use std::iter::repeat_n;

use super::pool::{Linked, List, NONE, Pool};

/// A piece of a packet: what is routed, buffered and sent as one. One line of the cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Chunk {
    next: u32,
    pub(super) message: u32,
    pub(super) destination: u32,
    /// The link it came over last, and holds a buffer of; where that leads, and how long it is.
    pub(super) link: u32,
    pub(super) router: u32,
    pub(super) latency: u64,
    /// When its packet was made, in picoseconds.
    pub(super) made: u64,
    /// What its random choices are drawn from.
    pub(super) draw: u64,
    pub(super) bytes: u32,
    /// The part of the network that its message comes from, by whose number it is known until it is in
    /// that of its destination.
    pub(super) home: u8,
    /// The part that `link` leads from.
    pub(super) sender: u8,
    /// The intermediate group that it is to visit; `NONE` if none or no more.
    pub(super) detour: u32,
    /// The channel of `link` whose buffer it holds.
    pub(super) channel: u8,
    /// Routers passed.
    pub(super) routers: u16,
    /// Local hops made in the group it started in.
    pub(super) local_hops: u8,
    /// Global hops made.
    pub(super) global_hops: u8,
    /// Whether it was sent by way of an intermediate group.
    pub(super) detoured: bool,
    /// Whether it is the last one of its message.
    pub(super) last: bool,
}

impl Chunk {
    pub(super) fn new(
        (home, message): (u8, u32),
        destination: u32,
        bytes: u32,
        made: u64,
        draw: u64,
    ) -> Chunk {
        Chunk {
            next: NONE,
            message,
            destination,
            link: NONE,
            router: NONE,
            latency: 0,
            made,
            draw,
            bytes,
            home,
            sender: home,
            detour: NONE,
            channel: 0,
            routers: 0,
            local_hops: 0,
            global_hops: 0,
            detoured: false,
            last: false,
        }
    }
}

/// A place of a buffer, by the link and channel, with the link's length and the part it leads from.
pub(super) struct HeldBuffer {
    pub(super) link: u32,
    pub(super) channel: u32,
    pub(super) latency: u64,
    pub(super) sender: u8,
}

impl Chunk {
    /// The place that it holds.
    #[inline]
    pub(super) fn held(&self) -> HeldBuffer {
        HeldBuffer {
            link: self.link,
            channel: self.channel.into(),
            latency: self.latency,
            sender: self.sender,
        }
    }
}

impl Linked for Chunk {
    fn next(&self) -> u32 {
        self.next
    }
    fn set_next(&mut self, next: u32) {
        self.next = next;
    }
}

/// No credit is on its way.
const NEVER: u64 = u64::MAX;

/// A credit on its way back.
#[derive(Clone, Copy)]
pub(super) struct Credit {
    time: u64,
    next: u32,
}

impl Linked for Credit {
    fn next(&self) -> u32 {
        self.next
    }
    fn set_next(&mut self, next: u32) {
        self.next = next;
    }
}

/// Whether somebody waits for the next credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// Nobody.
    Unwanted,
    /// Somebody, and no credit is on its way.
    Wanted,
    /// Somebody, and the event is on the event_queue.
    Scheduled,
}

/// A virtual channel of a link. One line of the cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct VirtualChannel {
    /// Accepted chunks that wait for the link.
    pub(super) queue: List,
    /// Chunks that wait for a place in the buffer; they still hold one of the link before.
    pub(super) wait: List,
    /// When the first credit on its way comes back, and those after it. Where the sender is in another
    /// part of the network: when the last credit sent comes back.
    first_credit: u64,
    credits: List,
    pub(super) waiting: u32,
    pub(super) occupied: u32,
    pub(super) capacity: u32,
    /// The most that was ever occupied.
    pub(super) peak: u32,
    /// What was put on the link.
    pub(super) chunks: u64,
    pub(super) wake: Wake,
    /// Where it is still to be seen if more was occupied than `peak`: the last of those doubts.
    pub(super) doubt: u32,
}

/// All virtual channels: those of link l are `l << shift` and the following.
#[derive(Clone)]
pub(super) struct VirtualChannels {
    pub(super) list: Vec<VirtualChannel>,
    pub(super) shift: u32,
    credits: Pool<Credit>,
}

impl VirtualChannels {
    /// `per_link` channels on each link, each with the link's capacity in chunks.
    pub(super) fn new(per_link: u32, capacities: impl Iterator<Item = u32>) -> VirtualChannels {
        let shift = per_link.next_power_of_two().ilog2();
        let channel = |capacity| VirtualChannel {
            queue: List::EMPTY,
            wait: List::EMPTY,
            first_credit: NEVER,
            credits: List::EMPTY,
            waiting: 0,
            occupied: 0,
            capacity,
            peak: 0,
            chunks: 0,
            wake: Wake::Unwanted,
            doubt: NONE,
        };
        let list = capacities.flat_map(|capacity| repeat_n(channel(capacity), 1 << shift));
        VirtualChannels {
            list: list.collect(),
            shift,
            credits: Pool::new(),
        }
    }

    #[inline]
    pub(super) fn number(&self, link: u32, channel: u32) -> u32 {
        (link << self.shift) + channel
    }

    /// Chunks that hold or wait for a buffer of the link's channels.
    pub(super) fn load(&mut self, link: u32, now: u64) -> u32 {
        let first = link << self.shift;
        (first..first + (1 << self.shift))
            .map(|number| {
                self.take_credits(number, now);
                let channel = &self.list[number as usize];
                channel.occupied + channel.waiting
            })
            .sum()
    }

    /// Takes in the credits that have come back.
    #[inline]
    pub(super) fn take_credits(&mut self, number: u32, now: u64) {
        let channel = &mut self.list[number as usize];
        while channel.first_credit <= now {
            channel.occupied -= 1;
            if channel.credits.is_empty() {
                channel.first_credit = NEVER;
                return;
            }
            let credit = channel.credits.pop(&self.credits);
            channel.first_credit = self.credits[credit].time;
            self.credits.remove(credit);
        }
    }

    /// Sends a credit back that comes at `time`, never before one sent earlier; returns when it does.
    #[inline]
    pub(super) fn send_credit(&mut self, number: u32, now: u64, time: u64) -> u64 {
        self.take_credits(number, now);
        let channel = &mut self.list[number as usize];
        if channel.first_credit == NEVER {
            channel.first_credit = time;
            return time;
        }
        let last = channel.credits.tail(&self.credits);
        let time = time.max(last.map_or(channel.first_credit, |credit| credit.time));
        let credit = self.credits.add(Credit { time, next: NONE });
        channel.credits.push(&mut self.credits, credit);
        time
    }

    /// The same towards a sender in another part: says when the credit comes.
    pub(super) fn return_credit(&mut self, number: u32, time: u64) -> u64 {
        let last = &mut self.list[number as usize].first_credit;
        *last = if *last == NEVER {
            time
        } else {
            time.max(*last)
        };
        *last
    }

    /// When the next credit comes back.
    #[inline]
    pub(super) fn next_credit(&self, number: u32) -> Option<u64> {
        let first = self.list[number as usize].first_credit;
        (first != NEVER).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn credits_come_back_in_order_at_their_times() {
        let mut channels = VirtualChannels::new(1, std::iter::repeat_n(u32::MAX, 3));
        let mut plain = [const { VecDeque::new() }; 3];
        let (mut state, mut now) = (1_u64, 0);
        for _ in 0..20_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            let draw = state >> 40;
            let number = (draw % 3) as u32;
            let (credits, late) = (&mut plain[number as usize], draw / 3 % 90);
            now += draw % 20;
            channels.take_credits(number, now);
            while credits.front().is_some_and(|&time| time <= now) {
                credits.pop_front();
            }
            assert_eq!(channels.next_credit(number), credits.front().copied());
            let occupied = channels.list[number as usize].occupied;
            assert_eq!(occupied as usize, credits.len());
            // A chunk takes a place and gives it free again at a time to come.
            channels.list[number as usize].occupied += 1;
            let back = channels.send_credit(number, now, now + 1 + late);
            assert_eq!(
                back,
                credits
                    .back()
                    .map_or(0, |&time: &u64| time)
                    .max(now + 1 + late)
            );
            credits.push_back(back);
        }
        assert!(channels.credits.used() < 100);
    }
}
