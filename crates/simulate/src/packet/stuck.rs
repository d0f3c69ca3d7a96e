//! Channels that wait for one another in a circle.
//!
//! A channel is *held up* if every place of its buffer is held by a chunk that waits for another
//! channel. It is *stuck* if it is held up and all those other channels are stuck: the greatest set of
//! channels with that property, found by taking away, again and again, channels of which a chunk waits
//! for one outside of the set. From a stuck channel, going on to one that a chunk of it waits for
//! stays among the stuck ones, and so comes to a circle.

use super::PacketError;
use super::engine::PacketEngine;
use super::pool::NONE;

/// Whether some chunks can never move again, after all that happened before a time.
pub(super) fn any<R>(parts: &mut [PacketEngine<R>], time: u64) -> bool {
    !circle(parts, time).is_empty()
}

/// The error that names the circle.
pub(super) fn error<R>(parts: &mut [PacketEngine<R>], time: u64) -> PacketError {
    let shift = parts[0].channels.shift;
    let split = |number: u32| (number >> shift, number % (1 << shift));
    let circle = circle(parts, time).into_iter().map(split).collect();
    PacketError::Stuck {
        chunks: parts.iter().map(|part| part.chunks.used()).sum(),
        circle,
        names: String::new(),
    }
}

/// Channels each of which waits for the next, and the last for the first; none if none are stuck.
fn circle<R>(parts: &mut [PacketEngine<R>], time: u64) -> Vec<u32> {
    let mut channels = parts.iter().flat_map(|part| &part.channels.list);
    if channels.all(|channel| channel.wait.is_empty()) {
        return Vec::new();
    }
    let count = parts[0].channels.list.len();
    let shift = parts[0].channels.shift;
    let of_link = parts[0].setup.division.of_link.clone();
    let part_of = |number: u32| usize::from(of_link[(number >> shift) as usize]);
    let mut waits: Vec<(u32, u32)> = Vec::new();
    let mut held = vec![0; count];
    for number in 0..count as u32 {
        let part = &mut parts[part_of(number)];
        part.channels.take_credits(number, time);
        let channel = &part.channels.list[number as usize];
        for chunk in channel.wait.members(&part.chunks) {
            let chunk = &part.chunks[chunk];
            let holder = part.channels.number(chunk.link, chunk.channel.into());
            waits.push((holder, number));
            held[holder as usize] += 1;
        }
    }
    let mut stuck: Vec<bool> = (0..)
        .zip(&held)
        .map(|(number, &held)| {
            let channel = &parts[part_of(number)].channels.list[number as usize];
            held > 0 && channel.occupied == held && held == channel.capacity
        })
        .collect();
    loop {
        let freed: Vec<u32> = waits
            .iter()
            .filter(|(holder, wanted)| stuck[*holder as usize] && !stuck[*wanted as usize])
            .map(|(holder, _)| *holder)
            .collect();
        if freed.is_empty() {
            break;
        }
        for holder in freed {
            stuck[holder as usize] = false;
        }
    }
    let mut next = vec![NONE; count];
    for &(holder, wanted) in &waits {
        if stuck[holder as usize] {
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
