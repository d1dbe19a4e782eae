//! ublk: block devices whose driver passes each request to this process over `io_uring`. Needs Linux 6.5, with
//! which its commands got their present numbers, and the module `ublk_drv`.
//!
//! Each partition is a block device with one queue. All queues share one ring. Layouts and numbers are those of
//! `include/uapi/linux/ublk_cmd.h`; the protocol is that of `Documentation/block/ublk.rst`.
//!
//! Faults: if the server ends, the driver fails all requests and removes the block devices. Their numbers stay
//! until somebody deletes them: `delete_disk_block_devices` does so by the mark that each device has from its disk. After
//! a power cut, [`UblkDevices`] replaces them by new ones, since a device's handles do not tell its power cycle.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use io_uring::{opcode, squeue, types};
use tierwise_device::SECTOR_BYTES;

use super::command_ring::{CommandRing, RingEvent};
use super::ublk_control::{
    LARGEST_REQUEST_BYTES, QUEUE_DEPTH, READ_WRITE, START_DEVICE, STOP_DEVICE, UblkControl,
    block_device_path, command_bytes, disk_mark, encode_ioctl, open_queue,
};
use super::{
    DiskOperation, IncomingRequest, ReceiveOutcome, ReceiveWait, RequestAnswer, RequestTag,
    Transport, Waker,
};
use crate::byte_store::{MemoryMapping, page_bytes};
use crate::server_config::{PartitionRange, ServerConfig};

/// Queues that the ring has room for: a power cut doubles those of a disk for a moment.
const MOST_QUEUES: usize = 64;

const FETCH: u32 = encode_ioctl(READ_WRITE, 0x20, size_of::<UblkIoCommand>());
const COMMIT_AND_FETCH: u32 = encode_ioctl(READ_WRITE, 0x21, size_of::<UblkIoCommand>());

/// `struct ublksrv_io_desc`.
#[repr(C)]
#[derive(Clone, Copy)]
struct UblkRequestDescription {
    operation_and_flags: u32,
    sectors: u32,
    first_sector: u64,
    address: u64,
}

impl UblkRequestDescription {
    /// What is asked of a partition, or the error number that answers it. `data` gives the bytes of a write.
    fn operation<'a>(
        self,
        range: PartitionRange,
        data: impl FnOnce(usize) -> &'a [u8],
    ) -> Result<DiskOperation<'a>, i32> {
        let kind = self.operation_and_flags & OPERATION_MASK;
        if kind == OPERATION_FLUSH {
            return Ok(DiskOperation::Flush);
        }
        let offset = self.first_sector.saturating_mul(SECTOR_BYTES);
        let length = u64::from(self.sectors) * SECTOR_BYTES;
        let offset = range.locate(offset, length).ok_or(libc::EINVAL)?;
        match kind {
            OPERATION_DISCARD => Ok(DiskOperation::Discard { offset, length }),
            _ if length > LARGEST_REQUEST_BYTES as u64 => Err(libc::EINVAL),
            OPERATION_READ => Ok(DiskOperation::Read {
                offset,
                length: length as u32,
            }),
            OPERATION_WRITE => Ok(DiskOperation::Write {
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
struct UblkIoCommand {
    queue: u16,
    tag: u16,
    result: i32,
    address: u64,
}

/// What the serving thread is to do.
enum ServingOrder {
    Serve(UblkQueue),
    End,
}

/// The devices of a disk, for whoever makes and removes them while another thread serves them.
pub(crate) struct UblkDevices {
    orders: Sender<ServingOrder>,
    waker: Waker,
    mark: u64,
    volatile_cache: bool,
    /// Of each partition.
    ranges: Vec<PartitionRange>,
    live: Mutex<Vec<u32>>,
}

impl UblkDevices {
    /// Makes a block device of each partition; gives their paths. They are of the power cycle that is then.
    pub fn attach(&self) -> io::Result<Vec<String>> {
        let mut control = UblkControl::open()?;
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let mut paths = Vec::with_capacity(self.ranges.len());
        for (partition, range) in self.ranges.iter().enumerate() {
            let number = control.add(self.mark, range.size, self.volatile_cache)?;
            live.push(number);
            let queue = UblkQueue::new(number, partition, *range)?;
            self.order(ServingOrder::Serve(queue))?;
            // Waits for the serving thread, which then answers the kernel's look for a partition table.
            control.command::<u64>(START_DEVICE, number, None, u64::from(std::process::id()))?;
            paths.push(block_device_path(number));
        }
        Ok(paths)
    }

    /// Removes all block devices. Open files of them give errors from then on.
    pub fn detach(&self) -> io::Result<()> {
        let mut control = UblkControl::open()?;
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        for number in live.drain(..) {
            control.plain(STOP_DEVICE, number)?;
            control.delete(number)?;
        }
        Ok(())
    }

    /// Ends the server.
    pub fn end(&self) -> io::Result<()> {
        self.order(ServingOrder::End)
    }

    fn order(&self, order: ServingOrder) -> io::Result<()> {
        self.orders
            .send(order)
            .map_err(|_| io::Error::other("the device is no longer served"))?;
        self.waker.wake();
        Ok(())
    }
}

// Serving them.

/// The queue of a block device.
struct UblkQueue {
    device: File,
    /// The driver's description of each tag's request.
    descriptions: MemoryMapping,
    /// A buffer for each tag.
    payload: MemoryMapping,
    partition: usize,
    range: PartitionRange,
    /// The power cycle in which it was made.
    cycle: u64,
    /// Tags that the driver has not given back for good.
    tags: usize,
}

impl UblkQueue {
    fn new(number: u32, partition: usize, range: PartitionRange) -> io::Result<Self> {
        let device = open_queue(number)?;
        let descriptions = QUEUE_DEPTH * size_of::<UblkRequestDescription>();
        let descriptions = descriptions.next_multiple_of(page_bytes() as usize);
        Ok(Self {
            descriptions: MemoryMapping::of(&device, descriptions)?,
            device,
            payload: MemoryMapping::new(QUEUE_DEPTH * LARGEST_REQUEST_BYTES)?,
            partition,
            range,
            cycle: 0,
            tags: QUEUE_DEPTH,
        })
    }

    fn description(&self, tag: usize) -> UblkRequestDescription {
        let bytes = size_of::<UblkRequestDescription>() as u64;
        let at = self.descriptions.at(tag as u64 * bytes, bytes);
        // SAFETY: within the mapping; the driver writes it only while it has the tag.
        unsafe { at.cast::<UblkRequestDescription>().read_volatile() }
    }

    fn buffer(tag: usize) -> u64 {
        (tag * LARGEST_REQUEST_BYTES) as u64
    }

    /// A command for a tag, with the result of its last request.
    fn command(&self, command: u32, slot: usize, tag: usize, result: i32) -> squeue::Entry128 {
        let largest = LARGEST_REQUEST_BYTES as u64;
        let words = UblkIoCommand {
            queue: 0,
            tag: tag as u16,
            result,
            address: self.payload.at(Self::buffer(tag), largest) as u64,
        };
        opcode::UringCmd80::new(types::Fd(self.device.as_raw_fd()), command)
            .cmd(command_bytes(&words))
            .build()
            .user_data(processor_count(slot, tag))
    }

    /// The request that a tag has, or the error number that answers it.
    fn request(&self, slot: usize, tag: usize) -> Result<IncomingRequest<'_>, i32> {
        let data = |length| self.payload.read(Self::buffer(tag), length);
        let operation = self.description(tag).operation(self.range, data)?;
        Ok(IncomingRequest {
            tag: RequestTag(processor_count(slot, tag)),
            partition: self.partition,
            cycle: self.cycle,
            operation,
        })
    }
}

const TAG_BITS: u32 = 12;

fn processor_count(slot: usize, tag: usize) -> u64 {
    (slot << TAG_BITS | tag) as u64
}

fn slot_and_tag(number: u64) -> (usize, usize) {
    let number = number as usize;
    (number >> TAG_BITS, number & ((1 << TAG_BITS) - 1))
}

/// The queues of the devices that are served. The ring is first, so that it is dropped before their buffers.
pub(crate) struct Ublk {
    ring: CommandRing,
    queues: Vec<Option<UblkQueue>>,
    orders: Receiver<ServingOrder>,
    cycle: u64,
}

impl Ublk {
    /// Fails where the kernel has no ublk, the module is not loaded, or new devices do not appear in `/dev`, as in
    /// some containers.
    pub fn new(
        config: &ServerConfig,
        volatile_cache: bool,
        waker: &Waker,
    ) -> io::Result<(Self, UblkDevices)> {
        let mark = disk_mark(config.home());
        UblkControl::open()?.require_devices(mark)?;
        let (sender, orders) = channel();
        let devices = UblkDevices {
            orders: sender,
            waker: waker.try_clone()?,
            mark,
            volatile_cache,
            ranges: config.ranges().collect(),
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

    fn serve(&mut self, mut queue: UblkQueue) {
        queue.cycle = self.cycle;
        let free = self.queues.iter().position(Option::is_none);
        let slot = free.unwrap_or(self.queues.len());
        if free.is_none() {
            self.queues.push(None);
        }
        let queue = self.queues[slot].insert(queue);
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
    fn receive(
        &mut self,
        wait: ReceiveWait,
        mut take: impl FnMut(IncomingRequest<'_>),
    ) -> io::Result<ReceiveOutcome> {
        self.ring.enter_if_needed(wait)?;
        while let Some(event) = self.ring.event() {
            let RingEvent::Command { number, result } = event else {
                while let Ok(order) = self.orders.try_recv() {
                    match order {
                        ServingOrder::Serve(queue) => self.serve(queue),
                        ServingOrder::End => return Ok(ReceiveOutcome::Ended),
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
        Ok(ReceiveOutcome::Requests)
    }

    fn answer(&mut self, tag: RequestTag, answer: RequestAnswer<'_>) {
        let (slot, tag) = slot_and_tag(tag.0);
        let result = match answer {
            RequestAnswer::Data(data) => {
                if let Some(queue) = &self.queues[slot] {
                    queue.payload.write(UblkQueue::buffer(tag), data);
                }
                data.len() as i32
            }
            RequestAnswer::Written(length) => length as i32,
            RequestAnswer::Done => 0,
            RequestAnswer::Failed => -libc::EIO,
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
    fn asked(
        operation: u32,
        first_sector: u64,
        sectors: u32,
    ) -> Result<DiskOperation<'static>, i32> {
        let description = UblkRequestDescription {
            operation_and_flags: operation | 1 << 13,
            sectors,
            first_sector,
            address: 0,
        };
        let range = PartitionRange {
            start: 1 << 20,
            size: 8192,
        };
        description.operation(range, |length| &[7; 8192][..length])
    }

    #[test]
    fn a_request_of_a_partition_is_one_of_its_range_of_the_disk() {
        let Ok(DiskOperation::Read { offset, length }) = asked(OPERATION_READ, 8, 8) else {
            panic!("a read");
        };
        assert_eq!((offset, length), ((1 << 20) + 4096, 4096));
        let Ok(DiskOperation::Write { offset, data }) = asked(OPERATION_WRITE, 0, 16) else {
            panic!("a write");
        };
        assert_eq!((offset, data), (1 << 20, [7; 8192].as_slice()));
        let Ok(DiskOperation::Discard { offset, length }) = asked(OPERATION_DISCARD, 8, 8) else {
            panic!("a discard");
        };
        assert_eq!((offset, length), ((1 << 20) + 4096, 4096));
        // Its place is of no meaning.
        assert!(matches!(
            asked(OPERATION_FLUSH, u64::MAX, 9),
            Ok(DiskOperation::Flush)
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
            assert_eq!(slot_and_tag(processor_count(slot, tag)), (slot, tag));
        }
    }

    /// Computed from `linux/ublk_cmd.h` of Debian 12 by a C compiler, as those of ublk_control.rs.
    #[test]
    fn commands_and_descriptions_are_those_of_the_kernel() {
        assert_eq!((FETCH, COMMIT_AND_FETCH), (0xc010_7520, 0xc010_7521));
        assert_eq!(size_of::<UblkRequestDescription>(), 24);
    }
}
