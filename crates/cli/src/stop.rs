//! Ctrl-C asks long work to stop at a safe place.

use minvel::train::Stop;

/// A request to stop, made by Ctrl-C or a polite kill; the second time the program ends at once.
pub fn on_signal() -> Stop {
    let stop = Stop::default();
    let asked = stop.clone();
    let handler = move || {
        if asked.ask() {
            std::process::exit(130);
        }
        eprintln!("\nstopping at the next safe place (Ctrl-C again to stop at once)");
    };
    ctrlc::set_handler(handler).expect("no other handler is set");
    stop
}
