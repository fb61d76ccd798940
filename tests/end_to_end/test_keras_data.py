"""A data set of Keras in a cluster without the Internet: brought by ``data``, found by Keras."""

import gzip
import json
import struct
from pathlib import Path

import pytest

from command_line import NEWEST, ROOT, CommandLine
from document_commands import blocks
from servers.s3_server import S3Server

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(300)]

#: What the files of Fashion-MNIST are called, and how many images are in them here.
SIZES = {"train": 600, "t10k": 200}
LOADS = """
import keras
(images, _), _ = keras.datasets.fashion_mnist.load_data()
print(f"{len(images)} images to train with")
"""


def idx_files(prefix: str, size: int) -> dict[str, bytes]:
    """Return images whose label is the one row of them that is white, as Fashion-MNIST has them."""
    labels = bytes(number % 10 for number in range(size))
    row, black = b"\xff" * 28, b"\0" * 28
    images = b"".join(black * (9 + label) + row + black * (18 - label) for label in labels)
    head = struct.pack(">IIII", 2051, size, 28, 28)
    return {
        f"{prefix}-labels-idx1-ubyte.gz": gzip.compress(struct.pack(">II", 2049, size) + labels),
        f"{prefix}-images-idx3-ubyte.gz": gzip.compress(head + images),
    }


def test_keras_finds_the_data_set_that_was_brought_for_it(
    local_cluster: CommandLine, s3: S3Server, tmp_path: Path, tensorflow
) -> None:
    for prefix, size in SIZES.items():
        for name, content in idx_files(prefix, size).items():
            key = f"keras/datasets/fashion-mnist/{name}"
            s3.client.put_object(Bucket="bucket", Key=key, Body=content)
    (tmp_path / "loads.py").write_text(LOADS)
    options = json.loads(blocks(ROOT / "docs" / "keras.md", "json")["Data sets of Keras"])
    options["service"] |= {"job_url": "loads.py", "job_name": "loads", "python": tensorflow(NEWEST)}
    options["worker"] = {"count": 1, "cpus": 0.5, "mem": 1024, "disk": 100}
    file = tmp_path / "options.json"
    file.write_text(json.dumps({**options, "s3": s3.options(tmp_path)}))
    ended = local_cluster("run", file, "--yes", timeout=240)
    assert ended.code == 0, ended.out[-4000:]
    assert (
        "600 images to train with"
        in local_cluster.ask("logs", "--name", "keras-data", "worker-0", "--lines", "100").out
    )
