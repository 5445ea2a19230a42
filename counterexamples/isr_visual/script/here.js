// The state that is shown: of the trace, or of a way of the reader's own.

/** @type {Here} */
const NOWHERE = {
  branch: false,
  at: 0,
  off: 0,
  values: {},
  before: null,
  changes: [],
  lost: [],
  broken: [],
  action: "",
  parameters: "",
  actor: "",
  peer: "",
  says: "",
  role: "",
};

/**
 * The state of the model that is shown; null where the model is not in the file.
 * @type {(trace: Trace, view: View) => State | null}
 */
const stateShown = (trace, view) => view.trail.at(-1)?.to ?? trace.about.states[view.at] ?? null;

/**
 * Everything about the state that is shown.
 * @type {(trace: Trace, view: View) => Here}
 */
function hereOf(trace, view) {
  const { at, trail } = view;
  if (trail.length) return offTheTrace(trace, view);
  const step = trace.step(at);
  return {
    branch: false,
    at,
    off: 0,
    values: trace.values(at),
    before: at ? trace.values(at - 1) : null,
    changes: step?.changes ?? [],
    lost: trace.about.lost[at],
    broken: trace.breaksAt(at),
    action: step?.action ?? "",
    parameters: step?.parameters ?? "",
    actor: step?.actor ?? "",
    peer: step?.peer ?? "",
    says: step?.says ?? "",
    role: step?.role ?? "",
  };
}

/**
 * The last state of the reader's own way, which has one step at least.
 * @type {(trace: Trace, view: View) => Here}
 */
function offTheTrace(trace, { at, trail }) {
  const model = /** @type {Model} */ (trace.model);
  const way = trail[trail.length - 1];
  const from = trail.at(-2)?.to ?? trace.about.states[at];
  const values = valuesOf(model, way.to);
  const before = valuesOf(model, from);
  return {
    ...NOWHERE,
    branch: true,
    at,
    off: trail.length,
    values,
    before,
    changes: changesBetween(before, values),
    lost: new Roles(trace.about.roles, values).losses(),
    broken: way.breaks,
    action: way.action,
    parameters: way.parameters,
  };
}

/**
 * The state in a sentence or two, for whoever listens.
 * @type {(here: Here) => string}
 */
function narration(here) {
  const what = `${here.branch ? "Off the trace" : `T${here.at}`}: ${words(here.action) || "start"}.`;
  return [what, here.says, ...here.lost].filter(Boolean).join(" ");
}
