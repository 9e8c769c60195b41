//! Made-up laws of points, the same on every manifold of one or two dimensions, whose densities are known.
//!
//! **Statement.** q(x) = Σ_k s_k K_{κ_k}(x; c_k), natural kernels at given distances from the origin, each 0.7 rad further round.

use crate::experiment::{Config, Runner};
use minvel::density::Bump;
use minvel::train::Context;
use minvel::{Error, Manifold, manifold};
use minvel_engine::random::{Key, Stream};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::sync::Arc;

/// A manifold and its name.
pub(super) type Place = (String, Arc<dyn Manifold>);

/// The manifolds of a survey, which its setting `manifolds` names.
pub(super) fn places(config: &Config, names: &[String]) -> Result<Vec<Place>, Error> {
    let refuse = |what: &str| config.refuse("manifolds", what);
    if names.is_empty() {
        return Err(refuse("names no manifold"));
    }
    let place = |name: &String| {
        let manifold = manifold::parse(name).map_err(|e| refuse(&format!("is wrong: {e}")))?;
        if !are_known_on(&*manifold) {
            return Err(refuse(&format!("names `{name}`: only spaces of one or two dimensions have such laws")));
        }
        Ok((name.clone(), manifold))
    };
    names.iter().map(place).collect()
}

/// The data sets of a law and a size, each with what is found in it: a unit of the runner.
pub(super) fn unit<T: Serialize + DeserializeOwned>(
    runner: &mut Runner,
    (place, rows, law): (&Place, usize, usize),
    seeds: usize,
    find: impl Fn(usize, &Context) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let name = format!("{}.rows={rows}.law={}", place.0.replace(':', "-"), law + 1);
    runner.unit(&name, |context| (0..seeds).map(|k| find(k, &context.within(&k.to_string()))).collect())
}

/// A bump of a law.
#[derive(Clone, Copy)]
pub(super) struct Part {
    share: f64,
    kappa: f64,
    /// From the origin, along a geodesic.
    distance: f64,
}

/// A mixture of bumps.
pub(super) struct Law {
    pub name: &'static str,
    parts: Cow<'static, [Part]>,
}

const fn law(name: &'static str, parts: &'static [Part]) -> Law {
    Law { name, parts: Cow::Borrowed(parts) }
}

const fn part(share: f64, kappa: f64, distance: f64) -> Part {
    Part { share, kappa, distance }
}

/// One that is nearly uniform, two of one mode, three of several, one of a peak on a background, and a rough one.
pub(super) static LAWS: [Law; 8] = [
    law("wide", &[part(1.0, 0.5, 0.0)]),
    law("one bump", &[part(1.0, 4.0, 0.5)]),
    law("narrow", &[part(1.0, 60.0, -1.0)]),
    law("two opposite", &[part(0.5, 8.0, -1.5), part(0.5, 8.0, 1.6)]),
    law("uneven pair", &[part(0.8, 20.0, 0.0), part(0.2, 5.0, 2.0)]),
    law("peak and background", &[part(0.3, 0.3, 0.0), part(0.7, 80.0, 1.0)]),
    law("three", &[part(0.4, 30.0, -2.0), part(0.35, 12.0, 0.2), part(0.25, 60.0, 1.8)]),
    law("rough", &ROUGH),
];

const ROUGH: [Part; 9] = [
    part(0.2, 0.5, 0.0),
    part(0.1, 300.0, -2.7),
    part(0.1, 100.0, -1.9),
    part(0.1, 500.0, -1.2),
    part(0.1, 200.0, -0.6),
    part(0.1, 300.0, 0.4),
    part(0.1, 100.0, 1.1),
    part(0.1, 600.0, 1.9),
    part(0.1, 200.0, 2.6),
];

/// Whether there are such laws on a manifold.
fn are_known_on(manifold: &dyn Manifold) -> bool {
    manifold.dim() <= 2 && manifold.spaces().is_some_and(|s| s.len() == 1)
}

impl Law {
    /// The same with the first bump's mass times a factor (against the others), and all widths times another.
    pub fn distorted(&self, mass: f64, width: f64) -> Law {
        let mut parts = self.parts.to_vec();
        parts[0].share *= mass;
        let total: f64 = parts.iter().map(|part| part.share).sum();
        for part in &mut parts {
            part.share /= total;
            part.kappa /= width * width;
        }
        Law { name: self.name, parts: Cow::Owned(parts) }
    }

    /// Rows of data set k, and fresh points beside them.
    pub fn sets(&self, (name, manifold): &Place, [rows, fresh]: [usize; 2], (seed, k): (u64, usize)) -> [Vec<f64>; 2] {
        let points = |count: usize, what: &str| {
            let stream = minvel::stream::named(&format!("{name} {} {rows} {k} {what}", self.name));
            self.points(&**manifold, count, seed << 32 | u64::from(stream))
        };
        [points(rows, "data"), points(fresh, "fresh")]
    }

    /// Points of it, row-major.
    pub fn points(&self, manifold: &dyn Manifold, count: usize, seed: u64) -> Vec<f64> {
        let bump = Bump::new(manifold).expect("checked");
        let centres = self.centres(manifold);
        let mut stream = Stream::new(Key::new(seed, 0), 0);
        let mut all = vec![];
        for _ in 0..count {
            let mut left = stream.uniform();
            let k = self.parts.iter().position(|part| {
                left -= part.share;
                left < 0.0
            });
            let k = k.unwrap_or(0);
            all.extend(bump.sample(&centres[k], self.parts[k].kappa, &mut stream));
        }
        all
    }

    /// log q at points.
    pub fn log_density(&self, manifold: &dyn Manifold, points: &[f64]) -> Vec<f64> {
        let bump = Bump::new(manifold).expect("checked");
        let centres = self.centres(manifold);
        let at = |x: &[f64]| {
            let of = |(part, c): (&Part, &Vec<f64>)| part.share * bump.log_density(x, c, part.kappa).exp();
            self.parts.iter().zip(&centres).map(of).sum::<f64>().ln()
        };
        points.chunks(manifold.ambient()).map(at).collect()
    }

    fn centres(&self, manifold: &dyn Manifold) -> Vec<Vec<f64>> {
        let space = manifold.spaces().expect("checked")[0];
        let mut origin = vec![0.0; manifold.ambient()];
        if manifold.ambient() > manifold.dim() {
            origin[0] = 1.0;
        }
        let centre = |(k, part): (usize, &Part)| {
            let (turn, mut centre) = (0.7 * k as f64, vec![0.0; manifold.ambient()]);
            let v = match manifold.dim() {
                1 => vec![part.distance],
                _ => vec![part.distance * turn.cos(), part.distance * turn.sin()],
            };
            space.from_normal(&origin, &v, &mut centre);
            centre
        };
        self.parts.iter().enumerate().map(centre).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minvel::manifold::parse;

    #[test]
    fn every_law_integrates_to_one() {
        for (name, resolution) in [("sphere:1", 2000), ("sphere:2", 200), ("euclidean:2", 600)] {
            let manifold = parse(name).expect("a manifold");
            let grid = manifold.grid(resolution, 12.0).expect("a grid");
            for law in &LAWS {
                let logs = law.log_density(&*manifold, &grid.points);
                let excess = grid.weights.iter().zip(logs).map(|(w, l)| w * l.exp()).sum::<f64>() - 1.0;
                assert!(excess.abs() < 1e-6, "{name}, {}: {excess:+.1e}", law.name);
            }
        }
    }
}
