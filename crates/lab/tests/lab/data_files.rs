//! Names that people give data by, and the catalogue that knows them. Files of the catalogue: real_data/files.rs.

use minvel_lab::catalogue;
use minvel_lab::catalogue::locate;
use minvel_lab::table::{Dataset, Input, Request};

#[test]
fn names_that_are_no_data_are_refused_with_advice() {
    let message = |name: &str| locate(name).unwrap_err().to_string();
    assert!(message("no-such-file.csv").contains("minvel data list"), "{}", message("no-such-file.csv"));
    let wine = message("wine");
    assert!(wine.contains("wine/winequality-red.csv") || wine.contains("minvel data fetch wine"), "{wine}");
    assert!(catalogue::find("wines").unwrap_err().to_string().contains("earthquake"));
    let scratch = minvel_testing::Scratch::new("locate");
    let path = scratch.file("a.csv", "1");
    assert_eq!(locate(path.to_str().unwrap()).unwrap(), Input::File(path));
}

#[test]
fn the_earthquakes_are_inside_the_program_and_are_the_known_file() {
    for name in ["earthquake", "earthquake/quakes_all.csv"] {
        let input = locate(name).unwrap();
        assert!(matches!(input, Input::Embedded { .. }), "{input:?}");
        let data = Dataset::read(&input, &Request::default()).unwrap();
        let known = &catalogue::find("earthquake").unwrap().files[0];
        assert_eq!((data.rows(), &data.sha256), (6120, &known.sha256));
        assert_eq!(known.embedded().unwrap().len() as u64, known.bytes);
        assert_eq!(data.source.to_str(), Some("earthquake/quakes_all.csv"));
        assert_eq!(data.provenance().file, "quakes_all.csv");
    }
    assert!(catalogue::find("earthquake").unwrap().is_at_hand());
}

#[test]
fn every_set_can_be_downloaded_and_names_no_place_twice() {
    let mut places = std::collections::BTreeSet::new();
    for known in catalogue::list().unwrap() {
        let archive = known.archive.as_ref().map(|archive| &archive.file);
        for file in archive.map_or(known.files.iter().collect(), |file| vec![file]) {
            assert!(!file.addresses.is_empty(), "{} has no address", file.name);
            assert!(file.addresses.iter().all(|a| a.starts_with("http") && a.ends_with(&file.name)), "{}", file.name);
        }
        for file in known.files.iter().chain(archive) {
            assert!(file.sha256.len() == 64 && file.bytes > 0, "{}", file.name);
            assert!(places.insert((&known.folder, &file.name)), "{} is there twice", file.name);
        }
    }
}
