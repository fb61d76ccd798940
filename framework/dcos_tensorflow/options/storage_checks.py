"""Rules about S3 that span several options, and what cannot be honoured yet. Pure.

Called by ``cross_checks``; each rule names the options that it looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import normpath

from dcos_tensorflow.options.document import shown
from dcos_tensorflow.options.errors import Finding
from dcos_tensorflow.options.models import Options
from dcos_tensorflow.options.storage_values import BUCKET_PLACE, bucket_flaw, is_s3

#: The groups of options in which nothing may stand that looks like a key.
STORAGE_GROUPS = ("checkpoints", "data", "data_cache", "logs", "s3")
KEY_REFUSED = (
    "looks like a key, which would be stored and shown to everyone; s3.credentials names where "
    "keys are, and holds none"
)


def checkpoints_uri(options: Options) -> str:
    """Return where checkpoints are kept in S3: where it is said, else below the shared place."""
    given, shared = options.checkpoints.uri, options.service.shared_filesystem
    if given:
        return given if is_s3(given) else ""
    return f"{shared.rstrip('/')}/checkpoints" if is_s3(shared) else ""


def storage_findings(options: Options) -> Iterator[Finding]:
    """Yield what is wrong with options about S3 each of which is right in itself."""
    yield from _shared_filesystem(options)
    yield from _initial(options)
    yield from _credentials(options)
    yield from _data(options)


def _shared_filesystem(options: Options) -> Iterator[Finding]:
    path, shared = "service.shared_filesystem", options.service.shared_filesystem
    flaw = bucket_flaw(shared) if is_s3(shared) else ""
    if flaw:
        yield Finding(path, flaw, BUCKET_PLACE, (path,))


def _initial(options: Options) -> Iterator[Finding]:
    if options.checkpoints.initial_uri and not checkpoints_uri(options):
        path, uri = "checkpoints.initial_uri", "checkpoints.uri"
        yield Finding(
            path,
            "needs checkpoints in S3: what is published there tells whether training has begun",
            f"empty text, or {BUCKET_PLACE} in {uri}",
            (path, uri, "service.shared_filesystem"),
        )


def _credentials(options: Options) -> Iterator[Finding]:
    given, prefix = options.s3.credentials, "s3.credentials"
    if given.env and given.file:
        yield Finding(
            f"{prefix}.file",
            f"both {prefix}.env ({shown(given.env)}) and {prefix}.file are set, and the "
            "credentials are in one of them",
            f"either {prefix}.env or {prefix}.file",
            (f"{prefix}.env", f"{prefix}.file"),
        )
    if given.secret and (given.env or given.file):
        other = f"{prefix}.env" if given.env else f"{prefix}.file"
        yield Finding(
            f"{prefix}.secret",
            f"both {other} and {prefix}.secret are set, and the credentials are in one of them",
            f"either {other} or {prefix}.secret",
            (f"{prefix}.secret", other),
        )


def _data(options: Options) -> Iterator[Finding]:
    """No two sources may be put at one place, nor one into the other."""
    places: list[tuple[str, ...]] = []
    for number, source in enumerate(options.data):
        place = tuple(normpath(source.path).split("/"))
        for other, before in enumerate(places):
            shorter = min(len(place), len(before))
            if place[:shorter] == before[:shorter]:
                yield Finding(
                    f"data.{number}.path",
                    f"is where data.{other} is put, or within, or around it",
                    "a place of its own",
                    ("data",),
                    shown(source.path),
                )
                break
        places.append(place)
