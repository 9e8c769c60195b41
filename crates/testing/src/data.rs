//! Data sets as needs of tests.

use crate::Need;

/// Sets that nobody has to have: too large for the data folder of the continuous integration, so that tests which need them are
/// skipped even if `MINVEL_DATA` is set.
const OPTIONAL: &[(&str, &str)] = &[("cifar10", "139 MB or more")];

/// A set of the catalogue, and whether it is on this machine. If `MINVEL_DATA` is set, it must be.
pub fn data_set(name: &str, here: bool) -> Need {
    let size = OPTIONAL.iter().find(|(optional, _)| *optional == name).map(|(_, size)| format!(", optional: {size}"));
    let folder = std::env::var_os("MINVEL_DATA").filter(|folder| !folder.is_empty());
    Need {
        what: format!("the data set {name}"),
        here,
        remedy: format!("minvel data fetch {name}{}", size.as_deref().unwrap_or_default()),
        required: folder.filter(|_| size.is_none()).map(|folder| format!("MINVEL_DATA is {}", folder.display())),
    }
}
