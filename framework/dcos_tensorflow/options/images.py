"""Which container image a TensorFlow version means.

``service.tensorflow_version`` chooses: from the table that a DC/OS package brings along (so that a
cluster without the Internet gets its own copies), else the official image. An image of the user's
own always wins. Used by ``cross_checks`` and by the scheduler's command. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dcos_tensorflow.options.errors import OptionProblem, OptionsError
from dcos_tensorflow.options.models import Options
from dcos_tensorflow.options.service_models import Service


@dataclass(frozen=True)
class TensorFlowImages:
    """The images of one TensorFlow version: without and with support for GPUs."""

    cpu: str
    gpu: str


def official_images(version: str) -> TensorFlowImages:
    """Return TensorFlow's own images of ``version`` (tensorflow.org, "Docker")."""
    return TensorFlowImages(
        f"tensorflow/tensorflow:{version}", f"tensorflow/tensorflow:{version}-gpu"
    )


def published_images() -> TensorFlowImages:
    """Return the images that are taken when nothing at all is said: the options' defaults."""
    fields = Service.model_fields
    return TensorFlowImages(fields["tf_image"].default, fields["gpu_tf_image"].default)


def tensorflow_image(service: Service, *, gpu: bool) -> str:
    """Return the image of a task, empty for none: its own, else that of the version."""
    published = published_images()
    own, default = (
        (service.gpu_tf_image, published.gpu) if gpu else (service.tf_image, published.cpu)
    )
    if own != default or not service.tensorflow_version:
        return own
    official = official_images(service.tensorflow_version)
    return official.gpu if gpu else official.cpu


def with_images(options: Options, images: Mapping[str, TensorFlowImages]) -> Options:
    """Return ``options`` with the images of a package's table in place of the defaults.

    ``images`` are by TensorFlow version; those of "" are the copies of the defaults. Raises
    OptionsError for a version that is not in the table: nobody may have an image of it there.
    """
    service = options.service
    if not images or service.python:
        return options
    found = images.get(service.tensorflow_version)
    published = published_images()
    if found is None and not service.tensorflow_version:
        return options
    asked = (service.tf_image == published.cpu) or (service.gpu_tf_image == published.gpu)
    if found is None and asked:
        known = ", ".join(sorted(version for version in images if version))
        raise OptionsError(
            [
                OptionProblem(
                    "service.tensorflow_version",
                    "the package has no images of this version, and neither service.tf_image nor "
                    "service.gpu_tf_image names others",
                    service.tensorflow_version,
                    f"one of {known}, or empty text",
                )
            ]
        )
    if found is None:
        return options
    chosen = {
        "tf_image": found.cpu if service.tf_image == published.cpu else service.tf_image,
        "gpu_tf_image": found.gpu
        if service.gpu_tf_image == published.gpu
        else service.gpu_tf_image,
    }
    return options.model_copy(update={"service": service.model_copy(update=chosen)})
