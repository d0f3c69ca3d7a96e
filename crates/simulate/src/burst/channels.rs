//! Reservations of channels. A channel is a wavelength of a link, a converter of a node, or a
//! receiver of a host.

use std::collections::VecDeque;

/// Groups of channels, such as the wavelengths of each link. All groups have the same number of
/// channels.
pub(super) struct ChannelGroups {
    per_group: usize,
    /// End of each channel's last reservation in ps, indexed by `group * per_group + channel`.
    horizon: Vec<u64>,
    /// Start and end (ps) of the reservations of each channel, in the order of time. Reservations
    /// before the last reservation that has ended are removed. `None` if reservations start in the
    /// order in which they are made: `horizon` is then sufficient.
    reserved: Option<Vec<VecDeque<(u64, u64)>>>,
}

/// Time interval [from, until) in picoseconds, for a channel of the group `group`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) group: u32,
    pub(super) from: u64,
    pub(super) until: u64,
}

impl ChannelGroups {
    /// Creates groups without reservations. If `out_of_order` is false, the reservations of each
    /// group must start in the order in which they are made.
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
    fn index(&self, group: u32, channel: u32) -> usize {
        group as usize * self.per_group + channel as usize
    }

    /// Returns whether the channel has no reservation in the interval of `span`.
    #[inline]
    pub(super) fn is_free(&self, span: &Span, channel: u32) -> bool {
        let index = self.index(span.group, channel);
        self.horizon[index] <= span.from || self.has_void(index, span)
    }

    #[cold]
    fn has_void(&self, index: usize, span: &Span) -> bool {
        self.reserved.as_ref().is_some_and(|reserved| {
            let mut reservations = reserved[index].iter();
            reservations.all(|(from, until)| *until <= span.from || span.until <= *from)
        })
    }

    /// Returns the end of the channel's last reservation, in picoseconds.
    #[inline]
    pub(super) fn horizon(&self, group: u32, channel: u32) -> u64 {
        self.horizon[self.index(group, channel)]
    }

    /// Returns the end (ps) of the channel's last reservation before `span`, or 0 if there is none.
    /// The channel must be free in `span`.
    pub(super) fn end_before(&self, span: &Span, channel: u32) -> u64 {
        let index = self.index(span.group, channel);
        let horizon = self.horizon[index];
        match &self.reserved {
            Some(reserved) if horizon > span.from => {
                let ends = reserved[index].iter().map(|(_, until)| *until);
                ends.filter(|until| *until <= span.from).max().unwrap_or(0)
            }
            _ => horizon,
        }
    }

    /// Reserves a free channel for the interval of `span`; `now` is the current time in ps.
    #[inline]
    pub(super) fn reserve(&mut self, span: &Span, channel: u32, now: u64) {
        let index = self.index(span.group, channel);
        debug_assert!(self.is_free(span, channel));
        self.horizon[index] = self.horizon[index].max(span.until);
        if let Some(reserved) = &mut self.reserved {
            let reservations = &mut reserved[index];
            // Keep the last reservation that has ended, because the gap after it starts at its end.
            while reservations.len() > 1 && reservations[1].1 <= now {
                reservations.pop_front();
            }
            let at = reservations.partition_point(|(from, _)| *from <= span.from);
            reservations.insert(at, (span.from, span.until));
        }
    }

    /// Ends the channel's last reservation, which has no end yet, at time `now` (ps).
    pub(super) fn release(&mut self, group: u32, channel: u32, now: u64) {
        let index = self.index(group, channel);
        self.horizon[index] = now;
        let last = self
            .reserved
            .as_mut()
            .and_then(|reserved| reserved[index].back_mut());
        if let Some(last) = last {
            last.1 = now;
        }
    }

    /// Removes the channel's last reservation. `before` is the end (ps) of the reservation before
    /// it, and becomes the channel's `horizon`.
    pub(super) fn remove(&mut self, group: u32, channel: u32, before: u64) {
        let index = self.index(group, channel);
        self.horizon[index] = before;
        if let Some(reserved) = &mut self.reserved {
            reserved[index].pop_back();
        }
    }

    /// Returns the lowest channel of the group that is free in the interval of `span`.
    pub(super) fn first_free(&self, span: &Span) -> Option<u32> {
        (0..self.per_group()).find(|channel| self.is_free(span, *channel))
    }

    /// Returns the number of channels of a group that have a reservation that ends after time
    /// `now`.
    pub(super) fn reserved_channels(&self, group: u32, now: u64) -> usize {
        let first = self.index(group, 0);
        let ends = &self.horizon[first..first + self.per_group];
        ends.iter().filter(|end| **end > now).count()
    }
}
