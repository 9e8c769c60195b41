//! What is printed, for readers that may stop reading, as `head` does.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::process::exit;

/// Prints a line.
macro_rules! say {
    ($($text:tt)*) => { $crate::out::put(format_args!("{}\n", format_args!($($text)*))) };
}

/// Prints a line to standard error, if anybody reads it.
macro_rules! note {
    ($($text:tt)*) => { $crate::out::tell(format_args!("{}\n", format_args!($($text)*))) };
}

/// Prints text; ends the program quietly where nobody reads it any more.
pub fn put(text: Arguments) {
    put_bytes(text.to_string().as_bytes());
}

/// Prints bytes, in the same way.
pub fn put_bytes(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(e) if e.kind() == ErrorKind::BrokenPipe => exit(0),
        Err(e) => {
            note!("error: cannot print: {e}");
            exit(1)
        }
    }
}

/// Prints text to standard error. Notes are not what was asked for: work goes on without them, where `eprintln!` would
/// panic.
pub fn tell(text: Arguments) {
    let _ = io::stderr().lock().write_fmt(text);
}
