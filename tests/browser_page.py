"""A page in Debian's Chromium, driven by playwright-core through ``tests/browser/browser.mjs``."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
NODE_MODULES = ROOT / "packaging" / "dashboard" / "node_modules"
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
#: An order that takes longer has failed; a busy machine needs a tenth of it.
SECONDS = 60.0


class PageError(AssertionError):
    """What the browser was told could not be done; the text is its own."""


class Page:
    """One page at a time. Skips the test where a part of the browser is missing."""

    def __init__(self) -> None:
        node, chromium = shutil.which("node"), shutil.which("chromium")
        if node is None or chromium is None:
            pytest.skip("no browser: apt-get install nodejs npm chromium")
        if not (NODE_MODULES / "playwright-core").is_dir():
            pytest.skip("no playwright-core: npm ci --prefix packaging/dashboard")
        self._process = subprocess.Popen(
            [node, str(ROOT / "tests" / "browser" / "browser.mjs"), chromium],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Page:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(SECONDS)
        finally:
            self._process.kill()
            self._process.stdout.close()

    def order(self, order: str, **more: Any) -> Any:
        """Have something done and return what came of it. Raises PageError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"order": order, **more}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the browser has ended"}
        if "error" in answer:
            raise PageError(f"{order} {more}: {answer}")
        return answer["answer"]

    def see(self, where: str, text: str = "", seconds: float = SECONDS) -> None:
        """Wait until an element shows a text. Raises PageError."""
        self.order("see", where=where, text=text, seconds=seconds)
