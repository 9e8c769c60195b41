//! Kernels on clusters of rows: exact counts, and better scores than a part of the rows gives.

use minvel::density::{Bump, LocalKernels, LocalSettings};
use minvel::estimate::Estimate;
use minvel::manifold::parse;
use minvel::train::Context;
use minvel_engine::random::{Key, Stream};
use std::sync::Arc;

/// A mixture of three natural kernels on a manifold: its draws, and its log density.
struct Law {
    bump: Bump,
    parts: Vec<(f64, f64, Vec<f64>)>,
}

impl Law {
    fn on(name: &str) -> Law {
        let bump = Bump::new(&*parse(name).unwrap()).unwrap();
        let mut stream = Stream::new(Key::new(3, 0), 1);
        let origin = parse(name).unwrap().origin();
        let place = |shares: (f64, f64)| (shares.0, shares.1, bump.sample(&origin, 0.5, &mut stream));
        let parts = [(0.5, 4.0), (0.3, 40.0), (0.2, 2000.0)].map(place).to_vec();
        Law { bump, parts }
    }

    fn draws(&self, count: usize, seed: u64) -> Vec<f64> {
        let mut stream = Stream::new(Key::new(seed, 0), 2);
        let one = |_| {
            let mut left = stream.uniform();
            let found = self.parts.iter().find(|part| {
                left -= part.0;
                left < 0.0
            });
            let part = found.unwrap_or(&self.parts[0]);
            self.bump.sample(&part.2, part.1, &mut stream)
        };
        (0..count).flat_map(one).collect()
    }

    fn log_density(&self, x: &[f64]) -> f64 {
        self.parts.iter().map(|(share, kappa, c)| share * self.bump.log_density(x, c, *kappa).exp()).sum::<f64>().ln()
    }
}

fn fitted(name: &str, points: &[f64], centres: usize) -> LocalKernels {
    let manifold: Arc<_> = parse(name).unwrap();
    let settings = LocalSettings { centres, ..LocalSettings::default() };
    settings.fit(&manifold, points, 1, &Context::bare(), false).unwrap().density
}

#[test]
fn clusters_of_all_rows_score_better_than_a_part_of_the_rows() {
    for name in ["sphere:2", "torus:2", "euclidean:2", "torus:4"] {
        let law = Law::on(name);
        let m = parse(name).unwrap().ambient();
        let (rows, test) = (law.draws(50_000, 1), law.draws(20_000, 2));
        let some: Vec<f64> = rows.chunks(m).step_by(10).flatten().copied().collect();
        let truth: Vec<f64> = test.chunks(m).map(|x| law.log_density(x)).collect();
        let logs = |points: &[f64], centres: usize| {
            let clock = std::time::Instant::now();
            let d = fitted(name, points, centres);
            println!("{:?} {:?}", clock.elapsed(), d.families());
            d.log_density_of(&test, &Context::bare()).unwrap()
        };
        let (clusters, part, all) = (logs(&rows, 5000), logs(&some, 5000), logs(&rows, 50_000));
        let excess = |logs: &[f64]| Estimate::paired(&truth, logs);
        println!("{name}: excess over the truth {} with 5000 clusters, {} with 5000 rows, {} with all", excess(&clusters), excess(&part), excess(&all));
        let gain = Estimate::paired(&clusters, &part);
        assert!(gain.mean > 5.0 * gain.std_error, "{name}: {gain}");
    }
}
