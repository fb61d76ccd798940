// How numbers, times and the text of others are written. Pure; imported by the views.

/** A space at which no line ends: in a narrow column each part would be a line. */
const JOINT = "\u00a0";

/** Colours and weights of a terminal. */
const COLOURS = /\x1b\[[0-9;:]*m/g;
/** Controls (but for tab and line break), what turns the direction of text, and halves of characters. */
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/gu;

/**
 * Returns text of tasks, masters and agents as a person may be shown it: as the command line does
 * (`plugin/plain_text.py`, `escaped` with `lines`; a test holds the two to one another).
 * @param {string} text
 */
export function plain(text) {
  return text.replace(COLOURS, "").replace(CONTROLS, written);
}

/** @param {string} control */
function written(control) {
  if (control === "\r") return "\\r";
  const code = control.codePointAt(0);
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** @param {number | null | undefined} seconds */
export function duration(seconds) {
  if (seconds == null || !Number.isFinite(seconds)) return "–";
  const whole = Math.max(0, Math.round(seconds));
  const parts = [
    [Math.floor(whole / 86400), "d"],
    [Math.floor(whole / 3600) % 24, "h"],
    [Math.floor(whole / 60) % 60, "min"],
    [whole % 60, "s"],
  ];
  const first = parts.findIndex(([count]) => count);
  if (first < 0) return `0${JOINT}s`;
  return parts.slice(first, first + 2).filter(([n]) => n).map(([n, unit]) => `${n}${JOINT}${unit}`).join(JOINT);
}

/** @param {any} value */
export function number(value) {
  if (typeof value !== "number") return value == null ? "–" : String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return Number(value.toPrecision(4)).toString();
}

/** @param {number} bytes */
export function size(bytes) {
  const [unit, name] = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]].find(([least]) => bytes >= least) ?? [1, "bytes"];
  return `${number(bytes / unit)}${JOINT}${name}`;
}

/** @param {number | null | undefined} unix seconds */
export function clock(unix) {
  return unix ? new Date(unix * 1000).toLocaleString() : "–";
}

/** @param {number} count @param {string} noun */
export function counted(count, noun) {
  return `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
}
