// The step beside the scene: what was done, in words; what it changed, to the cell; the code that ran.

/** @type {(change: Change) => HTMLElement} */
function changeRow(change) {
  const kind = !change.before ? "added" : !change.after ? "removed" : "changed";
  const sign = { added: "+", removed: "−", changed: "→" }[kind];
  return h(
    "tr",
    { class: kind, "data-path": change.path, "data-before": change.before, "data-after": change.after },
    h("th", { scope: "row" }, h("code", {}, change.path)),
    h("td", {}, change.before ? h("del", {}, change.before) : null),
    h("td", { class: "arrow-sign", "aria-label": kind }, sign),
    h("td", {}, change.after ? h("ins", {}, change.after) : null),
  );
}

/**
 * What changed; `hidden` are variables that the reader does not want to see.
 * @type {(changes: Change[], hidden: Set<string>) => HTMLElement}
 */
function changeTable(changes, hidden) {
  const shown = changes.filter((c) => !hidden.has(c.path.split(/[[.]/)[0]));
  if (!shown.length)
    return h(
      "p",
      { class: "quiet" },
      changes.length ? "Only hidden variables change." : "Nothing that is recorded changes.",
    );
  return h(
    "table",
    { class: "changes" },
    h("caption", { class: "unseen" }, "What this step changed"),
    h("tbody", {}, shown.map(changeRow)),
  );
}

/**
 * Code with line numbers; lines that write a changed variable are marked.
 * @type {(source: Source | null, changes?: Change[]) => HTMLElement | null}
 */
function codeBlock(source, changes) {
  if (!source || !source.text) return null;
  const lit = new Set((changes || []).map((c) => c.path.split(/[[.]/)[0])),
    state = { open: false };
  const lines = source.text.split("\n").map((line, i) => {
    const written = /\bnew\.(\w+)/.exec(line),
      marked = written && lit.has(written[1]) && !state.open;
    return h(
      "span",
      { class: `line${marked ? " lit" : ""}` },
      h("i", { "aria-hidden": "true" }, String(source.line + i)),
      pythonLine(line, state),
      "\n",
    );
  });
  return h(
    "figure",
    { class: "code" },
    h("figcaption", {}, `${source.file}, line ${source.line}`),
    h("pre", { tabindex: "0", "aria-label": `source, ${source.file}` }, h("code", {}, lines)),
  );
}

/**
 * A question to answer before an eventful step is shown.
 * @type {(trace: Trace, i: number) => string}
 */
function questionAbout(trace, i) {
  const step = trace.step(i);
  const events = step?.events ?? [];
  const about = `${words(step?.action ?? "") || "The next step"}${step?.parameters ? ` (${step.parameters})` : ""}.`;
  if (events.includes("loss"))
    return `${about} Which record that was promised is in danger after it, and where is its last copy?`;
  if (events.includes("leader")) return `${about} Who leads after it, and does its log have every acknowledged record?`;
  if (events.includes("acked"))
    return `${about} Which producer gets its acknowledgement, and how many logs hold the record?`;
  if (events.includes("role")) return `${about} Whose state does it change, and who leads after it?`;
  if (events.includes("vote")) return `${about} For whom is the vote, and may it be given?`;
  if (events.includes("high watermark")) return `${about} Whose watermark moves, and how far?`;
  if (events.includes("isr")) return `${about} Who is in sync after it?`;
  return `${about} What does it change?`;
}

class StepPanel {
  /**
   * @param {Trace} trace
   * @param {View} view
   * @param {boolean} withCode
   */
  constructor(trace, view, withCode = true) {
    this.trace = trace;
    this.view = view;
    this.withCode = withCode;
  }

  draw() {
    const { here } = this.view;
    const name = here.action
      ? words(here.action)
      : here.branch
        ? "a step"
        : here.at === 0
          ? this.trace.about.anywhere
            ? "somewhere"
            : "start"
          : plural(here.changes.length, "change");
    const loop = this.trace.about.loop,
      marks = [];
    if (here.role) marks.push(h("span", { class: `role ${here.role}`, title: ROLE_SIGNS[here.role][1] }, here.role));
    if (!here.branch && loop !== null && here.at >= loop && here.at > 0)
      marks.push(
        h("span", { class: "role loop" }, loop === this.trace.last ? "then nothing, for ever" : "in the loop"),
      );
    const who = [here.actor, here.peer].filter(Boolean).join(" → ");
    return [
      h(
        "p",
        { class: "eyebrow" },
        here.branch ? `what if, ${plural(here.off, "step")} after T${here.at}` : `T${here.at} of ${this.trace.last}`,
        marks,
      ),
      h("h2", { class: "action-name" }, name),
      here.parameters || who
        ? h(
            "p",
            { class: "who" },
            who ? h("b", {}, who) : null,
            here.parameters ? h("code", {}, here.parameters) : null,
          )
        : null,
      here.says ? h("p", { class: "says" }, here.says) : null,
      this.failure(),
      here.lost.map((line) => h("p", { class: `loss${line.startsWith("LOST") ? "" : " unavailable"}` }, line)),
      here.at > 0 || here.branch
        ? [h("h3", {}, "What changed"), changeTable(here.changes, this.view.hidden)]
        : this.settings(),
      this.withCode ? this.code() : null,
    ];
  }

  failure() {
    const broken = this.view.here.broken;
    return broken.length
      ? h(
          "p",
          { class: "broken" },
          "Broken here: ",
          broken.map((p, i) => [i ? ", " : "", h("b", {}, p)]),
        )
      : null;
  }

  /** At the start: the bounds and settings under which all this happens. */
  settings() {
    const bounds = Object.entries(this.trace.about.bounds);
    if (!bounds.length) return null;
    /** @type {(v: Json) => string} */
    const shown = (v) => (v === true ? "on" : v === false ? "off" : String(v));
    return [
      h("h3", {}, "Bounds and settings"),
      h(
        "ul",
        { class: "bounds" },
        bounds.map(([k, v]) => h("li", {}, h("span", {}, words(k)), h("b", {}, shown(v)))),
      ),
      this.trace.about.changed.map((line) => h("p", { class: "quiet" }, line)),
    ];
  }

  code() {
    const source = this.trace.about.actions[this.view.here.action];
    if (!source || !source.text) return null;
    return [
      h("h3", {}, "The code that ran"),
      codeBlock(source, this.view.here.changes),
      source.helpers.map((name) => this.helper(name, this.view.here.changes)),
    ];
  }

  /**
   * A definition that the action uses; its code is made when somebody wants to see it.
   * @type {(name: string, changes: Change[]) => HTMLElement}
   */
  helper(name, changes) {
    const box = h("details", { class: "helper" }, h("summary", {}, "with ", h("code", {}, name.split(".").pop())));
    box.addEventListener(
      "toggle",
      () => box.childElementCount > 1 || box.append(...flat(codeBlock(this.trace.about.helpers[name], changes))),
    );
    return box;
  }
}
