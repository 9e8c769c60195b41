//! Progress: bars on a terminal, lines in a log.
//!
//! An experiment has a line for its units and one for the stage of the present unit. Other commands have stages only. Rates
//! are means over the stage, and time left is told as soon as something is done.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use minvel::estimate::format;
use minvel::train::Observer;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// In a log, stages that take longer tell how far they are each time it passes,
const LONG: Duration = Duration::from_secs(60);
/// and shorter ones of short commands are not told at all.
const SHORT: Duration = Duration::from_secs(1);

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
        let style = ProgressStyle::with_template("{prefix:.bold} {wide_bar:.blue} {pos}/{len} {elapsed} {msg}");
        units.set_style(style.expect("a sound template").progress_chars("━╸ "));
        units.set_prefix(experiment.to_string());
        units.enable_steady_tick(Duration::from_millis(200));
        Bars { log: Log::Units, ..Bars::over(self.clone(), experiment, Some(units)) }
    }
}

/// What a log is told.
#[derive(Clone, Copy, PartialEq)]
enum Log {
    /// Units of an experiment.
    Units,
    /// Every stage.
    Stages,
    /// Stages that take a while.
    LongStages,
}

/// Bars on a terminal, plain lines elsewhere.
pub struct Bars {
    screen: Screen,
    command: String,
    log: Log,
    units: Option<ProgressBar>,
    stage: Mutex<Option<Stage>>,
}

impl Bars {
    /// For a command that is short as a rule.
    pub fn new(command: &str) -> Self {
        Bars::over(Screen::new(), command, None)
    }

    /// For a command all of whose stages are told in a log.
    pub fn of_stages(command: &str) -> Self {
        Bars { log: Log::Stages, ..Bars::new(command) }
    }

    fn over(screen: Screen, command: &str, units: Option<ProgressBar>) -> Self {
        Bars { screen, command: command.to_string(), log: Log::LongStages, units, stage: Mutex::new(None) }
    }

    /// Clears the screen of bars.
    pub fn finish(&self) {
        if let Some(stage) = self.stage().take() {
            stage.bar.finish_and_clear();
        }
        if let Some(units) = &self.units {
            units.finish_and_clear();
        }
    }

    fn stage(&self) -> MutexGuard<'_, Option<Stage>> {
        self.stage.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Whether a log is told of a stage that has taken so long.
    fn logs(&self, taken: Duration) -> bool {
        !self.screen.visible && (self.log == Log::Stages || self.log == Log::LongStages && taken >= SHORT)
    }
}

/// A stage at work.
struct Stage {
    name: String,
    unit: String,
    bar: ProgressBar,
    begun: Instant,
    /// Units that were done before.
    before: u64,
    told: Instant,
}

impl Stage {
    /// What was done, for a log.
    fn done(&self) -> String {
        let (done, taken) = (self.bar.position() - self.before, self.begun.elapsed());
        let time = format::duration(taken.as_secs_f64());
        match (done, self.bar.length()) {
            (0, _) | (_, None | Some(0)) => time,
            (done, _) => format!("{done} {} in {time}{}", self.unit, comma(rate(done, taken, &self.unit))),
        }
    }

    /// How far it is, for a log.
    fn so_far(&self) -> String {
        match self.bar.length() {
            Some(all @ 1..) => {
                let (done, taken) = (self.bar.position(), self.begun.elapsed());
                format!("{done}/{all} {}{}", self.unit, comma(pace(done, self.before, all, taken, &self.unit)))
            }
            _ => format!("{}{}", format::duration(self.begun.elapsed().as_secs_f64()), comma(self.bar.message())),
        }
    }
}

fn comma(words: String) -> String {
    if words.is_empty() { words } else { format!(", {words}") }
}

/// Units in a second; nothing after too short a time.
fn rate(done: u64, taken: Duration, unit: &str) -> String {
    let rate = done as f64 / taken.as_secs_f64();
    match taken < Duration::from_millis(100) {
        true => String::new(),
        false if rate < 10.0 => format!("{rate:.1} {unit}/s"),
        false => format!("{rate:.0} {unit}/s"),
    }
}

/// Rate and time left; nothing before something is done.
fn pace(done: u64, before: u64, all: u64, taken: Duration, unit: &str) -> String {
    let rate = rate(done.saturating_sub(before), taken, unit);
    if done <= before || rate.is_empty() {
        return String::new();
    }
    let left = taken.as_secs_f64() * all.saturating_sub(done) as f64 / (done - before) as f64;
    format!("{rate}, {} left", format::duration(left))
}

/// A line of the screen for a stage: how much there is to do may not be known.
fn style(unit: &str, before: u64, known: bool) -> ProgressStyle {
    let template = match known {
        true => "{prefix} {wide_bar:.blue} {pos}/{len} {unit} {pace} {msg}",
        false => "{prefix} {spinner} {elapsed} {msg}",
    };
    let (named, own) = (unit.to_string(), unit.to_string());
    let unit = move |_: &ProgressState, out: &mut dyn Write| {
        let _ = out.write_str(&named);
    };
    let pace = move |state: &ProgressState, out: &mut dyn Write| {
        let pace = pace(state.pos(), before, state.len().unwrap_or(0), state.elapsed(), &own);
        let _ = out.write_str(&pace);
    };
    let style = ProgressStyle::with_template(template).expect("a sound template");
    style.with_key("unit", unit).with_key("pace", pace).progress_chars("━╸ ")
}

impl Observer for Bars {
    fn unit(&self, name: &str, number: usize, of: usize) {
        if let Some(units) = &self.units {
            units.set_length(of as u64);
            units.set_position(number as u64 - 1);
            units.set_message(name.to_string());
        }
    }

    fn unit_done(&self, name: &str, seconds: f64, resumed: bool) {
        let Some(units) = &self.units else { return };
        units.inc(1);
        if !self.screen.visible {
            let how = if resumed { " (resumed)" } else { "" };
            let (at, of) = (units.position(), units.length().unwrap_or(0));
            note!("{} [{at}/{of}] {name}: {}{how}", self.command, format::duration(seconds));
        }
    }

    fn begin(&self, name: &str, total: u64, unit: &str) {
        let mut stage = self.stage();
        if let Some(before) = stage.take() {
            before.bar.finish_and_clear();
        }
        let bar = ProgressBar::new(total);
        let (bar, prefix) = match &self.units {
            Some(units) => (self.screen.bars.insert_after(units, bar), format!("  {name}")),
            None => (self.screen.bars.add(bar), format!("{}: {name}", self.command)),
        };
        bar.set_style(style(unit, 0, total > 0));
        bar.set_prefix(prefix);
        bar.enable_steady_tick(Duration::from_millis(200));
        let now = Instant::now();
        let (name, unit) = (name.to_string(), unit.to_string());
        *stage = Some(Stage { name, unit, bar, begun: now, before: 0, told: now });
    }

    fn expect(&self, total: u64) {
        if let Some(stage) = self.stage().as_ref().filter(|_| total > 0) {
            if stage.bar.length().unwrap_or(0) == 0 {
                stage.bar.set_style(style(&stage.unit, stage.before, true));
            }
            stage.bar.set_length(total);
        }
    }

    fn resumed(&self, done: u64) {
        if let Some(stage) = self.stage().as_mut() {
            (stage.before, stage.begun) = (done, Instant::now());
            stage.bar.set_style(style(&stage.unit, done, stage.bar.length().unwrap_or(0) > 0));
            stage.bar.set_position(done);
            stage.bar.reset_elapsed();
        }
    }

    fn advance(&self, done: u64, note: &str) {
        let mut stage = self.stage();
        let Some(stage) = stage.as_mut() else { return };
        stage.bar.set_position(done);
        if !note.is_empty() {
            stage.bar.set_message(note.to_string());
        }
        if stage.told.elapsed() >= LONG && self.logs(stage.begun.elapsed()) {
            stage.told = Instant::now();
            note!("{}: {}: {}", self.command, stage.name, stage.so_far());
        }
    }

    fn end(&self) {
        let Some(stage) = self.stage().take() else { return };
        stage.bar.finish_and_clear();
        if self.logs(stage.begun.elapsed()) {
            note!("{}: {}: {}", self.command, stage.name, stage.done());
        }
    }
}
