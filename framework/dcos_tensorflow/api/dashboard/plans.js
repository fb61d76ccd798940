// The plans with their phases and steps, and the verbs that steer them.
import { escaped } from "./address.js";
import { html } from "./html.js";

const VERBS = [
  ["interrupt", "Pause", "Steps that have not begun wait until the plan is resumed."],
  ["continue", "Resume", "Paused steps go on; a canary is approved."],
  ["restart", "Restart", "All of its tasks start again."],
  ["forceComplete", "Force complete", "The step counts as complete; the plan no longer waits for it."],
];

/** @param {any} known @param {any} act */
export function plans(known, act) {
  const { job, kept } = known.watched;
  return html`${Object.entries(known.watched.plans).map(([name, plan]) => html`<section key=${name}>
    <h3>${name} <span class=${`badge ${plan.status}`}>${plan.status}</span></h3>
    ${plan.errors.map((error) => html`<p class="bad" key=${error}>${error}</p>`)}
    ${!kept && buttons(act, `plan ${name}`, `v1/plans/${name}`, "")}
    ${plan.phases.map((phase) => html`<details key=${phase.id} open=${phase.status !== "COMPLETE"}>
      <summary>${phase.name} <span class=${`badge ${phase.status}`}>${phase.status}</span></summary>
      ${!kept && buttons(act, `phase ${phase.name}`, `v1/plans/${name}`, `?phase=${escaped(phase.id)}`)}
      <ul class="steps">${phase.steps.map((step) => html`<li key=${step.id}><strong>${step.name}</strong>
        <span class=${`badge ${step.status}`}>${step.status}</span> ${step.message}</li>`)}</ul>
    </details>`)}
    ${!plan.phases.length && html`<p class="muted">There is nothing to do.</p>`}
  </section>`)}
  ${!job.verdict && html`<section><h3>The job</h3><p class="buttons"><button type="button"
    onClick=${() => act.order("Stop the job", "Its tasks end, and it does not go on by itself.", "v1/job/stop")}>Stop the job</button></p></section>`}`;
}

function buttons(act, what, path, query) {
  return html`<p class="buttons">${VERBS.map(([verb, title, text]) => html`<button type="button" key=${verb}
    aria-label=${`${title} ${what}`} onClick=${() => act.order(`${title} ${what}`, text, `${path}/${verb}${query}`)}>${title}</button>`)}</p>`;
}
