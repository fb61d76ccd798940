// Runs side by side: their curves over each other, their numbers in columns, the options in which they differ.
import { escaped } from "../address.js";
import { charts } from "../charts/charts.js";
import { withKept } from "../charts/curves.js";
import { differing } from "../job/differences.js";
import { html } from "../html.js";
import { duration, number } from "../words.js";
import { Notes } from "./notes.js";

/** @typedef {{run: any, is_this: boolean, cells: Record<string, any>, changes: [string, any[]][]}} Row */

/** @param {any} known @param {any} act @param {Row[]} rows the first is the one that the others are laid over */
export function compared(known, act, rows) {
  const problems = [];
  const all = rows.map((row) => {
    if (row.is_this) return known.curves;
    const path = `v1/curves?run=${escaped(row.run.id)}`;
    act.fetch(path, row.run.id);
    const { body, problem } = known.answers[path] ?? {};
    if (problem) problems.push(`Run ${row.run.run}: ${problem}`);
    return body ?? null;
  });
  const title = rows.length > 1 ? `Runs ${rows.map((row) => row.run.run).join(", ")}` : `Run ${rows[0].run.run}`;
  return html`
    ${problems.map((problem) => html`<p class="bad" key=${problem}>${problem}</p>`)}
    ${all.includes(null) && !problems.length ? html`<p role="status">Asking …</p>` : charts(known, act, laidOver(rows, all), title)}
    ${beside(rows)}
    ${rows.map((row) => html`<section key=${row.run.id}><h3>Run ${row.run.run}</h3><p>${row.run.summary}</p>
      <${Notes} key=${row.run.id} run=${row.run} act=${act} />
      <details><summary>All of its options</summary><pre tabindex="0">${JSON.stringify(row.run.options, null, 2)}</pre></details></section>`)}`;
}

/** Numbers in columns, then what of the options is not the same. @param {Row[]} rows */
function beside(rows) {
  const metrics = [...new Set(rows.flatMap((row) => Object.keys(row.run.metrics ?? {})))];
  const lines = [
    ["result", rows.map((row) => row.cells.result)],
    ["took", rows.map((row) => duration(row.cells.seconds))],
    ["steps", rows.map((row) => number(row.run.step))],
    ...metrics.map((name) => [name, rows.map((row) => told(row.run.metrics?.[name]))]),
  ];
  const options = rows.length > 1 ? differing(rows.map((row) => row.run.options)) : [];
  const line = ([name, values]) => html`<tr key=${name}><th scope="row">${name}</th>${values.map((value, i) => html`<td key=${i} data-title=${`run ${rows[i].run.run}`}>${value ?? "–"}</td>`)}</tr>`;
  return html`<div class="wide" tabindex="0" role="region" aria-label="Side by side"><table>
    <thead><tr><td></td>${rows.map((row) => html`<th scope="col" key=${row.run.id}>Run ${row.run.run}</th>`)}</tr></thead>
    <tbody>${lines.map(line)}${options.map(line)}</tbody></table></div>
    ${rows.length > 1 && !options.length && html`<p class="muted">Their options are the same.</p>`}`;
}

/** The newest value, and between which all were. */
function told(metric) {
  if (!metric) return null;
  return metric.least == null ? number(metric.newest) : `${number(metric.newest)} (${number(metric.least)} to ${number(metric.most)})`;
}

/** What was worked out of one curve, for a name and a begin. @type {WeakMap<any, {key: string, found: any}>} */
const moved = new WeakMap();
/** What was laid over each other last: charts draw anew what is another object. */
let last = { parts: [], found: {} };

/** Returns the curves of all runs, as if they had begun when the first one did. */
function laidOver(rows, all) {
  const begin = rows[0].run.started_at;
  const parts = all.map((curves, i) => (curves ? partOf(rows[i], curves, begin) : null)).filter(Boolean);
  if (parts.length !== last.parts.length || parts.some((part, i) => part !== last.parts[i])) {
    last = { parts, found: Object.assign({}, ...parts) };
  }
  return last.found;
}

function partOf({ run, is_this }, curves, begin) {
  if (is_this) return curves;
  const later = begin && run.started_at ? begin - run.started_at : 0;
  const key = `${run.id} ${later}`;
  if (moved.get(curves)?.key !== key) {
    const found = Object.entries(withKept({}, curves)).map(([task, points]) =>
      [`${task} of run ${run.run}`, points.map((point) => ({ ...point, at: point.at + later }))]);
    moved.set(curves, { key, found: Object.fromEntries(found) });
  }
  return moved.get(curves).found;
}
