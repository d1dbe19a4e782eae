//! The FUSE protocol, as far as a directory with one file for each partition needs it.
//!
//! Layouts and numbers are those of the kernel's `include/uapi/linux/fuse.h`. A file handle is the number of
//! the power cycle in which the file was opened: after a power cut, older handles give errors.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use tierwise_device::SECTOR_BYTES;

use super::{DiskOperation, IncomingRequest, RequestAnswer, RequestTag};
use crate::DiskError;
use crate::server_config::{PartitionRange, ServerConfig};

/// Largest request, in bytes; the kernel splits longer ones.
pub(super) const LARGEST_REQUEST_BYTES: usize = 1 << 20;

/// Requests that the kernel may have open at once; with fewer a deep queue never reaches the model.
const REQUESTS_AT_ONCE: u16 = 512;

/// Length of `fuse_in_header`.
pub(super) const IN_HEADER_BYTES: usize = 40;
/// Length of `fuse_out_header`.
pub(super) const OUT_HEADER_BYTES: usize = 16;

const ROOT: u64 = 1;
/// Number of the first partition's file.
const FIRST_FILE: u64 = 2;
const VALID_S: u64 = 86_400;

mod opcode {
    pub const LOOKUP: u32 = 1;
    pub const FORGET: u32 = 2;
    pub const GETATTR: u32 = 3;
    pub const OPEN: u32 = 14;
    pub const READ: u32 = 15;
    pub const WRITE: u32 = 16;
    pub const STATFS: u32 = 17;
    pub const RELEASE: u32 = 18;
    pub const FSYNC: u32 = 20;
    pub const FLUSH: u32 = 25;
    pub const INIT: u32 = 26;
    pub const OPENDIR: u32 = 27;
    pub const RELEASEDIR: u32 = 29;
    pub const ACCESS: u32 = 34;
    pub const INTERRUPT: u32 = 36;
    pub const DESTROY: u32 = 38;
    pub const BATCH_FORGET: u32 = 42;
    pub const FALLOCATE: u32 = 43;
}

mod init_flag {
    pub const ASYNC_READ: u64 = 1;
    pub const BIG_WRITES: u64 = 1 << 5;
    pub const ASYNC_DIO: u64 = 1 << 15;
    pub const MAX_PAGES: u64 = 1 << 22;
    pub const INIT_EXT: u64 = 1 << 30;
    pub const OVER_IO_URING: u64 = 1 << 41;
}

/// `FOPEN_DIRECT_IO`, `FOPEN_NOFLUSH` and `FOPEN_PARALLEL_DIRECT_WRITES`.
const OPEN_FLAGS: u32 = 1 | 1 << 5 | 1 << 6;

/// The header of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct FuseRequestHeader {
    pub opcode: u32,
    pub unique: u64,
    node: u64,
}

impl FuseRequestHeader {
    pub fn parse(bytes: &[u8]) -> Self {
        Self {
            opcode: u32_at(bytes, 4),
            unique: u64_at(bytes, 8),
            node: u64_at(bytes, 16),
        }
    }

    /// Length of the operation's own structure, in front of a name or data.
    pub fn argument_bytes(self) -> usize {
        match self.opcode {
            opcode::READ | opcode::WRITE => 40,
            opcode::FALLOCATE => 32,
            opcode::GETATTR | opcode::FSYNC => 16,
            _ => 0,
        }
    }
}

/// What to do about a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum FuseMessage<'a> {
    /// A request of the device.
    Request(IncomingRequest<'a>),
    /// A question about the files, with its answer.
    Reply(FuseReply),
    /// The kernel expects no answer.
    Silent,
}

/// A short answer, or an error number.
pub(super) type FuseReply = Result<ShortReplyBytes, i32>;

/// The bytes of a reply.
pub(super) fn reply_bytes(reply: &FuseReply) -> Result<&[u8], i32> {
    match reply {
        Ok(short) => Ok(short.bytes()),
        Err(error) => Err(*error),
    }
}

/// The bytes of an answer that is not data.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortReplyBytes {
    bytes: [u8; 128],
    length: usize,
}

impl ShortReplyBytes {
    fn new(length: usize) -> Self {
        Self {
            bytes: [0; 128],
            length,
        }
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The bytes, or the error number, that answer a request of the device.
pub(super) fn encode_answer<'a>(
    answer: RequestAnswer<'a>,
    short: &'a mut ShortReplyBytes,
) -> Result<&'a [u8], i32> {
    match answer {
        RequestAnswer::Data(data) => Ok(data),
        RequestAnswer::Written(length) => {
            *short = ShortReplyBytes::new(8);
            short.put(0, &length.to_ne_bytes());
            Ok(short.bytes())
        }
        RequestAnswer::Done => Ok(&[]),
        RequestAnswer::Failed => Err(libc::EIO),
    }
}

/// A place for [`encode_answer`] to write to.
pub(super) fn empty_reply_bytes() -> ShortReplyBytes {
    ShortReplyBytes::new(0)
}

/// A header for an answer of `length` bytes, or for an error number.
pub(super) fn reply_header(unique: u64, answer: Result<usize, i32>) -> [u8; OUT_HEADER_BYTES] {
    let (length, error) = match answer {
        Ok(length) => (length, 0),
        Err(error) => (0, -error),
    };
    let mut header = [0; OUT_HEADER_BYTES];
    header[0..4].copy_from_slice(&((OUT_HEADER_BYTES + length) as u32).to_ne_bytes());
    header[4..8].copy_from_slice(&error.to_ne_bytes());
    header[8..16].copy_from_slice(&unique.to_ne_bytes());
    header
}

/// A file, and the range of the device that it shows.
struct ServedFile {
    name: String,
    range: PartitionRange,
}

/// The directory's files, by partition number.
pub(crate) struct ServedFiles {
    files: Vec<ServedFile>,
    pub cycle: u64,
}

impl ServedFiles {
    pub fn new(config: &ServerConfig) -> Self {
        let partitions = config.partitions.iter().zip(config.ranges());
        let files = partitions.map(|(partition, range)| ServedFile {
            name: format!("{}.img", partition.name),
            range,
        });
        Self {
            files: files.collect(),
            cycle: 0,
        }
    }

    /// Decodes a message: `argument` is the operation's own structure, `rest` what follows it. A request of the
    /// device gets the tag.
    pub(super) fn message<'a>(
        &self,
        header: FuseRequestHeader,
        argument: &[u8],
        rest: &'a [u8],
        tag: RequestTag,
    ) -> FuseMessage<'a> {
        match header.opcode {
            opcode::READ | opcode::WRITE | opcode::FSYNC | opcode::FALLOCATE => {
                match self.request(header, argument, rest, tag) {
                    Ok(incoming) => FuseMessage::Request(incoming),
                    Err(error) => FuseMessage::Reply(Err(error)),
                }
            }
            opcode::LOOKUP => FuseMessage::Reply(self.lookup(header.node, rest)),
            opcode::GETATTR => FuseMessage::Reply(self.attributes_reply(header.node)),
            opcode::OPEN => FuseMessage::Reply(Ok(self.opened())),
            opcode::OPENDIR => FuseMessage::Reply(Ok(ShortReplyBytes::new(16))),
            opcode::STATFS => FuseMessage::Reply(Ok(ShortReplyBytes::new(80))),
            opcode::RELEASE
            | opcode::RELEASEDIR
            | opcode::FLUSH
            | opcode::ACCESS
            | opcode::DESTROY => FuseMessage::Reply(Ok(ShortReplyBytes::new(0))),
            opcode::FORGET | opcode::BATCH_FORGET | opcode::INTERRUPT => FuseMessage::Silent,
            _ => FuseMessage::Reply(Err(libc::ENOSYS)),
        }
    }

    fn request<'a>(
        &self,
        header: FuseRequestHeader,
        argument: &[u8],
        rest: &'a [u8],
        tag: RequestTag,
    ) -> Result<IncomingRequest<'a>, i32> {
        // All of these begin with the handle; those of a range go on with its offset.
        let (cycle, offset) = (u64_at(argument, 0), u64_at(argument, 8));
        let (partition, operation) = match header.opcode {
            opcode::READ => {
                let length = u32_at(argument, 16);
                let (partition, offset) = self.locate(header.node, offset, u64::from(length))?;
                (partition, DiskOperation::Read { offset, length })
            }
            opcode::WRITE => {
                let length = u32_at(argument, 16) as usize;
                let data = &rest[..length.min(rest.len())];
                let (partition, offset) = self.locate(header.node, offset, data.len() as u64)?;
                (partition, DiskOperation::Write { offset, data })
            }
            opcode::FALLOCATE => {
                let (length, mode) = (u64_at(argument, 16), u32_at(argument, 24));
                if mode & libc::FALLOC_FL_PUNCH_HOLE as u32 == 0 {
                    // The kernel then writes zeros, as to a disk that has no command for it.
                    return Err(libc::EOPNOTSUPP);
                }
                let (partition, offset) = self.locate(header.node, offset, length)?;
                (partition, DiskOperation::Discard { offset, length })
            }
            _ => (self.locate(header.node, 0, 0)?.0, DiskOperation::Flush),
        };
        Ok(IncomingRequest {
            tag,
            partition,
            cycle,
            operation,
        })
    }

    /// Partition and first byte on the device of a range of a file.
    fn locate(&self, node: u64, offset: u64, length: u64) -> Result<(usize, u64), i32> {
        let (partition, file) = self.file(node).ok_or(libc::ENOENT)?;
        let offset = file.range.locate(offset, length).ok_or(libc::EINVAL)?;
        Ok((partition, offset))
    }

    fn file(&self, node: u64) -> Option<(usize, &ServedFile)> {
        let number = usize::try_from(node.checked_sub(FIRST_FILE)?).ok()?;
        Some((number, self.files.get(number)?))
    }

    fn lookup(&self, parent: u64, name: &[u8]) -> FuseReply {
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let number = self
            .files
            .iter()
            .position(|file| file.name.as_bytes() == name);
        let (Some(number), ROOT) = (number, parent) else {
            return Err(libc::ENOENT);
        };
        let node = FIRST_FILE + number as u64;
        let mut entry = ShortReplyBytes::new(128);
        entry.put(0, &node.to_ne_bytes());
        entry.put(16, &VALID_S.to_ne_bytes());
        entry.put(24, &VALID_S.to_ne_bytes());
        entry.put(40, &self.attributes(node).ok_or(libc::ENOENT)?);
        Ok(entry)
    }

    fn attributes_reply(&self, node: u64) -> FuseReply {
        let attributes = self.attributes(node).ok_or(libc::ENOENT)?;
        let mut reply = ShortReplyBytes::new(104);
        reply.put(0, &VALID_S.to_ne_bytes());
        reply.put(16, &attributes);
        Ok(reply)
    }

    /// A `fuse_attr`.
    fn attributes(&self, node: u64) -> Option<[u8; 88]> {
        let (mode, size, links) = if node == ROOT {
            (libc::S_IFDIR | 0o700, 0, 2_u32)
        } else {
            (libc::S_IFREG | 0o600, self.file(node)?.1.range.size, 1)
        };
        let mut attributes = [0; 88];
        attributes[0..8].copy_from_slice(&node.to_ne_bytes());
        attributes[8..16].copy_from_slice(&size.to_ne_bytes());
        attributes[16..24].copy_from_slice(&(size / SECTOR_BYTES).to_ne_bytes());
        attributes[60..64].copy_from_slice(&mode.to_ne_bytes());
        attributes[64..68].copy_from_slice(&links.to_ne_bytes());
        attributes[80..84].copy_from_slice(&4096_u32.to_ne_bytes());
        Some(attributes)
    }

    fn opened(&self) -> ShortReplyBytes {
        let mut reply = ShortReplyBytes::new(16);
        reply.put(0, &self.cycle.to_ne_bytes());
        reply.put(8, &OPEN_FLAGS.to_ne_bytes());
        reply
    }
}

/// A mounted FUSE file system that has agreed on a version with the kernel.
pub(crate) struct FuseConnection {
    pub device: File,
    /// Whether the kernel will send requests over `io_uring`.
    pub over_io_uring: bool,
}

/// Mounts the files at an empty directory; asks for `io_uring` if `ask_io_uring`.
pub(crate) fn mount_and_connect(
    config: &ServerConfig,
    ask_io_uring: bool,
) -> Result<FuseConnection, DiskError> {
    let failed = DiskError::system("mounting FUSE");
    let mut device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_CLOEXEC)
        .open("/dev/fuse")
        .map_err(DiskError::system("opening /dev/fuse"))?;
    mount(&device, &config.name, &config.mount).map_err(failed)?;
    let over_io_uring =
        negotiate_version(&mut device, ask_io_uring).map_err(DiskError::system("starting FUSE"))?;
    Ok(FuseConnection {
        device,
        over_io_uring,
    })
}

fn mount(device: &File, name: &str, directory: &Path) -> io::Result<()> {
    let text = |bytes: &[u8]| CString::new(bytes).map_err(io::Error::other);
    let source = text(name.as_bytes())?;
    let target = text(directory.as_os_str().as_bytes())?;
    let options = text(
        format!(
            "fd={},rootmode=40000,user_id=0,group_id=0",
            device.as_raw_fd()
        )
        .as_bytes(),
    )?;
    // SAFETY: all pointers are to live strings.
    let status = unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            c"fuse.tierwise".as_ptr(),
            libc::MS_NOSUID | libc::MS_NODEV,
            options.as_ptr().cast(),
        )
    };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Answers the kernel's first message; gives whether requests will come over `io_uring`.
fn negotiate_version(device: &mut File, ask_io_uring: bool) -> io::Result<bool> {
    let mut bytes = vec![0; LARGEST_REQUEST_BYTES + 4096];
    let length = device.read(&mut bytes)?;
    let header = FuseRequestHeader::parse(&bytes);
    if header.opcode != opcode::INIT || length < IN_HEADER_BYTES + 16 {
        return Err(io::Error::other("the kernel's first message is not INIT"));
    }
    let body = &bytes[IN_HEADER_BYTES..length];
    let (major, minor) = (u32_at(body, 0), u32_at(body, 4));
    let mut offered = u64::from(u32_at(body, 12));
    if offered & init_flag::INIT_EXT != 0 && body.len() >= 20 {
        offered |= u64::from(u32_at(body, 16)) << 32;
    }
    if major != 7 || offered & init_flag::ASYNC_DIO == 0 || offered & init_flag::MAX_PAGES == 0 {
        return Err(io::Error::other(
            "this kernel's FUSE has no asynchronous direct I/O",
        ));
    }
    let mut accepted = init_flag::ASYNC_READ
        | init_flag::BIG_WRITES
        | init_flag::ASYNC_DIO
        | init_flag::MAX_PAGES
        | init_flag::INIT_EXT;
    if ask_io_uring {
        accepted |= init_flag::OVER_IO_URING;
    }
    accepted &= offered;
    let mut answer = [0; 64];
    answer[0..4].copy_from_slice(&7_u32.to_ne_bytes());
    answer[4..8].copy_from_slice(&minor.min(42).to_ne_bytes());
    answer[12..16].copy_from_slice(&(accepted as u32).to_ne_bytes());
    answer[16..18].copy_from_slice(&REQUESTS_AT_ONCE.to_ne_bytes());
    answer[18..20].copy_from_slice(&REQUESTS_AT_ONCE.to_ne_bytes());
    answer[20..24].copy_from_slice(&(LARGEST_REQUEST_BYTES as u32).to_ne_bytes());
    answer[24..28].copy_from_slice(&1_u32.to_ne_bytes());
    let pages = (LARGEST_REQUEST_BYTES / 4096) as u16;
    answer[28..30].copy_from_slice(&pages.to_ne_bytes());
    answer[32..36].copy_from_slice(&((accepted >> 32) as u32).to_ne_bytes());
    let header = reply_header(header.unique, Ok(answer.len()));
    device.write_all(&[header.as_slice(), &answer].concat())?;
    Ok(accepted & init_flag::OVER_IO_URING != 0)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(word)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: RequestTag = RequestTag(9);

    /// Files of 8 and 4 KiB.
    fn files() -> ServedFiles {
        let file = |name: &str, start, size| ServedFile {
            name: name.into(),
            range: PartitionRange { start, size },
        };
        ServedFiles {
            files: vec![file("log.img", 0, 8192), file("data.img", 8192, 4096)],
            cycle: 7,
        }
    }

    fn header(opcode: u32, node: u64) -> FuseRequestHeader {
        FuseRequestHeader {
            opcode,
            unique: 3,
            node,
        }
    }

    /// A `fuse_read_in` or `fuse_write_in`.
    fn range(offset: u64, length: u32) -> [u8; 40] {
        let mut argument = [0; 40];
        argument[0..8].copy_from_slice(&7_u64.to_ne_bytes());
        argument[8..16].copy_from_slice(&offset.to_ne_bytes());
        argument[16..20].copy_from_slice(&length.to_ne_bytes());
        argument
    }

    fn error(message: FuseMessage<'_>) -> Option<i32> {
        match message {
            FuseMessage::Reply(Err(error)) => Some(error),
            _ => None,
        }
    }

    #[test]
    fn a_request_of_a_file_is_one_of_its_range_of_the_device() {
        let message = files().message(header(opcode::READ, 3), &range(512, 1024), &[], TAG);
        let FuseMessage::Request(IncomingRequest {
            tag: TAG,
            partition: 1,
            cycle: 7,
            operation: DiskOperation::Read { offset, length },
        }) = message
        else {
            panic!("{message:?}");
        };
        assert_eq!((offset, length), (8192 + 512, 1024));
    }

    #[test]
    fn what_is_not_within_a_file_is_refused() {
        let files = files();
        let data = [0; 8192];
        for (node, offset, length) in [(3, 4096, 512), (2, u64::MAX, 512), (3, 0, 8192)] {
            let asked = files.message(
                header(opcode::WRITE, node),
                &range(offset, length),
                &data,
                TAG,
            );
            assert_eq!(error(asked), Some(libc::EINVAL), "{node} {offset} {length}");
        }
        let unknown = files.message(header(opcode::READ, 4), &range(0, 512), &[], TAG);
        assert_eq!(error(unknown), Some(libc::ENOENT));
        let not_served = files.message(header(35, ROOT), &[], &[], TAG);
        assert_eq!(error(not_served), Some(libc::ENOSYS));
    }

    #[test]
    fn names_are_found_in_the_root_only() {
        let files = files();
        let found =
            |node, name: &'static [u8]| files.message(header(opcode::LOOKUP, node), &[], name, TAG);
        let FuseMessage::Reply(Ok(entry)) = found(ROOT, b"data.img\0") else {
            panic!("the file is there");
        };
        assert_eq!(u64_at(entry.bytes(), 0), 3);
        assert_eq!(u64_at(entry.bytes(), 48), 4096);
        assert_eq!(error(found(ROOT, b"data\0")), Some(libc::ENOENT));
        assert_eq!(error(found(2, b"data.img\0")), Some(libc::ENOENT));
    }

    #[test]
    fn an_answer_has_its_length_or_its_error() {
        assert_eq!(reply_header(3, Ok(4096))[0..8], [16, 16, 0, 0, 0, 0, 0, 0]);
        assert_eq!(
            reply_header(3, Err(5))[0..8],
            [16, 0, 0, 0, 251, 255, 255, 255]
        );
    }
}
