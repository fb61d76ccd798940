"""Packs the task runner as one file that any Python >= 3.8 can run.

The scheduler and the tests call ``build_zipapp``; nothing inside the container does. There are two
of it: the small one, and for jobs that keep things in S3 one with the storage engine and boto3 in
it (``pack_libraries``). Beside the sources lies the code that this Python has compiled: most of the
time from a task's start to its user's code goes into that (``packed_main``). The
same sources and Python always give the same bytes, so the fetcher's cache and a checksum can rely
on it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import marshal
import os
import shutil
import sys
import zipfile
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Dict, List, Mapping, Union

from dcos_tensorflow.task import pack_libraries, packed_main
from untrusted_input import trees

_ROOT = Path(__file__).resolve().parents[2]
#: What packs has no use where it was packed.
_NOT_PACKED = ("pack.py", "pack_libraries.py", "packed_main.py")
#: Zip files begin in 1980; a fixed time keeps the bytes the same.
_TIME = (1980, 1, 1, 0, 0, 0)
#: How much is compressed. The small file is packed for its starts: a tenth of its size is not worth
#: as long again, and half of it no twentieth of each runner's start. The other takes long anyway.
_FAST, _SMALL = 1, 6
#: PEP 552: a file that is never compared with its source.
_UNCHECKED = (1).to_bytes(4, "little") + bytes(8)
#: The newest format of ``marshal`` that writes the same whatever else this process has loaded.
_MARSHAL_VERSION = 2
#: Of ``code.co_flags``; ``inspect`` has no name for it.
_CO_HAS_DOCSTRING = 0x4000000


def publish(target: Path, storage: bool = False) -> None:
    """Write the runner to ``target`` as ``build_zipapp`` does, whose name says what it is made of.

    The small one is kept beside what Python compiles, where it keeps anything there: it is wanted
    at each start of a service, and the same until the next upgrade. Raises as ``build_zipapp``.
    """
    kept = Path(importlib.util.cache_from_source(__file__)).with_name(target.name)
    if storage or sys.dont_write_bytecode:
        build_zipapp(target, storage)
        return
    try:
        if not kept.exists():
            older = list(kept.parent.glob(f"*{target.suffix}"))
            build_zipapp(kept)
            for each in older:
                each.unlink(missing_ok=True)
        temporary = _temporary(target)
        shutil.copyfile(kept, temporary)
        temporary.replace(target)
    except OSError:
        # This user may not write there, or another one has upgraded meanwhile.
        build_zipapp(target)


def build_zipapp(target: Path, storage: bool = False) -> Path:
    """Write the runner to ``target`` (replaced at once, never half written) and return it.

    ``storage`` puts the storage engine and boto3 in. Raises OSError, and bundle.BundleError where
    boto3 is not installed beside this Python.
    """
    contents = _contents(storage)
    if storage:
        contents.update(pack_libraries.contents())
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(target)
    with temporary.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            _write(archive, contents, _SMALL if storage else _FAST)
    temporary.chmod(0o755)
    temporary.replace(target)
    return target


def _temporary(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}")


def identity(storage: bool = False) -> str:
    """Return what the runner would be made of, in 16 characters, without making it.

    That is our own sources, the Python that compiles them, and the versions of what is packed with
    them. Raises as ``build_zipapp``.
    """
    here = Path(__file__).resolve().parent
    digest = hashlib.sha256(importlib.util.MAGIC_NUMBER)
    for source in sorted([*_sources(storage), *(here / name for name in _NOT_PACKED)]):
        content = source.read_bytes()
        digest.update(f"{source.relative_to(_ROOT).as_posix()} {len(content)}\n".encode("utf-8"))
        digest.update(content)
    if storage:
        for name, version in sorted(pack_libraries.versions().items()):
            digest.update(f"{name} {version}\n".encode("utf-8"))
    return digest.hexdigest()[:16]


def _write(archive: zipfile.ZipFile, contents: Mapping[str, Union[str, bytes]], level: int) -> None:
    for name, content in sorted(contents.items()):
        entry = zipfile.ZipInfo(name, _TIME)
        at_once = name == packed_main.COMPILED and level == _FAST
        entry.compress_type = zipfile.ZIP_STORED if at_once else zipfile.ZIP_DEFLATED
        entry.external_attr = 0o644 << 16
        archive.writestr(entry, content, compresslevel=level)


def _sources(storage: bool) -> List[Path]:
    package = _ROOT / "dcos_tensorflow"
    only_storage = ("task/storage/", "task/output/shipping/")
    left_out = () if storage else tuple(f"{package}/{each}" for each in only_storage)
    found = [
        Path(source)
        for folder in (package / "job_code", package / "task")
        for source in trees.files_below(folder)
        if source.endswith(".py") and not source.startswith(left_out)
    ]
    input_of_others = ("__init__", "archives", "process_table", "shield", "trees")
    found += [_ROOT / "untrusted_input" / f"{name}.py" for name in input_of_others]
    # With the first the job's own code finds report, where our wrapper runs that.
    names = ("__init__.py", "core/contract.py", "records.py")
    alone = [package / name for name in names]
    return [*alone, *(s for s in found if s.name not in _NOT_PACKED)]


def _contents(storage: bool) -> Dict[str, Union[str, bytes]]:
    """Return each file by its name in the archive: the sources, and what they are compiled to."""
    main = Path(packed_main.__file__)
    contents: Dict[str, Union[str, bytes]] = {
        "__main__.py": main.read_text("utf-8"),
        "__main__.pyc": importlib.util.MAGIC_NUMBER + _UNCHECKED + _compiled(main, "__main__.py"),
        "dcos_tensorflow/core/__init__.py": "",
    }
    modules = {"dcos_tensorflow.core": (True, marshal.dumps(compile("", "", "exec")))}
    for source in _sources(storage):
        place = source.relative_to(_ROOT)
        contents[place.as_posix()] = source.read_text("utf-8")
        is_package = source.stem == "__init__"
        name = ".".join((place.parent if is_package else place.with_suffix("")).parts)
        modules[name] = (is_package, _compiled(source, place.as_posix()))
    compiled = marshal.dumps(dict(sorted(modules.items())), _MARSHAL_VERSION)
    contents[packed_main.COMPILED] = importlib.util.MAGIC_NUMBER + compiled
    return contents


def _compiled(source: Path, name: str) -> bytes:
    # That which this Python has kept of it, where it has.
    code = SourceFileLoader(source.stem, str(source)).get_code(source.stem)
    assert code is not None
    return marshal.dumps(_called(code, name), _MARSHAL_VERSION)


def _called(code: CodeType, name: str) -> CodeType:
    """Return ``code`` with ``name`` for its file: where it was packed is not to be read.

    What its functions say of themselves is in the source beside it, and is not read there.
    """
    constants = [_called(one, name) if isinstance(one, CodeType) else one for one in code.co_consts]
    if _has_docstring(code):
        constants[0] = None
    return code.replace(co_filename=name, co_consts=tuple(constants))


def _has_docstring(code: CodeType) -> bool:
    """Say whether the first constant of a function's code is its docstring.

    Until Python 3.12 it is that or None for all that has a name; since then a flag says so.
    """
    if sys.version_info >= (3, 13):
        return bool(code.co_flags & _CO_HAS_DOCSTRING)
    is_function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
    return bool(is_function and code.co_consts and isinstance(code.co_consts[0], str))
