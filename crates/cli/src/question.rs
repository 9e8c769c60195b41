//! Errors that are questions: the command lines to choose from.

use minvel::{Choice, Error};
use std::ffi::OsString;

/// What an error says; where a file can be read in several ways, with the user's own command line completed in each.
pub fn explain(error: &Error, arguments: &[OsString]) -> String {
    let Error::Ambiguous { path, what, choices } = error else { return error.to_string() };
    let head = Error::content(path, what);
    let given: Vec<String> = arguments.iter().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    let lines: Vec<(String, &str)> = choices.iter().map(|c| (completed(&given, c), c.meaning.as_str())).collect();
    let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
    let lines = lines.iter().map(|(line, meaning)| format!("\n  {line:<width$}  {meaning}"));
    format!("{head}; choose one of:{}", lines.collect::<String>())
}

/// A command line with a choice instead of what it said before about the same option.
fn completed(given: &[String], choice: &Choice) -> String {
    let name = choice.option.split('=').next().unwrap_or_default();
    let (flag, with_value) = (format!("--{name}"), format!("--{name}="));
    let mut kept = vec!["minvel".to_string()];
    let mut arguments = given.iter();
    while let Some(argument) = arguments.next() {
        if *argument == flag {
            if !choice.value.is_empty() {
                arguments.next();
            }
        } else if !argument.starts_with(&with_value) {
            kept.push(quoted(argument));
        }
    }
    kept.push(choice.to_string());
    kept.join(" ")
}

/// An argument as a shell takes it.
fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./:=,+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_string();
    }
    format!("'{}'", argument.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_replaces_what_was_said_about_it_and_arguments_are_quoted() {
        let given = ["fit", "my file.csv", "--units", "degrees", "--units=degrees", "--trust"].map(String::from);
        let choice = Choice::new("units", "radians", "");
        assert_eq!(completed(&given, &choice), "minvel fit 'my file.csv' --trust --units radians");
        let choice = Choice::new("axial=false", "", "");
        let given = ["fit", "a.csv", "--axial=true", "--axial"].map(String::from);
        assert_eq!(completed(&given, &choice), "minvel fit a.csv --axial=false");
    }
}
