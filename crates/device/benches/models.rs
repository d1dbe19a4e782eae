//! Requests per processor-second of each model. Placeholder main until the profiles are in place.
fn main() {}
