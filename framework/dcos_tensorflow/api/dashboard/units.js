// The units of work: a sweep's leaderboard, or a batch's shards as a grid.
import { html } from "./html.js";
import { counted, duration, number } from "./words.js";

const PATH = "v1/units";
/** So many trials are listed, and so many shards are drawn. */
const MOST_ROWS = 100;
const MOST_CELLS = 4000;
const PER_ROW = 64;
const CELL = 10;

/** @param {any} known @param {any} act */
export function units(known, act) {
  const told = known.watched.job.units;
  // Asked again when a unit has begun or ended, and for what trials measure meanwhile.
  act.fetch(PATH, JSON.stringify(told.counts) + Math.floor(known.now / 5));
  const { body, problem } = known.answers[PATH] ?? {};
  if (problem) return html`<p class="bad">${problem}</p>`;
  const counts = Object.entries(told.counts).filter(([, count]) => count).map(([state, count]) => `${number(count)} ${state}`);
  return html`<p class="lead">${told.total ? counted(told.total, told.kind) : `${told.kind}s`}: ${counts.join(", ") || "none yet"}.</p>
    ${told.failure && html`<p class="bad">Newest failure: ${told.kind} ${told.failure.number}: ${told.failure.why}</p>`}
    ${!body ? html`<p role="status">Asking …</p>` : body.objective ? leaderboard(body) : shards(body, known.now)}`;
}

function leaderboard({ units: found, objective }) {
  const sign = objective.goal.startsWith("max") ? -1 : 1;
  const is_number = (one) => typeof one.value === "number";
  const ranked = [...found].sort((a, b) => is_number(b) - is_number(a) || sign * (a.value - b.value) || a.number - b.number);
  const names = [...new Set(found.flatMap((one) => Object.keys(one.parameters ?? {})))];
  return html`<h3>Leaderboard: ${objective.goal} ${objective.metric}</h3>
    <div class="wide" tabindex="0" role="region" aria-label="Leaderboard"><table>
    <thead><tr>${["Trial", objective.metric, "State", ...names].map((title) => html`<th scope="col" key=${title}>${title}</th>`)}</tr></thead>
    <tbody>${ranked.slice(0, MOST_ROWS).map((one) => html`<tr key=${one.number}><th scope="row">${one.number}</th>
      <td>${number(one.value)}</td><td><span class=${`badge ${one.state}`}>${one.state}</span> ${one.why}</td>
      ${names.map((name) => html`<td key=${name}>${number(one.parameters?.[name])}</td>`)}</tr>`)}</tbody></table></div>
    ${found.length > MOST_ROWS && html`<p class="muted">The first ${MOST_ROWS} of ${number(found.length)} are listed.</p>`}`;
}

function shards({ units: found, usual_seconds }, now) {
  const drawn = found.slice(0, MOST_CELLS);
  const bad = found.filter((one) => one.state === "failed");
  const running = found.filter((one) => one.state === "running");
  const rows = Math.ceil(drawn.length / PER_ROW);
  return html`${usual_seconds && html`<p>A shard usually takes ${duration(usual_seconds)}.</p>`}
    <svg class="grid" viewBox=${`0 0 ${PER_ROW * CELL} ${Math.max(1, rows) * CELL}`} role="img" aria-label="Every shard as a square, by its state; the counts above say the same">
      ${drawn.map((one, i) => html`<rect key=${one.number} class=${`cell ${one.state}`} x=${(i % PER_ROW) * CELL} y=${Math.floor(i / PER_ROW) * CELL} width=${CELL - 1} height=${CELL - 1}><title>${one.number}: ${one.state}</title></rect>`)}
    </svg>
    <p class="key">${["waiting", "running", "succeeded", "failed"].map((state) => html`<span key=${state}><svg width="10" height="10" aria-hidden="true"><rect class=${`cell ${state}`} width="10" height="10" /></svg> ${state}</span>`)}</p>
    ${found.length > MOST_CELLS && html`<p class="muted">The first ${number(MOST_CELLS)} of ${number(found.length)} are drawn.</p>`}
    ${list("Running", running, (one) => `for ${duration(now - one.begun_at)}, ${one.slots.join(", ")}`)}
    ${list("Failed", bad, (one) => one.why)}`;
}

function list(title, found, told) {
  return found.length ? html`<h3>${title}</h3><ul>${found.slice(0, MOST_ROWS).map((one) => html`<li key=${one.number}>Shard ${one.number}: ${told(one)}</li>`)}</ul>` : null;
}
