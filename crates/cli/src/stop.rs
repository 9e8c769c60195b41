//! Ctrl-C, and a polite kill, stop the program within a second.

use minvel::file;
use minvel::train::Stop;
use std::process::exit;
use std::sync::{Mutex, MutexGuard, Once};
use std::time::Duration;

/// How long work may take to stop at a safe place. Nothing is lost beyond it but work since the last checkpoint: files are
/// there wholly or not at all.
const GRACE: Duration = Duration::from_millis(700);

/// Exit status of a program that was interrupted.
pub const STATUS: u8 = 130;

/// What the user is told at the end.
fn advice() -> MutexGuard<'static, String> {
    static ADVICE: Mutex<String> = Mutex::new(String::new());
    ADVICE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Says what the user is told if the program is interrupted from now on.
pub fn advise(words: impl Into<String>) {
    *advice() = words.into();
}

/// A request to stop, made by Ctrl-C or a polite kill. Work stops at the next safe place; where that is not near, the
/// program ends all the same. The second time it ends at once.
pub fn on_signal() -> Stop {
    advise("interrupted; nothing was written");
    let stop = Stop::default();
    let asked = stop.clone();
    let handler = move || {
        if asked.ask() {
            end();
        }
        std::thread::spawn(|| {
            std::thread::sleep(GRACE);
            last_words();
            end();
        });
    };
    ctrlc::set_handler(handler).expect("no other handler is set");
    stop
}

/// Tells the user how it ended, once.
pub fn last_words() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| note!("\n{}", advice()));
}

fn end() -> ! {
    file::abandon();
    exit(STATUS.into())
}
