// Curves, a chart for each metric, over steps or over time. Used by the views that show curves.
import { Chart } from "./chart.js";
import { has, metricsOf } from "./curves.js";
import { html } from "../html.js";

/**
 * Shows curves, a chart for each metric, with this run's incidents across them.
 * @param {any} known @param {any} act @param {import("./curves.js").Curves} found @param {string} title
 */
export function charts(known, act, found, title) {
  // One point is no curve: it stands among the numbers.
  const metrics = metricsOf(found).filter((name) =>
    Object.values(found).some((points) => points.filter((point) => name in point.metrics).length > 1));
  const heading = html`<h3 id="curves">${title}</h3>`;
  if (!metrics.length) {
    return html`<section>${heading}<p class="muted">The training has reported no metric yet.</p></section>`;
  }
  const has_steps = Object.values(found).some((points) => points.some((point) => point.step != null));
  const by = has_steps ? known.by : "time";
  return html`<section aria-labelledby="curves">${heading}
    <fieldset class="choice"><legend>over</legend>
      ${[["step", "steps"], ["time", "time"]].map(([value, told]) => html`<label key=${value}>
        <input type="radio" name="by" value=${value} checked=${by === value} disabled=${!has_steps && value === "step"}
          onChange=${() => act.know({ by: value })} /> ${told}</label>`)}
    </fieldset>
    <div class="charts">${metrics.map((metric) => html`<${Chart} key=${metric} metric=${metric} by=${by} curves=${found}
      tasks=${Object.keys(found).filter((task) => has(found[task], metric))}
      incidents=${known.watched.job.incidents} />`)}</div>
    ${known.watched.job.incidents.length > 0 && html`<p class="muted">Dashed lines are incidents of this run.</p>`}
  </section>`;
}
