// Asks for the token that a page needs. Used by main.js, embedded.js and entrance.js.
import { html } from "./html.js";

const IN_MEMORY = "The page keeps it in memory only: enter it again after you reload the page.";

/** @param {{title: string, label: string, problem: string, enter: (token: string) => void, note?: string}} given */
export function door({ title, label, problem, enter, note = IN_MEMORY }) {
  const submitted = (event) => {
    event.preventDefault();
    const token = new FormData(event.target).get("token").trim();
    event.target.reset();
    enter(token);
  };
  return html`<main id="main" class="door"><h1>${title}</h1>
    <form onSubmit=${submitted}>
      <label for="token">${label}</label>
      <input id="token" name="token" type="password" autocomplete="off" required aria-describedby="problem" />
      <button>Show</button>
      <p id="problem" role="alert" class="bad">${problem}</p>
      <p class="muted">${note}</p>
    </form></main>`;
}
