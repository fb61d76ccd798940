// What is typed into a filter, as a question to rows: `lr<0.01 state:finished`, or plain words. Pure.
// Used by the tables of trials, of tasks and of runs; brushing an axis (sweep/parallel.js) types, too.

/** Words, and what quotation marks hold together. */
const PARTS = /(?:[^\s"]|"[^"]*"?)+/g;
const COMPARISON = /^([^<>=:]+)(<=|>=|<|>|=|:)(.*)$/;

/**
 * @typedef {{name: string, operator: string, value: string}} Term `name` is empty for a plain word
 * @typedef {{terms: Term[], problem: string}} Filter `problem` says what cannot be asked so
 */

/**
 * Returns what a text asks for. What is being typed, such as `lr<`, asks for nothing yet.
 * @param {string} text @param {string[]} names of the columns
 * @returns {Filter}
 */
export function filterOf(text, names) {
  const terms = [];
  const problems = [];
  for (const part of text.match(PARTS) ?? []) {
    const [, said, operator, rest] = COMPARISON.exec(part) ?? [];
    const name = names.find((one) => one.toLowerCase() === said?.replaceAll('"', "").toLowerCase());
    const value = (name ? rest : part).replaceAll('"', "");
    if (!name && operator && operator !== ":") problems.push(`there is no column ${said}; there are ${names.join(", ")}`);
    else if (name && "<=>=".includes(operator) && operator !== "=" && value && Number.isNaN(Number(value))) {
      problems.push(`${name}${operator} takes a number, not ${value}`);
    } else if (value) terms.push({ name: name ?? "", operator: name ? operator : "", value });
  }
  return { terms, problem: problems.join("; ") };
}

/**
 * Says whether a row is asked for.
 * @param {Filter} filter @param {Record<string, any>} cells by column
 */
export function fits({ terms }, cells) {
  return terms.every((term) => holds(term, cells));
}

/** @param {Term} term @param {Record<string, any>} cells */
function holds({ name, operator, value }, cells) {
  if (!name) return Object.values(cells).some((cell) => String(cell ?? "").toLowerCase().includes(value.toLowerCase()));
  const cell = cells[name];
  switch (operator) {
    case "<": return typeof cell === "number" && cell < Number(value);
    case "<=": return typeof cell === "number" && cell <= Number(value);
    case ">": return typeof cell === "number" && cell > Number(value);
    case ">=": return typeof cell === "number" && cell >= Number(value);
    default: return value.split("|").some((one) => is(cell, one, operator === ":"));
  }
}

/** @param {any} cell @param {string} value @param {boolean} part whether a part of a text will do */
function is(cell, value, part) {
  if (typeof cell === "number") return cell === Number(value);
  const [text, asked] = [String(cell ?? "").toLowerCase(), value.toLowerCase()];
  return part ? text.includes(asked) : text === asked;
}

/**
 * Returns a text with other terms of one column, and those of all others as they are.
 * @param {string} text @param {string} name @param {string[]} terms such as `<=3`; none asks for nothing
 */
export function withTerms(text, name, terms) {
  const others = (text.match(PARTS) ?? []).filter((part) => COMPARISON.exec(part)?.[1].replaceAll('"', "").toLowerCase() !== name.toLowerCase());
  return [...others, ...terms.map((term) => quoted(name) + term)].join(" ");
}

/** @param {string} text */
export function quoted(text) {
  return /\s/.test(text) ? `"${text}"` : text;
}
