"""The memory map: time against address, a box for every buffer."""
