// The shards of a batch: how many are done, every one as a square, those that run and those that failed.
import { html } from "../html.js";
import { counted, duration, number } from "../words.js";
import { asked } from "../job/work.js";
import { ShardGrid } from "./shard_grid.js";

/** So many are listed by name. */
const MOST_ROWS = 100;

/** @param {any} known @param {any} act */
export function shards(known, act) {
  const told = known.watched.job.units;
  const { body, problem } = asked(known, act);
  if (problem) return html`<p class="bad">${problem}</p>`;
  const counts = Object.entries(told.counts).filter(([, count]) => count).map(([state, count]) => `${number(count)} ${state}`);
  return html`<p class="lead">${told.total ? counted(told.total, "shard") : "Shards"}: ${counts.join(", ") || "none yet"}.</p>
    ${told.failure && html`<p class="bad">Newest failure: shard ${told.failure.number}: ${told.failure.why}</p>`}
    ${body ? found(body, known.now) : html`<p role="status">Asking …</p>`}`;
}

function found({ units, usual_seconds }, now) {
  return html`${usual_seconds && html`<p>A shard usually takes ${duration(usual_seconds)}.</p>`}
    <${ShardGrid} shards=${units} />
    ${list("Running", units, "running", (one) => `for ${duration(now - one.begun_at)}, ${one.slots.join(", ")}`)}
    ${list("Failed", units, "failed", (one) => one.why)}`;
}

function list(title, found, state, told) {
  const those = found.filter((one) => one.state === state);
  return those.length ? html`<h3>${title}</h3><ul>${those.slice(0, MOST_ROWS).map((one) => html`<li key=${one.number}>Shard ${one.number}: ${told(one)}</li>`)}</ul>
    ${those.length > MOST_ROWS && html`<p class="muted">The first ${MOST_ROWS} of ${number(those.length)} are listed.</p>`}` : null;
}
