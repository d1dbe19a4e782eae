//! Values made from those that other generators drew, and the order of drawing that results.

use crate::generator_spec::GeneratorSpec;

/// How generators of one workload, or of one table, depend on each other.
#[derive(Debug)]
pub(crate) struct Derivation {
    sources: Vec<Vec<usize>>,
    depths: Vec<usize>,
}

impl Derivation {
    /// Resolve names to positions.
    ///
    /// # Errors
    /// If a name is unknown, or generators are made of each other.
    pub fn new<'a>(
        named: impl Iterator<Item = (&'a str, &'a GeneratorSpec)>,
    ) -> Result<Self, String> {
        let named: Vec<_> = named.collect();
        let find = |name: &str, of: &str| {
            let found = named.iter().position(|(known, _)| *known == of);
            found.ok_or_else(|| format!("{name} names {of:?}, which is unknown"))
        };
        let sources = named.iter().map(|(name, spec)| {
            let sources = spec.sources();
            sources.into_iter().map(|of| find(name, of)).collect()
        });
        let sources: Vec<Vec<usize>> = sources.collect::<Result<_, String>>()?;
        let depths = depths(&sources).ok_or("some are made of each other")?;
        Ok(Self { sources, depths })
    }

    /// The values that a value is made from, directly.
    pub fn sources(&self, slot: usize) -> &[usize] {
        &self.sources[slot]
    }

    /// Add the values that those in `slots` are made from, directly or not.
    pub fn add_sources(&self, slots: &mut Vec<usize>) {
        let mut next = 0;
        while next < slots.len() {
            let sources = &self.sources[slots[next]];
            let new: Vec<_> = sources.iter().filter(|one| !slots.contains(one)).collect();
            slots.extend(new);
            next += 1;
        }
    }

    /// Each once: sources of other values first, else in the order of declaration.
    pub fn in_order(&self, mut slots: Vec<usize>) -> Vec<usize> {
        slots.sort_unstable_by_key(|&slot| (self.depths[slot], slot));
        slots.dedup();
        slots
    }
}

/// Length of the longest chain of sources before each; `None` if that has no end.
fn depths(sources: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut depths = vec![0; sources.len()];
    for _ in 0..=sources.len() {
        let deeper = |of: &Vec<usize>| of.iter().map(|&one| depths[one] + 1).max().unwrap_or(0);
        let next: Vec<usize> = sources.iter().map(deeper).collect();
        if next == depths {
            return Some(depths);
        }
        depths = next;
    }
    None
}
