"""Runs a study: storage for a placement, the measured phase, placement verification, one record per run."""
