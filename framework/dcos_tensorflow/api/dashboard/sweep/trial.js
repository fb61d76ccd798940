// One trial: its value and its place, its parameters, its curves, its attempts, and where its output is.
import { charts } from "../charts/charts.js";
import { definitions } from "../job/facts.js";
import { html } from "../html.js";
import { Logs } from "../tasks/logs.js";
import { moment } from "../time.js";
import { duration, number } from "../words.js";

/** @param {any} known @param {any} act @param {import("./board.js").Board} board */
export function trial(known, act, board) {
  const row = board.rows.find((one) => String(one.number) === known.argument);
  if (!row) return html`<p class="bad">There is no trial ${known.argument}.</p><p><a href="#/trials">All trials</a></p>`;
  const { unit } = row;
  const name = `trial-${row.number}`;
  return html`<p class="beside"><a href="#/trials">All trials</a> ${near(board, row)}</p>
    <h3>Trial ${row.number} <span class=${`badge ${row.state.replace(" ", "-")}`}>${row.state}</span></h3>
    <dl class="figures">
      <div><dd>${number(row.cells[board.metric])}</dd><dt>${board.metric}${row.step != null ? ` at step ${number(row.step)}` : ""}</dt></div>
      ${row.rank != null && html`<div><dd>${row.rank}</dd><dt>of ${number(board.rows.filter((one) => one.rank != null).length)} finished</dt></div>`}
    </dl>
    ${unit.why && html`<p class=${row.state === "failed" ? "bad" : ""}>${unit.why}</p>`}
    ${definitions(board.names.map((one) => [one, number(unit.parameters?.[one])]))}
    ${known.curves[name] ? charts(known, act, only(known.curves, name), "Curves") : html`<p class="muted">No curve of this trial is kept.</p>`}
    ${definitions([
      ["Attempts that are over", number(unit.tries)],
      ["Begun", moment(unit.begun_at, known.now)],
      unit.ended_at && ["Ended", moment(unit.ended_at, known.now)],
      row.seconds != null && ["Took", duration(row.seconds)],
    ].filter(Boolean))}
    ${unit.failures?.length > 0 && html`<section><h3>Attempts that failed</h3><ol class="incidents" reversed>${[...unit.failures].reverse().map((one) => html`<li key=${one.at}>
      <span class="muted">${moment(one.at, known.now)}${one.seconds ? `, after ${duration(one.seconds)}` : ""}</span><br />${one.why} <span class="muted">(${one.kind})</span></li>`)}</ol></section>`}
    ${unit.task && html`<section><h3>Output <span class="muted">of ${unit.task}</span></h3>
      <${Logs} key=${`${unit.task} ${row.number} ${unit.tries}`} known=${known} act=${act} only=${{ task: unit.task, file: `unit-${row.number}.log` }} />
      <p class="muted">It is kept of the newest trials of a task, as long as its container is there.</p></section>`}`;
}

/** The trials before and after it on the board. */
function near({ rows }, row) {
  const at = rows.indexOf(row);
  return [["Better", rows[at - 1]], ["Worse", rows[at + 1]]].filter(([, one]) => one).map(([title, one]) =>
    html`<a key=${title} href=${`#/trials/${one.number}`}>${title}: trial ${one.number}</a> `);
}

/** @type {WeakMap<any, any>} */
const alone = new WeakMap();

/** The curves of one trial; the same object while its points are the same, so that no chart draws anew. */
function only(curves, name) {
  const points = curves[name];
  if (!alone.has(points)) alone.set(points, { [name]: points });
  return alone.get(points);
}
