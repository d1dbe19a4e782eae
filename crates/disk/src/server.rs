//! Puts the parts together: one process serves one device until its file system is unmounted.

use std::io::{Write, stderr};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, mpsc};
use std::thread;

use fuser::{Config, MountOption, Session};
use tierwise_device::{Device, Nanos};

use crate::config::ServerConfig;
use crate::files::{Files, ServedFile};
use crate::privilege::Warnings;
use crate::reply::FuseReply;
use crate::service::Service;
use crate::stats::Counters;
use crate::store::MemoryStore;
use crate::volatile::{VolatileStore, WriteCache};
use crate::{DiskError, control};

/// Threads that read requests from the kernel.
const READERS: usize = 2;

/// Serves a device as a [`ServerConfig`] in JSON describes; returns when it has been unmounted.
pub fn serve(config: &str) -> Result<(), DiskError> {
    let config = ServerConfig::parse(config)?;
    let profile = config.profile()?;
    let mut device = profile.build(config.seed);
    config.require_fit(device.capacity_sectors())?;
    let cache = config.write_cache(&profile)?;
    device.precondition(config.precondition.into());
    abort_on_panic();
    let mut warnings = Warnings::default();
    warnings.lock_memory();
    warnings.raise_priority();
    let service = Arc::new(service(&config, device, cache)?);
    let session = mount(&config, Arc::clone(&service))?;
    start_timer(Arc::clone(&service), &mut warnings)?;
    let listener =
        UnixListener::bind(&config.socket).map_err(DiskError::system("control socket"))?;
    start_control(listener, service, warnings.0)?;
    session.run().map_err(DiskError::system("reading requests"))
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

fn service(
    config: &ServerConfig,
    device: Box<dyn Device>,
    cache: WriteCache,
) -> Result<Service<FuseReply>, DiskError> {
    let store = MemoryStore::new(config.size_bytes()).map_err(DiskError::system("memory"))?;
    let names = config
        .partitions
        .iter()
        .map(|partition| partition.name.clone());
    let counters = Counters::new(names, nanos(config.path_us));
    Ok(Service::new(
        device,
        VolatileStore::new(Box::new(store), cache, config.write_back()),
        counters,
        nanos(config.spin_us),
    ))
}

fn nanos(us: f64) -> Nanos {
    (us * 1e3) as Nanos
}

fn mount(
    config: &ServerConfig,
    service: Arc<Service<FuseReply>>,
) -> Result<Session<Files>, DiskError> {
    let files = Files {
        files: served_files(config),
        service,
    };
    let mut options = Config::default();
    options.mount_options = vec![
        MountOption::FSName(config.name.clone()),
        MountOption::Subtype("tierwise".into()),
    ];
    options.n_threads = Some(READERS);
    Session::new(files, &config.mount, &options).map_err(DiskError::system("mounting FUSE"))
}

fn served_files(config: &ServerConfig) -> Vec<ServedFile> {
    let mut start = 0;
    let mut files = Vec::with_capacity(config.partitions.len());
    for partition in &config.partitions {
        files.push(ServedFile {
            name: format!("{}.img", partition.name),
            start,
            size: partition.size_bytes,
        });
        start += partition.size_bytes;
    }
    files
}

/// Starts the thread that answers, and waits for the system's refusals of its privileges.
fn start_timer(service: Arc<Service<FuseReply>>, warnings: &mut Warnings) -> Result<(), DiskError> {
    let (sender, refusals) = mpsc::channel();
    let timer = move || {
        let mut refused = Warnings::default();
        refused.make_realtime();
        drop(sender.send(refused));
        service.run_timer()
    };
    start("timer", timer)?;
    warnings.0.extend(refusals.recv().unwrap_or_default().0);
    Ok(())
}

fn start_control(
    listener: UnixListener,
    service: Arc<Service<FuseReply>>,
    warnings: Vec<String>,
) -> Result<(), DiskError> {
    start("control", move || {
        control::listen(&listener, &service, &warnings)
    })
}

fn start(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), DiskError> {
    let thread = thread::Builder::new().name(name.into()).spawn(body);
    thread
        .map(drop)
        .map_err(DiskError::system("starting a thread"))
}
