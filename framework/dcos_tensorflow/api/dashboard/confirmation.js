// Asks once more before an order is given. The browser's own dialog keeps the focus in it.
import { html } from "./html.js";

/** @param {{title: string, text: string} | null} asked @param {any} act */
export function confirmation(asked, act) {
  if (!asked) return null;
  const open = (element) => element && !element.open && element.showModal();
  return html`<dialog ref=${open} onClose=${act.cancel} aria-labelledby="asked">
    <h2 id="asked">${asked.title}?</h2>
    <p>${asked.text}</p>
    <p class="buttons"><button type="button" onClick=${act.cancel}>Cancel</button>
      <button type="button" class="primary" onClick=${act.confirm}>${asked.title}</button></p>
  </dialog>`;
}
