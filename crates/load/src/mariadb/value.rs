//! Values as parameters of a prepared statement.

use mysql_async as server;

use crate::value::Value;

/// A value in the type that comes nearest.
pub(super) fn bind(value: &Value) -> server::Value {
    match value {
        Value::Int(number) => server::Value::Int(*number),
        Value::Float(number) => server::Value::Double(*number),
        Value::Text(text) => server::Value::Bytes(text.as_bytes().to_vec()),
    }
}
