//! The measured target: a file of the probe's own, or a block device that is not in use.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use tierwise_device::{Op, Request, SECTOR_BYTES};

use crate::ProbeError;

/// A file or device, opened past the page cache.
#[derive(Debug)]
pub struct MeasuredTarget {
    file: File,
    size_bytes: u64,
}

impl MeasuredTarget {
    /// Makes a new file and reserves its blocks; it holds nothing until it is filled.
    ///
    /// # Errors
    /// A file of that name, a file system without direct I/O, no space.
    pub fn create(path: &Path, size_bytes: u64) -> Result<Self, ProbeError> {
        let file = open_target(path, OpenOptions::new().create_new(true))?;
        reserve_blocks(&file, size_bytes).map_err(|error| ProbeError::Request {
            what: "reservation",
            bytes: size_bytes,
            offset: 0,
            error,
        })?;
        Ok(Self { file, size_bytes })
    }

    /// Opens a block device for this process alone; its content will be lost.
    ///
    /// # Errors
    /// A device that is mounted or otherwise in use, or cannot be opened.
    pub fn open_device(path: &Path) -> Result<Self, ProbeError> {
        Self::sized(open_target(path, &mut OpenOptions::new())?, path)
    }

    /// Opens a block device that others use, for reading alone.
    ///
    /// # Errors
    /// A device that cannot be opened.
    pub fn open_to_read(path: &Path) -> Result<Self, ProbeError> {
        let mut options = OpenOptions::new();
        let opened = options
            .read(true)
            .custom_flags(libc::O_DIRECT)
            .open(path)
            .map_err(|error| target_open_error(path, error))?;
        Self::sized(opened, path)
    }

    fn sized(mut file: File, path: &Path) -> Result<Self, ProbeError> {
        let size_bytes = file
            .seek(SeekFrom::End(0))
            .map_err(|error| target_open_error(path, error))?;
        Ok(Self { file, size_bytes })
    }

    /// Size that requests may address.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Refuses all but a read, a write or a flush inside the target.
    pub(crate) fn check(&self, request: &Request) -> Result<(), ProbeError> {
        let end_bytes = (request.sector + u64::from(request.sectors)) * SECTOR_BYTES;
        match request.op {
            Op::Flush => Ok(()),
            Op::Discard => Err(ProbeError::BadRequest("a discard cannot be probed".into())),
            _ if request.sectors == 0 || end_bytes > self.size_bytes => {
                Err(ProbeError::BadRequest(format!(
                    "{} sectors at sector {} lie outside of {} bytes",
                    request.sectors, request.sector, self.size_bytes
                )))
            }
            _ => Ok(()),
        }
    }
}

fn open_target(path: &Path, options: &mut OpenOptions) -> Result<File, ProbeError> {
    options
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT | libc::O_EXCL)
        .open(path)
        .map_err(|error| target_open_error(path, error))
}

fn target_open_error(path: &Path, error: io::Error) -> ProbeError {
    let path = path.to_owned();
    match error.raw_os_error() {
        Some(libc::EINVAL | libc::EOPNOTSUPP) => ProbeError::NoDirectIo(path),
        Some(libc::EBUSY) => ProbeError::InUse(path),
        _ => ProbeError::Open { path, error },
    }
}

/// Reserves blocks; where the file system cannot, writing will.
fn reserve_blocks(file: &File, size_bytes: u64) -> io::Result<()> {
    // SAFETY: a plain call on a descriptor that is open.
    let status = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, size_bytes as libc::off_t) };
    if status == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::EOPNOTSUPP) => file.set_len(size_bytes),
        error => Err(error),
    }
}
