//! What is held, and until when: the wavelengths of links, and likewise converters and receivers.

use std::collections::VecDeque;

/// Groups of channels of one size: the wavelengths of each link, for one.
pub(super) struct ChannelGroups {
    per_group: usize,
    /// The end of the last reservation of each channel.
    horizon: Vec<u64>,
    /// All reservations that matter still, in order, where some may begin before those made earlier.
    reserved: Option<Vec<VecDeque<(u64, u64)>>>,
}

/// A channel of one group, from an instant until before another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) group: u32,
    pub(super) from: u64,
    pub(super) until: u64,
}

impl ChannelGroups {
    /// Nothing is held. Where reservations of a group are made in the order in which they begin,
    /// nothing but the last end of each channel need be kept: no later one fits before it.
    pub(super) fn new(groups: usize, per_group: u32, out_of_order: bool) -> ChannelGroups {
        let channels = groups * per_group as usize;
        ChannelGroups {
            per_group: per_group as usize,
            horizon: vec![0; channels],
            reserved: out_of_order.then(|| vec![VecDeque::new(); channels]),
        }
    }

    pub(super) fn per_group(&self) -> u32 {
        self.per_group as u32
    }

    #[inline]
    fn place(&self, group: u32, channel: u32) -> usize {
        group as usize * self.per_group + channel as usize
    }

    /// Whether a channel is not held in the interval.
    #[inline]
    pub(super) fn is_free(&self, span: &Span, channel: u32) -> bool {
        let place = self.place(span.group, channel);
        self.horizon[place] <= span.from || self.has_void(place, span)
    }

    #[cold]
    fn has_void(&self, place: usize, span: &Span) -> bool {
        self.reserved.as_ref().is_some_and(|reserved| {
            let mut held = reserved[place].iter();
            held.all(|(from, until)| *until <= span.from || span.until <= *from)
        })
    }

    /// The end of a channel's last reservation of all.
    #[inline]
    pub(super) fn horizon(&self, group: u32, channel: u32) -> u64 {
        self.horizon[self.place(group, channel)]
    }

    /// The end of the last reservation before the interval, in which the channel is free.
    pub(super) fn end_before(&self, span: &Span, channel: u32) -> u64 {
        let place = self.place(span.group, channel);
        let horizon = self.horizon[place];
        match &self.reserved {
            Some(reserved) if horizon > span.from => {
                let ends = reserved[place].iter().map(|(_, until)| *until);
                ends.filter(|until| *until <= span.from).max().unwrap_or(0)
            }
            _ => horizon,
        }
    }

    /// Holds a free channel.
    #[inline]
    pub(super) fn take(&mut self, span: &Span, channel: u32, now: u64) {
        let place = self.place(span.group, channel);
        debug_assert!(self.is_free(span, channel));
        self.horizon[place] = self.horizon[place].max(span.until);
        if let Some(reserved) = &mut self.reserved {
            let held = &mut reserved[place];
            // The last one that has ended is kept: the void after it begins there.
            while held.len() > 1 && held[1].1 <= now {
                held.pop_front();
            }
            let at = held.partition_point(|(from, _)| *from <= span.from);
            held.insert(at, (span.from, span.until));
        }
    }

    /// Ends now what is held without an end; nothing can have been reserved after it.
    pub(super) fn release(&mut self, group: u32, channel: u32, now: u64) {
        let place = self.place(group, channel);
        self.horizon[place] = now;
        let held = self.reserved.as_mut().and_then(|all| all[place].back_mut());
        if let Some(last) = held {
            last.1 = now;
        }
    }

    /// Makes it as if a channel whose horizon was `before` had not been taken without an end.
    pub(super) fn undo(&mut self, group: u32, channel: u32, before: u64) {
        let place = self.place(group, channel);
        self.horizon[place] = before;
        if let Some(reserved) = &mut self.reserved {
            reserved[place].pop_back();
        }
    }

    /// The lowest channel of the group that is free.
    pub(super) fn first_free(&self, span: &Span) -> Option<u32> {
        (0..self.per_group()).find(|channel| self.is_free(span, *channel))
    }

    /// How many channels of a group are held now or later.
    pub(super) fn held(&self, group: u32, now: u64) -> usize {
        let first = self.place(group, 0);
        let ends = &self.horizon[first..first + self.per_group];
        ends.iter().filter(|end| **end > now).count()
    }
}
