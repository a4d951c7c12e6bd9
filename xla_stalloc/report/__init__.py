"""What people read: where the memory of a compiled program goes, and what to do about it."""
