"""Which image a TensorFlow version means."""

from typing import Any

import pytest

from dcos_tensorflow.options import OptionsError, load, notes, service_spec
from dcos_tensorflow.options.sections.images import PUBLISHED, TensorFlowImages, with_images

TABLE = {
    "2.15.1": TensorFlowImages("mirror/tf:2.15.1", "mirror/tf:2.15.1-gpu"),
}


def images(table: dict[str, TensorFlowImages], **service: Any) -> dict[str, str]:
    given = {"service": {"job_name": "train", **service}, "gpu_worker": {"count": 1}}
    options = load(given, published_defaults=True)
    spec = service_spec(with_images(options, table))
    return {r.role: r.container.image if r.container else "" for r in spec.roles}


@pytest.mark.parametrize("table", [{}, TABLE])
def test_without_a_version_or_an_image_there_is_none(table: dict[str, TensorFlowImages]) -> None:
    assert set(images(table).values()) == {""}


def test_a_version_chooses_the_official_images_where_no_package_brings_others() -> None:
    found = images({}, tensorflow_version="2.15.1")
    assert (found["worker"], found["gpu-worker"]) == (
        "tensorflow/tensorflow:2.15.1",
        "tensorflow/tensorflow:2.15.1-gpu",
    )


def test_a_version_chooses_the_images_of_the_package() -> None:
    found = images(TABLE, tensorflow_version="2.15.1")
    assert (found["ps"], found["gpu-worker"]) == ("mirror/tf:2.15.1", "mirror/tf:2.15.1-gpu")


def test_an_image_of_ones_own_wins_over_the_version() -> None:
    found = images(TABLE, tensorflow_version="2.15.1", tf_image="my/own:1")
    assert (found["worker"], found["gpu-worker"]) == ("my/own:1", "mirror/tf:2.15.1-gpu")


def test_the_published_packages_image_of_tensorflow_1_says_nothing_beside_a_version() -> None:
    published = {"tf_image": PUBLISHED.cpu, "gpu_tf_image": PUBLISHED.gpu}
    assert images(TABLE, **published)["worker"] == PUBLISHED.cpu
    found = images(TABLE, tensorflow_version="2.15.1", **published)
    assert (found["worker"], found["gpu-worker"]) == ("mirror/tf:2.15.1", "mirror/tf:2.15.1-gpu")


@pytest.mark.parametrize(
    ("service", "told"),
    [
        ({"tf_image": PUBLISHED.cpu}, True),
        ({"tensorflow_version": "1.15.5"}, True),
        ({"tensorflow_version": "2.15.1"}, False),
        ({"tf_image": "my/tensorflow:1.15.5"}, False),
    ],
)
def test_an_image_whose_python_cannot_run_a_task_is_told_of(
    service: dict[str, str], told: bool
) -> None:
    found = notes(load({"service": {"job_name": "train", **service}}))
    assert any("Python before 3.8" in note for note in found) == told


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
