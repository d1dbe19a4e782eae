//! The commands to the driver `ublk_drv` that make, start, stop and delete devices; each is waited for.
//!
//! Layouts and numbers are those of `include/uapi/linux/ublk_cmd.h`. A device outlasts a server that ends: it is
//! found by the mark that it has from its disk.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use tierwise_device::SECTOR_BYTES;

/// Requests of a device that may be open at once; the kernel holds others back.
pub(super) const QUEUE_DEPTH: usize = 128;
/// Largest request; the kernel splits longer ones.
pub(super) const LARGEST_REQUEST_BYTES: usize = 1 << 20;

/// The command `number` of the driver's ioctl encoding, with an argument of `bytes` (`_IOR`, `_IOWR`).
pub(super) const fn encode_ioctl(direction: u32, number: u32, bytes: usize) -> u32 {
    direction << 30 | (bytes as u32) << 16 | (b'u' as u32) << 8 | number
}
const READ: u32 = 2;
pub(super) const READ_WRITE: u32 = 3;

const ADD_DEVICE: u32 = encode_ioctl(READ_WRITE, 0x04, size_of::<UblkControlCommand>());
const DELETE_DEVICE: u32 = encode_ioctl(READ_WRITE, 0x05, size_of::<UblkControlCommand>());
pub(super) const START_DEVICE: u32 =
    encode_ioctl(READ_WRITE, 0x06, size_of::<UblkControlCommand>());
pub(super) const STOP_DEVICE: u32 = encode_ioctl(READ_WRITE, 0x07, size_of::<UblkControlCommand>());
const SET_PARAMETERS: u32 = encode_ioctl(READ_WRITE, 0x08, size_of::<UblkControlCommand>());
const DEVICE_INFO: u32 = encode_ioctl(READ, 0x02, size_of::<UblkControlCommand>());
const FEATURES: u32 = encode_ioctl(READ, 0x13, size_of::<UblkControlCommand>());
/// Does not wait until the last user has closed the device. Since Linux 6.9.
const DELETE_DEVICE_ASYNC: u32 = encode_ioctl(READ, 0x14, size_of::<UblkControlCommand>());
/// `struct ublksrv_ctrl_cmd`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct UblkControlCommand {
    device: u32,
    queue: u16,
    bytes: u16,
    address: u64,
    data: u64,
    reserved: u64,
}

/// `struct ublksrv_ctrl_dev_info`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct UblkDeviceInfo {
    queues: u16,
    queue_depth: u16,
    state: u16,
    padding: u16,
    largest_request_bytes: u32,
    device: u32,
    server_pid: i32,
    padding_1: u32,
    flags: u64,
    /// The server's own; the driver only keeps them.
    mark: u64,
    reserved: [u64; 3],
}

/// `struct ublk_params`, as far as it was in Linux 6.1.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct UblkParameters {
    bytes: u32,
    types: u32,
    attributes: u32,
    logical_block_shift: u8,
    physical_block_shift: u8,
    optimal_io_shift: u8,
    least_io_shift: u8,
    most_sectors: u32,
    chunk_sectors: u32,
    sectors: u64,
    virtual_boundary_mask: u64,
    discard_alignment: u32,
    discard_granularity: u32,
    most_discard_sectors: u32,
    most_write_zeroes_sectors: u32,
    most_discard_segments: u16,
    reserved: u16,
}
const BASIC: u32 = 1;
const DISCARD: u32 = 2;
const VOLATILE_CACHE: u32 = 4;

/// The bytes of a command, as an entry of the ring has them.
pub(super) fn command_bytes<T: Copy>(command: &T) -> [u8; 80] {
    let mut bytes = [0; 80];
    assert!(size_of::<T>() <= bytes.len(), "a command within its entry");
    // SAFETY: both are of that length, and every type here is plain data without gaps.
    unsafe {
        std::ptr::copy_nonoverlapping(
            std::ptr::from_ref(command).cast(),
            bytes.as_mut_ptr(),
            size_of::<T>(),
        );
    }
    bytes
}

/// The driver's device for commands to it, and a ring for one command at a time.
pub(super) struct UblkControl {
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    device: File,
}

impl UblkControl {
    /// Fails where the module is not loaded, or too old.
    pub fn open() -> io::Result<Self> {
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/ublk-control")?;
        let ring = IoUring::builder().build(4)?;
        let mut control = Self { ring, device };
        let mut features = 0_u64;
        control.command(FEATURES, NEW_DEVICE, Some(&mut features), 0)?;
        Ok(control)
    }

    pub fn command<T>(
        &mut self,
        command: u32,
        device: u32,
        argument: Option<&mut T>,
        data: u64,
    ) -> io::Result<()> {
        let words = UblkControlCommand {
            device,
            queue: u16::MAX,
            bytes: argument.as_ref().map_or(0, |_| size_of::<T>() as u16),
            address: argument.map_or(0, |argument| std::ptr::from_mut(argument) as u64),
            data,
            reserved: 0,
        };
        let entry = opcode::UringCmd80::new(types::Fd(self.device.as_raw_fd()), command)
            .cmd(command_bytes(&words))
            .build();
        // SAFETY: the argument outlives the command, which is waited for.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)?;
        while self.ring.completion().is_empty() {
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        let result = self
            .ring
            .completion()
            .next()
            .map_or(0, |event| event.result());
        if result < 0 {
            return Err(io::Error::from_raw_os_error(-result));
        }
        Ok(())
    }

    pub fn plain(&mut self, command: u32, device: u32) -> io::Result<()> {
        self.command::<u64>(command, device, None, 0)
    }

    /// Makes a device, which waits for its server; gives its number.
    pub fn add(&mut self, mark: u64, size_bytes: u64, volatile_cache: bool) -> io::Result<u32> {
        let mut info = UblkDeviceInfo {
            queues: 1,
            queue_depth: QUEUE_DEPTH as u16,
            largest_request_bytes: LARGEST_REQUEST_BYTES as u32,
            device: NEW_DEVICE,
            mark,
            ..UblkDeviceInfo::default()
        };
        self.command(ADD_DEVICE, NEW_DEVICE, Some(&mut info), 0)?;
        let most_sectors = (LARGEST_REQUEST_BYTES as u64 / SECTOR_BYTES) as u32;
        let mut parameters = UblkParameters {
            bytes: size_of::<UblkParameters>() as u32,
            types: BASIC | DISCARD,
            attributes: if volatile_cache { VOLATILE_CACHE } else { 0 },
            logical_block_shift: SECTOR_BYTES.ilog2() as u8,
            physical_block_shift: 12,
            optimal_io_shift: 12,
            least_io_shift: 12,
            most_sectors,
            sectors: size_bytes / SECTOR_BYTES,
            discard_granularity: 4096,
            most_discard_sectors: u32::MAX >> 9,
            most_discard_segments: 1,
            ..UblkParameters::default()
        };
        let set = self.command(SET_PARAMETERS, info.device, Some(&mut parameters), 0);
        if let Err(error) = set {
            drop(self.delete(info.device));
            return Err(error);
        }
        Ok(info.device)
    }

    /// Makes and deletes a device.
    pub fn require_devices(&mut self, mark: u64) -> io::Result<()> {
        let number = self.add(mark, 1 << 20, false)?;
        let opened = open_queue(number).map(drop);
        self.delete(number)?;
        opened
    }

    /// Deletes a stopped device; its number may last until its last user has closed it.
    pub fn delete(&mut self, device: u32) -> io::Result<()> {
        match self.plain(DELETE_DEVICE_ASYNC, device) {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                self.plain(DELETE_DEVICE, device)
            }
            other => other,
        }
    }

    /// Numbers of the devices with a mark.
    fn marked(&mut self, mark: u64) -> io::Result<Vec<u32>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir("/sys/class/ublk-char")? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("ublkc"));
            let Some(number) = number.and_then(|number| number.parse().ok()) else {
                continue;
            };
            let mut info = UblkDeviceInfo::default();
            // One that was deleted in between is nobody's.
            let known = self.command(DEVICE_INFO, number, Some(&mut info), 0);
            if known.is_ok() && info.mark == mark {
                numbers.push(number);
            }
        }
        Ok(numbers)
    }
}

/// Asks the driver for a number.
const NEW_DEVICE: u32 = u32::MAX;

/// The mark of the devices of the disk whose files are in a directory: a hash of it (Fowler, Noll, Vo).
pub(super) fn disk_mark(home: &Path) -> u64 {
    let bytes = home.as_os_str().as_bytes().iter();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Opens what a server answers a device's requests through.
pub(super) fn open_queue(number: u32) -> io::Result<File> {
    let path = format!("/dev/ublkc{number}");
    OpenOptions::new().read(true).write(true).open(path)
}

pub(super) fn block_device_path(number: u32) -> String {
    format!("/dev/ublkb{number}")
}

/// Block devices of the disk whose files are in a directory, also after a crash.
pub fn disk_block_devices(home: &Path) -> Vec<String> {
    let Ok(mut control) = UblkControl::open() else {
        return Vec::new();
    };
    let numbers = control.marked(disk_mark(home)).unwrap_or_default();
    numbers.into_iter().map(block_device_path).collect()
}

/// Deletes the block devices of the disk whose files are in a directory, after its server has ended.
pub fn delete_disk_block_devices(home: &Path) -> io::Result<()> {
    let Ok(mut control) = UblkControl::open() else {
        return Ok(());
    };
    for number in control.marked(disk_mark(home))? {
        // It is stopped already, or has never been started.
        drop(control.plain(STOP_DEVICE, number));
        control.delete(number)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_have_different_marks() {
        let of = |name: &str| disk_mark(Path::new("/run/tierwise/disks").join(name).as_path());
        assert_ne!(of("a"), of("b"));
        assert_eq!(of("a"), of("a"));
    }

    /// Computed from `linux/ublk_cmd.h` of Debian 12 by a C compiler.
    #[test]
    fn commands_and_their_arguments_are_those_of_the_kernel() {
        assert_eq!(ADD_DEVICE, 0xc020_7504);
        assert_eq!(FEATURES, 0x8020_7513);
        let sizes = (size_of::<UblkDeviceInfo>(), size_of::<UblkParameters>());
        assert_eq!(sizes, (64, 64));
    }
}
