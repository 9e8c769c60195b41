//! Wasserstein auto-encoders of faces, or of any folder of pictures: velocity and adversarial matching.
//!
//! **Source.** wang2020mvl; docs/math §4.9. **Conventions.** Pictures are cut square in the middle and scaled; in the
//! order of their paths the first are learnt from and the last are tested with. Energy and critic are normalised spectrally.
//! **Checked by** tests/lab/experiment_cifar.rs.

use super::cifar::Sweep;
use crate::experiment::Entry;

/// The line in the list.
pub const ENTRY: Entry = Entry {
    name: "celeba",
    source: "The paper's CelebA numbers",
    about: "Fréchet distance of faces, or of a folder of your own, under Wasserstein auto-encoders: ours and adversarial",
    settings: include_str!("../../experiments/celeba.toml"),
    check: |config| Ok(Box::new(Sweep::check(config)?)),
    hidden: false,
};
