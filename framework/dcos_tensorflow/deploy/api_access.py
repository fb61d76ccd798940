"""Callers of a scheduler's API, and what it shows them first: its settings as its parts.

Used by ``served_job`` at the first request.
"""

from __future__ import annotations

import functools
import ssl
from pathlib import Path

from dcos_tensorflow.api.callers.access import Access
from dcos_tensorflow.api.callers.dcos_tokens import DcosTokens, KeyFile, KeyService
from dcos_tensorflow.api.callers.trusted_addresses import TrustedAddresses
from dcos_tensorflow.scheduler.configuration import SchedulerConfig
from untrusted_input.listening import ServerNotStarted
from untrusted_input.server_tls import CertificateUnusable, ServerTls


def access_of(config: SchedulerConfig) -> Access:
    """Return who is let in."""
    users = config.api_dcos
    if users is None:
        routers = TrustedAddresses(config.api_from) if config.api_from else None
        return Access(config.api_token, config.api_read_token, trusted=routers)
    keys: KeyFile | KeyService
    if users.keys.startswith("https://"):
        # Those who are trusted to be the masters are trusted to be their identity service.
        trusted = functools.partial(ssl.create_default_context, cafile=config.ca_file or None)
        keys = KeyService(users.keys, trusted)
    else:
        keys = KeyFile(Path(users.keys))
    logins = DcosTokens(keys, users.operators, users.readers)
    return Access(config.api_token, config.api_read_token, logins)


def certificate_of(config: SchedulerConfig) -> ServerTls | None:
    """Return what the API encrypts with; None for plain HTTP. Raises ServerNotStarted."""
    if not config.api_cert:
        return None
    try:
        return ServerTls(Path(config.api_cert), Path(config.api_key))
    except CertificateUnusable as error:
        raise ServerNotStarted(f"the API speaks no TLS: {error}") from error
