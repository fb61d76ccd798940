// The gang as a picture: who talks to whom, and whom the last incident took along. The same is told
// in words below it.
import { html } from "../html.js";
import { counted } from "../words.js";

/** Larger gangs are drawn by their first members. */
const MOST_NODES = 24;
/** In a row; nodes keep their size on a phone, where more than three of them are scrolled. */
const PER_ROW = 8;
const LEAST_PER_ROW = 3;
const COLUMN = 100;
const ROW = 90;
/** Roles that serve: all others of the gang talk to them. */
const SERVERS = new Set(["ps"]);
/** Roles that are not of the gang. */
const SIDECARS = new Set(["evaluator", "tensorboard", "data-dispatcher", "data-worker"]);

const roleOf = (name) => name.replace(/-\d+$/, "").replace(/^slot-\d+-/, "");
/** The gang of a task: that of its slot, where the service has units of work. */
const gangOf = (name) => /^slot-\d+/.exec(name)?.[0] ?? "";

/** @param {any} job */
export function gang(job) {
  const members = Object.keys(job.tasks).filter((name) => !SIDECARS.has(roleOf(name)));
  const drawn = members.slice(0, MOST_NODES);
  const last = job.incidents.at(-1);
  const taken = new Set(last ? [...last.collateral, ...job.restarting] : job.restarting);
  const servers = drawn.filter((name) => SERVERS.has(roleOf(name)));
  const others = drawn.filter((name) => !SERVERS.has(roleOf(name)));
  const { place, width } = servers.length || others.some(gangOf) ? inRows(servers, others) : inRing(others);
  const height = Math.max(...Object.values(place).map(([, y]) => y), 0) + 45;
  const lines = edges(servers, others);
  return html`<figure>
    <div class="wide" tabindex="0" role="region" aria-label="The gang">
    <svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="img" aria-labelledby="gang-told">
      ${lines.map(([a, b]) => html`<line key=${a + b} class="edge" x1=${place[a][0]} y1=${place[a][1]} x2=${place[b][0]} y2=${place[b][1]} />`)}
      ${last && place[last.task] && [...taken].filter((name) => place[name] && name !== last.task).map((name) => html`<path key=${`to ${name}`} class="took" d=${arrow(place[last.task], place[name])} />`)}
      ${drawn.map((name) => html`<g key=${name} class=${`node ${kind(name, job, last, taken)}`} transform=${`translate(${place[name].join()})`}>
        <circle r="16" /><text y="32">${name}</text></g>`)}
    </svg></div>
    <figcaption id="gang-told">${told(job, members, servers, others, last, taken)}</figcaption>
  </figure>`;
}

/** Servers above those who talk to them, or slots beside each other. */
function inRows(servers, others) {
  const width = COLUMN * Math.min(PER_ROW, Math.max(LEAST_PER_ROW, servers.length, others.length));
  const place = {};
  let y = 30;
  for (const names of [servers, others]) {
    for (let begin = 0; begin < names.length; begin += PER_ROW, y += ROW) {
      const row = names.slice(begin, begin + PER_ROW);
      row.forEach((name, index) => { place[name] = [(index + 0.5) * (width / row.length), y]; });
    }
  }
  return { place, width };
}

/** Equals: so that each line between two of them is seen. */
function inRing(names) {
  const around = Math.max(COLUMN, names.length * 14);
  const place = {};
  names.forEach((name, index) => {
    const angle = Math.PI * ((2 * index + 1) / names.length - 0.5);
    place[name] = [Math.round(around * (1 + Math.sin(angle)) + 50), Math.round(30 + 0.75 * around * (1 - Math.cos(angle)))];
  });
  return { place, width: 2 * around + 100 };
}

/** With servers everybody talks to these; without them to each other. */
function edges(servers, others) {
  const pairs = servers.length
    ? servers.flatMap((one) => others.map((other) => [one, other]))
    : others.flatMap((one, index) => others.slice(index + 1).map((other) => [one, other]));
  return pairs.filter(([one, other]) => gangOf(one) === gangOf(other));
}

function kind(name, job, last, taken) {
  const part = last?.task === name ? "cause" : taken.has(name) ? "taken" : "";
  return `${part} ${job.tasks[name].state === "running" ? "running" : "waiting"}`;
}

function arrow([x1, y1], [x2, y2]) {
  return `M${x1},${y1} Q${(x1 + x2) / 2},${Math.max(y1, y2) + 50} ${x2},${y2}`;
}

function told(job, members, servers, others, last, taken) {
  const talk = members.some(gangOf) ? "Tasks of one slot talk to each other."
    : !members.length ? "There is no task yet."
    : servers.length
    ? `${counted(others.length, "task")} talk to ${counted(servers.length, "parameter server")}.`
    : others.length > 1 ? `${counted(others.length, "task")} talk to each other.` : "One task trains alone.";
  const rest = members.length > MOST_NODES ? ` The first ${MOST_NODES} of ${members.length} are drawn.` : "";
  const whole = !last ? " No incident so far."
    : ` Last incident: ${last.task}${taken.size ? `; with it died or restarted ${[...taken].filter((n) => n !== last.task).join(", ") || "no task"}` : "; no other task died of it"}.`;
  return talk + rest + whole;
}
