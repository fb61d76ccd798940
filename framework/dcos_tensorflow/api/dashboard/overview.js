// The job at a glance: where it stands and why, how far the training is, its curves, its incidents.
import { Chart } from "./chart.js";
import { has, metricsOf, speedNow } from "./curves.js";
import { html } from "./html.js";
import { clock, counted, duration, number } from "./words.js";

/** @param {any} known @param {any} act */
export function overview(known, act) {
  const { job, why } = known.watched;
  return html`
    <p class="lead">${job.verdict?.summary ?? why.why ?? job.why}</p>
    ${why.not_updated && html`<p class="bad">${why.not_updated}</p>`}
    ${facts(known)}
    ${charts(known, act, known.curves, "Curves")}
    ${incidents(job.incidents)}
    ${job.result && html`<section><h3>Result</h3>${definitions(Object.entries(job.result).map(([name, value]) =>
      [name, typeof value === "object" ? JSON.stringify(value) : number(value)]))}</section>`}`;
}

/** @param {any} known */
function facts(known) {
  const { job } = known.watched;
  const decider = job.deciding_tasks.find((name) => job.tasks[name]?.report?.progress) ?? job.deciding_tasks[0];
  const progress = job.tasks[decider]?.report?.progress ?? {};
  const end = job.finished_at ?? known.now;
  const elapsed = job.started_at ? end - job.started_at : null;
  const speed = job.finished_at ? null : speedNow(known.curves[decider] ?? []);
  const running = Object.values(job.tasks).filter((task) => task.state === "running").length;
  const epochs = progress.epochs ? `${progress.epoch ?? 0} of ${progress.epochs}` : progress.epoch;
  return definitions([
    ["Phase", job.phase],
    ["Elapsed", duration(elapsed)],
    ["Step", number(progress.step)],
    ["Steps per second", number(speed)],
    epochs != null && ["Epoch", epochs],
    ["Estimated end", job.finished_at ? `ended ${clock(job.finished_at)}` : ending(known, elapsed, progress)],
    ...Object.entries({ loss: progress.loss, accuracy: progress.accuracy, ...progress.metrics })
      .filter(([, value]) => value != null).map(([name, value]) => [name, number(value)]),
    ["Tasks", `${running} of ${Object.keys(job.tasks).length} running`],
    ["Restarts", number(job.restarts)],
    ["Run", job.run],
    job.output && ["Output", job.output],
  ].filter(Boolean));
}

/** How long it goes on, by the epochs or the units that are done; unknown without them. */
function ending(known, elapsed, progress) {
  const { units } = known.watched.job;
  const done = units?.total ? units.counts.succeeded + units.counts.failed + units.counts.pruned : progress.epoch;
  const all = units?.total ?? progress.epochs;
  if (!all || !done || !elapsed || done > all) return "not known";
  const left = (elapsed / done) * (all - done);
  return `in about ${duration(left)}, ${clock(known.now + left)}`;
}

/** @param {[string, any][]} rows */
export function definitions(rows) {
  return html`<dl class="facts">${rows.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/**
 * Shows curves, a chart for each metric, with this run's incidents across them.
 * @param {any} known @param {any} act @param {import("./curves.js").Curves} found @param {string} title
 */
export function charts(known, act, found, title) {
  const metrics = metricsOf(found);
  const heading = html`<h3 id="curves">${title}</h3>`;
  if (!metrics.length) {
    return html`<section>${heading}<p class="muted">The training has reported no metric yet.</p></section>`;
  }
  const has_steps = Object.values(found).some((points) => points.some((point) => point.step != null));
  const by = has_steps ? known.by : "time";
  return html`<section aria-labelledby="curves">${heading}
    <fieldset class="choice"><legend>over</legend>
      ${[["step", "steps"], ["time", "time"]].map(([value, told]) => html`<label key=${value}>
        <input type="radio" name="by" value=${value} checked=${by === value} disabled=${!has_steps && value === "step"}
          onChange=${() => act.know({ by: value })} /> ${told}</label>`)}
    </fieldset>
    <div class="charts">${metrics.map((metric) => html`<${Chart} key=${metric} metric=${metric} by=${by} curves=${found}
      tasks=${Object.keys(found).filter((task) => has(found[task], metric))}
      incidents=${known.watched.job.incidents} />`)}</div>
    ${known.watched.job.incidents.length > 0 && html`<p class="muted">Dashed lines are incidents of this run.</p>`}
  </section>`;
}

/** @param {any[]} found */
export function incidents(found) {
  if (!found.length) return null;
  return html`<section><h3>Incidents</h3><ol class="incidents" reversed>
    ${[...found].reverse().map((one) => html`<li key=${one.task_id + one.at}>
      <strong>${one.task}</strong> <span class="muted">${clock(one.at)}${one.step != null ? `, step ${number(one.step)}` : ""}</span>
      <br />${one.summary} <span class="muted">(${one.kind}${one.charged ? ", counts as an error of the job" : ""})</span>
      ${one.collateral.length > 0 && html`<br />Died of it: ${one.collateral.join(", ")}${one.more_collateral ? ` and ${counted(one.more_collateral, "other")}` : ""}`}
    </li>`)}</ol></section>`;
}
