//! Places of a grid, added row by row and column by column, and the shifts of slots.

/// The places of a whole grid, numbered row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Torus {
    pub(super) rows: u32,
    pub(super) columns: u32,
}

impl Torus {
    pub(super) fn places(self) -> u32 {
        self.rows * self.columns
    }

    /// The place that is `by` on from another, around rows and columns.
    pub(super) fn plus(self, place: u32, by: u32) -> u32 {
        let row = (place / self.columns + by / self.columns) % self.rows;
        let column = (place % self.columns + by % self.columns) % self.columns;
        row * self.columns + column
    }

    /// The place that is `by` before another.
    pub(super) fn minus(self, place: u32, by: u32) -> u32 {
        let row = (place / self.columns + self.rows - by / self.columns) % self.rows;
        let column = (place % self.columns + self.columns - by % self.columns) % self.columns;
        row * self.columns + column
    }

    /// The greatest shift along a row and along a column.
    pub(super) fn most(self) -> [u32; 2] {
        [self.columns - 1, self.rows - 1]
    }
}

/// The shifts of a slot: so many columns on in the row, so many rows on in the column; 0 sends nothing.
pub(super) type Shifts = [u32; 2];

/// The shifts of all slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sequence {
    pub(super) slots: Vec<Shifts>,
}

impl Sequence {
    /// As typed: `3.1x1.2`.
    pub(super) fn text(&self) -> String {
        let slots = self.slots.iter();
        let slots: Vec<String> = slots
            .map(|[row, column]| format!("{row}.{column}"))
            .collect();
        slots.join("x")
    }

    /// The shifts of all slots, where these are the same and lead to a place nearby.
    pub(super) fn steady(&self) -> Option<Shifts> {
        let first = *self.slots.first()?;
        self.slots
            .iter()
            .all(|slot| *slot == first)
            .then_some(first)
    }

    pub(super) fn parse(text: &str, torus: Torus) -> Option<Sequence> {
        let below = |text: &str, most: u32| {
            let shift = opticoll_base::spec::whole(text)?;
            (shift <= most).then_some(shift)
        };
        let [most_row, most_column] = torus.most();
        let slots = text.split('x').map(|slot| {
            let (row, column) = slot.split_once('.')?;
            Some([below(row, most_row)?, below(column, most_column)?])
        });
        Some(Sequence {
            slots: slots.collect::<Option<Vec<Shifts>>>()?,
        })
    }
}

/// The shifts of a slot as places that are added.
pub(super) fn steps(torus: Torus, [row, column]: Shifts) -> [u32; 2] {
    [row, column * torus.columns]
}
