//! Settings as written: a TOML file, its quick variant, and what the command line overrides.
//!
//! The file states every setting, so that it is also the list of those that exist: an unknown key is an error that names
//! the nearest known one. A table `[quick]` holds what `--quick` changes.

use minvel::Error;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// Settings of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    file: String,
    table: Table,
    quick: Option<Table>,
    is_quick: bool,
}

impl Config {
    /// Reads TOML; `file` is for messages.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let bad = |e: toml::de::Error| Error::config(format!("{file}: {}", e.to_string().trim_end()));
        let mut table: Table = text.parse().map_err(bad)?;
        let quick = match table.remove("quick") {
            None => None,
            Some(Value::Table(quick)) => Some(quick),
            Some(_) => return Err(Error::config(format!("{file}: `quick` must be a table"))),
        };
        let config = Config { file: file.to_string(), table, quick: None, is_quick: false };
        if let Some(quick) = &quick {
            config.clone().merge(quick, "")?;
        }
        Ok(Config { quick, ..config })
    }

    /// These settings with those of another file over them; keys that the first does not have are errors.
    pub fn overlay(mut self, other: &Config) -> Result<Self, Error> {
        self.merge(&other.table, "").map_err(|e| Error::config(format!("{}: {e}", other.file)))?;
        if let Some(quick) = &other.quick {
            self.clone().merge(quick, "").map_err(|e| Error::config(format!("{}: {e}", other.file)))?;
            self.quick = Some(quick.clone());
        }
        Ok(self)
    }

    /// The quick variant; an error if the file has none.
    pub fn quick(mut self) -> Result<Self, Error> {
        let quick = self.quick.take();
        let quick = quick.ok_or_else(|| Error::config(format!("{}: there are no quick settings", self.file)))?;
        self.merge(&quick, "")?;
        Ok(Config { is_quick: true, ..self })
    }

    /// Whether these are the quick settings.
    pub fn is_quick(&self) -> bool {
        self.is_quick
    }

    /// Overrides a setting, given as `key=value` or `table.key=value` with a TOML value; plain words are strings.
    pub fn set(&mut self, assignment: &str) -> Result<(), Error> {
        let (key, value) = assignment
            .split_once('=')
            .ok_or_else(|| Error::config(format!("`{assignment}` is not of the form key=value")))?;
        let (key, value) = (key.trim(), value.trim());
        let parsed = format!("value = {value}").parse::<Table>().ok().and_then(|mut t| t.remove("value"));
        let value = parsed.unwrap_or_else(|| Value::String(value.to_string()));
        let nested = key
            .rsplit('.')
            .fold(value, |inner, part| Value::Table(Table::from_iter([(part.trim().to_string(), inner)])));
        let Value::Table(change) = nested else { unreachable!("a key has at least one part") };
        self.merge(&change, "")
    }

    /// All settings as the type that the experiment wants; an error names the key.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let text = |e: toml::de::Error| {
            // the last line of the text, the only place of the key, is "in `table.key`"
            let (message, shown) = (e.message(), e.to_string());
            let place = shown.trim_end().lines().last().and_then(|line| line.strip_prefix("in "));
            let place = place.map_or(String::new(), |key| format!("{key}: "));
            Error::config(format!("{}: {place}{message}", self.file))
        };
        Value::Table(self.table.clone()).try_into().map_err(text)
    }

    /// An error about a setting.
    pub fn refuse(&self, key: &str, what: &str) -> Error {
        Error::config(format!("{}: `{key}` {what}", self.file))
    }

    /// All settings, for the report.
    pub fn json(&self) -> serde_json::Value {
        serde_json::to_value(&self.table).expect("TOML without dates is JSON")
    }

    /// All settings as TOML, sorted: equal settings give equal text.
    pub fn text(&self) -> String {
        toml::to_string(&self.table).expect("a table is TOML")
    }

    /// All settings as TOML in the order and with the comments of a file that has one on each line, as that of the
    /// defaults; what the file says of quick settings is left out.
    pub fn commented(&self, file: &str) -> String {
        let (mut out, mut table, mut quick) = (String::new(), String::new(), false);
        for line in file.lines() {
            let code = line.split('#').next().unwrap_or_default().trim();
            if let Some(name) = code.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                (table, quick) = (name.trim().to_string(), name.trim() == "quick");
            }
            if quick {
                continue;
            }
            let new = code.split_once('=').and_then(|(key, old)| Some((old.trim(), self.value(&table, key.trim())?)));
            out += &match new {
                Some((old, value))
                    if format!("x = {old}").parse() != Ok(Table::from_iter([("x".into(), value.clone())])) =>
                {
                    let (key, rest) = line.split_once('=').unwrap_or_default();
                    format!("{key}={}", rest.replacen(old, &format!("{:<1$}", value.to_string(), old.len()), 1))
                        .trim_end()
                        .to_string()
                }
                _ => line.to_string(),
            };
            out.push('\n');
        }
        out.trim_end().to_string() + "\n"
    }

    /// A setting of a table, or of none.
    fn value(&self, table: &str, key: &str) -> Option<&Value> {
        let parts = table.split('.').filter(|part| !part.is_empty());
        parts.into_iter().try_fold(&self.table, |inner, part| inner.get(part)?.as_table())?.get(key)
    }

    /// The settings that it states, as `table.key`.
    pub fn keys(&self) -> Vec<String> {
        fn below(table: &Table, prefix: &str, keys: &mut Vec<String>) {
            for (key, value) in table {
                match value {
                    Value::Table(inner) => below(inner, &format!("{prefix}{key}."), keys),
                    _ => keys.push(format!("{prefix}{key}")),
                }
            }
        }
        let mut keys = vec![];
        below(&self.table, "", &mut keys);
        keys
    }

    fn merge(&mut self, change: &Table, prefix: &str) -> Result<(), Error> {
        merge(&mut self.table, change, prefix)
    }
}

fn merge(table: &mut Table, change: &Table, prefix: &str) -> Result<(), Error> {
    for (key, value) in change {
        let full = format!("{prefix}{key}");
        match (table.get_mut(key), value) {
            (Some(Value::Table(inner)), Value::Table(change)) => merge(inner, change, &format!("{full}."))?,
            (Some(old), value) => *old = fitted(old, value, &full)?,
            (None, _) => {
                let hint = nearest(key, table.keys().map(String::as_str));
                let hint = hint.map_or(String::new(), |n| format!(" Did you mean `{prefix}{n}`?"));
                let known: Vec<&str> = table.keys().map(String::as_str).collect();
                let known = known.join(", ");
                return Err(Error::config(format!("unknown setting `{full}`.{hint} Expected one of {known}.")));
            }
        }
    }
    Ok(())
}

/// The new value if it is of the old one's type; whole numbers are numbers too.
fn fitted(old: &Value, new: &Value, key: &str) -> Result<Value, Error> {
    match (old, new) {
        (Value::Float(_), Value::Integer(i)) => Ok(Value::Float(*i as f64)),
        (Value::Array(old), Value::Array(new)) => {
            let Some(first) = old.first() else { return Ok(Value::Array(new.clone())) };
            new.iter().map(|v| fitted(first, v, key)).collect::<Result<_, _>>().map(Value::Array)
        }
        (old, new) if old.same_type(new) => Ok(new.clone()),
        (old, new) => {
            let (wanted, given) = (old.type_str(), new.type_str());
            Err(Error::config(format!("setting `{key}` expects type {wanted} (such as {old}), not {given} ({new})")))
        }
    }
}

/// The known word with the fewest letters to change, if they are few.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, best) = known.map(|k| (strsim::levenshtein(word, k), k)).min_by_key(|(d, _)| *d)?;
    (distance <= 1 + word.chars().count() / 3).then_some(best)
}
