//! Contrastive divergence with one step: what the control variate makes of it.
//!
//! **Statement.** J(θ) on the training set after training by CD-1 with and without control variate, MVL (each over step
//! sizes), sliced and exact score matching; same network, same start values, batches and noise.
//! **Source.** wang2020mvl Figure 2 (CD-1); METHODS 4.3, 8.
//! **Checked by** its own claims, tests/experiment_planar.rs.

use super::planar::{Data, Learning, Models, points};
use super::{Bench, Config, Entry, Experiment, Findings};
use crate::Error;
use crate::energy::toy::Cosine;
use crate::eval::Estimate;
use crate::flow::Langevin;
use crate::objective::{Contrastive, MinimumVelocity, Objective, Reduction, ScoreMatching, Sliced};
use crate::plot::{Axis, Dash, Lines, Plot, Series};
use crate::report::{Figure, Row, Rule};
use crate::train::Desk;
use serde::{Deserialize, Serialize};

/// The line in the list.
pub const ENTRY: Entry = Entry {
    name: "cd1",
    source: "Figure of section 5.1 on CD-1",
    about: "Score-matching loss after training by contrastive divergence with and without control variate",
    settings: include_str!("../../../../experiments/cd1.toml"),
    check: |config| Ok(Box::new(Divergences::check(config)?)),
    hidden: false,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Divergences {
    seed: u64,
    seeds: usize,
    points: usize,
    step_sizes: Vec<f64>,
    iterations: Vec<u32>,
    learning: Learning,
}

/// A way of training.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Method {
    Exact,
    Sliced { reduced: bool },
    MinimumVelocity { step: f64 },
    Contrastive { step: f64, reduced: bool },
}

/// What a method reached: for each seed J and one sample of SSM for each point, on the training set.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Reached {
    exact: Vec<f64>,
    sliced: Vec<f64>,
}

/// How many standard errors apart two methods may be that do the same.
const SAME: f64 = 2.0;
/// How many standard errors apart two methods must be that do not.
const WORSE: f64 = 5.0;
/// Steps that count as small.
const SMALL: f64 = 1e-3;

impl Method {
    fn objective(self) -> Box<dyn Objective> {
        match self {
            Method::Exact => Box::new(ScoreMatching::new()),
            Method::Sliced { reduced } => Box::new(Sliced { reduced }),
            Method::MinimumVelocity { step } => Box::new(MinimumVelocity::new(Langevin, step)),
            Method::Contrastive { step, reduced } => {
                let reduction = if reduced { Reduction::ControlVariate } else { Reduction::None };
                Box::new(Contrastive { reduction, ..Contrastive::new(Langevin, step) })
            }
        }
    }

    fn name(self) -> String {
        match self {
            Method::Exact => "exact score matching".into(),
            Method::Sliced { reduced: false } => "SSM".into(),
            Method::Sliced { reduced: true } => "SSM-VR".into(),
            Method::MinimumVelocity { step } => format!("MVL, ε = {step:e}"),
            Method::Contrastive { step, reduced: true } => format!("CD-1 with control variate, ε = {step:e}"),
            Method::Contrastive { step, reduced: false } => format!("plain CD-1, ε = {step:e}"),
        }
    }

    fn unit(self, iterations: u32) -> String {
        let method = match self {
            Method::Exact => "sm".into(),
            Method::Sliced { reduced } => format!("ssm{}", if reduced { "-vr" } else { "" }),
            Method::MinimumVelocity { step } => format!("mvl.step={step:e}"),
            Method::Contrastive { step, reduced } => format!("cd-1{}.step={step:e}", if reduced { "-cv" } else { "" }),
        };
        format!("{method}.iterations={iterations}")
    }

    /// J of section 8 of METHODS after 400 and 2 000 iterations, the mean of three seeds of another program.
    fn reference(self, iterations: u32) -> Option<f64> {
        let column = [400, 2000].iter().position(|i| *i == iterations)?;
        let steps = |table: &[(f64, [f64; 2])], step: f64| table.iter().find(|(s, _)| *s == step).map(|(_, row)| row[column]);
        match self {
            Method::Exact => Some([-0.488, -0.686][column]),
            Method::Sliced { reduced: false } => Some([-0.440, -0.615][column]),
            Method::Sliced { reduced: true } => None,
            Method::MinimumVelocity { step } => {
                steps(&[(1e-4, [-0.472, -0.658]), (1e-3, [-0.465, -0.657]), (1e-2, [-0.462, -0.657])], step)
            }
            Method::Contrastive { step, reduced: true } => steps(
                &[(1e-4, [-0.467, -0.661]), (1e-3, [-0.443, -0.656]), (1e-2, [-0.464, -0.657]), (1e-1, [-0.453, -0.651])],
                step,
            ),
            Method::Contrastive { step, reduced: false } => steps(
                &[(1e-4, [0.386, -0.006]), (1e-3, [0.028, -0.138]), (1e-2, [-0.152, -0.194]), (1e-1, [-0.238, -0.517])],
                step,
            ),
        }
    }
}

impl Divergences {
    fn check(config: &Config) -> Result<Self, Error> {
        let this: Divergences = config.read()?;
        this.learning.check(config)?;
        let positive = |key: &str, x: f64| if x > 0.0 { Ok(()) } else { Err(config.refuse(key, "must be positive")) };
        positive("points", this.points as f64)?;
        this.step_sizes.iter().try_for_each(|&e| positive("step_sizes", e))?;
        this.iterations.iter().try_for_each(|&i| positive("iterations", i.into()))?;
        if this.seeds < 3 {
            return Err(config.refuse("seeds", "must be at least 3: claims are about the scatter of seeds"));
        }
        if this.iterations.is_empty() || !this.step_sizes.iter().any(|e| *e <= SMALL) {
            return Err(config.refuse("step_sizes", &format!("needs one of at most {SMALL:e}, and `iterations` one number")));
        }
        Ok(this)
    }

    fn methods(&self) -> Vec<Method> {
        let mut methods = vec![Method::Exact, Method::Sliced { reduced: false }, Method::Sliced { reduced: true }];
        methods.extend(self.step_sizes.iter().map(|&step| Method::MinimumVelocity { step }));
        for reduced in [true, false] {
            methods.extend(self.step_sizes.iter().map(|&step| Method::Contrastive { step, reduced }));
        }
        methods
    }

    fn train(&self, method: Method, iterations: u32, data: &[f64], desk: &Desk) -> Result<Reached, Error> {
        let seeds = (self.seed, self.seeds);
        let models =
            Models::train(&*method.objective(), Data::Fixed(data), &self.learning, iterations, seeds, desk)?;
        let scores = models.scores(data, self.seed, desk);
        let means = |k: usize| scores.iter().map(|s| s[k].mean).collect();
        Ok(Reached { exact: means(0), sliced: means(1) })
    }
}

/// All methods after the same number of iterations.
struct Table(Vec<(Method, Reached)>);

impl Table {
    /// J of a method, over seeds.
    fn loss(&self, method: Method) -> Estimate {
        let (_, reached) = self.0.iter().find(|(m, _)| *m == method).expect("every method was trained");
        Estimate::of(reached.exact.iter().copied())
    }
}

impl Experiment for Divergences {
    fn run(&self, bench: &mut Bench) -> Result<Findings, Error> {
        let data = points(&Cosine::default(), self.points, self.seed);
        let methods = self.methods();
        bench.plan(methods.len() * self.iterations.len());
        let mut findings = Findings::default();
        for &iterations in &self.iterations {
            let mut table = Table(vec![]);
            for &method in &methods {
                let reached = bench.unit(&method.unit(iterations), |desk| self.train(method, iterations, &data, desk))?;
                table.0.push((method, reached));
            }
            findings.rows.extend(self.rows(&table, iterations));
        }
        Ok(findings)
    }
}

impl Divergences {
    fn rows(&self, table: &Table, iterations: u32) -> Vec<Row> {
        let mut rows = vec![];
        for (method, reached) in &table.0 {
            let row = Row::new(&format!("J after {iterations} iterations, {}", method.name()), table.loss(*method), self.seeds);
            println!("{} {:?} {:?} ssm {}", row.name, row.value_text(), method.reference(iterations), Estimate::of(reached.sliced.iter().copied()));
            rows.push(row);
        }
        rows
    }
}
