"""Errors that another try may not meet: something on the network did not answer, or another task.

One list, for what the user's code raises (``exit_analysis``) and for what an installer prints
(``task.python.package_installer``). Pure.
"""

from __future__ import annotations

import re

#: Words for something that was not reached: of pip, uv and what they call by, of Python and of the
#: libraries that load data and weights. An answer of 5xx, 408 or 429 is none, either.
_NOT_REACHED = re.compile(
    r"NewConnectionError|ConnectTimeoutError|ReadTimeoutError|ConnectionResetError|ProtocolError"
    r"|Temporary failure in name resolution|Name or service not known|Network is unreachable"
    r"|nodename nor servname provided|No address associated with hostname|No route to host"
    r"|Failed to resolve|could not resolve host|Max retries exceeded"
    r"|Connection (?:refused|reset|broken|aborted|timed out)|ProxyError|IncompleteRead|dns error"
    r"|error sending request|operation timed out|tcp connect error|request timed out"
    r"|The read operation timed out|urlopen error timed out|handshake operation timed out"
    r"|Remote end closed connection|retrieval incomplete|EOF occurred in violation of protocol"
    r"|Incomplete or corrupted file detected|Couldn't reach|We couldn't connect to"
    r"|(?:HTTP|Server) error:? \(?5\d\d|HTTP (?:status|error) (?:server error \()?5\d\d"
    r"|HTTP Error (?:408|429)\b|(?:HTTP code|Status code):? (?:5\d\d|408|429)\b"
    r"|\b(?:5\d\d Server Error|429 Client Error|408 Client Error|429 Too Many Requests)\b"
    r"|URL fetch failure on .*: (?:5\d\d|408|429|None -- (?!.*CERTIFICATE))",
    re.IGNORECASE,
)
#: Exceptions that by their name tell of another process: a peer, a server.
_OF_ANOTHER = re.compile(
    r"[Cc]onnect|[Tt]imeout|^(?:URLError|gaierror|BrokenPipeError|AbortedError|CancelledError"
    r"|DeadlineExceededError|Unavailable\w*|ServiceUnavailable|TooManyRequests|IncompleteRead"
    r"|ContentTooShortError|ProtocolError|ProxyError|MaxRetryError|RemoteProtocolError"
    r"|NameResolutionError|SSLEOFError)$"
)


def is_passing(line: str) -> bool:
    """Say whether a line tells of something that was not reached, and may be the next time."""
    return _NOT_REACHED.search(line) is not None


def is_of_another(exception: str) -> bool:
    """Say whether an exception of this type tells of another process, whatever its text says."""
    return _OF_ANOTHER.search(exception.rpartition(".")[2]) is not None
