//! Progress on the screen: a line for the units of an experiment and one for the steps of the present unit.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use minvel::report::format;
use minvel::train::Observer;
use std::fmt::Write;
use std::sync::Mutex;
use std::time::Duration;

/// Where the bars of one or several experiments stand.
#[derive(Clone)]
pub struct Screen {
    bars: MultiProgress,
    visible: bool,
}

impl Screen {
    /// The terminal, if there is one.
    pub fn new() -> Self {
        let visible = console::user_attended_stderr();
        let target = if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Screen { bars: MultiProgress::with_draw_target(target), visible }
    }

    /// Bars for an experiment.
    pub fn bars(&self, experiment: &str) -> Bars {
        let units = self.bars.add(ProgressBar::new(1));
        units.set_style(style("{prefix:.bold} {wide_bar:.blue} {pos}/{len} {elapsed} {msg}"));
        units.set_prefix(experiment.to_string());
        units.enable_steady_tick(Duration::from_millis(200));
        Bars { screen: self.clone(), units, steps: Mutex::new(None) }
    }
}

/// Bars on a terminal, plain lines elsewhere.
pub struct Bars {
    screen: Screen,
    units: ProgressBar,
    steps: Mutex<Option<ProgressBar>>,
}

impl Bars {
    /// Bars for an experiment that has the terminal for itself.
    pub fn new(experiment: &str) -> Self {
        Screen::new().bars(experiment)
    }

    /// Clears the screen of bars.
    pub fn finish(&self) {
        self.end();
        self.units.finish_and_clear();
    }

    fn steps(&self) -> std::sync::MutexGuard<'_, Option<ProgressBar>> {
        self.steps.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn style(template: &str) -> ProgressStyle {
    let rate = |state: &ProgressState, out: &mut dyn Write| {
        let rate = state.per_sec();
        let _ = if rate < 10.0 { write!(out, "{rate:.1}/s") } else { write!(out, "{rate:.0}/s") };
    };
    ProgressStyle::with_template(template).expect("a sound template").with_key("rate", rate).progress_chars("━╸ ")
}

impl Observer for Bars {
    fn unit(&self, name: &str, number: usize, of: usize) {
        self.units.set_length(of as u64);
        self.units.set_position(number as u64 - 1);
        self.units.set_message(name.to_string());
    }

    fn unit_done(&self, name: &str, seconds: f64, resumed: bool) {
        self.units.inc(1);
        if !self.screen.visible {
            let how = if resumed { " (from before)" } else { "" };
            let (at, of) = (self.units.position(), self.units.length().unwrap_or(0));
            eprintln!("{} [{at}/{of}] {name}: {}{how}", self.units.prefix(), format::duration(seconds));
        }
    }

    fn begin(&self, name: &str, total: u64, done: u64) {
        self.end();
        let bar = ProgressBar::new(total).with_position(done);
        let bar = self.screen.bars.insert_after(&self.units, bar);
        bar.set_style(style("  {prefix} {wide_bar} {pos}/{len} {rate}, {eta} left {msg}"));
        bar.set_prefix(name.to_string());
        bar.reset_eta();
        *self.steps() = Some(bar);
    }

    fn advance(&self, done: u64, note: &str) {
        if let Some(bar) = self.steps().as_ref() {
            bar.set_position(done);
            bar.set_message(note.to_string());
        }
    }

    fn end(&self) {
        if let Some(bar) = self.steps().take() {
            bar.finish_and_clear();
        }
    }
}
