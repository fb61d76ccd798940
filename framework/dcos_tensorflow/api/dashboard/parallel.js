// The trials of a sweep as lines across their parameters and the objective (parallel coordinates).
// Pure. The leaderboard below it says the same in words.
import { html } from "./html.js";
import { number } from "./words.js";

const HEIGHT = 240;
const TOP = 20;
const BOTTOM = 200;
const BETWEEN = 120;
/** A parameter whose values lie further apart than this factor is drawn by its logarithm. */
const WIDE = 50;

/**
 * Returns the picture of trials that have a value, the best first; null where there is nothing to compare.
 * @param {any[]} ranked @param {string[]} names of the parameters @param {string} metric
 */
export function parallel(ranked, names, metric) {
  if (ranked.length < 2) return null;
  const axes = [...names.map((name) => axis(name, ranked.map((one) => one.parameters?.[name]))),
    axis(metric, ranked.map((one) => one.value))];
  const width = BETWEEN * axes.length;
  const x = (index) => (index + 0.5) * BETWEEN;
  const line = (trial) => axes.map(({ name, place }, i) =>
    `${i ? "L" : "M"}${x(i)},${place(i < names.length ? trial.parameters?.[name] : trial.value).toFixed(1)}`).join("");
  return html`<figure class="parallel wide" tabindex="0" role="region" aria-label="Parameters and objective">
    <svg width=${width} height=${HEIGHT} viewBox=${`0 0 ${width} ${HEIGHT}`} role="img"
      aria-label=${`Each of ${ranked.length} trials as a line across ${names.join(", ")} and ${metric}; the best is trial ${ranked[0].number}`}>
      ${axes.map(({ name, low, high }, i) => html`<g key=${name}><line class="axis" x1=${x(i)} x2=${x(i)} y1=${TOP} y2=${BOTTOM} />
        <text x=${x(i)} y="12">${high}</text><text x=${x(i)} y=${BOTTOM + 14}>${low}</text><text class="name" x=${x(i)} y=${BOTTOM + 32}>${name}</text></g>`)}
      ${[...ranked].reverse().map((trial) => html`<path key=${trial.number} class=${trial === ranked[0] ? "trial best" : "trial"} d=${line(trial)}><title>Trial ${trial.number}: ${number(trial.value)}</title></path>`)}
    </svg></figure>`;
}

/** How values of one name are placed, and what stands at the axis' ends. */
function axis(name, values) {
  const known = values.filter((value) => value != null);
  if (known.length && known.every((value) => typeof value === "number")) {
    const least = Math.min(...known);
    const most = Math.max(...known);
    const scale = least > 0 && most / least > WIDE ? Math.log : (value) => value;
    const span = scale(most) - scale(least) || 1;
    return { name, low: number(least), high: number(most),
      place: (value) => value == null ? BOTTOM : BOTTOM - ((scale(value) - scale(least)) / span) * (BOTTOM - TOP) };
  }
  const words = [...new Set(values.map(String))].sort();
  const step = (BOTTOM - TOP) / Math.max(1, words.length - 1);
  return { name, low: words[0], high: words.at(-1), place: (value) => BOTTOM - words.indexOf(String(value)) * step };
}
