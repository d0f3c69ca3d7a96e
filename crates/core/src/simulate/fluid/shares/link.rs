//! A link's sums, and the level that follows from them.

/// Levels nearer than this, relatively, are one level: rounding errors start no cascade.
pub(super) const SAME_LEVEL: f64 = 1.0 / (1u64 << 40) as f64;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkStage {
    /// Not reached by the change so far.
    Clean,
    /// Reached; its level is open.
    Dirty,
    /// Its new level is found.
    Final,
}

/// A sum with twice the digits of a float: weights may differ so much that nothing is left of the
/// small ones beside the great ones, and the great ones may go.
#[derive(Clone, Copy, Default)]
pub(super) struct Sum {
    rounded: f64,
    rest: f64,
}

impl Sum {
    /// Adds by Knuth's exact sum of two floats, which keeps what is rounded off.
    pub(super) fn add(&mut self, change: f64) {
        let sum = self.rounded + change;
        let added = sum - self.rounded;
        self.rest += (self.rounded - (sum - added)) + (change - added);
        self.rounded = sum;
    }

    pub(super) fn value(self) -> f64 {
        self.rounded + self.rest
    }
}

/// One cache line.
#[repr(align(64))]
pub(super) struct Link {
    pub(super) capacity: f64,
    pub(super) restricted: f64,
    /// The weight of the open classes.
    open: Sum,
    /// Not below the level of any class bounded elsewhere.
    pub(super) top: f64,
    /// Infinite where the link is not full.
    pub(super) level: f64,
    /// The level of its valid entry in the queue, or infinite.
    pub(super) queued: f64,
    pub(super) open_count: u32,
    pub(super) stage: LinkStage,
    pub(super) touched: bool,
    /// Whether `queued` is the level itself and not only a bound from below.
    pub(super) exact: bool,
    /// Whether filling must reach it: it was full and is neither final nor passed, or what it
    /// carries is over its capacity.
    pub(super) pending: bool,
}

impl Link {
    pub(super) fn new(capacity: f64) -> Link {
        Link {
            capacity,
            restricted: 0.0,
            open: Sum::default(),
            top: 0.0,
            level: f64::INFINITY,
            queued: f64::INFINITY,
            open_count: 0,
            stage: LinkStage::Clean,
            touched: false,
            exact: false,
            pending: false,
        }
    }

    /// A level that its true one is not below, in constant time.
    pub(super) fn bound(&self, water: f64) -> f64 {
        if self.open_count > 0 {
            let bound = (self.capacity - self.restricted) / self.open.value();
            snap(bound.max(water), self.level)
        } else if self.is_over() {
            water
        } else {
            f64::INFINITY
        }
    }

    /// Whether the classes bounded elsewhere take more than it has.
    pub(super) fn is_over(&self) -> bool {
        self.restricted > self.capacity * (1.0 + SAME_LEVEL)
    }

    /// A class of this weight is open here, and was bounded elsewhere at `level`.
    pub(super) fn open(&mut self, weight: f64, level: f64) {
        self.restricted -= weight * level;
        if self.open_count == 0 {
            // Not added to what rounding has left of nothing.
            self.open = Sum::default();
        }
        self.open.add(weight);
        self.open_count += 1;
    }

    /// A class of this weight was open here, and is bounded elsewhere at `level`.
    pub(super) fn close(&mut self, weight: f64, level: f64) {
        self.restrict(weight * level, level);
        self.remove_open(weight);
    }

    /// A class at `level`, bounded elsewhere, takes so much more of the capacity (or less).
    pub(super) fn restrict(&mut self, amount: f64, level: f64) {
        self.restricted += amount;
        self.top = self.top.max(level);
    }

    /// An open class of this weight is gone.
    pub(super) fn remove_open(&mut self, weight: f64) {
        self.open.add(-weight);
        self.open_count -= 1;
    }

    /// The weight of the open classes changes.
    pub(super) fn add_open(&mut self, change: f64) {
        self.open.add(change);
    }

    /// The open classes have been summed anew.
    pub(super) fn set_open(&mut self, open: Sum, count: u32) {
        (self.open, self.open_count) = (open, count);
    }

    /// No class is left.
    pub(super) fn empty(&mut self) {
        self.set_open(Sum::default(), 0);
        self.restricted = 0.0;
        self.top = 0.0;
    }
}

/// The level `to` if `level` is the same but for rounding.
pub(super) fn snap(level: f64, to: f64) -> f64 {
    let same = to.is_finite() && (level - to).abs() <= to * SAME_LEVEL;
    if same { to } else { level }
}
