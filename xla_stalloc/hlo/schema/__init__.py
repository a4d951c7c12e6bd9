"""The protobuf messages that are read and rewritten: `hlo.proto`, `cpu_executable.proto`, and their generated code."""
