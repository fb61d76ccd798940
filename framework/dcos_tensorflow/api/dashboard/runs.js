// The service's runs that are kept, and the curves of one of them over those of this one.
import { withKept } from "./curves.js";
import { html } from "./html.js";
import { charts } from "./overview.js";
import { clock, duration, number } from "./words.js";

const PATH = "v1/runs";
/** How often they are asked for while a run goes on, in seconds. */
const PERIOD = 60;

/** @param {any} known @param {any} act */
export function runs(known, act) {
  const { job } = known.watched;
  act.fetch(PATH, `${job.run} ${job.phase} ${job.finished_at ? "" : Math.floor(known.now / PERIOD)}`);
  const { body, problem } = known.answers[PATH] ?? {};
  if (problem) return html`<p class="bad">${problem}</p>`;
  if (!body) return html`<p role="status">Asking …</p>`;
  const chosen = body.find((run) => run.id === known.argument);
  return html`${!body.length && html`<p class="muted">No run is kept yet.</p>`}
    ${body.length > 0 && html`<div class="wide" tabindex="0" role="region" aria-label="Runs"><table>
      <thead><tr>${["Run", "Result", "Took", "Best", "Steps", "Begun", "Options"].map((title) => html`<th scope="col" key=${title}>${title}</th>`)}</tr></thead>
      <tbody>${body.map((run) => row(run, run.run === job.run, run === chosen))}</tbody></table></div>`}
    ${chosen && compared(known, act, chosen)}`;
}

function row(run, is_this, is_chosen) {
  const took = run.started_at && run.finished_at ? run.finished_at - run.started_at : null;
  const result = run.outcome ?? (is_this ? run.phase : "not served");
  return html`<tr key=${run.id}>
    <th scope="row">${is_this ? `${run.run} (this one)` : html`<a href=${`#/runs/${run.id}`} aria-current=${is_chosen ? "true" : null}>${run.run}</a>`}</th>
    <td><span class=${`badge ${result}`}>${result}</span></td><td>${duration(took)}</td>
    <td>${run.best ? `${run.best.metric} ${number(run.best.value)}` : "–"}</td><td>${number(run.step)}</td>
    <td>${clock(run.started_at)}</td><td><code>${run.configuration.slice(0, 8)}</code></td></tr>`;
}

function compared(known, act, run) {
  const path = `v1/curves?run=${encodeURIComponent(run.id)}`;
  act.fetch(path, run.id);
  const { body, problem } = known.answers[path] ?? {};
  return html`${problem ? html`<p class="bad">${problem}</p>` : !body ? html`<p role="status">Asking …</p>`
    : charts(known, act, laidOver(known, run, body), `Curves of run ${run.run} over those of this one`)}
    <section><h3>Run ${run.run}</h3><p>${run.summary}</p>
      <details><summary>Its options</summary><pre tabindex="0">${JSON.stringify(run.options, null, 2)}</pre></details></section>`;
}

/** The other run's points, until there is another answer: what is drawn of them is kept by them. */
const worked = new WeakMap();

/** Returns this run's curves and the other's, which begins when this one did. */
function laidOver(known, run, body) {
  if (!worked.has(body)) {
    const { started_at } = known.watched.job;
    const later = started_at && run.started_at ? started_at - run.started_at : 0;
    worked.set(body, Object.fromEntries(Object.entries(withKept({}, body)).map(([task, points]) =>
      [`${task} of run ${run.run}`, points.map((point) => ({ ...point, at: point.at + later }))])));
  }
  return { ...known.curves, ...worked.get(body) };
}
