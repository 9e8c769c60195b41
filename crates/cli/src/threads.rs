//! How many threads a command uses.

use crate::progress::Bars;
use clap::Args;
use minvel::train::Context;

/// The option of all commands that compute.
#[derive(Args, Clone, Copy)]
pub struct Threads {
    /// Number of threads [default: all cores]; does not affect the results.
    #[arg(id = "threads", long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub number: usize,
}

impl Threads {
    /// Where work is shown by bars, and stopped by signals.
    pub fn context(self, bars: &Bars) -> Context<'_> {
        let mut context = Context::watched(bars, crate::stop::on_signal());
        context.threads = self.number;
        context
    }
}
