//! Values of settings in the engines' notation.

/// A size: a number with the unit kB, MB or GB, of 1,024 each, or without a unit.
pub(super) fn size_bytes(text: &str) -> Option<u64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let shift = match unit.trim() {
        "" | "B" => 0,
        "kB" | "K" => 10,
        "MB" | "M" => 20,
        "GB" | "G" => 30,
        "TB" | "T" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}
