//! The served files, one for each partition, and the translation of their requests into those of a device.

use std::sync::Arc;
use std::time::SystemTime;

use fuser::{Errno, FileAttr, FileType, INodeNo};
use tierwise_device::{Op, Request, SECTOR_BYTES};

use crate::pacer::Arrival;
use crate::reply::FuseReply;
use crate::service::{Pending, Service};
use crate::volatile::Effect;

/// A file, and the range of the device that it shows.
pub struct ServedFile {
    /// Name in the directory.
    pub name: String,
    /// First byte on the device.
    pub start: u64,
    /// Length in bytes.
    pub size: u64,
}

/// The file system.
pub struct Files {
    /// The files, by partition number.
    pub files: Vec<ServedFile>,
    /// The service that completes their requests.
    pub service: Arc<Service<FuseReply>>,
}

pub const ROOT: INodeNo = INodeNo(1);

/// Inode number of the first partition's file.
pub const FIRST_FILE: u64 = 2;

/// Range of the device that a request is for.
#[derive(Clone, Copy)]
pub struct Extent {
    pub partition: usize,
    /// First byte on the device.
    pub start: u64,
    pub length: u64,
}

impl Files {
    fn partition(&self, ino: INodeNo) -> Option<usize> {
        let number = usize::try_from(ino.0.checked_sub(FIRST_FILE)?).ok()?;
        (number < self.files.len()).then_some(number)
    }

    /// Where a range of a file is on the device, or an error if it is not within the file.
    pub fn locate(&self, ino: INodeNo, offset: u64, length: u64) -> Result<Extent, Errno> {
        let partition = self.partition(ino).ok_or(Errno::ENOENT)?;
        let file = &self.files[partition];
        let within = offset
            .checked_add(length)
            .is_some_and(|end| end <= file.size);
        if !within {
            return Err(Errno::EINVAL);
        }
        let start = file.start + offset;
        Ok(Extent {
            partition,
            start,
            length,
        })
    }

    pub fn attributes(&self, ino: INodeNo) -> Option<FileAttr> {
        let (kind, size, perm) = if ino == ROOT {
            (FileType::Directory, 0, 0o700)
        } else {
            (
                FileType::RegularFile,
                self.files[self.partition(ino)?].size,
                0o600,
            )
        };
        let time = SystemTime::UNIX_EPOCH;
        let (uid, gid, rdev, flags, nlink, blksize) = (0, 0, 0, 0, 1, 4096);
        let blocks = size / SECTOR_BYTES;
        Some(FileAttr {
            ino,
            size,
            blocks,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind,
            perm,
            nlink,
            uid,
            gid,
            rdev,
            blksize,
            flags,
        })
    }

    /// Hands a request to the device; `reply` answers it when it is completed.
    pub fn submit(&self, op: Op, extent: Extent, effect: Effect, reply: FuseReply) {
        let sector = extent.start / SECTOR_BYTES;
        let sectors = (extent.start + extent.length).div_ceil(SECTOR_BYTES) - sector;
        let sectors = u32::try_from(sectors).unwrap_or(u32::MAX);
        let request = Request {
            op,
            sector,
            sectors,
            fua: false,
        };
        self.service.submit(Arrival {
            partition: extent.partition,
            request,
            reply: Pending { effect, reply },
        });
    }
}
