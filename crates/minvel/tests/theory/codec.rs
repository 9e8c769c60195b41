//! A trained auto-encoder in use: rows do not see each other, replicas do not see each other, and a file gives back the model.

use minvel::autoencoder::{AutoencoderSettings, Codec, FlowKind, Matched, ModelCard, Reading, Views};
use minvel::network::Activation;
use minvel::train::{Checkpoint, Context};
use minvel_engine::State;

const IMAGE: [usize; 3] = [4, 4, 1];

fn card(posterior: &str, kind: &str, likelihood: &str) -> ModelCard {
    let (flow, latent) = (FlowKind::Chart, "sphere:3".parse().unwrap());
    let matching =
        Matched { kind: kind.parse().unwrap(), weight: 1.0, step: 1e-3, penalty: 1e-4, flow, spectral: false };
    let settings = AutoencoderSettings {
        latent,
        posterior: posterior.parse().unwrap(),
        likelihood: likelihood.parse().unwrap(),
        deviation: 0.3,
        network: "dense".parse().unwrap(),
        filters: vec![],
        hidden: vec![7],
        activation: Activation::Tanh,
        rate: 1e-3,
        batch: 4,
        iterations: 2,
        matching,
        official: false,
    };
    let (version, data) = ("test".into(), "numbers".into());
    ModelCard { version, settings, image: IMAGE, crop: None, data, images: 9, seed: 3 }
}

fn start(card: &ModelCard, replicas: usize) -> State<f32> {
    card.settings.learning(IMAGE).unwrap().start(replicas, 5)
}

fn images(count: usize) -> Vec<u8> {
    (0..count * 16).map(|k| (k * 7919 % 251) as u8).collect()
}

#[test]
fn an_image_has_the_code_it_has_alone_however_many_there_are() {
    let card = card("point", "velocity", "dequantised");
    let mut codec = Codec::of(card.clone(), &start(&card, 1), 0, 2).unwrap();
    let (context, count) = (Context::bare(), 1100); // more than go through at once
    let all = images(count);
    let codes = codec.encode(&all, Reading::Draw(0), 1, &context).unwrap();
    let pictures = codec.decode(&codes, &context).unwrap();
    assert_eq!((codes.len(), pictures.len()), (4 * count, 16 * count));
    for k in [0, 499, 500, 777, 1099] {
        let own = codec.encode(&all[16 * k..][..16], Reading::Draw(0), 1, &context).unwrap();
        assert_eq!(own, codes[4 * k..][..4], "code {k}");
        assert_eq!(codec.decode(&own, &context).unwrap(), pictures[16 * k..][..16], "image {k}");
    }
    assert_eq!(codec.encode(&all, Reading::Mean, 9, &context).unwrap(), codes, "a point is its own mean");
    assert_eq!(codec.sample(1100, 4, &context).unwrap()[..16 * 64], codec.sample(64, 4, &context).unwrap());
}

#[test]
fn draws_of_a_posterior_are_independent_in_every_group_of_rows() {
    let card = card("implicit", "conditional", "gaussian");
    let mut codec = Codec::of(card.clone(), &start(&card, 1), 0, 2).unwrap();
    let context = Context::bare();
    let same: Vec<u8> = images(1).repeat(1100);
    let [first, second] = [0, 1].map(|draw| codec.encode(&same, Reading::Draw(draw), 1, &context).unwrap());
    let mut all: Vec<[u32; 4]> =
        [first, second].concat().as_chunks::<4>().0.iter().map(|code| code.map(f32::to_bits)).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 2200, "no two rows or draws share their noise");
    assert!(
        codec
            .encode(&same, Reading::Mean, 1, &context)
            .unwrap_err()
            .to_string()
            .contains("mean of an implicit posterior is unknown")
    );
}

#[test]
fn one_of_several_trainings_alone_does_what_it_does_beside_the_others() {
    let card = card("implicit", "conditional", "bernoulli");
    let (mut state, context) = (start(&card, 3), Context::bare());
    let model = card.settings.learning(IMAGE).unwrap().model;
    let views = Views { model: &model, options: context.options(3), seed: 8 };
    let shown = model.decoder.likelihood.shown(&images(5), 8);
    assert!(shown.iter().all(|x| *x == 0.0 || *x == 1.0), "pixels are drawn black or white");
    let beside = views.codes(&mut state, &shown).unwrap();
    for replica in 0..3 {
        let mut codec = Codec::of(card.clone(), &state, replica, 2).unwrap();
        let alone = codec.encode(&images(5), Reading::Draw(0), 8, &context).unwrap();
        assert_eq!(alone, beside[replica * 20..][..20], "replica {replica}");
    }
    assert!(Codec::of(card.clone(), &state, 3, 2).unwrap_err().to_string().contains("from 1 to 3"));
}

#[test]
fn a_file_gives_back_the_model_and_a_broken_one_says_so() {
    let card = card("explicit", "divergence", "dequantised");
    let (state, context) = (start(&card, 1), Context::bare());
    let path = minvel_testing::fresh("codec.safetensors");
    Checkpoint::new(state.clone(), 2, "a test", &card).write(&path).unwrap();
    let (mut read, mut own) = (Codec::read(&path, 0).unwrap(), Codec::of(card.clone(), &state, 0, 2).unwrap());
    assert_eq!(read.card, card);
    assert_eq!(read.sample(9, 1, &context).unwrap(), own.sample(9, 1, &context).unwrap());
    for (change, words) in [
        ((|card: &mut ModelCard| card.image = [8, 8, 1]) as fn(&mut ModelCard), "damaged"),
        (|card| card.image = [0, 4, 1], "damaged"),
        (|card| card.settings.latent = "sphere:4".parse().unwrap(), "damaged"),
    ] {
        let mut wrong = card.clone();
        change(&mut wrong);
        Checkpoint::new(state.clone(), 2, "a test", &wrong).write(&path).unwrap();
        let why = Codec::read(&path, 0).unwrap_err().to_string();
        assert!(why.contains(words) && why.contains("minvel-codec"), "{why}");
    }
    // A kind of network that this version does not know.
    let mut unknown = serde_json::to_value(&card).unwrap();
    unknown["settings"]["network"] = "magic".into();
    Checkpoint::new(state.clone(), 2, "a test", &unknown).write(&path).unwrap();
    let why = Codec::read(&path, 0).unwrap_err().to_string();
    assert!(why.contains("`magic`, expected `dense` or `convolutional`") && why.contains("minvel-codec"), "{why}");
    std::fs::remove_file(&path).unwrap();
}
