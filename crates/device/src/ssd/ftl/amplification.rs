//! Write amplification of uniform random writes, in closed form.

/// Steps of the bisection: each gains a bit.
const STEPS: u32 = 60;

/// Write amplification under uniform random writes with a share `spare_share` of flash beyond the addressable
/// size, in the limit of large blocks: (1+ρ) / (1+ρ + W₀(−(1+ρ)e^{−(1+ρ)})).
///
/// Sources: Xiang and Kurkoski, "An improved analytic expression for write amplification in NAND flash", ICNC
/// 2012; Desnoyers, "Analytic modeling of SSD write performance", SYSTOR 2012.
pub fn uniform_write_amplification(spare_share: f64) -> f64 {
    1.0 / (1.0 - victim_valid_share(1.0 + spare_share))
}

/// Share of valid units in the blocks that cleaning takes, where there are `space` slots for each valid unit.
///
/// Blocks are written at an even rate and each loses a valid unit in proportion to those it has. So if x is
/// the share left when a block is cleaned, a block has lost −ln x of a decay time on its way, and the mean
/// over all blocks, (1 − x) / −ln x, must be 1 / space. Then x = −W₀(−space·e^{−space}) / space.
pub(super) fn victim_valid_share(space: f64) -> f64 {
    let excess = |share: f64| space * (1.0 - share) + share.ln();
    let (mut low, mut high) = (f64::MIN_POSITIVE, 1.0 / space);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        if excess(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}
