"""What Python says of a job beside its script, as options."""

import json
from pathlib import Path

import pytest

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.estimator.call_arguments import (
    by_name,
    laid_over,
    pieces,
    place_of,
    with_hyperparameters,
    with_inputs,
    words,
)

RATE = {"learning_rate": 0.1, "layers": [2, 3], "name": "a b", "deep": True}


class Scalar:
    """A number as NumPy has it."""

    def item(self) -> float:
        return 0.5


def test_hyperparameters_are_the_context_and_a_variable_each():
    service = with_hyperparameters({"service": {"name": "job"}}, RATE)["service"]
    assert service["name"] == "job"
    assert json.loads(service["job_context"]) == RATE
    assert service["env"] == {
        "PARAM_LEARNING_RATE": "0.1",
        "PARAM_LAYERS": "[2, 3]",
        "PARAM_NAME": "a b",
        "PARAM_DEEP": "true",
    }


def test_a_scalar_of_another_library_is_its_number():
    service = with_hyperparameters({}, {"rate": Scalar()})["service"]
    assert json.loads(service["job_context"]) == {"rate": 0.5}


@pytest.mark.parametrize("value", [object(), float("nan"), {1, 2}])
def test_what_json_cannot_say_is_refused_by_its_name(value):
    with pytest.raises(UsageError, match=r"hyperparameters\.rate: .* what JSON can say"):
        with_hyperparameters({}, {"rate": value})


def test_two_names_of_one_variable_are_refused():
    with pytest.raises(UsageError, match="a-b and a_b are both PARAM_A_B"):
        with_hyperparameters({}, {"a-b": 1, "a_b": 2})


def test_options_are_laid_over_section_by_section():
    below = {"service": {"name": "job", "job_args": ["a"]}, "worker": {"count": 2}}
    above = {"service": {"job_args": ["b"]}, "chief": {"count": 1}}
    assert laid_over(below, above) == {
        "service": {"name": "job", "job_args": ["b"]},
        "worker": {"count": 2},
        "chief": {"count": 1},
    }


@pytest.mark.parametrize("env", [{"A": "1"}, '{"A": "1"}'])
def test_context_and_environment_of_the_options_stand_beside_the_hyperparameters(env):
    known = with_hyperparameters({}, {"rate": 0.1, "depth": 2})
    found = laid_over(known, {"service": {"job_context": '{"rate": 0.2}', "env": env}})["service"]
    assert json.loads(found["job_context"]) == {"rate": 0.2, "depth": 2}
    assert found["env"] == {"PARAM_RATE": "0.1", "PARAM_DEPTH": "2", "A": "1"}


def test_what_is_wrong_with_a_text_is_left_to_be_told_with_the_other_options():
    known = with_hyperparameters({}, {"rate": 0.1})
    assert laid_over(known, {"service": {"job_context": "no"}})["service"]["job_context"] == "no"


def test_an_input_is_data_and_a_variable_that_leads_to_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inputs = {"train": "s3://bucket/train", "my-labels": Path("labels.csv"), "all": "/mnt/all"}
    found = with_inputs({"service": {}}, inputs, tmp_path / "code")
    assert found["data"] == [
        {"uri": "s3://bucket/train", "path": "input/train"},
        {"uri": "../labels.csv", "path": "input/my-labels"},
        {"uri": "/mnt/all", "path": "input/all"},
    ]
    assert found["service"]["env"] == {
        "INPUT_TRAIN": "input/train",
        "INPUT_MY_LABELS": "input/my-labels",
        "INPUT_ALL": "input/all",
    }


def test_an_input_beside_the_code_is_named_from_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = with_inputs({}, {"train": "images"}, tmp_path)
    assert found["data"] == [{"uri": "./images", "path": "input/train"}]


def test_inputs_come_beside_the_data_of_the_options():
    known = {"data": [{"uri": "s3://bucket/a", "path": "a"}]}
    found = with_inputs(known, {"b": "s3://bucket/b"}, Path())
    assert [one["path"] for one in found["data"]] == ["input/b", "a"]


@pytest.mark.parametrize("name", ["", "a b", "1st", "a/b", "ü"])
def test_a_name_of_an_input_that_no_variable_can_have_is_refused(name):
    with pytest.raises(UsageError, match="is no name of an input"):
        with_inputs({}, {name: "s3://bucket/a"}, Path())


@pytest.mark.parametrize("given", ["a", ["a"], 3, {1: "a"}])
def test_what_is_no_dict_of_names_is_refused_by_its_argument(given):
    with pytest.raises(UsageError, match="options is a dict whose keys are names, not"):
        by_name("options", given)


def test_a_text_is_no_list_of_arguments():
    assert words("script_arguments", ["--epochs", 3]) == ("--epochs", "3")
    with pytest.raises(UsageError, match=r"script_arguments is a list, .* not '--epochs 3'"):
        words("script_arguments", "--epochs 3")


def test_what_is_no_place_is_refused_by_its_argument():
    with pytest.raises(UsageError, match=r"inputs\.train is a path or s3://bucket/prefix, not 3"):
        with_inputs({}, {"train": 3}, Path())


def test_a_range_is_cut_into_pieces_of_its_step():
    assert pieces(range(0, 1000, 100), Path()) == {"range": [0, 1000, 100]}


def test_a_manifest_is_named_from_where_the_program_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {"manifest": "inputs.txt", "per_shard": 20}
    assert pieces(given, tmp_path / "code") == {"manifest": "../inputs.txt", "per_shard": 20}


@pytest.mark.parametrize(
    ("inputs", "found"),
    [
        ("data/*.csv", {"files": "../data/*.csv"}),
        (Path("/data"), {"files": "/data"}),
        ("s3://bucket/images/", {"s3_prefix": "s3://bucket/images/"}),
        ({"files": "data", "per_shard": 2}, {"files": "../data", "per_shard": 2}),
    ],
)
def test_a_place_is_what_lies_there(tmp_path, monkeypatch, inputs, found):
    monkeypatch.chdir(tmp_path)
    assert pieces(inputs, tmp_path / "code") == found


def test_a_folder_for_output_stays_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert place_of("output", "found/", tmp_path) == "./found/"
