"""The command line, `xla-stalloc COMMAND`: one file per command; nothing here imports jax before a command runs."""
