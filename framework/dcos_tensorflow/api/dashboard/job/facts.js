// Names and values beside each other. Used by the views.
import { html } from "../html.js";

/** @param {[string, any][]} rows */
export function definitions(rows) {
  return html`<dl class="facts">${rows.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}
