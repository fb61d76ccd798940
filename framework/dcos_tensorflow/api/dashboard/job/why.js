// Why the job is not further: in a sentence, per task, per offer.
import { html } from "../html.js";
import { moment } from "../time.js";
import { counted, number } from "../words.js";

/** @param {any} known */
export function why(known) {
  const found = known.watched.why;
  const waiting = Object.entries(found.tasks);
  const storage = Object.entries(found.storage).flatMap(([task, problems]) => problems.map((one) => [task, one]));
  const { held, handed_back } = found.offers;
  return html`<p class="lead">${found.why}</p>
    ${!found.registered && html`<p class="bad">No master knows the service now.</p>`}
    <section><h3>Tasks that wait</h3>
      ${waiting.length ? html`<ul class="steps">${waiting.map(([name, one]) => html`<li key=${name}><strong>${name}</strong>
        <span class=${`badge ${one.status}`}>${one.status}</span> ${one.why}
        ${Object.keys(one.agents_by_reason).length > 0 && html`<ul>${Object.entries(one.agents_by_reason).map(([reason, count]) => html`<li key=${reason}>${counted(count, "agent")}: ${reason}</li>`)}</ul>`}</li>`)}</ul>`
      : html`<p class="muted">None.</p>`}</section>
    ${sentences("Running, but waiting", found.waits.map((one) => one.told))}
    ${sentences("Storage", storage.map(([task, one]) => `${task}: ${one.why}`))}
    ${sentences("Machines that make no offer", found.silent_agents.map((one) => one.told))}
    <section><h3>Offers in hand</h3>${held.length ? html`<ul>${held.map((one) => html`<li key=${one.offer_id}>${one.hostname}:
      ${number(one.resources.cpus)} cpus, ${number(one.resources.mem)} MB memory, ${number(one.resources.disk)} MB disk, ${number(one.resources.gpus ?? 0)} GPUs</li>`)}</ul>`
      : html`<p class="muted">None.</p>`}</section>
    <section><h3>Offers that were not used</h3>${handed_back.length ? html`<ul>${handed_back.map((one) => html`<li key=${one.offer.id.value + one.timestamp}>
      ${moment(one.timestamp / 1000, known.now)}, ${one.offer.hostname}: ${one.explanation.join("; ")}</li>`)}</ul>`
      : html`<p class="muted">None.</p>`}</section>`;
}

function sentences(title, found) {
  return found.length ? html`<section><h3>${title}</h3><ul>${found.map((one) => html`<li key=${one}>${one}</li>`)}</ul></section>` : null;
}
