"""How a job ended, as a document and as text: verdict, result, where everything lies.

``run`` prints it, keeps it in the service's folder, and ``status`` shows it from there once the
scheduler is gone.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.client.errors import EXIT_FAILED
from dcos_tensorflow.client.registry import write_private
from dcos_tensorflow.client.wording import (
    columns,
    duration,
    numbers,
    short,
    table,
    value_text,
    words,
)
from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.core.contract import CONTRACT_FUNCTION, CONTRACT_SCRIPT, CONTRACTS_BESIDE
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.model.job import Outcome
from dcos_tensorflow.core.spec.service_spec import TRAINING_ROLES, TaskRole, is_slot
from dcos_tensorflow.core.spec.workload_spec import BatchSpec
from untrusted_input import trees
from untrusted_input.json_text import read_json

if TYPE_CHECKING:
    from dcos_tensorflow.client.snapshot import Snapshot
    from dcos_tensorflow.core.spec.service_spec import ServiceSpec


def link(folder: Path, places: Mapping[str, Path]) -> None:
    """Make ``folder`` hold a link for each task, and none of before. Raises OSError."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for before in folder.iterdir():
        if before.is_symlink():
            before.unlink()
    for name, place in places.items():
        (folder / name).symlink_to(place)


log = logging.getLogger(__name__)

#: Reads the last lines of a file of a task's sandbox: (agent id, task id, file name).
Tail = Callable[[str, str, str], Sequence[str]]

_OUTPUT_LINES = 15
_EVENT_FILE = "events.out.tfevents."
_SANDBOX = re.compile(r"/[^\s\"']*/executors/[^\s/]+/runs/[^\s/]+/")
_SEARCHED_LINES = 400
#: So many tasks are asked what they left in their sandboxes, and so many files of each are named.
_ASKED_FOR_FILES = 20
_NAMED_FILES = 6
#: Of so many tasks the newest numbers stand at the end.
_MOST_TELLING = 4
#: Has a batch leave the shards alone whose output is there.
_RESUME = "--resume"
#: So many files are looked at for what TensorBoard could show.
_MOST_FILES = 20_000
_IDLE = "It reported no step and left no file: check that the code calls its training."


def with_last_output(snapshot: Snapshot, tail: Tail) -> Snapshot:
    """Return the snapshot with what the deciding tasks said last, read from their sandboxes.

    A job's result is often its last line, printed after the last time that its runner was asked.
    """
    from dcos_tensorflow.task.output.error_texts import without_errors
    from dcos_tensorflow.task.output.progress import Progress, read_line, read_record

    tasks = dict(snapshot.job["tasks"])
    for name in snapshot.job.get("deciding_tasks", ()):
        task = tasks.get(name) or {}
        if not task.get("task_id") or (task.get("report") or {}).get("result"):
            continue
        progress = Progress()
        for file, read in (("stdout", read_line), ("progress.jsonl", read_record)):
            try:
                lines = tail(task["agent_id"], task["task_id"], file)
            except Exception as error:
                # Whatever the cluster's files answer, the verdict stands.
                log.info("cannot read %s of %s: %s", file, name, error)
                continue
            for line in without_errors(lines[-_SEARCHED_LINES:]):
                progress = read(progress, line, task.get("changed_at") or 0.0)
        report = dict(task.get("report") or {})
        # What the last lines do not tell is known from the runner.
        known = {k: v for k, v in progress.as_json().items() if v is not None and v != {}}
        report["progress"] = {**(report.get("progress") or {}), **known}
        if progress.result is not None:
            report["result"] = dict(progress.result)
        tasks[name] = {**task, "report": report}
    return replace(snapshot, job={**snapshot.job, "tasks": tasks})


def left_in_sandboxes(snapshot: Snapshot, tail: Tail) -> dict[str, dict[str, Any]]:
    """Return what tasks left in their sandboxes beside their directories, by task.

    Those that decide about the job are asked, and others that run the job's code: not all of many.
    """
    from dcos_tensorflow.core.contract import EXIT_REPORT_FILE

    tasks = snapshot.job["tasks"]
    roles = {*TRAINING_ROLES, TaskRole.EVALUATOR}
    others = [name for name in tasks if name.rpartition("-")[0] in roles]
    names = dict.fromkeys((*snapshot.job.get("deciding_tasks", ()), *others))
    found = {}
    for name in [n for n in names if (tasks.get(n) or {}).get("task_id")][:_ASKED_FOR_FILES]:
        task = tasks[name]
        try:
            text = "\n".join(tail(task["agent_id"], task["task_id"], EXIT_REPORT_FILE))
            report = read_json(text)
        except Exception as error:
            log.info("cannot read what %s left: %s", name, error)
            continue
        left = report.get("left") if isinstance(report, dict) else None
        if isinstance(left, dict) and left.get("files"):
            found[name] = left
    return found


def document(
    snapshot: Snapshot,
    places: Mapping[str, str],
    left: Mapping[str, Mapping[str, Any]] | None = None,
    steps: Mapping[str, str] | None = None,
    contract: str = "",
    *,
    units: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the end of a job as JSON. ``places`` are paths and addresses by what lies there.

    ``left`` is what tasks left in their sandboxes, ``steps`` are commands by what they are for.
    ``contract`` is how the code is called, as far as that was known before the start. ``units`` is
    what came of those of a sweep or batch (``client.units.units_outcome``).
    """
    verdict = snapshot.verdict or {}
    job = snapshot.job
    return {
        "service": snapshot.service,
        "run": snapshot.run,
        "phase": snapshot.phase,
        "outcome": verdict.get("outcome"),
        "exit_code": verdict.get("exit_code", EXIT_FAILED),
        "summary": verdict.get("summary", job.get("why", "")),
        "started_at": job.get("started_at"),
        "finished_at": job.get("finished_at"),
        "restarts": job.get("restarts", 0),
        "result": snapshot.result(),
        "numbers": _numbers(snapshot),
        "incidents": list(job.get("incidents") or ()),
        "failure": _failure(snapshot),
        "tasks": {name: _task(task) for name, task in job["tasks"].items()},
        "places": dict(places),
        "left": {name: dict(files) for name, files in (left or {}).items()},
        "idle": not left and "output" not in places and _is_idle(snapshot, places, contract),
        "next": dict(steps or {}),
        **({"units": dict(units)} if units else {}),
    }


def in_queue(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the end of a job as the queue of teams keeps it: less than its scheduler knew."""
    outcome = Outcome.STOPPED if job["state"] == "cancelled" else Outcome(job["state"])
    return {
        "service": job["job"],
        "outcome": str(outcome),
        "exit_code": 0 if outcome is Outcome.SUCCEEDED else EXIT_FAILED,
        "summary": job["why"],
        "started_at": job["began_at"],
        "finished_at": job["ended_at"],
        **{name: {} for name in ("result", "numbers", "tasks", "places", "left", "next")},
        "incidents": [],
        "failure": None,
        "restarts": 0,
    }


def _numbers(snapshot: Snapshot) -> dict[str, str]:
    """Return what the tasks that decide, and those that evaluate, told last of their training.

    Workers that train together tell the same: it is said of the first.
    """
    found: dict[str, str] = {}
    for task in snapshot.tasks:
        if task.name in snapshot.job.get("deciding_tasks", ()) or _evaluates(task.name):
            told = numbers(task)
            if told and told not in found.values() and len(found) < _MOST_TELLING:
                found[task.name] = told
    return found


def _evaluates(name: str) -> bool:
    return name.rpartition("-")[0] == TaskRole.EVALUATOR


def _is_idle(snapshot: Snapshot, places: Mapping[str, str], contract: str) -> bool:
    """Say whether the job's own code succeeded with nothing to show for it.

    Such is a module that defines its training and calls it nowhere, or one whose ``main`` is called
    with other arguments than it is made for. A command may be meant so.
    """
    job = snapshot.job
    if (snapshot.verdict or {}).get("outcome") != Outcome.SUCCEEDED or snapshot.result():
        return False
    if any(task.has_progress for task in snapshot.tasks):
        return False
    reports = [task.get("report") or {} for task in job["tasks"].values()]
    # Of what ends at once the runner may not have been asked.
    called = {report.get("contract") or contract for report in reports}.difference(CONTRACTS_BESIDE)
    if not called or called - {CONTRACT_SCRIPT, CONTRACT_FUNCTION}:
        return False
    checkpoints = Path(places.get("checkpoints", ""))
    started = job.get("started_at") or 0.0
    return not checkpoints.is_absolute() or not any(
        entry.stat().st_mtime > started for entry in checkpoints.glob("*")
    )


def keep(directory: ServiceDirectory, ended: Mapping[str, Any]) -> None:
    """Leave the end of the job in the service's folder; a full disk is no reason to fail."""
    try:
        write_private(directory.last_end, json.dumps(ended, indent=2) + "\n")
    except OSError as error:
        log.warning("cannot write %s: %s", directory.last_end, error)


def forget(directory: ServiceDirectory, *, but: float | None = None) -> None:
    """Remove what an earlier job left, now that there is another one.

    ``but`` is when that one finished, in unix seconds, where it has: its own end stays.
    """
    if but is None or (last(directory) or {}).get("finished_at") != but:
        directory.last_end.unlink(missing_ok=True)


def last(directory: ServiceDirectory) -> dict[str, Any] | None:
    """Return how the last job of the service ended; None when nothing is known."""
    try:
        found = read_json(directory.last_end.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and "exit_code" in found else None


def lines(ended: Mapping[str, Any]) -> list[str]:
    """Return the end of a job as text for a person."""
    result = {words(str(k)): value_text(v) for k, v in ended["result"].items()}
    run = [("run", str(ended["run"]))] if "run" in ended else []
    units = list(_units(ended.get("units") or {}))
    told_last = () if result or units else ended.get("numbers", {}).items()
    told = [*run, *result.items(), *units, *told_last]
    where = table([*told, *ended["places"].items(), *_left(ended)])
    why = list(_why(ended))
    steps = table(list(ended.get("next", {}).items()))
    leaders = [f"  {line}" for line in columns((ended.get("units") or {}).get("leaderboard") or ())]
    # What the code did comes before where things lie, and that before what may be done next.
    return [
        _verdict_line(ended),
        *([_IDLE] if ended.get("idle") else ()),
        *([*why, ""] if why else ()),
        *([*leaders, ""] if leaders else ()),
        *where,
        *(["", *steps] if steps else ()),
    ]


def _units(units: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what came of the units of a sweep or a batch: the best, and the first that failed."""
    if not units:
        return
    best, kind = units["best"], units["kind"]
    if best:
        given = ", ".join(f"{name} {value_text(v)}" for name, v in best["parameters"].items())
        yield "best", f"{kind} {best['number']}: {best['metric']} {short(best['value'])} ({given})"
    if units.get("doubt"):
        yield "note", units["doubt"]
    for failure in units["failures"]:
        label = "failed" if failure["state"] == "failed" else "no value"
        yield label, f"{kind} {failure['number']}: {failure['why']}"
    more = units["failed"] - len(units["failures"])
    if more:
        yield "", f"and {more} more"


def _left(ended: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what tasks left in their sandboxes: it is kept until the next run but one."""
    for name, left in ended.get("left", {}).items():
        files, more = left["files"][:_NAMED_FILES], left["count"] - _NAMED_FILES
        others = f" and {counted(more, 'more file')}" if more > 0 else ""
        where = ended["places"].get("task logs", "")
        place = f"{where}/{name}: " if where.startswith("/") else ""
        yield f"{name} left", f"{place}{', '.join(files)}{others}"


def _why(ended: Mapping[str, Any]) -> Iterator[str]:
    failure = ended.get("failure")
    if not failure:
        return
    told = f"{failure['summary']} {ended['summary']}"
    if failure["explanation"] and failure["explanation"] not in told:
        yield from ("", f"Why: {failure['explanation']}")
    if failure["last_lines"]:
        yield from ("", f"The last lines of {failure['task']}:")
        # The sandbox's own path is long, and the same in front of every file in it.
        shown = failure["last_lines"][-_OUTPUT_LINES:]
        yield from (f"  | {_SANDBOX.sub('', line)}" for line in shown)


def _verdict_line(ended: Mapping[str, Any]) -> str:
    words_of = {
        Outcome.SUCCEEDED: "has succeeded",
        Outcome.FAILED: "has failed",
        Outcome.STOPPED: "was stopped",
    }
    outcome = ended["outcome"]
    how = words_of.get(Outcome(outcome), "") if outcome else f"is {ended['phase']}"
    started, finished = ended.get("started_at"), ended.get("finished_at")
    took = f" after {duration(finished - started)}" if started and finished else ""
    restarts = ended.get("restarts") or 0
    again = f" and {counted(restarts, 'restart')}" if restarts else ""
    return f"The job {ended['service']} {how}{took}{again}: {ended['summary']}"


def _failure(snapshot: Snapshot) -> dict[str, Any] | None:
    incidents = snapshot.job.get("incidents") or ()
    if not incidents or (snapshot.verdict or {}).get("outcome") != Outcome.FAILED:
        return None
    incident = incidents[-1]
    task = snapshot.job["tasks"].get(incident["task"]) or {}
    evidence = (task.get("evidence") or {}) if task.get("task_id") == incident["task_id"] else {}
    return {
        "task": incident["task"],
        "kind": incident["kind"],
        "summary": incident["summary"],
        "explanation": evidence.get("summary", ""),
        "last_lines": list(evidence.get("last_lines") or ()),
    }


def _task(task: Mapping[str, Any]) -> dict[str, Any]:
    report = task.get("report") or {}
    return {
        "state": task.get("state"),
        "attempt": task.get("attempt", 0),
        "hostname": task.get("hostname", ""),
        "task_id": task.get("task_id", ""),
        "message": task.get("message", ""),
        "progress": report.get("progress"),
    }


def places(
    spec: ServiceSpec,
    directory: ServiceDirectory,
    cluster: Path | None,
    snapshot: Snapshot,
    framework_id: str,
) -> dict[str, str]:
    """Return where the output, the checkpoints, the tasks' logs and the scheduler's log lie.

    ``cluster`` is the folder of the embedded cluster, None for any other; ``framework_id`` is what
    the service is called there.
    """
    # Who only reads how a job ended need not know what a service is.
    from dcos_tensorflow.core.cluster.storage_sections import checkpoints_place

    found = {}
    output = output_of(snapshot, directory)
    if output:
        found["output"] = output
    found["checkpoints"] = checkpoints_place(spec) or "in each task's sandbox"
    tasks = {n: task for n, task in snapshot.job["tasks"].items() if task.get("task_id")}
    if cluster is not None:
        ids = {n: t["task_id"] for n, t in tasks.items()}
        logs = link_sandboxes(directory, cluster, {**_slots(cluster, framework_id), **ids})
    else:
        hosts = ", ".join(sorted({t["hostname"] for t in tasks.values() if t.get("hostname")}))
        logs = f"in the tasks' sandboxes on {hosts}" if hosts else ""
    if isinstance(spec.workload, BatchSpec):
        found["shards"] = spec.workload.output
    if logs:
        found["task logs"] = logs
    if directory.log.exists():
        found["scheduler log"] = str(directory.log)
    return found


def output_of(snapshot: Snapshot, directory: ServiceDirectory) -> str:
    """Return where the run's output lies; empty where there is none, as far as that can be seen.

    Folders of this service in which nothing was left are removed.
    """
    place = str(snapshot.job.get("output") or "")
    if not place.startswith("/"):
        said = (task.get("report") or {} for task in snapshot.job["tasks"].values())
        copied = ((report.get("storage") or {}).get("output") or {} for report in said)
        elsewhere = place and not place.startswith("s3")
        return place if elsewhere or any(one.get("published_at") for one in copied) else ""
    run = Path(place)
    if run.is_relative_to(directory.output):
        for folder in [*run.glob("*"), run, directory.output]:
            # What is not empty stays, and so does what is no folder.
            with contextlib.suppress(OSError):
                folder.rmdir()
        kept = sorted(run.glob("*"))
        return str(kept[0] if len(kept) == 1 else run) if kept else ""
    return place


def steps(
    ended_in: ServiceSpec,
    directory: ServiceDirectory,
    again: Sequence[str],
    units: Mapping[str, Any] | None = None,
) -> dict[str, str]:
    """Return what a person may want to do next, as commands that work once the job has ended.

    ``again`` is the command line that runs the job once more, empty where it is not known;
    ``units`` is what came of those of a sweep or batch.
    """
    found = {}
    is_batch = isinstance(ended_in.workload, BatchSpec)
    if units and units["total"]:
        command = ["dcos-tensorflow", "batch" if is_batch else "sweep"]
        found[f"all {units['kind']}s"] = shlex.join([*command, ended_in.name])
        if units["best"]:
            found["train the best"] = shlex.join([*command, "best", ended_in.name, "--run"])
    if again and not is_batch:
        found["run again"] = shlex.join(again)
    elif again and units and (not units["total"] or units["failed"]):
        # What is there is not written over.
        resume = [] if _RESUME in again else [_RESUME]
        found["run missing units"] = shlex.join([*again, *resume])
    found["its logs"] = shlex.join(["dcos-tensorflow", "logs", f"--name={ended_in.name}"])
    board = _tensorboard(ended_in, directory)
    if board:
        found["its curves"] = board
    return found


def _tensorboard(spec: ServiceSpec, directory: ServiceDirectory) -> str:
    """Return the command that shows the run's summaries; empty where there are none, or no board.

    TensorFlow 2.21 brings no TensorBoard.
    """
    logs = Path(spec.job.shared_filesystem or spec.job.checkpoint_dir or directory.checkpoints)
    # A file system that many share is not looked through to its end.
    found = islice(trees.files_below(logs), _MOST_FILES) if logs.is_absolute() else ()
    if not any(os.path.basename(file).startswith(_EVENT_FILE) for file in found):
        return ""
    for role in spec.roles:
        python = Path(role.python)
        environment = python if python.is_dir() else python.parent.parent
        if role.python and any(environment.glob("lib/python3*/site-packages/tensorboard/main.py")):
            program = environment / "bin" / "python"
            return shlex.join([str(program), "-m", "tensorboard.main", "--logdir", str(logs)])
    return ""


def _slots(cluster: Path, framework_id: str) -> dict[str, str]:
    """Return the newest task id of each task of a slot, by its name.

    Slots are given back before the job has ended: what they have printed lies in their sandboxes.
    """
    from dcos_tensorflow.core.model.task import parse_task_id

    executors = cluster.glob(f"work/agents/*/slaves/*/frameworks/{framework_id}/executors/*")
    ids = (each.name for each in sorted(executors, key=lambda each: each.stat().st_mtime_ns))
    named = ((parse_task_id(task_id), task_id) for task_id in ids)
    return {known[1]: task_id for known, task_id in named if known and is_slot(known[1])}


def link_sandboxes(directory: ServiceDirectory, cluster: Path, tasks: Mapping[str, str]) -> str:
    """Make ``tasks/<name>`` in the service's folder lead to each task's sandbox.

    ``tasks`` are Mesos task ids by task name; the sandboxes are those of the embedded cluster.
    Returns the folder, or nothing when there is no sandbox.
    """
    folder = directory.task_logs
    found = {}
    for name, task_id in tasks.items():
        runs = cluster.glob(f"work/agents/*/slaves/*/frameworks/*/executors/{task_id}/runs/*")
        run = next((run for run in runs if run.is_dir() and not run.is_symlink()), None)
        if run is not None:
            found[name] = run
    if not found:
        return ""
    try:
        link(folder, found)
    except OSError as error:
        log.warning("cannot link the sandboxes in %s: %s", folder, error)
        return str(cluster)
    return str(folder)
