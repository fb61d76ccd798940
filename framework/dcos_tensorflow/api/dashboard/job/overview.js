// The job at a glance: where it stands and why, how far the training is, its curves, its incidents.
import { escaped } from "../address.js";
import { charts } from "../charts/charts.js";
import { speedNow } from "../charts/curves.js";
import { definitions } from "./facts.js";
import { html } from "../html.js";
import { boardOf } from "../sweep/board.js";
import { best, progressChart } from "../sweep/trials.js";
import { moment } from "../time.js";
import { clock, counted, duration, number } from "../words.js";
import { asked } from "./work.js";

/** Metrics that a training is judged by; of each line the first that it tells. */
const OBJECTIVES = [["val_loss", "loss"], ["val_accuracy", "accuracy"]];

/** @param {any} known @param {any} act */
export function overview(known, act) {
  const { job, why } = known.watched;
  return html`
    ${job.verdict?.outcome === "failed" ? failure(job) : html`<p class="lead">${job.verdict?.summary ?? why.why ?? job.why}</p>`}
    ${why.not_updated && html`<p class="bad">${why.not_updated}</p>`}
    ${progressed(known)}
    ${figures(known)}
    ${incidents(job.incidents.slice(-MOST_INCIDENTS, job.verdict?.outcome === "failed" ? -1 : undefined), known.now)}
    ${job.units?.kind === "trial" ? searched(known, act) : charts(known, act, known.curves, "Curves")}
    ${job.result && html`<section><h3>Result</h3>${definitions(Object.entries(job.result).map(([name, value]) =>
      [name, typeof value === "object" ? JSON.stringify(value) : number(value)]))}</section>`}
    ${job.incidents.length > MOST_INCIDENTS && html`<details><summary>All ${number(job.incidents.length)} incidents</summary>${incidents(job.incidents, known.now)}</details>`}
    ${details(known)}`;
}

/** What a sweep has found so far. @param {any} known @param {any} act */
function searched(known, act) {
  const { body } = asked(known, act);
  return body?.objective && html`<div class="halves">${best(boardOf(body))}${progressChart(boardOf(body))}</div><p><a href="#/trials">All trials</a></p>`;
}

/** So many incidents stand above the curves. */
const MOST_INCIDENTS = 2;

/** Why the job failed: the error, what can be done, and what the task that caused it printed last. @param {any} job */
function failure(job) {
  const incident = job.incidents.at(-1);
  const task = incident && job.tasks[incident.task];
  const lines = task?.task_id === incident?.task_id ? task?.evidence?.last_lines ?? [] : [];
  const hint = task?.report?.hint;
  // The remedy stands by itself: in the sentence it is in the way of what happened.
  const said = hint ? job.verdict.summary.replace(`; ${hint}`, "") : job.verdict.summary;
  return html`<section class="failure"><p class="lead bad">${said}</p>
    ${hint && html`<p><strong>What helps:</strong> ${hint}</p>`}
    ${lines.length > 0 && html`<h3>The last lines of ${incident.task}</h3><pre class="bad" tabindex="0" ref=${toItsEnd}>${lines.join("\n")}</pre>
      <p><a href=${`#/logs/${escaped(incident.task)}`}>All of its output</a></p>`}
  </section>`;
}

/** Shows the end of a text first: the error is there. @param {HTMLElement | null} element */
function toItsEnd(element) {
  if (element) element.scrollTop = element.scrollHeight;
}

/** How much is done, as a bar, with the time that is left. @param {any} known */
function progressed(known) {
  const { job } = known.watched;
  const { done, all, noun } = amount(known);
  const elapsed = job.started_at ? (job.finished_at ?? known.now) - job.started_at : null;
  const ends = job.finished_at ? html`ended ${moment(job.finished_at, known.now)}` : left(known, elapsed, done, all);
  return html`<p class="progressed">
    ${all ? html`<progress max=${all} value=${Math.min(done, all)} aria-label=${noun}></progress> <span>${number(done)} of ${counted(all, noun)}</span>` : null}
    ${elapsed != null && html`<span>${duration(elapsed)}</span>`} ${ends && html`<span class="muted">${ends}</span>`}</p>`;
}

/** What the job is measured by: its units of work, or the epochs of the task that decides. */
function amount(known) {
  const { units } = known.watched.job;
  if (units?.total) {
    const { succeeded, failed, pruned } = units.counts;
    return { done: succeeded + failed + pruned, all: units.total, noun: units.kind };
  }
  const { epoch, epochs } = told(known);
  return { done: epoch ?? 0, all: epochs, noun: "epoch" };
}

/** When it ends, by what is done; empty where that is not known. */
function left(known, elapsed, done, all) {
  if (!all || !done || !elapsed || done > all) return "";
  const seconds = (elapsed / done) * (all - done);
  return `about ${duration(seconds)} left, until ${clock(known.now + seconds)}`;
}

/** What the task that decides about the job has told last. */
function told(known) {
  return known.watched.job.tasks[decider(known)]?.report?.progress ?? {};
}

function decider(known) {
  const { job } = known.watched;
  return job.deciding_tasks.find((name) => job.tasks[name]?.report?.progress) ?? job.deciding_tasks[0];
}

/** The two to four numbers that matter. @param {any} known */
function figures(known) {
  const speed = known.watched.job.finished_at ? null : speedNow(known.curves[decider(known)] ?? []);
  const progress = told(known);
  const metrics = metricsTold(progress);
  const chosen = OBJECTIVES.map((names) => names.find((name) => name in metrics)).filter(Boolean);
  const shown = chosen.length ? chosen : Object.keys(metrics).slice(0, 2);
  const rows = [
    progress.step != null && ["step", number(progress.step)],
    speed != null && ["steps per second", number(speed)],
    ...shown.map((name) => [name, number(metrics[name])]),
  ].filter(Boolean);
  const rest = Object.keys(metrics).filter((name) => !shown.includes(name));
  return html`${rows.length > 0 && html`<dl class="figures">${rows.map(([name, value]) => html`<div key=${name}><dd>${value}</dd><dt>${name}</dt></div>`)}</dl>`}
    ${rest.length > 0 && definitions(rest.map((name) => [name, number(metrics[name])]))}`;
}

/** @param {any} progress */
function metricsTold({ loss, accuracy, metrics }) {
  return Object.fromEntries(Object.entries({ loss, accuracy, ...metrics }).filter(([, value]) => value != null));
}

/** What is looked for seldom: paths, counts. @param {any} known */
function details(known) {
  const { job } = known.watched;
  const running = Object.values(job.tasks).filter((task) => task.state === "running").length;
  return html`<details><summary>Details</summary>${definitions([
    ["Phase", job.phase],
    ["Tasks", `${running} of ${Object.keys(job.tasks).length} running`],
    ["Restarts", number(job.restarts)],
    ["Run", job.run],
    ["Started", moment(job.started_at, known.now)],
    job.output && ["Output", job.output],
  ].filter(Boolean))}</details>`;
}

/** @param {any[]} found @param {number} now */
export function incidents(found, now) {
  if (!found.length) return null;
  return html`<section><h3>Incidents</h3><ol class="incidents" reversed>
    ${[...found].reverse().map((one) => html`<li key=${one.task_id + one.at}>
      <strong>${one.task}</strong> <span class="muted">${moment(one.at, now)}${one.step != null ? `, step ${number(one.step)}` : ""}</span>
      <br />${one.summary} <span class="muted">(${one.kind}${one.charged ? ", counts as an error of the job" : ""})</span>
      ${one.collateral.length > 0 && html`<br />Died of it: ${one.collateral.join(", ")}${one.more_collateral ? ` and ${counted(one.more_collateral, "other")}` : ""}`}
    </li>`)}</ol></section>`;
}
