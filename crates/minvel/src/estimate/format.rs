//! Numbers for people: as many digits as the error leaves meaning to.

/// `−0.847 ± 0.003`, `4.02e-7 ± 2e-9`; without a known error, four digits.
pub fn with_error(value: f64, error: Option<f64>) -> String {
    let Some(error) = error.filter(|e| e.is_finite()) else { return plain(value) };
    // An error that is lost in the rounding of the value is none.
    if !value.is_finite() || error <= 1e-12 * value.abs() {
        return plain(value);
    }
    // Two digits of the error if its first is small, one otherwise; never finer than twelve digits of the value.
    let order = |x: f64| x.abs().log10().floor() as i32;
    let last = order(error) - if error / 10f64.powi(order(error)) < 3.0 { 1 } else { 0 };
    let size = if value == 0.0 { order(error) } else { order(value).max(order(error)) };
    let last = last.max(size - 12);
    if (-4..=6).contains(&size) && (last > -7 || size >= 0) {
        let places = (-last).max(0) as usize;
        return minus(format!("{value:.places$} ± {error:.places$}"));
    }
    let places = (size - last).max(0) as usize;
    let unit = 10f64.powi(size);
    minus(format!("({:.places$} ± {:.places$})e{size}", value / unit, error / unit))
}

/// Four digits.
pub fn plain(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() { "–".to_string() } else { minus(value.to_string()) };
    }
    let size = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    if (-4..=6).contains(&size) {
        let places = (3 - size).max(0) as usize;
        let text = format!("{value:.places$}");
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        return minus(text.to_string());
    }
    minus(format!("{value:.2e}"))
}

/// 95 s, 12 min, 1 h 05 min.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.0} h {:02.0} min", (s / 3600.0).floor(), (s % 3600.0) / 60.0),
    }
}

/// A minus sign as long as the digits are wide; exponents keep the short one, as programs write them.
fn minus(text: String) -> String {
    let parts: Vec<String> = text.split("e-").map(|part| part.replace('-', "−")).collect();
    parts.join("e-")
}
