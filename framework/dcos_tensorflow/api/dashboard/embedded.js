// The page of an embedded cluster: its agents, services and tasks, the sandboxes, and orders that
// show what a loss does. Served by the master; it asks Mesos' /state again and again while it is visible.
import { escaped, partsOf } from "./address.js";
import { confirmation } from "./confirmation.js";
import { Connection, Unauthorized } from "./connection.js";
import { door } from "./door.js";
import { html, render } from "./html.js";
import { Sandbox } from "./sandbox.js";
import { counted, duration, number } from "./words.js";

/** How long to wait before the cluster is asked again, in milliseconds. */
const PERIOD = 1000;
/** So many tasks are listed at once, the newest first. */
const MOST_ROWS = 200;
/** The principal of the cluster's secret. */
const PRINCIPAL = "dcos-tensorflow";

/** What is known; replaced as a whole, never changed. */
let known = {
  /** @type {"connecting" | "live" | "lost" | "locked"} */
  connection: "connecting",
  problem: "",
  /** Mesos' state, and the agents with their sandboxes; null before the first answer. */
  state: null,
  agents: [],
  /** What of a task's sandbox is looked at. */
  task: "",
  path: "",
  asked: null,
  said: "",
};

const connection = new Connection(
  (secret) => `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(`${PRINCIPAL}:${secret}`)))}`,
  // Else the browser would ask for a password in its own way, and keep it.
  "omit",
);
let timer = 0;

/** @param {Partial<typeof known>} changes */
function know(changes) {
  known = { ...known, ...changes };
  render(page(), document.getElementById("page"));
}

/** What views may do. */
const act = {
  ask: (path) => connection.ask(path),
  download: (path) => connection.download(path),
  /** Has an order confirmed, and gives it then. */
  order: (title, text, path, body) => know({ asked: { title, text, path, body }, said: "" }),
  cancel: () => know({ asked: null }),
  async confirm() {
    const { title, path, body } = known.asked;
    know({ asked: null });
    try {
      await connection.order(path, body);
      know({ said: `${title}: done` });
    } catch (error) {
      if (error instanceof Unauthorized) lock();
      else know({ said: `${title}: ${error.message}` });
    }
    look();
  },
};

function lock() {
  const problem = connection.token ? "This secret is not the cluster's." : "";
  connection.token = "";
  know({ connection: "locked", problem, state: null, agents: [] });
}

/** Asks how the cluster is, now and again and again. */
async function look() {
  clearTimeout(timer);
  try {
    const [state, agents] = await Promise.all([connection.ask("state"), connection.ask("overview/agents")]);
    know({ connection: "live", problem: "", state, agents });
  } catch (error) {
    if (error instanceof Unauthorized) return lock();
    know({ connection: "lost", problem: error instanceof TypeError ? "it does not answer" : error.message });
  }
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(look, PERIOD);
}

function page() {
  if (known.connection === "locked") {
    return door({ title: "Embedded cluster", label: "The cluster's secret", problem: known.problem, enter });
  }
  if (!known.state) {
    return html`<main id="main"><h1>Embedded cluster</h1><p role="status">${known.problem || "Connecting …"}</p></main>`;
  }
  const tasks = tasksOf(known.state);
  const task = tasks.find((one) => one.id === known.task);
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header>
      <h1>Embedded cluster</h1>
      <p class=${`link ${known.connection}`} role="status">${known.connection === "live" ? "live" : `connection lost: ${known.problem}`}</p>
    </header>
    <main id="main" tabindex="-1">
      <p class="said" role="status">${known.said}</p>
      ${known.task ? sandbox(task) : [agents(tasks), services(), table(tasks)]}
    </main>
    ${confirmation(known.asked, act)}`;
}

/** Every task that the master remembers, the newest first. @param {any} state */
function tasksOf(state) {
  return [...state.frameworks, ...state.completed_frameworks]
    .flatMap((service) => [...service.tasks, ...service.unreachable_tasks, ...service.completed_tasks]
      .map((task) => ({ ...task, service: service.name, at: task.statuses[0]?.timestamp ?? Infinity })))
    .sort((a, b) => (b.at > a.at) - (b.at < a.at));
}

const isAlive = (task) => /^TASK_(STAGING|STARTING|RUNNING|KILLING)$/.test(task.state);

function agents(tasks) {
  const { slaves } = known.state;
  return html`<section><h2>Agents</h2><div class="wide" tabindex="0" role="region" aria-label="Agents"><table>
    <thead><tr>${["Agent", "CPUs", "Memory, MB", "Disk, MB", "GPUs", "Tasks", "State", "For demonstrations"].map((title) => html`<th scope="col" key=${title}>${title}</th>`)}</tr></thead>
    <tbody>${known.agents.map((agent) => agentRow(agent, slaves.find((one) => one.id === agent.id), tasks))}</tbody></table></div></section>`;
}

function agentRow(agent, slave, tasks) {
  const share = (name) => slave ? html`${number(slave.used_resources[name])} of ${number(slave.resources[name])}
    ${slave.resources[name] > 0 && html` <meter min="0" max=${slave.resources[name]} value=${slave.used_resources[name]} aria-label=${`${name} in use`}></meter>`}` : "–";
  const name = agent.hostname === agent.address ? agent.address : `${agent.hostname} (${agent.address})`;
  const state = !agent.is_there ? "gone" : !slave ? "away" : slave.drain_info ? "leaving" : slave.active ? "active" : "not active";
  return html`<tr key=${agent.link}><th scope="row">${name}</th>
    ${["cpus", "mem", "disk", "gpus"].map((resource) => html`<td key=${resource}>${share(resource)}</td>`)}
    <td>${tasks.filter((task) => task.slave_id === agent.id && isAlive(task)).length}</td>
    <td><span class=${`badge ${{ active: "running", gone: "lost" }[state] ?? "pending"}`}>${state}</span></td>
    <td>${agent.is_there
      ? slave && html`<button type="button" onClick=${() => act.order(`Kill agent ${agent.hostname}`,
        "The machine is gone at once and for good, with every task on it.", "api/v1",
        { type: "MARK_AGENT_GONE", mark_agent_gone: { agent_id: { value: agent.id } } })}>Kill</button>`
      : html`<button type="button" onClick=${() => act.order(`Start agent ${agent.hostname}`,
        "A new agent comes up in its place, with nothing on it.", `overview/agents/${agent.link}/start`)}>Start</button>`}</td></tr>`;
}

function services() {
  const { frameworks } = known.state;
  return html`<section><h2>Services</h2>${!frameworks.length ? html`<p class="muted">None.</p>` : html`<div class="wide" tabindex="0" role="region" aria-label="Services"><table>
    <thead><tr>${["Service", "Tasks", "CPUs", "Memory, MB", "GPUs", "Since", "State"].map((title) => html`<th scope="col" key=${title}>${title}</th>`)}</tr></thead>
    <tbody>${frameworks.map((one) => html`<tr key=${one.id}>
      <th scope="row">${/^https?:\/\//.test(one.webui_url) ? html`<a href=${one.webui_url}>${one.name}</a>` : one.name}</th>
      <td>${one.tasks.filter(isAlive).length}</td>
      ${["cpus", "mem", "gpus"].map((resource) => html`<td key=${resource}>${number(one.used_resources[resource])}</td>`)}
      <td>${duration(Date.now() / 1000 - one.registered_time)}</td>
      <td><span class=${`badge ${one.active ? "running" : "lost"}`}>${one.active ? "connected" : "away"}</span></td></tr>`)}</tbody></table></div>`}</section>`;
}

function table(tasks) {
  const place = new Map(known.agents.flatMap((agent) => Object.keys(agent.sandboxes).map((id) => [id, agent])));
  return html`<section><h2>Tasks</h2>${!tasks.length ? html`<p class="muted">None yet.</p>` : html`<div class="wide" tabindex="0" role="region" aria-label="Tasks"><table>
    <thead><tr>${["Task", "Service", "Agent", "State", "Message", "Sandbox", "For demonstrations"].map((title) => html`<th scope="col" key=${title}>${title}</th>`)}</tr></thead>
    <tbody>${tasks.slice(0, MOST_ROWS).map((task) => html`<tr key=${task.id}>
      <th scope="row" title=${task.id}>${task.name}</th><td>${task.service}</td><td>${place.get(task.id)?.hostname ?? "–"}</td>
      <td><span class=${`badge ${task.state.slice(5).toLowerCase()}`}>${task.state.slice(5).toLowerCase()}</span></td>
      <td>${task.statuses.at(-1)?.message ?? ""}</td>
      <td>${place.has(task.id) && html`<a href=${`#/sandbox/${escaped(task.id)}/`}>files<span class="hidden"> of ${task.name}</span></a>`}</td>
      <td>${isAlive(task) && html`<button type="button" aria-label=${`Kill ${task.name}`} onClick=${() => act.order(`Kill ${task.name}`,
        "Its processes end at once (SIGKILL), as if the system had killed them.", `overview/tasks/${escaped(task.id)}/kill`)}>Kill</button>`}</td></tr>`)}</tbody></table></div>
    ${tasks.length > MOST_ROWS && html`<p class="muted">The newest ${MOST_ROWS} of ${counted(tasks.length, "task")} are listed.</p>`}`}</section>`;
}

function sandbox(task) {
  const agent = known.agents.find((one) => one.sandboxes[known.task]);
  return html`<p><a href="#/">The cluster</a></p><h2>Sandbox of ${task?.name ?? known.task}</h2>
    ${agent ? html`<${Sandbox} key=${known.task + known.path} link=${agent.link} folder=${agent.sandboxes[known.task]}
      path=${known.path} here=${`#/sandbox/${escaped(known.task)}/`} act=${act} />`
    : html`<p class="bad">No agent has it any more.</p>`}`;
}

/** @param {string} secret */
function enter(secret) {
  connection.token = secret;
  know({ connection: "connecting", problem: "" });
  look();
}

/** @param {Event} event */
function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

function turn() {
  const [view, task = "", ...path] = partsOf(location.hash);
  know({ task: view === "sandbox" ? task : "", path: path.join("/"), said: "" });
}

addEventListener("hashchange", turn);
// A hidden page asks for nothing.
document.addEventListener("visibilitychange", () => document.hidden || known.connection === "locked" || look());
turn();
look();
