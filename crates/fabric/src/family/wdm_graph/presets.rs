//! Networks of fibres that papers use as examples.
//!
//! No source states how many wavelengths these fibres carry, so the user gives `wavelengths`.

use crate::fabric::PresetRecord;

/// Presets of the family `wdm_graph`.
pub(super) const PRESETS: &[PresetRecord] = &[
    PresetRecord {
        name: "nsfnet",
        summary: "NSFNET, the T1 backbone of the USA: 14 nodes, 21 cables; give its wavelengths",
        citation: "Mukherjee et al., Some Principles for Designing a Wide-Area WDM Optical \
            Network, 1996; names as nobel-us of SNDlib; lengths from \
            topologies/nsfnet.txt of Di Cicco et al., DeepLS, 2023",
        spec: "wdm_graph:ranks=14,links=0-1@1100km+0-2@1600km+0-7@2800km+1-2@600km+1-3@1000km+\
        2-5@2000km+3-4@600km+3-10@2400km+4-5@1100km+4-6@800km+5-9@1200km+5-12@2000km+\
        6-7@700km+7-8@700km+8-9@900km+8-11@500km+8-13@500km+10-11@800km+10-13@800km+\
        11-12@300km+12-13@300km,names=Seattle+Palo-Alto+San-Diego+Salt-Lake-City+Boulder+\
        Houston+Lincoln+Urbana-Champaign+Pittsburgh+Atlanta+Ann-Arbor+Ithaca+Washington+\
        Princeton,positions=47.61/-122.33+37.44/-122.14+32.72/-117.16+40.76/-111.89+\
        40.01/-105.27+29.76/-95.36+40.8/-96.67+40.12/-88.24+40.44/-80+33.75/-84.39+\
        42.28/-83.74+42.44/-76.5+38.91/-77.04+40.35/-74.66",
        unconfirmed: "rate: none is stated; lengths of papers differ from each other and from \
            the distances of the cities; positions are those of the cities",
    },
    PresetRecord {
        name: "nsfnet_22",
        summary: "NSFNET with a cable from Lincoln to Atlanta, numbered as for DeepRMSA: 14 nodes, \
            22 cables; give its wavelengths",
        citation: "Chen et al., DeepRMSA, Journal of Lightwave Technology 37, 2019",
        spec: "wdm_graph:ranks=14,links=0-1@1050km+0-2@1500km+0-7@2400km+1-2@600km+1-3@750km+\
        2-5@1800km+3-4@600km+3-10@1950km+4-5@1200km+4-6@600km+5-9@1050km+5-13@1800km+\
        6-7@750km+6-9@1350km+7-8@750km+8-9@750km+8-11@300km+8-12@300km+10-11@600km+\
        10-12@750km+11-13@300km+12-13@150km",
        unconfirmed: "rate: none is stated",
    },
    PresetRecord {
        name: "geant",
        summary: "GEANT of 2012, the network of European research: 40 nodes, 61 cables; give its \
            wavelengths",
        citation: "Knight et al., The Internet Topology Zoo, IEEE JSAC 29, 2011: Geant2012",
        spec: "wdm_graph:ranks=40,links=0-1@173km+0-2@621km+0-4@364km+0-34@357km+0-30@1280km+\
        1-33@775km+2-32@2104km+2-35@718km+2-4@671km+2-38@837km+2-36@522km+2-31@1561km+\
        3-10@963km+3-19@725km+3-4@630km+3-5@314km+3-30@533km+4-5@409km+4-6@191km+4-8@364km+\
        4-16@2594km+4-17@2987km+4-29@598km+4-31@2021km+5-23@291km+6-7@287km+7-8@435km+\
        7-25@1052km+7-34@344km+8-9@213km+8-25@1152km+9-25@1188km+9-18@1150km+9-29@625km+\
        9-15@1461km+11-13@358km+12-14@1054km+12-20@174km+12-13@296km+12-22@631km+\
        12-15@526km+13-22@643km+13-14@943km+15-29@1283km+16-34@3218km+17-30@2739km+\
        21-27@458km+22-26@319km+22-27@299km+22-23@161km+23-29@55km+24-25@502km+24-34@1586km+\
        27-28@117km+28-29@278km+30-39@228km+32-34@1887km+33-34@464km+35-36@530km+\
        36-37@265km+38-39@280km,names=NL+BE+DK+PL+DE+CZ+LU+FR+CH+IT+UA+MD+BG+RO+TR+GR+CY+IL+\
        MT+BY+MK+ME+HU+SK+PT+ES+RS+HR+SL+AT+LT+RU+IS+IE+UK+NO+SE+FI+EE+LV,\
        positions=52.37/4.89+50.85/4.35+55.68/12.57+52.42/16.97+50.12/8.68+50.09/14.42+\
        49.61/6.13+48.85/2.35+46.95/7.45+45.46/9.19+50.45/30.52+47.01/28.86+42.7/23.32+\
        44.43/26.11+39.06/34.91+37.98/23.72+35.17/33.37+31.5/34.75+35.91/14.43+53.9/27.57+\
        42/21.43+42.44/19.26+47.5/19.04+48.15/17.11+38.72/-9.13+40.42/-3.7+44.8/20.47+\
        45.81/15.98+46.05/14.51+48.21/16.37+54.9/23.9+55.75/37.62+64.14/-21.9+53.34/-6.27+\
        51.51/-0.13+62/10+59.33/18.06+60.45/22.27+59.44/24.75+56.95/24.11",
        unconfirmed: "rate: the source states rates of IP links, none of wavelengths; lengths are \
            great-circle distances; the source has no positions of UA, MD and BY, which are \
            those of their capitals",
    },
];
