"""A download from a server into a file: the whole of it, or an error.

Used by the fetcher of the embedded Mesos and by the cache of the local DC/OS.
"""

from __future__ import annotations

import shutil
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import http.client


def save(response: http.client.HTTPResponse, out: IO[bytes]) -> None:
    """Write the whole body of a response to an empty file.

    Raises OSError when the connection broke. Python itself notices that of chunked bodies only.
    """
    shutil.copyfileobj(response, out)
    told = response.headers.get("Content-Length")
    if told is not None and out.tell() != int(told):
        raise OSError(f"the connection broke after {out.tell()} of {told} bytes")
