"""``python -m dcos_tensorflow``: the same as the command ``dcos-tensorflow``."""

from dcos_tensorflow.cli.main import main

main()
