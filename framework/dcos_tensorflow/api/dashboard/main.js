// The dashboard: keeps what is known of the service, and shows it anew whenever that changes.
// The views are functions of what is known; all that is asked and ordered passes through here.
import { partsOf } from "./address.js";
import { shards } from "./batch/shards.js";
import { capacity } from "./job/capacity.js";
import { checkpoints } from "./job/checkpoints.js";
import { cluster } from "./job/cluster.js";
import { confirmation } from "./confirmation.js";
import { Connection, Unauthorized } from "./connection.js";
import { withKept, withNewest } from "./charts/curves.js";
import { door } from "./door.js";
import { html, render } from "./html.js";
import { Logs } from "./tasks/logs.js";
import { mergePatch } from "./merge_patch.js";
import { options } from "./job/options.js";
import { overview } from "./job/overview.js";
import { plans } from "./job/plans.js";
import { runs } from "./runs/runs.js";
import { trials } from "./sweep/trials.js";
import { tasks } from "./tasks/tasks.js";
import { why } from "./job/why.js";
import { plain } from "./words.js";

/** The views: what their tabs are called, what they show, and whether the service has such. */
const VIEWS = [
  { name: "overview", title: "Overview", show: overview },
  { name: "tasks", title: "Tasks", show: tasks },
  { name: "trials", title: "Trials", show: trials, where: (job) => job.units?.kind === "trial" },
  { name: "shards", title: "Shards", show: shards, where: (job) => job.units?.kind === "shard" },
  { name: "capacity", title: "Machines", show: capacity, where: (job) => job.buys_machines },
  { name: "plans", title: "Plans", show: plans },
  { name: "why", title: "Why it waits", show: why },
  { name: "cluster", title: "Cluster", show: cluster },
  { name: "checkpoints", title: "Checkpoints", show: checkpoints },
  { name: "logs", title: "Logs", show: (known, act) => html`<${Logs} known=${known} act=${act} />` },
  { name: "options", title: "Options", show: options },
  { name: "runs", title: "Runs", show: runs },
];

/** The window serves this page, below those of other services (`services.js`). */
const IS_IN_WINDOW = /\/services\/[^/]+\/$/.test(new URL(document.baseURI).pathname);

/** What is known; replaced as a whole, never changed. */
let known = {
  /** @type {"connecting" | "live" | "lost" | "locked"} */
  connection: "connecting",
  /** Why the stream broke off, or why a token was refused. */
  problem: "",
  /** Job, why and plans, as `/v1/events` tells them; null before the first event. */
  watched: null,
  /** @type {import("./charts/curves.js").Curves} */
  curves: {},
  /** What the curves are drawn over. */
  by: "step",
  /** Which trials are listed, and how they are sorted; by "" the best first. */
  board: { filter: "", by: "", down: false },
  view: "overview",
  in_window: IS_IN_WINDOW,
  /** What of the view is looked at: a task's name. */
  argument: "",
  /** Which runs are listed. */
  runs: "",
  /** Counts what was noted of runs. */
  noted: 0,
  /** Which tasks are listed. */
  tasks: "",
  /** Answers of other paths of the API, with what they were answered for. */
  answers: {},
  /** The order that waits for its confirmation. */
  asked: null,
  /** What became of the last order. */
  said: "",
  /** Unix seconds. */
  now: Date.now() / 1000,
};

const connection = new Connection();
let is_drawn = true;
/** The view whose tab was brought into sight. */
let shown_view = "";
let following = false;

/** @param {Partial<typeof known>} changes */
function know(changes) {
  known = { ...known, ...changes };
  if (!is_drawn) return;
  is_drawn = false;
  requestAnimationFrame(draw);
}

function draw() {
  is_drawn = true;
  render(page(), document.getElementById("page"));
  if (shown_view !== known.view) {
    shown_view = known.view;
    // On a phone the chosen tab may be beside the screen.
    document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }
  const service = known.watched?.job.service;
  document.title = service ? plain(`${service}: ${known.watched.job.phase}`) : "dcos-tensorflow";
}

/** What views may do. */
const act = {
  know,
  ask: (path, more) => connection.ask(path, more),
  /** Asks for a path once for each `version` of what is shown; `known.answers` has the answer. */
  fetch(path, version) {
    if (known.answers[path]?.version === version) return;
    const keep = (found) => know({ answers: { ...known.answers, [path]: { version, ...found } } });
    known.answers = { ...known.answers, [path]: { ...known.answers[path], version } };
    connection.ask(path).then((body) => keep({ body }), (error) => refused(error, (problem) => keep({ problem })));
  },
  /** Has an order confirmed, and gives it then. */
  order(title, text, path) {
    know({ asked: { title, text, path }, said: "" });
  },
  /** Has something kept that needs no confirmation: nothing that runs changes. Throws as `ask` does. */
  async keep(path, body) {
    await connection.order(path, body);
    know({ noted: known.noted + 1 });
  },
  cancel: () => know({ asked: null }),
  async confirm() {
    const { path, title } = known.asked;
    know({ asked: null });
    try {
      const answer = await connection.ask(path, { method: "POST" });
      know({ said: `${title}: ${answer.why ?? answer.message ?? "received"}` });
    } catch (error) {
      refused(error, (problem) => know({ said: `${title}: ${problem}` }));
    }
  },
};

/** @param {Error} error @param {(problem: string) => void} other */
function refused(error, other) {
  if (error instanceof Unauthorized) lock();
  else other(error instanceof TypeError ? "the service does not answer" : error.message);
}

function lock() {
  const problem = connection.token ? "This token is not the service's." : "";
  connection.token = "";
  know({ connection: "locked", problem, watched: null, answers: {}, curves: {} });
}

async function follow() {
  if (following) return;
  following = true;
  try {
    await connection.follow("v1/events", hear, (error) => {
      if (error instanceof Unauthorized) throw error;
      know({ connection: "lost", problem: error instanceof TypeError ? "it does not answer" : error.message });
    });
  } catch {
    lock();
  } finally {
    following = false;
  }
}

/** @param {string} kind @param {any} body */
function hear(kind, body) {
  const watched = kind === "whole" ? mergePatch({}, body) : mergePatch(known.watched, body);
  know({ watched, connection: "live", problem: "", curves: withNewest(known.curves, watched.job) });
  // Curves that this page has missed are kept by the service, since it began.
  if (kind === "whole") {
    connection.ask("v1/curves").then((answer) => know({ curves: withKept(known.curves, answer) }), () => {});
  }
}

function page() {
  if (known.connection === "locked") {
    return door({ title: "dcos-tensorflow", label: "The API's token", problem: known.problem, enter });
  }
  if (!known.watched) {
    return html`<main id="main"><h1>dcos-tensorflow</h1><p role="status">
      ${known.connection === "lost" ? `The service cannot be reached: ${known.problem}. It is tried again.` : "Connecting …"}</p></main>`;
  }
  const { job } = known.watched;
  const views = VIEWS.filter((view) => !view.where || view.where(job));
  const view = views.find((one) => one.name === known.view) ?? views[0];
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header>
      ${IS_IN_WINDOW && html`<a class="up" href="../../">All services</a>`}
      <h1>${job.service}</h1>
      <p class="state"><span class=${`badge ${job.verdict?.outcome ?? job.phase}`}>${job.verdict?.outcome ?? job.phase}</span></p>
      ${!job.verdict && !known.watched.kept && html`<button type="button" onClick=${() => act.order("Stop the job",
        "Its tasks end, and it does not go on by itself.", "v1/job/stop")}>Stop the job</button>`}
      <p class=${`link ${known.connection}`} role="status">${link()}</p>
      <nav aria-label="Views"><ul>${views.map((one) => html`<li key=${one.name}>
        <a href=${`#/${one.name}`} aria-current=${one === view ? "page" : null}>${one.title}</a></li>`)}</ul></nav>
    </header>
    <main id="main" tabindex="-1">
      <h2>${view.title}</h2>
      <p class="said" role="status">${known.said}</p>
      ${view.show(known, act)}
    </main>
    ${confirmation(known.asked, act)}`;
}

/** Returns how the page is linked to the service. */
function link() {
  if (known.connection !== "live") return `connection lost: ${known.problem}`;
  const kept = known.watched.kept;
  return typeof kept === "string" ? kept : kept ? "as it ended" : "live";
}

/** @param {string} token */
function enter(token) {
  connection.token = token;
  know({ connection: "connecting", problem: "" });
  follow();
}

/** @param {Event} event */
function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

function turn() {
  const [view, argument = ""] = partsOf(location.hash);
  know({ view: view || "overview", argument, said: "" });
}

addEventListener("hashchange", turn);
// Ages and elapsed times go on between events, while the page is visible.
setInterval(() => document.hidden || know({ now: Date.now() / 1000 }), 1000);
// A hidden page follows nothing.
document.addEventListener("visibilitychange", () => (document.hidden ? connection.pause() : connection.resume()));
turn();
follow();
