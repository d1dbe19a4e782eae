"""Checks in a guest: each module has ``CHECKS``, functions without arguments."""
