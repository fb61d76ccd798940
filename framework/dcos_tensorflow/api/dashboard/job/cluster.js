// The ClusterSpec: who is where, and what each task is told of it.
import { html } from "../html.js";

const PATH = "v1/cluster";

/** @param {any} known @param {any} act */
export function cluster(known, act) {
  const { job } = known.watched;
  // A new epoch comes with new attempts; each has its own.
  act.fetch(PATH, `${job.attempt} ${job.restarts} ${Math.max(0, ...Object.values(job.tasks).map((t) => t.epoch ?? 0))}`);
  const { body, problem } = known.answers[PATH] ?? {};
  if (problem) return html`<p class="bad">${problem}</p>`;
  if (!body) return html`<p role="status">Asking …</p>`;
  return html`<p>Epoch ${body.epoch}, strategy ${body.strategy || "not named"}, addressing ${body.addressing}.</p>
    ${!body.complete && html`<p class="muted">For a gang of this size the page leaves out each task's TF_CONFIG.</p>`}
    ${Object.entries(body.tasks).map(([name, task]) => html`<details key=${name}>
      <summary><strong>${name}</strong> ${task.address ?? "in no ClusterSpec"}${task.data_shard ? `, part ${task.data_shard.index + 1} of ${task.data_shard.count} of the data` : ""}</summary>
      ${task.tf_config && html`<h3>TF_CONFIG</h3><pre tabindex="0">${JSON.stringify(task.tf_config, null, 2)}</pre>`}
    </details>`)}
    ${!Object.keys(body.tasks).length && html`<p class="muted">Nothing is placed yet.</p>`}`;
}
