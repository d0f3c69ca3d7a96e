//! Chunks, and the virtual channels whose buffers they occupy.
//!
//! The occupancy of a channel is the number of chunks that occupy a place in its buffer: chunks
//! that wait to be sent, chunks on the wire, and chunks that have arrived but are not yet accepted
//! for their next channel. Each channel has a list of the arrival times of returning credits, which
//! are applied when the occupancy is read. Only a credit for which a chunk waits has an event. The
//! first credit is stored in the channel itself, because most channels have at most one credit.

use std::iter::repeat_n;

use super::arena::{Arena, Linked, List, NONE};
use super::event_queue::NEVER;

/// Part of a packet that is routed, buffered and sent as a whole. The struct fills one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Chunk {
    next: u32,
    pub(super) message: u32,
    pub(super) destination: u32,
    /// Link that the chunk used most recently. The chunk still occupies a place in the buffer of
    /// this link.
    pub(super) link: u32,
    /// Router at the receiving end of `link`.
    pub(super) router: u32,
    /// Latency (ps) of `link`.
    pub(super) latency: u64,
    /// Time (ps) at which the packet of the chunk was cut.
    pub(super) cut_at: u64,
    /// Seed of the random choices of the chunk's route.
    pub(super) draw: u64,
    pub(super) bytes: u32,
    /// Network part of the message's source. Until the chunk enters the part of its destination,
    /// `message` is the index of the message in `home`, then in the part of the destination.
    pub(super) home: u8,
    /// Network part at the sending end of `link`.
    pub(super) sender: u8,
    /// Intermediate group that the chunk has not visited yet; `NONE` if there is none.
    pub(super) detour: u32,
    /// Channel of `link` whose buffer the chunk occupies.
    pub(super) channel: u8,
    /// Number of routers that the chunk has passed.
    pub(super) routers: u16,
    /// Number of local hops that the chunk has made in the group of its source.
    pub(super) local_hops: u8,
    /// Number of global hops that the chunk has made.
    pub(super) global_hops: u8,
    /// True if the route includes an intermediate group.
    pub(super) detoured: bool,
    /// True if the chunk is the last of its message.
    pub(super) last: bool,
}

/// Place in the buffer of a channel. `latency` (ps) is the latency of `link`, and `sender` is the
/// network part at the sending end of `link`.
pub(super) struct BufferPlace {
    pub(super) link: u32,
    pub(super) channel: u32,
    pub(super) latency: u64,
    pub(super) sender: u8,
}

impl Chunk {
    pub(super) fn new(
        (home, message): (u8, u32),
        destination: u32,
        bytes: u32,
        cut_at: u64,
        draw: u64,
    ) -> Chunk {
        Chunk {
            next: NONE,
            message,
            destination,
            link: NONE,
            router: NONE,
            latency: 0,
            cut_at,
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

    #[inline]
    pub(super) fn buffer_place(&self) -> BufferPlace {
        BufferPlace {
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

/// State of the event for the next credit of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// No chunk waits for a credit.
    Unwanted,
    /// A chunk waits for a credit, and no credit has been sent.
    Wanted,
    /// A chunk waits for a credit, and the event queue contains the event of the next credit.
    Scheduled,
}

/// Virtual channel of a link. The struct fills one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct VirtualChannel {
    /// Accepted chunks that wait for the link.
    pub(super) queue: List,
    /// Chunks that wait for a place in this buffer. Each still occupies a place in the buffer of
    /// its previous link.
    pub(super) wait: List,
    /// Arrival time (ps) of the first credit that is under way. If the sender of the link is in
    /// another network part, this is the arrival time of the credit that was sent last.
    first_credit: u64,
    /// Credits after the first.
    credits: List,
    pub(super) waiting: u32,
    pub(super) occupied: u32,
    pub(super) capacity: u32,
    /// Maximum of `occupied` so far.
    pub(super) peak: u32,
    /// Number of chunks sent on the link.
    pub(super) chunks: u64,
    pub(super) wake: Wake,
    /// Index of the channel's latest uncertain peak in the engine's list `uncertain_peaks`, or
    /// `NONE`. An uncertain peak is defined in the header of [`super::exchange`].
    pub(super) last_uncertain_peak: u32,
}

/// All virtual channels. Channel c of link l has the index `(l << shift) + c`.
#[derive(Clone)]
pub(super) struct VirtualChannels {
    pub(super) list: Vec<VirtualChannel>,
    pub(super) shift: u32,
    credits: Arena<Credit>,
}

impl VirtualChannels {
    /// Creates `per_link` channels on each link. `capacities` contains the number of chunks that a
    /// buffer of each link can hold.
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
            last_uncertain_peak: NONE,
        };
        let list = capacities.flat_map(|capacity| repeat_n(channel(capacity), 1 << shift));
        VirtualChannels {
            list: list.collect(),
            shift,
            credits: Arena::new(),
        }
    }

    #[inline]
    pub(super) fn number(&self, link: u32, channel: u32) -> u32 {
        (link << self.shift) + channel
    }

    /// Returns the number of chunks that occupy, or wait for, the buffers of a link's channels.
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

    /// Applies the credits of the channel with the index `number` that have arrived by `now` (ps).
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

    /// Sends back a credit of the channel with the index `number`. `time` (ps) is the arrival time
    /// that follows from the delays. Returns the actual arrival time (ps), which is no earlier than
    /// the arrival times of credits sent before.
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

    /// Returns the arrival time (ps) of a credit whose receiver is in another network part. `time`
    /// (ps) is the arrival time that follows from the delays. The actual arrival time is no earlier
    /// than the arrival times of credits sent before.
    pub(super) fn return_credit(&mut self, number: u32, time: u64) -> u64 {
        let last = &mut self.list[number as usize].first_credit;
        *last = if *last == NEVER {
            time
        } else {
            time.max(*last)
        };
        *last
    }

    /// Returns the arrival time (ps) of the next credit of the channel with the index `number`.
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
            // A chunk takes a place and releases it at a later time.
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
