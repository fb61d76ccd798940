"""The curves of a training as a drawing."""

from pathlib import Path
from xml.etree import ElementTree

from dcos_tensorflow.estimator.notebook_curves import NotebookCurves, charts
from dcos_tensorflow.history.folder import RunFolder
from dcos_tensorflow.history.points import Point, lines_of

SVG = "{http://www.w3.org/2000/svg}"


def drawn(**told: list[dict[str, float]]) -> list[ElementTree.Element]:
    """Return the charts of tasks that told these metrics at steps 1, 2, ..."""
    points = {
        task: [Point(100.0 + n, n, metrics) for n, metrics in enumerate(values, 1)]
        for task, values in told.items()
    }
    return list(ElementTree.fromstring(f"<p>{charts(points)}</p>"))


def test_there_is_a_chart_for_each_metric_and_a_line_for_each_task():
    values = [{"loss": 1 / step, "auc": step / 10} for step in (1, 2, 3)]
    both = drawn(chief=values, worker=values)
    assert [chart.findall(f"{SVG}text")[0].text for chart in both] == ["loss", "auc"]
    assert [len(chart.findall(f"{SVG}polyline")) for chart in both] == [2, 2]
    assert both[0].find(f"{SVG}title").text == "chief, worker"


def test_the_numbers_at_the_axes_are_whole_however_long_they_are():
    values = (1.2345678e-7, 1.2345679e-7, 1.234568e-7)
    points = [Point(1.0, n * 10_000_000, {"loss": v}) for n, v in enumerate(values)]
    chart = ElementTree.fromstring(charts({"w": points}))
    marks = chart.findall(f"{SVG}text")[1:]
    assert len(marks) >= 4
    for mark in marks:
        width = 6.0 * len(mark.text)
        before = {"start": 0.0, "middle": 0.5, "end": 1.0}[mark.get("text-anchor")] * width
        begins = float(mark.get("x")) - before
        assert 0 <= begins <= begins + width <= 320, mark.text


def test_a_falling_loss_falls():
    (chart,) = drawn(worker=[{"loss": 10.0 - n} for n in range(3)])
    points = chart.find(f"{SVG}polyline").get("points").split()
    heights = [float(point.split(",")[1]) for point in points]
    assert heights == sorted(heights)


def test_nothing_is_drawn_of_a_single_point_nor_of_what_is_no_number():
    assert drawn(worker=[{"loss": 1.0}]) == []
    assert drawn(worker=[{"loss": float("nan")}] * 3) == []


def test_a_long_training_is_drawn_with_fewer_points():
    (chart,) = drawn(worker=[{"loss": 1.0 * n} for n in range(5000)])
    points = chart.find(f"{SVG}polyline").get("points").split()
    assert 250 <= len(points) <= 500


def test_a_name_is_no_markup():
    told = [{"<b>&": 1.0 * n} for n in range(2)]
    assert drawn(worker=told)[0].findall(f"{SVG}text")[0].text == "<b>&"


def test_values_that_were_told_without_a_step_are_drawn_over_seconds():
    points = [Point(100.0 + n, None, {"loss": 1.0 * n}) for n in range(3)]
    chart = ElementTree.fromstring(charts({"w": points}))
    assert [t.text for t in chart.findall(f"{SVG}text")[-3:]] == ["0", "1", "2"]


def test_a_run_that_was_seen_only_at_its_end_is_drawn_whole(tmp_path: Path):
    points = [Point(100.0 + n, n, {"loss": 1.0 * n}) for n in range(5)]
    for number in (1, 2):
        run = RunFolder(tmp_path / f"{number}-abc")
        run.keep_record({"started_at": 100.0 + number})
        run.append(lines_of({"w": points[: number + 2]}, clean=lambda told: told))
    chart = ElementTree.fromstring(NotebookCurves(tmp_path).html(None))
    assert len(chart.find(f"{SVG}polyline").get("points").split()) == 4
