//! Results that describe themselves: totals and tables, each with name, unit and meaning.
//!
//! An engine declares its results with [`totals!`](crate::totals), [`columns!`](crate::columns) and
//! [`rows!`](crate::rows): structs whose fields it fills as it likes, and whose doc comments say what the fields mean.
//! Whatever prints or passes on results reads a [`Description`] and knows no engine.
//!
//! ```
//! use opticoll_simulate::table::{Described, Description};
//! use opticoll_base::units::Time;
//!
//! opticoll_simulate::columns! {
//!     /// One row per slot.
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
//! let names: Vec<&str> = description.tables[0].columns.iter().map(|one| one.name.as_str()).collect();
//! assert_eq!(names, ["start_ps", "circuits"]);
//! ```

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use opticoll_base::units::{Bytes, Time};

/// A single value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// It does not apply.
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

/// The values of a column: where an engine has them side by side, its own; else read one by one.
pub enum Values<'a> {
    /// Whole numbers of 8 bits.
    U8(&'a [u8]),
    /// Whole numbers of 16 bits.
    U16(&'a [u16]),
    /// Whole numbers of 32 bits.
    U32(&'a [u32]),
    /// Whole numbers of 64 bits.
    U64(&'a [u64]),
    /// Real numbers.
    F64(&'a [f64]),
    /// Picoseconds.
    Time(&'a [Time]),
    /// Whole numbers.
    Whole(Box<dyn Fn(usize) -> u64 + 'a>),
    /// Real numbers.
    Real(Box<dyn Fn(usize) -> f64 + 'a>),
    /// Values some of which are absent, or texts.
    Listed(Box<dyn Fn(usize) -> Value<'a> + 'a>),
}

/// A column of a table.
pub struct Column<'a> {
    /// The name, which ends in the unit: `start_ps`, `sent_bytes`.
    pub name: String,
    /// The unit; empty for numbers of things.
    pub unit: &'a str,
    /// What the values are, in a sentence.
    pub meaning: String,
    /// One value a row.
    pub values: Values<'a>,
}

impl<'a> Column<'a> {
    /// A column with its unit already in the name.
    pub fn new(name: &str, unit: &'a str, meaning: &str, values: Values<'a>) -> Column<'a> {
        Column {
            name: name.into(),
            unit,
            meaning: meaning.into(),
            values,
        }
    }

    /// The value of a row, which must be there.
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

/// The axes of a table with their lengths, the slowest first; the rows are its places in that order.
pub type Shape = Vec<(&'static str, usize)>;

/// A table.
pub struct Table<'a> {
    /// The name.
    pub name: &'a str,
    /// What a row is, in a sentence.
    pub row: String,
    /// The axes.
    pub shape: Vec<(&'a str, usize)>,
    /// The columns.
    pub columns: Vec<Column<'a>>,
}

impl Table<'_> {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.shape.iter().map(|(_, length)| length).product()
    }
}

impl PartialEq for Table<'_> {
    fn eq(&self, other: &Table<'_>) -> bool {
        let mut columns = self.columns.iter().zip(&other.columns);
        (self.name, &self.row, &self.shape) == (other.name, &other.row, &other.shape)
            && self.columns.len() == other.columns.len()
            && columns.all(|(one, same)| {
                (&one.name, one.unit, &one.meaning) == (&same.name, same.unit, &same.meaning)
                    && (0..self.rows()).all(|row| one.value(row) == same.value(row))
            })
    }
}

/// A number or text that is one for the whole result.
#[derive(Debug, Clone, PartialEq)]
pub struct Total<'a> {
    /// The name, which ends in the unit.
    pub name: String,
    /// The unit; empty for numbers of things.
    pub unit: &'a str,
    /// What the value is, in a sentence.
    pub meaning: String,
    /// The value.
    pub value: Value<'a>,
}

/// All totals and tables of a result.
#[derive(Default, PartialEq)]
pub struct Description<'a> {
    /// The totals.
    pub totals: Vec<Total<'a>>,
    /// The tables.
    pub tables: Vec<Table<'a>>,
}

impl<'a> Description<'a> {
    /// The description of a result.
    pub fn of(result: &'a (impl Described + ?Sized)) -> Description<'a> {
        let mut description = Description::default();
        result.describe(&mut description);
        description
    }

    /// Adds a total, unless one has its name.
    pub fn total(&mut self, field: &Field, unit: &'static str, value: Value<'a>) {
        let name = field.name_in(unit);
        if self.totals.iter().all(|one| one.name != name) {
            self.totals.push(Total {
                name,
                unit,
                meaning: field.sentence(),
                value,
            });
        }
    }

    /// Adds a table; where one has its name, and as many rows, the columns that it lacks.
    pub fn table(&mut self, table: Table<'a>) {
        let same = |one: &&mut Table<'a>| one.name == table.name && one.rows() == table.rows();
        match self.tables.iter_mut().find(same) {
            None => self.tables.push(table),
            Some(there) => {
                for column in table.columns {
                    if there.columns.iter().all(|one| one.name != column.name) {
                        there.columns.push(column);
                    }
                }
            }
        }
    }
}

/// A result that describes itself.
pub trait Described: Any + Debug + Send + Sync {
    /// Adds what it holds to a description.
    fn describe<'a>(&'a self, into: &mut Description<'a>);
    /// Itself, to be asked for its type.
    fn as_any(&self) -> &dyn Any;
    /// Whether another result is the same.
    fn equals(&self, other: &dyn Described) -> bool;
}

/// What an engine says beyond what all say.
#[derive(Debug, Clone, Default)]
pub struct Details(Vec<Arc<dyn Described>>);

impl Details {
    /// One more.
    pub fn with(mut self, detail: impl Described) -> Details {
        self.0.push(Arc::new(detail));
        self
    }

    /// The detail of a type.
    pub fn get<T: Described>(&self) -> Option<&T> {
        let mut details = self.0.iter();
        details.find_map(|one| (**one).as_any().downcast_ref())
    }
}

impl PartialEq for Details {
    fn eq(&self, other: &Details) -> bool {
        let mut pairs = self.0.iter().zip(&other.0);
        self.0.len() == other.0.len() && pairs.all(|(one, same)| one.equals(&**same))
    }
}

/// A field of a result.
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its unit; empty where its type has one, or there is none.
    pub unit: &'static str,
    /// Its doc comment.
    pub meaning: &'static str,
}

impl Field {
    /// The unit, else that of the type.
    pub fn unit_or(&self, of_type: &'static str) -> &'static str {
        match self.unit {
            "" => of_type,
            unit => unit,
        }
    }

    /// The name with its unit.
    pub fn name_in(&self, unit: &str) -> String {
        let ending = match unit {
            "ps" => "_ps",
            "B" if !self.name.contains("bytes") => "_bytes",
            _ => "",
        };
        format!("{}{ending}", self.name)
    }

    /// It as a column of cells.
    pub fn column<'a, T: Cell>(&self, values: Values<'a>) -> Column<'a> {
        let unit = self.unit_or(T::UNIT);
        Column {
            name: self.name_in(unit),
            unit,
            meaning: self.sentence(),
            values,
        }
    }

    /// It as a column of a table, or as a total where `table` is empty.
    pub fn outline<T: Cell>(&self, table: &'static str) -> Outline {
        let unit = self.unit_or(T::UNIT);
        Outline {
            table,
            name: self.name_in(unit),
            unit,
            meaning: self.sentence(),
        }
    }

    /// The doc comment on one line.
    pub fn sentence(&self) -> String {
        sentence(self.meaning)
    }
}

/// A doc comment on one line.
pub fn sentence(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A total or a column of a type of results, without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The table of a column; empty for a total.
    pub table: &'static str,
    /// The name, which ends in the unit.
    pub name: String,
    /// The unit; empty for numbers of things.
    pub unit: &'static str,
    /// What the value is, in a sentence.
    pub meaning: String,
}

/// The totals and columns that all results of a type have.
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

/// A field that describes itself: a single value, a table, or several of them.
pub trait Part {
    /// Adds it to a description.
    fn describe<'a>(&'a self, field: &Field, into: &mut Description<'a>);

    /// Adds what is known of it without a value; nothing where that depends on the value.
    fn outline(_: &Field, _: &mut Vec<Outline>) {}
}

/// What a column or a total holds.
pub trait Cell: Sized + 'static {
    /// The unit that the type has by itself.
    const UNIT: &'static str = "";

    /// As a single value.
    fn value(&self) -> Value<'_>;

    /// As a column of an engine's own.
    fn column(cells: &[Self]) -> Values<'_> {
        Values::Listed(Box::new(|row| cells[row].value()))
    }

    /// As a column read from records.
    fn of_records<R>(records: &[R], read: fn(&R) -> &Self) -> Values<'_> {
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

            fn of_records<R>(records: &[R], read: fn(&R) -> &$kind) -> Values<'_> {
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

/// A row of a table of records.
pub trait Record: Sized {
    /// Adds the table of these rows.
    fn describe<'a>(rows: &'a [Self], field: &Field, into: &mut Description<'a>);

    /// Adds the columns that such a table has.
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

/// A field of a result, its unit and the lines of its doc comment.
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

/// A result: every field is a [`Part`](crate::table::Part). Fields after a `;` are not described.
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
                $($crate::table::Part::describe(&self.$field, &$crate::field!($field $($unit)?; $($meaning)*), into);)*
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

/// A table of columns, each a vector of [`Cell`](crate::table::Cell)s. A `shaped` one has axes; without axes, and in
/// others, the rows have one. Fields after a `;` are not described.
#[macro_export]
macro_rules! columns {
    ($(#[doc = $about:literal])* $(#[derive($($derived:ident),*)])? pub struct $name:ident $($shaped:ident)? {
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
            /// The axes; one if there are none here.
            pub shape: $crate::table::Shape,
            $($fields)*
        }
    };
    (@shape $self:ident) => { $crate::table::Shape::new() };
    (@shape $self:ident shaped) => { $self.shape.clone() };
}

/// A table of records, whose fields are [`Cell`](crate::table::Cell)s.
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
                        <$kind as $crate::table::Cell>::of_records(rows, |row: &$name| &row.$field),
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
