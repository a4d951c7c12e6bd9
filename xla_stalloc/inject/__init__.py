"""The levers' ways into a running program: the compiler hook around every compile of JAX.

`jit.jit` plans one function, `switch.enable` the whole process, `jax_plugin` what the environment asks for. All three
only say what is wanted (`settings`); `interception` marks the program (`marker`), `hook` plans it inside the compiler,
`interception` again keeps the smaller of planned and stock, and `ledger` keeps the record.
"""
