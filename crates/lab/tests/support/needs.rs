//! Data sets that a test needs.

use minvel_lab::catalogue;
use minvel_lab::catalogue::locate;
use minvel_testing::Need;

/// Sets that nobody has to have: too large for the data folder of the continuous integration, so that tests which need them are
/// skipped even if `MINVEL_DATA` is set.
const OPTIONAL: &[(&str, &str)] = &[("cifar10", "139 MB or more")];

/// A set of the catalogue. If `MINVEL_DATA` is set, it must hold the set.
pub fn set(name: &str) -> Need {
    let known = catalogue::find(name).expect("tests name sets of the catalogue");
    let size = OPTIONAL.iter().find(|(optional, _)| *optional == name).map(|(_, size)| format!(", optional: {size}"));
    let folder = std::env::var_os("MINVEL_DATA").filter(|folder| !folder.is_empty());
    Need {
        what: format!("the data set {name}"),
        here: known.path().is_some() || locate(name).is_ok(),
        remedy: format!("minvel data fetch {name}{}", size.as_deref().unwrap_or_default()),
        required: folder.filter(|_| size.is_none()).map(|folder| format!("MINVEL_DATA is {}", folder.display())),
    }
}
