"""The Chakra trace format: wire codec, schema, writing a workload, reading, validating and converting traces."""
