//! Small plans on rings with light trees, a short reach, or faults.

/// A claim, a fabric, a collective, the lightpaths, the kinds of the violations, and the first sentence.
pub(super) type LightRow = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const SHARING: &str = "wdm_ring:ranks=4,wavelengths=1,multicast=drop_and_continue";

pub(super) const LIGHT: &[LightRow] = &[
    (
        "ranks on the way may take a share of copied light",
        SHARING,
        "broadcast 4",
        "0 copy 0 0>1 cw 0.0
         0 copy 0 0>2 cw 0.0
         0 copy 0 0>3 cw 0.0",
        "",
        "",
    ),
    (
        "without drop-and-continue they may not",
        "wdm_ring:ranks=3,wavelengths=1",
        "broadcast 3",
        "0 copy 0 0>1 cw 0.0
         0 copy 0 0>2 cw 0.0",
        "collision",
        "slot 0: transfers 0 (rank 0 to 1) and 1 (rank 0 to 2) share wavelength 0 on the clockwise \
         fibre 0 between ranks 0 and 1",
    ),
    (
        "what goes between two ranks on one channel is one lightpath, with one port",
        "wdm_ring:ranks=2,wavelengths=1,ports=1",
        "broadcast 2 0 2",
        "0 copy 0 0>1 cw 0.0
         0 copy 1 0>1 cw 0.0",
        "",
        "",
    ),
    (
        "beside converters and light trees it is one, too",
        "wdm_ring:ranks=2,wavelengths=1,ports=1,converters=full,multicast=drop_and_continue",
        "broadcast 2 0 2",
        "0 copy 0 0>1 cw 0.0
         0 copy 1 0>1 cw 0.0",
        "",
        "",
    ),
    (
        "what is converted has no wavelength to share",
        "wdm_ring:ranks=2,wavelengths=1,converters=full",
        "broadcast 2 0 2",
        "0 copy 0 0>1 cw 0.*
         0 copy 1 0>1 cw 0.*",
        "overload",
        "slot 0: 2 lightpaths cross the clockwise fibre 0 between ranks 0 and 1, which has 1 wavelengths",
    ),
    (
        "what shares a wavelength is one lightpath beside those that are converted",
        "wdm_ring:ranks=2,wavelengths=2,converters=full",
        "broadcast 2 0 3",
        "0 copy 0 0>1 cw 0.0
         0 copy 1 0>1 cw 0.0
         0 copy 2 0>1 cw 0.*",
        "",
        "",
    ),
    (
        "a light tree carries nothing else",
        SHARING,
        "broadcast 4 0 2",
        "0 copy 0 0>1 cw 0.0
         0 copy 0 0>2 cw 0.0
         0 copy 1 0>2 cw 0.0
         0 copy 0+2 0>3 ccw 0.0
         1 copy 1 2>1 ccw 0.0",
        "collision",
        "slot 0: transfers 1 (rank 0 to 2) and 2 (rank 0 to 2) share wavelength 0 on the clockwise \
         fibre 0 between ranks 0 and 1",
    ),
    (
        "light of other chunks is other light",
        SHARING,
        "broadcast 4 0 2",
        "0 copy 0 0>1 cw 0.0
         0 copy 1 0>2 cw 0.0
         0 copy 0+2 0>3 ccw 0.0
         1 copy 1 2>1 ccw 0.0
         1 copy 0 1>2 cw 0.0",
        "collision",
        "slot 0: transfers 0 (rank 0 to 1) and 1 (rank 0 to 2) share wavelength 0 on the clockwise \
         fibre 0 between ranks 0 and 1",
    ),
    (
        "light of another rank is other light",
        SHARING,
        "gather 4 0",
        "0 copy 1 1>0 ccw 0.0
         0 copy 2 2>0 ccw 0.0
         0 copy 3 3>0 cw 0.0",
        "collision",
        "slot 0: transfers 0 (rank 1 to 0) and 1 (rank 2 to 0) share wavelength 0 on the \
         counter-clockwise fibre 0 between ranks 1 and 0",
    ),
    (
        "what several ranks combine may be one light",
        SHARING,
        "all_reduce 4",
        "0 reduce 0 0>1 cw 0.0
         0 reduce 0 0>2 cw 0.0
         0 reduce 0 3>1 ccw 0.0
         1 reduce 0 2>3 cw 0.0",
        // Ranks 0 to 3 end with one, three, two and three of the four contributions.
        "missing missing missing missing",
        "at the end rank 0 holds chunk 0 without 3 contributions of 4",
    ),
    (
        "a signal reaches all ranks that its light passes",
        SHARING,
        "barrier 4",
        "0 reduce 0 2>1 ccw 0.0
         0 reduce 0 3>0 cw 0.0
         1 reduce 0 1>0 ccw 0.0
         2 reduce 0 0>1 cw 0.0
         2 reduce 0 0>2 cw 0.0
         2 reduce 0 0>3 cw 0.0",
        "",
        "",
    ),
    (
        "without drop-and-continue it does not",
        "wdm_ring:ranks=3,wavelengths=1",
        "barrier 3",
        "0 reduce 0 1>0 ccw 0.0
         0 reduce 0 2>0 cw 0.0
         1 reduce 0 0>1 cw 0.0
         1 reduce 0 0>2 cw 0.0",
        "collision",
        "slot 1: transfers 2 (rank 0 to 1) and 3 (rank 0 to 2) share wavelength 0 on the clockwise \
         fibre 0 between ranks 0 and 1",
    ),
    (
        "a light tree takes one transmitter and a receiver at each drop",
        "wdm_ring:ranks=4,wavelengths=1,ports=1,multicast=drop_and_continue",
        "broadcast 4",
        "0 copy 0 0>1 cw 0.0
         0 copy 0 0>2 cw 0.0
         0 copy 0 0>3 cw 0.0",
        "",
        "",
    ),
    (
        "two light trees take two transmitters",
        "wdm_ring:ranks=4,wavelengths=1,ports=1,multicast=drop_and_continue",
        "broadcast 4",
        "0 copy 0 0>1 cw 0.0
         0 copy 0 0>2 cw 0.0
         0 copy 0 0>3 ccw 0.0",
        "ports",
        "slot 0: rank 0 sends 2 lightpaths at once, but has 1 ports",
    ),
    (
        "a drop of two light trees takes two receivers",
        "wdm_ring:ranks=4,wavelengths=1,ports=1,multicast=drop_and_continue",
        "gather 4 0",
        "0 copy 1 1>0 ccw 0.0
         0 copy 3 3>0 cw 0.0
         1 copy 2 2>0 cw 0.0",
        "ports",
        "slot 0: rank 0 receives 2 lightpaths at once, but has 1 ports",
    ),
    (
        "converted light trees load a link once",
        "wdm_ring:ranks=4,wavelengths=1,converters=full,multicast=drop_and_continue",
        "broadcast 4",
        "0 copy 0 0>1 cw 0.*
         0 copy 0 0>2 cw 0.*
         0 copy 0 0>3 cw 0.*",
        "",
        "",
    ),
    (
        "light does not cross a cut",
        "wdm_ring:ranks=4,wavelengths=1,broken=3-0",
        "broadcast 4 1",
        "0 copy 0 1>2 cw 0.0
         0 copy 0 1>3 ccw 0.0
         1 copy 0 1>0 ccw 0.0",
        "broken_fibre",
        "slot 0: transfer 1 (rank 1 to 3) crosses the counter-clockwise fibre 0 between ranks 0 and \
         3, which is broken",
    ),
    (
        "a cut of one direction leaves the other",
        "wdm_ring:ranks=4,wavelengths=1,broken=2-3cw",
        "broadcast 4 2",
        "0 copy 0 2>3 cw 0.0
         0 copy 0 2>0 ccw 0.0
         1 copy 0 0>1 cw 0.0",
        "broken_fibre",
        "slot 0: transfer 0 (rank 2 to 3) crosses the clockwise fibre 0 between ranks 2 and 3, which \
         is broken",
    ),
    (
        "the other direction of a cut may be used",
        "wdm_ring:ranks=4,wavelengths=1,broken=2-3cw",
        "gather 4 2",
        "0 copy 3 3>2 ccw 0.0
         1 copy 0 0>2 ccw 0.0
         2 copy 1 1>2 cw 0.0",
        "",
        "",
    ),
    (
        "a dead wavelength carries nothing on any fibre",
        "wdm_ring:ranks=2,wavelengths=2,fibres=2,dead=1",
        "broadcast 2",
        "0 copy 0 0>1 cw 1.1",
        "dead_wavelength",
        "slot 0: transfer 0 (rank 0 to 1) is on wavelength 1 of fibre 1, which is dead",
    ),
    (
        "a wavelength dead on one fibre lives on the other",
        "wdm_ring:ranks=2,wavelengths=2,fibres=2,dead=0.1",
        "broadcast 2",
        "0 copy 0 0>1 cw 1.1",
        "",
        "",
    ),
    (
        "converters cannot use a dead wavelength",
        "wdm_ring:ranks=3,wavelengths=2,converters=full,dead=0",
        "gather 3 0",
        "0 copy 1 1>0 ccw 0.*
         0 copy 2 2>0 ccw 0.*",
        "overload",
        "slot 0: 2 lightpaths cross the counter-clockwise fibre 0 between ranks 1 and 0, which has 1 \
         wavelengths",
    ),
    (
        "light goes as far as the reach",
        "wdm_ring:ranks=5,wavelengths=2,reach=2",
        "scatter 5 0",
        "0 copy 1 0>1 cw 0.0
         0 copy 2 0>2 cw 0.1
         0 copy 4 0>4 ccw 0.0
         0 copy 3 0>3 ccw 0.1",
        "",
        "",
    ),
    (
        "light goes no farther than the reach",
        "wdm_ring:ranks=4,wavelengths=1,reach=2",
        "broadcast 4",
        "0 copy 0 0>3 cw 0.0
         1 copy 0 0>2 cw 0.0
         1 copy 0 3>1 ccw 0.0",
        "reach",
        "slot 0: transfer 0 (rank 0 to 3) spans 3 links, but light reaches 2 only",
    ),
    (
        // 3 dB to lose, 1 dB at the drop, and 2 resonators of 0.5 dB at each rank passed: two ranks.
        "light that meets the sensitivity is received",
        "wdm_ring:ranks=5,wavelengths=2,launch_power=-1dBm,sensitivity=-4dBm,through_loss=0.5dB,\
         drop_loss=1dB",
        "scatter 5 0",
        "0 copy 1 0>1 cw 0.0
         0 copy 3 0>3 cw 0.1
         0 copy 4 0>4 ccw 0.0
         1 copy 2 0>2 cw 0.0",
        "",
        "",
    ),
    (
        "light below the sensitivity is not",
        "wdm_ring:ranks=5,wavelengths=2,launch_power=-1dBm,sensitivity=-4dBm,\
         through_loss=0.500001dB,drop_loss=1dB",
        "scatter 5 0",
        "0 copy 1 0>1 cw 0.0
         0 copy 3 0>3 cw 0.1
         0 copy 4 0>4 ccw 0.0
         1 copy 2 0>2 cw 0.0",
        "reach",
        "slot 0: transfer 1 (rank 0 to 3) spans 3 links, over which light becomes 4 millionths of a \
         dB too weak",
    ),
    (
        // 3 dB to lose, one at each share taken on the way; the last drop takes what is left.
        "each share weakens the light",
        "wdm_ring:ranks=6,wavelengths=1,launch_power=0dBm,sensitivity=-3dBm,through_loss=0dB,\
         split_loss=1dB,multicast=drop_and_continue",
        "broadcast 6",
        "0 copy 0 0>1 cw 0.0
         0 copy 0 0>2 cw 0.0
         0 copy 0 0>3 cw 0.0
         0 copy 0 0>4 cw 0.0
         0 copy 0 0>5 cw 0.0",
        "reach",
        "slot 0: transfer 4 (rank 0 to 5) spans 5 links, over which light becomes 1000000 millionths \
         of a dB too weak",
    ),
    (
        "light of which nobody takes a share is not weakened",
        "wdm_ring:ranks=6,wavelengths=1,launch_power=0dBm,sensitivity=-3dBm,through_loss=0dB,\
         split_loss=1dB,multicast=drop_and_continue",
        "scatter 6",
        "0 copy 5 0>5 cw 0.0
         0 copy 1 0>1 ccw 0.0
         1 copy 2 0>2 cw 0.0
         1 copy 3 0>3 ccw 0.0
         2 copy 4 0>4 cw 0.0",
        "",
        "",
    ),
];
