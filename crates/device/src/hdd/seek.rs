//! Seek time by distance.
//!
//! Two ways to give it: a measured table, interpolated linearly; the curve of Lee and Katz (SIGMETRICS 1993),
//! `a·√(d−1) + b·(d−1) + c`, from the three times of a specification sheet.

use std::sync::Arc;

use super::bounds;
use crate::Nanos;
use crate::params_error::SectionResult;
use crate::profile_section::ProfileSection;

/// A seek curve; times in microseconds, distances in cylinders.
#[derive(Clone, Debug, PartialEq)]
pub enum SeekCurve {
    /// Measured (distance, time) pairs, ascending in distance.
    Table(Vec<(f64, f64)>),
    /// Lee and Katz: from single-cylinder, average and full-stroke time.
    LeeKatz {
        /// To the neighbouring cylinder.
        single_us: f64,
        /// Average over random pairs of cylinders.
        average_us: f64,
        /// Across all cylinders.
        full_us: f64,
        /// Number of cylinders.
        cylinders: f64,
    },
}

impl SeekCurve {
    pub(crate) fn parse(mut section: ProfileSection<'_>, cylinders: u32) -> SectionResult<Self> {
        let curve = section.word("curve", &["table", "lee-katz"])?;
        let rows = section.when(curve == "table", "table_us", |seek| {
            seek.pairs("table_us", bounds::SEEK_CYLINDERS, bounds::SEEK_US)
        })?;
        let mut lee_katz = |key| {
            section.when(curve == "lee-katz", key, |seek| {
                seek.number(key, bounds::SEEK_US)
            })
        };
        let (single_us, average_us) = (lee_katz("single_us")?, lee_katz("average_us")?);
        let full_us = lee_katz("full_us")?;
        let curve = match curve {
            "table" => Self::Table(rows),
            _ => Self::LeeKatz {
                single_us,
                average_us,
                full_us,
                cylinders: f64::from(cylinders),
            },
        };
        section.finish()?;
        Ok(curve)
    }

    /// Seek time over `distance` cylinders, 1 or more, in microseconds.
    pub fn time_us(&self, distance: f64) -> f64 {
        match self {
            Self::Table(rows) => interpolate(rows, distance),
            Self::LeeKatz {
                single_us,
                average_us,
                full_us,
                cylinders,
            } => {
                let root = (15.0 * average_us - 10.0 * single_us - 5.0 * full_us)
                    / (3.0 * cylinders.sqrt());
                let slope =
                    (7.0 * single_us - 15.0 * average_us + 8.0 * full_us) / (3.0 * cylinders);
                single_us + root * (distance - 1.0).sqrt() + slope * (distance - 1.0)
            }
        }
    }

    /// Seek time for every distance from 0 to `cylinders`, in nanoseconds: one look-up per request.
    pub(crate) fn by_distance(&self, cylinders: u32) -> Arc<[u32]> {
        let time = |distance| (self.time_us(f64::from(distance)) * 1e3).round() as Nanos as u32;
        std::iter::once(0)
            .chain((1..=cylinders).map(time))
            .collect()
    }
}

/// Linear between the rows, continued with the slope of the last two beyond them, never below 0.
fn interpolate(rows: &[(f64, f64)], distance: f64) -> f64 {
    let after = rows.partition_point(|row| row.0 < distance);
    if after == 0 || rows.len() == 1 {
        return rows[0].1;
    }
    let (low, high) = (
        rows[after.min(rows.len() - 1) - 1],
        rows[after.min(rows.len() - 1)],
    );
    let slope = (high.1 - low.1) / (high.0 - low.0);
    (low.1 + slope * (distance - low.0)).max(0.0)
}
