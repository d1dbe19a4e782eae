//! Values on their way to the server, and numbers on their way back.

use mysql_async as server;

use crate::client::Failure;
use crate::value::Value;

/// A value as the parameter of a prepared statement.
pub(super) fn bind(value: &Value) -> server::Value {
    match value {
        Value::Int(number) => server::Value::Int(*number),
        Value::Float(number) => server::Value::Double(*number),
        Value::Text(text) => server::Value::Bytes(text.as_bytes().to_vec()),
    }
}

/// A whole number of any of the server's types; `sum` gives decimals, which come as text.
pub(super) fn whole(value: server::Value) -> Result<Option<i64>, Failure> {
    let number = match &value {
        server::Value::NULL => return Ok(None),
        server::Value::Int(number) => Some(*number),
        server::Value::UInt(number) => i64::try_from(*number).ok(),
        server::Value::Bytes(text) => {
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
        assert_eq!(whole(server::Value::NULL), Ok(None));
        assert_eq!(whole(server::Value::Int(-7)), Ok(Some(-7)));
        assert_eq!(whole(server::Value::Bytes(b"123".to_vec())), Ok(Some(123)));
        for other in [server::Value::Double(0.5), server::Value::UInt(u64::MAX)] {
            assert!(
                whole(other)
                    .unwrap_err()
                    .message
                    .contains("not a whole number")
            );
        }
    }
}
