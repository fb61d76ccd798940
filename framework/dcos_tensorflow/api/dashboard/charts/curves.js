// The points that the curves are drawn of: what the API has kept, and what has come since. Pure.

/**
 * @typedef {{at: number, step: number | null, metrics: Record<string, number>}} Point
 * @typedef {Record<string, Point[]>} Curves points by task, oldest first
 */

/** More points than this of one task are thinned out: no screen shows more. */
const MOST_POINTS = 2000;

/**
 * Returns the curves with what the API has kept; what it has forgotten stays.
 * @param {Curves} known @param {Record<string, any>} answer of `v1/curves`
 * @returns {Curves}
 */
export function withKept(known, answer) {
  const found = { ...known };
  for (const [task, columns] of Object.entries(answer)) {
    const points = columns.at.map((at, index) => ({
      at,
      step: columns.step[index],
      metrics: Object.fromEntries(
        Object.entries(columns.metrics)
          .map(([name, values]) => [name, values[index]])
          .filter(([, value]) => typeof value === "number"),
      ),
    }));
    found[task] = inOrder([...(known[task] ?? []), ...points]);
  }
  return found;
}

/**
 * Returns the curves with what the tasks tell now; the same object when that is nothing new.
 * @param {Curves} known @param {any} job
 * @returns {Curves}
 */
export function withNewest(known, job) {
  let found = known;
  for (const [task, name] of followed(known, job)) {
    const point = pointOf(job.tasks[task]?.report?.progress);
    const points = found[name] ?? [];
    if (point === null || points.at(-1)?.at === point.at) continue;
    found = { ...found, [name]: inOrder([...points, point]) };
  }
  return found;
}

/** The tasks whose points are taken, and what their curves are called: in a sweep by the trial. */
function followed(known, job) {
  if (job.units?.kind !== "trial") {
    const names = Object.keys(known).length ? Object.keys(known) : job.deciding_tasks;
    return names.map((name) => [name, name]);
  }
  return Object.entries(job.tasks)
    .filter(([name, task]) => task.unit != null && name.replace(/^slot-\d+-/, "") === job.deciding_tasks[0])
    .map(([name, task]) => [name, `trial-${task.unit}`]);
}

/** @param {any} progress @returns {Point | null} */
function pointOf(progress) {
  if (typeof progress?.at !== "number") return null;
  const { at, step, loss, accuracy, metrics, told_at = {} } = progress;
  // What was told at an earlier step is a point of that step, and was shown there.
  const told = Object.entries({ loss, accuracy, ...metrics }).filter(([name, v]) => typeof v === "number" && !(name in told_at));
  return step == null && !told.length ? null : { at, step: step ?? null, metrics: Object.fromEntries(told) };
}

/** @param {Point[]} points */
function inOrder(points) {
  const last = points.length - 1;
  // Almost always one point has come, and it is the newest.
  if (last > 0 && points[last].at > points[last - 1].at && points.length <= MOST_POINTS) return points;
  const by_time = new Map(points.map((point) => [point.at, point]));
  let sorted = [...by_time.values()].sort((a, b) => a.at - b.at);
  while (sorted.length > MOST_POINTS) sorted = sorted.filter((_, index) => index % 2 === 1 || index === sorted.length - 1);
  return sorted;
}

export const SPEED = "steps per second";

/** What was worked out of points that have not changed since. @type {WeakMap<Point[], Map<string, [number[], number[]]>>} */
const worked = new WeakMap();

/**
 * Returns what is drawn of one metric of one task. By step, what a restart has made void is not.
 * @param {Point[]} points @param {string} metric @param {"step" | "time"} by
 * @returns {[number[], number[]]}
 */
export function series(points, metric, by) {
  if (!worked.has(points)) worked.set(points, new Map());
  const known = worked.get(points);
  const key = `${by} ${metric}`;
  if (!known.has(key)) known.set(key, workedOut(points, metric, by));
  return known.get(key);
}

function workedOut(points, metric, by) {
  const x = [];
  const y = [];
  points.forEach((point, index) => {
    const value = metric === SPEED ? speedAt(points, index) : point.metrics[metric];
    const place = by === "step" ? point.step : point.at;
    if (value == null || place == null) return;
    while (x.length && x[x.length - 1] >= place) {
      x.pop();
      y.pop();
    }
    x.push(place);
    y.push(value);
  });
  return [x, y];
}

/** The steps per second since the point before; null where they are not known. */
function speedAt(points, index) {
  const before = points[index - 1];
  const point = points[index];
  if (!before || point.step == null || before.step == null) return null;
  const speed = (point.step - before.step) / (point.at - before.at);
  return speed > 0 ? speed : null;
}

/** The speed of the last minute, in steps per second; null where it is not known.
 * @param {Point[]} points */
export function speedNow(points) {
  const last = points.at(-1);
  if (!last || last.step == null) return null;
  const recent = points.filter((p) => p.step != null && last.at - p.at <= 60 && p.step <= last.step);
  const first = recent[0];
  return first && last.at > first.at ? (last.step - first.step) / (last.at - first.at) : null;
}

/** The metrics that there are curves of, loss and accuracy first. @param {Curves} curves */
export function metricsOf(curves) {
  const all = Object.values(curves);
  const found = new Set(["loss", "accuracy", ...all.flatMap(namesOf)]);
  return [...found].filter((name) => all.some((points) => has(points, name)));
}

/** Says whether a task has told a metric. @param {Point[]} points @param {string} metric */
export const has = (points, metric) => namesOf(points).includes(metric);

/** @type {WeakMap<Point[], string[]>} */
const names = new WeakMap();
function namesOf(points) {
  if (!names.has(points)) {
    const found = new Set();
    for (const point of points) for (const name in point.metrics) found.add(name);
    if (points.some((_, index) => speedAt(points, index) !== null)) found.add(SPEED);
    names.set(points, [...found]);
  }
  return names.get(points);
}
