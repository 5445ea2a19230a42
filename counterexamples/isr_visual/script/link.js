// The address of what is shown: written, followed, and what to say where it does not fit.

/** @type {(trace: Trace, view: View) => string} */
function linkTo(trace, view) {
  const { about } = trace;
  const parts = new URLSearchParams({ t: String(view.at) });
  if (view.trail.length) parts.set("way", placesOn(trace, view).join("."));
  if (view.property) parts.set("p", view.property);
  parts.set("model", about.model_hash || "none");
  parts.set("trace", about.digest.slice(0, 12));
  return `#${parts}`;
}

/**
 * Of each step of the reader's own way, which of the possible ones it is.
 * @type {(trace: Trace, view: View) => number[]}
 */
function placesOn(trace, view) {
  const model = /** @type {Model} */ (trace.model);
  let state = trace.about.states[view.at];
  return view.trail.map((way) => {
    const k = waysFrom(model, state).findIndex((w) => w.action === way.action && w.parameters === way.parameters);
    state = way.to;
    return k;
  });
}

/**
 * Where an address leads among these traces; null where it names no step.
 * @type {(hash: string, traces: Trace[]) => Link | null}
 */
function linkFrom(hash, traces) {
  const parts = new URLSearchParams(hash.slice(1));
  const t = parts.get("t");
  if (t === null) return null;
  const place = traces.findIndex((trace) => trace.about.digest.startsWith(parts.get("trace") || "-"));
  const n = Math.max(0, place);
  const step = Number(t);
  const fits = Number.isInteger(step) && step >= 0 && step <= traces[n].last;
  return {
    n,
    at: fits ? step : 0,
    property: parts.get("p"),
    way: parts.get("way") ?? "",
    model: parts.get("model"),
    trace: parts.get("trace"),
    foreign: place < 0,
    beyond: fits ? null : t,
  };
}

/**
 * The reader's own way that an address names, as far as there is one.
 * @type {(trace: Trace, at: number, text: string) => Way[]}
 */
function wayAlong({ model, about }, at, text) {
  /** @type {Way[]} */
  const trail = [];
  let state = about.states[at] ?? null;
  for (const k of text.split(".").filter(Boolean).map(Number)) {
    const way = model && state ? waysFrom(model, state)[k] : undefined;
    if (!way) break;
    trail.push(way);
    state = way.to;
  }
  return trail;
}

/**
 * What a reader must hear before trusting this page, or the link that led here.
 * @type {(trace: Trace, link: Link | null) => Content}
 */
function banners({ about, intact, itf }, link) {
  const lines = [];
  const distrust = "Do not trust what it shows.";
  if (!intact)
    lines.push(`The states in this file are not those that it was made with: its checksum does not fit. ${distrust}`);
  const named = itf["#meta"]?.model_hash ?? "";
  const own = about.model_hash || "none";
  if (about.model_hash && named !== about.model_hash)
    lines.push(`The trace names model ${named || "none"}, this page ${about.model_hash}. ${distrust}`);
  if (about.mismatch) lines.push(`The model has changed since: ${about.mismatch}`);
  if (link?.model && link.model !== own)
    lines.push(`The link was made for model ${link.model}; this file is of model ${own}.`);
  else if (link?.trace && link.foreign)
    lines.push("The link was made for another trace of this model; its steps need not be these.");
  if (link?.beyond) lines.push(`The link leads to step ${link.beyond}, which this trace does not have.`);
  return lines.map((text) => h("p", { class: "banner", role: "alert" }, text));
}
