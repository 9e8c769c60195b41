//! Contrastive divergence with one step: what the control variate makes of it.
//!
//! **Statement.** J(θ) on the training set after training by CD-1 with and without control variate, MVL (each over step
//! sizes), sliced and exact score matching; same network, same start values, batches and noise.
//! **Source.** wang2020mvl, figure on CD-1; docs/math §4.3, §8.
//! **Error.** Methods share initial values, batches and noise: differences are paired by seed and decided by Student's test.
//! **Checked by** its own claims, tests/lab/experiment_planar.rs.

use super::planar::{Data, Learning, Models, points};
use crate::experiment::{Config, Entry, Experiment, Findings, Runner};
use crate::plot::{Axis, Dash, Figure, Lines, Plot, Series};
use crate::report::{Claim, Row, student};
use minvel::Error;
use minvel::energy::toy::Cosine;
use minvel::estimate::Estimate;
use minvel::flow::Langevin;
use minvel::objective::{Contrastive, MinimumVelocity, Objective, Reduction, ScoreMatching, Sliced};
use minvel::train::Context;
use serde::{Deserialize, Serialize};

/// The line in the list.
pub const ENTRY: Entry = Entry {
    name: "cd1",
    source: "Figure on CD-1",
    about: "Score-matching loss after training by contrastive divergence with and without control variate",
    settings: include_str!("../../experiments/cd1.toml"),
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

/// Trainings of each kind at the least, as in the paper: claims are about the scatter of seeds.
const FEWEST_SEEDS: usize = 3;
/// Two methods do the same if J surely differs by less than this share of what the control variate gains.
const SAME: f64 = 0.1;
/// How many standard errors apart two methods must be that do not.
const WORSE: f64 = 5.0;
/// Steps that count as small.
const SMALL: f64 = 1e-3;
/// By how much J may differ on another training set: its standard deviation over points is about 5, of 10 000 of them.
const OTHER_DATA: f64 = 0.05;

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

    /// J of the reference runs after 400 and 2 000 iterations, the mean of three seeds of another program.
    fn reference(self, iterations: u32) -> Option<f64> {
        let column = [400, 2000].iter().position(|i| *i == iterations)?;
        let steps =
            |table: &[(f64, [f64; 2])], step: f64| table.iter().find(|(s, _)| *s == step).map(|(_, row)| row[column]);
        match self {
            Method::Exact => Some([-0.488, -0.686][column]),
            Method::Sliced { reduced: false } => Some([-0.440, -0.615][column]),
            Method::Sliced { reduced: true } => None,
            Method::MinimumVelocity { step } => {
                steps(&[(1e-4, [-0.472, -0.658]), (1e-3, [-0.465, -0.657]), (1e-2, [-0.462, -0.657])], step)
            }
            Method::Contrastive { step, reduced: true } => steps(
                &[
                    (1e-4, [-0.467, -0.661]),
                    (1e-3, [-0.443, -0.656]),
                    (1e-2, [-0.464, -0.657]),
                    (1e-1, [-0.453, -0.651]),
                ],
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
        let mut this: Divergences = config.read()?;
        this.seeds = this.seeds.max(FEWEST_SEEDS);
        this.learning.check(config)?;
        let positive = |key: &str, x: f64| if x > 0.0 { Ok(()) } else { Err(config.refuse(key, "must be positive")) };
        positive("points", this.points as f64)?;
        this.step_sizes.iter().try_for_each(|&e| positive("step_sizes", e))?;
        this.iterations.iter().try_for_each(|&i| positive("iterations", i.into()))?;
        if this.iterations.is_empty() || !this.step_sizes.iter().any(|e| *e <= SMALL) {
            return Err(config.refuse(
                "step_sizes",
                &format!("needs a value of at most {SMALL:e}, and `iterations` at least one number"),
            ));
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

    fn train(&self, method: Method, iterations: u32, data: &[f64], context: &Context) -> Result<Reached, Error> {
        let seeds = (self.seed, self.seeds);
        let models =
            Models::train(&*method.objective(), Data::Fixed(data), &self.learning, iterations, seeds, context)?;
        let scores = models.scores(data, self.seed, context)?;
        let means = |k: usize| scores.iter().map(|s| s[k].mean).collect();
        Ok(Reached { exact: means(0), sliced: means(1) })
    }
}

/// All methods after the same number of iterations.
struct Table {
    iterations: u32,
    steps: Vec<f64>,
    reached: Vec<(Method, Reached)>,
}

impl Experiment for Divergences {
    fn run(&self, runner: &mut Runner) -> Result<Findings, Error> {
        let data = points(&Cosine::default(), self.points, self.seed);
        let methods = self.methods();
        runner.plan(methods.len() * self.iterations.len());
        let (mut rows, mut panels) = (vec![], vec![]);
        let all = runner.each(&self.iterations, |runner, &iterations| {
            runner.each(&methods, |runner, &method| {
                let unit = method.unit(iterations);
                Ok((method, runner.unit(&unit, |context| self.train(method, iterations, &data, context))?))
            })
        })?;
        for (&iterations, reached) in self.iterations.iter().zip(all) {
            let table = Table { iterations, steps: self.step_sizes.clone(), reached };
            rows.extend(table.rows());
            panels.push(Plot::Lines(table.panel()));
        }
        let caption = "Score-matching loss J on the training set after training by each method, against the step size \
                       of CD-1 and MVL; bands are 95 % intervals over seeds. With control variate, CD-1 matches the \
                       other methods.";
        let figure = Figure::new("cd1", caption, Plot::Row { plots: panels });
        let notes = vec![
            "J has no lower bound on these data, whose density jumps at its ends: use it only to compare methods."
                .into(),
            format!(
                "Methods share initial values, batches and noise, so that differences are paired by seed. One matches another \
                 if the 95 % interval of the difference (Student's) lies within {SAME} of what the control variate gains over \
                 plain CD-1 at the same steps."
            ),
        ];
        Ok(Findings { rows, figures: vec![figure], notes })
    }
}

impl Table {
    fn of(&self, method: Method) -> &Reached {
        let (_, reached) = self.reached.iter().find(|(m, _)| *m == method).expect("every method was trained");
        reached
    }

    /// J of a method, over seeds.
    fn loss(&self, method: Method) -> Estimate {
        Estimate::of(self.of(method).exact.iter().copied())
    }

    /// J of each seed, the mean over small steps.
    fn small(&self, method: impl Fn(f64) -> Method) -> Vec<f64> {
        let at: Vec<&Reached> = self.small_steps().map(|step| self.of(method(step))).collect();
        let seeds = at[0].exact.len();
        (0..seeds).map(|r| at.iter().map(|reached| reached.exact[r]).sum::<f64>() / at.len() as f64).collect()
    }

    fn small_steps(&self) -> impl Iterator<Item = f64> + '_ {
        self.steps.iter().copied().filter(|step| *step <= SMALL)
    }

    fn row(&self, name: &str, value: Estimate) -> Row {
        Row::new(&format!("{name}, {} iterations", self.iterations), value, self.reached[0].1.exact.len())
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = self.values();
        rows.extend(self.equals());
        rows.extend(self.worse());
        rows.extend(self.magnitude());
        rows
    }

    /// What each method reached: J, and SSM as the paper's figure has it.
    fn values(&self) -> Vec<Row> {
        let both = |(method, reached): &(Method, Reached)| {
            let sliced = Estimate::of(reached.sliced.iter().copied());
            let name = method.name();
            [self.row(&format!("J, {name}"), self.loss(*method)), self.row(&format!("SSM loss, {name}"), sliced)]
        };
        self.reached.iter().flat_map(both).collect()
    }

    /// CD-1 with control variate against those it should equal.
    fn equals(&self) -> Vec<Row> {
        let ours = self.small(|step| Method::Contrastive { step, reduced: true });
        let name = format!("J, CD-1 with control variate, mean over ε ≤ {SMALL:e}");
        let sliced = &self.of(Method::Sliced { reduced: false }).exact;
        let (excess, freedom) = (Estimate::paired(&ours, sliced), ours.len() as u64 - 1);
        vec![
            self.row(&name, Estimate::of(ours.iter().copied())),
            self.same(&name, &ours, "MVL", &self.small(|step| Method::MinimumVelocity { step })),
            self.same(&name, &ours, "SSM-VR", &self.of(Method::Sliced { reduced: true }).exact),
            self.row(&format!("{name}, minus J of SSM"), excess)
                .significantly_below("CD-1 with control variate is better than SSM at small steps", freedom),
        ]
    }

    /// The difference from another method, with the claim that it is small beside what the control variate gains.
    fn same(&self, name: &str, ours: &[f64], other: &str, theirs: &[f64]) -> Row {
        let plain = self.small(|step| Method::Contrastive { step, reduced: false });
        let freedom = ours.len() as u64 - 1;
        let sigmas = student::critical(student::CONFIDENCE, freedom);
        let within = |sign: f64| {
            let beyond = (0..ours.len()).map(|r| sign * (ours[r] - theirs[r]) - SAME * (plain[r] - ours[r]));
            let Estimate { mean, std_error, .. } = Estimate::of(beyond);
            Claim::SurelyBelow { limit: 0.0, sigmas }.holds(mean, std_error)
        };
        let difference = Estimate::paired(ours, theirs);
        let rule = format!(
            "|difference| surely below {SAME} of the gain over plain CD-1, {} ({})",
            Estimate::paired(&plain, ours),
            student::words(difference.mean, difference.std_error, freedom)
        );
        let claim = format!("CD-1 with control variate matches {other} at small steps");
        let row = self.row(&format!("{name}, minus J of {other}"), difference);
        row.decided(&claim, &rule, within(1.0) && within(-1.0))
    }

    /// CD-1 without control variate at each small step.
    fn worse(&self) -> Vec<Row> {
        let excess = |step: f64| {
            let of = |reduced| &self.of(Method::Contrastive { step, reduced }).exact;
            let excess = Estimate::paired(of(false), of(true));
            self.row(&format!("J, plain CD-1 minus CD-1 with control variate, ε = {step:e}"), excess).decided(
                "Plain CD-1 is worse at small steps",
                &format!("value > {WORSE} standard errors"),
                excess.mean > WORSE * excess.std_error,
            )
        };
        self.small_steps().map(excess).collect()
    }

    /// The largest distance from the reference runs, where they have the number.
    fn magnitude(&self) -> Option<Row> {
        let distance = |(method, reached): &(Method, Reached)| {
            let (ours, theirs) = (self.loss(*method), method.reference(self.iterations)?);
            let error_of_three = ours.std_error * (reached.exact.len() as f64 / 3.0).sqrt();
            Some((ours.mean - theirs).abs() / (OTHER_DATA + 3.0 * ours.std_error.hypot(error_of_three)))
        };
        let worst = self.reached.iter().filter_map(distance).reduce(f64::max)?;
        let name =
            "largest distance from an independent program, in units of 0.05 (another training set) + 3 standard errors";
        let claim = "All methods reach the J of an independent program";
        Some(self.row(name, Estimate::single(worst)).claim(claim, Claim::Below(1.0)))
    }

    fn panel(&self) -> Lines {
        let over = |name: &str, method: &str, of: &dyn Fn(f64) -> Method| {
            Series::new(name, method).estimates(self.steps.iter().map(|&step| (step, self.loss(of(step)))))
        };
        let title = format!("After {} iterations", self.iterations);
        let intervals = self.reached.iter().map(|(method, _)| self.loss(*method).interval(2.0));
        let whole = |(low, high): (f64, f64), (a, b): (f64, f64)| (low.min(a), high.max(b));
        let (low, high) = intervals.fold((f64::INFINITY, f64::NEG_INFINITY), whole);
        let margin = 0.05 * (high - low);
        Lines::new(
            &title,
            Axis::log("step size ε"),
            Axis::linear("score-matching loss J on the training set").over(low - margin, high + margin),
        )
        .with(
            over("CD-1, no control variate", "cd-1", &|step| Method::Contrastive { step, reduced: false })
                .dashed(Dash::Dashed),
        )
        .with(over("CD-1, control variate", "cd-1", &|step| Method::Contrastive { step, reduced: true }))
        .with(over("MVL", "mvl", &|step| Method::MinimumVelocity { step }))
        .with(over("SSM", "ssm", &|_| Method::Sliced { reduced: false }).dashed(Dash::Dotted))
        .with(over("SSM-VR", "ssm-vr", &|_| Method::Sliced { reduced: true }).dashed(Dash::Dotted))
        .with(over("exact score matching", "sm", &|_| Method::Exact).dashed(Dash::Dotted))
    }
}
