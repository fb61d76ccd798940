// The options in force, and in what they differ from those of before.
import { differing } from "./differences.js";
import { html } from "../html.js";

/** @param {any} known @param {any} act */
export function options(known, act) {
  const version = known.watched.job.configuration;
  act.fetch("v1/configurations/target", version);
  // Of a service that has ended the last one is kept.
  if (!known.watched.kept) act.fetch("v1/configurations", version);
  const { body, problem } = known.answers["v1/configurations/target"] ?? {};
  if (problem) return html`<p class="bad">${problem}</p>`;
  if (!body) return html`<p role="status">Asking …</p>`;
  const others = (known.answers["v1/configurations"]?.body ?? []).slice(1);
  return html`<p>Configuration <code>${version}</code>.</p>
    ${body.refused && html`<p class="bad">Newer options were refused: ${body.refused.why}</p>`}
    <section><h3>Changes</h3>${others.length ? difference(known, act, body.spec, others)
      : html`<p class="muted">There is no earlier configuration.</p>`}</section>
    <section><h3>In force</h3><pre tabindex="0">${JSON.stringify(body.options ?? body.spec, null, 2)}</pre></section>`;
}

function difference(known, act, now, others) {
  const wanted = others.includes(known.argument) ? known.argument : others[0];
  const path = `v1/configurations/${wanted}`;
  act.fetch(path, wanted);
  const before = known.answers[path]?.body?.spec;
  const rows = before ? differing([before, now]) : [];
  return html`<label>since <select value=${wanted} onChange=${(e) => { location.hash = `/options/${e.target.value}`; }}>
      ${others.map((id) => html`<option key=${id} value=${id}>${id}</option>`)}</select></label>
    ${!before ? html`<p role="status">Asking …</p>` : !rows.length ? html`<p class="muted">Nothing.</p>` : html`<div class="wide" tabindex="0" role="region" aria-label="What has changed"><table>
      <thead><tr>${["Of the service", "Before", "Now"].map((title) => html`<th scope="col" key=${title}>${title}</th>`)}</tr></thead>
      <tbody>${rows.map(([name, [old, value]]) => html`<tr key=${name}><th scope="row">${name}</th><td>${old ?? "–"}</td><td>${value ?? "–"}</td></tr>`)}</tbody></table></div>`}`;
}
