//! ublk: block devices whose driver passes each request to this process over `io_uring`. Needs Linux 6.5, with
//! which its commands got their present numbers, and the module `ublk_drv`.
//!
//! Each partition is a block device with one queue. All queues share one ring. Layouts and numbers are those of
//! `include/uapi/linux/ublk_cmd.h`; the protocol is that of `Documentation/block/ublk.rst`.
//!
//! Faults: if the server ends, the driver fails all requests and removes the block devices. Their numbers stay
//! until somebody deletes them: [`delete_devices`] does so by the mark that each device has from its disk. After
//! a power cut, [`Devices`] replaces them by new ones, since a device's handles do not tell its power cycle.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use tierwise_device::SECTOR_BYTES;

use super::ring::{CommandRing, Event};
use super::{Answer, Incoming, Operation, Received, Tag, Transport, Wait, Waker};
use crate::config::ServerConfig;
use crate::store::Mapping;

/// Requests of a device that may be open at once; the kernel holds others back.
const QUEUE_DEPTH: usize = 128;
/// Largest request; the kernel splits longer ones.
const LARGEST_REQUEST_BYTES: usize = 1 << 20;
/// Queues that the ring has room for: a power cut doubles those of a disk for a moment.
const MOST_QUEUES: usize = 64;

/// The command `number` of the driver's ioctl encoding, with an argument of `bytes` (`_IOR`, `_IOWR`).
const fn encoded(direction: u32, number: u32, bytes: usize) -> u32 {
    direction << 30 | (bytes as u32) << 16 | (b'u' as u32) << 8 | number
}
const READ: u32 = 2;
const READ_WRITE: u32 = 3;

const ADD_DEVICE: u32 = encoded(READ_WRITE, 0x04, size_of::<ControlCommand>());
const DELETE_DEVICE: u32 = encoded(READ_WRITE, 0x05, size_of::<ControlCommand>());
const START_DEVICE: u32 = encoded(READ_WRITE, 0x06, size_of::<ControlCommand>());
const STOP_DEVICE: u32 = encoded(READ_WRITE, 0x07, size_of::<ControlCommand>());
const SET_PARAMETERS: u32 = encoded(READ_WRITE, 0x08, size_of::<ControlCommand>());
const DEVICE_INFO: u32 = encoded(READ, 0x02, size_of::<ControlCommand>());
const FEATURES: u32 = encoded(READ, 0x13, size_of::<ControlCommand>());
/// Does not wait until the last user has closed the device. Since Linux 6.9.
const DELETE_DEVICE_ASYNC: u32 = encoded(READ, 0x14, size_of::<ControlCommand>());
const FETCH: u32 = encoded(READ_WRITE, 0x20, size_of::<IoCommand>());
const COMMIT_AND_FETCH: u32 = encoded(READ_WRITE, 0x21, size_of::<IoCommand>());

/// `struct ublksrv_ctrl_cmd`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ControlCommand {
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
struct DeviceInfo {
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
struct Parameters {
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

/// `struct ublksrv_io_desc`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Description {
    operation_and_flags: u32,
    sectors: u32,
    first_sector: u64,
    address: u64,
}

impl Description {
    /// What is asked of a partition that begins at a byte of the disk and has a size, or the error number that
    /// answers it. `data` gives the bytes of a write.
    fn operation<'a>(
        self,
        start: u64,
        size: u64,
        data: impl FnOnce(usize) -> &'a [u8],
    ) -> Result<Operation<'a>, i32> {
        let kind = self.operation_and_flags & OPERATION_MASK;
        if kind == OPERATION_FLUSH {
            return Ok(Operation::Flush);
        }
        let offset = self.first_sector.saturating_mul(SECTOR_BYTES);
        let length = u64::from(self.sectors) * SECTOR_BYTES;
        if offset.saturating_add(length) > size {
            return Err(libc::EINVAL);
        }
        let offset = start + offset;
        match kind {
            OPERATION_DISCARD => Ok(Operation::Discard { offset, length }),
            _ if length > LARGEST_REQUEST_BYTES as u64 => Err(libc::EINVAL),
            OPERATION_READ => Ok(Operation::Read {
                offset,
                length: length as u32,
            }),
            OPERATION_WRITE => Ok(Operation::Write {
                offset,
                data: data(length as usize),
            }),
            _ => Err(libc::EOPNOTSUPP),
        }
    }
}

const OPERATION_MASK: u32 = 0xff;
const OPERATION_READ: u32 = 0;
const OPERATION_WRITE: u32 = 1;
const OPERATION_FLUSH: u32 = 2;
const OPERATION_DISCARD: u32 = 3;

/// `struct ublksrv_io_cmd`.
#[repr(C)]
#[derive(Clone, Copy)]
struct IoCommand {
    queue: u16,
    tag: u16,
    result: i32,
    address: u64,
}

/// The bytes of a command, as an entry of the ring has them.
fn command_bytes<T: Copy>(command: &T) -> [u8; 80] {
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

// Making and removing devices: each command is waited for.

/// The driver's device for commands to it, and a ring for one command at a time.
struct Control {
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    device: File,
}

impl Control {
    /// Fails where the module is not loaded, or too old.
    fn open() -> io::Result<Self> {
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

    fn command<T>(
        &mut self,
        command: u32,
        device: u32,
        argument: Option<&mut T>,
        data: u64,
    ) -> io::Result<()> {
        let words = ControlCommand {
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

    fn plain(&mut self, command: u32, device: u32) -> io::Result<()> {
        self.command::<u64>(command, device, None, 0)
    }

    /// Makes a device, which waits for its server; gives its number.
    fn add(&mut self, mark: u64, size_bytes: u64, volatile_cache: bool) -> io::Result<u32> {
        let mut info = DeviceInfo {
            queues: 1,
            queue_depth: QUEUE_DEPTH as u16,
            largest_request_bytes: LARGEST_REQUEST_BYTES as u32,
            device: NEW_DEVICE,
            mark,
            ..DeviceInfo::default()
        };
        self.command(ADD_DEVICE, NEW_DEVICE, Some(&mut info), 0)?;
        let most_sectors = (LARGEST_REQUEST_BYTES as u64 / SECTOR_BYTES) as u32;
        let mut parameters = Parameters {
            bytes: size_of::<Parameters>() as u32,
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
            ..Parameters::default()
        };
        let set = self.command(SET_PARAMETERS, info.device, Some(&mut parameters), 0);
        if let Err(error) = set {
            drop(self.delete(info.device));
            return Err(error);
        }
        Ok(info.device)
    }

    /// Makes and deletes a device.
    fn require_devices(&mut self, mark: u64) -> io::Result<()> {
        let number = self.add(mark, 1 << 20, false)?;
        let opened = File::open(format!("/dev/ublkc{number}")).map(drop);
        self.delete(number)?;
        opened
    }

    /// Deletes a stopped device; its number may last until its last user has closed it.
    fn delete(&mut self, device: u32) -> io::Result<()> {
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
            let mut info = DeviceInfo::default();
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
fn mark_of(home: &Path) -> u64 {
    let bytes = home.as_os_str().as_bytes().iter();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn block_device(number: u32) -> String {
    format!("/dev/ublkb{number}")
}

/// Block devices of the disk whose files are in a directory, also after a crash.
pub fn devices(home: &Path) -> Vec<String> {
    let Ok(mut control) = Control::open() else {
        return Vec::new();
    };
    let numbers = control.marked(mark_of(home)).unwrap_or_default();
    numbers.into_iter().map(block_device).collect()
}

/// Deletes the block devices of the disk whose files are in a directory, after its server has ended.
pub fn delete_devices(home: &Path) -> io::Result<()> {
    let Ok(mut control) = Control::open() else {
        return Ok(());
    };
    for number in control.marked(mark_of(home))? {
        // It is stopped already, or has never been started.
        drop(control.plain(STOP_DEVICE, number));
        control.delete(number)?;
    }
    Ok(())
}

/// What the serving thread is to do.
enum Order {
    Serve(Queue),
    End,
}

/// The devices of a disk, for whoever makes and removes them while another thread serves them.
pub(crate) struct Devices {
    orders: Sender<Order>,
    waker: Waker,
    mark: u64,
    volatile_cache: bool,
    /// First byte on the disk, and size, of each partition.
    partitions: Vec<(u64, u64)>,
    live: Mutex<Vec<u32>>,
}

impl Devices {
    /// Makes a block device of each partition; gives their paths. They are of the power cycle that is then.
    pub fn attach(&self) -> io::Result<Vec<String>> {
        let mut control = Control::open()?;
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let mut paths = Vec::with_capacity(self.partitions.len());
        for (partition, (start, size)) in self.partitions.iter().enumerate() {
            let number = control.add(self.mark, *size, self.volatile_cache)?;
            live.push(number);
            let queue = Queue::new(number, partition, *start, *size)?;
            self.order(Order::Serve(queue))?;
            // Waits for the serving thread, which then answers the kernel's look for a partition table.
            control.command::<u64>(START_DEVICE, number, None, u64::from(std::process::id()))?;
            paths.push(block_device(number));
        }
        Ok(paths)
    }

    /// Removes all block devices. Open files of them give errors from then on.
    pub fn detach(&self) -> io::Result<()> {
        let mut control = Control::open()?;
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        for number in live.drain(..) {
            control.plain(STOP_DEVICE, number)?;
            control.delete(number)?;
        }
        Ok(())
    }

    /// Ends the server.
    pub fn end(&self) -> io::Result<()> {
        self.order(Order::End)
    }

    fn order(&self, order: Order) -> io::Result<()> {
        self.orders
            .send(order)
            .map_err(|_| io::Error::other("the device is no longer served"))?;
        self.waker.wake();
        Ok(())
    }
}

// Serving them.

fn page_bytes() -> usize {
    // SAFETY: takes no pointers.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// The queue of a block device.
struct Queue {
    device: File,
    /// The driver's description of each tag's request.
    descriptions: Mapping,
    /// A buffer for each tag.
    payload: Mapping,
    partition: usize,
    /// First byte on the disk, and size in bytes.
    start: u64,
    size: u64,
    /// The power cycle in which it was made.
    cycle: u64,
    /// Tags that the driver has not given back for good.
    tags: usize,
}

impl Queue {
    fn new(number: u32, partition: usize, start: u64, size: u64) -> io::Result<Self> {
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .open(format!("/dev/ublkc{number}"))?;
        let descriptions = (QUEUE_DEPTH * size_of::<Description>()).next_multiple_of(page_bytes());
        Ok(Self {
            descriptions: Mapping::of(&device, descriptions)?,
            device,
            payload: Mapping::new(QUEUE_DEPTH * LARGEST_REQUEST_BYTES)?,
            partition,
            start,
            size,
            cycle: 0,
            tags: QUEUE_DEPTH,
        })
    }

    fn description(&self, tag: usize) -> Description {
        let bytes = size_of::<Description>() as u64;
        let at = self.descriptions.at(tag as u64 * bytes, bytes);
        // SAFETY: within the mapping; the driver writes it only while it has the tag.
        unsafe { at.cast::<Description>().read_volatile() }
    }

    fn buffer(tag: usize) -> u64 {
        (tag * LARGEST_REQUEST_BYTES) as u64
    }

    /// A command for a tag, with the result of its last request.
    fn command(&self, command: u32, slot: usize, tag: usize, result: i32) -> squeue::Entry128 {
        let largest = LARGEST_REQUEST_BYTES as u64;
        let words = IoCommand {
            queue: 0,
            tag: tag as u16,
            result,
            address: self.payload.at(Self::buffer(tag), largest) as u64,
        };
        opcode::UringCmd80::new(types::Fd(self.device.as_raw_fd()), command)
            .cmd(command_bytes(&words))
            .build()
            .user_data(number_of(slot, tag))
    }

    /// The request that a tag has, or the error number that answers it.
    fn request(&self, slot: usize, tag: usize) -> Result<Incoming<'_>, i32> {
        let data = |length| self.payload.read(Self::buffer(tag), length);
        let operation = self
            .description(tag)
            .operation(self.start, self.size, data)?;
        Ok(Incoming {
            tag: Tag(number_of(slot, tag)),
            partition: self.partition,
            cycle: self.cycle,
            operation,
        })
    }
}

const TAG_BITS: u32 = 12;

fn number_of(slot: usize, tag: usize) -> u64 {
    (slot << TAG_BITS | tag) as u64
}

fn slot_and_tag(number: u64) -> (usize, usize) {
    let number = number as usize;
    (number >> TAG_BITS, number & ((1 << TAG_BITS) - 1))
}

/// The queues of the devices that are served. The ring is first, so that it is dropped before their buffers.
pub(crate) struct Ublk {
    ring: CommandRing,
    queues: Vec<Option<Queue>>,
    orders: Receiver<Order>,
    cycle: u64,
}

impl Ublk {
    /// Fails where the kernel has no ublk, the module is not loaded, or new devices do not appear in `/dev`, as in
    /// some containers.
    pub fn new(
        config: &ServerConfig,
        volatile_cache: bool,
        waker: &Waker,
    ) -> io::Result<(Self, Devices)> {
        let mark = mark_of(config.home());
        Control::open()?.require_devices(mark)?;
        let (sender, orders) = channel();
        let mut start = 0;
        let partitions = config.partitions.iter().map(|partition| {
            start += partition.size_bytes;
            (start - partition.size_bytes, partition.size_bytes)
        });
        let devices = Devices {
            orders: sender,
            waker: waker.try_clone()?,
            mark,
            volatile_cache,
            partitions: partitions.collect(),
            live: Mutex::default(),
        };
        let transport = Self {
            ring: CommandRing::new(MOST_QUEUES * QUEUE_DEPTH, waker.try_clone()?)?,
            queues: Vec::new(),
            orders,
            cycle: 0,
        };
        Ok((transport, devices))
    }

    fn serve(&mut self, queue: Queue) {
        let free = self.queues.iter().position(Option::is_none);
        let slot = free.unwrap_or(self.queues.len());
        if free.is_none() {
            self.queues.push(None);
        }
        let queue = self.queues[slot].insert(Queue {
            cycle: self.cycle,
            ..queue
        });
        for tag in 0..QUEUE_DEPTH {
            self.ring.push(&queue.command(FETCH, slot, tag, 0));
        }
    }

    fn commit(&mut self, slot: usize, tag: usize, result: i32) {
        if let Some(queue) = &self.queues[slot] {
            self.ring
                .push(&queue.command(COMMIT_AND_FETCH, slot, tag, result));
        }
    }

    /// The driver has let go of a tag; without the last one, the device is closed.
    fn given_back(&mut self, slot: usize) {
        if let Some(queue) = &mut self.queues[slot] {
            queue.tags -= 1;
            if queue.tags == 0 {
                self.queues[slot] = None;
            }
        }
    }
}

impl Transport for Ublk {
    fn receive(&mut self, wait: Wait, mut take: impl FnMut(Incoming<'_>)) -> io::Result<Received> {
        self.ring.enter_if_needed(wait)?;
        while let Some(event) = self.ring.event() {
            let Event::Command { number, result } = event else {
                while let Ok(order) = self.orders.try_recv() {
                    match order {
                        Order::Serve(queue) => self.serve(queue),
                        Order::End => return Ok(Received::Ended),
                    }
                }
                continue;
            };
            let (slot, tag) = slot_and_tag(number);
            match -result {
                0 => {}
                libc::ENODEV => {
                    self.given_back(slot);
                    continue;
                }
                error => return Err(io::Error::from_raw_os_error(error)),
            }
            let queue = self.queues[slot].as_ref().expect("tags of open queues");
            match queue.request(slot, tag) {
                Ok(incoming) => take(incoming),
                Err(error) => self.commit(slot, tag, -error),
            }
        }
        Ok(Received::Requests)
    }

    fn answer(&mut self, tag: Tag, answer: Answer<'_>) {
        let (slot, tag) = slot_and_tag(tag.0);
        let result = match answer {
            Answer::Data(data) => {
                if let Some(queue) = &self.queues[slot] {
                    queue.payload.write(Queue::buffer(tag), data);
                }
                data.len() as i32
            }
            Answer::Written(length) => length as i32,
            Answer::Done => 0,
            Answer::Failed => -libc::EIO,
        };
        self.commit(slot, tag, result);
    }

    fn set_cycle(&mut self, cycle: u64) {
        self.cycle = cycle;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request of a partition of 8 KiB that begins at 1 MiB of the disk.
    fn asked(operation: u32, first_sector: u64, sectors: u32) -> Result<Operation<'static>, i32> {
        let description = Description {
            operation_and_flags: operation | 1 << 13,
            sectors,
            first_sector,
            address: 0,
        };
        description.operation(1 << 20, 8192, |length| &[7; 8192][..length])
    }

    #[test]
    fn a_request_of_a_partition_is_one_of_its_range_of_the_disk() {
        let Ok(Operation::Read { offset, length }) = asked(OPERATION_READ, 8, 8) else {
            panic!("a read");
        };
        assert_eq!((offset, length), ((1 << 20) + 4096, 4096));
        let Ok(Operation::Write { offset, data }) = asked(OPERATION_WRITE, 0, 16) else {
            panic!("a write");
        };
        assert_eq!((offset, data), (1 << 20, [7; 8192].as_slice()));
        let Ok(Operation::Discard { offset, length }) = asked(OPERATION_DISCARD, 8, 8) else {
            panic!("a discard");
        };
        assert_eq!((offset, length), ((1 << 20) + 4096, 4096));
        // Its place is of no meaning.
        assert!(matches!(
            asked(OPERATION_FLUSH, u64::MAX, 9),
            Ok(Operation::Flush)
        ));
    }

    #[test]
    fn what_is_not_within_a_partition_is_refused() {
        for (first_sector, sectors) in [(16, 1), (15, 2), (u64::MAX, 1), (0, u32::MAX)] {
            for operation in [OPERATION_READ, OPERATION_WRITE, OPERATION_DISCARD] {
                assert!(matches!(
                    asked(operation, first_sector, sectors),
                    Err(libc::EINVAL)
                ));
            }
        }
        assert!(matches!(asked(5, 0, 8), Err(libc::EOPNOTSUPP)));
    }

    #[test]
    fn a_number_tells_its_queue_and_tag() {
        for (slot, tag) in [(0, 0), (3, QUEUE_DEPTH - 1), (MOST_QUEUES, 1)] {
            assert_eq!(slot_and_tag(number_of(slot, tag)), (slot, tag));
        }
    }

    #[test]
    fn disks_have_different_marks() {
        let of = |name: &str| mark_of(Path::new("/run/tierwise/disks").join(name).as_path());
        assert_ne!(of("a"), of("b"));
        assert_eq!(of("a"), of("a"));
    }

    /// Computed from `linux/ublk_cmd.h` of Debian 12 by a C compiler.
    #[test]
    fn commands_and_their_arguments_are_those_of_the_kernel() {
        assert_eq!(ADD_DEVICE, 0xc020_7504);
        assert_eq!(FEATURES, 0x8020_7513);
        assert_eq!(COMMIT_AND_FETCH, 0xc010_7521);
        let sizes = (
            size_of::<DeviceInfo>(),
            size_of::<Description>(),
            size_of::<Parameters>(),
        );
        assert_eq!(sizes, (64, 24, 64));
    }
}
