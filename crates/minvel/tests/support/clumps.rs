//! Points to fit kernels to, and points to look at them from.

use minvel::Manifold;
use minvel::density::{Family, Kind, LocalKernels};
use minvel::manifold::Space;
use minvel_engine::random::{Key, Stream};
use std::f64::consts::TAU;
use std::sync::Arc;

/// A point of one space, at most `reach` from the origin where there is one.
fn point_of(space: Space, reach: f64, stream: &mut Stream) -> Vec<f64> {
    let normals = |count: usize, stream: &mut Stream| -> Vec<f64> { (0..count).map(|_| stream.normal()).collect() };
    let unit = |x: Vec<f64>| {
        let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
        x.into_iter().map(|x| x / length).collect::<Vec<f64>>()
    };
    match space {
        Space::Torus(n) => (0..n).map(|_| TAU * (stream.uniform() - 0.5)).collect(),
        Space::Sphere(_) | Space::Projective(_) | Space::So3 => unit(normals(space.ambient(), stream)),
        Space::Euclidean(n) => (0..n).map(|_| reach * (2.0 * stream.uniform() - 1.0)).collect(),
        Space::Hyperbolic(n) => {
            let radius = (0.5 * reach * stream.uniform()).tanh();
            unit(normals(n, stream)).into_iter().map(|x| radius * x).collect()
        }
    }
}

pub fn point(manifold: &dyn Manifold, reach: f64, stream: &mut Stream) -> Vec<f64> {
    manifold.spaces().unwrap().into_iter().flat_map(|s| point_of(s, reach, stream)).collect()
}

fn stream(seed: u64) -> Stream {
    Stream::new(Key::new(seed, 0), 11)
}

/// Points in clumps, so that there is something near and something far.
pub fn clumps(manifold: &Arc<dyn Manifold>, count: usize, seed: u64) -> Vec<f64> {
    let mut stream = stream(seed);
    let spaces = manifold.spaces().unwrap();
    let middles: Vec<Vec<f64>> = (0..5).map(|_| point(&**manifold, 1.5, &mut stream)).collect();
    let mut points = vec![];
    for i in 0..count {
        let width = [0.3, 0.1, 0.03, 0.01, 0.2][i % 5];
        let (mut at, middle) = (0, &middles[i % 5]);
        for s in &spaces {
            let v: Vec<f64> = (0..s.dim()).map(|_| width * stream.normal()).collect();
            let mut x = vec![0.0; s.ambient()];
            s.from_normal(&middle[at..at + s.ambient()], &v, &mut x);
            points.extend(x);
            at += s.ambient();
        }
    }
    points
}

/// Points near the data, between, and far away.
pub fn queries(manifold: &Arc<dyn Manifold>, data: &[f64]) -> Vec<f64> {
    let mut stream = stream(5);
    let mut all: Vec<f64> = data.chunks(manifold.ambient()).step_by(23).flatten().copied().collect();
    (0..30).for_each(|_| all.extend(point(&**manifold, 2.5, &mut stream)));
    all
}

/// A mixture of natural laws about these centres: κ of each part, an angle or another factor, and each law.
pub fn natural_laws(
    manifold: &Arc<dyn Manifold>,
    centres: &[f64],
    kappa: impl Fn(usize, usize) -> f64,
) -> LocalKernels {
    let (n, count) = (manifold.dim(), centres.len() / manifold.ambient());
    let (mut factors, mut log_det) = (vec![0.0; n * (n + 1) / 2 * count], vec![0.0; count]);
    // Of each direction: its part, and κ times the variance where the law is sharp.
    let (mut directions, mut parts) = (vec![], 0);
    for space in manifold.spaces().unwrap() {
        let sharp = match space {
            Space::So3 => 2.0,
            Space::Projective(_) => 0.5,
            _ => 1.0,
        };
        let is_torus = matches!(space, Space::Torus(_));
        directions.extend((0..space.dim()).map(|a| (parts + if is_torus { a } else { 0 }, sharp)));
        parts += if is_torus { space.dim() } else { 1 };
    }
    for k in 0..count {
        for (a, (part, sharp)) in directions.iter().enumerate() {
            let rate = (kappa(*part, k) / sharp).sqrt();
            factors[(a * (a + 1) / 2 + a) * count + k] = rate;
            log_det[k] -= rate.ln();
        }
    }
    let find = |name: &str| match name {
        "centres" => Some(centres),
        "shape0" => Some(factors.as_slice()),
        "log-det0" => Some(log_det.as_slice()),
        _ => None,
    };
    let family = Family { kind: Kind::Component { shape: 0 }, share: 1.0 };
    LocalKernels::from_tensors(manifold, &[family], find).unwrap()
}
