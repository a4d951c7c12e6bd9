"""Out-of-memory errors: what compilers and runtimes say, and what it means."""
