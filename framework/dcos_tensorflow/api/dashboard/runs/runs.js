// The service's runs that are kept: a list that is filtered, and some of them side by side.
import { fits, filterOf } from "../filter.js";
import { differing } from "../job/differences.js";
import { html } from "../html.js";
import { moment } from "../time.js";
import { counted, duration, number } from "../words.js";
import { Board } from "./board.js";
import { compared } from "./compared.js";

const PATH = "v1/runs";
/** How often they are asked for, in seconds. */
const PERIOD = 60;
/** More curves over each other cannot be told apart. */
const MOST = 4;
const COLUMNS = ["run", "result", "metric", "best", "step", "seconds", "tag", "note", "changed"];
/** So many changed options are named in the list. */
const MOST_CHANGES = 2;

/** @param {any} known @param {any} act */
export function runs(known, act) {
  const { job } = known.watched;
  act.fetch(PATH, `${job.run} ${job.phase} ${known.watched.kept ? 0 : Math.floor(known.now / PERIOD)} ${known.noted}`);
  const { body, problem } = known.answers[PATH] ?? {};
  if (problem) return html`<p class="bad">${problem}</p>`;
  if (!body) return html`<p role="status">Asking …</p>`;
  if (!body.length) return html`<p class="muted">There is no former run.</p>`;
  const rows = rowsOf(body, job, known);
  const filter = filterOf(known.runs, COLUMNS);
  const shown = rows.filter((row) => fits(filter, row.cells));
  const named = known.argument.split(",");
  const chosen = rows.filter((row) => named.includes(row.run.id));
  return html`${known.in_window && html`<${Board} act=${act} />`}${body.length > 1 && html`<form class="choice" onSubmit=${(event) => event.preventDefault()}>
      <label>Filter <input type="search" class="long" value=${known.runs} placeholder="best<0.1 tag:baseline" aria-describedby="filtered"
        onInput=${(event) => act.know({ runs: event.target.value })} /></label>
      <span id="filtered" role="status" class=${filter.problem ? "bad" : "muted"}>${filter.problem || `${number(shown.length)} of ${counted(rows.length, "run")}`}</span></form>
      <p class="muted">Choose a run to see it beside this one, or up to ${MOST} to see them side by side.</p>`}
    <div class="wide" tabindex="0" role="region" aria-label="Runs"><table class="cards">
      <thead><tr>${["Run", "Result", "Took", "Best", "Steps", "Begun", "Tags and note", "Options changed"].map((title) => html`<th scope="col" key=${title}>${title}</th>`)}</tr></thead>
      <tbody>${shown.map((row) => html`<tr key=${row.run.id}>
        <th scope="row" data-title="Run"><label><input type="checkbox" checked=${chosen.includes(row)} disabled=${!chosen.includes(row) && chosen.length >= MOST}
          onChange=${() => choose(chosen, row)} /> <a href=${`#/runs/${row.run.id}`}>${row.run.run}</a>${row.is_this ? " (this one)" : ""}</label></th>
        <td data-title="Result"><span class=${`badge ${row.cells.result}`}>${row.cells.result}</span></td><td data-title="Took">${duration(row.cells.seconds)}</td>
        <td data-title="Best">${row.run.best ? `${row.run.best.metric} ${number(row.run.best.value)}` : "–"}</td><td data-title="Steps">${number(row.run.step)}</td>
        <td data-title="Begun">${moment(row.run.started_at, known.now)}</td>
        <td data-title="Tags and note">${(row.run.tags ?? []).map((tag) => html`<span class="badge" key=${tag}>${tag}</span> `)}${row.run.note}</td>
        <td data-title="Options changed">${changesTold(row.changes)}</td></tr>`)}</tbody></table></div>
    ${chosen.length > 0 && compared(known, act, chosen.length === 1 && rows[0].is_this && !chosen[0].is_this ? [rows[0], chosen[0]] : chosen)}`;
}

/** @type {WeakMap<any, any[]>} */
const changed = new WeakMap();

/** @returns {import("./compared.js").Row[]} */
function rowsOf(body, job, known) {
  if (!changed.has(body)) {
    changed.set(body, body.map((run, at) => (body[at + 1] ? differing([body[at + 1].options, run.options]) : [])));
  }
  return body.map((run, at) => {
    // The newest is this one; of a service of before the same number may be kept. What is kept of it is a moment old.
    const is_this = at === 0 && run.run === job.run;
    const result = is_this ? job.verdict?.outcome ?? job.phase : run.outcome ?? (run.uninstalled ? "uninstalled" : "not served");
    const { started_at, finished_at } = is_this ? { ...job, finished_at: job.finished_at ?? known.now } : run;
    const seconds = started_at && finished_at ? finished_at - started_at : null;
    const changes = changed.get(body)[at];
    const cells = { run: run.run, result, metric: run.best?.metric, best: run.best?.value, step: run.step, seconds,
      tag: (run.tags ?? []).join(" "), note: run.note, changed: changes.map(([name, [, value]]) => `${name} ${value}`).join(" ") };
    return { run, is_this, cells, changes };
  });
}

/** @param {[string, any[]][]} changes */
function changesTold(changes) {
  if (!changes.length) return "–";
  const told = changes.slice(0, MOST_CHANGES).map(([name, [, value]]) => html`<code key=${name}>${name} ${value ?? "–"}</code> `);
  return html`${told}${changes.length > MOST_CHANGES && `and ${number(changes.length - MOST_CHANGES)} more`}`;
}

function choose(chosen, row) {
  const others = chosen.filter((one) => one !== row);
  const now = others.length < chosen.length ? others : [...chosen, row];
  location.hash = `#/runs/${now.map((one) => one.run.id).join(",")}`;
}
