"""Decision support, derived from TPC-H: what is measured is not comparable to published TPC results."""
