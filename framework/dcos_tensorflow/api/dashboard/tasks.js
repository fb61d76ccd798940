// The tasks: where each runs, how far it is, how often it began, how it ended; and the gang as a picture.
import { escaped } from "./address.js";
import { gang } from "./gang.js";
import { Component, html } from "./html.js";
import { incidents } from "./overview.js";
import { moment } from "./time.js";
import { duration, number } from "./words.js";

const VERBS = [
  ["restart", "Restart", "Its process starts again in its container, with the tasks that have to restart too."],
  ["replace", "Replace", "It gets a new container, on another agent where there is one."],
  ["pause", "Pause", "Its process stops, with the tasks that would have to restart too. Its container stays."],
  ["resume", "Resume", "Its process starts again."],
];

/** So many tasks are listed at once. */
const MOST_ROWS = 200;

/** @param {any} known @param {any} act */
export function tasks(known, act) {
  const { job } = known.watched;
  const names = Object.keys(job.tasks);
  if (known.argument && job.tasks[known.argument]) return one(known, act, known.argument);
  return html`
    ${gang(job)}
    <h3>All tasks</h3>
    <div class="wide" tabindex="0" role="region" aria-label="All tasks"><table>
      <thead><tr>${["Task", "State", "Agent", "Attempt", "Failures", "Step", "Since", "What it tells"].map((title) => html`<th scope="col" key=${title}>${title}</th>`)}</tr></thead>
      <tbody>${names.slice(0, MOST_ROWS).map((name) => html`<${Row} key=${name} name=${name} task=${job.tasks[name]} since=${since(job.tasks[name], known.now)} />`)}</tbody>
    </table></div>
    ${names.length > MOST_ROWS && html`<p class="muted">The first ${MOST_ROWS} of ${number(names.length)} are listed.</p>`}`;
}

/** What a task is doing: the runner knows it better than Mesos does. */
function doing(task) {
  return task.state === "running" ? task.report?.state ?? task.state : task.state ?? "not launched";
}

/** For how long a task has been so. */
const since = (task, now) => task.changed_at ? duration(now - task.changed_at) : "–";

/** A row is drawn anew when its task has changed: there are many. */
class Row extends Component {
  shouldComponentUpdate(next) {
    return next.task !== this.props.task || next.since !== this.props.since;
  }

  render({ name, task, since }) {
    return html`<tr>
    <th scope="row"><a href=${`#/tasks/${escaped(name)}`}>${name}</a></th>
    <td><span class=${`badge ${task.state}`}>${doing(task)}</span></td>
    <td>${task.hostname ?? "–"}</td><td>${task.attempt}</td><td>${task.failures ?? 0}</td>
    <td>${number(task.report?.progress?.step)}</td>
    <td>${since}</td>
    <td>${end(task)}</td></tr>`;
  }
}

/** @param {any} task */
function end(task) {
  return task.evidence?.summary || task.report?.summary || task.message || task.kill_reason || "–";
}

/** @param {any} known @param {any} act @param {string} name */
function one(known, act, name) {
  const task = known.watched.job.tasks[name];
  const needs = resources(known, act, name);
  const rows = [
    ["State", doing(task)], ["Agent", task.hostname && `${task.hostname} (${task.agent_id})`],
    ["Address", task.address && `${task.address}, ports ${(task.ports ?? []).join(", ")}`],
    ["Resources", needs], ["Attempt", task.attempt], ["Failures", task.failures],
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
