//! Deadlock detection: channels that wait for one another in a cycle.
//!
//! A channel is *blocked* if every place in its buffer is occupied by a chunk that waits for
//! another channel. The *deadlocked* channels are the largest set of blocked channels whose chunks
//! wait only for channels of the set. The search starts with all blocked channels, and repeatedly
//! removes channels with a chunk that waits for a channel outside the set. A walk from a deadlocked
//! channel to a channel for which it waits, and so on, stays in the set and so ends in a cycle.

use super::PacketError;
use super::arena::NONE;
use super::engine::PacketEngine;

/// Returns whether some chunks can never move again after all events before `time` (ps).
pub(super) fn exists<R>(parts: &mut [PacketEngine<R>], time: u64) -> bool {
    !cycle(parts, time).is_empty()
}

/// Returns the error for a cycle of channels at `time` (ps). The caller adds the channels' names.
pub(super) fn error<R>(parts: &mut [PacketEngine<R>], time: u64) -> PacketError {
    let shift = parts[0].channels.shift;
    let split = |number: u32| (number >> shift, number % (1 << shift));
    let cycle = cycle(parts, time).into_iter().map(split).collect();
    PacketError::Deadlock {
        chunks: parts.iter().map(|part| part.chunks.used()).sum(),
        cycle,
        names: String::new(),
    }
}

/// Returns a cycle of channels: each channel waits for the next channel, and the last channel waits
/// for the first. Returns an empty list if there is no deadlock at `time` (ps).
fn cycle<R>(parts: &mut [PacketEngine<R>], time: u64) -> Vec<u32> {
    let mut channels = parts.iter().flat_map(|part| &part.channels.list);
    if channels.all(|channel| channel.wait.is_empty()) {
        return Vec::new();
    }
    let count = parts[0].channels.list.len();
    let shift = parts[0].channels.shift;
    let part_of_link = parts[0].setup.partition.part_of_link.clone();
    let part_of = |number: u32| usize::from(part_of_link[(number >> shift) as usize]);
    let mut waits: Vec<(u32, u32)> = Vec::new();
    let mut waiting = vec![0; count];
    for number in 0..count as u32 {
        let part = &mut parts[part_of(number)];
        part.channels.take_credits(number, time);
        let channel = &part.channels.list[number as usize];
        for chunk in channel.wait.members(&part.chunks) {
            let chunk = &part.chunks[chunk];
            let holder = part.channels.number(chunk.link, chunk.channel.into());
            waits.push((holder, number));
            waiting[holder as usize] += 1;
        }
    }
    let mut deadlocked: Vec<bool> = (0..)
        .zip(&waiting)
        .map(|(number, &waiting)| {
            let channel = &parts[part_of(number)].channels.list[number as usize];
            waiting > 0 && channel.occupied == waiting && waiting == channel.capacity
        })
        .collect();
    loop {
        let freed: Vec<u32> = waits
            .iter()
            .filter(|(holder, wanted)| {
                deadlocked[*holder as usize] && !deadlocked[*wanted as usize]
            })
            .map(|(holder, _)| *holder)
            .collect();
        if freed.is_empty() {
            break;
        }
        for holder in freed {
            deadlocked[holder as usize] = false;
        }
    }
    let mut next = vec![NONE; count];
    for &(holder, wanted) in &waits {
        if deadlocked[holder as usize] {
            next[holder as usize] = wanted;
        }
    }
    let Some(start) = next.iter().position(|wanted| *wanted != NONE) else {
        return Vec::new();
    };
    let mut place = vec![usize::MAX; count];
    let mut path = Vec::new();
    let mut number = start as u32;
    while place[number as usize] == usize::MAX {
        place[number as usize] = path.len();
        path.push(number);
        number = next[number as usize];
    }
    path.split_off(place[number as usize])
}
