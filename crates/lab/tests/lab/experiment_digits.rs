//! Tables 1 and 2 in miniature, on digits that are none: from end to end, interrupted and resumed, and settings refused.

use crate::support::resumption::{names, perform, resumed, seen, settings};
use minvel::Error;
use minvel::train::{Context, Silent, Stop};
use minvel_lab::fid::{Lenet, Schooling};
use minvel_lab::index::find;
use minvel_testing::Scratch;
use std::path::Path;

/// An idx file of bytes.
fn idx(dims: &[u32], entries: impl Iterator<Item = u8>) -> Vec<u8> {
    let lengths = dims.iter().flat_map(|n| n.to_be_bytes());
    [0, 0, 8, dims.len() as u8].into_iter().chain(lengths).chain(entries).collect()
}

/// Images whose upper rows are as bright as their label is large, with some noise.
fn digits(folder: &Scratch) {
    for (part, count) in [("train", 90), ("t10k", 40)] {
        let pixel = |i: u32| {
            let noise = i.wrapping_mul(2_654_435_761) >> 26;
            (if i % 784 < 28 * (i / 784 % 10) { 190 } else { 2 } + noise) as u8
        };
        folder.file(&format!("{part}-images-idx3-ubyte"), idx(&[count, 28, 28], (0..count * 784).map(pixel)));
        folder.file(&format!("{part}-labels-idx1-ubyte"), idx(&[count], (0..count).map(|i| (i % 10) as u8)));
    }
}

const VAE: [&str; 9] = [
    "seeds=2",
    "dimensions=[2]",
    "learning.hidden=[8]",
    "learning.iterations=6",
    "learning.batch=8",
    "evaluation.images=5",
    "evaluation.chains=3",
    "evaluation.temperatures=6",
    "evaluation.group=3",
];
const WAE: [&str; 7] = [
    "inception=\"no\"",
    "seeds=2",
    "dimension=2",
    "learning.hidden=[8]",
    "learning.iterations=6",
    "learning.batch=8",
    "samples=30",
];

#[test]
fn both_tables_of_likelihoods_come_out_the_same_however_often_they_are_interrupted() {
    let scratch = Scratch::new("digits-vae");
    digits(&scratch);
    let mut config = settings("vae", &VAE);
    config.set(&format!("data={:?}", scratch.folder())).unwrap();
    let report = resumed("vae", &config, &scratch);
    let values: Vec<f64> = report.rows.iter().map(|row| row.value).collect();
    assert!(values.iter().all(|x| x.is_finite()), "{values:?}");
    // Four cells in two tables, and the first seed of ours on all 40 digits.
    let cells = report.rows.iter().filter(|r| r.name.contains("standard deviation")).count();
    let all = report.rows.iter().filter(|r| r.name.contains("first seed, all 40 digits")).count();
    assert_eq!((cells, all), (8, 1));
    let of = |version: &str, cell: &str| {
        let is = |name: &str| name.starts_with(version) && name.contains(cell) && name.contains("standard deviation");
        report.rows.iter().find(|r| is(&r.name)).unwrap().value
    };
    // What both tables share is the same number; ReLU, the official sampler and the official charts give others.
    assert_eq!(of("corrected", "implicit euclidean"), of("replicate", "implicit euclidean"));
    for cell in ["explicit euclidean", "explicit sphere", "implicit sphere"] {
        assert_ne!(of("corrected", cell), of("replicate", cell), "{cell}");
    }
    let sphere = ["implicit-sphere-2-samples", "implicit-sphere-2-reconstructions", "implicit-sphere-2-sphere"];
    for figure in ["table-corrected", "table-replicate", "learning"].iter().chain(&sphere) {
        assert!(names(&report).contains(figure), "{figure} is not among {:?}", names(&report));
    }
    // The twin: another seed is another table.
    config.set("seed=5").unwrap();
    let other = perform(&config, "vae", &scratch.path("other"), &Silent, Stop::default()).unwrap();
    assert_ne!(seen(&report), seen(&other));
}

#[test]
fn the_table_of_distances_comes_out_the_same_however_often_it_is_interrupted() {
    let scratch = Scratch::new("digits-wae");
    digits(&scratch);
    let read =
        |part: fn(Option<&Path>) -> Result<minvel_lab::image::Labelled, Error>| part(Some(scratch.folder())).unwrap();
    let (train, test) = (read(minvel_lab::image::mnist::train), read(minvel_lab::image::mnist::test));
    let schooling = Schooling { seed: 3, epochs: 1, batch: 16, held_out: 16 };
    let judge = scratch.path("lenet.safetensors");
    Lenet::train(&train, &test, &schooling, &Context::bare()).unwrap().write(&judge).unwrap();
    let mut config = settings("wae", &WAE);
    config.set(&format!("data={:?}", scratch.folder())).unwrap();
    config.set(&format!("lenet={judge:?}")).unwrap();
    let report = resumed("wae", &config, &scratch);
    assert_eq!(report.rows.iter().filter(|r| r.name.contains("standard deviation")).count(), 6);
    assert_eq!(report.claims().count(), 5, "three methods on two manifolds, ours and the critic's on each");
    assert!(report.rows.iter().all(|r| r.value.is_finite()));
    assert!(names(&report).contains(&"velocity-sphere-samples"));
}

#[test]
fn one_model_of_ones_own_settings_has_its_scores_and_figures() {
    let scratch = Scratch::new("digits-single");
    digits(&scratch);
    let run = |name: &str, more: &[&str]| {
        let common = ["seeds=2", "model.hidden=[8]", "model.iterations=6", "model.batch=8"];
        let mut config = settings(name, &[&common[..], more].concat());
        config.set(&format!("data={:?}", scratch.folder())).unwrap();
        let out = scratch.path(&format!("{name}-{}", more.len()));
        perform(&config, name, &out, &Silent, Stop::default()).unwrap()
    };
    let few = ["evaluation.images=3", "evaluation.chains=2", "evaluation.temperatures=5", "evaluation.codes=4"];
    let implicit = run("train-vae", &[&few[..], &["model.latent=sphere:2"]].concat());
    assert_eq!(
        implicit.rows.len(),
        3,
        "reconstruction error, that of the mean image, likelihood; no density, no bound"
    );
    assert!(names(&implicit).contains(&"model-sphere"), "the whole of S² is drawn");
    let explicit = ["model.posterior=explicit", "model.matching.kind=divergence"];
    assert_eq!(run("train-vae", &[&few[..], &explicit].concat()).rows.len(), 4);
    let product = ["model.latent=product(torus:1,hyperbolic:2)", "model.matching.kind=adversarial", "seed=3"];
    let wae = run("train-wae", &product);
    assert_eq!(wae.rows.len(), 2, "no images, no likelihood");
    assert!(wae.rows[0].value.is_finite());
}

#[test]
fn bad_settings_name_their_key_and_no_work_is_done() {
    let cases = [
        ("vae", "seeds=0", "`seeds`"),
        ("vae", "tables=[]", "`tables`"),
        ("vae", "tables=[\"best\"]", "`tables`"),
        ("vae", "dimensions=[0]", "`dimensions`"),
        ("vae", "dimensions=[]", "`dimensions`"),
        ("vae", "latents=[\"torus\"]", "torus:8"),
        ("vae", "evaluation.temperatures=1", "`evaluation`"),
        ("vae", "learning.rate=0.0", "`rate`"),
        ("vae", "learning.flow=\"spos\"", "`matching.flow`"),
        ("vae", "learning.step=-1.0", "`matching.step`"),
        ("wae", "methods=[\"magic\"]", "`methods`: unknown variant `magic`, expected one of `divergence`, "),
        ("vae", "posteriors=[\"exact\"]", "`posteriors`: unknown variant `exact`"),
        ("vae", "latents=[\"ball\"]", "`latent`: unknown manifold `ball:8`"),
        ("wae", "methods=[]", "`methods`"),
        ("wae", "dimension=0", "`dimension`"),
        ("wae", "samples=1", "`samples`"),
        ("wae", "inception=\"perhaps\"", "`inception`"),
        ("wae", "epochs=0", "`epochs`"),
        ("train-vae", "model.posterior=\"explicit\"", "`matching.kind`"),
        ("train-vae", "model.latent=\"ball:2\"", "`model.latent`: unknown manifold `ball:2`; expected euclidean, "),
        ("train-vae", "model.posterior=exact", "`model.posterior`: unknown variant `exact`, expected one of `point`, "),
        ("train-vae", "model.network=magic", "`model.network`: unknown variant `magic`, expected `dense` or "),
        ("train-wae", "model.matching.flow=river", "`model.matching.flow`: unknown variant `river`, expected one of "),
        ("train-wae", "model.matching.kind=\"conditional\"", "`matching.kind`"),
        ("train-wae", "seeds=0", "`seeds`"),
    ];
    for (name, assignment, key) in cases {
        let config = settings(name, &[assignment]);
        let Err(refused) = (find(name).unwrap().check)(&config) else { panic!("{name} accepts {assignment}") };
        assert!(refused.to_string().contains(key), "{name}, {assignment}: {refused}");
    }
}
