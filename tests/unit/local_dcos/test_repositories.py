"""Which package is meant, and what a repository may hold."""

from typing import Any

import pytest

from local_dcos.cosmos.repositories import Package, Repository, find, parse, search, versions
from local_dcos.errors import CosmosError


def package(name: str, version: str, release: int, source: str = "one", **more: Any) -> Package:
    document = {"name": name, "version": version, "releaseVersion": release, **more}
    return Package(document, source)


def test_without_a_version_the_newest_is_meant() -> None:
    packages = [package("tf", "2.0", 2), package("tf", "10.0", 10), package("tf", "9.0", 9)]
    assert find(packages, "tf").version == "10.0"


def test_the_first_repository_that_has_a_package_wins() -> None:
    packages = [package("tf", "1.0", 1, "first"), package("tf", "2.0", 2, "second")]
    assert find(packages, "tf").version == "1.0"


def test_a_version_of_a_later_repository_can_be_asked_for() -> None:
    packages = [package("tf", "1.0", 1, "first"), package("tf", "2.0", 2, "second")]
    assert find(packages, "tf", "2.0").source == "second"


def test_versions_are_listed_as_texts() -> None:
    assert versions([package("tf", "1.0", 3)], "tf") == {"1.0": "3"}


@pytest.mark.parametrize("query", ["tf", "TF", "learn", "t*f", "dee*ing", None])
def test_a_search_looks_into_name_description_and_tags(query: str | None) -> None:
    packages = [package("tf", "1.0", 1, description="deep learning", tags=["ml"])]
    assert [one["name"] for one in search(packages, query)] == ["tf"]


def test_selected_packages_come_first() -> None:
    packages = [package("a", "1", 1), package("b", "1", 1, selected=True)]
    assert [one["name"] for one in search(packages, None)] == ["b", "a"]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "no list 'packages'"),
        ({"packages": {}}, "no list 'packages'"),
        ({"packages": [1]}, r"packages\[0\]: is no object"),
        ({"packages": [{"name": "a"}]}, "no text 'version'"),
        ({"packages": [{"name": "a", "version": "1", "releaseVersion": "1"}]}, "no integer"),
    ],
)
def test_what_is_no_repository_is_refused_with_the_reason(document: Any, words: str) -> None:
    with pytest.raises(CosmosError, match=words):
        parse(document, Repository("r", "http://r"))
