"""What is given to the package is what the scheduler loads."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcos_tensorflow.options import Options, OptionsError, load
from dcos_tensorflow.options.catalogue import Option, options
from dcos_tensorflow.package.definition import Package, marathon_app
from dcos_tensorflow.package.variables import (
    as_package_options,
    images_in,
    options_in,
    with_group_role,
)

#: What each kind of text option may hold, to try more than its default.
TEXTS = {
    "name": "team/mnist-2",
    "job_path": "code/src",
    "job_context": '{"learning \\"rate\\"": 0.5, "n": [1, 2]}',
    "placement_constraint": '[["hostname", "LIKE", "a\\\\.b"], ["rack", "UNIQUE"]]',
    "dns_domain": "example.thisdcos.directory",
    "mesos_role": "team",
    "tensorflow_version": "2.15.1",
    "config_uri": "http://hdfs.example.org/conf",
    "tf_image": "registry.example.org:5000/tf:1",
    "gpu_tf_image": "registry.example.org:5000/tf:1-gpu",
    "uri": "/mnt/checkpoints",
    "job_url": "https://example.org/a%20b.zip?x=1&y=2",
    "user": 'o\'brien "the" {{user}} \\ <&>',
}
STRUCTURES: dict[str, Any] = {
    "env": {"GREETING": 'say "hi"\n\t\\ {{x}} é', "EMPTY": ""},
    "job_uris": ["https://example.org/data.tar.gz"],
}


def sample(option: Option) -> st.SearchStrategy[Any]:
    schema, name = option.schema, option.path[-1]
    if "anyOf" in schema:
        return st.sampled_from([STRUCTURES.get(name, schema.get("default"))])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema.get("type")
    if kind == "boolean":
        return st.booleans()
    if kind == "integer":
        return st.integers(schema["minimum"], schema["maximum"])
    if kind == "number":
        least = schema.get("minimum", schema.get("exclusiveMinimum"))
        return st.floats(least, schema["maximum"], exclude_min="exclusiveMinimum" in schema)
    return st.sampled_from([TEXTS.get(name, "some text")])


@st.composite
def valid_options(draw: st.DrawFn) -> Options:
    """Options with several values that are no default; what contradicts them is taken out."""
    document: dict[str, Any] = {"service": {"job_name": "train"}}
    for option in draw(st.lists(st.sampled_from(list(options().values())), max_size=12)):
        value = draw(sample(option))
        into = document
        for key in option.path[:-1]:
            into = into.setdefault(key, {})
        before = into.get(option.path[-1])
        into[option.path[-1]] = value
        try:
            load(document, published_defaults=True)
        except OptionsError:
            del into[option.path[-1]]
            if before is not None:
                into[option.path[-1]] = before
    return load(document, published_defaults=True)


def arrived(package: Package, wanted: Options) -> Options:
    app = marathon_app(package, as_package_options(wanted))
    return load(options_in({k: v for k, v in app["env"].items() if isinstance(v, str)}))


def with_package_defaults(wanted: Options) -> dict[str, Any]:
    expected = wanted.model_dump()
    if "tensorflow_version" not in wanted.service.model_fields_set:
        expected["service"]["tensorflow_version"] = "2.21.0"
    return expected


@given(wanted=valid_options())
def test_any_valid_options_arrive_as_they_were_given(package: Package, wanted: Options) -> None:
    assert arrived(package, wanted).model_dump() == with_package_defaults(wanted)


def test_an_unknown_variable_is_refused_with_its_path() -> None:
    with pytest.raises(OptionsError, match=r"worker\.cuont.*did you mean worker\.count"):
        load(options_in({"OPTION__WORKER__CUONT": "2", "OPTION__SERVICE__JOB_NAME": "t"}))


def test_a_variable_of_the_wrong_type_is_refused_with_its_path() -> None:
    with pytest.raises(OptionsError, match=r"worker\.count: must be a whole number"):
        load(options_in({"OPTION__WORKER__COUNT": "many", "OPTION__SERVICE__JOB_NAME": "t"}))


def test_an_emptied_number_is_its_default() -> None:
    given = options_in({"OPTION__WORKER__COUNT": "", "OPTION__SERVICE__JOB_NAME": "t"})
    found = load(given, published_defaults=True)
    assert found.worker.count == 3


def test_text_that_looks_like_a_number_stays_text() -> None:
    assert options_in({"OPTION__SERVICE__USER": "1000"}) == {"service": {"user": "1000"}}


def test_other_variables_are_no_options() -> None:
    assert options_in({"PATH": "/bin", "DCOS_TENSORFLOW_MASTER": "a:1"}) == {}


@pytest.mark.parametrize("text", ["[]", "{", '{"2.21.0": "one"}', '{"2.21.0": ["one"]}'])
def test_a_table_of_images_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(OptionsError, match="TENSORFLOW_IMAGES"):
        images_in({"TENSORFLOW_IMAGES": text})


ENFORCED = {"MARATHON_APP_ENFORCE_GROUP_ROLE": "TRUE", "MESOS_ALLOCATION_ROLE": "team"}


def role_under(environ: dict[str, str], **service: Any) -> str:
    given_options = load({"service": {"job_name": "train", **service}})
    return with_group_role(given_options, environ).service.mesos_role


def test_an_enforced_group_role_is_the_services_role() -> None:
    assert role_under(ENFORCED) == "team"


def test_a_role_of_ones_own_stays() -> None:
    assert role_under(ENFORCED, mesos_role="team/training") == "team/training"


def test_a_role_outside_of_an_enforcing_group_is_refused_with_its_path() -> None:
    with pytest.raises(OptionsError) as refused:
        role_under(ENFORCED, mesos_role="teams")
    assert [str(problem) for problem in refused.value.problems] == [
        "service.mesos_role: is not the role that the service's group in Marathon enforces, which "
        'is team (given: "teams"; allowed: *, team, or a role below it)'
    ]


@pytest.mark.parametrize(
    ("allocated", "role"),
    [
        ("team", "team"),
        ("slave_public", "*"),
        ("slave_public/team", "slave_public/team"),
        ("", "*"),
    ],
)
def test_without_enforcement_the_apps_role_is_taken_unless_it_is_the_default(
    allocated: str, role: str
) -> None:
    environ = {"MARATHON_APP_ENFORCE_GROUP_ROLE": "FALSE", "MESOS_ALLOCATION_ROLE": allocated}
    assert role_under(environ) == role


def test_without_enforcement_a_role_of_ones_own_is_free() -> None:
    environ = {"MARATHON_APP_ENFORCE_GROUP_ROLE": "FALSE", "MESOS_ALLOCATION_ROLE": "team"}
    assert role_under(environ, mesos_role="other") == "other"


def test_a_marathon_that_tells_no_role_changes_nothing() -> None:
    assert role_under({}) == "*"
