// The page of the queue of teams: the line, the teams' shares, and who ran where when. The window
// serves it and passes its questions on to the queue (docs/teams.md).
import { escaped } from "../address.js";
import { confirmation } from "../confirmation.js";
import { Connection } from "../connection.js";
import { html, render } from "../html.js";
import { sharesOverTime, teamBars, timeline } from "./pictures.js";
import { counted, duration, number } from "../words.js";

/** How often the page asks, in milliseconds, and how far back it looks, in seconds. */
const PERIOD = 2000;
const SPAN = 6 * 3600;

const connection = new Connection();
/** @type {any} */
let known = { jobs: null, teams: [], history: [], problem: "", search: "", asked: null, ended: false };

/** @param {Partial<typeof known>} changes */
function know(changes) {
  known = { ...known, ...changes };
  render(page(), document.getElementById("page"));
}

const VERBS = {
  cancel: (job) => `${job.job} is taken out of the queue; what runs of it is ended.`,
  hold: (job) => `${job.job} waits until it is released.`,
  release: (job) => `${job.job} waits for its turn.`,
};

/** @param {string} verb @param {any} job */
function ask(verb, job) {
  know({ asked: { title: verb[0].toUpperCase() + verb.slice(1), text: VERBS[verb](job), path: `v1/jobs/${escaped(job.job)}/${verb}` } });
}

const act = {
  cancel: () => know({ asked: null }),
  confirm: async () => {
    const { path } = known.asked;
    know({ asked: null });
    try {
      await connection.order(path);
      await once();
    } catch (error) {
      know({ problem: error.message });
    }
  },
};

function page() {
  const { jobs, teams, history, problem } = known;
  const waiting = (jobs ?? []).filter((job) => job.state === "waiting").length;
  const running = (jobs ?? []).filter((job) => job.state === "running").length;
  return html`
    <header><h1>Queue</h1>
      <p class=${`link ${problem ? "lost" : "live"}`} role="status">${problem || (jobs ? "live" : "Connecting …")}</p>
      <p class="up"><a href="../">All services</a></p></header>
    <main id="main">
      ${jobs && html`<p class="lead">${counted(running, "job")} ${running === 1 ? "runs" : "run"}, ${counted(waiting, "job")} ${waiting === 1 ? "waits" : "wait"}.</p>`}
      ${teams.length > 0 && html`<h2>Teams</h2>${teamBars(teams)}`}
      ${jobs && html`<h2>Line</h2>${line()}`}
      ${history.length > 0 && html`<h2>Shares over time</h2>${sharesOverTime(history, teams)}
        <h2>Who ran where</h2>${timeline(history, teams, SPAN)}`}
    </main>
    ${confirmation(known.asked, act)}`;
}

function line() {
  const words = known.search.toLowerCase();
  const shown = known.jobs.filter((job) => (known.ended || job.ended_at == null)
    && [job.job, job.team, job.state, job.why].some((text) => String(text).toLowerCase().includes(words)));
  return html`<form class="choice" onSubmit=${(event) => event.preventDefault()}>
      <label>Search <input type="search" value=${known.search} onInput=${(event) => know({ search: event.target.value })} /></label>
      <label><input type="checkbox" checked=${known.ended} onChange=${(event) => know({ ended: event.target.checked })} /> Jobs that have ended</label>
      <span class="muted" role="status">${counted(shown.length, "job")}</span></form>
    ${shown.length === 0 ? html`<p>No job is here.</p>` : html`<div class="wide" tabindex="0" role="region" aria-label="Line"><table class="cards">
      <thead><tr><th>Place</th><th>Job</th><th>Team</th><th>State</th><th>Wants</th><th>Time</th><th>Why</th><th>Order</th></tr></thead>
      <tbody>${shown.map((job) => html`<tr key=${job.job}>
        <td data-title="Place">${job.place ?? ""}</td>
        <th scope="row"><a href=${`../services/${escaped(job.job)}/`}>${job.job}</a></th>
        <td data-title="Team">${job.team}</td>
        <td data-title="State"><span class=${`badge ${job.state}`}>${job.state}</span></td>
        <td data-title="Wants">${wants(job)}</td>
        <td data-title="Time">${times(job)}</td>
        <td data-title="Why">${job.why}</td>
        <td>${verbs(job)}</td></tr>`)}</tbody></table></div>`}`;
}

/** @param {any} job */
function wants(job) {
  const { cpus, mem, gpus } = job.wants;
  const parts = [counted(cpus, "CPU"), `${number(mem / 1024)} GB`, gpus && counted(gpus, "GPU")];
  return `${parts.filter(Boolean).join(", ")}${job.slots ? `, ${counted(job.slots, "slot")}` : ""}`;
}

/** How long it ran, and when it starts or ends. @param {any} job */
function times(job) {
  const parts = [job.ran_seconds > 0 && `ran ${duration(job.ran_seconds)}`];
  if (job.starts_in) parts.push(`starts in ${interval(job.starts_in)}`);
  if (job.ends_in && job.state === "running") parts.push(`ends in ${interval(job.ends_in)}`);
  return parts.filter(Boolean).join("; ");
}

/** @param {{low: number, likely: number, high: number}} one */
function interval({ low, likely, high }) {
  return `${duration(likely)} (${duration(low)} to ${duration(high)})`;
}

/** Only those that do something. @param {any} job */
function verbs(job) {
  if (job.ended_at != null) return null;
  const names = [job.state === "waiting" && "hold", job.state === "held" && "release", "cancel"].filter(Boolean);
  return html`<span class="buttons">${names.map((verb) => html`<button type="button" aria-label=${`${verb} ${job.job}`} onClick=${() => ask(verb, job)}>${verb[0].toUpperCase() + verb.slice(1)}</button>`)}</span>`;
}

async function once() {
  const since = Date.now() / 1000 - SPAN;
  const [jobs, teams, history] = await Promise.all(
    ["v1/jobs", "v1/teams", `v1/history?since=${since}`].map((path) => connection.ask(path)));
  know({ jobs, teams, history, problem: "" });
}

async function look() {
  if (!document.hidden) {
    try {
      await once();
    } catch (error) {
      know({ problem: error instanceof TypeError ? "the window does not answer" : error.message });
    }
  }
  setTimeout(look, PERIOD);
}

know({});
look();
