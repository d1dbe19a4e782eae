"""Records a running database from kernel tracepoints.

Not here: anything that reads a finished recording; see ``recording``.
"""
