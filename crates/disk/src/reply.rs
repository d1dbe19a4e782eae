//! Answers to the kernel.

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};

use crate::service::Reply;
use crate::volatile::VolatileStore;

/// The answer to a request of the kernel.
pub enum FuseReply {
    /// Bytes of a range of the store.
    Read {
        reply: ReplyData,
        offset: u64,
        length: usize,
    },
    /// Number of bytes written.
    Written { reply: ReplyWrite, length: u32 },
    /// It is done.
    Empty(ReplyEmpty),
}

impl Reply for FuseReply {
    fn send(self, store: &VolatileStore) {
        match self {
            Self::Read {
                reply,
                offset,
                length,
            } => reply.data(&store.read(offset, length)),
            Self::Written { reply, length } => reply.written(length),
            Self::Empty(reply) => reply.ok(),
        }
    }
    fn fail(self) {
        match self {
            Self::Read { reply, .. } => reply.error(Errno::EIO),
            Self::Written { reply, .. } => reply.error(Errno::EIO),
            Self::Empty(reply) => reply.error(Errno::EIO),
        }
    }
}
