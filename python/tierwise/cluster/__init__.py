"""Work on a Dask cluster, experiments on its hosts, and recordings that every worker can reach.

Not here: the ``Executor`` protocol and threads, which are in ``model``.
"""
