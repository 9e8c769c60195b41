//! Sums over kernels on a GPU.
//!
//! **Statement.** As [`sums`](super::sums): the same bounds, the same kernels left out, for 32 rows at a time instead of eight.
//! **Conventions.** What is added for a row, and in which order, depends on the row alone. Manifolds that are no product of model
//! spaces, points of more than 32 numbers and lists of more than 64 families stay on the processor.
//! **Error.** ε of the density as there; the first sum, which decides what is left out, is taken in f32 and is 0.1 % lower.
//! **Checked by** tests/hardware/kernel_sums.rs.

#[cfg(feature = "cuda")]
mod layout;
#[cfg(feature = "cuda")]
mod run;
#[cfg(feature = "cuda")]
mod source;

use super::kernels::LocalKernels;
use crate::Error;
use crate::train::Context;
use minvel_engine::Device;
use std::fmt;

/// What is asked for at each point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// log p.
    Density,
    /// log of each family's own density.
    Families,
}

/// A density's lists in the memory of a GPU; none until they are asked for. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Resident {
    #[cfg(feature = "cuda")]
    there: std::sync::Arc<std::sync::Mutex<Option<std::sync::Arc<run::OnCard>>>>,
}

impl fmt::Debug for Resident {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Resident")
    }
}

/// Where the lists are is no part of a density.
impl PartialEq for Resident {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl LocalKernels {
    /// Sums on the context's GPU; none where it has none, or these kernels stay on the processor.
    pub(super) fn on_device(
        &self,
        points: &[f64],
        wanted: Wanted,
        context: &Context,
    ) -> Result<Option<Vec<f64>>, Error> {
        match context.device {
            Device::Cpu => Ok(None),
            #[cfg(feature = "cuda")]
            Device::Cuda(index) => self.on_card(index, points, wanted, context),
            #[cfg(not(feature = "cuda"))]
            Device::Cuda(_) => {
                let _ = (points, wanted);
                Ok(context.device.checked().map(|_| None)?)
            }
        }
    }
}
