//! Puts the parts together: one process serves one device until its file system is unmounted.

use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread;

use fuser::{Config, MountOption, Session};
use tierwise_device::{Device, Nanos, Profile};

use crate::config::ServerConfig;
use crate::files::{Files, FuseReply, ServedFile};
use crate::privilege::{READER_PRIORITY, TIMER_PRIORITY, Warnings};
use crate::service::Service;
use crate::stats::Counters;
use crate::store::MemoryStore;
use crate::{DiskError, control, privilege};

/// Threads that read requests from the kernel.
const READERS: usize = 2;

/// Serves a device as a [`ServerConfig`] in JSON describes; returns when it has been unmounted.
pub fn serve(config: &str) -> Result<(), DiskError> {
    let config = ServerConfig::parse(config)?;
    let device = Profile::parse(&config.profile, &config.profile_file)?.build(config.seed);
    config.require_fit(device.capacity_sectors())?;
    let mut warnings = Warnings::default();
    warnings.lock_memory();
    warnings.make_realtime(READER_PRIORITY);
    let service = Arc::new(service(&config, device)?);
    let session = mount(&config, Arc::clone(&service))?;
    start_timer(Arc::clone(&service))?;
    start_control(&config, Arc::clone(&service), warnings.0)?;
    session.run().map_err(DiskError::system("reading requests"))
}

fn service(
    config: &ServerConfig,
    device: Box<dyn Device>,
) -> Result<Service<FuseReply>, DiskError> {
    let store = MemoryStore::new(config.size_bytes()).map_err(DiskError::system("memory"))?;
    let names = config
        .partitions
        .iter()
        .map(|partition| partition.name.clone());
    let counters = Counters::new(names, nanos(config.path_us));
    Ok(Service::new(
        device,
        Box::new(store),
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

fn start_timer(service: Arc<Service<FuseReply>>) -> Result<(), DiskError> {
    let timer = move || {
        // Refused for this thread only if it was refused, and reported, for all.
        Warnings::default().make_realtime(TIMER_PRIORITY);
        service.run_timer()
    };
    thread::Builder::new()
        .name("timer".into())
        .spawn(timer)
        .map_err(DiskError::system("thread"))?;
    Ok(())
}

fn start_control(
    config: &ServerConfig,
    service: Arc<Service<FuseReply>>,
    warnings: Vec<String>,
) -> Result<(), DiskError> {
    let listener =
        UnixListener::bind(&config.socket).map_err(DiskError::system("control socket"))?;
    let control = move || {
        privilege::make_ordinary();
        control::listen(&listener, &service, &warnings);
    };
    thread::Builder::new()
        .name("control".into())
        .spawn(control)
        .map_err(DiskError::system("thread"))?;
    Ok(())
}
