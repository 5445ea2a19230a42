// Leaving the trace: what else could have happened (embedded states), and the same schedule under another design.

class WhatIf {
  constructor(trace, view, act) {
    this.trace = trace;
    this.view = view;
    this.act = act;
  }

  draw() {
    const { here } = this.view, node = here.node === null ? null : this.trace.about.nodes[here.node];
    if (!node) return null;
    const intro = h("p", { class: "quiet" }, here.branch
      ? [`You are ${plural(here.off, "step")} off the trace, which you left at T${here.from}. `, button("Back to the trace", { class: "link", onclick: () => this.act.back() })]
      : "Take another step than the trace did. The states around the trace are part of this file.");
    if (!node.ways) return [intro, h("p", { class: "quiet" }, "What could happen from here on is not in this file any more.")];
    const next = here.branch ? null : this.trace.step(here.at + 1);
    const ways = node.ways.map((way, i) => ({ ...way, i, taken: Boolean(next) && next.action === way.action && next.parameters === way.parameters }));
    ways.sort((a, b) => Number(b.taken) - Number(a.taken) || b.broken.length - a.broken.length);
    const shown = this.view.allWays ? ways : ways.slice(0, 10);
    return [intro, ways.length ? null : h("p", { class: "quiet" }, "Nothing can happen here: no action is possible."),
      h("ul", { class: "ways" }, shown.map((way) => this.way(way))),
      shown.length < ways.length ? button(`Show all ${ways.length} steps`, { class: "link", onclick: () => this.act.allWays() }) : null];
  }

  way(way) {
    const label = `${words(way.action)}${way.parameters ? ` (${way.parameters})` : ""}`;
    return h("li", { class: way.taken ? "taken" : "" },
      button(label, { class: "way", disabled: way.to === null, "aria-label": `${label}${way.taken ? ", as the trace does" : ""}${way.broken.length ? `, breaks ${way.broken.join(", ")}` : ""}`,
        onclick: () => (way.taken ? this.act.go(this.view.here.at + 1) : this.act.take(way.i)) }),
      way.taken ? h("span", { class: "tag" }, "the trace") : null,
      way.broken.length ? h("span", { class: "tag bad" }, `breaks ${way.broken.join(", ")}`) : null,
      way.to === null ? h("span", { class: "tag" }, "not in this file") : null);
  }
}

class Against {
  constructor(trace, view, act) {
    this.trace = trace;
    this.view = view;
    this.act = act;
  }

  draw() {
    const other = this.trace.about.against;
    if (!other) return null;
    const at = this.view.at, turn = other.turns[at], values = this.trace.otherValues[at];
    return [h("p", { class: "quiet" }, `${other.label}: ${other.summary.replace(/\.$/, "")}. `, other.parts === null
      ? "The same schedule goes the same way there."
      : ["The same schedule parts at ", button(`T${other.parts}`, { class: "link", onclick: () => this.act.go(other.parts) }), "."]),
    this.marks(other), h("div", { class: "twin" }, new Scene(this.trace.about, values, { before: at ? this.trace.otherValues[at - 1] : null, changes: turn.apart, cells: longestLog(this.trace), width: this.view.width }).draw(`The same step under ${other.label}`), h("div", {}, this.verdict(turn, other, at),
    other.source && other.parts !== null && at === other.parts && !turn.refused ? [h("h3", {}, `What ${other.label} does instead`), codeBlock(other.source, turn.apart)] : null))];
  }

  /** A strip of the whole schedule: the same, apart, refused. */
  marks(other) {
    const [first, end] = windowOf(this.trace, this.view.at, 40);
    return h("ol", { class: "turns", start: first }, other.turns.slice(first, end + 1).map((t, k) => {
      const i = first + k, kind = t.refused ? "refused" : t.apart.length ? "apart" : "alike";
      const says = kind === "refused" ? "not possible there" : kind === "apart" ? "another state" : "the same state";
      return h("li", {}, button(`T${i}`, { class: `turn ${kind}${i === this.view.at ? " now" : ""}${i === other.parts ? " parts" : ""}`, title: says, "aria-label": `T${i}: ${says}`, onclick: () => this.act.go(i) }));
    }));
  }

  verdict(turn, other, at) {
    const lines = [];
    if (turn.refused) lines.push(h("p", { class: "stopped" }, `${other.label} does not take this step:`), h("ul", { class: "reasons" }, reasonTree(turn.refused)));
    else if (!turn.apart.length) lines.push(h("p", { class: "quiet" }, "So far both designs are in the same state."));
    else lines.push(h("p", { class: at === other.parts ? "stopped" : "quiet" }, `Here the two differ (left: ${this.trace.about.design}, right: ${other.label}):`), changeTable(turn.apart, new Set()));
    if (turn.broken.length) lines.push(h("p", { class: "broken" }, `Broken there: ${turn.broken.join(", ")}`));
    else if (at === this.trace.last) lines.push(h("p", { class: "kept" }, "✓ Every promise is kept there to the end."));
    return lines;
  }
}
