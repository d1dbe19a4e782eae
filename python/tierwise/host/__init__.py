"""Everything that needs root, and its undoing."""
