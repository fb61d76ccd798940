"""Which image a TensorFlow version means."""

from __future__ import annotations

from typing import Any

import pytest

from dcos_tensorflow.options import OptionsError, load, service_spec
from dcos_tensorflow.options.images import TensorFlowImages, with_images

TABLE = {
    "": TensorFlowImages("mirror/published", "mirror/published-gpu"),
    "2.15.1": TensorFlowImages("mirror/tf:2.15.1", "mirror/tf:2.15.1-gpu"),
}


def images(table: dict[str, TensorFlowImages], **service: Any) -> dict[str, str]:
    options = load({"service": {"job_name": "train", **service}, "gpu_worker": {"count": 1}})
    spec = service_spec(with_images(options, table))
    return {r.role: r.container.image if r.container else "" for r in spec.roles}


def test_without_a_version_the_published_images_stay() -> None:
    assert images({})["worker"] == "mesosphere/dcos-tensorflow:0.0.3-1.5.0"


def test_a_version_chooses_the_official_images_where_no_package_brings_others() -> None:
    found = images({}, tensorflow_version="2.15.1")
    assert (found["worker"], found["gpu-worker"]) == (
        "tensorflow/tensorflow:2.15.1",
        "tensorflow/tensorflow:2.15.1-gpu",
    )


def test_a_version_chooses_the_images_of_the_package() -> None:
    found = images(TABLE, tensorflow_version="2.15.1")
    assert (found["ps"], found["gpu-worker"]) == ("mirror/tf:2.15.1", "mirror/tf:2.15.1-gpu")


def test_the_published_images_come_from_the_package_too() -> None:
    assert images(TABLE)["gpu-worker"] == "mirror/published-gpu"


def test_an_image_of_ones_own_wins_over_the_version() -> None:
    found = images(TABLE, tensorflow_version="2.15.1", tf_image="my/own:1")
    assert (found["worker"], found["gpu-worker"]) == ("my/own:1", "mirror/tf:2.15.1-gpu")


def test_empty_text_for_an_image_is_no_image_whatever_the_version() -> None:
    assert images(TABLE, tensorflow_version="2.15.1", tf_image="")["worker"] == ""


def test_a_version_without_images_in_the_package_is_refused_by_name() -> None:
    with pytest.raises(OptionsError, match=r"service\.tensorflow_version.*one of 2\.15\.1"):
        images(TABLE, tensorflow_version="2.16.0")


def test_any_version_goes_with_images_of_ones_own() -> None:
    found = images(TABLE, tensorflow_version="2.16.0", tf_image="a", gpu_tf_image="b")
    assert (found["worker"], found["gpu-worker"]) == ("a", "b")


def test_a_python_on_the_agents_needs_no_image() -> None:
    assert images(TABLE, tensorflow_version="2.16.0", python="/opt/tf")["worker"] == ""


def test_what_is_no_version_is_refused() -> None:
    with pytest.raises(OptionsError, match=r"service\.tensorflow_version.*2\.21\.0"):
        load({"service": {"job_name": "train", "tensorflow_version": "2.15"}})
