"""The type of the labels that a virtual network's plugin is given.

Used by the models; ``network_labels`` also when the options become a ServiceSpec. Pure.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from dcos_tensorflow.options.values import Allowed, problem

#: The published package says: k_0:v_0,k_1:v_1,...,k_n:v_n; values may be empty, keys not.
_EXAMPLE = "labels such as k_0:v_0,k_1:v_1, or empty text"


def network_labels(text: str) -> dict[str, str]:
    """Return the labels in ``text``. Raises ValueError that says what is wrong."""
    labels: dict[str, str] = {}
    for part in text.split(",") if text.strip() else ():
        key, colon, value = (piece.strip() for piece in part.partition(":"))
        if not key or not colon:
            raise ValueError(f"{part.strip()!r} is not of the form key:value")
        if key in labels:
            raise ValueError(f"the label {key} stands there more than once")
        labels[key] = value
    return labels


def _network_labels(value: str) -> str:
    try:
        network_labels(value)
    except ValueError as error:
        raise problem(str(error)) from None
    return value


NetworkLabels = Annotated[str, AfterValidator(_network_labels), Allowed(_EXAMPLE)]
