// How numbers and times are written. Pure; imported by the views.

/** A space at which no line ends: in a narrow column each part would be a line. */
const JOINT = "\u00a0";

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
