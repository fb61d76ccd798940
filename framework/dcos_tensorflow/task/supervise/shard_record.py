"""Which inputs an output of a batch is of, kept beside it. Pure.

``unit_work`` writes a record with each output, and ``scheduler.batch_inputs`` reads the records
when a batch goes on. In a folder it is a file; in S3 the metadata of the output itself, or an
object where those have no room for it. Standard library.
"""

from __future__ import annotations

import base64
import json
import posixpath
import zlib
from typing import Any, Dict, Mapping

#: In the folder of the outputs. Readers of a folder of data pass over a name with a dot.
FOLDER = ".shards"
#: The name of the metadata: in them is the record, packed.
METADATA = "shard"
#: S3 takes 2 KB of metadata, names included.
_MOST_METADATA = 1_800


def text_of(shard: Mapping[str, Any]) -> str:
    """Return the record of a shard, which is as in a unit's payload."""
    told: Dict[str, Any] = {"begin": shard["begin"], "end": shard["end"]}
    if shard.get("names"):
        prefix = shard.get("prefix", "")
        told["inputs"] = [prefix + name for name in shard["names"]]
    if shard.get("stamps"):
        told["stamps"] = shard["stamps"]
    return json.dumps(told)


def path_of(output: str) -> str:
    """Return where the record of an output is kept that is no part of the output itself."""
    folder, name = posixpath.split(output)
    return posixpath.join(folder, FOLDER, f"{name}.json")


def metadata_of(text: str) -> Dict[str, str]:
    """Return the metadata that say what a record says; none where S3 has no room for them."""
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    return {METADATA: packed} if len(packed) <= _MOST_METADATA else {}
