"""Decision support, derived from TPC-H: its results are not comparable to published TPC results."""
