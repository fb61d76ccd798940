"""The options of a tracking server, and every way to get them wrong."""

from typing import Any

import pytest

from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.core.spec.tracking_spec import TrackingSpec
from dcos_tensorflow.options import OptionsError, as_given, load, notes, service_spec


def tracked(**mlflow: str) -> dict[str, Any]:
    return {"service": {"name": "mnist", "job_name": "train"}, "mlflow": mlflow}


def test_runs_are_told_to_the_server_that_is_named() -> None:
    given = tracked(tracking_uri="https://mlflow/team/", experiment="demo", token="env:TOKEN")
    spec = service_spec(load(given))
    assert spec.tracking == TrackingSpec("https://mlflow/team", "demo", "env:TOKEN")
    assert codec.decode(ServiceSpec, codec.encode(spec)) == spec


def test_an_experiment_is_called_as_the_service_is_where_none_is_named() -> None:
    spec = service_spec(load(tracked(tracking_uri="http://mlflow:5000")))
    assert spec.tracking == TrackingSpec("http://mlflow:5000", "mnist")


def test_without_a_server_it_is_the_same_configuration_as_ever() -> None:
    spec = service_spec(load(tracked()))
    assert spec.tracking is None
    stored = codec.to_plain(spec)
    del stored["tracking"]
    before = codec.decode(ServiceSpec, codec.encode(stored))
    assert configuration_id(before) == configuration_id(spec)


@pytest.mark.parametrize(
    ("mlflow", "told"),
    [
        ({"tracking_uri": "mlflow:5000"}, "mlflow.tracking_uri: is not the URL of an endpoint"),
        ({"tracking_uri": "https://u:p@mlflow"}, "mlflow.tracking_uri: holds a user name"),
        (
            {"tracking_uri": "http://mlflow:5000", "token": "env:TOKEN"},
            "mlflow.tracking_uri: the token would go through the network in clear",
        ),
        (
            {"tracking_uri": "https://mlflow", "token": "s e/../x"},
            "mlflow.token: is no place where",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_path(mlflow: dict[str, str], told: str) -> None:
    with pytest.raises(OptionsError) as refused:
        load(tracked(**mlflow))
    assert told in str(refused.value)


def test_a_token_goes_in_clear_to_this_machine_alone() -> None:
    load(tracked(tracking_uri="http://127.0.0.1:5000", token="env:TOKEN"))


def test_what_does_nothing_without_a_server_is_told() -> None:
    (note,) = [note for note in notes(load(tracked(experiment="demo"))) if "mlflow" in note]
    assert "mlflow.experiment" in note
    assert as_given(load(tracked(experiment="demo")))["mlflow"]["experiment"] == "demo"
