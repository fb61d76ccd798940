// The machines that were bought for the service: what there is, what it costs, why nothing comes.
import { Chart } from "../charts/chart.js";
import { html } from "../html.js";
import { moment } from "../time.js";
import { duration, number } from "../words.js";

const PATH = "v1/capacity";
const PERIOD = 5;
const NONE = [];

/** @param {any} known @param {any} act */
export function capacity(known, act) {
  act.fetch(PATH, Math.floor(known.now / PERIOD));
  const { body, problem } = known.answers[PATH] ?? {};
  if (problem) return html`<p class="bad">${problem}</p>`;
  if (!body) return html`<p role="status">Asking …</p>`;
  const { total, lines, over_time } = body.bill;
  const facts = [
    ["Machines", number(body.machines.length)], ["An hour of them", number(body.price_per_hour)], ["Spent", total.paid],
    ["Budget", body.budget == null ? "none" : number(body.budget)], ["On demand instead", total.on_demand], ["Saved", total.saved],
  ];
  return html`<dl class="facts">${facts.map(([title, value]) => html`<div key=${title}><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>
    ${Object.entries(body.waits).map(([gang, why]) => html`<p class="bad" key=${gang}>Nothing is bought for ${gang}: ${why}</p>`)}
    ${body.backing_off.map((one) => html`<p class="bad" key=${one.what}>${one.what} is tried again ${moment(one.until, known.now)}: ${one.why}</p>`)}
    <section><h3>Machines</h3>${machines(body.machines, known.now, "There are none.")}</section>
    ${body.ordered.length > 0 && html`<section><h3>Ordered</h3><ul>${body.ordered.map((one) => html`<li key=${one.purchase_id}>${one.count} × ${one.instance_type}
      in ${one.zone}, ${one.market}, for ${one.gangs.join(", ")}, ordered ${moment(one.ordered_at, known.now)} ${one.trouble}</li>`)}</ul></section>`}
    <section><h3>The bill</h3>
      ${over_time.length > 1 && html`<${Chart} metric="paid" by="time" curves=${curves(over_time)} tasks=${["all machines"]} incidents=${NONE} />`}
      ${bill([...lines, { instance_type: "All", market: "", ...total }])}</section>
    ${body.ended.length > 0 && html`<section><h3>Given back</h3>${machines([...body.ended].reverse(), known.now)}</section>`}`;
}

/** The bill over time as points of a curve; the same ones for the same bill. */
const drawn = new WeakMap();
function curves(over_time) {
  if (!drawn.has(over_time)) {
    drawn.set(over_time, { "all machines": over_time.map((one) => ({ at: one.at, step: null, metrics: { paid: Number(one.paid) } })) });
  }
  return drawn.get(over_time);
}

function machines(found, now, nothing) {
  if (!found.length) return html`<p class="muted">${nothing}</p>`;
  return table("Machines", ["Machine", "Type", "Zone", "Market", "State", "For", "Since", "An hour", "Cost", "Why"], found.map((one) => [
    one.machine_id, one.instance_type, one.zone, one.market, one.state, one.gangs.join(", "),
    duration((one.ended_at ?? now) - one.ordered_at), number(one.price_per_hour), number(one.cost), one.why]));
}

function bill(lines) {
  return table("The bill", ["Type", "Market", "Machines", "Hours", "Idle hours", "Lost hours", "Paid", "On demand"], lines.map((one) => [
    one.instance_type, one.market, number(one.machines), ...[one.seconds, one.idle_seconds, one.lost_seconds].map((s) => (s / 3600).toFixed(2)),
    one.paid, one.on_demand]));
}

function table(title, heads, rows) {
  return html`<div class="wide" tabindex="0" role="region" aria-label=${title}><table>
    <thead><tr>${heads.map((head) => html`<th scope="col" key=${head}>${head}</th>`)}</tr></thead>
    <tbody>${rows.map(([first, ...more], i) => html`<tr key=${i}><th scope="row">${first}</th>${more.map((value, j) => html`<td key=${j}>${value}</td>`)}</tr>`)}</tbody></table></div>`;
}
