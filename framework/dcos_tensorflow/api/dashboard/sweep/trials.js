// The trials of a sweep: the best one, all of them across their parameters, and as a table.
import { Chart } from "../charts/chart.js";
import { html } from "../html.js";
import { definitions } from "../job/facts.js";
import { counted, number } from "../words.js";
import { asked } from "../job/work.js";
import { bestSoFar, boardOf, chosenOf, countsOf } from "./board.js";
import { Parallel } from "./parallel.js";
import { TrialTable } from "./table.js";
import { trial } from "./trial.js";

/** @param {any} known @param {any} act */
export function trials(known, act) {
  const { body, problem } = asked(known, act);
  if (problem) return html`<p class="bad">${problem}</p>`;
  if (!body) return html`<p role="status">Asking …</p>`;
  const board = boardOf(body);
  return known.argument ? trial(known, act, board) : all(known, act, board);
}

function all(known, act, board) {
  const choice = known.board;
  const choose = (changes) => act.know({ board: { ...known.board, ...changes } });
  const { rows, filter } = chosenOf(board, choice);
  const valued = board.rows.filter((one) => one.value != null);
  const { failure } = known.watched.job.units;
  return html`
    <div class="halves">${best(board)}${progressChart(board)}</div>
    <p>${told(board)}${failure && html` <span class="bad">Newest failure: <a href=${`#/trials/${failure.number}`}>trial ${failure.number}</a>: ${failure.why}</span>`}</p>
    ${valued.length > 1 && html`<section><h3>Parameters and results</h3>
      <${Parallel} board=${board} rows=${valued} fitting=${rows} filter=${filter}
        onFilter=${(change) => choose({ filter: change(known.board.filter) })} /></section>`}
    <section><h3>Trials</h3>
      <form class="choice" onSubmit=${(event) => event.preventDefault()}>
        <label>Filter <input type="search" class="long" value=${choice.filter} placeholder="lr<0.01 state:finished" aria-describedby="filtered"
          onInput=${(event) => choose({ filter: event.target.value })} /></label>
        <span id="filtered" role="status" class=${filter.problem ? "bad" : "muted"}>${filter.problem || `${number(rows.length)} of ${counted(board.rows.length, "trial")}`}</span>
        ${(choice.filter || choice.by) && html`<button type="button" onClick=${() => choose({ filter: "", by: "", down: false })}>Show all, the best first</button>`}
      </form>
      <${TrialTable} board=${board} rows=${rows} curves=${known.curves} by=${choice.by} down=${choice.down}
        onSort=${(by) => choose(by === choice.by ? { down: !choice.down } : { by, down: false })} /></section>`;
}

/** The best trial: its value, and what it was given. @param {import("./board.js").Board} board */
export function best(board) {
  if (!board.best) return html`<p class="lead">No trial has finished with a value of ${board.metric} yet.</p>`;
  const { number: of, value, unit } = board.best;
  return html`<section aria-label="The best trial" class="best">
    <dl class="figures"><div><dd>${number(value)}</dd><dt>best ${board.metric} (${board.goal}), <a href=${`#/trials/${of}`}>trial ${of}</a></dt></div></dl>
    ${definitions(board.names.map((name) => [name, number(unit.parameters?.[name])]))}</section>`;
}

/** How many trials there are, by state. @param {import("./board.js").Board} board */
export function told(board) {
  const counts = countsOf(board.rows).map(([state, count]) => `${number(count)} ${state}`);
  return `${counted(board.total, "trial")}: ${counts.join(", ") || "none yet"}.`;
}

/** A sweep's curve has no incidents; one list for all drawings, so that none is made anew. */
const NONE = [];
/** @type {WeakMap<any, any>} */
const drawn = new WeakMap();

/** The best value over the trials. @param {import("./board.js").Board} board */
export function progressChart(board) {
  if (!drawn.has(board)) drawn.set(board, { "best so far": bestSoFar(board) });
  const curves = drawn.get(board);
  return curves["best so far"].length > 1 && html`<section><h3>Best value so far, by finished trials</h3>
    <${Chart} metric=${board.metric} by="step" counted="trial" curves=${curves} tasks=${["best so far"]} incidents=${NONE} /></section>`;
}
