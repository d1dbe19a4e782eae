"""The live page: HTTP server, questions from its sliders, one queue of simulations.

Not here: the page itself (``report``), the simulator (``predict``), the command line.
"""
