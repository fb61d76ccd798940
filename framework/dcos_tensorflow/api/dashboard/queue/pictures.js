// The pictures of the queue's page: what each team has of what is its own, its share over time, and
// the machines with the jobs that ran on them. SVG of the page's own colours; each is told in words.
import { html } from "../html.js";
import { clock, duration } from "../words.js";

const WIDTH = 1000;
/** The colours of teams, in their order; more teams than colours share them. */
const COLOURS = 4;
/** So many machines have a row; the others are counted. */
const MOST_ROWS = 40;
const ROW = 16;

/** @param {number} part */
function percent(part) {
  return `${Math.round(100 * part)} %`;
}

/** @param {any[]} teams @param {string} name */
function colour(teams, name) {
  return `curve-${Math.max(teams.findIndex((team) => team.team === name), 0) % COLOURS}`;
}

/** @param {any[]} teams */
export function teamBars(teams) {
  return html`<dl class="teams">${teams.map((team) => html`<div key=${team.team}>
    <dt><span class=${colour(teams, team.team)}>●</span> ${team.team}${team.frozen ? " (frozen)" : ""}</dt>
    <dd><svg class="share" viewBox="0 0 100 10" preserveAspectRatio="none" role="img"
        aria-label=${`${team.team} has ${percent(team.share)} of the cluster; ${percent(team.guarantee)} is its own`}>
        <rect class="cell" width="100" height="10" />
        <rect class=${`bar ${colour(teams, team.team)}`} width=${100 * Math.min(team.share, 1)} height="10" />
        ${team.guarantee > 0 && html`<rect class="mark" x=${100 * team.guarantee - 0.4} width=".8" height="10" />`}</svg>
      has ${percent(team.share)}, is due ${percent(team.due)}${team.borrowed > 0.005 ? `, borrows ${percent(team.borrowed)}` : ""}
      <span class="muted">${`; guarantee ${percent(team.guarantee)}, limit ${percent(team.limit)}; ${team.running} run, ${team.waiting} wait`}</span></dd></div>`)}</dl>`;
}

/** Each team's share as steps. @param {any[]} history @param {any[]} teams */
export function sharesOverTime(history, teams) {
  const samples = history.filter((event) => event.what === "shares");
  if (samples.length < 2) return html`<p class="muted">Nothing has changed yet.</p>`;
  const first = samples[0].at;
  const span = Math.max(samples.at(-1).at - first, 1);
  const x = (at) => ((at - first) / span) * WIDTH;
  const path = (name) => samples.map((event, index) =>
    `${index ? `H${x(event.at).toFixed(1)}V` : `M${x(event.at).toFixed(1)} `}${(100 - 100 * (event.shares[name] ?? 0)).toFixed(1)}`).join("");
  const told = teams.map((team) => `${team.team} ${percent(samples.at(-1).shares[team.team] ?? 0)}`).join(", ");
  return html`<figure><svg class="shares-time" viewBox=${`0 0 ${WIDTH} 100`} preserveAspectRatio="none" role="img" aria-label=${`Shares of the teams over ${duration(span)}; now ${told}`}>
      ${[0, 50, 100].map((y) => html`<line class="axis" x1="0" x2=${WIDTH} y1=${y} y2=${y} />`)}
      ${teams.map((team) => html`<path key=${team.team} class=${`line ${colour(teams, team.team)}`} d=${path(team.team)} />`)}</svg>
    <figcaption class="key">${teams.map((team) => html`<span class=${colour(teams, team.team)}>${team.team}</span>`)}
      <span class="muted">${clock(first)} to ${clock(samples.at(-1).at)}; lines at 0, 50 and 100 %</span></figcaption></figure>`;
}

/** The stays of jobs on machines, of the events of their beginnings and ends. @param {any[]} history @param {number} now */
export function stays(history, now) {
  const open = new Map();
  const found = [];
  for (const event of history) {
    if (event.what === "begins") open.set(event.job, event);
    else if (["gave way", "succeeded", "failed", "cancelled"].includes(event.what) && open.has(event.job)) {
      const begun = open.get(event.job);
      open.delete(event.job);
      found.push({ ...begun, until: event.at, end: event.what, why: event.why });
    }
  }
  for (const begun of open.values()) found.push({ ...begun, until: now, end: "runs", why: begun.why });
  return found;
}

/** @param {any[]} history @param {any[]} teams @param {number} span */
export function timeline(history, teams, span) {
  const now = Date.now() / 1000;
  const found = stays(history, now);
  if (found.length === 0) return html`<p class="muted">No job has run here yet.</p>`;
  const first = Math.max(Math.min(...found.map((stay) => stay.at)), now - span);
  const scale = WIDTH / Math.max(now - first, 1);
  const machines = [...new Set(found.flatMap((stay) => stay.machines))].sort();
  const rows = machines.slice(0, MOST_ROWS);
  const gave = found.filter((stay) => stay.end === "gave way");
  return html`<figure><svg class="timeline" viewBox=${`0 0 ${WIDTH} ${ROW * rows.length}`} preserveAspectRatio="none" style=${{ height: `${ROW * rows.length}px` }} role="img"
      aria-label=${`${found.length} stays of jobs on ${machines.length} machines in ${duration(now - first)}; ${gave.length} ended because another team was due`}>
      ${rows.map((machine, row) => html`<g key=${machine}>${found.filter((stay) => stay.machines.includes(machine) && stay.until >= first).map((stay) => html`<rect
        class=${`bar ${colour(teams, stay.team)} ${stay.end === "gave way" ? "gave-way" : ""}`}
        x=${Math.max(stay.at - first, 0) * scale} width=${Math.max((stay.until - Math.max(stay.at, first)) * scale, 1)} y=${ROW * row + 1} height=${ROW - 2}>
        <title>${`${stay.job} of ${stay.team} ${stay.end === "runs" ? "runs" : stay.end}: ${stay.why}`}</title></rect>`)}</g>`)}</svg>
    <figcaption class="muted">A row is a machine${machines.length > rows.length ? `, ${machines.length - rows.length} more are not shown` : ""}; ${clock(first)} to now.</figcaption></figure>
    ${gave.length > 0 && html`<ul>${gave.slice(-20).reverse().map((stay) => html`<li>${clock(stay.until)} <strong>${stay.job}</strong> of ${stay.team} gave way: ${stay.why}</li>`)}</ul>`}`;
}
