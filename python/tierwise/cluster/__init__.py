"""Work on a Dask cluster, and recordings that every worker can reach.

Not here: the ``Executor`` protocol and threads (``model``), and hosts of experiments (``lab``).
"""
