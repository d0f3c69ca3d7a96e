//! Small plans, each with a claim and the kinds of violations that follow from it.

/// A claim, a fabric, a collective, the lightpaths, and the kinds of the violations.
pub(super) type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

pub(super) const PAIR: &str = "wdm_ring:ranks=2,wavelengths=1";
pub(super) const THREE: &str = "wdm_ring:ranks=3,wavelengths=1";
pub(super) const FOUR: &str = "wdm_ring:ranks=4,wavelengths=1";
pub(super) const WIDE: &str = "wdm_ring:ranks=4,wavelengths=4,fibres=2";

/// Plans without fault.
pub(super) const SOUND: &[Row] = &[
    (
        "one rank has nothing to do",
        "wdm_ring:ranks=1,wavelengths=1",
        "all_gather 1",
        "",
        "",
    ),
    (
        "one rank has nothing to reduce",
        "wdm_ring:ranks=1,wavelengths=1",
        "all_reduce 1",
        "",
        "",
    ),
    (
        "a ring of three gathers",
        THREE,
        "all_gather 3",
        "0 copy 0 0>1 cw 0.0
         0 copy 1 1>2 cw 0.0
         0 copy 2 2>0 cw 0.0
         1 copy 2 0>1 cw 0.0
         1 copy 0 1>2 cw 0.0
         1 copy 1 2>0 cw 0.0",
        "",
    ),
    (
        "a broadcast may relay in the next step",
        THREE,
        "broadcast 3 1",
        "0 copy 0 1>2 cw 0.0
         1 copy 0 2>0 cw 0.0",
        "",
    ),
    (
        "a chunk in pieces may travel in parts",
        PAIR,
        "broadcast 2 0 5",
        "0 copy 0+3 0>1 cw 0.0
         0 copy 3+2 0>1 ccw 0.0",
        "",
    ),
    (
        "relays may keep what they pass on",
        FOUR,
        "scatter 4",
        "0 copy 1 0>1 cw 0.0
         0 copy 3 0>3 ccw 0.0
         1 copy 2 0>1 cw 0.0
         2 copy 2 1>2 cw 0.0",
        "",
    ),
    (
        "a gather ends at its root",
        THREE,
        "gather 3 2",
        "0 copy 0 0>2 ccw 0.0
         0 copy 1 1>2 cw 0.0",
        "",
    ),
    (
        "two ranks swap blocks",
        PAIR,
        "all_to_all 2",
        "0 copy 1 0>1 cw 0.0
         0 copy 2 1>0 cw 0.0",
        "",
    ),
    (
        "several reductions may reach a rank at once",
        THREE,
        "reduce 3",
        "0 reduce 0 1>0 ccw 0.0
         0 reduce 0 2>0 cw 0.0",
        "",
    ),
    (
        "two ranks may reduce into each other at once",
        PAIR,
        "all_reduce 2",
        "0 reduce 0 0>1 cw 0.0
         0 reduce 0 1>0 cw 0.0",
        "",
    ),
    (
        "two ranks may reduce into each other one after the other in a step",
        PAIR,
        "all_reduce 2",
        "0:0 reduce 0 0>1 cw 0.0
         0:1 reduce 0 1>0 cw 0.0",
        "",
    ),
    (
        "a result may be copied over its parts",
        THREE,
        "all_reduce 3",
        "0 reduce 0 1>0 ccw 0.0
         0 reduce 0 2>0 cw 0.0
         1 copy 0 0>1 cw 0.0
         1 copy 0 0>2 ccw 0.0",
        "",
    ),
    (
        "each rank may end with its own part",
        PAIR,
        "reduce_scatter 2",
        "0 reduce 0 1>0 cw 0.0
         0 reduce 1 0>1 cw 0.0",
        "",
    ),
    (
        "a reduction sends what was there at the start of the step",
        // Rank 1 sends {1}, not {1, 2}, so that {2} is still wanted.
        THREE,
        "reduce 3",
        "0 reduce 0 1>0 ccw 0.0
         0 reduce 0 2>1 ccw 0.0
         1 reduce 0 2>0 cw 0.0",
        "",
    ),
    (
        "signals of a barrier may tell of a rank twice",
        // In the last step rank 1 hears of itself again, from rank 2.
        THREE,
        "barrier 3",
        "0 reduce 0 0>1 cw 0.0
         0 reduce 0 1>2 cw 0.0
         0 reduce 0 2>0 cw 0.0
         1 reduce 0 0>2 ccw 0.0
         1 reduce 0 1>0 ccw 0.0
         1 reduce 0 2>1 ccw 0.0",
        "",
    ),
    (
        "arcs that only touch share a wavelength",
        FOUR,
        "all_to_all 4",
        "0 copy 2 0>2 cw 0.0
         0 copy 8 2>0 cw 0.0
         0 copy 7 1>3 ccw 0.0
         0 copy 13 3>1 ccw 0.0
         1 copy 1 0>1 cw 0.0
         1 copy 6 1>2 cw 0.0
         1 copy 11 2>3 cw 0.0
         1 copy 12 3>0 cw 0.0
         1 copy 3 0>3 ccw 0.0
         1 copy 4 1>0 ccw 0.0
         1 copy 9 2>1 ccw 0.0
         1 copy 14 3>2 ccw 0.0",
        "",
    ),
    (
        "fibres and wavelengths keep light apart",
        WIDE,
        "gather 4 0",
        "0 copy 1 1>0 cw 0.0
         0 copy 2 2>0 cw 0.3
         0 copy 3 3>0 cw 1.0",
        "",
    ),
    (
        "converters leave only the number of lightpaths",
        "wdm_ring:ranks=4,wavelengths=2,converters=full",
        "gather 4 0",
        "0 copy 1 1>0 ccw 0.*
         0 copy 2 2>0 ccw 0.*
         1 copy 3 3>0 ccw 0.1",
        "",
    ),
    (
        "ports may all be in use",
        "wdm_ring:ranks=3,wavelengths=1,ports=2",
        "gather 3 0",
        "0 copy 1 1>0 ccw 0.0
         0 copy 2 2>0 cw 0.0",
        "",
    ),
];

/// Plans that leave some rank without what is due to it, or with more.
pub(super) const DATA: &[Row] = &[
    (
        "in a barrier every rank must hear from every other",
        // Rank 0 never hears from rank 1, nor rank 2 from rank 0.
        THREE,
        "barrier 3",
        "0 reduce 0 0>1 cw 0.0
         0 reduce 0 1>2 cw 0.0
         0 reduce 0 2>0 cw 0.0
         1 reduce 0 2>1 ccw 0.0",
        "missing missing",
    ),
    (
        "a signal must tell something",
        PAIR,
        "barrier 2",
        "0 reduce 0 0>1 cw 0.0
         0 reduce 0 1>0 cw 0.0
         1 reduce 0 0>1 cw 0.0",
        "duplicate",
    ),
    (
        "nobody signals twice to the same rank in a step",
        PAIR,
        "barrier 2",
        "0 reduce 0 0>1 cw 0.0
         0 reduce 0 0>1 ccw 0.0
         0 reduce 0 1>0 cw 0.0",
        "duplicate",
    ),
    (
        "a signal tells what was known when its step began",
        THREE,
        "barrier 3",
        "0 reduce 0 0>1 cw 0.0
         0 reduce 0 1>2 cw 0.0
         0 reduce 0 2>0 cw 0.0",
        "missing missing missing",
    ),
    (
        "an empty plan leaves every rank without the others' blocks",
        PAIR,
        "all_gather 2",
        "",
        "missing missing",
    ),
    (
        "an empty plan leaves every rank without the others' contributions",
        THREE,
        "all_reduce 3",
        "",
        "missing missing missing",
    ),
    (
        "an empty plan leaves the root without contributions",
        THREE,
        "reduce 3",
        "",
        "missing",
    ),
    (
        "a block that does not arrive is missing",
        THREE,
        "gather 3 2",
        "0 copy 0 0>2 ccw 0.0",
        "missing",
    ),
    (
        "a rank cannot send what it does not hold",
        THREE,
        "broadcast 3",
        "0 copy 0 0>1 cw 0.0
         0 copy 0 2>1 ccw 0.0
         1 copy 0 1>2 cw 0.0",
        "not_held duplicate",
    ),
    (
        "a rank cannot send what it receives later",
        THREE,
        "broadcast 3",
        "0 copy 0 1>2 cw 0.0
         1 copy 0 0>1 cw 0.0",
        "not_held",
    ),
    (
        "a rank cannot pass on in the step of arrival",
        THREE,
        "broadcast 3",
        "0 copy 0 0>1 cw 0.0
         0 copy 0 1>2 cw 0.0",
        "same_step_forward",
    ),
    (
        "a rank cannot pass on in the step of arrival, not even in a later slot",
        THREE,
        "broadcast 3",
        "0:0 copy 0 0>1 cw 0.0
         0:1 copy 0 1>2 cw 0.0",
        "same_step_forward",
    ),
    (
        "a rank cannot pass on in the step of arrival, however the lines are ordered",
        THREE,
        "broadcast 3",
        "0 copy 0 1>2 cw 0.0
         0 copy 0 0>1 cw 0.0",
        "same_step_forward",
    ),
    (
        "what is not held is reported once, not for all that follows",
        FOUR,
        "broadcast 4",
        "1 copy 0 1>2 cw 0.0
         2 copy 0 2>3 cw 0.0",
        "not_held missing",
    ),
    (
        "a second arrival is a duplicate",
        PAIR,
        "broadcast 2",
        "0 copy 0 0>1 cw 0.0
         1 copy 0 0>1 cw 0.0",
        "duplicate",
    ),
    (
        "two arrivals in one step are a duplicate",
        PAIR,
        "broadcast 2",
        "0 copy 0 0>1 cw 0.0
         0 copy 0 0>1 ccw 0.0",
        "duplicate",
    ),
    (
        "the origin needs no copy of its own block",
        PAIR,
        "broadcast 2",
        "0 copy 0 0>1 cw 0.0
         1 copy 0 1>0 cw 0.0",
        "duplicate",
    ),
    (
        "each chunk of a range counts",
        PAIR,
        "broadcast 2 0 4",
        "0 copy 0+3 0>1 cw 0.0
         1 copy 2+2 0>1 cw 0.0",
        "duplicate",
    ),
    (
        "nothing is reduced in a collective that combines nothing",
        PAIR,
        "broadcast 2",
        "0 reduce 0 0>1 cw 0.0",
        "wrong_action",
    ),
    (
        "no contribution counts twice",
        THREE,
        "reduce 3",
        "0 reduce 0 2>1 ccw 0.0
         1 reduce 0 1>0 ccw 0.0
         1 reduce 0 2>0 cw 0.0",
        "double_reduction",
    ),
    (
        "a doubled reduction counts twice",
        PAIR,
        "reduce 2",
        "0 reduce 0 1>0 cw 0.0
         0 reduce 0 1>0 ccw 0.0",
        "double_reduction",
    ),
    (
        "what was there at the start of the step is what is sent",
        THREE,
        "reduce 3",
        "0 reduce 0 2>1 ccw 0.0
         0 reduce 0 1>0 ccw 0.0",
        "missing",
    ),
    (
        "a copy must not drop what the receiver had",
        PAIR,
        "all_reduce 2",
        "0 copy 0 0>1 cw 0.0",
        "lost_contribution missing missing",
    ),
    (
        "a copy of the same is a duplicate",
        PAIR,
        "all_reduce 2",
        "0 reduce 0 0>1 cw 0.0
         0 reduce 0 1>0 cw 0.0
         1 copy 0 0>1 cw 0.0",
        "duplicate",
    ),
    (
        "a copy arrives alone",
        FOUR,
        "all_reduce 4",
        "0 reduce 0 1>0 ccw 0.0
         0 reduce 0 3>2 ccw 0.0
         1 reduce 0 2>0 cw 0.0
         2 copy 0 0>1 cw 0.0
         2 copy 0 0>3 ccw 0.0
         3 copy 0 1>2 cw 0.0
         3 copy 0 3>2 ccw 0.0",
        "copy_conflict",
    ),
    (
        "a copy and a reduction do not arrive together",
        THREE,
        "all_reduce 3",
        "0 reduce 0 1>0 ccw 0.0
         0 reduce 0 2>0 cw 0.0
         1 copy 0 0>1 cw 0.0
         1 copy 0 0>2 ccw 0.0
         1 reduce 0 1>2 cw 0.0",
        "copy_conflict",
    ),
];

/// Plans whose light does not fit.
pub(super) const RESOURCES: &[Row] = &[
    (
        "two lightpaths on one wavelength collide",
        FOUR,
        "gather 4 3",
        "0 copy 0 0>3 cw 0.0
         0 copy 1 1>3 cw 0.0
         1 copy 2 2>3 cw 0.0",
        "collision",
    ),
    (
        "they collide where arcs wrap around",
        FOUR,
        "gather 4 1",
        "0 copy 2 2>1 cw 0.0
         0 copy 0 0>1 cw 0.0
         1 copy 3 3>1 cw 0.0",
        "collision",
    ),
    (
        "they collide counter-clockwise where arcs wrap around",
        FOUR,
        "gather 4 2",
        "0 copy 1 1>2 ccw 0.0
         0 copy 3 3>2 ccw 0.0
         0 copy 0 0>2 ccw 0.0",
        "collision collision collision",
    ),
    (
        "each pair that meets is one collision",
        FOUR,
        "gather 4 3",
        "0 copy 0 0>3 cw 0.0
         0 copy 1 1>3 cw 0.0
         0 copy 2 2>3 cw 0.0",
        "collision collision collision",
    ),
    (
        "light may not use more ports than a rank has to send",
        "wdm_ring:ranks=3,wavelengths=2,ports=1",
        "broadcast 3",
        "0 copy 0 0>1 cw 0.0
         0 copy 0 0>2 ccw 0.0",
        "ports",
    ),
    (
        "light may not use more ports than a rank has to receive",
        "wdm_ring:ranks=3,wavelengths=2,ports=1",
        "gather 3 0",
        "0 copy 1 1>0 ccw 0.0
         0 copy 2 2>0 cw 0.0",
        "ports",
    ),
    (
        "light keeps its wavelength where nothing converts it",
        PAIR,
        "broadcast 2",
        "0 copy 0 0>1 cw 0.*",
        "conversion",
    ),
    (
        "converted light needs a free wavelength on every link",
        "wdm_ring:ranks=4,wavelengths=2,converters=full",
        "gather 4 0",
        "0 copy 1 1>0 ccw 0.*
         0 copy 2 2>0 ccw 0.*
         0 copy 3 3>0 ccw 0.1",
        "overload",
    ),
    (
        "converted light is counted where it wraps around",
        "wdm_ring:ranks=4,wavelengths=1,converters=full",
        "gather 4 1",
        "0 copy 2 2>1 cw 0.*
         0 copy 0 0>1 cw 0.*
         0 copy 3 3>1 ccw 0.*",
        "overload",
    ),
];

/// Plans with entries out of range.
pub(super) const FORM: &[Row] = &[
    (
        "a source must be a rank",
        PAIR,
        "broadcast 2",
        "0 copy 0 2>1 cw 0.0
         0 copy 0 0>1 cw 0.0",
        "rank_range",
    ),
    (
        "a destination must be a rank",
        PAIR,
        "broadcast 2",
        "0 copy 0 0>4294967295 cw 0.0
         0 copy 0 0>1 cw 0.0",
        "rank_range",
    ),
    (
        "the collective and the fabric have the same ranks",
        THREE,
        "broadcast 2",
        "0 copy 0 0>1 cw 0.0",
        "rank_count",
    ),
    (
        "a lightpath goes somewhere else",
        PAIR,
        "broadcast 2",
        "0 copy 0 1>1 cw 0.0
         0 copy 0 0>1 cw 0.0",
        "self_transfer",
    ),
    (
        "a chunk must exist",
        PAIR,
        "broadcast 2 0 3",
        "0 copy 0+3 0>1 cw 0.0
         1 copy 3 0>1 cw 0.0
         2 copy 4294967295 0>1 cw 0.0
         3 copy 1+4294967295 0>1 cw 0.0
         4 copy 0+0 0>1 cw 0.0",
        "chunk_range chunk_range chunk_range chunk_range",
    ),
    (
        "a fibre must exist",
        PAIR,
        "broadcast 2",
        "0 copy 0 0>1 cw 1.0",
        "fibre_range",
    ),
    (
        "a wavelength must exist",
        PAIR,
        "broadcast 2",
        "0 copy 0 0>1 cw 0.1",
        "wavelength_range",
    ),
    (
        "dark lightpaths collide with nothing",
        PAIR,
        "broadcast 2 0 2",
        "0 copy 0 0>1 cw 255.65534
         0 copy 1 0>1 cw 255.65534",
        "fibre_range wavelength_range fibre_range wavelength_range",
    ),
];
