// Asks for the units of work of a service: the trials of a sweep, the shards of a batch.

const PATH = "v1/units";
/** How often they are asked for, in seconds: more seldom the more there are. */
const period = (total) => Math.max(5, Math.ceil(total / 500));

/** Returns the answer, asked for anew when a unit has begun or ended. @param {any} known @param {any} act */
export function asked(known, act) {
  const { counts } = known.watched.job.units;
  const all = Object.values(counts).reduce((a, b) => a + b, 0);
  // And for what trials measure meanwhile.
  const pace = known.watched.kept ? 0 : Math.floor(known.now / period(all));
  act.fetch(PATH, all > 1000 ? String(pace) : JSON.stringify(counts) + pace);
  return known.answers[PATH] ?? {};
}
