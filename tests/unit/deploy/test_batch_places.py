"""A batch's manifest and output lie beside the options."""

from dataclasses import replace
from pathlib import Path

import pytest

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.core.spec.workload_spec import BatchSpec
from dcos_tensorflow.deploy.job.local_data import with_batch_places
from simulated.scheduler import small_job


def a_batch(listing: str = "", output: str = "out/part-{index}") -> ServiceSpec:
    work = BatchSpec(output=output, per_shard=2, listing=listing)
    return replace(small_job(), workload=work)


def placed(spec: ServiceSpec, base: Path, *, local: bool = True) -> BatchSpec:
    found = with_batch_places(spec, base, local=local).workload
    assert isinstance(found, BatchSpec)
    return found


def test_paths_are_those_beside_the_options(tmp_path: Path) -> None:
    (tmp_path / "inputs.txt").touch()
    found = placed(a_batch("inputs.txt"), tmp_path)
    assert found.listing == str((tmp_path / "inputs.txt").resolve())
    assert found.output == str(tmp_path / "out/part-{index}")


def test_places_in_s3_and_whole_paths_stay(tmp_path: Path) -> None:
    given = a_batch("s3://bucket/images/", "s3://bucket/out/{index}")
    assert placed(given, tmp_path, local=False) == given.workload
    assert placed(a_batch(output="/shared/{index}"), tmp_path, local=False).output == (
        "/shared/{index}"
    )


def test_a_manifest_that_is_not_there_is_told_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"batch\.inputs\.manifest: there is no file"):
        placed(a_batch("inputs.txt"), tmp_path)


def test_other_machines_need_an_output_that_they_share(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"batch\.output: .* other machines"):
        placed(a_batch(), tmp_path, local=False)


def test_a_service_that_is_no_batch_stays_as_it_is(tmp_path: Path) -> None:
    spec = small_job()
    assert with_batch_places(spec, tmp_path, local=False) is spec


def test_a_scheduler_apart_from_the_tasks_gives_them_no_other_file(
    tmp_path: Path,
) -> None:
    beside, other = tmp_path / "options", tmp_path / "secret"
    beside.mkdir()
    other.write_text("hush")
    (beside / "link").symlink_to(other)
    for listing in (str(other), "../secret", "link"):
        with pytest.raises(UsageError, match="not beside the options"):
            placed(a_batch(listing, "/shared/{index}"), beside, local=False)
        assert placed(a_batch(listing), beside).listing == str(other)


def test_what_the_kernel_shows_of_the_scheduler_is_no_manifest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is the kernel's"):
        placed(a_batch("/proc/self/environ"), tmp_path)
