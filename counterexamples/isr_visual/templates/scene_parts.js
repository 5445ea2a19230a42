// The rest of the scene: the rule with its numbers, clients, and messages under way.

Object.assign(Scene.prototype, {
  /** What the leader can count on, with its numbers; not what it made of it, which differs between designs. */
  formula(r) {
    const own = this.roles.of("own isr", r), seen = this.roles.seen ? this.roles.seen[r] : null;
    if (!Array.isArray(own) || !own.length || !seen) return null;
    const members = [...new Set([...own, ...(this.roles.of("pending isr", r) || [])])].sort();
    const ends = members.map((m) => (m === r ? String(this.roles.log(r).length) : /^\d+$/.test(seen[m]) ? seen[m] : "0"));
    const least = Math.min(...ends.map(Number));
    const lit = this.changed("own isr", r) || this.changed("pending isr", r);
    return s("tspan", { class: `rule${lit ? " lit" : ""}` },
      `min LEO over {${members.join(", ")}} = min(${ends.join(", ")}) = ${least}`);
  },

  /** Below the replicas: the truly committed sequence, on the same axis, and what clients were told. */
  clients() {
    const committed = this.roles.many("committed"), acked = this.roles.many("acked"), consumed = this.roles.many("consumed");
    if (!this.roles.has("committed") && !this.roles.has("acked")) return null;
    const y = this.y, logY = this.narrow ? y + 40 : y + 14, was = this.before ? this.before.many("committed") : [], lit = this.changed("committed");
    const parts = [s("text", { x: 16, y: this.narrow ? y + 28 : y + 37, class: "t-name" }, "Committed")];
    parts.push(...this.places(logY, committed.length, (o) => (committed[o] === undefined ? this.hole("", o, logY) : this.cell(committed[o], o, logY, "committed", lit && was[o] !== committed[o]))));
    const told = [`acknowledged {${acked.join(", ")}}`, ...(this.roles.has("consumed") ? [`read [${consumed.join(" ")}]`] : [])].join("  ·  ");
    const beside = this.end + told.length * 6.2 < this.cardWidth, below = beside ? 0 : 20;  // else it has a line of its own
    parts.push(s("text", { x: beside ? this.end : this.left, y: logY + (beside ? 23 : CELL_HEIGHT + 18), class: `t-small${this.changed("acked") || this.changed("consumed") ? " lit" : ""}` }, told));
    const height = logY + CELL_HEIGHT + 14 + below - y;
    this.y += height;
    return s("g", {}, s("rect", { x: 0.5, y: y + 0.5, width: this.cardWidth - 1, height: height - 1, rx: 10, class: "card-box outer" }), parts);
  },

  /** Messages under way as arrows in a margin of their own, each kind and replica always in the same column. */
  wires() {
    const kinds = this.about.roles.mail.map((m) => m.variable), count = this.roles.replicas.length * kinds.length;
    const step = Math.min(26, (this.gutter - 44) / Math.max(1, count - 1));
    const parts = this.messages.map((m) => {
      const slot = kinds.indexOf(m.kind) * this.roles.replicas.length + this.roles.replicas.indexOf(m.key);
      const x = this.cardWidth + 26 + slot * step;
      const end = (who) => this.middle.get(who) ?? (who === "controller" ? this.controllerY : null);
      const [from, to] = m.asks ? [m.key, m.other] : [m.other, m.key];
      const y1 = end(from), y2 = end(to);
      if (y1 === null || y1 === undefined || y2 === null || y2 === undefined || y1 === y2) return null;
      const off = slot * 3 - count, lit = this.touched.has(`${m.kind}[${m.key}]`);
      const [a, b] = [y1 + off, y2 + off], edge = this.cardWidth;
      return s("g", { class: `wire ${m.kind}${m.asks ? "" : " answer"}${lit ? " lit" : ""}` },
        s("path", { d: `M${edge} ${a} H${x - 8} Q${x} ${a} ${x} ${a + (b > a ? 8 : -8)} V${b + (b > a ? -8 : 8)} Q${x} ${b} ${x - 8} ${b} H${edge + 7}` }),
        s("path", { class: "head", d: `M${edge + 2} ${b} l8 -4.5 v9 z` }),
        s("circle", { class: "tail", cx: edge + 2, cy: a, r: 3 }),
        s("title", {}, `${from} to ${to}: ${m.text}, ${m.said.join(", ")}`));
    });
    return s("g", { class: "wires" }, parts);
  },
});

/** Stripes that leave little of a cell's colour, and fine ones that leave most of it. */
function patterns(id) {
  return s("defs", {}, ["", "-fine"].map((kind) => s("pattern", { id: id + kind, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    s("line", { x1: 0, y1: 0, x2: 0, y2: 6, class: `hatch-line${kind && " fine"}` }))));
}

/** The longest log of a trace, so that every step is drawn to one width. */
function longestLog(trace) {
  if (trace.longest === undefined) {
    trace.longest = 1;
    for (let i = 0; i <= trace.last; i++) {
      const roles = trace.rolesAt(i);
      for (const r of roles.replicas) trace.longest = Math.max(trace.longest, roles.log(r).length);
      trace.longest = Math.max(trace.longest, roles.many("committed").length);
    }
  }
  return trace.longest;
}

/** For a state without logs: every variable as a card, what changed first in the eye. */
function genericScene(values, changes) {
  const lit = touched(changes);
  return h("dl", { class: "plain-scene" }, Object.entries(values).map(([name, value]) => {
    const cells = cellsOf(value) || (sequenceOf(value) || []).map((x, i) => [`[${i}]`, x]);
    const shown = cells.length && cells.length <= 40
      ? h("span", { class: "cells" }, cells.map(([key, x]) =>
          h("span", { class: `plain-cell${lit.has(name + key) ? " lit" : ""}` }, h("small", {}, labelOf(key)), textOf(x))))
      : textOf(value);
    return h("div", { class: `plain-variable${lit.has(name) ? " lit" : ""}` }, h("dt", {}, name), h("dd", {}, shown));
  }));
}
