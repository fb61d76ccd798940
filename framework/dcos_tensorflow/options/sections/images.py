"""Which container image a TensorFlow version means.

``service.tensorflow_version`` chooses: from the table that a DC/OS package brings along (so that a
cluster without the Internet gets its own copies), else the official image. An image of the user's
own always wins; without either there is none. Used by ``cross_checks``, for notes, and by the
scheduler's command. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dcos_tensorflow.options.models import Options

import re
from collections.abc import Mapping

from dcos_tensorflow.options.errors import OptionProblem, OptionsError
from dcos_tensorflow.options.sections.service_models import Service
from dcos_tensorflow.records import dataclass

#: What a job runs with where nothing else says: the newest version that is tested.
DEFAULT_TENSORFLOW = "2.21.0"


@dataclass(frozen=True)
class TensorFlowImages:
    """The images of one TensorFlow version: without and with support for GPUs."""

    cpu: str
    gpu: str


#: What the published package takes when nothing is said, and puts into options for that reason:
#: TensorFlow 1.5 on a Python that no task runner runs on. Beside a version it says nothing.
PUBLISHED = TensorFlowImages(
    "mesosphere/dcos-tensorflow:0.0.3-1.5.0", "mesosphere/dcos-tensorflow:0.0.3-1.5.0-gpu"
)
#: Images of TensorFlow 1 under the names of those who made them: all have a Python before 3.8.
_TOO_OLD = re.compile(r"(mesosphere/dcos-tensorflow:|tensorflow/tensorflow:[01]\.)")


def official_images(version: str) -> TensorFlowImages:
    """Return TensorFlow's own images of ``version`` (tensorflow.org, "Docker")."""
    return TensorFlowImages(
        f"tensorflow/tensorflow:{version}", f"tensorflow/tensorflow:{version}-gpu"
    )


def tensorflow_image(service: Service, *, gpu: bool) -> str:
    """Return the image of a task, empty for none: its own, else that of the version."""
    own = _own_images(service)
    official = official_images(service.tensorflow_version)
    if gpu:
        return own.gpu or (official.gpu if service.tensorflow_version else "")
    return own.cpu or (official.cpu if service.tensorflow_version else "")


def version_of_image(image: str) -> str:
    """Return the version that an image of TensorFlow's own says in its name; empty for others."""
    found = re.match(r"(?:.*/)?tensorflow/tensorflow:(\d+\.\d+[\w.]*)", image)
    return found.group(1) if found else ""


def is_too_old(image: str) -> bool:
    """Say whether an image is known to have a Python that no task runner runs on."""
    return _TOO_OLD.match(image) is not None


def with_images(options: Options, images: Mapping[str, TensorFlowImages]) -> Options:
    """Return ``options`` with the images of a package's table where no others are named.

    ``images`` are by TensorFlow version. Raises OptionsError for a version that is not in the
    table: it may have no image there.
    """
    service = options.service
    if not images or service.python or not service.tensorflow_version:
        return options
    own, found = _own_images(service), images.get(service.tensorflow_version)
    if found is None and own.cpu and own.gpu:
        return options
    if found is None:
        raise OptionsError(
            [
                OptionProblem(
                    "service.tensorflow_version",
                    "the package has no images of this version, and neither service.tf_image nor "
                    "service.gpu_tf_image names others",
                    service.tensorflow_version,
                    f"one of {', '.join(sorted(images))}, or empty text",
                )
            ]
        )
    chosen = {"tf_image": own.cpu or found.cpu, "gpu_tf_image": own.gpu or found.gpu}
    return options.model_copy(update={"service": service.model_copy(update=chosen)})


def _own_images(service: Service) -> TensorFlowImages:
    """Return the images that are named, empty for none."""
    given = TensorFlowImages(service.tf_image, service.gpu_tf_image)
    if not service.tensorflow_version:
        return given
    return TensorFlowImages(
        "" if given.cpu == PUBLISHED.cpu else given.cpu,
        "" if given.gpu == PUBLISHED.gpu else given.gpu,
    )
