//! `minvel encode`, `decode`, `sample` and `inspect` of trained auto-encoders: what the report shows can be had again.

use crate::support::{Folder, TINY, column, digits, error, png, quakes};
use minvel::autoencoder::ModelCard;
use minvel::train::Checkpoint;
use minvel_lab::image::{Picture, png_file};
use minvel_lab::plot::Plot;
use minvel_lab::report::Report;

/// A picture of 8 × 8 in colours.
fn coloured(i: usize) -> Vec<u8> {
    (0..64).flat_map(|k| [(37 * i + 4 * k) % 256, (k * (i % 7) * 5) % 256, (91 * i) % 256].map(|v| v as u8)).collect()
}

fn photos(folder: &Folder, count: usize) {
    std::fs::create_dir(folder.path("photos")).unwrap();
    (0..count).for_each(|i| drop(folder.file(&format!("photos/{i:02}.png"), png([8, 8], (8, 2), &[], &coloured(i)))));
}

/// Trains for a moment; the settings are of digits and of pictures alike.
fn train(folder: &Folder, what: &str, data: &str, more: &[&str]) {
    let short = ["--set", "model.iterations=3", "--set", "model.batch=8", "--set", "model.hidden=[6]"];
    let rest = ["--set", "evaluation.images=0", "--device", "cpu", "--out", "run"];
    folder.good(&[&["train", what, data], &short[..], &rest, more].concat());
}

/// Images of a figure, in bytes, and their `[height, width, channels]`.
fn figure(folder: &Folder, name: &str) -> (Vec<Vec<u8>>, [usize; 3]) {
    let report = Report::read(&folder.path("run/report.json")).unwrap();
    let figure = report.figures.iter().find(|f| f.name == name).unwrap();
    let Plot::Grid(grid) = &figure.plot else { panic!("{name} is no grid") };
    (grid.pixels.chunks(grid.image.iter().product()).map(<[u8]>::to_vec).collect(), grid.image)
}

/// The pictures of a folder, in order, as bytes.
fn pictures(folder: &Folder, below: &str, channels: usize) -> Vec<Vec<u8>> {
    let read = |name: &String| Picture::read(&folder.path(&format!("{below}/{name}"))).unwrap().bytes(channels);
    folder.list(below).iter().map(read).collect()
}

fn remove(folder: &Folder, names: &[&str]) {
    names.iter().for_each(|name| drop(std::fs::remove_dir_all(folder.path(name))));
}

#[test]
fn codes_of_the_test_images_decode_to_the_reconstructions_of_the_report_and_samples_are_those_of_its_figure() {
    let folder = Folder::new("codes-report");
    photos(&folder, 40);
    digits(&folder, 60);
    let explicit = ["--set", "model.posterior=explicit", "--set", "model.matching.kind=divergence"];
    for (what, data, more) in [
        ("wae", "photos", &["--seeds", "2"][..]),
        ("wae", "photos", &["--set", "model.latent=product(torus:2,hyperbolic:2,so3)", "--set", "seed=7"]),
        ("vae", "photos", &["--set", "model.latent=euclidean:3", "--set", "frame.channels=1"]),
        ("vae", ".", &["--set", "model.latent=sphere:3"]),
        ("vae", ".", &explicit),
    ] {
        train(&folder, what, data, more);
        let (pairs, image) = figure(&folder, "model-reconstructions");
        std::fs::create_dir(folder.path("shown")).unwrap();
        for (k, pair) in pairs.chunks(2).enumerate() {
            folder.file(&format!("shown/{k:02}.png"), png_file(image, &pair[0]));
        }
        let expected: Vec<Vec<u8>> = pairs.chunks(2).map(|pair| pair[1].clone()).collect();
        for name in ["codes.csv", "codes.npy", "codes.tsv.gz", "codes.parquet"] {
            folder.good(&["encode", "run", "shown", "--out", name, "--device", "cpu"]);
            folder.good(&["decode", "run", name, "--out", "back", "--device", "cpu"]);
            assert!(pictures(&folder, "back", image[2]) == expected, "{what} {more:?}: by {name}");
            remove(&folder, &["back"]);
        }
        // the figure is the first 64 of any number, by the seed of the training
        let (expected, _) = figure(&folder, "model-samples");
        for number in ["64", "67"] {
            folder.good(&["sample", "run", "-n", number, "--out", "drawn", "--threads", "1", "--device", "cpu"]);
            let drawn = pictures(&folder, "drawn", image[2]);
            assert!(drawn.len().to_string() == number && drawn[..64] == expected, "{what} {more:?}: {number}");
            remove(&folder, &["drawn"]);
        }
        let seed = if more.contains(&"seed=7") { "7" } else { "1234" };
        folder.good(&["sample", "run", "--seed", seed, "--out", "drawn", "--grid", "all.png", "--device", "cpu"]);
        assert!(pictures(&folder, "drawn", image[2]) == expected && folder.path("all.png").exists());
        folder.good(&["sample", "run/models/model.safetensors", "--seed", "8", "--out", "other", "--device", "cpu"]);
        assert!(pictures(&folder, "other", image[2]) != expected, "another seed, other images");
        if more.contains(&"--seeds") {
            folder.good(&["sample", "run", "--replica", "2", "--out", "second", "--device", "cpu"]);
            assert!(pictures(&folder, "second", image[2]) != expected, "the second training has images of its own");
        }
        remove(&folder, &["run", "shown", "drawn", "other", "second"]);
    }
}

#[test]
fn a_model_is_used_after_its_folder_was_moved_and_its_data_are_gone() {
    let folder = Folder::new("codes-moved");
    photos(&folder, 20);
    train(&folder, "wae", "photos", &[]);
    folder.good(&["encode", "run", "photos", "--out", "before.csv"]);
    std::fs::rename(folder.path("photos"), folder.path("elsewhere")).unwrap();
    std::fs::create_dir(folder.path("deep")).unwrap();
    std::fs::rename(folder.path("run"), folder.path("deep/moved")).unwrap();
    folder.good(&["encode", "deep/moved", "elsewhere", "--out", "after.csv"]);
    let text = |name: &str| std::fs::read_to_string(folder.path(name)).unwrap();
    assert_eq!(text("before.csv"), text("after.csv"));
    assert!(text("after.csv").starts_with("file,unit1,unit2,") && text("after.csv").contains("\n07.png,"));
    let said = folder.good(&["inspect", "deep/moved"]);
    for words in [
        "8 × 8 images, in colour",
        "sphere:16: 17 columns unit1 … unit17",
        "point",
        "σ = 0.7071",
        "3 steps of 8",
        "pictures of the folder photos, 18 training images",
        "encoder ",
    ] {
        assert!(said.contains(words), "`{words}` in:\n{said}");
    }
    let json = folder.json(&["inspect", "deep/moved"]);
    assert_eq!((&json["card"]["image"], &json["replicas"]), (&serde_json::json!([8, 8, 3]), &1.into()));
}

#[test]
fn draws_of_a_posterior_differ_and_its_mean_does_not_depend_on_the_seed() {
    let folder = Folder::new("codes-draws");
    photos(&folder, 20);
    let explicit = ["--set", "model.posterior=explicit", "--set", "model.matching.kind=divergence"];
    train(&folder, "vae", "photos", &explicit);
    let encode = |out: &str, more: &[&str]| {
        folder.good(&[&["encode", "run", "photos", "--out", out, "--device", "cpu"], more].concat());
        column(&folder.path(out), "unit1")
    };
    let (one, three) = (encode("one.csv", &[]), encode("three.csv", &["--draws", "3"]));
    assert_eq!(three.len(), 60);
    assert_eq!(column(&folder.path("three.csv"), "draw")[..4], [1.0, 2.0, 3.0, 1.0]);
    assert_eq!(three.iter().step_by(3).copied().collect::<Vec<f64>>(), one, "the first draws are those of one draw");
    assert!(three.chunks(3).all(|own| own[0] != own[1] && own[1] != own[2] && own[0] != own[2]));
    assert_ne!(encode("other.csv", &["--seed", "2"]), one);
    assert_eq!(encode("mean.csv", &["--mean"]), encode("mean2.csv", &["--mean", "--seed", "2"]));
    assert_ne!(encode("mean.csv", &["--mean"]), one);
}

#[test]
fn images_of_other_sizes_are_framed_as_in_training() {
    let folder = Folder::new("codes-framed");
    photos(&folder, 20);
    train(&folder, "wae", "photos", &[]);
    // the middle of a wide picture, with opacity on top, is a picture that was trained on
    let wide: Vec<u8> = coloured(3).chunks(24).flat_map(|row| [&[200; 6][..], row, &[9; 6]].concat()).collect();
    let opaque: Vec<u8> = wide.chunks(3).flat_map(|p| [p, &[130]].concat()).collect();
    folder.file("wide.png", png([8, 12], (8, 6), &[], &opaque));
    folder.good(&["encode", "run", "wide.png", "--out", "wide.csv"]);
    folder.good(&["encode", "run", "photos/03.png", "--out", "own.csv"]);
    let code =
        |name: &str| std::fs::read_to_string(folder.path(name)).unwrap().split_once("png,").unwrap().1.to_string();
    assert_eq!(code("wide.csv"), code("own.csv"));
    folder.file("large.png", png([90, 70], (8, 0), &[], &[100; 90 * 70]));
    folder.good(&["encode", "run", "large.png", "--out", "large.csv"]);
    // idx files are images too
    folder.file("images", crate::support::idx(&[3, 9, 9], (0..243).map(|k| k as u8)));
    folder.good(&["encode", "run", "images", "--out", "idx.csv"]);
    assert_eq!(column(&folder.path("idx.csv"), "unit2").len(), 3);
}

#[test]
fn wrong_models_codes_and_places_are_refused_with_what_to_do() {
    let folder = Folder::new("codes-wrong");
    photos(&folder, 20);
    train(&folder, "vae", "photos", &["--set", "model.latent=sphere:2", "--seeds", "2"]);
    folder.file("quakes.csv", quakes(200, 1));
    folder.good(&[&["fit", "quakes.csv", "--out", "fit"][..], &TINY].concat());
    // before, models did not say the size of their images
    let file = Checkpoint::<f32>::read(&folder.path("run/models/model.safetensors")).unwrap();
    let card: ModelCard = file.note(&folder.path("run")).unwrap();
    Checkpoint::new(file.state.clone(), 3, "before", &card.settings).write(&folder.path("old.safetensors")).unwrap();
    std::fs::create_dir_all(folder.path("several/models")).unwrap();
    std::fs::create_dir(folder.path("begun")).unwrap();
    folder.file("begun/run.json", "{}");
    for name in ["a", "b", "b-100", "lenet"] {
        std::fs::copy(
            folder.path("run/models/model.safetensors"),
            folder.path(&format!("several/models/{name}.safetensors")),
        )
        .unwrap();
    }
    folder.file("off.csv", "file,unit1,unit2,unit3\na.png,0,0,1\nb.png,0.5,0,1\n");
    folder.file("word.csv", "unit1,unit2,unit3\n0,0,1\n0,north,1\n");
    folder.file("flat.csv", "z1,z2,z3\n0,0,1\n");
    folder.file("more.csv", "unit1,unit2,unit3,unit4\n0,0,1,0\n");
    folder.file("good.csv", "note,unit3,unit1,unit2\nx,1,0,0\n");
    let before = folder.list(".");
    let (decode, sample) = (
        |model, codes| ["decode", model, codes, "--out", "out"],
        |model, out| ["sample", model, "-n", "4", "--out", out],
    );
    for (arguments, words) in [
        (&decode("run", "off.csv")[..], &["off.csv: line 3", "length 1.118"][..]),
        (&decode("run", "word.csv"), &["word.csv: line 3, column 2 (`unit2`): `north` is not a number"]),
        (&decode("run", "flat.csv"), &["no column `unit1`", "codes on sphere:2", "z1, z2, z3"]),
        (&decode("run", "more.csv"), &["`unit4` belongs to codes of another model"]),
        (&decode("fit", "good.csv"), &["fitted density", "no decoder"]),
        (&decode("old.safetensors", "good.csv"), &["older version of minvel", "train it again"]),
        (&decode("nowhere", "good.csv"), &["nowhere: not found"]),
        (&decode("photos", "good.csv"), &["holds no trained auto-encoder"]),
        (&decode("begun", "good.csv"), &["--resume"]),
        (&decode("several", "good.csv"), &["holds 2 models", "a.safetensors", "b.safetensors"]),
        (&decode("off.csv", "good.csv"), &["off.csv", "safetensors"]),
        (&["decode", "run", "good.csv"], &["--out DIR"]),
        (&["decode", "run", "good.csv", "--out", "photos"], &["photos: the folder is not empty"]),
        (&["decode", "run", "good.csv", "--out", "out", "--replica", "3"], &["2 trainings", "from 1 to 2"]),
        (&["encode", "run", "photos", "--mean", "--out", "z.csv"], &["mean of an implicit posterior is unknown"]),
        (&["encode", "run", "quakes.csv", "--out", "z.csv"], &["neither a picture (PNG, JPEG) nor an idx file"]),
        (&["encode", "run", "nothing", "--out", "z.csv"], &["nothing: not found"]),
        (&["encode", "run", "photos", "--out", "z.txt"], &[".csv"]),
        (&sample("run", "z.csv"), &["z.csv", "expected a folder"]),
        (&sample("photos", "z.csv"), &["contains no model", "a fit", "a training"]),
        (&["sample", "fit", "--out", "z.csv", "--replica", "1"], &["fitted density"]),
        (&["inspect", "photos"], &["contains no model", "a fit", "a training"]),
    ] {
        let output = folder.minvel(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", error(&output));
        words.iter().for_each(|w| assert!(error(&output).contains(w), "{arguments:?}, `{w}`: {}", error(&output)));
        assert_eq!(folder.list("."), before, "{arguments:?} wrote something");
    }
    folder.good(&decode("run", "good.csv"));
    assert_eq!(folder.list("out"), ["0001.png"]);
    folder.good(&["sample", "fit", "-n", "5", "--out", "points.csv"]);
    assert_eq!(column(&folder.path("points.csv"), "latitude").len(), 5, "the same command draws from densities");
    assert!(folder.good(&["inspect", "fit"]).contains("log Z"));
}
