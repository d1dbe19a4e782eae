"""The commands of the lab; ``tierwise.cli.commands`` imports each on use.

Not here: options and output that all commands share; see ``cli``.
"""
