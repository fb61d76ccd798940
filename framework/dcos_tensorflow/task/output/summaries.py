"""Reads an event of TensorFlow's event files: its step, and the scalars of its summary. Pure.

``event_files`` reads the events. TensorFlow is not needed: of a protocol buffer the few fields are
read that count here, and whatever is none, or is cut off, tells nothing.

Source: tensorflow/core/util/event.proto, tensorflow/core/framework/{summary,tensor}.proto.
"""

from __future__ import annotations

import os
import re
import struct
from typing import Dict, Iterator, Optional, Tuple, Union

#: Wire types of a protocol buffer's fields.
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_MAX_STEP = 2**63
#: Numbers of fields.
_STEP, _SUMMARY = 2, 5
_VALUE = 1
_TAG, _SIMPLE_VALUE, _TENSOR = 1, 2, 8
#: Where a tensor has its only number, and how that is written: by the field, or by its type.
_TYPE, _CONTENT, _FLOATS, _DOUBLES = 1, 4, 5, 6
_FORMS = {1: "<f", 2: "<d"}
#: Keras' callback for TensorBoard calls its metrics so, ...
_OF_AN_EPOCH = "epoch_"
#: ... and tells them once more of each batch, and of an evaluation by the batches until then.
_ONCE_MORE = re.compile(r"batch_(?!size$).+|evaluation_.+_vs_iterations")
#: ... and who measures on other data than the training's writes into a folder of such a name.
_OTHER_DATA = {"validation": "val_", "val": "val_", "test": "test_", "eval": "eval_"}


def step_of(event: bytes) -> Optional[int]:
    """Return the step of an Event message, of which ``event`` is the beginning; None if unknown."""
    for number, value in _fields(event):
        if number == _STEP and isinstance(value, int):
            return value if value < _MAX_STEP else None
    return None


def scalars_of(event: bytes) -> Dict[str, float]:
    """Return the scalars that an Event message tells, by their tags."""
    found: Dict[str, float] = {}
    for summary in _messages(event, _SUMMARY):
        for value in _messages(summary, _VALUE):
            _take(value, found)
    return found


def metric_of(tag: str, path: str) -> str:
    """Return what a scalar is called whose tag was written into the event file ``path``.

    As Keras does: ``epoch_accuracy`` is ``accuracy``, and ``val_accuracy`` in ``validation``. It is
    empty for what Keras tells of the same metric by another name, at other steps.
    """
    if _ONCE_MORE.fullmatch(tag):
        return ""
    name = tag[len(_OF_AN_EPOCH) :] if tag.startswith(_OF_AN_EPOCH) else tag
    return _OTHER_DATA.get(os.path.basename(os.path.dirname(path)), "") + name


def _take(value: bytes, found: Dict[str, float]) -> None:
    fields = dict(_fields(value))
    tag, simple, tensor = (fields.get(n) for n in (_TAG, _SIMPLE_VALUE, _TENSOR))
    number = simple if isinstance(simple, bytes) else b""
    form = "<f"
    if isinstance(tensor, bytes):
        told = dict(_fields(tensor))
        kind = told.get(_TYPE)
        form = _FORMS.get(kind, "") if isinstance(kind, int) else ""
        content = told.get(_CONTENT) or told.get(_FLOATS) or told.get(_DOUBLES)
        number = content if isinstance(content, bytes) else b""
    # More than one number is no scalar.
    if isinstance(tag, bytes) and form and len(number) == struct.calcsize(form):
        found[tag.decode("utf-8", "replace")] = struct.unpack(form, number)[0]


def _messages(data: bytes, wanted: int) -> Iterator[bytes]:
    for number, value in _fields(data):
        if number == wanted and isinstance(value, bytes):
            yield value


def _fields(data: bytes) -> Iterator[Tuple[int, Union[int, bytes]]]:
    """Yield the fields of a message, each with its number, as far as they are whole.

    A number of a fixed size comes as its bytes.
    """
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        kind = tag & 7
        if kind == _VARINT:
            value, position = _varint(data, position)
            if position <= len(data):
                yield tag >> 3, value
            continue
        length = {_FIXED64: 8, _FIXED32: 4}.get(kind)
        if kind == _LENGTH:
            length, position = _varint(data, position)
        if length is None or position + length > len(data):
            return
        yield tag >> 3, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> Tuple[int, int]:
    """Return a number and where it ends; beyond the data when it is cut off."""
    value = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, position
        shift += 7
    return 0, len(data) + 1
