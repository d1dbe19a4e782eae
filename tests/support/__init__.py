"""What several tests use: factories, fakes, servers, suites. A test module imports nothing from another."""
