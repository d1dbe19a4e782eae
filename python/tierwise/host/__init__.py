"""Changes to the host and their undoing: ledger, processes, mounts, disks, caches.

Not here: engines and measurements.
"""
