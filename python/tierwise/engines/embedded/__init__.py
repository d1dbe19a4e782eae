"""Engines that are libraries: each lives in a worker process of its own."""
