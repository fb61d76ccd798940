"""The units of work of a service, as the API shows them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from browser_page import DESKTOP, PHONE, Page
from dashboard_modules import in_node
from dcos_tensorflow.api.views.unit_views import UnitsView
from dcos_tensorflow.client.wording import clock, moment
from dcos_tensorflow.core.model.gang import Gang
from dcos_tensorflow.core.model.roster import Roster
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task_table import TaskTable
from dcos_tensorflow.core.model.units import Unit, UnitFailure, UnitRun, UnitState
from dcos_tensorflow.core.spec.service_spec import UnitKind, UnitsSpec
from dcos_tensorflow.core.spec.workload_spec import (
    BatchSpec,
    EarlyStopping,
    SearchMethod,
    WorkloadSpec,
)
from dcos_tensorflow.history.curves import MOST_TRIALS, Curves
from dcos_tensorflow.workloads import producer_of
from jobs.worked_sweep import a_sweep
from samples.states import a_record, a_spec, a_state
from servers.answering_service import TOKEN, Service


@pytest.fixture
def page() -> Iterator[Page]:
    with Page() as page:
        yield page


SWEEP = a_sweep(12, early_stopping=EarlyStopping.ASHA, lag=8)
BATCH = BatchSpec(output="/out/part-{index}", per_shard=10, end=35)


def with_units(workload: WorkloadSpec, kind: UnitKind, *decided: Unit) -> ServiceState:
    """Return a state of which unit 3 runs in slot-0, and as many are known as there can be."""
    spec = replace(a_spec(), units=UnitsSpec(kind, 4, 3, 1.0), workload=workload)
    given = producer_of(workload).next(0, 8)
    state = a_state(spec=spec)
    table = state.units.given([u.payload for u in given.units], last=given.last)
    for unit in decided:
        table = table.put(unit)
    run = UnitRun(3, 1, 50.0)
    slot = Gang("slot-0", TaskTable(Roster.of(spec, gang="slot-0")), unit=run)
    units = replace(table.taken(3, "slot-0"), total=4 if kind is UnitKind.SHARD else 12)
    return replace(state, units=units, gangs={**state.gangs, "slot-0": slot})


def a_running_sweep() -> ServiceState:
    good = {"metrics": {"score": 0.5}, "measured": [[1, 0.4]]}
    done = Unit(0, UnitState.SUCCEEDED, 1, result=good, begun_at=10.0, ended_at=14.0)
    why = "no such file"
    attempts = [UnitFailure("a1", "failed", why, float(at), seconds=2.0) for at in range(12)]
    failed = Unit(1, UnitState.FAILED, 12, 0, tuple(attempts), {}, 10.0, 12.0, why)
    return with_units(SWEEP, UnitKind.TRIAL, done, failed)


def test_a_trial_is_shown_with_its_parameters_and_what_it_has_come_to(ask: Any) -> None:
    body = ask("/v1/units", a_running_sweep()).json()
    assert (body["kind"], body["total"]) == ("trial", 12)
    states = ("running", "waiting", "succeeded", "failed", "pruned")
    assert body["counts"] == dict(zip(states, (1, 5, 1, 1, 0), strict=True))
    assert body["objective"] == {"metric": "score", "goal": "maximize", "logarithmic": ["rate"]}
    first, second, waiting, running = body["units"][:4]
    assert [(one["word"], one["place"]) for one in (first, running, waiting, second)] == [
        ("finished", 0),
        ("running", 1),
        ("waiting", 2),
        ("failed", 7),
    ]
    assert first["points"] == [[1, 0.4]]
    assert (first["value"], first["ended_at"] - first["begun_at"]) == (0.5, 4.0)
    assert set(first["parameters"]) == {"rate", "units", "layers"}
    assert (second["state"], second["why"]) == ("failed", "no such file")
    assert [one["at"] for one in second["failures"]] == [7.0, 8.0, 9.0, 10.0, 11.0]
    assert (second["failures"][0]["why"], first["failures"]) == ("no such file", [])
    assert (running["state"], running["slots"]) == ("running", ["slot-0"])
    assert (running["begun_at"], running["task"]) == (50.0, "slot-0-worker-0")
    assert (waiting["task"], first["task"]) == (None, None)


def test_a_shard_is_shown_with_its_place_in_the_input(ask: Any) -> None:
    body = ask("/v1/units", with_units(BATCH, UnitKind.SHARD)).json()
    assert (body["kind"], body["total"], body["objective"]) == ("shard", 4, None)
    last = body["units"][3]
    assert (last["index"], last["begin"], last["end"]) == (3, 30, 35)
    assert last["output"] == "/out/part-3"


def reported(number: object, step: int, score: float) -> ServiceState:
    """Return the running sweep with what slot-0 reports of a trial."""
    state, record = a_running_sweep(), a_record("slot-0-worker-0")
    progress = {"step": step, "metrics": {"score": score}, "at": 1000.0 + step}
    reports = {record.task_id: {"unit": {"number": number, "attempt": 1}, "progress": progress}}
    table = TaskTable(Roster.of(state.spec, gang="slot-0"), [record], reports)
    gangs = {**state.gangs, "slot-0": replace(state.gangs["slot-0"], tasks=table)}
    return replace(state, gangs=gangs, told=replace(state.told, reports=reports))


def test_the_curve_of_each_trial_is_kept_under_its_own_name() -> None:
    curves = Curves()
    told = [(3, 1, 0.1), (3, 2, 0.2), (4, 1, 0.3), (MOST_TRIALS, 1, 0.4), ("5", 1, 0.5)]
    for number, step, score in told:
        curves.observe(reported(number, step, score))
    found = {name: [p.metrics["score"] for p in all_of] for name, all_of in curves.points().items()}
    assert found == {"trial-3": [0.1, 0.2], "trial-4": [0.3]}


def test_the_job_says_which_unit_a_task_has(ask: Any) -> None:
    tasks = ask("/v1/job", reported(3, 1, 0.1)).json()["tasks"]
    assert tasks["slot-0-worker-0"]["unit"] == 3


def test_those_of_one_state_are_shown_alone(ask: Any) -> None:
    body = ask("/v1/units?state=failed", a_running_sweep()).json()
    assert [unit["number"] for unit in body["units"]] == [1]
    answer = ask("/v1/units?state=done", a_running_sweep())
    assert answer.status_code == 400
    assert "succeeded" in answer.json()["message"]


def test_a_trial_that_runs_is_shown_with_what_it_has_measured(ask: Any) -> None:
    state = a_running_sweep()
    unit = {"number": 3, "attempt": 1, "result": {"measured": [[1, 0.25]]}}
    told = replace(state.told, reports={"task": {"state": "running", "unit": unit}})
    body = ask("/v1/units", replace(state, told=told)).json()
    assert body["units"][3]["measured"] == {"step": 1, "value": 0.25}


def test_what_was_shown_before_changes_nothing_that_is_shown_later() -> None:
    view, early = UnitsView(), with_units(SWEEP, UnitKind.TRIAL)
    late, other = a_running_sweep(), with_units(BATCH, UnitKind.SHARD)
    for state in (early, late, other, early, late, late, early):
        assert view.shown(state) == UnitsView().shown(state)


@pytest.mark.parametrize("number", [-1, 4000, "3", None])
def test_a_report_of_a_unit_that_is_none_changes_nothing(ask: Any, number: object) -> None:
    state = a_running_sweep()
    unit = {"number": number, "attempt": 1, "result": {"measured": [[1, 0.25]]}}
    told = replace(state.told, reports={"task": {"unit": unit}})
    assert ask("/v1/units", replace(state, told=told)).json() == ask("/v1/units", state).json()


def test_a_service_that_is_one_job_has_none(ask: Any) -> None:
    answer = ask("/v1/units", a_state())
    assert (answer.status_code, answer.text) == (404, "Element not found")
    assert ask("/v1/job", a_state()).json()["units"] is None


def test_the_job_counts_its_units(ask: Any) -> None:
    body = ask("/v1/job", a_running_sweep()).json()
    assert body["units"]["counts"]["succeeded"] == 1
    assert body["units"]["total"] == 12


def a_sweep_with_ended_trials() -> ServiceState:
    ended = [
        Unit(n, UnitState.SUCCEEDED, 1, result={"metrics": {"score": score}}, ended_at=20.0 + n)
        for n, score in enumerate((0.5, 0.25, 0.75))
    ]
    return with_units(SWEEP, UnitKind.TRIAL, *ended)


def a_sweep_with_an_outlier() -> ServiceState:
    """Return a sweep of which all trials but 3 have finished, with curves, one of them far off."""
    scores = {0: 0.5, 1: 0.6, 2: 0.55, 4: 0.7, 5: 0.65, 6: 0.58, 7: -900.0}
    ended = [
        Unit(n, UnitState.SUCCEEDED, 1, result=told(score), begun_at=10.0, ended_at=20.0 + n)
        for n, score in scores.items()
    ]
    return with_units(replace(SWEEP, early_stopping=EarlyStopping.NONE), UnitKind.TRIAL, *ended)


def told(score: float) -> dict[str, Any]:
    return {"metrics": {"score": score}, "measured": [[step, score - 1 / step] for step in (1, 3)]}


def a_large_batch(shards: int) -> ServiceState:
    work = replace(BATCH, per_shard=1, end=shards)
    spec = replace(a_spec(), units=UnitsSpec(UnitKind.SHARD, 4, 3, 1.0), workload=work)
    given, state = producer_of(work).next(0, shards), a_state(spec=spec)
    return replace(state, units=state.units.given([u.payload for u in given.units], last=True))


@pytest.mark.soak
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (a_running_sweep(), "1 finished, 1 running, 5 waiting, 1 failed"),
        (a_sweep_with_ended_trials(), "Best value so far"),
        (with_units(BATCH, UnitKind.SHARD), "Shard 3: for"),
        (a_large_batch(10_000), "10,000 waiting"),
    ],
    ids=["sweep", "pictures", "batch", "large batch"],
)
def test_the_dashboard_shows_them(state: ServiceState, shown: str, size: dict[str, int]) -> None:
    service = Service()
    service.current = state
    kind = state.spec.units.kind if state.spec.units else ""
    url = f"http://{service.server.start()}/#/{kind}s"
    try:
        with Page() as page:
            page.order("open", url=url, scheme="light", **size)
            page.order("fill", where="#token", text=TOKEN)
            page.order("forgive")
            page.order("click", where="form button")
            page.see("main", shown)
            assert (page.order("violations"), page.order("complaints")) == ([], [])
            assert page.order("overflow") <= 0
    finally:
        service.server.stop()


def columns(page: Page, column: int) -> list[str]:
    """Return what the table shows in one of its columns, from 1."""
    script = f"[...document.querySelectorAll('tbody tr > :nth-child({column})')]"
    found = page.order("evaluate", script=f"{script}.map((cell) => cell.innerText)")
    return [text.split()[0] for text in found]


def test_trials_are_sorted_filtered_chosen_on_an_axis_and_opened(page: Page) -> None:
    service = Service()
    service.current = a_sweep_with_an_outlier()
    url = f"http://{service.server.start()}/#/trials"
    try:
        page.order("open", url=url, scheme="light", **DESKTOP)
        page.order("fill", where="#token", text=TOKEN)
        page.order("forgive")
        page.order("click", where="form button")
        page.see(".best", "0.7")
        assert columns(page, 1) == ["4", "5", "1", "6", "2", "0", "7", "3"]
        page.order("click", where="thead button >> text=Trial")
        page.see("th[aria-sort=ascending]", "Trial")
        assert columns(page, 1) == [str(number) for number in range(8)]
        page.order("fill", where="input[type=search]", text="score>=0.6 state:finished")
        page.see("#filtered", "3 of 8 trials")
        assert columns(page, 1) == ["1", "4", "5"]
        page.see(".parallel path.out >> nth=3")
        page.order("fill", where="input[type=search]", text="learning<1")
        page.see("#filtered", "there is no column learning; there are trial, score, state, rate")
        page.order("fill", where="input[type=search]", text="")
        # The outlier stands at the end of its axis, and the others have the rest of it.
        page.see("figcaption", "drawn at them: 1 of score")
        page.see(".parallel .mark", "≤ 0.")
        page.order("drag", where=".parallel .handle >> nth=-1", down=[30, 120])
        page.see(".parallel .range")
        chosen = page.order("evaluate", script="document.querySelector('input.long').value")
        assert chosen.startswith("score>=0.")
        assert "7" not in columns(page, 1)
        page.order("click", where="text=Show all, the best first")
        page.see("#filtered", "8 of 8 trials")
        page.order("click", where="tbody a >> nth=1")
        page.see("h3", "Trial 5")
        page.see(".figures", "of 7 finished")
        assert (page.order("violations"), page.order("complaints")) == ([], [])
    finally:
        service.server.stop()


def a_sweep_of_300() -> ServiceState:
    """Return a sweep of which all trials have finished."""
    sweep = a_sweep(300, SearchMethod.RANDOM, lag=300)
    spec = replace(a_spec(), units=UnitsSpec(UnitKind.TRIAL, 4, 3, 1.0), workload=sweep)
    given, state = producer_of(sweep).next(0, 300), a_state(spec=spec)
    table = state.units.given([u.payload for u in given.units], last=given.last)
    for n in range(300):
        score = told(n / 300)
        table = table.put(Unit(n, UnitState.SUCCEEDED, 1, result=score, ended_at=20.0 + n))
    return replace(state, units=replace(table, total=300))


def test_while_a_range_is_drawn_over_300_trials_no_line_and_no_row_changes(page: Page) -> None:
    service = Service()
    service.current = a_sweep_of_300()
    url = f"http://{service.server.start()}/#/trials"
    try:
        page.order("open", url=url, scheme="light", **DESKTOP)
        page.order("fill", where="#token", text=TOKEN)
        page.order("click", where="form button")
        page.see(".parallel path.trial >> nth=299")
        watched = """globalThis.changed = [];
            const named = ({tagName, className}) => `${tagName}.${className.baseVal ?? className}`;
            const note = ({target}) => changed.push(named(target));
            new MutationObserver((found) => found.forEach(note))
                .observe(document.body, {subtree: true, childList: true, attributes: true})"""
        page.order("evaluate", script=f"{{{watched}}}")
        page.order("drag", where=".parallel .handle >> nth=-1", down=[80, 200], released=False)
        page.see(".parallel .range")
        changed = page.order("evaluate", script="changed")
        assert "rect.range" in changed
        assert not {"path.trial", "tr.", "td."} & {one.split(" ")[0] for one in changed}
    finally:
        service.server.stop()


def test_a_filter_compares_numbers_finds_words_and_names_what_is_no_column() -> None:
    rows = [{"lr": 0.1, "state": "no value"}, {"lr": 0.001, "state": "finished"}, {"lr": "NaN"}]
    asked = ["lr<0.01", 'state:"no value"', "FINI", "state:finished|value", "lr:", "lr<x", "x<1"]
    found = in_node(
        """given[1].map((text) => {
          const filter = filterOf(text, ["lr", "state"]);
          return [given[0].map((row) => fits(filter, row)), filter.problem];
        })""",
        [rows, asked],
        {"filterOf, fits": "filter.js"},
    )
    every = [True, True, True]
    assert found == [
        [[False, True, False], ""],
        [[True, False, False], ""],
        [[False, True, False], ""],
        [[True, True, False], ""],
        [every, ""],
        [every, "lr< takes a number, not x"],
        [every, "there is no column x; there are lr, state"],
    ]


def test_other_terms_of_a_column_leave_those_of_all_others() -> None:
    found = in_node(
        """given.map(([text, terms]) => withTerms(text, "lr", terms))""",
        [["adam LR<1 layers:2", [">=0.1", "<=0.2"]], ['"a b" lr>3', []]],
        {"withTerms": "filter.js"},
    )
    assert found == ["adam layers:2 lr>=0.1 lr<=0.2", '"a b"']


def test_a_moment_below_a_day_is_told_by_its_distance_and_has_its_exact_time() -> None:
    distances = [0, 5, 59, 61, 3725, 86_399, -120]
    found = in_node(
        "given.map((away) => moment(1e9 - away, 1e9).props)"
        ".map(({ children, datetime }) => [children, datetime])",
        distances,
        {"moment": "time.js"},
    )
    told = [
        "now",
        "5 s ago",
        "59 s ago",
        "1 min ago",
        "1 h 2 min ago",
        "23 h 59 min ago",
        "in 2 min",
    ]
    assert [text.replace("\u00a0", " ") for text, _ in found] == told
    # So does the command line.
    assert [moment(1e9 - away, 1e9) for away in distances[:-1]] == told[:-1]
    assert found[3][1] == "2001-09-09T01:45:39.000Z"
    day = in_node("moment(1e9, 1e9 + 86400).props", None, {"moment": "time.js"})
    assert day["children"] == day["title"]
    assert moment(1e9, 1e9 + 86_400) == clock(1e9)
