"""A moto server in a process of its own, with an empty bucket: the S3 of the benchmarks of jobs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

BUCKET = "bench"
KEYS = {
    "AWS_ACCESS_KEY_ID": "benchmark",
    "AWS_SECRET_ACCESS_KEY": "benchmark",
    "AWS_EC2_METADATA_DISABLED": "true",
}
_SERVER = """
import os, sys
from moto.server import create_backend_app
from werkzeug.serving import make_server, WSGIRequestHandler

os.nice(int(sys.argv[1]))
WSGIRequestHandler.log = lambda *a, **k: None
server = make_server("127.0.0.1", 0, create_backend_app("s3"), True)
print(server.server_port, flush=True)
server.serve_forever()
"""


@contextlib.contextmanager
def moto_server(nice: int = 0) -> Iterator[str]:
    """Yield its URL. With ``nice`` it gives way to what is measured."""
    command = [sys.executable, "-c", _SERVER, str(nice)]
    environment = {**os.environ, **KEYS}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}"
            request = urllib.request.Request(f"{url}/{BUCKET}", method="PUT")
            with urllib.request.urlopen(request):
                pass
            yield url
        finally:
            server.kill()
