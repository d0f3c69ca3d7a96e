//! Results that describe themselves as totals and tables. Every value has a name, a unit and a
//! meaning.
//!
//! An engine declares its results with [`totals!`](crate::totals), [`columns!`](crate::columns) and
//! [`rows!`](crate::rows). These macros declare structs. The engine fills the fields, and the doc
//! comments of the fields become their meanings. Code that prints or exports results reads a
//! [`Description`] and does not depend on the engines.
//!
//! ```
//! use opticoll_simulate::table::{Described, Description};
//! use opticoll_base::units::Time;
//!
//! opticoll_simulate::columns! {     /// A row per slot.
//!     #[derive(Debug, Clone, PartialEq, Default)]
//!     pub struct Slots {
//!         /// Start of the slot.
//!         pub start: Time,
//!         /// Number of circuits.
//!         pub circuits: u64,
//!     }
//! }
//! opticoll_simulate::totals! {
//!     /// A run.
//!     #[derive(Debug, Clone, PartialEq, Default)]
//!     pub struct Run {
//!         /// Bytes sent.
//!         pub sent: u64 as "B",
//!         /// The slots.
//!         pub slots: Slots,
//!     }
//! }
//! let slots = Slots { start: vec![Time::ZERO], circuits: vec![3] };
//! let run = Run { sent: 4096, slots };
//! let description = Description::of(&run);
//! assert_eq!(description.totals[0].name, "sent_bytes");
//! let columns = &description.tables[0].columns;
//! let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
//! assert_eq!(names, ["start_ps", "circuits"]);
//! ```

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use opticoll_base::units::{Bytes, Time};

/// Single value of a result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// The value does not apply.
    Absent,
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Whole(u128),
    /// A real number.
    Real(f64),
    /// A word or sentence.
    Text(&'a str),
}

/// Values of a column. If the engine does not store the values contiguously, a function returns the
/// value of a row.
pub enum Values<'a> {
    /// Unsigned integers of 8 bits.
    U8(&'a [u8]),
    /// Unsigned integers of 16 bits.
    U16(&'a [u16]),
    /// Unsigned integers of 32 bits.
    U32(&'a [u32]),
    /// Unsigned integers of 64 bits.
    U64(&'a [u64]),
    /// Real numbers.
    F64(&'a [f64]),
    /// Times in picoseconds.
    Time(&'a [Time]),
    /// Unsigned integers, computed by a function of the row.
    Whole(Box<dyn Fn(usize) -> u64 + 'a>),
    /// Real numbers, computed by a function of the row.
    Real(Box<dyn Fn(usize) -> f64 + 'a>),
    /// Texts, or values that may be absent, computed by a function of the row.
    Listed(Box<dyn Fn(usize) -> Value<'a> + 'a>),
}

/// Column of a table.
pub struct Column<'a> {
    /// Name, which ends in the unit if the unit is ps or B, such as `start_ps` or `sent_bytes`.
    pub name: String,
    /// Unit of the values; empty for counts.
    pub unit: &'a str,
    /// Meaning of the values, in a sentence.
    pub meaning: String,
    /// Values, one per row.
    pub values: Values<'a>,
}

impl<'a> Column<'a> {
    /// Creates a column; `name` already contains the unit.
    pub fn new(name: &str, unit: &'a str, meaning: &str, values: Values<'a>) -> Column<'a> {
        Column {
            name: name.into(),
            unit,
            meaning: meaning.into(),
            values,
        }
    }

    /// Returns the value in a row, given the index of the row.
    ///
    /// # Panics
    /// Panics if the table has no such row.
    pub fn value(&self, row: usize) -> Value<'a> {
        match &self.values {
            Values::U8(cells) => Value::Whole(cells[row].into()),
            Values::U16(cells) => Value::Whole(cells[row].into()),
            Values::U32(cells) => Value::Whole(cells[row].into()),
            Values::U64(cells) => Value::Whole(cells[row].into()),
            Values::F64(cells) => Value::Real(cells[row]),
            Values::Time(cells) => Value::Whole(cells[row].ps().into()),
            Values::Whole(read) => Value::Whole(read(row).into()),
            Values::Real(read) => Value::Real(read(row)),
            Values::Listed(read) => read(row),
        }
    }
}

/// Name and length of each axis of a table, from the slowest to the fastest axis. The rows are in
/// the order of these axes.
pub type Shape = Vec<(&'static str, usize)>;

/// Table of a result.
pub struct Table<'a> {
    /// Name of the table.
    pub name: &'a str,
    /// Meaning of a row, in a sentence.
    pub row: String,
    /// Name and length of each axis, from the slowest to the fastest axis.
    pub shape: Vec<(&'a str, usize)>,
    /// Columns.
    pub columns: Vec<Column<'a>>,
}

impl Table<'_> {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.shape.iter().map(|(_, length)| length).product()
    }
}

impl PartialEq for Table<'_> {
    fn eq(&self, other: &Table<'_>) -> bool {
        let mut columns = self.columns.iter().zip(&other.columns);
        (self.name, &self.row, &self.shape) == (other.name, &other.row, &other.shape)
            && self.columns.len() == other.columns.len()
            && columns.all(|(column, same)| {
                (&column.name, column.unit, &column.meaning)
                    == (&same.name, same.unit, &same.meaning)
                    && (0..self.rows()).all(|row| column.value(row) == same.value(row))
            })
    }
}

/// Single value that describes the whole result.
#[derive(Debug, Clone, PartialEq)]
pub struct Total<'a> {
    /// Name, which ends in the unit if the unit is ps or B.
    pub name: String,
    /// Unit of the value; empty for counts.
    pub unit: &'a str,
    /// Meaning of the value, in a sentence.
    pub meaning: String,
    /// Value.
    pub value: Value<'a>,
}

/// All totals and tables of a result.
#[derive(Default, PartialEq)]
pub struct Description<'a> {
    /// Totals.
    pub totals: Vec<Total<'a>>,
    /// Tables.
    pub tables: Vec<Table<'a>>,
}

impl<'a> Description<'a> {
    /// Returns the description of a result.
    pub fn of(result: &'a (impl Described + ?Sized)) -> Description<'a> {
        let mut description = Description::default();
        result.describe(&mut description);
        description
    }

    /// Adds a total, unless the description has a total of this name.
    pub fn total(&mut self, field: &Field, unit: &'static str, value: Value<'a>) {
        let name = field.name_in(unit);
        if self.totals.iter().all(|total| total.name != name) {
            self.totals.push(Total {
                name,
                unit,
                meaning: field.sentence(),
                value,
            });
        }
    }

    /// Adds a table. If the description has a table of the same name and number of rows, only the
    /// missing columns are added to that table.
    pub fn table(&mut self, table: Table<'a>) {
        let same = |existing: &&mut Table<'a>| {
            existing.name == table.name && existing.rows() == table.rows()
        };
        match self.tables.iter_mut().find(same) {
            None => self.tables.push(table),
            Some(existing) => {
                for column in table.columns {
                    if existing
                        .columns
                        .iter()
                        .all(|known| known.name != column.name)
                    {
                        existing.columns.push(column);
                    }
                }
            }
        }
    }
}

/// Result that describes itself.
pub trait Described: Any + Debug + Send + Sync {
    /// Adds the totals and tables of the result to a description.
    fn describe<'a>(&'a self, into: &mut Description<'a>);
    /// Returns the result as `Any`, so that callers can downcast it to its type.
    fn as_any(&self) -> &dyn Any;
    /// Returns whether `other` has the same type and value.
    fn equals(&self, other: &dyn Described) -> bool;
}

/// Further results that only some engines compute.
#[derive(Debug, Clone, Default)]
pub struct Details(Vec<Arc<dyn Described>>);

impl Details {
    /// Adds a result.
    pub fn with(mut self, detail: impl Described) -> Details {
        self.0.push(Arc::new(detail));
        self
    }

    /// Returns the result of type `T`, or `None` if there is no such result.
    pub fn get<T: Described>(&self) -> Option<&T> {
        let mut details = self.0.iter();
        details.find_map(|detail| (**detail).as_any().downcast_ref())
    }
}

impl PartialEq for Details {
    fn eq(&self, other: &Details) -> bool {
        let mut pairs = self.0.iter().zip(&other.0);
        self.0.len() == other.0.len() && pairs.all(|(detail, same)| detail.equals(&**same))
    }
}

/// Declaration of a field of a result.
pub struct Field {
    /// Name.
    pub name: &'static str,
    /// Unit; empty if the type of the field implies the unit, or if there is no unit.
    pub unit: &'static str,
    /// Doc comment of the field.
    pub meaning: &'static str,
}

impl Field {
    /// Returns the unit of the field, or `of_type` if the field names no unit.
    pub fn unit_or(&self, of_type: &'static str) -> &'static str {
        match self.unit {
            "" => of_type,
            unit => unit,
        }
    }

    /// Returns the field's name with the ending that stands for `unit`.
    pub fn name_in(&self, unit: &str) -> String {
        let ending = match unit {
            "ps" => "_ps",
            "B" if !self.name.contains("bytes") => "_bytes",
            _ => "",
        };
        format!("{}{ending}", self.name)
    }

    /// Returns a column with the field's name, unit and meaning, and with the given values.
    pub fn column<'a, T: Cell>(&self, values: Values<'a>) -> Column<'a> {
        let unit = self.unit_or(T::UNIT);
        Column {
            name: self.name_in(unit),
            unit,
            meaning: self.sentence(),
            values,
        }
    }

    /// Returns the name, unit and meaning of a column of `table`, or of a total if `table` is
    /// empty.
    pub fn outline<T: Cell>(&self, table: &'static str) -> Outline {
        let unit = self.unit_or(T::UNIT);
        Outline {
            table,
            name: self.name_in(unit),
            unit,
            meaning: self.sentence(),
        }
    }

    /// Returns the doc comment as one line.
    pub fn sentence(&self) -> String {
        sentence(self.meaning)
    }
}

/// Replaces every sequence of white space, such as a line break, by one space.
pub fn sentence(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Name, unit and meaning of a total or a column of a result type, without a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// Name of the column's table; empty for a total.
    pub table: &'static str,
    /// Name, which ends in the unit.
    pub name: String,
    /// Unit; empty for counts.
    pub unit: &'static str,
    /// Meaning of the value, in a sentence.
    pub meaning: String,
}

/// Returns the outlines of all totals and columns that every result of type `T` has.
pub fn outline<T: Part>() -> Vec<Outline> {
    let mut outlines = Vec::new();
    let whole = Field {
        name: "",
        unit: "",
        meaning: "",
    };
    T::outline(&whole, &mut outlines);
    outlines
}

/// Type of a field that can describe itself as a value, a table, or several of them.
pub trait Part {
    /// Adds the field's value to a description.
    fn describe<'a>(&'a self, field: &Field, into: &mut Description<'a>);

    /// Adds the outlines of the field's totals and columns. Adds nothing if they depend on the
    /// field's value.
    fn outline(_: &Field, _: &mut Vec<Outline>) {}
}

/// Type of a value in a column or a total.
pub trait Cell: Sized + 'static {
    /// Unit that the type implies; empty if there is none.
    const UNIT: &'static str = "";

    /// Returns the value in the form in which tables store it.
    fn value(&self) -> Value<'_>;

    /// Returns the values of a column from a slice of values.
    fn column(cells: &[Self]) -> Values<'_> {
        Values::Listed(Box::new(|row| cells[row].value()))
    }

    /// Returns the values of a column from a slice of records; `read` returns one field of a
    /// record.
    fn from_records<R>(records: &[R], read: fn(&R) -> &Self) -> Values<'_> {
        Values::Listed(Box::new(move |row| read(&records[row]).value()))
    }
}

macro_rules! cells {
    ($($kind:ty: $unit:literal, $one:ident $value:expr, $all:expr;)*) => {$(
        impl Cell for $kind {
            const UNIT: &'static str = $unit;

            fn value(&self) -> Value<'_> {
                let value: fn(&$kind) -> _ = $value;
                Value::$one(value(self).into())
            }

            fn column(cells: &[$kind]) -> Values<'_> {
                let all: for<'a> fn(&'a [$kind]) -> Values<'a> = $all;
                all(cells)
            }

            fn from_records<R>(records: &[R], read: fn(&R) -> &$kind) -> Values<'_> {
                let value: fn(&$kind) -> _ = $value;
                Values::$one(Box::new(move |row| value(read(&records[row])).into()))
            }
        }
    )*};
}

cells! {
    u8: "", Whole |cell| *cell, |cells| Values::U8(cells);
    u16: "", Whole |cell| *cell, |cells| Values::U16(cells);
    u32: "", Whole |cell| *cell, |cells| Values::U32(cells);
    u64: "", Whole |cell| *cell, |cells| Values::U64(cells);
    usize: "", Whole |cell| *cell as u64, |cells| Values::Whole(Box::new(|row| cells[row] as u64));
    f64: "", Real |cell| *cell, |cells| Values::F64(cells);
    Time: "ps", Whole |cell| cell.ps(), |cells| Values::Time(cells);
    Bytes: "B", Whole |cell| cell.get(), |cells| Values::Whole(Box::new(|row| cells[row].get()));
}

impl Cell for u128 {
    fn value(&self) -> Value<'_> {
        Value::Whole(*self)
    }
}

impl Cell for bool {
    fn value(&self) -> Value<'_> {
        Value::Flag(*self)
    }
}

impl Cell for String {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl Cell for &'static str {
    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl<T: Cell> Cell for Option<T> {
    const UNIT: &'static str = T::UNIT;

    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Absent, T::value)
    }
}

impl<T: Cell> Part for T {
    fn describe<'a>(&'a self, field: &Field, into: &mut Description<'a>) {
        into.total(field, field.unit_or(T::UNIT), self.value());
    }

    fn outline(field: &Field, into: &mut Vec<Outline>) {
        into.push(field.outline::<T>(""));
    }
}

/// Type of a record that forms a row of a table.
pub trait Record: Sized {
    /// Adds a table with one row per record of `rows`.
    fn describe<'a>(rows: &'a [Self], field: &Field, into: &mut Description<'a>);

    /// Adds the outlines of the columns of a table of such records.
    fn outline(table: &Field, into: &mut Vec<Outline>);
}

impl<R: Record> Part for Vec<R> {
    fn describe<'a>(&'a self, field: &Field, into: &mut Description<'a>) {
        R::describe(self, field, into);
    }

    fn outline(field: &Field, into: &mut Vec<Outline>) {
        R::outline(field, into);
    }
}

impl Part for Details {
    fn describe<'a>(&'a self, _: &Field, into: &mut Description<'a>) {
        for detail in &self.0 {
            detail.describe(into);
        }
    }
}

/// Builds the [`Field`](crate::table::Field) of a struct field from its name, unit and doc comment.
#[doc(hidden)]
#[macro_export]
macro_rules! field {
    ($field:ident $($unit:literal)?; $($meaning:literal)*) => {
        $crate::table::Field {
            name: stringify!($field),
            unit: concat!($($unit)?),
            meaning: concat!($($meaning),*),
        }
    };
}

/// Declares a struct of totals. Every field is a [`Part`](crate::table::Part). Fields after a `;`
/// do not appear in descriptions.
#[macro_export]
macro_rules! totals {
    ($(#[doc = $about:literal])* $(#[derive($($derived:ident),*)])? pub struct $name:ident {
        $($(#[doc = $meaning:literal])* pub $field:ident: $kind:ty $(as $unit:literal)?,)*
        $(; $($(#[doc = $untold:literal])* pub $hidden:ident: $other:ty,)*)?
    }) => {
        $(#[doc = $about])*
        $(#[derive($($derived),*)])?
        pub struct $name {
            $($(#[doc = $meaning])* pub $field: $kind,)*
            $($($(#[doc = $untold])* pub $hidden: $other,)*)?
        }

        impl $crate::table::Described for $name {
            fn describe<'a>(&'a self, into: &mut $crate::table::Description<'a>) {
                $($crate::table::Part::describe(
                    &self.$field, &$crate::field!($field $($unit)?; $($meaning)*), into,
                );)*
            }

            fn as_any(&self) -> &dyn std::any::Any {
                self
            }

            fn equals(&self, other: &dyn $crate::table::Described) -> bool {
                other.as_any().downcast_ref() == Some(self)
            }
        }

        impl $crate::table::Part for $name {
            fn describe<'a>(
                &'a self,
                _: &$crate::table::Field,
                into: &mut $crate::table::Description<'a>,
            ) {
                $crate::table::Described::describe(self, into);
            }

            fn outline(_: &$crate::table::Field, into: &mut Vec<$crate::table::Outline>) {
                $(<$kind as $crate::table::Part>::outline(
                    &$crate::field!($field $($unit)?; $($meaning)*), into,
                );)*
            }
        }
    };
}

/// Declares a table as a struct of columns. Each column is a vector of
/// [`Cell`](crate::table::Cell)s. A `shaped` table has a field `shape` with the axes of its rows;
/// if this field is empty, or in other tables, the rows have a single axis. Fields after a `;` do
/// not appear in descriptions.
#[macro_export]
macro_rules! columns {
    ($(#[doc = $about:literal])* $(#[derive($($derived:ident),*)])?
     pub struct $name:ident $($shaped:ident)? {
        $($(#[doc = $meaning:literal])* pub $field:ident: $kind:ty $(as $unit:literal)?,)*
        $(; $($(#[doc = $untold:literal])* pub $hidden:ident: $other:ty,)*)?
    }) => {
        $crate::columns! { @struct $($shaped)?
            $(#[doc = $about])* $(#[derive($($derived),*)])? pub struct $name {
                $($(#[doc = $meaning])* pub $field: Vec<$kind>,)*
                $($($(#[doc = $untold])* pub $hidden: $other,)*)?
            }
        }

        impl $crate::table::Part for $name {
            fn describe<'a>(
                &'a self,
                field: &$crate::table::Field,
                into: &mut $crate::table::Description<'a>,
            ) {
                let columns = vec![$(
                    $crate::field!($field $($unit)?; $($meaning)*).column::<$kind>(
                        <$kind as $crate::table::Cell>::column(&self.$field),
                    )
                ),*];
                let mut shape = $crate::columns!(@shape self $($shaped)?);
                if shape.is_empty() {
                    shape = vec![("row", [$(self.$field.len()),*][0])];
                }
                into.table($crate::table::Table {
                    name: field.name,
                    row: $crate::table::sentence(concat!($($about),*)),
                    shape,
                    columns,
                });
            }

            fn outline(table: &$crate::table::Field, into: &mut Vec<$crate::table::Outline>) {
                into.extend([$(
                    $crate::field!($field $($unit)?; $($meaning)*).outline::<$kind>(table.name)
                ),*]);
            }
        }
    };
    (@struct $(#[$about:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        $(#[$about])* pub struct $name { $($fields)* }
    };
    (@struct shaped $(#[$about:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        $(#[$about])* pub struct $name {
            /// Axes of the rows; if this list is empty, the rows have a single axis.
            pub shape: $crate::table::Shape,
            $($fields)*
        }
    };
    (@shape $self:ident) => { $crate::table::Shape::new() };
    (@shape $self:ident shaped) => { $self.shape.clone() };
}

/// Declares a struct that forms a row of a table. Its fields are [`Cell`](crate::table::Cell)s.
#[macro_export]
macro_rules! rows {
    ($(#[doc = $about:literal])* $(#[derive($($derived:ident),*)])? pub struct $name:ident {
        $($(#[doc = $meaning:literal])* pub $field:ident: $kind:ty $(as $unit:literal)?,)*
    }) => {
        $(#[doc = $about])*
        $(#[derive($($derived),*)])?
        pub struct $name {
            $($(#[doc = $meaning])* pub $field: $kind,)*
        }

        impl $crate::table::Record for $name {
            fn describe<'a>(
                rows: &'a [$name],
                field: &$crate::table::Field,
                into: &mut $crate::table::Description<'a>,
            ) {
                let columns = vec![$(
                    $crate::field!($field $($unit)?; $($meaning)*).column::<$kind>(
                        <$kind as $crate::table::Cell>::from_records(
                            rows, |row: &$name| &row.$field,
                        ),
                    )
                ),*];
                into.table($crate::table::Table {
                    name: field.name,
                    row: $crate::table::sentence(concat!($($about),*)),
                    shape: vec![("row", rows.len())],
                    columns,
                });
            }

            fn outline(table: &$crate::table::Field, into: &mut Vec<$crate::table::Outline>) {
                into.extend([$(
                    $crate::field!($field $($unit)?; $($meaning)*).outline::<$kind>(table.name)
                ),*]);
            }
        }
    };
}
