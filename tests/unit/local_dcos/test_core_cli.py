"""The plugin that ``dcos cluster setup`` is given."""

import io
import zipfile
from pathlib import Path

from local_dcos import core_cli


def test_an_archive_without_commands_never_takes_the_place_of_the_real_plugin() -> None:
    # The client installs it as what its plugin.toml calls it, over what is there.
    with zipfile.ZipFile(io.BytesIO(core_cli.archive(None))) as packed:
        assert 'name = "local-dcos"' in packed.read("plugin.toml").decode()


def test_the_users_own_plugin_is_served_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "core.zip").write_bytes(b"PK-mine")
    assert core_cli.archive(tmp_path / "core.zip") == b"PK-mine"
