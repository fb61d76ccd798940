from pathlib import Path

import pytest

from dcos_tensorflow.options import OptionsError, as_given, load


def refusal(source: Path | str) -> str:
    with pytest.raises(OptionsError) as refused:
        load(source)
    (problem,) = refused.value.problems
    assert problem.path == ""
    if isinstance(source, Path):
        assert str(refused.value).startswith(f"1 problem in {source}:")
    return str(problem)


def written(directory: Path, content: bytes) -> Path:
    path = directory / "options.json"
    path.write_bytes(content)
    return path


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.json") == "there is no such file"


def test_a_directory_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "is a directory, not an options file"


def test_a_path_through_a_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, b"{}") / "options.json"
    assert refusal(path) == "cannot be read: Not a directory"


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, b" \n")
    assert refusal(path) == "is empty; the least that options can be is {}"


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, b'{"service": "\xff"}')
    assert refusal(path) == "is not UTF-8 text: byte 0xff at offset 13"


def test_a_file_of_many_megabytes_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, b"")
    with path.open("r+b") as file:
        file.truncate(5_000_000)
    assert refusal(path) == "is too large for an options file: more than 4000000 bytes"


def test_a_device_without_end_is_refused() -> None:
    assert refusal(Path("/dev/zero")).startswith("is too large")


def test_a_name_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(OptionsError, match="is no file name: embedded null byte"):
        load(Path("options\0.json"))


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path, b'\xef\xbb\xbf{"service": {"job_name": "train"}}')
    assert load(path).service.job_name == "train"


def test_a_syntax_error_names_line_and_column(tmp_path: Path) -> None:
    path = written(tmp_path, b'{\n  "worker": {"count": 2},\n}\n')
    assert refusal(path) == (
        "is not JSON: Expecting property name enclosed in double quotes at line 3 column 1; "
        "the comma before it is one too many"
    )


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("{'worker': {}}", '; JSON wants double quotes (")'),
        (
            '{\n# workers\n"worker": {}}',
            '; a comment is an entry whose name begins with //, such as "// why": "..."',
        ),
        ("options.json", "; a file's name must be given as a path"),
    ],
)
def test_a_usual_slip_gets_a_hint(text: str, hint: str) -> None:
    assert refusal(text).endswith(hint)


def test_a_script_in_the_place_of_options_gets_a_hint(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import tensorflow\n")
    assert refusal(script).endswith(
        "line 1 column 1; run and validate take a script, and init makes an options file of one"
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [("[]", "a list"), ('"x"', "text"), ("3", "a number"), ("null", "null")],
)
def test_the_top_level_must_be_an_object(text: str, kind: str) -> None:
    assert refusal(text) == f"must be a JSON object, not {kind}"


def test_nan_is_not_json() -> None:
    assert refusal('{"worker": {"cpus": NaN}}') == "is not JSON: JSON has no NaN"


def test_nesting_without_end_is_refused() -> None:
    assert refusal('{"a":' * 100_000) == "is not JSON: it is nested too deeply"


def test_a_key_that_stands_there_twice_is_an_error() -> None:
    text = '{"service": {"job_name": "train"}, "worker": {"count": 1, "count": 2}}'
    with pytest.raises(OptionsError) as refused:
        load(text)
    assert [str(problem) for problem in refused.value.problems] == [
        "worker.count: stands there more than once (allowed: once)"
    ]


@pytest.mark.parametrize(
    ("value", "flaw"),
    [
        ("a\\u0000b", "holds a NUL character"),
        ("\\ud800", "holds half of a surrogate pair, which is no character"),
    ],
)
def test_text_that_no_environment_can_hold_is_refused(value: str, flaw: str) -> None:
    with pytest.raises(OptionsError) as refused:
        load(f'{{"service": {{"job_name": "train", "env": {{"A": "{value}"}}}}}}')
    assert [str(problem) for problem in refused.value.problems] == [f"service.env.A: {flaw}"]


def test_the_directory_of_the_file_is_remembered(tmp_path: Path) -> None:
    path = written(tmp_path, b'{"service": {"job_name": "train", "job_url": "job.zip"}}')
    options = load(path)
    assert options.base_directory == tmp_path
    assert options.service.job_url == "job.zip"


def test_options_that_are_no_file_have_no_directory() -> None:
    assert load('{"service": {"job_name": "train"}}').base_directory is None


def test_entries_whose_names_begin_with_two_slashes_are_comments() -> None:
    text = """{
      "//": "all of it", "//": "twice", "// also": {"any": ["thing"]},
      "service": {"// name": "what it is called", "name": "mnist", "job_name": "train"},
      "data": [{"// uri": "images", "uri": "s3://bucket/a", "path": "a"}]
    }"""
    options = load(text)
    assert options.service.name == "mnist"
    assert as_given(options) == {
        "service": {"name": "mnist", "job_name": "train"},
        "worker": {"count": 1},
        "data": [{"uri": "s3://bucket/a", "path": "a"}],
    }
