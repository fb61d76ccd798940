// The plans with their phases and steps, and the verbs that steer them.
import { escaped } from "../address.js";
import { html } from "../html.js";

/** The verbs, and whether one does something to a plan's part of this status. Recovery may be paused before there is any. */
const VERBS = [
  ["interrupt", "Pause", "Steps that have not begun wait until the plan is resumed.", (status, plan) => status !== "WAITING" && (status !== "COMPLETE" || plan === "recovery")],
  ["continue", "Resume", "Paused steps go on; a canary is approved.", (status) => status === "WAITING"],
  ["restart", "Restart", "All of its tasks start again.", () => true],
  ["forceComplete", "Force complete", "The step counts as complete; the plan no longer waits for it.", (status) => status !== "COMPLETE"],
];

/** @param {any} known @param {any} act */
export function plans(known, act) {
  const { job, kept } = known.watched;
  const is_over = kept || (job.verdict && !job.uninstalling);
  return html`${Object.entries(known.watched.plans).map(([name, plan]) => html`<section key=${name}>
    <h3>${name} <span class=${`badge ${plan.status}`}>${plan.status}</span></h3>
    ${plan.errors.map((error) => html`<p class="bad" key=${error}>${error}</p>`)}
    ${!is_over && buttons(act, name, `plan ${name}`, plan.status, "")}
    ${plan.phases.map((phase) => html`<details key=${phase.id} open=${phase.status !== "COMPLETE"}>
      <summary>${phase.name} <span class=${`badge ${phase.status}`}>${phase.status}</span></summary>
      ${!is_over && buttons(act, name, `phase ${phase.name}`, phase.status, `?phase=${escaped(phase.id)}`)}
      <ul class="steps">${phase.steps.map((step) => html`<li key=${step.id}><strong>${step.name}</strong>
        <span class=${`badge ${step.status}`}>${step.status}</span> ${step.message}</li>`)}</ul>
    </details>`)}
    ${!plan.phases.length && html`<p class="muted">There is nothing to do.</p>`}
  </section>`)}`;
}

function buttons(act, plan, what, status, query) {
  return html`<p class="buttons">${VERBS.filter(([, , , does]) => does(status, plan)).map(([verb, title, text]) => html`<button type="button" key=${verb}
    aria-label=${`${title} ${what}`} onClick=${() => act.order(`${title} ${what}`, text, `v1/plans/${plan}/${verb}${query}`)}>${title}</button>`)}</p>`;
}
