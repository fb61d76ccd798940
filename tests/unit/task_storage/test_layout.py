"""Which files of a checkpoint directory form a complete checkpoint."""

from dataclasses import replace

import pytest

from dcos_tensorflow.task import checkpoints
from dcos_tensorflow.task.storage.layout import (
    NOTHING_YET,
    Choice,
    FileFacts,
    Listing,
    Patience,
    choose,
    is_passing,
)

NOW = 1_000_000_000_000
OLD = NOW - 3_600_000_000_000


def listing(*paths: str, states: dict[str, str] | None = None, **young: int) -> Listing:
    """A listing of quiet files; ``states`` maps state files to the prefix that they name."""
    texts = {path: f'model_checkpoint_path: "{name}"\n' for path, name in (states or {}).items()}
    files = tuple(FileFacts(path, 10, OLD, 1) for path in sorted({*paths, *texts}))
    return Listing("/job/checkpoints", files, texts, frozenset(), NOW)


def restless(found: Listing, path: str) -> Listing:
    files = tuple(
        replace(fact, modified_ns=NOW) if fact.path == path else fact for fact in found.files
    )
    return replace(found, files=files)


def paths(choice: Choice) -> list[str]:
    return [fact.path for fact in choice.files]


def parts(prefix: str, count: int = 1) -> list[str]:
    shards = [f"{prefix}.data-{index:05d}-of-{count:05d}" for index in range(count)]
    return [f"{prefix}.index", *shards]


def test_an_empty_directory_has_no_checkpoint():
    assert choose(listing()).why == NOTHING_YET


def test_the_prefix_that_the_state_file_names_is_chosen_with_all_its_parts():
    found = listing(*parts("ckpt-7", 2), states={"checkpoint": "ckpt-7"})
    assert paths(choose(found)) == ["checkpoint", *parts("ckpt-7", 2)[1:], "ckpt-7.index"]


def test_the_step_is_the_number_at_the_end_of_the_prefix():
    found = listing(*parts("model.ckpt-1200"), states={"checkpoint": "model.ckpt-1200"})
    assert choose(found).step == 1200


def test_older_and_unfinished_checkpoints_beside_the_named_one_are_left_out():
    found = listing(
        *parts("ckpt-1"), *parts("ckpt-2"), "ckpt-3.index", states={"checkpoint": "ckpt-2"}
    )
    assert paths(choose(found)) == ["checkpoint", *reversed(parts("ckpt-2"))]


@pytest.mark.parametrize("gone", [*parts("ckpt-2", 2)])
def test_a_named_checkpoint_that_lacks_a_part_is_not_complete(gone):
    there = [path for path in parts("ckpt-2", 2) if path != gone]
    assert not choose(listing(*there, states={"checkpoint": "ckpt-2"})).ready


def test_an_incomplete_named_checkpoint_is_not_replaced_by_an_older_one():
    found = listing(*parts("ckpt-1"), "ckpt-2.index", states={"checkpoint": "ckpt-2"})
    assert "ckpt-2" in choose(found).why


def test_an_absolute_name_of_this_directory_is_written_as_a_relative_one():
    found = listing(*parts("ckpt-2"), states={"checkpoint": "/job/checkpoints/ckpt-2"})
    assert choose(found).texts["checkpoint"] == checkpoints.state_file_naming("ckpt-2")


def test_an_absolute_name_of_another_machine_means_what_lies_beside_the_state_file():
    found = listing(*parts("ckpt-2"), states={"checkpoint": "/sandbox/of/yore/ckpt-2"})
    assert choose(found).texts["checkpoint"] == checkpoints.state_file_naming("ckpt-2")


def test_a_name_that_leaves_the_directory_is_refused():
    found = listing(*parts("ckpt-2"), states={"checkpoint": "../other/ckpt-2"})
    assert "outside" in choose(found).why


def test_a_meta_graph_is_waited_for_where_others_have_one():
    found = listing(*parts("m-1"), "m-1.meta", *parts("m-2"), states={"checkpoint": "m-2"})
    assert not choose(restless(found, "checkpoint")).ready


def test_a_meta_graph_is_not_waited_for_for_ever():
    found = listing(*parts("m-1"), "m-1.meta", *parts("m-2"), states={"checkpoint": "m-2"})
    assert choose(found).ready


def test_a_meta_graph_that_came_late_belongs_to_the_checkpoint():
    found = listing(*parts("m-2"), "m-2.meta", states={"checkpoint": "m-2"})
    assert "m-2.meta" in paths(choose(found))


def test_a_checkpoint_of_the_first_format_is_one_file():
    found = listing("old-3", states={"checkpoint": "old-3"})
    assert paths(choose(found)) == ["checkpoint", "old-3"]


def test_state_files_in_folders_are_each_followed():
    found = listing(
        *parts("ckpt-4"),
        *parts("best/ckpt-2"),
        *parts("best/ckpt-3"),
        states={"checkpoint": "ckpt-4", "best/checkpoint": "ckpt-2"},
    )
    choice = choose(found)
    assert "best/ckpt-2.index" in paths(choice)
    assert "best/ckpt-3.index" not in paths(choice)


def test_the_step_is_that_of_the_outermost_state_file():
    found = listing(
        *parts("ckpt-4"),
        *parts("best/ckpt-2"),
        states={"checkpoint": "ckpt-4", "best/checkpoint": "ckpt-2"},
    )
    assert choose(found).step == 4


def test_a_jobs_own_files_go_along():
    found = listing(*parts("ckpt-1"), "vocabulary.txt", states={"checkpoint": "ckpt-1"})
    assert "vocabulary.txt" in paths(choose(found))


def test_a_file_that_is_being_written_is_waited_for():
    found = listing(*parts("ckpt-1"), "state.json", states={"checkpoint": "ckpt-1"})
    assert choose(restless(found, "state.json")).why == "state.json is still being written"


def test_a_file_that_never_rests_is_left_out_in_the_end():
    found = listing(*parts("ckpt-1"), "train.log", states={"checkpoint": "ckpt-1"})
    choice = choose(restless(found, "train.log"), Patience(given_up=True))
    assert choice.left_out == ("train.log",)
    assert "train.log" not in paths(choice)


def test_a_restless_file_alone_is_never_published():
    found = restless(listing("model.keras"), "model.keras")
    assert not choose(found, Patience(given_up=True)).ready


def test_what_a_trial_has_measured_goes_along_with_its_checkpoint_and_is_not_waited_for():
    found = listing(*parts("ckpt-2"), "measured.json", states={"checkpoint": "ckpt-2"})
    assert "measured.json" in paths(choose(restless(found, "measured.json")))


def test_what_a_trial_has_measured_is_no_checkpoint():
    assert choose(listing("measured.json"), Patience(ended=True)).why == NOTHING_YET


def test_nothing_is_waited_for_once_the_process_has_ended():
    assert choose(restless(listing("state.json"), "state.json"), Patience(ended=True)).ready


def test_the_named_checkpoint_needs_no_rest():
    found = listing(*parts("ckpt-1"), states={"checkpoint": "ckpt-1"})
    for path in ("checkpoint", *parts("ckpt-1")):
        found = restless(found, path)
    assert choose(found).ready


def test_a_keras_file_that_is_not_whole_is_not_taken_even_from_an_ended_process():
    found = replace(listing("a.keras", "b.keras"), unreadable=frozenset({"b.keras"}))
    assert paths(choose(found, Patience(ended=True))) == ["a.keras"]


@pytest.mark.parametrize(
    ("name", "step"),
    [("model-0012.keras", 12), ("w.07.weights.h5", 7), ("model.keras", None)],
)
def test_the_step_of_a_keras_file_is_the_last_number_of_its_name(name, step):
    assert (choose(listing(name)).kind, choose(listing(name)).step) == ("keras", step)


def test_a_saved_model_is_taken_as_a_whole():
    model = ["m/saved_model.pb", *(f"m/variables/{path}" for path in parts("variables"))]
    choice = choose(listing(*model))
    assert (choice.kind, paths(choice)) == ("saved_model", sorted(model))


def test_a_saved_model_without_all_its_variables_is_waited_for():
    found = listing("m/saved_model.pb", "m/variables/variables.data-00000-of-00002")
    assert not choose(found).ready


def test_a_saved_model_that_stays_incomplete_does_not_hold_up_the_rest():
    found = listing(
        *parts("ckpt-1"),
        "m/saved_model.pb",
        "m/variables/variables.index",
        states={"checkpoint": "ckpt-1"},
    )
    choice = choose(found, Patience(ended=True))
    assert paths(choice) == ["checkpoint", *reversed(parts("ckpt-1"))]


def test_a_saved_model_keeps_its_variables_beside_a_named_checkpoint():
    model = ["m/saved_model.pb", *(f"m/variables/{path}" for path in parts("variables"))]
    found = listing(*parts("ckpt-1"), *model, states={"checkpoint": "ckpt-1"})
    assert set(model) <= set(paths(choose(found)))


def test_a_checkpoint_without_a_state_file_must_have_all_parts():
    assert not choose(listing("weights.data-00000-of-00001")).ready


@pytest.mark.parametrize(
    "path",
    [
        "ckpt-1_temp/part-00000-of-00001.index",
        "events.out.tfevents.1.host",
        "checkpoint.tmp1f2e",
        "ckpt-1.index.tempstate123",
        "weights.tmp",
        ".dcos-tensorflow-publish-x/ckpt-1.index",
    ],
)
def test_passing_files_belong_to_no_checkpoint(path):
    assert is_passing(path)


@pytest.mark.parametrize("name", ["ckpt-1", 'we"ird\\name-3', "größe-2", "a b-1"])
def test_a_state_file_can_be_read_again(name):
    assert checkpoints.newest_in(checkpoints.state_file_naming(name)) == name


def test_the_escapes_of_tensorflow_are_understood():
    text = 'model_checkpoint_path: "gr\\303\\266\\303\\237e-1"\nlast_preserved_timestamp: 1.5\n'
    assert checkpoints.newest_in(text) == "größe-1"


def test_a_state_file_without_a_name_names_nothing():
    assert checkpoints.newest_in('all_model_checkpoint_paths: "x"\n') == ""
