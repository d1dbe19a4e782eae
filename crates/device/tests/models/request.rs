//! A plain request.

use tierwise_device::{Op, Request};

pub fn request(op: Op, sector: u64, sectors: u32) -> Request {
    Request {
        op,
        sector,
        sectors,
        fua: false,
    }
}
