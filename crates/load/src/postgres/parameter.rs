//! Values as the parameters of a prepared statement, in the type that the server found for each.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{Format, IsNull, ToSql, Type};

use crate::value::Value;

impl ToSql for Value {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match (self, binary_type(ty)) {
            (Self::Int(number), Some(Binary::Int2)) => out.put_i16((*number).try_into()?),
            (Self::Int(number), Some(Binary::Int4)) => out.put_i32((*number).try_into()?),
            (Self::Int(number), Some(Binary::Int8)) => out.put_i64(*number),
            (Self::Int(number), Some(Binary::Float8)) => out.put_f64(*number as f64),
            (Self::Float(number), Some(Binary::Float8)) => out.put_f64(*number),
            (Self::Text(_) | Self::Float(_), Some(_)) => {
                return Err(format!("{self:?} given where the statement takes {ty}").into());
            }
            (Self::Int(number), None) => out.put_slice(number.to_string().as_bytes()),
            (Self::Float(number), None) => out.put_slice(number.to_string().as_bytes()),
            (Self::Text(text), None) => out.put_slice(text.as_bytes()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, ty: &Type) -> Format {
        if binary_type(ty).is_some() {
            Format::Binary
        } else {
            Format::Text
        }
    }

    tokio_postgres::types::to_sql_checked!();
}

/// Types whose binary form is a number; the server reads all others from text.
enum Binary {
    Int2,
    Int4,
    Int8,
    Float8,
}

fn binary_type(ty: &Type) -> Option<Binary> {
    match *ty {
        Type::INT2 => Some(Binary::Int2),
        Type::INT4 => Some(Binary::Int4),
        Type::INT8 => Some(Binary::Int8),
        Type::FLOAT8 => Some(Binary::Float8),
        _ => None,
    }
}
