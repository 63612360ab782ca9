"""The emulated cluster: real bytes over real sockets between network namespaces."""
