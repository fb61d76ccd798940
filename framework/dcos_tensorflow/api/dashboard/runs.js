// The service's runs that are kept, and the curves of one of them over those of this one.
import { escaped } from "./address.js";
import { withKept } from "./curves.js";
import { html } from "./html.js";
import { charts } from "./charts.js";
import { moment } from "./time.js";
import { duration, number } from "./words.js";

const PATH = "v1/runs";
/** How often they are asked for, in seconds. */
const PERIOD = 60;

/** @param {any} known @param {any} act */
export function runs(known, act) {
  const { job } = known.watched;
  act.fetch(PATH, `${job.run} ${job.phase} ${Math.floor(known.now / PERIOD)}`);
  const { body, problem } = known.answers[PATH] ?? {};
  if (problem) return html`<p class="bad">${problem}</p>`;
  if (!body) return html`<p role="status">Asking …</p>`;
  if (!body.length) return html`<p class="muted">There is no former run.</p>`;
  // The newest is this one; of a service of before the same number may be kept.
  const is_this = (run) => run === body[0] && run.run === job.run;
  const chosen = body.find((run) => run.id === known.argument && !is_this(run));
  return html`${body.length > 1 && html`<p>Choose a run to compare its curves with those of this run.</p>`}
    <div class="wide" tabindex="0" role="region" aria-label="Runs"><table>
      <thead><tr>${["Run", "Result", "Took", "Best", "Steps", "Begun", "Options"].map((title) => html`<th scope="col" key=${title}>${title}</th>`)}</tr></thead>
      <tbody>${body.map((run) => row(run, is_this(run) && job, run === chosen, known.now))}</tbody></table></div>
    ${chosen && compared(known, act, chosen)}`;
}

/** @param {any} run @param {any} job the one that goes on; of all other runs false @param {boolean} is_chosen @param {number} now */
function row(run, job, is_chosen, now) {
  // What is kept of this one is a moment old.
  const result = job ? job.verdict?.outcome ?? job.phase : run.outcome ?? (run.uninstalled ? "uninstalled" : "not served");
  const { started_at, finished_at } = job ? { ...job, finished_at: job.finished_at ?? now } : run;
  return html`<tr key=${run.id}>
    <th scope="row">${job ? `${run.run} (this one)` : html`<a href=${`#/runs/${run.id}`} aria-current=${is_chosen ? "true" : null}>${run.run}</a>`}</th>
    <td><span class=${`badge ${result}`}>${result}</span></td><td>${duration(started_at && finished_at && finished_at - started_at)}</td>
    <td>${run.best ? `${run.best.metric} ${number(run.best.value)}` : "–"}</td><td>${number(run.step)}</td>
    <td>${moment(run.started_at, now)}</td><td><code>${run.configuration.slice(0, 8)}</code></td></tr>`;
}

/** @param {any} known @param {any} act @param {any} run */
function compared(known, act, run) {
  const path = `v1/curves?run=${escaped(run.id)}`;
  act.fetch(path, run.id);
  const { body, problem } = known.answers[path] ?? {};
  return html`${problem ? html`<p class="bad">${problem}</p>` : !body ? html`<p role="status">Asking …</p>`
    : charts(known, act, laidOver(known, run, body), `Run ${run.run} over this one`)}
    <section><h3>Run ${run.run}</h3><p>${run.summary}</p>
      <details><summary>Its options</summary><pre tabindex="0">${JSON.stringify(run.options, null, 2)}</pre></details></section>`;
}

/** What was worked out of an answer, for the curves and the begin of then: charts draw anew what is another object. */
const worked = new WeakMap();

/** Returns this run's curves and the other's, as if it had begun when this one did. */
function laidOver({ curves, watched }, run, body) {
  const { started_at } = watched.job;
  const later = started_at && run.started_at ? started_at - run.started_at : 0;
  let known = worked.get(body);
  if (known?.later !== later) {
    const moved = Object.entries(withKept({}, body)).map(([task, points]) =>
      [`${task} of run ${run.run}`, points.map((point) => ({ ...point, at: point.at + later }))]);
    known = { later, others: Object.fromEntries(moved) };
  }
  if (known.curves !== curves) known = { ...known, curves, both: { ...curves, ...known.others } };
  worked.set(body, known);
  return known.both;
}
