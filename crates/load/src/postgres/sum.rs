//! A column of a result added up while it is read.

use std::error::Error;
use std::pin::pin;

use futures_util::TryStreamExt;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, Statement};

use super::failure;
use crate::client::{Arguments, Failure, Outcome};

/// Run a statement and add up one column of its rows.
pub(super) async fn execute(
    client: &Client,
    statement: &Statement,
    arguments: Arguments<'_>,
    column: &str,
) -> Result<Outcome, Failure> {
    let mut columns = statement.columns().iter();
    let column = columns
        .position(|one| one.name() == column)
        .ok_or_else(|| Failure::no_column(column))?;
    let rows = client.query_raw(statement, arguments.iter()).await;
    let mut rows = pin!(rows.map_err(|error| failure(&error))?);
    let mut outcome = Outcome::default();
    while let Some(row) = rows.try_next().await.map_err(|error| failure(&error))? {
        let number: Option<Whole> = row.try_get(column).map_err(|error| failure(&error))?;
        outcome.add(Outcome {
            rows: 1,
            sum: number.map_or(0, |Whole(number)| number),
        });
    }
    Ok(outcome)
}

/// A whole number of any of the server's types; `sum` and `count` return the larger ones.
struct Whole(i64);

impl FromSql<'_> for Whole {
    fn from_sql(ty: &Type, raw: &[u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(match *ty {
            Type::INT2 => i16::from_sql(ty, raw)?.into(),
            Type::INT4 => i32::from_sql(ty, raw)?.into(),
            Type::INT8 => i64::from_sql(ty, raw)?,
            _ => numeric(raw).ok_or("not a whole number of at most 64 bits")?,
        }))
    }

    fn accepts(ty: &Type) -> bool {
        matches!(*ty, Type::INT2 | Type::INT4 | Type::INT8 | Type::NUMERIC)
    }
}

/// Reads the binary form of `numeric`: digits of base 10,000, the first of them worth 10,000^weight.
fn numeric(raw: &[u8]) -> Option<i64> {
    const NEGATIVE: i16 = 0x4000;
    const POSITIVE: i16 = 0;
    let mut words = raw
        .chunks_exact(2)
        .map(|word| i16::from_be_bytes([word[0], word[1]]));
    let (_count, weight, sign, _scale) =
        (words.next()?, words.next()?, words.next()?, words.next()?);
    let mut number: i64 = 0;
    let mut digits = words;
    for _ in 0..=weight {
        let digit = i64::from(digits.next().unwrap_or(0));
        number = number.checked_mul(10_000)?.checked_add(digit)?;
    }
    let whole = digits.all(|digit| digit == 0);
    match sign {
        POSITIVE if whole => Some(number),
        NEGATIVE if whole => Some(-number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::numeric;

    fn raw(weight: i16, sign: i16, digits: &[i16]) -> Vec<u8> {
        let head = [digits.len() as i16, weight, sign, 0];
        let words = head.iter().chain(digits);
        words.flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn whole_numerics_are_read() {
        assert_eq!(numeric(&raw(0, 0, &[])), Some(0));
        assert_eq!(numeric(&raw(1, 0, &[12, 3456])), Some(123_456));
        assert_eq!(numeric(&raw(2, 0x4000, &[5])), Some(-500_000_000));
    }

    #[test]
    fn fractions_and_what_does_not_fit_are_not() {
        assert_eq!(numeric(&raw(0, 0, &[1, 5000])), None);
        assert_eq!(numeric(&raw(5, 0, &[9999; 6])), None);
        assert_eq!(numeric(&raw(0, 0xc000_u16 as i16, &[])), None);
    }
}
