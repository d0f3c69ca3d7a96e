//! Presets: circuit switches that were built or proposed, with the source of each value.

use crate::fabric::PresetRecord;

pub(super) const PRESETS: &[PresetRecord] = &[
    PresetRecord {
        name: "palomar",
        summary: "Palomar OCS: mirrors, 136 ports, 1.2 ms to reconfigure; a rank for each port",
        citation: "136 ports: Liu et al., Lightwave Fabrics, SIGCOMM 2023",
        spec: "circuit_switch:ranks=136,reconfiguration=1200us",
        unconfirmed: "1.2 ms is the median in reports, which add that 99 % of the changes take \
            less than 3 ms; the rate of a port is not part of the source: 800 Gb/s are chosen",
    },
    PresetRecord {
        name: "lumentum_r300",
        summary: "Lumentum R300: mirrors, 300 ports; a rank for each port",
        citation: "300 ports: Lumentum, announcement of the R300",
        spec: "circuit_switch:ranks=300,reconfiguration=10ms",
        unconfirmed: "the maker publishes no time: 10 ms are chosen, the upper end for mirror \
            switches (1 to 10 ms); the rate of a port is not part of the source: \
            800 Gb/s are chosen",
    },
    PresetRecord {
        name: "mordia",
        summary: "Mordia's prototype: 24 ports; 68.5 us to programme, 2.8 us to switch, 8.7 us \
            until receivers lock",
        citation: "Farrington et al., A demonstration of ultra-low-latency data center optical \
            circuit switching, SIGCOMM 2012",
        spec: "circuit_switch:ranks=24,reconfiguration=68500ns+2800ns+8700ns",
        unconfirmed: "the rate of a port is not part of the source: 800 Gb/s are chosen",
    },
    PresetRecord {
        name: "infinitehbd",
        summary: "InfiniteHBD: a circuit switch in each transceiver, 80 us to reconfigure; \
            ranks=... \
            and ports=... are needed",
        citation: "60 to 80 us: Shou et al., InfiniteHBD, SIGCOMM 2025",
        spec: "circuit_switch:reconfiguration=80us",
        unconfirmed: "the machine joins a rank only to the next k ranks of a ring, which is not \
            modelled; the rate of a port is not part of the source: 800 Gb/s are \
            chosen",
    },
    PresetRecord {
        name: "sirius",
        summary: "Sirius: tunable lasers and gratings, 50 Gb/s for each channel, 3.84 ns to \
            reconfigure; ranks=... and ports=... are needed",
        citation: "Ballani et al., Sirius, SIGCOMM 2020",
        spec: "circuit_switch:rate=50Gb/s,reconfiguration=3840ps",
        unconfirmed: "",
    },
    PresetRecord {
        name: "prism",
        summary: "PRISM: 100 ns to reconfigure; ranks=... are needed",
        citation: "reports on PRISM",
        spec: "circuit_switch:reconfiguration=100ns",
        unconfirmed: "100 ns is from reports; the rate of a port is not part of them: 800 Gb/s \
            are chosen",
    },
    PresetRecord {
        name: "ramp",
        summary: "RAMP: 12.8 Tb/s for each of up to 65,536 ranks, reconfigured in nanoseconds; \
            ranks=... are needed",
        citation: "Ottino, Benjamin and Zervas, RAMP, arXiv 2211.15226",
        spec: "circuit_switch:rate=12800Gb/s,reconfiguration=1ns",
        unconfirmed: "the source says nanoseconds; 1 ns is chosen; a rank's many transceivers are \
            one port here",
    },
];
