//! `minvel train vae|wae PICTURES`: settings are chosen by the pictures, and pictures stay what they are.

use crate::support::{Folder, Numbers, digits, error, picture, png};
use minvel_lab::image::folder::Framing;
use minvel_lab::image::{Picture, png_file};
use minvel_lab::plot::Plot;
use minvel_lab::report::Report;

/// A picture in colours: a gradient with a square in it.
fn coloured(side: usize, seed: u64) -> Vec<u8> {
    let mut numbers = Numbers::new(seed);
    let mut next = |scale: f64| (scale * numbers.uniform()) as usize;
    let (from, to, inside) =
        ([(); 3].map(|()| next(256.0)), [(); 3].map(|()| next(256.0)), [(); 3].map(|()| next(256.0)));
    let (top, left) = (next(side as f64 / 2.0), next(side as f64 / 2.0));
    let pixel = |k: usize| {
        let (y, x) = (k / side, k % side);
        let within = (top..top + side / 3).contains(&y) && (left..left + side / 3).contains(&x);
        [0, 1, 2].map(|c| if within { inside[c] } else { (from[c] * (side - x) + to[c] * x) / side } as u8)
    };
    (0..side * side).flat_map(pixel).collect()
}

/// A folder of pictures of several sizes and kinds: 8 and 16 bits, with opacity, by a palette.
fn photos(folder: &Folder, count: usize) {
    std::fs::create_dir(folder.path("photos")).unwrap();
    for i in 0..count {
        let side = 20 + i % 3;
        let (size, rgb) = ([side, side], coloured(side, i as u64));
        let file = match i % 4 {
            0 => png(size, (8, 2), &[], &rgb),
            1 => png(size, (16, 2), &[], &rgb.iter().flat_map(|p| [*p, 77]).collect::<Vec<_>>()),
            2 => png(size, (8, 6), &[], &rgb.chunks(3).flat_map(|p| [p, &[9]].concat()).collect::<Vec<_>>()),
            _ => {
                let palette: Vec<u8> = (0..=255).flat_map(|k: u8| [k, 255 - k, k / 2]).collect();
                let index: Vec<u8> = rgb.chunks(3).map(|p| p[0]).collect();
                png(size, (8, 3), &[(b"PLTE", &palette), (b"tRNS", &[0, 128])], &index)
            }
        };
        folder.file(&format!("photos/{i:03}.png"), file);
    }
}

/// What makes a training a matter of a second.
const SHORT: [&str; 6] = ["--set", "model.iterations=2", "--device", "cpu", "--out", "run"];

fn report(folder: &Folder) -> Report {
    Report::read(&folder.path("run/report.json")).unwrap()
}

/// Bytes of a figure of images, and the bytes of one image.
fn figure(report: &Report, name: &str) -> (Vec<u8>, usize) {
    let figure = report.figures.iter().find(|f| f.name == name).unwrap();
    let Plot::Grid(grid) = &figure.plot else { panic!("{name} is no grid") };
    (grid.pixels.clone(), grid.image.iter().product())
}

/// Photographs once kept the Bernoulli likelihood of digits: the report showed its test images as coloured noise. And
/// training on one's own pictures took ten settings.
#[test]
fn photographs_need_no_settings_and_stay_photographs() {
    let folder = Folder::new("pictures-photos");
    photos(&folder, 40);
    for (what, named) in [("wae", &["photos"][..]), ("vae", &["--set", "data=photos", "--set", "frame.side=16"])] {
        let printed = folder.good(&[&["train", what], named, &SHORT].concat());
        for line in [
            "40 pictures, in colour, with a median short side of 21 pixels.",
            "--set model.likelihood=dequantised",
            "--set model.network=convolutional",
            "--set model.filters=[16, 32]",
            "--set model.batch=32",
            "--set evaluation.samples=0",
            "reconstruction error per pixel (RMSE) of 4 test images",
        ] {
            assert!(printed.contains(line), "{what} says `{line}`:\n{printed}");
        }
        assert!(!printed.contains("--set model.iterations"), "what is stated is not chosen:\n{printed}");
        assert_eq!(printed.contains("--set frame.side=16"), what == "wae", "{printed}");
        let report = report(&folder);
        let (pairs, pixels) = figure(&report, "model-reconstructions");
        assert_eq!((pixels, pairs.len()), (16 * 16 * 3, 2 * 4 * pixels), "the last tenth is tested with");
        let framing = Framing { crop: None, side: 16 };
        let (mut squares, mut of_mean) = (vec![], 0.0);
        for (k, pair) in pairs.chunks(2 * pixels).enumerate() {
            let original = Picture::read(&folder.path(&format!("photos/{:03}.png", 36 + k))).unwrap();
            assert!(
                framing.apply(&original).unwrap().pixels == pair[..pixels],
                "{what}: test image {k} is a photograph"
            );
            let square = |(a, b): (&u8, &u8)| (f64::from(*a) - f64::from(*b)).powi(2);
            squares.push(pair[..pixels].iter().zip(&pair[pixels..]).map(square).sum::<f64>() / pixels as f64);
            of_mean += 1.0;
        }
        // the row is the error of these very pictures, as all test images are shown
        let rmse = (squares.iter().sum::<f64>() / of_mean).sqrt();
        let row = &report.rows[0];
        assert!((row.value - rmse).abs() < 1e-9 * rmse && row.std_error > 0.0, "{what}: {rmse} is {row:?}");
        std::fs::remove_dir_all(folder.path("run")).unwrap();
    }
}

#[test]
fn nearly_binary_pictures_are_taken_for_digits_and_grey_ones_are_not() {
    let folder = Folder::new("pictures-grey");
    for (name, likelihood, shade) in [
        ("binary", "bernoulli", (|y, x| if (y + x) % 3 == 0 { 255 } else { 0 }) as fn(usize, usize) -> u8),
        ("shades", "dequantised", |y, x| (4 * (y + x)) as u8),
    ] {
        std::fs::create_dir(folder.path(name)).unwrap();
        (0..12).for_each(|i| drop(folder.file(&format!("{name}/{i}.png"), picture(|y, x| shade(y + i, x)))));
        let printed = folder.good(&[&["train", "wae", name], &SHORT[..]].concat());
        for line in ["frame.side=28", "frame.channels=1", "model.network=dense", "model.filters=[]"] {
            assert!(printed.contains(line), "{name} says `{line}`:\n{printed}");
        }
        assert!(printed.contains(&format!("model.likelihood={likelihood}")), "{printed}");
        assert_eq!(figure(&report(&folder), "model-samples").1, 784);
        std::fs::remove_dir_all(folder.path("run")).unwrap();
    }
}

#[test]
fn what_the_user_states_is_not_chosen() {
    let folder = Folder::new("pictures-stated");
    photos(&folder, 20);
    folder.file("own.toml", "[model]\nnetwork = \"dense\"\nhidden = [5]\n[frame]\nchannels = 1\n");
    let stated = ["--config", "own.toml", "--set", "model.likelihood=gaussian", "--set", "frame.side=12"];
    let fid = ["--set", "evaluation.samples=4"];
    let printed = folder.good(&[&["train", "wae", "photos"], &stated[..], &fid, &SHORT].concat());
    assert!(printed.contains("FID was not measured") && printed.contains("`minvel data fetch inception`"), "{printed}");
    let config = report(&folder).config;
    assert_eq!(config["model"]["likelihood"], "gaussian");
    assert_eq!(config["model"]["hidden"], serde_json::json!([5]));
    assert_eq!((&config["frame"]["side"], &config["frame"]["channels"]), (&12.into(), &1.into()));
    assert_eq!(config["model"]["network"], "dense");
    for key in ["model.likelihood", "model.hidden", "frame.side", "frame.channels", "model.network"] {
        assert!(!printed.contains(&format!("--set {key}=")), "{key} was stated:\n{printed}");
    }
}

#[test]
fn digits_keep_the_defaults_of_the_paper() {
    let folder = Folder::new("pictures-digits");
    digits(&folder, 60);
    let tiny = ["--set", "model.hidden=[4]", "--set", "evaluation.images=0", "--set", "model.batch=8"];
    let printed = folder.good(&[&["train", "vae", "."], &SHORT[..], &tiny].concat());
    assert!(!printed.contains("chosen"), "{printed}");
    assert_eq!(report(&folder).config["model"]["likelihood"], "bernoulli");
}

#[test]
fn what_are_no_pictures_is_refused_before_anything_is_written() {
    let folder = Folder::new("pictures-wrong");
    std::fs::create_dir(folder.path("empty")).unwrap();
    std::fs::create_dir(folder.path("damaged")).unwrap();
    folder.file("damaged/a.png", b"no picture");
    folder.file("one.png", png_file([2, 2, 1], &[0; 4]));
    let before = folder.list(".");
    for (arguments, words) in [
        (&["nowhere"][..], "nowhere: is not a folder"),
        (&["one.png"], "one.png: is not a folder"),
        (&["empty"], "empty: has no PNG or JPEG files"),
        (&["damaged"], "has no readable picture"),
        (&["empty", "--set", "data=damaged"], "given twice"),
        (&["cifar10"], "`cifar10` is not on this machine"),
    ] {
        let output = folder.minvel(&[&["train", "wae"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", error(&output));
        assert!(error(&output).contains(words), "{arguments:?}: {}", error(&output));
        assert_eq!(folder.list("."), before, "{arguments:?} wrote something");
    }
}
