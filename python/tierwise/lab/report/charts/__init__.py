"""Charts of studies, comparisons and validation."""
