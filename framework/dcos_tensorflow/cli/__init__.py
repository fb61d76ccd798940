"""The command line: dcos-tensorflow."""
