"""The protobuf messages that `xla_stalloc.hlo` reads: `hlo.proto` and the code generated from it."""
