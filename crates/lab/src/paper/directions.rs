//! Densities of directions, on the circle and on the sphere, learnt from samples and compared with the truth.
//!
//! **Statement.** min_θ E_p L̂(θ)/2 for E_θ(y) = ⟨y, ψ_θ(y)⟩ by Riemannian Langevin steps; L/2 + I(p)/2 = D_F(p‖q) → 0.
//! **Source.** wang2020mvl, section on manifolds; docs/math §4.4, §4.5, §8; errata P5, P16–P18.
//! **Conventions.** Settings `notebook` (the paper's code: fresh samples), `paper` (its text: fixed samples) and `printed`
//! (its formula: other concentrations). The loss has the scale of J. Numbers are those of the last iterate; those of the
//! averaged weights, our addition, stand apart.
//! **Error.** The rate is constant, so that θ keeps wandering: KL scatters between seeds by a factor of a few.
//! **Checked by** its own claims, tests/lab/experiment_directions.rs.

mod picture;
mod quality;

use crate::experiment::{Config, Entry, Experiment, Findings, Runner};
use crate::report::Row;
use minvel::Error;
use minvel::energy::{Energy, Mlp, Toy, ToyLaw};
use minvel::estimate::{Estimate, format};
use minvel::flow::{FlowForm, Law, Noise, RiemannianLangevin};
use minvel::manifold::Space;
use minvel::network::{Activation, Features};
use minvel::objective::{MinimumVelocity, Objective};
use minvel::train::{Context, Learner, Look, Step};
use minvel_engine::optim::{Optimiser, RateSchedule};
use minvel_engine::{Clock, Draw, Expr, Graph, State};
use quality::Quality;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// The circle's line in the list.
pub const CIRCLE: Entry = Entry {
    name: "circle",
    source: "The paper's S¹ figure",
    about: "The energy of a von Mises mixture on the circle, learnt by minimum velocity, against the truth",
    settings: include_str!("../../experiments/circle.toml"),
    check: |config| Ok(Box::new(Directions::check(config, Space::Sphere(1))?)),
    hidden: false,
};

/// The sphere's line in the list.
pub const SPHERE: Entry = Entry {
    name: "sphere",
    source: "The paper's S² figure",
    about: "The energy of a von Mises–Fisher mixture on the sphere, learnt by minimum velocity, against the truth",
    settings: include_str!("../../experiments/sphere.toml"),
    check: |config| Ok(Box::new(Directions::check(config, Space::Sphere(2))?)),
    hidden: false,
};

/// What is claimed of KL(truth‖model), in nats.
const LIMIT: f64 = 2e-3;

/// Streams of the programs.
const DATA: u32 = 0;
const NOISE: u32 = 1;
const ORDER: u32 = 2;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Directions {
    seed: u64,
    seeds: usize,
    run: Vec<String>,
    hidden: Vec<usize>,
    rate: f64,
    schedule: Rate,
    average: f64,
    step_size: f64,
    form: Form,
    grid: usize,
    mass: f64,
    settings: BTreeMap<String, Setting>,
}

/// How the learning rate goes.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Rate {
    Constant,
    Cosine,
}

/// In which coordinates a step is made.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Form {
    Chart,
    Geodesic,
}

/// On what, and for how long.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    #[serde(deserialize_with = "known_law")]
    law: Toy,
    iterations: u32,
    batch: usize,
    /// Of a fixed set; 0 for fresh ones.
    samples: usize,
}

fn known_law<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Toy, D::Error> {
    String::deserialize(deserializer)?.parse().map(Toy::new).map_err(serde::de::Error::custom)
}

/// What a setting led to.
#[derive(Serialize, Deserialize)]
struct Learnt {
    /// L̂/2 of the training.
    looks: Vec<Look>,
    /// Of the last iterate of each seed.
    last: Vec<Quality>,
    /// Of the averaged weights of each seed.
    averaged: Vec<Quality>,
    /// Log density of each seed's last iterate at the points of the picture.
    log_densities: Vec<Vec<f32>>,
}

impl Directions {
    fn check(config: &Config, space: Space) -> Result<Self, Error> {
        let this: Directions = config.read()?;
        let demand = |key: &str, ok: bool, what: &str| if ok { Ok(()) } else { Err(config.refuse(key, what)) };
        demand("seeds", this.seeds > 0, "must be positive")?;
        demand("rate", this.rate > 0.0, "must be positive")?;
        demand("step_size", this.step_size > 0.0, "must be positive")?;
        demand("average", (0.0..1.0).contains(&this.average), "must lie in [0, 1)")?;
        demand("mass", this.mass > 0.0 && this.mass <= 1.0, "must lie in (0, 1]")?;
        demand("grid", this.grid >= 8, "must be at least 8")?;
        demand("hidden", !this.hidden.contains(&0), "must be positive")?;
        demand("run", !this.run.is_empty(), "needs at least one setting")?;
        for (i, name) in this.run.iter().enumerate() {
            let known: Vec<&str> = this.settings.keys().map(String::as_str).collect();
            let what = format!("contains `{name}`; expected {}", known.join(", "));
            demand("run", this.settings.contains_key(name), &what)?;
            demand("run", !this.run[..i].contains(name), &format!("contains `{name}` twice"))?;
        }
        for (name, setting) in &this.settings {
            let key = |of: &str| format!("settings.{name}.{of}");
            let Setting { law, iterations, batch, samples } = setting;
            let laws = ToyLaw::ALL.into_iter().filter(|law| law.space() == space);
            let known = laws.map(ToyLaw::name).collect::<Vec<_>>().join(", ");
            demand(&key("law"), law.kind.space() == space, &format!("must be one of {known}"))?;
            demand(&key("iterations"), *iterations > 0, "must be positive")?;
            demand(&key("batch"), *batch > 0, "must be positive")?;
            demand(&key("samples"), *samples == 0 || samples >= batch, "must be 0, or at least the batch")?;
        }
        Ok(this)
    }

    fn model(&self, law: &Toy) -> Mlp {
        Mlp::new("energy", Features::of(law.manifold.clone()), &self.hidden, Activation::Tanh)
    }

    fn objective(&self, law: &Toy) -> MinimumVelocity {
        let form = match self.form {
            Form::Chart => FlowForm::Chart,
            Form::Geodesic => FlowForm::Geodesic,
        };
        let flow = RiemannianLangevin { manifold: law.manifold.clone(), form };
        MinimumVelocity { adaptive: true, ..MinimumVelocity::new(flow, self.step_size) }
    }

    fn schedule(&self, steps: u32) -> RateSchedule {
        match self.schedule {
            Rate::Constant => RateSchedule::Constant,
            Rate::Cosine => RateSchedule::Cosine { steps, floor: 0.0 },
        }
    }

    /// The points of an iteration: fresh ones, all of a fixed set, or some of it in an order shuffled for each epoch.
    fn data<'g>(&self, g: &'g Graph, law: &Toy, setting: &Setting) -> Expr<'g> {
        let (m, rows) = (law.manifold.ambient(), setting.batch);
        match setting.samples {
            0 => law.sample(g, rows, DATA).expect("mixtures can be sampled"),
            all if all == rows => g.input_rows("data", rows, [m]),
            all => g.input("data", [all, m]).gather(g.random_rows(Draw::Epoch(all as u32), ORDER, rows, [])),
        }
    }

    /// The fixed set of each seed, one after another.
    fn fixed_set(&self, law: &Toy, setting: &Setting, context: &Context) -> Result<Vec<f32>, Error> {
        if setting.samples == 0 {
            return Ok(vec![]);
        }
        let g = Graph::new();
        let points = law.sample(&g, setting.samples, DATA).expect("mixtures can be sampled");
        let mut program = g.try_compile::<f32>(&[points], &[], &context.options(self.seeds))?;
        program.try_run(&mut State::new(self.seeds), &[], Clock { seed: self.seed, step: 0 })?;
        Ok(program.try_output(0)?.to_vec())
    }

    fn learn(&self, name: &str, context: &Context) -> Result<Learnt, Error> {
        let setting = &self.settings[name];
        let law = &setting.law;
        let model = self.model(law);
        let g = Graph::new();
        let (energy, noise) = (|y| model.energy(y), Noise::drawn(Law::Gaussian, NOISE));
        let loss = 0.5 * self.objective(law).loss(&energy, self.data(&g, law, setting).into(), noise);
        let schedule = self.schedule(setting.iterations);
        let optimiser = Optimiser { schedule, average: Some(self.average), ..Optimiser::rmsprop_tf(self.rate) };
        let step = Step::of_energy(&model, loss, &optimiser);
        let data = self.fixed_set(law, setting, context)?;
        let mut learner = Learner::new(&g, &step, &model.parameters(), (self.seed, self.seeds), context)?;
        learner = learner.input("data", &data[..]);
        let training = learner.train(name, setting.iterations, context)?.all_finite()?;
        let state = learner.into_state();

        let judge = quality::Judge { law, model: &model, grid: self.grid, mass: self.mass };
        let last = quality::parameters(&model, &state, "");
        Ok(Learnt {
            looks: training.looks,
            last: judge.grades(&last, context)?,
            averaged: judge.grades(&quality::parameters(&model, &state, "/average"), context)?,
            log_densities: judge.log_densities(&last, &picture::points(law), context)?,
        })
    }

    /// Numbers and the claim of one setting.
    fn rows(&self, name: &str, learnt: &Learnt) -> Vec<Row> {
        let law = &self.settings[name].law;
        let optimum = format::plain(-0.5 * law.information.expect("mixtures know it"));
        let region = format!("{} % of the mass", format::plain(100.0 * self.mass));
        let row = |what: &str, of: &[Quality], number: fn(&Quality) -> f64| {
            Row::new(&format!("{name}: {what}"), Estimate::of(of.iter().map(number)), self.seeds)
        };
        let (last, averaged) = (&learnt.last[..], &learnt.averaged[..]);
        let worst = last.iter().map(|q| q.divergence).fold(0.0, |a: f64, b| if b.is_nan() || b > a { b } else { a });
        let place = if law.manifold.dim() == 1 { "S¹" } else { "S²" };
        let claim = format!("{place}, {}: KL(truth‖model) is below {LIMIT:.0e} nats in every seed", self.title(name));
        let rule = format!("largest of {} seeds, {}, < {LIMIT:.0e}", self.seeds, format::plain(worst));
        let training = Estimate::of((0..self.seeds).map(|seed| late_loss(&learnt.looks, seed)));
        vec![
            row("KL(truth‖model)", last, |q| q.divergence).unit("nats").decided(&claim, &rule, worst < LIMIT),
            row("KL(truth‖model), averaged weights (ours)", averaged, |q| q.divergence).unit("nats"),
            row("Fisher divergence D_F", last, |q| q.fisher),
            row(&format!("loss L/2 by quadrature (optimum {optimum})"), last, |q| q.loss),
            Row::new(&format!("{name}: loss L̂/2 in the last tenth of training"), training, self.seeds),
            row(&format!("largest |log p − log q| where {region} is"), last, |q| q.log_error).unit("nats"),
            row("largest |log p − log q| anywhere", last, |q| q.log_error_anywhere).unit("nats"),
        ]
    }

    /// A setting in words.
    fn title(&self, name: &str) -> String {
        let Setting { iterations, batch, samples, .. } = &self.settings[name];
        let data = match samples {
            0 => format!("{batch} fresh samples each"),
            all if all == batch => format!("{all} fixed samples"),
            all => format!("{batch} of {all} fixed samples each"),
        };
        let rate = if self.schedule == Rate::Constant { "" } else { ", learning rate falling to zero" };
        format!("{name} setting ({iterations} iterations, {data}{rate})")
    }
}

impl Directions {
    fn notes(&self) -> Vec<String> {
        let rate = match self.schedule {
            Rate::Constant => {
                "The learning rate is constant, as in the paper, so the last iterate keeps fluctuating around the \
                 optimum; the running average of the weights is our addition and decides no claim."
            }
            Rate::Cosine => {
                "The learning rate falls to zero along half a cosine, unlike the paper's: with a constant rate and \
                 the small batches of the quick settings, the last iterate fluctuates around the optimum by a KL of \
                 1e-3."
            }
        };
        let reference = "Reference runs of another program (10 000 fresh samples, constant rate): on the circle KL 2e-4 to 9e-4, largest \
                         error of the log density 0.05 to 0.07, loss −0.504 to −0.514; on the sphere KL 8e-4 to 1e-3, error \
                         0.09 to 0.43, loss −2.56 to −2.60.";
        vec![rate.to_string(), reference.to_string()]
    }
}

/// The mean loss of a seed over the last tenth of the looks.
fn late_loss(looks: &[Look], seed: usize) -> f64 {
    let late = &looks[looks.len() - looks.len().div_ceil(10)..];
    late.iter().map(|look| look.loss[seed]).sum::<f64>() / late.len() as f64
}

impl Experiment for Directions {
    fn run(&self, runner: &mut Runner) -> Result<Findings, Error> {
        runner.plan(self.run.len());
        let mut findings = Findings::default();
        let mut shown = vec![];
        let all = runner.each(&self.run, |runner, name| runner.unit(name, |context| self.learn(name, context)))?;
        for (name, learnt) in self.run.iter().zip(all) {
            findings.rows.extend(self.rows(name, &learnt));
            shown.push(picture::Shown { name, setting: &self.settings[name], learnt });
        }
        findings.figures = picture::figures(&shown, self.seeds);
        findings.notes = self.notes();
        Ok(findings)
    }
}
