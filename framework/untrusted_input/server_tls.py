"""The certificate that a server of ours shows, read again when its files change.

Used by ``asgi_server`` and, before there is a server, by the command line, which checks the files.
The program that renews certificates replaces the files; connections after that are shown
the new one, those before go on, and a pair that does not fit yet changes nothing.
"""

from __future__ import annotations

import logging
import os
import ssl
from pathlib import Path

log = logging.getLogger(__name__)


class CertificateUnusable(ValueError):
    """Nothing can be served with these files; the text says why, and nothing of a key."""


class ServerTls:
    """One certificate (PEM, with those that lead to its authority) and its key.

    Raises CertificateUnusable.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self.certificate = certificate
        self._key = key
        self._stamp = self._found()
        self._context = self._loaded()

    def newest(self) -> ssl.SSLContext:
        """Return what a connection is encrypted with, of the newest files; costs two looks."""
        found = self._found()
        if found != self._stamp:
            self._stamp = found
            self._take()
        return self._context

    def _take(self) -> None:
        try:
            # Beside first: half a pair would spoil the context that serves.
            self._loaded()
            self._load_into(self._context)
        except CertificateUnusable as error:
            log.error("the old certificate stays in use: %s", error)
        else:
            log.info("the certificate in %s is shown from now on", self.certificate)

    def _found(self) -> tuple[tuple[int, ...], ...]:
        stamps: list[tuple[int, ...]] = []
        for path in (self.certificate, self._key):
            try:
                found = os.stat(path)
                stamps.append((found.st_ino, found.st_mtime_ns, found.st_size))
            except OSError:
                stamps.append(())
        return tuple(stamps)

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._load_into(context)
        return context

    def _load_into(self, context: ssl.SSLContext) -> None:
        try:
            # Without a password OpenSSL would ask at the terminal.
            context.load_cert_chain(self.certificate, self._key, password=_refuse)
        except (OSError, ValueError) as error:
            why = (isinstance(error, ssl.SSLError) and error.reason) or error
            raise CertificateUnusable(
                f"{self.certificate} and {self._key} are no certificate and its key: {why}"
            ) from None


def _refuse() -> str:
    raise ValueError("the key needs a password, and the scheduler has none")
