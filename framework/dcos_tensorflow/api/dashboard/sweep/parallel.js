// The trials of a sweep as lines across their parameters and the objective (parallel coordinates), in
// full width. A range that is drawn on an axis becomes a term of the filter above the table, and so
// the terms of the filter are ranges on the axes. The table says the same in words.
import { Component, html } from "../html.js";
import { fits, quoted, withTerms } from "../filter.js";
import { number } from "../words.js";
import { usual } from "./board.js";

const HEIGHT = 300;
const TOP = 34;
const BOTTOM = 276;
/** Half of what the first and the last axis need for their labels. */
const SIDE = 60;
/** Axes that are nearer are scrolled. */
const LEAST_BETWEEN = 84;
/** More lines than those of the best trials tell nothing, and cost much. */
const MOST_LINES = 300;
/** A drag of fewer pixels takes the range away. */
const LEAST_DRAG = 4;
const HANDLE = 28;
/** A parameter whose values lie further apart than this factor is drawn by its logarithm. */
const WIDE = 50;
const MOST_WORDS = 8;

export class Parallel extends Component {
  state = { width: 0, drag: null };

  componentDidMount() {
    this.sizes = new ResizeObserver(() => this.setState({ width: this.place.clientWidth }));
    this.sizes.observe(this.place);
  }

  componentWillUnmount() {
    this.sizes.disconnect();
  }

  /** Drawn anew when something of it has changed, and not each second. */
  shouldComponentUpdate(next, state) {
    return next.fitting !== this.props.fitting || next.board !== this.props.board || state !== this.state;
  }

  #axes() {
    const { board, rows } = this.props;
    if (this.axesOf !== board) {
      this.axesOf = board;
      this.axes = [...board.names, board.metric].map((name) =>
        axis(name, rows.map((one) => one.cells[name]), board.logarithmic.includes(name), name === board.metric ? finishedOf(rows) : null));
    }
    return this.axes;
  }

  #begin(event, found) {
    event.currentTarget.setPointerCapture(event.pointerId);
    this.setState({ drag: { name: found.name, from: event.offsetY, to: event.offsetY } });
  }

  #move(event) {
    if (this.state.drag) this.setState({ drag: { ...this.state.drag, to: event.offsetY } });
  }

  #end(found) {
    const { drag } = this.state;
    if (!drag) return;
    this.setState({ drag: null });
    const [upper, lower] = [drag.from, drag.to].sort((a, b) => a - b);
    const terms = lower - upper < LEAST_DRAG ? [] : found.terms(upper, lower);
    this.props.onFilter((text) => withTerms(text, found.name, terms));
  }

  render({ board, rows, fitting, filter }, { width: space, drag }) {
    const axes = this.#axes();
    const width = Math.max(space, 2 * SIDE + LEAST_BETWEEN * (axes.length - 1));
    const x = placesOf(axes, width);
    const drawn = rows.slice(0, MOST_LINES);
    const beyond = axes.filter((one) => one.beyond).map((one) => `${one.beyond} of ${one.name}`);
    return html`<figure class="parallel"><div class="wide" tabindex="0" role="region" aria-label="Parameters and objective" ref=${(e) => (this.place = e)}>
      ${space > 0 && html`<svg width=${width} height=${HEIGHT} viewBox=${`0 0 ${width} ${HEIGHT}`} role="img"
        aria-label=${`Each of ${drawn.length} trials as a line across ${board.names.join(", ")} and ${board.metric}`}>
        <${Lines} axes=${axes} drawn=${drawn} fitting=${fitting} best=${board.best} width=${width} />
        ${axes.map((one, i) => html`<g key=${one.name} transform=${`translate(${x(i).toFixed(1)},0)`}>
          <text class="name" y="14">${one.name}${one.is_log ? " (log)" : ""}</text>
          <line class="axis" y1=${TOP} y2=${BOTTOM} />
          ${one.marks.map(([place, told]) => html`<text key=${told} x="-6" y=${place + 4} class="mark">${told}</text>`)}
          ${range(one, filter, drag)}
          <rect class="handle" x=${-HANDLE / 2} width=${HANDLE} y="0" height=${HEIGHT} onPointerDown=${(event) => this.#begin(event, one)}
            onPointerMove=${(event) => this.#move(event)} onPointerUp=${() => this.#end(one)} onPointerCancel=${() => this.setState({ drag: null })} />
        </g>`)}
      </svg>`}</div>
      <figcaption class="muted">Draw along an axis to choose a range; a click there takes it away.${rows.length > MOST_LINES ? ` The best ${MOST_LINES} of ${number(rows.length)} are drawn.` : ""}${beyond.length ? ` Beyond the ends of an axis (≤, ≥), and drawn at them: ${beyond.join(", ")}.` : ""}</figcaption></figure>`;
  }
}

/** Where each axis stands. */
const placesOf = (axes, width) => (index) => SIDE + (index * (width - 2 * SIDE)) / Math.max(1, axes.length - 1);

/** A line for each trial, the best last; not drawn anew while a range is drawn. */
class Lines extends Component {
  shouldComponentUpdate(next) {
    return ["axes", "fitting", "width"].some((name) => next[name] !== this.props[name]);
  }

  /** Where each line runs: worked out anew when the axes or the room have changed, and not for a range. */
  #ways({ axes, drawn, width }) {
    if (this.axes !== axes || this.width !== width) {
      [this.axes, this.width] = [axes, width];
      const x = placesOf(axes, width);
      const way = (row) => axes.map((one, i) => `${i ? "L" : "M"}${x(i).toFixed(1)},${one.place(row.cells[one.name]).toFixed(1)}`).join("");
      this.ways = drawn.map(way);
    }
    return this.ways;
  }

  render({ axes, drawn, fitting, best, width }) {
    const ways = this.#ways({ axes, drawn, width });
    const chosen = new Set(fitting);
    return html`<g>${drawn.map((row, place) => html`<path key=${row.number} d=${ways[place]} onClick=${() => { location.hash = `#/trials/${row.number}`; }}
      class=${`trial ${chosen.has(row) ? quarter(place, drawn.length) : "out"}${row === best ? " best" : ""}`}><title>Trial ${row.number}: ${number(row.value)}</title></path>`).reverse()}</g>`;
  }
}

/** The better a trial, the stronger its line. */
const quarter = (place, all) => `q${Math.min(3, Math.floor((4 * place) / all))}`;

/** The chosen part of an axis: what is drawn now, or what the filter says. */
function range(one, filter, drag) {
  const [upper, lower] = drag?.name === one.name ? [drag.from, drag.to].sort((a, b) => a - b) : one.chosen(filter);
  if (upper == null) return null;
  const [y1, y2] = [Math.max(TOP - 6, upper), Math.min(BOTTOM + 6, lower)];
  return html`<rect class="range" x="-7" width="14" y=${y1} height=${Math.max(3, y2 - y1)} />`;
}

/**
 * The values that the objective's axis is made for: what was stopped is at another step, and not like them.
 * @param {import("./board.js").Row[]} rows
 */
function finishedOf(rows) {
  const finished = rows.filter((row) => row.rank != null);
  return (finished.length > 2 ? finished : rows).map((row) => row.value);
}

/** How values of one name are placed on its axis; an objective's by those of what has finished. */
function axis(name, values, is_log, judged) {
  const known = values.filter((value) => value != null);
  const are_numbers = known.length > 0 && known.every((value) => typeof value === "number");
  return { name, ...(are_numbers ? ofNumbers(name, known, is_log, judged) : ofWords(name, values)) };
}

function ofNumbers(name, values, asked_log, judged) {
  const [low, high] = judged ? usual(judged) : [Math.min(...values), Math.max(...values)];
  const is_log = low > 0 && (asked_log || (!judged && high / low > WIDE));
  const [scale, back] = is_log ? [Math.log10, (value) => 10 ** value] : [(value) => value, (value) => value];
  const span = scale(high) - scale(low) || 1;
  const share = (value) => Math.min(1, Math.max(0, (scale(value) - scale(low)) / span));
  const place = (value) => BOTTOM - (value == null ? 0 : share(value)) * (BOTTOM - TOP);
  const [under, over] = [values.filter((value) => value < low).length, values.filter((value) => value > high).length];
  const ends = [[BOTTOM, `${under ? "≤ " : ""}${short(low)}`], [TOP, `${over ? "≥ " : ""}${short(high)}`]];
  const between = ticks(low, high, is_log).filter((value) => Number.isInteger(value) || !values.every(Number.isInteger)).map((value) => [place(value), short(value)]).filter(([y]) => y > TOP + 16 && y < BOTTOM - 16);
  const valueAt = (y) => Number(back(scale(low) + ((BOTTOM - y) / (BOTTOM - TOP)) * span).toPrecision(3));
  return {
    place, is_log, beyond: under + over,
    marks: low === high ? [[(TOP + BOTTOM) / 2, short(low)]] : [...ends, ...between],
    // A range that reaches an end has what lies beyond it, too.
    terms: (upper, lower) => [lower < BOTTOM && `>=${valueAt(lower)}`, upper > TOP && `<=${valueAt(upper)}`].filter(Boolean),
    chosen({ terms }) {
      const mine = terms.filter((term) => term.name === name && term.operator !== ":");
      if (!mine.length) return [];
      const told = (sign) => mine.filter((term) => term.operator.startsWith(sign) || term.operator === "=").map((term) => Number(term.value));
      return [Math.max(TOP - 6, ...told("<").map(place)), Math.min(BOTTOM + 6, ...told(">").map(place))];
    },
  };
}

function ofWords(name, values) {
  const words = [...new Set(values.map(String))].sort();
  const step = (BOTTOM - TOP) / Math.max(1, words.length - 1);
  const place = (value) => BOTTOM - words.indexOf(String(value)) * step;
  const every = Math.ceil(words.length / MOST_WORDS);
  return {
    place, is_log: false, beyond: 0,
    marks: words.map((word) => [place(word), word]).filter((_, i) => i % every === 0),
    terms(upper, lower) {
      const found = words.filter((word) => place(word) >= upper && place(word) <= lower);
      return found.length ? [`=${quoted(found.join("|"))}`] : [];
    },
    chosen(filter) {
      const mine = { ...filter, terms: filter.terms.filter((term) => term.name === name) };
      const places = words.filter((word) => fits(mine, { [name]: word })).map(place);
      return mine.terms.length && places.length ? [Math.min(...places) - 8, Math.max(...places) + 8] : [];
    },
  };
}

const short = (value) => Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-3) ? value.toExponential(1).replace(".0e", "e").replace("e+", "e") : number(Number(value.toPrecision(3)));

/** The values between the ends of an axis that have a mark. */
function ticks(low, high, is_log) {
  if (is_log) {
    const first = Math.ceil(Math.log10(low));
    return Array.from({ length: Math.max(0, Math.floor(Math.log10(high)) - first + 1) }, (_, i) => 10 ** (first + i));
  }
  const rough = (high - low) / 4;
  if (!(rough > 0)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((one) => one >= rough);
  return Array.from({ length: 6 }, (_, i) => Number(((Math.floor(low / step) + 1 + i) * step).toPrecision(12))).filter((value) => value < high);
}
