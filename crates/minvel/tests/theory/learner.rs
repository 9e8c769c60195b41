//! Learners: the same steps as by hand, followers included, resumed to the same bits.

use minvel::energy::toy::{Toy, ToyLaw};
use minvel::energy::{self, Energy, Mlp};
use minvel::flow::{Langevin, Law, Noise};
use minvel::network::{Activation, Features};
use minvel::objective::{MinimumVelocity, Objective};
use minvel::stream;
use minvel::train::{Context, Learner, Trainer};
use minvel_engine::optim::Optimiser;
use minvel_engine::{Draw, Graph, Options, State};
use minvel_testing::Scratch;

const STEPS: u32 = 12;

fn spectral() -> Mlp {
    Mlp::new("e", Features::of_point(2), &[6, 6], Activation::Silu).spectral()
}

fn bits(state: &State<f32>) -> Vec<(String, Vec<u32>)> {
    state.iter().map(|(name, values)| (name.to_string(), values.iter().map(|x| x.to_bits()).collect())).collect()
}

/// The ritual that a learner replaces; without followers it is the twin that must differ.
fn by_hand(model: &Mlp, law: &Toy, follow: bool) -> State<f32> {
    let (g, objective) = (Graph::new(), MinimumVelocity::new(Langevin, 1e-3));
    let data = law.sample(&g, 32, stream::DATA).unwrap();
    let noise = Noise::drawn(Law::Gaussian, stream::NOISE);
    let loss = objective.loss(&|x| model.energy(x), data.into(), noise) / objective.scale();
    let optimiser = Optimiser::adam(1e-2).minimise(loss, &energy::parameters(model, &g));
    let following = if follow { model.follow(&g) } else { vec![] };
    let updates = [optimiser.updates.as_slice(), &following].concat();
    let mut program = g.compile::<f32>(&[loss], &updates, &Options { replicas: 2, ..Options::default() });
    let mut state = State::new(2);
    energy::initialise(model, &mut state, 3);
    optimiser.initialise(&mut state);
    Trainer::new("e", STEPS, 3).run(&mut program, &mut state, &[], &Context::bare()).unwrap();
    state
}

fn learner(model: &Mlp, law: &Toy) -> Learner<'static> {
    let objective = MinimumVelocity::new(Langevin, 1e-3);
    let learning = Learner::of(model, &objective).fresh(law).batch(32).replicas(2).seed(3);
    learning.optimiser(Optimiser::adam(1e-2)).start(&Context::bare()).unwrap()
}

#[test]
fn a_learner_makes_the_steps_that_one_would_make_by_hand_and_forgets_no_follower() {
    let (model, law) = (spectral(), Toy::new(ToyLaw::Banana));
    let mut learner = learner(&model, &law);
    let training = learner.train("e", STEPS, &Context::bare()).unwrap();
    assert_eq!(training.looks.last().unwrap().step, STEPS);
    assert_eq!(bits(learner.state()), bits(&by_hand(&model, &law, true)));
    assert_ne!(bits(learner.state()), bits(&by_hand(&model, &law, false)), "no power: followers do not matter");
}

#[test]
fn steps_one_by_one_saved_and_restored_give_the_same_bits() {
    let (model, law) = (spectral(), Toy::new(ToyLaw::Banana));
    let mut whole = learner(&model, &law);
    whole.train("e", STEPS, &Context::bare()).unwrap();
    let scratch = Scratch::new("learner");
    let path = scratch.path("learner.safetensors");
    let mut first = learner(&model, &law);
    for _ in 0..5 {
        assert_eq!(first.step().unwrap().len(), 2, "a loss for each replica");
    }
    first.save(&path).unwrap();
    let mut second = learner(&model, &law);
    second.restore(&path).unwrap();
    assert_eq!(second.steps(), 5);
    second.train("e", STEPS, &Context::bare()).unwrap();
    assert_eq!(bits(second.state()), bits(whole.state()));
    // Another model's file is refused.
    let other = Mlp::new("e", Features::of_point(2), &[5, 5], Activation::Silu);
    assert!(self::learner(&other, &law).restore(&path).is_err());
}

#[test]
fn fixed_points_are_seen_once_an_epoch_and_missing_data_are_an_error() {
    let (model, objective) = (spectral(), MinimumVelocity::new(Langevin, 1e-3));
    let points: Vec<f64> = (0..64).map(|k| f64::from(k) / 64.0).collect();
    let fixed = || Learner::of(&model, &objective).points(&points, 2).batch(32).start(&Context::bare()).unwrap();
    let mut learner = fixed();
    learner.train("e", 3, &Context::bare()).unwrap();
    // The same order of rows, drawn by an expression.
    let mut drawn = Learner::of(&model, &objective)
        .drawn(|g, rows| {
            let order = g.random_rows(Draw::Epoch(32), stream::DATA, rows, []);
            g.table(&points, [32, 2]).gather(order)
        })
        .batch(32)
        .start(&Context::bare())
        .unwrap();
    drawn.train("e", 3, &Context::bare()).unwrap();
    assert_eq!(bits(learner.state()), bits(drawn.state()));
    let none = Learner::of(&model, &objective).start(&Context::bare());
    assert!(none.err().unwrap().to_string().contains("needs data"));
    let empty = Learner::of(&model, &objective).points(&[], 2).start(&Context::bare());
    assert!(empty.err().unwrap().to_string().contains("at least one point"));
}
