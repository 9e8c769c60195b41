//! Numbers in JSON, also those that JSON does not know: NaN is `null`, infinities are `"inf"` and `"-inf"`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Number {
    Finite(f64),
    Word(String),
    Nothing(()),
}

impl From<f64> for Number {
    fn from(x: f64) -> Self {
        match x {
            x if x.is_finite() => Number::Finite(x),
            x if x.is_nan() => Number::Nothing(()),
            x => Number::Word(x.to_string()),
        }
    }
}

impl TryFrom<Number> for f64 {
    type Error = String;
    fn try_from(number: Number) -> Result<f64, String> {
        match number {
            Number::Finite(x) => Ok(x),
            Number::Nothing(()) => Ok(f64::NAN),
            Number::Word(word) => match word.as_str() {
                "inf" => Ok(f64::INFINITY),
                "-inf" => Ok(f64::NEG_INFINITY),
                _ => Err(format!("`{word}` is not a number")),
            },
        }
    }
}

/// For `#[serde(with = …)]`.
pub fn serialize<S: Serializer>(x: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    Number::from(*x).serialize(serializer)
}

/// For `#[serde(with = …)]`.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Number::deserialize(deserializer)?.try_into().map_err(serde::de::Error::custom)
}

/// The same for lists of numbers.
pub mod list {
    use super::Number;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// For `#[serde(with = …)]`.
    pub fn serialize<S: Serializer>(list: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
        list.iter().map(|x| Number::from(*x)).collect::<Vec<_>>().serialize(serializer)
    }

    /// For `#[serde(with = …)]`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
        let list = Vec::<Number>::deserialize(deserializer)?;
        list.into_iter().map(f64::try_from).collect::<Result<_, _>>().map_err(serde::de::Error::custom)
    }
}
