// The tasks: where each runs, how far it is, how often it began, how it ended; and the gang as a picture.
import { escaped } from "../address.js";
import { filterOf, fits } from "../filter.js";
import { gang } from "./gang.js";
import { Component, html } from "../html.js";
import { incidents } from "../job/overview.js";
import { moment } from "../time.js";
import { counted, duration, number, size } from "../words.js";

const VERBS = [
  ["restart", "Restart", "Its process starts again in its container, with the tasks that have to restart too."],
  ["replace", "Replace", "It gets a new container, on another agent where there is one."],
  ["pause", "Pause", "Its process stops, with the tasks that would have to restart too. Its container stays."],
  ["resume", "Resume", "Its process starts again."],
];

/** So many tasks are listed at once. */
const MOST_ROWS = 300;
const COLUMNS = ["task", "state", "agent", "attempt", "failures", "step", "tells"];

/** @param {any} known @param {any} act */
export function tasks(known, act) {
  const { job } = known.watched;
  if (known.argument && job.tasks[known.argument]) return one(known, act, known.argument);
  const culprit = culpritOf(job);
  const names = Object.keys(job.tasks).sort((a, b) => (b === culprit) - (a === culprit));
  const filter = filterOf(known.tasks, COLUMNS);
  const found = filter.terms.length ? names.filter((name) => fits(filter, cells(job, name, culprit))) : names;
  const used = Object.values(job.tasks).some((task) => task.usage);
  const titles = ["Task", "State", "Agent", "Attempt", "Failures", "Step", ...(used ? ["CPU", "Memory", "GPU"] : []), "Since", "What it tells"];
  return html`
    ${gang(job)}
    <h3>All tasks</h3>
    ${names.length > 1 && html`<form class="choice" onSubmit=${(event) => event.preventDefault()}>
      <label>Filter <input type="search" class="long" value=${known.tasks} placeholder="state:running failures>0" aria-describedby="filtered"
        onInput=${(event) => act.know({ tasks: event.target.value })} /></label>
      <span id="filtered" role="status" class=${filter.problem ? "bad" : "muted"}>${filter.problem || `${number(found.length)} of ${counted(names.length, "task")}`}</span></form>`}
    <div class="wide" tabindex="0" role="region" aria-label="All tasks"><table class="cards">
      <thead><tr>${titles.map((title) => html`<th scope="col" key=${title}>${title}</th>`)}</tr></thead>
      <tbody>${found.slice(0, MOST_ROWS).map((name) => html`<${Row} key=${name} name=${name} task=${job.tasks[name]} used=${used} is_culprit=${name === culprit}
        failures=${failures(job, name)} since=${since(job.tasks[name], known.now)} />`)}</tbody>
    </table></div>
    ${found.length > MOST_ROWS && html`<p class="muted">The first ${MOST_ROWS} of ${number(found.length)} are listed; a filter shows others.</p>`}`;
}

/** The task that a failed job failed of; the others ended with it. @param {any} job */
function culpritOf(job) {
  return job.verdict?.outcome === "failed" ? job.incidents.at(-1)?.task : undefined;
}

/** How often a task failed by itself: what its container counts, and what the job remembers of it. */
const failures = (job, name) => Math.max(job.tasks[name].failures ?? 0, job.incidents.filter((one) => one.task === name && one.charged).length);

/** What a task is doing: the runner knows it better than Mesos does. */
function doing(task, is_culprit = false) {
  if (is_culprit) return "failed";
  return task.state === "running" ? task.report?.state ?? task.state : task.state ?? "not launched";
}

/** What a filter asks about. */
function cells(job, name, culprit) {
  const task = job.tasks[name];
  return { task: name, state: doing(task, name === culprit), agent: task.hostname, attempt: task.attempt,
    failures: failures(job, name), step: task.report?.progress?.step, tells: end(task) };
}

/** What a task takes of its machine now, percents of one processor; of several GPUs the share is that of all. */
function usage(used, { usage: told }) {
  if (!used) return null;
  const { cpu_percent, mem_bytes, mem_limit_bytes, gpus = [] } = told ?? {};
  const share = gpus.length ? gpus.reduce((sum, one) => sum + one.utilisation, 0) / gpus.length : null;
  const memory = gpus.reduce((sum, one) => sum + (one.mem_bytes ?? 0), 0);
  return html`<td data-title="CPU">${cpu_percent == null ? "–" : `${number(Math.round(cpu_percent))} %`}</td>
    <td data-title="Memory">${mem_bytes == null ? "–" : `${size(mem_bytes)}${mem_limit_bytes ? ` of ${size(mem_limit_bytes)}` : ""}`}</td>
    <td data-title="GPU">${share == null ? "–" : `${number(Math.round(100 * share))} %, ${size(memory)}`}</td>`;
}

/** For how long a task has been so. */
const since = (task, now) => task.changed_at ? duration(now - task.changed_at) : "–";

/** A row is drawn anew when its task has changed: there are many. */
class Row extends Component {
  shouldComponentUpdate(next) {
    return ["task", "since", "used", "is_culprit", "failures"].some((name) => next[name] !== this.props[name]);
  }

  render({ name, task, since, used, is_culprit, failures: failed }) {
    return html`<tr>
    <th scope="row" data-title="Task"><a href=${`#/tasks/${escaped(name)}`}>${name}</a></th>
    <td data-title="State"><span class=${`badge ${is_culprit ? "failed" : task.state}`}>${doing(task, is_culprit)}</span></td>
    <td data-title="Agent">${task.hostname ?? "–"}</td><td data-title="Attempt">${task.attempt}</td><td data-title="Failures">${number(failed)}</td>
    <td data-title="Step">${number(task.report?.progress?.step)}</td>
    ${usage(used, task)}
    <td data-title="Since">${since}</td>
    <td data-title="It tells">${end(task)}</td></tr>`;
  }
}

/** @param {any} task */
function end(task) {
  // Of a task that was ended its last words are no news.
  const ended = task.state === "killed" && task.kill_reason;
  return task.evidence?.summary || ended || task.report?.summary || task.message || task.kill_reason || "–";
}

/** @param {any} known @param {any} act @param {string} name */
function one(known, act, name) {
  const task = known.watched.job.tasks[name];
  const needs = resources(known, act, name);
  const rows = [
    ["State", doing(task, name === culpritOf(known.watched.job))], ["Agent", task.hostname && `${task.hostname} (${task.agent_id})`],
    ["Address", task.address && `${task.address}, ports ${(task.ports ?? []).join(", ")}`],
    ["Resources", needs], ["Attempt", task.attempt], ["Failures", failures(known.watched.job, name)],
    ["ClusterSpec's version", task.epoch], ["Launched", task.launched_at && moment(task.launched_at, known.now)],
    ["Mesos task", task.task_id], ["Reason", task.reason], ["Message", task.message],
    ["Why it was killed", task.kill_reason], ["Exit code", task.report?.exit_code], ["Hint", task.report?.hint],
    ["Waits for", task.report?.waiting_for?.join(", ")],
  ].filter(([, value]) => value != null && value !== "");
  const is_paused = known.watched.job.paused.includes(name);
  return html`<p><a href="#/tasks">All tasks</a></p><h3>${name}</h3>
    <dl class="facts">${rows.map(([title, value]) => html`<div key=${title}><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>
    ${task.evidence && html`<h4>How it ended</h4><p>${task.evidence.summary}</p>
      <pre tabindex="0">${task.evidence.last_lines.join("\n")}</pre>`}
    ${incidents(known.watched.job.incidents.filter((incident) => incident.task === name), known.now)}
    <p><a href=${`#/logs/${escaped(name)}`}>Its logs</a></p>
    ${!known.watched.kept && html`<p class="buttons">${VERBS.filter(([verb]) => verb !== (is_paused ? "pause" : "resume")).map(([verb, title, text]) => html`
      <button type="button" key=${verb} onClick=${() => act.order(`${title} ${name}`, text, `v1/pod/${escaped(name)}/${verb}`)}>${title}</button>`)}</p>`}`;
}

/** What the options give a task of its role. */
function resources(known, act, name) {
  act.fetch("v1/configurations/target", known.watched.job.configuration);
  const roles = known.answers["v1/configurations/target"]?.body?.spec?.roles ?? [];
  const found = roles.find((role) => name.replace(/^slot-\d+-/, "").replace(/-\d+$/, "") === role.role)?.resources;
  return found && `${number(found.cpus)} cpus, ${number(found.mem)} MB memory, ${number(found.disk)} MB disk, ${number(found.gpus ?? 0)} GPUs`;
}
