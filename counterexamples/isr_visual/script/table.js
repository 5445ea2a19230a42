// The table: every variable, with what changed; filter, pin, hide, watch.

class VariableTable {
  /**
   * @param {Trace} trace
   * @param {View} view
   * @param {Acts} act
   */
  constructor(trace, view, act) {
    this.trace = trace;
    this.view = view;
    this.act = act;
  }

  draw() {
    const { here, hidden, pinned, changedOnly, filter } = this.view;
    const byVariable = new Map();
    for (const c of here.changes) {
      const name = c.path.split(/[[.]/)[0];
      byVariable.set(name, [...(byVariable.get(name) || []), c]);
    }
    /** @type {(v: About['variables'][number]) => boolean} */
    const wanted = (v) =>
      pinned.has(v.name) || (!hidden.has(v.name) && (!changedOnly || byVariable.has(v.name)) && this.says(v, filter));
    const listed = this.trace.about.variables.filter((v) => v.name in here.values && wanted(v));
    listed.sort((a, b) => Number(pinned.has(b.name)) - Number(pinned.has(a.name)));
    return [
      this.watches(),
      h(
        "table",
        { class: "variables" },
        h("caption", { class: "unseen" }, "Variables of this state"),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, "Variable"),
            h("th", { scope: "col" }, "Value"),
            h("th", { scope: "col" }, h("span", { class: "unseen" }, "Pin or hide")),
          ),
        ),
        h(
          "tbody",
          {},
          listed.map((v) => this.row(v, byVariable.get(v.name) || [])),
        ),
      ),
      listed.length
        ? null
        : h("p", { class: "quiet" }, changedOnly ? "No variable changes here." : "No variable matches."),
      hidden.size
        ? h(
            "p",
            { class: "quiet" },
            `Hidden: ${[...hidden].join(", ")}. `,
            button("Show all", { class: "link", onclick: () => this.act.showAll() }),
          )
        : null,
    ];
  }

  /** @type {(v: About['variables'][number], filter: string) => boolean} */
  says(v, filter) {
    if (!filter) return true;
    const text = `${v.name} ${v.about} ${textOf(this.view.here.values[v.name])}`.toLowerCase();
    return text.includes(filter.toLowerCase());
  }

  /** @type {(v: About['variables'][number], changes: Change[]) => HTMLElement} */
  row(v, changes) {
    const value = this.view.here.values[v.name],
      pinned = this.view.pinned.has(v.name);
    return h(
      "tr",
      { class: changes.length ? "changed" : "" },
      h("th", { scope: "row" }, h("code", {}, v.name), v.about ? h("small", {}, v.about) : null),
      h("td", {}, this.value(v.name, value, changes)),
      h(
        "td",
        { class: "tools" },
        button(pinned ? "unpin" : "pin", {
          class: "link",
          "aria-pressed": String(pinned),
          "aria-label": `${pinned ? "unpin" : "pin"} ${v.name}`,
          onclick: () => this.act.pin(v.name),
        }),
        button("hide", { class: "link", "aria-label": `hide ${v.name}`, onclick: () => this.act.hide(v.name) }),
      ),
    );
  }

  /**
   * A map as its cells, the changed ones marked; anything else as text.
   * @type {(name: string, value: Json, changes: Change[]) => HTMLElement}
   */
  value(name, value, changes) {
    const cells = cellsOf(value),
      lit = new Set(changes.map((c) => c.path));
    /** @type {(path: string) => boolean} */
    const touches = (path) => [...lit].some((p) => p === path || p.startsWith(`${path}[`) || p.startsWith(`${path}.`));
    if (!cells || !cells.length) return h("span", { class: changes.length ? "value lit" : "value" }, textOf(value));
    return h(
      "span",
      { class: "cells" },
      cells.map(([key, x]) =>
        h("span", { class: `plain-cell${touches(name + key) ? " lit" : ""}` }, h("small", {}, labelOf(key)), textOf(x)),
      ),
    );
  }

  watches() {
    const { here, watches } = this.view;
    if (!watches.length) return null;
    return h(
      "ul",
      { class: "watches" },
      watches.map((text) => {
        let value,
          failed = false;
        try {
          value = watchText(watchExpression(text)(here.values, here.before));
        } catch (problem) {
          value = problem instanceof Error ? problem.message : String(problem);
          failed = true;
        }
        return h(
          "li",
          { class: failed ? "failed" : "" },
          h("code", {}, text),
          h("b", {}, value),
          button("remove", {
            class: "link",
            "aria-label": `stop watching ${text}`,
            onclick: () => this.act.unwatch(text),
          }),
        );
      }),
    );
  }
}
