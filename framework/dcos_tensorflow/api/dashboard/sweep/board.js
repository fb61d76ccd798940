// The trials of a sweep as rows: what the API tells of them, in the order of its board. Pure.
// Which trial is better than another, and what a trial's state is called, the API says
// (workloads/sweep/leaderboard.py), so that page, command line and CSV say the same.
import { fits, filterOf } from "../filter.js";

/**
 * @typedef {{number: number, state: string, value: number | null, step: number | null, rank: number | null,
 *   seconds: number | null, cells: Record<string, any>, unit: any}} Row
 * @typedef {{metric: string, goal: string, names: string[], columns: string[], logarithmic: string[], rows: Row[], best: Row | null, range: [number, number], total: number}} Board
 */

/** What was worked out of an answer, until there is another one. @type {WeakMap<any, Board>} */
const worked = new WeakMap();

/** @param {any} body of `v1/units` @returns {Board} */
export function boardOf(body) {
  if (!worked.has(body)) worked.set(body, made(body));
  return worked.get(body);
}

function made({ units, objective, total }) {
  const names = [...new Set(units.flatMap((one) => Object.keys(one.parameters ?? {})))];
  const rows = [...units].sort((a, b) => a.place - b.place).map((unit) => row(unit, objective.metric, names));
  const values = rows.flatMap(({ unit, value }) => [...(unit.points ?? []).map(([, told]) => told), value]);
  return {
    metric: objective.metric,
    goal: objective.goal,
    names,
    columns: ["trial", objective.metric, "state", ...names, "time", "tries"],
    logarithmic: objective.logarithmic ?? [],
    rows,
    best: rows.find((one) => one.rank != null && one.value != null) ?? null,
    range: usual(values.filter(isNumber)),
    total,
  };
}

const isNumber = (value) => typeof value === "number";

/** @returns {Row} */
function row(unit, metric, names) {
  const told = unit.value ?? unit.measured?.value;
  const value = isNumber(told) ? told : null;
  const seconds = unit.ended_at && unit.begun_at ? unit.ended_at - unit.begun_at : null;
  const parameters = Object.fromEntries(names.map((name) => [name, unit.parameters?.[name] ?? null]));
  return {
    number: unit.number,
    state: unit.word,
    value,
    step: unit.value == null ? unit.measured?.step ?? null : null,
    rank: unit.word === "finished" ? unit.place + 1 : null,
    seconds,
    cells: { ...parameters, trial: unit.number, [metric]: value ?? told, state: unit.word, time: seconds, tries: unit.tries, why: unit.why },
    unit,
  };
}

/** How many there are in each state. @param {Row[]} rows */
export function countsOf(rows) {
  const counts = new Map();
  for (const { state } of rows) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts];
}

/** The best value up to each finished trial, by its number. @param {Board} board */
export function bestSoFar({ rows, metric }) {
  const finished = rows.filter((one) => one.rank != null && one.value != null).sort((a, b) => a.number - b.number);
  let best = finished[0];
  return finished.map((one) => {
    if (one.rank < best.rank) best = one;
    return { at: one.number, step: one.number, metrics: { [metric]: best.value } };
  });
}

/**
 * The range that most values are in: an outlier must not flatten all others.
 * @param {number[]} values @returns {[number, number]}
 */
export function usual(values) {
  if (!values.length) return [0, 1];
  const sorted = [...values].sort((a, b) => a - b);
  const [least, most] = [sorted[0], sorted.at(-1)];
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  const [low, high] = [at(0.1), at(0.9)];
  const beyond = (high - low) * 1.5;
  return beyond > 0 ? [Math.max(least, low - beyond), Math.min(most, high + beyond)] : [least, most];
}

/** @type {WeakMap<Board, {key: string, found: {rows: Row[], filter: any}}>} */
const chosen = new WeakMap();

/**
 * Returns the rows that a filter asks for, sorted; the same list until something of it changes.
 * @param {Board} board @param {{filter: string, by: string, down: boolean}} choice
 */
export function chosenOf(board, { filter: text, by, down }) {
  const key = JSON.stringify([text, by, down]);
  const before = chosen.get(board);
  if (before?.key === key) return before.found;
  const filter = filterOf(text, board.columns);
  const rows = board.rows.filter((one) => fits(filter, one.cells));
  if (by) rows.sort((a, b) => inOrder(a.cells[by], b.cells[by], down) || a.unit.place - b.unit.place);
  const found = { rows, filter };
  chosen.set(board, { key, found });
  return found;
}

/** What is not there is last, whichever way. */
function inOrder(a, b, down) {
  if (a == null || b == null) return (a == null) - (b == null);
  if (isNumber(a) !== isNumber(b)) return isNumber(a) ? -1 : 1;
  const order = isNumber(a) ? a - b : String(a).localeCompare(String(b));
  return down ? -order : order;
}
