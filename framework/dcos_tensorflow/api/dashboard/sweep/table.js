// The trials as a table, sorted by any of its columns, with the curve of each; on a phone each is a card.
import { series } from "../charts/curves.js";
import { Component, html } from "../html.js";
import { duration, number } from "../words.js";

/** So many are listed at once; more when that is asked for. */
const MOST_ROWS = 100;
const WIDTH = 90;
const HEIGHT = 22;

export class TrialTable extends Component {
  state = { most: MOST_ROWS };

  /** Drawn anew when something of it has changed, and not each second. */
  shouldComponentUpdate(next, state) {
    const { props } = this;
    return ["rows", "curves", "by", "down"].some((name) => next[name] !== props[name]) || state.most !== this.state.most;
  }

  render({ board, rows, curves, by, down, onSort }, { most }) {
    const longest = Math.max(1, ...board.rows.map((row) => curveOf(curves, row, board.metric)[0].at(-1) ?? 0));
    const titles = [["trial", "Trial"], [board.metric, board.metric], ["", "Curve"], ["state", "State"],
      ...board.names.map((name) => [name, name]), ["time", "Time"]];
    return html`<div class="wide" tabindex="0" role="region" aria-label="Trials"><table class="cards">
      <thead><tr>${titles.map(([name, title]) => html`<th scope="col" key=${name}
          aria-sort=${name && by === name ? (down ? "descending" : "ascending") : null}>
        ${name ? html`<button type="button" class="sort" onClick=${() => onSort(name)}>${title}${by === name ? (down ? " ▾" : " ▴") : ""}</button>` : title}</th>`)}</tr></thead>
      <tbody>${rows.slice(0, most).map((row) => html`<${TrialRow} key=${row.number} row=${row} board=${board}
        points=${curves[`trial-${row.number}`]} longest=${longest} curves=${curves} />`)}</tbody></table></div>
    ${rows.length > most && html`<p class="muted">The first ${number(most)} of ${number(rows.length)} are listed.
      <button type="button" onClick=${() => this.setState({ most: most + MOST_ROWS })}>List more</button></p>`}`;
  }
}

class TrialRow extends Component {
  shouldComponentUpdate(next) {
    return ["row", "points", "longest"].some((name) => next[name] !== this.props[name]);
  }

  render({ row, board, curves, longest }) {
    const { unit } = row;
    return html`<tr>
      <th scope="row" data-title="Trial"><a href=${`#/trials/${row.number}`}>${row.number}</a>${row.rank === 1 ? html` <span class="badge succeeded">best</span>` : ""}</th>
      <td data-title=${board.metric}>${number(row.cells[board.metric])}${row.step != null && html` <span class="muted">at ${number(row.step)}</span>`}</td>
      <td class="curve">${spark(curveOf(curves, row, board.metric), board.range, longest)}</td>
      <td data-title="State"><span class=${`badge ${row.state.replace(" ", "-")}`} title=${unit.why || null}>${row.state}</span></td>
      ${board.names.map((name) => html`<td key=${name} data-title=${name}>${number(unit.parameters?.[name])}</td>`)}
      <td data-title="Time">${duration(row.seconds)}</td></tr>`;
  }
}

/**
 * The objective of a trial over its steps: what was followed, or what was measured where that is more.
 * @returns {[number[], number[]]}
 */
function curveOf(curves, { number: of, unit }, metric) {
  const followed = series(curves[`trial-${of}`] ?? NONE, metric, "step");
  const measured = unit.points ?? [];
  if (followed[0].length >= measured.length) return followed;
  const numbers = measured.filter(([, value]) => typeof value === "number");
  return [numbers.map(([step]) => step), numbers.map(([, value]) => value)];
}

const NONE = [];

/** All rows are drawn to one scale, so that one is told from the other. */
function spark([steps, values], [low, high], longest) {
  if (steps.length < 2) return null;
  const span = high - low || 1;
  const points = steps.map((step, i) => {
    const share = Math.min(1, Math.max(0, (values[i] - low) / span));
    return `${((step / longest) * WIDTH).toFixed(1)},${(1 + (1 - share) * (HEIGHT - 2)).toFixed(1)}`;
  });
  return html`<svg class="spark" width=${WIDTH} height=${HEIGHT} aria-hidden="true"><polyline points=${points.join(" ")} /></svg>`;
}
