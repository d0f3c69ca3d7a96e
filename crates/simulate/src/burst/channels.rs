//! Reservations of channels: wavelengths of links, converters and receivers.

use std::collections::VecDeque;

/// Groups of equally many channels, such as the wavelengths of each link.
pub(super) struct ChannelGroups {
    per_group: usize,
    /// End of the last reservation of each channel.
    horizon: Vec<u64>,
    /// All reservations that still matter, in order of time, if reservations may begin before
    /// earlier ones.
    reserved: Option<Vec<VecDeque<(u64, u64)>>>,
}

/// Interval [from, until) on a channel of one group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) group: u32,
    pub(super) from: u64,
    pub(super) until: u64,
}

impl ChannelGroups {
    /// Creates groups without reservations. If the reservations of a group are made in the order of
    /// their start (`out_of_order` is false), the last end of each channel is sufficient: no later
    /// reservation fits before that end.
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

    /// Returns whether a channel has no reservation in the interval.
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

    /// Returns the end of a channel's last reservation.
    #[inline]
    pub(super) fn horizon(&self, group: u32, channel: u32) -> u64 {
        self.horizon[self.place(group, channel)]
    }

    /// Returns the end of the last reservation before the interval, in which the channel must be
    /// free.
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

    /// Reserves a free channel.
    #[inline]
    pub(super) fn take(&mut self, span: &Span, channel: u32, now: u64) {
        let place = self.place(span.group, channel);
        debug_assert!(self.is_free(span, channel));
        self.horizon[place] = self.horizon[place].max(span.until);
        if let Some(reserved) = &mut self.reserved {
            let held = &mut reserved[place];
            // Keep the last reservation that has ended: the void after it begins at its end.
            while held.len() > 1 && held[1].1 <= now {
                held.pop_front();
            }
            let at = held.partition_point(|(from, _)| *from <= span.from);
            held.insert(at, (span.from, span.until));
        }
    }

    /// Ends a reservation without an end now. No later reservation can exist.
    pub(super) fn release(&mut self, group: u32, channel: u32, now: u64) {
        let place = self.place(group, channel);
        self.horizon[place] = now;
        let held = self.reserved.as_mut().and_then(|all| all[place].back_mut());
        if let Some(last) = held {
            last.1 = now;
        }
    }

    /// Reverts a reservation without an end, of a channel whose horizon was `before`.
    pub(super) fn undo(&mut self, group: u32, channel: u32, before: u64) {
        let place = self.place(group, channel);
        self.horizon[place] = before;
        if let Some(reserved) = &mut self.reserved {
            reserved[place].pop_back();
        }
    }

    /// Returns the lowest free channel of the group.
    pub(super) fn first_free(&self, span: &Span) -> Option<u32> {
        (0..self.per_group()).find(|channel| self.is_free(span, *channel))
    }

    /// Returns the number of channels of a group that are held now or later.
    pub(super) fn held(&self, group: u32, now: u64) -> usize {
        let first = self.place(group, 0);
        let ends = &self.horizon[first..first + self.per_group];
        ends.iter().filter(|end| **end > now).count()
    }
}
