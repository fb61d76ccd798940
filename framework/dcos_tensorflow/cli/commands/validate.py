"""``validate``: what a job would run, or everything that is wrong, without starting anything."""

from __future__ import annotations

from pathlib import Path

import click

from dcos_tensorflow.cli.errors import EXIT_USAGE, UsageError
from dcos_tensorflow.cli.flags import OPTIONS_FILE, json_flag, overrides_flag
from dcos_tensorflow.cli.output import say_lines, show_json


@click.command()
@click.argument("options_file", metavar="OPTIONS.json", type=OPTIONS_FILE)
@overrides_flag
@json_flag
def validate(options_file: Path, overrides: tuple[str, ...], as_json: bool) -> int:
    """Show what a job would run, or everything that is wrong with its options."""
    from dcos_tensorflow.cli.serving import describing
    from dcos_tensorflow.cli.serving.preparation import PreparedJob, check_job, local_source
    from dcos_tensorflow.core.cluster.cluster_spec import illegal_mix
    from dcos_tensorflow.options import load, notes, service_spec

    options = load(options_file, overrides=overrides)
    spec = service_spec(options)
    try:
        source = local_source(spec, options.base_directory, local=False)
        contract = check_job(spec, source) if source is not None else spec.job.contract
        wrong = illegal_mix(spec)
        if wrong:
            raise UsageError(f"This cannot run: {wrong}.")
    except UsageError as error:
        if not as_json:
            raise
        show_json({"valid": False, "problems": [{"path": "", "message": str(error)}]})
        return EXIT_USAGE
    described = describing.document(PreparedJob(spec, source, contract, notes(options)))
    if as_json:
        show_json({"valid": True, **described})
    else:
        say_lines(describing.lines(described))
    return 0
