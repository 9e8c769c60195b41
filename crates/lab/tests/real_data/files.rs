//! Real files as people have them, and the catalogue that knows them.

use crate::support::needs::set;
use minvel::fit::leaked_share;
use minvel_lab::catalogue;
use minvel_lab::catalogue::Known;
use minvel_lab::catalogue::locate;
use minvel_lab::table::{Dataset, Request, Table, TableOptions};
use minvel_testing::{Test, note, test};

/// A file of places on Earth.
#[derive(Clone, Copy)]
struct Places {
    name: &'static str,
    rows: usize,
    distinct: Option<usize>,
    columns: &'static str,
}

const PLACES: [Places; 4] = [
    Places { name: "volcano", rows: 827, distinct: Some(267), columns: "Latitude, Longitude" },
    Places { name: "earthquake", rows: 6120, distinct: None, columns: "LATITUDE, LONGITUDE" },
    Places { name: "flood", rows: 4875, distinct: None, columns: "lat, long" },
    Places { name: "fire", rows: 12809, distinct: None, columns: "columns 1, 2" },
];

/// Of other files: set, file, rows, columns, columns of numbers.
const TABLES: [(&str, &str, [usize; 3]); 4] = [
    ("wine", "wine/winequality-red.csv", [1599, 12, 12]),
    ("wine", "wine/winequality-white.csv", [4898, 12, 12]),
    ("parkinsons", "parkinsons", [5875, 22, 22]),
    ("mammals", "mammals", [6540, 3, 1]),
];

pub fn tests() -> Vec<Test> {
    let test = |name: String, body: Box<dyn FnOnce() + Send>| Test::new(module_path!(), &name, body);
    let places = PLACES.map(|places| {
        let name = format!("places_on_earth_are_read_and_guessed::{}", places.name);
        test(name, Box::new(move || places_on_earth_are_read_and_guessed(places))).needs(set(places.name))
    });
    let tables = TABLES.map(|(known, file, numbers)| {
        let name = format!("other_tables_are_read::{file}");
        test(name, Box::new(move || other_tables_are_read(file, numbers))).needs(set(known))
    });
    let plain = |known: &&Known| known.archive.is_none() && !known.files.is_empty();
    let listed =
        catalogue::list().unwrap().iter().filter(plain).filter(|known| known.name != "earthquake").map(|known| {
            let name = format!("the_catalogue_knows_the_files_that_are_here::{}", known.name);
            test(name, Box::new(|| the_catalogue_knows_the_files_that_are_here(known))).needs(set(&known.name))
        });
    let rna = test!(rna_is_seven_angles_beside_two_columns_of_text).needs(set("rna"));
    places.into_iter().chain(tables).chain(listed).chain([rna]).collect()
}

fn on(manifold: Option<&str>) -> Request {
    Request { manifold: manifold.map(str::to_string), ..Request::default() }
}

fn places_on_earth_are_read_and_guessed(Places { name, rows, distinct, columns }: Places) {
    let path = locate(name).unwrap();
    let data = Dataset::read(&path, &on(Some("sphere:2"))).unwrap();
    note!("{name}: {} rows, {} distinct, {:?}", data.rows(), data.distinct_rows(), data.guesses);
    assert_eq!(data.rows(), rows, "{name}");
    assert!(distinct.is_none_or(|d| d == data.distinct_rows()), "{name}: {}", data.distinct_rows());
    assert_eq!(data.coordinates.to_string(), format!("sphere:2 from {columns} as latlon in degrees"));
    assert_eq!(data.sha256, catalogue::find(name).unwrap().files[0].sha256);
    let leaked = leaked_share(&data.points, 3, &data.split(1));
    note!("{name}: {:.1} % of the test rows repeat a training row", 100.0 * leaked);
    assert_eq!(leaked > 0.5, name == "volcano");
    if name != "fire" {
        assert_eq!(Dataset::read(&path, &on(None)).unwrap().coordinates, data.coordinates, "the names tell the sphere");
    }
}

fn rna_is_seven_angles_beside_two_columns_of_text() {
    let path = locate("rna").unwrap();
    let data = Dataset::read(&path, &on(Some("torus:7"))).unwrap();
    assert_eq!((data.rows(), data.points.len()), (9478, 9478 * 7));
    assert_eq!(data.coordinates.to_string(), "torus:7 from columns 3, 4, 5, 6, 7, 8, 9 as angles in degrees");
    let message = Dataset::read(&path, &on(Some("torus:9"))).unwrap_err().to_string();
    assert!(message.contains("7 numeric columns (3, 4, 5, 6, 7, 8, 9)"), "{message}");
}

fn other_tables_are_read(name: &str, [rows, columns, numeric]: [usize; 3]) {
    let path = locate(name).unwrap();
    let table = Table::read(&path, &TableOptions::default()).unwrap();
    let numbers = table.columns.iter().filter(|c| c.is_numeric()).count();
    assert_eq!((table.rows(), table.columns.len(), numbers), (rows, columns, numeric), "{name}");
}

fn the_catalogue_knows_the_files_that_are_here(known: &Known) {
    let path = known.path().unwrap();
    let folder = if path.is_dir() { path } else { path.parent().unwrap().to_path_buf() };
    for file in &known.files {
        assert_eq!(catalogue::sha256(&folder.join(&file.name)).unwrap(), file.sha256, "{}", file.name);
        assert_eq!(std::fs::metadata(folder.join(&file.name)).unwrap().len(), file.bytes, "{}", file.name);
    }
}
