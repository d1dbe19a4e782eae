"""Records a running database by programs in the kernel.

Not here: anything that reads a finished recording; see ``recording``.
"""
