//! Real files as people have them, and the catalogue that knows them. Needs `MINVEL_DATA`; says so loudly where it is missing.

#[path = "support/scratch.rs"]
mod scratch;

use minvel::data::{Dataset, Input, Options, Request, Table, catalogue, leaked_share, locate};

/// A known set's file, or `None` with a warning.
fn file(name: &str) -> Option<Input> {
    match locate(name) {
        Ok(path) => Some(path),
        Err(error) => {
            eprintln!("******** SKIPPED, the data are missing: {error} ********");
            None
        }
    }
}

fn on(manifold: Option<&str>) -> Request {
    Request { manifold: manifold.map(str::to_string), ..Request::default() }
}

#[test]
fn places_on_earth_are_read_and_guessed() {
    for (name, rows, distinct, columns) in [
        ("volcano", 827, Some(267), "Latitude, Longitude"),
        ("earthquake", 6120, None, "LATITUDE, LONGITUDE"),
        ("flood", 4875, None, "lat, long"),
        ("fire", 12809, None, "columns 1, 2"),
    ] {
        let Some(path) = file(name) else { continue };
        let data = Dataset::read(&path, &on(Some("sphere:2"))).unwrap();
        println!("{name}: {} rows, {} distinct, {:?}", data.rows(), data.distinct_rows(), data.guesses);
        assert_eq!(data.rows(), rows, "{name}");
        assert!(distinct.is_none_or(|d| d == data.distinct_rows()), "{name}: {}", data.distinct_rows());
        assert_eq!(data.coordinates.to_string(), format!("sphere:2 from {columns} as latlon in degrees"));
        assert_eq!(data.sha256, catalogue::find(name).unwrap().files[0].sha256);
        let leaked = leaked_share(&data.points, 3, &data.split(1));
        println!("{name}: {:.1} % of the test rows repeat a training row", 100.0 * leaked);
        assert_eq!(leaked > 0.5, name == "volcano");
        if name != "fire" {
            assert_eq!(
                Dataset::read(&path, &on(None)).unwrap().coordinates,
                data.coordinates,
                "the names tell the sphere"
            );
        }
    }
}

#[test]
fn rna_is_seven_angles_beside_two_columns_of_text() {
    let Some(path) = file("rna") else { return };
    let data = Dataset::read(&path, &on(Some("torus:7"))).unwrap();
    assert_eq!((data.rows(), data.points.len()), (9478, 9478 * 7));
    assert_eq!(data.coordinates.to_string(), "torus:7 from columns 3, 4, 5, 6, 7, 8, 9 as angles in degrees");
    let message = Dataset::read(&path, &on(Some("torus:9"))).unwrap_err().to_string();
    assert!(message.contains("7 of numbers (3, 4, 5, 6, 7, 8, 9)"), "{message}");
}

#[test]
fn other_tables_are_read() {
    for (name, rows, columns, numeric) in [
        ("wine/winequality-red.csv", 1599, 12, 12),
        ("wine/winequality-white.csv", 4898, 12, 12),
        ("parkinsons", 5875, 22, 22),
        ("mammals", 6540, 3, 1),
    ] {
        let Some(path) = file(name) else { continue };
        let table = Table::read(&path, &Options::default()).unwrap();
        let numbers = table.columns.iter().filter(|c| c.is_numeric()).count();
        assert_eq!((table.rows(), table.columns.len(), numbers), (rows, columns, numeric), "{name}");
    }
}

#[test]
fn the_catalogue_knows_the_files_that_are_here() {
    for known in catalogue::list().unwrap().iter().filter(|known| known.archive.is_none()) {
        let Some(path) = known.path() else { continue };
        let folder = if path.is_dir() { path } else { path.parent().unwrap().to_path_buf() };
        for file in &known.files {
            assert_eq!(catalogue::sha256(&folder.join(&file.name)).unwrap(), file.sha256, "{}", file.name);
            assert_eq!(std::fs::metadata(folder.join(&file.name)).unwrap().len(), file.bytes, "{}", file.name);
        }
    }
}

#[test]
fn names_that_are_no_data_are_refused_with_advice() {
    let message = |name: &str| locate(name).unwrap_err().to_string();
    assert!(message("no-such-file.csv").contains("minvel data list"), "{}", message("no-such-file.csv"));
    let wine = message("wine");
    assert!(wine.contains("wine/winequality-red.csv") || wine.contains("minvel data fetch wine"), "{wine}");
    assert!(catalogue::find("wines").unwrap_err().to_string().contains("earthquake"));
    let scratch = scratch::Scratch::new("locate");
    let path = scratch.file("a.csv", "1");
    assert_eq!(locate(path.to_str().unwrap()).unwrap(), Input::File(path));
}

#[test]
fn the_earthquakes_are_inside_the_program_and_are_the_known_file() {
    for name in ["earthquake", "earthquake/quakes_all.csv"] {
        let input = locate(name).unwrap();
        assert!(matches!(input, Input::Embedded { .. }), "{input:?}");
        let data = Dataset::read(&input, &on(None)).unwrap();
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
