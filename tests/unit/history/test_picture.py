"""The picture of runs: lines, ways back, incidents."""

import math
from xml.etree import ElementTree

from dcos_tensorflow.history.picture import Drawn, metrics_of, picture
from dcos_tensorflow.history.points import Point

SVG = "{http://www.w3.org/2000/svg}"


def run(*steps: int | None, name: str = "digits@1", incidents: tuple = (), **more: float) -> Drawn:
    points = [
        Point(100.0 + n, step, {"loss": 1.0 / (n + 1), **more}) for n, step in enumerate(steps)
    ]
    return Drawn(name, {"started_at": 100.0, "incidents": list(incidents)}, {"worker-0": points})


def incident(at: float, step: int | None, summary: str = "killed") -> dict:
    return {"at": at, "task": "worker-1", "kind": "killed", "summary": summary, "step": step}


def paths(svg: str, kind: str = "") -> list[str]:
    found = ElementTree.fromstring(svg).iter(f"{SVG}path")
    return [each.get("d", "") for each in found if each.get("class", "") == kind]


def texts(svg: str) -> str:
    return "\n".join(each.text or "" for each in ElementTree.fromstring(svg).iter(f"{SVG}text"))


def test_a_line_goes_back_where_a_restart_has_gone_back_to_a_checkpoint() -> None:
    (back,) = paths(picture([run(0, 10, 20, 10, 20, 30)], "loss"), "back")
    from_, to = (float(spot.split(" ")[0].strip("M")) for spot in back.split("L"))
    assert to < from_


def test_no_line_goes_back_that_was_not_taken_back() -> None:
    assert paths(picture([run(0, 10, 20)], "loss"), "back") == []


def test_over_time_nothing_goes_back() -> None:
    assert paths(picture([run(0, 10, 0, 10)], "loss", over_time=True), "back") == []


def test_incidents_stand_across_the_curve_at_their_steps_and_are_told_below() -> None:
    svg = picture([run(0, 10, 20, incidents=(incident(101.0, 10),))], "loss")
    (mark,) = paths(svg, "incident")
    # The middle between both ends of the axis.
    assert mark.startswith("M480.0 ")
    assert "1  worker-1: killed" in texts(svg)


def test_an_incident_that_knows_no_step_stands_where_the_curve_was_then() -> None:
    svg = picture([run(0, 10, 20, incidents=(incident(101.5, None),))], "loss")
    assert paths(svg, "incident")[0].startswith("M480.0 ")


def test_two_runs_are_told_apart() -> None:
    svg = picture([run(0, 10), run(0, 10, name="digits@2")], "loss")
    lines = [p for p in ElementTree.fromstring(svg).iter(f"{SVG}path") if p.get("stroke-linejoin")]
    assert len({line.get("stroke") for line in lines}) == 2
    assert "digits@1 worker-0" in texts(svg)
    assert "digits@2 worker-0" in texts(svg)


def test_a_run_that_tells_no_steps_is_drawn_over_time() -> None:
    assert "seconds" in texts(picture([run(None, None, None, None)], "loss"))


def test_a_value_that_is_no_number_breaks_the_line() -> None:
    points = [Point(float(n), n, {"loss": v}) for n, v in enumerate((1.0, math.nan, 0.5))]
    svg = picture([Drawn("a@1", {}, {"worker-0": points})], "loss")
    (line,) = [path for path in paths(svg) if path.count("M") == 2]
    assert "nan" not in line


def test_a_task_whose_values_are_not_finite_is_named_with_the_newest() -> None:
    points = [Point(float(n), n, {"loss": math.nan}) for n in range(3)]
    svg = picture([Drawn("a@1", {}, {"worker-0": points})], "loss")
    assert "a@1 worker-0: nan" in texts(svg)


def test_what_a_job_tells_cannot_break_the_picture() -> None:
    summary = "<script>&amp;" * 50
    svg = picture([run(0, 1, name="<a>@1", incidents=(incident(100.5, 0, summary),))], "loss")
    assert "<script>" in texts(svg)
    assert list(ElementTree.fromstring(svg).iter(f"{SVG}script")) == []


def test_nor_do_controls_in_what_it_tells() -> None:
    summary = "\x1b[2Jcleared \u202eback\u202c \x00"
    told = texts(
        picture([run(0, 1, name="a\x07@1", incidents=(incident(100.5, 0, summary),))], "loss")
    )
    assert r"cleared \u202eback" in told
    assert r"a\x07@1" in told


def test_a_run_without_points_is_an_empty_frame() -> None:
    assert len(paths(picture([Drawn("a@1", {}, {})], "loss"), "axis")) == 1


def test_loss_and_accuracy_are_the_first_metrics() -> None:
    told = {"worker-0": [Point(0.0, 0, {"auc": 1.0, "accuracy": 1.0, "loss": 1.0})]}
    assert metrics_of(told) == ["loss", "accuracy", "auc"]
