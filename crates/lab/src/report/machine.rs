//! On what and with what a report was made.

use serde::{Deserialize, Serialize};
use std::num::NonZero;

/// The computer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the processor, as it calls itself.
    pub cpu: String,
    /// Cores that this program may use.
    pub cores: usize,
    /// Memory in GiB; 0 where the system does not tell.
    pub memory_gib: f64,
    /// Operating system and architecture.
    pub system: String,
}

impl Machine {
    /// This one.
    pub fn here() -> Self {
        let line = |file: &str, key: &str| {
            let text = std::fs::read_to_string(file).ok()?;
            let line = text.lines().find(|line| line.starts_with(key))?.to_string();
            Some(line.split_once(':')?.1.trim().to_string())
        };
        let kib = line("/proc/meminfo", "MemTotal").and_then(|m| m.split(' ').next()?.parse::<f64>().ok());
        Machine {
            cpu: line("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_string()),
            cores: std::thread::available_parallelism().map_or(1, NonZero::get),
            memory_gib: (kib.unwrap_or(0.0) / (1 << 20) as f64 * 10.0).round() / 10.0,
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }
}

/// Of what the program is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Versions {
    /// Version of minvel.
    pub minvel: String,
    /// The compiler; `unknown` where the program does not know.
    pub rustc: String,
}

impl Default for Versions {
    fn default() -> Self {
        Versions { minvel: env!("CARGO_PKG_VERSION").to_string(), rustc: "unknown".to_string() }
    }
}
