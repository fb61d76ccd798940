// One metric as curves, one per task, with the incidents across them: uPlot in a figure.
// What is drawn is told in words, too; the values under the pointer stand in the caption.
import { series } from "./curves.js";
import { Component, html } from "../html.js";
import { clock, number, plain } from "../words.js";

const HEIGHT = 180;
/** Distances between the marks of steps: there is no half step. */
const WHOLE = Array.from({ length: 15 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

/** What the marks of the upright axis need, so that none is cut. @param {any} plot @param {string[] | null} marks */
const widthOf = (plot, marks) => Math.max(40, 18 + 7 * Math.max(0, ...(marks ?? []).map((mark) => String(mark ?? "").length)));

export class Chart extends Component {
  componentDidMount() {
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.redo = () => this.#draw(true);
    /** The picture that is to be drawn soon, and whether with other options. */
    this.drawing = null;
    this.anew = false;
    this.scheme.addEventListener("change", this.redo);
    this.sizes = new ResizeObserver(() => this.plot?.setSize(this.#size()));
    this.sizes.observe(this.place);
    this.#draw(true);
  }

  /** @param {any} before */
  componentDidUpdate(before) {
    this.anew ||= before.by !== this.props.by || before.tasks.join() !== this.props.tasks.join();
    // Each picture in a task of its own: what is typed and clicked comes in between.
    this.drawing ??= setTimeout(() => {
      this.drawing = null;
      this.#draw(this.anew);
      this.anew = false;
    });
  }

  componentWillUnmount() {
    this.scheme.removeEventListener("change", this.redo);
    this.sizes.disconnect();
    clearTimeout(this.drawing);
    this.plot?.destroy();
  }

  #size() {
    return { width: Math.max(200, this.place.clientWidth), height: HEIGHT };
  }

  #data() {
    const { curves, tasks, metric, by } = this.props;
    const tables = tasks.map((task) => series(curves[task] ?? [], metric, by));
    return tables.length > 1 ? uPlot.join(tables) : tables[0];
  }

  /** @param {boolean} anew with other options than before */
  #draw(anew) {
    const key = this.props.incidents.length;
    if (!anew && this.plot) {
      if (this.points !== this.props.curves || this.key !== key) this.plot.setData(this.#data());
    } else {
      this.plot?.destroy();
      this.plot = new uPlot(this.#options(), this.#data(), this.place);
    }
    this.points = this.props.curves;
    this.key = key;
  }

  #options() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const axis = { stroke: colour("muted"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false } };
    const by_time = this.props.by === "time";
    return {
      ...this.#size(),
      legend: { show: false },
      cursor: { y: false },
      scales: { x: { time: by_time } },
      // Below the first time of a day stands the day.
      axes: [{ ...axis, size: by_time ? 44 : 30, ...(by_time ? {} : { incrs: WHOLE }) }, { ...axis, size: widthOf }],
      series: [
        {},
        ...this.props.tasks.map((task, index) => ({
          label: task,
          stroke: colour(`curve-${index % 4}`),
          width: 1.5,
          spanGaps: true,
          points: { size: 4 },
        })),
      ],
      hooks: {
        draw: [(plot) => this.#drawIncidents(plot, colour("bad"))],
        setCursor: [(plot) => this.#tell(plot)],
      },
    };
  }

  /** @param {any} plot @param {string} colour */
  #drawIncidents(plot, colour) {
    const { left, top, width, height } = plot.bbox;
    plot.ctx.save();
    plot.ctx.strokeStyle = colour;
    plot.ctx.setLineDash([4, 4]);
    for (const incident of this.props.incidents) {
      const value = this.props.by === "time" ? incident.at : incident.step;
      const x = value == null ? NaN : plot.valToPos(value, "x", true);
      if (!(x >= left && x <= left + width)) continue;
      plot.ctx.beginPath();
      plot.ctx.moveTo(x, top);
      plot.ctx.lineTo(x, top + height);
      plot.ctx.stroke();
    }
    plot.ctx.restore();
  }

  /** @param {any} plot */
  #tell(plot) {
    const at = plot.cursor.idx;
    const x = at == null ? null : plot.data[0][at];
    if (x == null) this.said.textContent = "";
    else {
      const values = this.props.tasks.map((task, i) => [task, plot.data[i + 1][at]]).filter(([, y]) => y != null);
      const where = this.props.by === "time" ? clock(x) : `${this.props.counted ?? "step"} ${number(x)}`;
      this.said.textContent = plain(`${where}: ${values.map(([task, y]) => `${task} ${number(y)}`).join(", ")}`);
    }
  }

  /** @param {any} props */
  render({ metric, curves, tasks, by, incidents }) {
    const told = tasks.map((task) => {
      const [x, y] = series(curves[task] ?? [], metric, by);
      if (!y.length) return `${task}: nothing yet`;
      const lowest = y.reduce((a, b) => Math.min(a, b));
      const highest = y.reduce((a, b) => Math.max(a, b));
      return `${task}: ${y.length} points, now ${number(y.at(-1))}, lowest ${number(lowest)}, highest ${number(highest)}`;
    });
    const marks = incidents.length ? `; incidents: ${incidents.length}` : "";
    return html`<figure class="chart">
      <figcaption><strong>${metric}</strong> <span class="muted" ref=${(e) => (this.said = e)}></span></figcaption>
      <div role="img" aria-label=${`Curve of ${metric}. ${told.join("; ")}${marks}`} ref=${(e) => (this.place = e)}></div>
      <p class="key">${tasks.map((task, i) => html`<span class=${`curve-${i % 4}`}>${task} ${number(series(curves[task] ?? [], metric, by)[1].at(-1))}</span>`)}</p>
    </figure>`;
  }
}
