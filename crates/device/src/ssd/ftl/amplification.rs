//! Write amplification of uniform random writes, in closed form.

/// Steps of the bisection: each gains a bit.
const STEPS: u32 = 60;

/// Write amplification under uniform random writes with a share `spare_share` of flash beyond the addressable
/// size, above 0, in the limit of large blocks: (1+ρ) / (1+ρ + W₀(−(1+ρ)e^{−(1+ρ)})).
///
/// Sources: Xiang and Kurkoski, "An improved analytic expression for write amplification in NAND flash", ICNC
/// 2012; Desnoyers, "Analytic modeling of SSD write performance", SYSTOR 2012.
pub fn uniform_write_amplification(spare_share: f64) -> f64 {
    -1.0 / (-decay(1.0 + spare_share)).exp_m1()
}

/// How many decay times pass from the write of a block to its cleaning, as its share of valid units falls,
/// with `space` slots, more than 1, for each valid unit.
/// Blocks are written at an even rate, and each loses valid units in proportion to those it has. So the
/// mean share over blocks of all ages is (1 − e^{−decay}) / decay, and it must be 1 / space. The
/// remaining share is then −W₀(−space·e^{−space}) / space.
pub(super) fn decay(space: f64) -> f64 {
    let (mut low, mut high) = (space.ln(), space);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        if -space * (-middle).exp_m1() > middle {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}
