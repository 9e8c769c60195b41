//! Vector instructions change no bit of the random numbers. Each set of instructions is a test, skipped on a processor without it.
#![allow(unsafe_code)] // calls behind the detection of their features

use crate::tiles::tiles_are_their_elements;
use minvel_engine::math::Real;
use minvel_engine::random::{Draw, Site, fill_rows};
use minvel_testing::{Need, Test, test};

pub fn tests() -> [Test; 2] {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    let avx512 = is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512bw");
    let need = |name: &str, here| Need {
        what: format!("a processor with {name}"),
        here,
        remedy: "run it on one".into(),
        required: None,
    };
    [test!(avx2_changes_no_bit).needs(need("AVX2", avx2)), test!(avx_512_changes_no_bit).needs(need("AVX-512", avx512))]
}

#[target_feature(enable = "avx2,fma")]
fn avx2<T: Real>(draw: Draw, site: &Site, [a, b, c, d]: [u32; 4], out: &mut [T], stride: usize) {
    fill_rows(draw, site, a..b, c..d, out, stride);
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
fn avx512<T: Real>(draw: Draw, site: &Site, [a, b, c, d]: [u32; 4], out: &mut [T], stride: usize) {
    fill_rows(draw, site, a..b, c..d, out, stride);
}

fn avx2_changes_no_bit() {
    // SAFETY: the test needs a processor that has the features
    tiles_are_their_elements::<f32>(|draw, site, tile, out, stride| unsafe { avx2(draw, site, tile, out, stride) });
    // SAFETY: as above
    tiles_are_their_elements::<f64>(|draw, site, tile, out, stride| unsafe { avx2(draw, site, tile, out, stride) });
}

fn avx_512_changes_no_bit() {
    // SAFETY: the test needs a processor that has the features, which came together
    tiles_are_their_elements::<f32>(|draw, site, tile, out, stride| unsafe { avx512(draw, site, tile, out, stride) });
    // SAFETY: as above
    tiles_are_their_elements::<f64>(|draw, site, tile, out, stride| unsafe { avx512(draw, site, tile, out, stride) });
}
