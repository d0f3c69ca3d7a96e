//! Channels that wait for one another in a circle.
//!
//! A channel is *held up* if every place of its buffer is held by a chunk that waits for another
//! channel. It is *stuck* if it is held up and all those other channels are stuck: the greatest set of
//! channels with that property, found by taking away, again and again, channels of which a chunk waits
//! for one outside of the set. From a stuck channel, going on to one that a chunk of it waits for
//! stays among the stuck ones, and so comes to a circle.

use super::PacketError;
use super::channel::{Channels, Chunk};
use super::pool::{NONE, Pool};

/// Whether some chunks can never move again.
pub(super) fn any(channels: &Channels, chunks: &Pool<Chunk>) -> bool {
    !circle(channels, chunks).is_empty()
}

/// The error that names the circle.
pub(super) fn error(channels: &Channels, chunks: &Pool<Chunk>) -> PacketError {
    let split = |number: u32| (number >> channels.shift, number % (1 << channels.shift));
    let circle = circle(channels, chunks).into_iter().map(split).collect();
    PacketError::Stuck {
        chunks: chunks.used(),
        circle,
        names: String::new(),
    }
}

/// Channels each of which waits for the next, and the last for the first; none if none are stuck.
fn circle(channels: &Channels, chunks: &Pool<Chunk>) -> Vec<u32> {
    let mut waits: Vec<(u32, u32)> = Vec::new();
    let mut held = vec![0; channels.list.len()];
    for (number, channel) in (0..).zip(&channels.list) {
        for chunk in channel.wait.members(chunks) {
            let chunk = &chunks[chunk];
            let holder = channels.number(chunk.link, chunk.channel.into());
            waits.push((holder, number));
            held[holder as usize] += 1;
        }
    }
    let mut stuck: Vec<bool> = channels
        .list
        .iter()
        .zip(&held)
        .map(|(channel, &held)| held > 0 && channel.occupied == held && held == channel.capacity)
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
    let mut next = vec![NONE; channels.list.len()];
    for &(holder, wanted) in &waits {
        if stuck[holder as usize] {
            next[holder as usize] = wanted;
        }
    }
    let Some(start) = next.iter().position(|wanted| *wanted != NONE) else {
        return Vec::new();
    };
    let mut place = vec![usize::MAX; channels.list.len()];
    let mut way = Vec::new();
    let mut number = start as u32;
    while place[number as usize] == usize::MAX {
        place[number as usize] = way.len();
        way.push(number);
        number = next[number as usize];
    }
    way.split_off(place[number as usize])
}
