"""The spatial lever on XLA:CPU: our offsets for temporaries inside a compiled executable.

`framing` takes a serialized executable apart, `thunks` reads what runs, `aliases` and `liveness` find which slices move
together and when they are needed, `problem` makes blocks of them. `rewrite` moves these to other offsets, `verify` runs
the result beside the original. `repack` does all of it, `lever` puts it into a compile.
"""
