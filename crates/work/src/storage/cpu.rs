//! Processor time of storage, as recorded: the kernel's threads for block devices and file systems, and the servers of
//! emulated disks.

use tierwise_recording::StorageCpu;

use crate::index::view::View;

/// Processor time of storage in all bursts; none if that of one burst is not known.
pub(crate) fn used(view: &View<'_>) -> Option<StorageCpu> {
    let bursts = view.recording.about.bursts.iter();
    let none = StorageCpu {
        server_ns: 0,
        kernel_ns: 0,
    };
    bursts
        .map(|burst| burst.storage_cpu)
        .try_fold(none, |sum, one| {
            one.map(|one| StorageCpu {
                server_ns: sum.server_ns.saturating_add(one.server_ns),
                kernel_ns: sum.kernel_ns.saturating_add(one.kernel_ns),
            })
        })
}
