"""What a job is to work with beside its options, as its code finds it: JOB_CONTEXT and PARAM_*.

The hyperparameters of one training and the parameters of a trial reach the code in the same way
(docs/job-contract.md). Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

#: What the name of a parameter's variable begins with.
PREFIX = "PARAM_"


def variables(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment variables of parameters: ``learning_rate`` is PARAM_LEARNING_RATE.

    Text is its own value, all else is written as JSON. Raises TypeError for what JSON cannot say.
    """
    return {variable(name): text(value) for name, value in parameters.items()}


def variable(name: str) -> str:
    """Return the name of a parameter's variable."""
    return PREFIX + re.sub(r"\W", "_", name, flags=re.ASCII).upper()


def text(value: Any) -> str:
    """Return a parameter's value as the value of a variable. Raises TypeError."""
    return value if isinstance(value, str) else json.dumps(value)
