//! The FUSE file system: one directory with one file for each partition.
//!
//! A file handle is the number of the power cycle in which the file was opened. After a power cut, handles
//! opened before it return errors, and newly opened ones work.

use std::ffi::OsStr;
use std::io;
use std::time::Duration;

use fuser::{
    Errno, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, WriteFlags,
};
use tierwise_device::Op;

use crate::files::{Extent, FIRST_FILE, Files, ROOT};
use crate::reply::FuseReply;

/// Largest request, in bytes; the kernel splits longer ones.
const LARGEST_REQUEST_BYTES: u32 = 1 << 20;

/// Requests that the kernel may have open at once; with fewer a deep queue never reaches the model.
const REQUESTS_AT_ONCE: u16 = 512;

const ATTRIBUTES_LAST: Duration = Duration::from_secs(86_400);

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
        reply.opened(FileHandle(self.service.store().cycle()), flags);
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
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.locate(ino, offset, u64::from(size)) {
            Ok(extent) => {
                let effect = self.service.store().nothing(handle.0);
                let answer = FuseReply::Read {
                    reply,
                    offset: extent.start,
                    length: size as usize,
                };
                self.submit(Op::Read, extent, effect, answer);
            }
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &fuser::Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.locate(ino, offset, data.len() as u64) {
            Ok(extent) => {
                let effect = self.service.store().write(handle.0, extent.start, data);
                let answer = FuseReply::Written {
                    reply,
                    length: data.len() as u32,
                };
                self.submit(Op::Write, extent, effect, answer);
            }
            Err(error) => reply.error(error),
        }
    }

    fn fsync(
        &self,
        _: &fuser::Request,
        ino: INodeNo,
        handle: FileHandle,
        _: bool,
        reply: ReplyEmpty,
    ) {
        match self.locate(ino, 0, 0) {
            Ok(extent) => {
                let whole = Extent { start: 0, ..extent };
                let effect = self.service.store().flush(handle.0);
                self.submit(Op::Flush, whole, effect, FuseReply::Empty(reply));
            }
            Err(error) => reply.error(error),
        }
    }

    fn fallocate(
        &self,
        _: &fuser::Request,
        ino: INodeNo,
        handle: FileHandle,
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
            Ok(extent) => {
                let store = self.service.store();
                let effect = store.discard(handle.0, extent.start, length);
                self.submit(Op::Discard, extent, effect, FuseReply::Empty(reply));
            }
            Err(error) => reply.error(error),
        }
    }
}
