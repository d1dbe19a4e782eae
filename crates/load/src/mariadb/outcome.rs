//! The result of a statement, and the sum of one of its columns.

use mysql_async::{BinaryProtocol, QueryResult, Value};

use super::failure;
use crate::client::{Failure, Outcome};

/// Read a result to its end.
pub(super) async fn read(
    mut result: QueryResult<'_, '_, BinaryProtocol>,
    sum: Option<&str>,
) -> Result<Outcome, Failure> {
    let columns = result.columns_ref();
    if columns.is_empty() {
        let rows = result.affected_rows();
        return Ok(Outcome { rows, sum: 0 });
    }
    let named = |name: &str| columns.iter().position(|one| one.name_str() == name);
    let column = match sum {
        Some(name) => Some(named(name).ok_or_else(|| Failure::no_column(name))?),
        None => None,
    };
    let mut outcome = Outcome::default();
    while let Some(mut row) = result.next().await.map_err(|error| failure(&error))? {
        let number = column.and_then(|column| row.take(column));
        outcome.add(Outcome {
            rows: 1,
            sum: number.map_or(Ok(None), whole)?.unwrap_or(0),
        });
    }
    Ok(outcome)
}

/// A whole number of any of the server's types; `sum` gives decimals, which come as text.
pub(super) fn whole(value: Value) -> Result<Option<i64>, Failure> {
    let number = match &value {
        Value::NULL => return Ok(None),
        Value::Int(number) => Some(*number),
        Value::UInt(number) => i64::try_from(*number).ok(),
        Value::Bytes(text) => {
            let text = std::str::from_utf8(text).ok();
            text.and_then(|text| text.parse().ok())
        }
        _ => None,
    };
    let problem = || format!("{} is not a whole number", value.as_sql(false));
    number.map(Some).ok_or_else(|| Failure::new(problem()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_read_and_others_named() {
        assert_eq!(whole(Value::NULL), Ok(None));
        assert_eq!(whole(Value::Int(-7)), Ok(Some(-7)));
        assert_eq!(whole(Value::Bytes(b"123".to_vec())), Ok(Some(123)));
        for other in [Value::Double(0.5), Value::UInt(u64::MAX)] {
            assert!(
                whole(other)
                    .unwrap_err()
                    .message
                    .contains("not a whole number")
            );
        }
    }
}
