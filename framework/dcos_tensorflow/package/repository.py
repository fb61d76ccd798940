"""A package as a repository document, for ``dcos package repo add``: one package and nothing else.

Called by ``packaging/`` and by tests. The document is what Universe itself serves, so a cluster
cannot tell the difference (Universe, v4-repo-schema.json).
"""

from __future__ import annotations

import base64
from typing import Any

from dcos_tensorflow.package.definition import Package

#: The media type that a repository of this form must be served with.
CONTENT_TYPE = "application/vnd.dcos.universe.repo+json;charset=utf-8;version=v4"


def repository_document(package: Package, *, last_updated: int) -> dict[str, Any]:
    """Return the repository with ``package`` alone. ``last_updated`` is in seconds since 1970."""
    template = base64.b64encode(package.template.encode("utf-8")).decode("ascii")
    entry = {
        **package.description,
        "releaseVersion": 0,
        "lastUpdated": last_updated,
        "config": package.config,
        "marathon": {"v2AppMustacheTemplate": template},
        "resource": package.resource,
    }
    return {"packages": [entry]}
