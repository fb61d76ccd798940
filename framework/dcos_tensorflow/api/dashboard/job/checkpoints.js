// The checkpoints: which step each task would restore, its size and age, where it lies, and what is in S3.
import { html } from "../html.js";
import { duration, number, size } from "../words.js";

/** @param {any} known */
export function checkpoints(known) {
  const { job } = known.watched;
  const found = Object.entries(job.tasks).filter(([, task]) => task.report?.checkpoint || task.report?.storage?.checkpoints);
  return html`<p>${job.output ? html`The job's output is in <code>${job.output}</code>.` : "The job's output is in the tasks' sandboxes."}</p>
    ${found.length ? html`<div class="wide" tabindex="0" role="region" aria-label="Checkpoints"><table>
      <thead><tr>${["Task", "Step", "Size", "Age", "Checkpoint", "In S3", "Age there"].map((title) => html`<th scope="col" key=${title}>${title}</th>`)}</tr></thead>
      <tbody>${found.map(([name, task]) => row(name, task.report.checkpoint, task.report.storage?.checkpoints, known.now))}</tbody></table></div>`
    : html`<p class="muted">No task reports a checkpoint. Those of Keras (<code>.keras</code>) and of a URL are not read.</p>`}`;
}

function row(name, checkpoint, kept, now) {
  return html`<tr key=${name}><th scope="row">${name}</th><td>${number(checkpoint?.step)}</td>
    <td>${checkpoint?.bytes == null ? "–" : size(checkpoint.bytes)}</td><td>${checkpoint?.saved_at ? duration(now - checkpoint.saved_at) : "–"}</td>
    <td><code>${checkpoint?.path ?? "–"}</code></td>
    <td>${kept ? `${kept.state}, step ${number(kept.published_step)}` : "–"}</td>
    <td>${kept?.published_at ? duration(now - kept.published_at) : "–"}</td></tr>`;
}
