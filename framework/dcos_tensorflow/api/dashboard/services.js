// The window's first page: all services of this machine, or of a state store, those that run and those that have ended.
// Each leads to its dashboard (main.js), which the window serves below it.
import { escaped } from "./address.js";
import { Connection, Unauthorized } from "./connection.js";
import { html, render } from "./html.js";
import { moment } from "./time.js";
import { counted, duration, number } from "./words.js";

/** How often the page asks, in milliseconds. */
const PERIOD = 2000;

const connection = new Connection();
/** @type {{services: any[] | null, queue: string | null, problem: string, search: string}} */
let known = { services: null, queue: null, problem: "", search: "" };

/** @param {Partial<typeof known>} changes */
function know(changes) {
  known = { ...known, ...changes };
  render(page(), document.getElementById("page"));
}

function page() {
  const words = known.search.toLowerCase();
  const found = (known.services ?? []).filter((one) =>
    [one.name, standing(one), one.summary].some((text) => String(text ?? "").toLowerCase().includes(words)));
  return html`
    <header><h1>Services</h1>
      <p class=${`link ${known.problem ? "lost" : "live"}`} role="status">${known.problem || (known.services ? "live" : "Connecting …")}</p></header>
    <main id="main">
      ${known.queue && html`<p class="lead"><a href="queue/">The queue of teams</a></p>`}
      ${known.services?.length > 0 && html`<form class="choice" onSubmit=${(event) => event.preventDefault()}>
        <label>Search <input type="search" value=${known.search} onInput=${(event) => know({ search: event.target.value })} /></label>
        <span class="muted" role="status">${counted(found.length, "service")}</span></form>`}
      ${known.services?.length === 0 && html`<p class="lead">No service is here yet. Start one: <code>dcos-tensorflow run train.py</code></p>`}
      <ul class="services">${found.map((one) => html`<li key=${one.name}>${card(one)}</li>`)}</ul>
    </main>`;
}

/** @param {any} one */
function card(one) {
  const end = one.finished_at ?? Date.now() / 1000;
  const facts = [
    one.run != null && `run ${one.run}`,
    one.step != null && `step ${number(one.step)}`,
    one.best && `${one.best.metric} ${number(one.best.value)}`,
    one.started_at && (one.finished_at || one.served) && duration(end - one.started_at),
    one.started_at && moment(one.started_at, Date.now() / 1000),
  ].filter(Boolean).flatMap((fact, i) => (i ? [" · ", fact] : [fact]));
  return html`<h2><a href=${`services/${escaped(one.name)}/`}>${one.name}</a> <span class=${`badge ${standing(one)}`}>${standing(one)}</span></h2>
    <p>${facts}</p>
    ${one.summary && html`<p class="muted">${one.summary}</p>`}`;
}

/** How it ended, or where it is. @param {any} one */
function standing(one) {
  return one.outcome ?? (one.served ? one.phase ?? "running" : "not served");
}

async function look() {
  if (!document.hidden) {
    try {
      know({ ...(await connection.ask("services")), problem: "" });
    } catch (error) {
      know({ problem: error instanceof TypeError ? "the window does not answer" : error instanceof Unauthorized ? "logged out: load the page again" : error.message });
    }
  }
  setTimeout(look, PERIOD);
}

know({});
look();
