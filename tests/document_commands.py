"""What a document tells its reader to type: the blocks of its sections, command by command."""

import re
from pathlib import Path

_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document: Path, language: str) -> dict[str, str]:
    """Return each section's blocks of a language, joined; sections without one are left out."""
    _, *parts = _SECTION.split(document.read_text())
    found = {
        title: "".join(text for kind, text in _BLOCK.findall(body) if kind == language)
        for title, body in zip(parts[::2], parts[1::2], strict=True)
    }
    return {title: text for title, text in found.items() if text}


def commands(block: str) -> list[str]:
    """Return the commands of a shell block word by word, each with its lines and comments."""
    found: list[str] = []
    goes_on = False
    for line in block.splitlines():
        if goes_on:
            found[-1] += f"\n{line}"
        elif line.strip():
            found.append(line)
        goes_on = line.endswith("\\")
    return found
