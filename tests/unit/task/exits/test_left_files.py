"""What a job leaves in its sandbox is named, and nothing that was there or is the runner's own."""

from dcos_tensorflow.task.output.left_files import NAMED, LeftFiles, SandboxBefore


def test_what_is_new_is_named_and_what_was_fetched_is_not(tmp_path):
    (tmp_path / "train.py").write_text("fetched")
    sandbox = SandboxBefore(str(tmp_path), [])
    (tmp_path / "train.py").write_text("changed")
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / "loss.png").write_text("12")
    (tmp_path / "model.keras").write_text("123")
    assert sandbox.left() == LeftFiles(("model.keras", "plots/loss.png"), 2, 5)


def test_what_others_tell_of_or_is_our_own_is_not_named(tmp_path):
    checkpoints = tmp_path / "checkpoints"
    sandbox = SandboxBefore(str(tmp_path), [str(checkpoints), "gs://bucket/run"])
    for folder in ("checkpoints", "__pycache__", ".cache", ".secrets"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x").touch()
    ours = ("stdout", "stderr.1", "task-console.log", "task-console.log.1", "progress.jsonl")
    for name in (*ours, "task-exit.json", "task-exits.jsonl"):
        (tmp_path / name).touch()
    assert sandbox.left() == LeftFiles()


def test_of_many_the_first_are_named_and_all_are_counted(tmp_path):
    sandbox = SandboxBefore(str(tmp_path), [])
    for number in range(NAMED + 5):
        (tmp_path / f"{number:03}").touch()
    left = sandbox.left()
    assert (len(left.files), left.count) == (NAMED, NAMED + 5)


def test_a_sandbox_that_is_gone_has_nothing(tmp_path):
    assert SandboxBefore(str(tmp_path / "gone"), []).left() == LeftFiles()
