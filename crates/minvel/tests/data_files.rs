//! Names that people give data by, and the catalogue that knows them. Files of the catalogue: real_data/files.rs.

#[path = "support/scratch.rs"]
mod scratch;

use minvel::data::{catalogue, locate};

#[test]
fn names_that_are_no_data_are_refused_with_advice() {
    let message = |name: &str| locate(name).unwrap_err().to_string();
    assert!(message("no-such-file.csv").contains("minvel data list"), "{}", message("no-such-file.csv"));
    let wine = message("wine");
    assert!(wine.contains("wine/winequality-red.csv") || wine.contains("minvel data fetch wine"), "{wine}");
    assert!(catalogue::find("wines").unwrap_err().to_string().contains("earthquake"));
    let scratch = scratch::Scratch::new("locate");
    let path = scratch.file("a.csv", "1");
    assert_eq!(locate(path.to_str().unwrap()).unwrap(), path);
}
