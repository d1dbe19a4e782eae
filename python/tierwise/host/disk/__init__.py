"""The live emulated disk: its server, partitions, counters and faults."""
