//! Puts the parts together: one process serves one device until its file system is unmounted.

use std::io::{self, Write, stderr};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use tierwise_device::{Device, Nanos};

use crate::byte_store::MemoryStore;
use crate::byte_store::{VolatileStore, WriteCacheMode};
use crate::control_socket::CommandSender;
use crate::device_counters::DeviceCounters;
use crate::event_loop::{ServedDevice, SpinTime};
use crate::priority::PrivilegeWarnings;
use crate::priority::{self, ServingState};
use crate::server_config::ServerConfig;
use crate::transport::fuse::{self, ServedFiles};
use crate::transport::fuse_device::FuseDevice;
use crate::transport::fuse_uring::{FuseUring, FuseUringSwitch, QueueRing};
use crate::transport::ublk::{Ublk, UblkDevices};
use crate::transport::{Transport, TransportKind, Waker};
use crate::{DiskError, control_socket};

/// Serves a device as a [`ServerConfig`] in JSON describes; returns when it has been unmounted.
pub fn serve_device(config: &str) -> Result<(), DiskError> {
    let config = ServerConfig::parse(config)?;
    let profile = config.profile()?;
    let mut device = profile.build(config.seed);
    config.require_fit(device.capacity_sectors())?;
    let cache = config.write_cache(&profile)?;
    device.precondition(config.precondition.into());
    abort_on_panic();
    let mut warnings = PrivilegeWarnings::default();
    warnings.lock_memory();
    let waker = Waker::new().map_err(DiskError::system("waker"))?;
    let server = DiskServer {
        config: &config,
        device,
        cache,
        warnings,
        waker: &waker,
    };
    match config.transport {
        None | Some(TransportKind::Ublk) => {
            match Ublk::new(&config, profile.write_cache(), &waker) {
                Ok((transport, devices)) => {
                    server.run(TransportKind::Ublk, Some(devices), || Ok(transport))
                }
                Err(error) if config.transport.is_some() => Err(DiskError::NoUblk(error)),
                Err(_) => server.run_fuse(),
            }
        }
        _ => server.run_fuse(),
    }
}

/// What serves, apart from the transport.
struct DiskServer<'a> {
    config: &'a ServerConfig,
    device: Box<dyn Device>,
    cache: WriteCacheMode,
    warnings: PrivilegeWarnings,
    waker: &'a Waker,
}

impl DiskServer<'_> {
    /// Over `io_uring`, if the kernel has that for FUSE.
    fn run_fuse(self) -> Result<(), DiskError> {
        let (config, waker) = (self.config, self.waker);
        let clone = || waker.try_clone();
        let queues = match config.transport {
            Some(TransportKind::Fuse) => None,
            _ => clone().and_then(QueueRing::new).ok(),
        };
        let connection = {
            let _enabled = queues
                .as_ref()
                .map(|_| FuseUringSwitch::new(&config.socket));
            fuse::mount_and_connect(config, queues.is_some())?
        };
        let queues = queues.filter(|_| connection.over_io_uring);
        if queues.is_none() && config.transport == Some(TransportKind::FuseIoUring) {
            return Err(DiskError::NoIoUring);
        }
        let files = ServedFiles::new(config);
        match queues {
            Some(queues) => self.run(TransportKind::FuseIoUring, None, || {
                FuseUring::new(queues, connection, files)
            }),
            None => self.run(TransportKind::Fuse, None, || {
                FuseDevice::new(connection, files, clone()?)
            }),
        }
    }

    fn run<T: Transport>(
        mut self,
        kind: TransportKind,
        devices: Option<UblkDevices>,
        transport: impl FnOnce() -> io::Result<T>,
    ) -> Result<(), DiskError> {
        let (sender, commands) = channel();
        let listener =
            UnixListener::bind(&self.config.socket).map_err(DiskError::system("control socket"))?;
        self.warnings.raise_weight();
        let watched = ServingState::new();
        self.warnings
            .0
            .extend(start_priority_thread(watched.clone())?.0);
        let asking = CommandSender {
            sender,
            waker: self.waker.try_clone().map_err(DiskError::system("waker"))?,
            warnings: self.warnings.0,
            devices: devices.map(Arc::new),
        };
        start_transport("control", move || {
            control_socket::answer_control_socket(&listener, &asking)
        })?;
        let served = new_served_device(self.config, kind, self.device, self.cache, watched)?;
        let transport = transport().map_err(DiskError::system("taking requests"))?;
        served.run(transport, &commands)
    }
}

/// Ends the server on a defect: its clients then get errors, where with one thread gone they would hang.
///
/// Prints the reason straight to the standard error: a test harness's captured output is lost with the
/// process.
fn abort_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = thread::current();
        let name = thread.name().unwrap_or("unnamed");
        drop(writeln!(stderr(), "thread '{name}' {panic}"));
        std::process::abort();
    }));
}

fn new_served_device(
    config: &ServerConfig,
    transport: TransportKind,
    device: Box<dyn Device>,
    cache: WriteCacheMode,
    watched: ServingState,
) -> Result<ServedDevice, DiskError> {
    let store = MemoryStore::new(config.size_bytes()).map_err(DiskError::system("memory"))?;
    let names = config
        .partitions
        .iter()
        .map(|partition| partition.name.clone());
    Ok(ServedDevice::new(
        device,
        VolatileStore::new(Box::new(store), cache, config.write_back()),
        DeviceCounters::new(transport, names, config_nanos(config.path_us)),
        SpinTime::new(config_nanos(config.spin_us)),
        watched,
    ))
}

/// Starts the thread that watches over the calling one, and waits for the system's refusals of its privileges.
fn start_priority_thread(watched: ServingState) -> Result<PrivilegeWarnings, DiskError> {
    let (sender, refusals) = channel();
    // SAFETY: takes nothing.
    let serving = unsafe { libc::gettid() };
    start_transport("watch", move || {
        priority::raise_priority_when_late(&watched, serving, |refused| drop(sender.send(refused)))
    })?;
    Ok(refusals.recv().unwrap_or_default())
}

fn config_nanos(us: f64) -> Nanos {
    (us * 1e3) as Nanos
}

fn start_transport(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), DiskError> {
    let thread = thread::Builder::new().name(name.into()).spawn(body);
    thread
        .map(drop)
        .map_err(DiskError::system("starting a thread"))
}
