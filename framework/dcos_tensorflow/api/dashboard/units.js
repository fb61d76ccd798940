// The units of work: a sweep's leaderboard and pictures of it, or a batch's shards as a grid.
import { Chart } from "./chart.js";
import { html } from "./html.js";
import { parallel } from "./parallel.js";
import { ShardGrid } from "./shard_grid.js";
import { counted, duration, number } from "./words.js";

const PATH = "v1/units";
/** So many trials are listed, and so many shards by name. */
const MOST_ROWS = 100;
/** So many of the best trials are lines of the picture. */
const MOST_LINES = 200;
/** How often they are asked for, in seconds: more seldom the more there are. */
const period = (total) => Math.max(5, Math.ceil(total / 500));

/** @param {any} known @param {any} act */
export function units(known, act) {
  const told = known.watched.job.units;
  const all = Object.values(told.counts).reduce((a, b) => a + b, 0);
  // Asked again when a unit has begun or ended, and for what trials measure meanwhile.
  const pace = Math.floor(known.now / period(all));
  act.fetch(PATH, all > 1000 ? String(pace) : JSON.stringify(told.counts) + pace);
  const { body, problem } = known.answers[PATH] ?? {};
  if (problem) return html`<p class="bad">${problem}</p>`;
  const counts = Object.entries(told.counts).filter(([, count]) => count).map(([state, count]) => `${number(count)} ${state}`);
  return html`<p class="lead">${told.total ? counted(told.total, told.kind) : `${told.kind}s`}: ${counts.join(", ") || "none yet"}.</p>
    ${told.failure && html`<p class="bad">Newest failure: ${told.kind} ${told.failure.number}: ${told.failure.why}</p>`}
    ${!body ? html`<p role="status">Asking …</p>` : body.objective ? sweep(seen(body, ranking)) : shards(body, known.now)}`;
}

/** What was worked out of an answer, until there is another one. */
const worked = new WeakMap();
function seen(body, work) {
  if (!worked.has(body)) worked.set(body, work(body));
  return worked.get(body);
}

function ranking({ units: found, objective }) {
  const sign = objective.goal.startsWith("max") ? -1 : 1;
  const is_number = (one) => typeof one.value === "number";
  const ranked = [...found].sort((a, b) => is_number(b) - is_number(a) || sign * (a.value - b.value) || a.number - b.number);
  const names = [...new Set(found.flatMap((one) => Object.keys(one.parameters ?? {})))];
  // In the order in which trials ended: the best value of all until then.
  const ended = found.filter((one) => is_number(one) && one.ended_at).sort((a, b) => a.ended_at - b.ended_at);
  let best = sign * Infinity;
  const curve = ended.map((one, index) => {
    best = sign * Math.min(sign * best, sign * one.value);
    return { at: one.ended_at, step: index + 1, metrics: { [objective.metric]: best } };
  });
  return { objective, ranked, names, valued: ranked.filter(is_number), curves: { "best so far": curve } };
}

function sweep({ objective, ranked, names, valued, curves }) {
  return html`${curves["best so far"].length > 1 && html`<section><h3>Best value so far, by finished trials</h3>
      <${Chart} metric=${objective.metric} by="step" counted="trial" curves=${curves} tasks=${["best so far"]} incidents=${NONE} /></section>`}
    ${valued.length > 1 && html`<section><h3>Parameters and results</h3>${parallel(valued.slice(0, MOST_LINES), names, objective.metric)}
      ${valued.length > MOST_LINES && html`<p class="muted">The best ${MOST_LINES} of ${number(valued.length)} are drawn.</p>`}</section>`}
    <section><h3>Leaderboard: ${objective.goal} ${objective.metric}</h3>
    <div class="wide" tabindex="0" role="region" aria-label="Leaderboard"><table>
    <thead><tr>${["Trial", objective.metric, "State", ...names].map((title) => html`<th scope="col" key=${title}>${title}</th>`)}</tr></thead>
    <tbody>${ranked.slice(0, MOST_ROWS).map((one) => html`<tr key=${one.number}><th scope="row">${one.number}</th>
      <td>${number(one.value)}</td><td><span class=${`badge ${one.state}`}>${one.state}</span> ${one.why}</td>
      ${names.map((name) => html`<td key=${name}>${number(one.parameters?.[name])}</td>`)}</tr>`)}</tbody></table></div>
    ${ranked.length > MOST_ROWS && html`<p class="muted">The first ${MOST_ROWS} of ${number(ranked.length)} are listed.</p>`}</section>`;
}

/** A sweep's curve has no incidents; one list for all drawings, so that none is made anew. */
const NONE = [];

function shards({ units: found, usual_seconds }, now) {
  return html`${usual_seconds && html`<p>A shard usually takes ${duration(usual_seconds)}.</p>`}
    <${ShardGrid} shards=${found} />
    ${list("Running", found, "running", (one) => `for ${duration(now - one.begun_at)}, ${one.slots.join(", ")}`)}
    ${list("Failed", found, "failed", (one) => one.why)}`;
}

function list(title, found, state, told) {
  const those = found.filter((one) => one.state === state);
  return those.length ? html`<h3>${title}</h3><ul>${those.slice(0, MOST_ROWS).map((one) => html`<li key=${one.number}>Shard ${one.number}: ${told(one)}</li>`)}</ul>
    ${those.length > MOST_ROWS && html`<p class="muted">The first ${MOST_ROWS} of ${number(those.length)} are listed.</p>`}` : null;
}
