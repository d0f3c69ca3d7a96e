//! Light: the views and the kinds of a word agree, and words sort as the tuples of their fields do.

use opticoll::fabric::{Light, LightKind};
use opticoll::family::lightpath_grid;
use opticoll::family::lightpath_grid::PortsLight;
use opticoll::family::wdm_ring;
use opticoll::family::wdm_ring::Direction;
use opticoll::family::wdm_ring::{CONVERTED, WdmLight};
use opticoll::family::wss_grid;
use opticoll::family::wss_grid::TunedLight;
use proptest::prelude::*;

/// Returns the fields of light, in order.
fn fields(kind: &LightKind, light: Light) -> Vec<u32> {
    let fields = 0..kind.fields.len();
    fields.map(|field| kind.value(light, field)).collect()
}

fn put_together(kind: &LightKind, fields: &[u32]) -> Light {
    let fields = fields.iter().enumerate();
    fields.fold(Light::NONE, |light, (field, value)| {
        kind.with(light, field, *value)
    })
}

#[test]
fn views_and_kinds_agree_on_every_field() {
    let wdm = WdmLight {
        direction: Direction::CounterClockwise,
        fibre: 200,
        wavelength: 4095,
    };
    let tuned = TunedLight {
        plane: 255,
        wavelength: 65535,
    };
    let ports = PortsLight {
        source_port: 255,
        destination_port: 256,
    };
    for (kind, light, expected, written) in [
        (
            &wdm_ring::LIGHT,
            Light::from(wdm),
            &[1, 200, 4095][..],
            "ccw 200.4095",
        ),
        (
            &wss_grid::LIGHT,
            Light::from(tuned),
            &[255, 65535],
            "255.65535",
        ),
        (
            &lightpath_grid::LIGHT,
            Light::from(ports),
            &[255, 256],
            "255.256",
        ),
    ] {
        assert_eq!(fields(kind, light), expected);
        assert_eq!(put_together(kind, expected), light);
        assert_eq!(kind.text(light), written);
        assert!(kind.fields.iter().map(|field| field.bits).sum::<u8>() <= 32);
    }
    assert_eq!(WdmLight::from(Light::from(wdm)), wdm);
    assert_eq!(TunedLight::from(Light::from(tuned)), tuned);
    assert_eq!(PortsLight::from(Light::from(ports)), ports);
    let converted = WdmLight {
        wavelength: CONVERTED,
        ..wdm
    };
    assert_eq!(wdm_ring::LIGHT.text(Light::from(converted)), "ccw 200.*");
}

proptest! {
    #[test]
    fn words_sort_as_their_fields_do(one in 0u32..1 << 25, other in 0u32..1 << 25) {
        for kind in [&wdm_ring::LIGHT, &wss_grid::LIGHT, &lightpath_grid::LIGHT] {
            let bits: u8 = kind.fields.iter().map(|field| field.bits).sum();
            let [one, other] = [one, other].map(|word| Light(word & (u32::MAX >> (32 - bits))));
            prop_assert_eq!(one.cmp(&other), fields(kind, one).cmp(&fields(kind, other)));
        }
    }
}
