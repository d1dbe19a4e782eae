//! The FUSE file system: one directory with one file for each partition.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, WriteFlags,
};
use tierwise_device::{Op, Request, SECTOR_BYTES};

use crate::pacer::Arrival;
use crate::reply::FuseReply;
use crate::service::Service;

/// Largest request, in bytes; the kernel splits longer ones.
pub const LARGEST_REQUEST_BYTES: u32 = 1 << 20;

/// Requests that the kernel may have open at once; with fewer a deep queue never reaches the model.
const REQUESTS_AT_ONCE: u16 = 512;

const ATTRIBUTES_LAST: Duration = Duration::from_secs(86_400);

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
    /// What serves them.
    pub service: Arc<Service<FuseReply>>,
}

const ROOT: INodeNo = INodeNo(1);
const FIRST_FILE: u64 = 2;

impl Files {
    fn partition(&self, ino: INodeNo) -> Option<usize> {
        let number = usize::try_from(ino.0.checked_sub(FIRST_FILE)?).ok()?;
        (number < self.files.len()).then_some(number)
    }

    /// The partition of a file and the start of a range on the device, or an error if it is not within.
    fn locate(&self, ino: INodeNo, offset: u64, length: u64) -> Result<(usize, u64), Errno> {
        let partition = self.partition(ino).ok_or(Errno::ENOENT)?;
        let file = &self.files[partition];
        let within = offset
            .checked_add(length)
            .is_some_and(|end| end <= file.size);
        if within {
            Ok((partition, file.start + offset))
        } else {
            Err(Errno::EINVAL)
        }
    }

    fn attributes(&self, ino: INodeNo) -> Option<FileAttr> {
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

    fn submit(&self, partition: usize, op: Op, start: u64, length: u64, reply: FuseReply) {
        let sector = start / SECTOR_BYTES;
        let sectors = (start + length).div_ceil(SECTOR_BYTES) - sector;
        let sectors = u32::try_from(sectors).unwrap_or(u32::MAX);
        let request = Request {
            op,
            sector,
            sectors,
            fua: false,
        };
        self.service.submit(Arrival {
            partition,
            request,
            reply,
        });
    }
}

impl Filesystem for Files {
    fn init(&mut self, _: &fuser::Request, config: &mut KernelConfig) -> io::Result<()> {
        let too_old = |_| io::Error::other("this kernel's FUSE has no asynchronous direct I/O");
        config
            .add_capabilities(InitFlags::FUSE_ASYNC_DIO | InitFlags::FUSE_MAX_PAGES)
            .map_err(too_old)?;
        let refused =
            |nearest| io::Error::other(format!("refused, the nearest value is {nearest}"));
        config
            .set_max_write(LARGEST_REQUEST_BYTES)
            .map_err(refused)?;
        let refused =
            |nearest| io::Error::other(format!("refused, the nearest value is {nearest}"));
        config
            .set_max_background(REQUESTS_AT_ONCE)
            .map_err(refused)?;
        config
            .set_congestion_threshold(REQUESTS_AT_ONCE)
            .map_err(refused)?;
        Ok(())
    }

    fn lookup(&self, _: &fuser::Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self
            .files
            .iter()
            .zip(FIRST_FILE..)
            .find(|(file, _)| name == file.name.as_str());
        match found.and_then(|(_, ino)| self.attributes(INodeNo(ino))) {
            Some(attributes) if parent == ROOT => {
                reply.entry(&ATTRIBUTES_LAST, &attributes, Generation(0))
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &fuser::Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino) {
            Some(attributes) => reply.attr(&ATTRIBUTES_LAST, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &fuser::Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO
            | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
            | FopenFlags::FOPEN_NOFLUSH;
        reply.opened(FileHandle(0), flags);
    }

    fn readdir(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let names = self.files.iter().zip(FIRST_FILE..).skip(offset as usize);
        for (file, ino) in names {
            if reply.add(
                INodeNo(ino),
                ino - FIRST_FILE + 1,
                FileType::RegularFile,
                &file.name,
            ) {
                break;
            }
        }
        reply.ok();
    }

    fn read(
        &self,
        _: &fuser::Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.locate(ino, offset, u64::from(size)) {
            Ok((partition, start)) => {
                let answer = FuseReply::Read {
                    reply,
                    offset: start,
                    length: size as usize,
                };
                self.submit(partition, Op::Read, start, u64::from(size), answer);
            }
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &fuser::Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.locate(ino, offset, data.len() as u64) {
            Ok((partition, start)) => {
                self.service.store().write(start, data);
                let answer = FuseReply::Written {
                    reply,
                    length: data.len() as u32,
                };
                self.submit(partition, Op::Write, start, data.len() as u64, answer);
            }
            Err(error) => reply.error(error),
        }
    }

    fn fsync(&self, _: &fuser::Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        match self.locate(ino, 0, 0) {
            Ok((partition, _)) => self.submit(partition, Op::Flush, 0, 0, FuseReply::Empty(reply)),
            Err(error) => reply.error(error),
        }
    }

    fn fallocate(
        &self,
        _: &fuser::Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        if mode & libc::FALLOC_FL_PUNCH_HOLE == 0 {
            // The kernel then writes zeros, as to a disk that has no command for it.
            return reply.error(Errno::EOPNOTSUPP);
        }
        match self.locate(ino, offset, length) {
            Ok((partition, start)) => {
                self.service.store().discard(start, length);
                self.submit(
                    partition,
                    Op::Discard,
                    start,
                    length,
                    FuseReply::Empty(reply),
                );
            }
            Err(error) => reply.error(error),
        }
    }
}
