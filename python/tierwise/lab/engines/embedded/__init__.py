"""Engines that are libraries: each runs in its own worker process."""
