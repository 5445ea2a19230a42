// Leaving the trace: any step that the model allows from here on, and the same schedule under another design.

const WAYS_SHOWN = 12;

class Explorer {
  /**
   * @param {Trace} trace
   * @param {View} view
   * @param {Acts} act
   * @param {State | null} state
   */
  constructor(trace, view, act, state) {
    this.trace = trace;
    this.view = view;
    this.act = act;
    this.state = state;
  }

  /** @returns {Content} */
  draw() {
    const { here } = this.view;
    const { model } = this.trace;
    if (!model || !this.state) return null;
    const next = here.branch ? null : this.trace.step(here.at + 1);
    /** @type {(way: Way) => boolean} */
    const taken = (way) => next !== null && next.action === way.action && next.parameters === way.parameters;
    const ways = waysFrom(model, this.state);
    const listed = [...ways].sort((a, b) => Number(taken(b)) - Number(taken(a)) || b.breaks.length - a.breaks.length);
    const shown = this.view.allWays ? listed : listed.slice(0, WAYS_SHOWN);
    return [
      this.intro(),
      listed.length ? null : h("p", { class: "quiet" }, "Nothing can happen here: no action is possible."),
      h(
        "ul",
        { class: "ways" },
        shown.map((way) => this.way(way, taken(way))),
      ),
      shown.length < listed.length
        ? button(`Show all ${listed.length} steps`, { class: "link", onclick: () => this.act.allWays() })
        : null,
    ];
  }

  intro() {
    const { here, trail } = this.view;
    if (!here.branch)
      return h(
        "p",
        { class: "quiet" },
        "Take another step than the trace did: the model runs in this page, at its bounds.",
      );
    const path = trail.map((way) => words(way.action)).join(", then ");
    return h(
      "p",
      { class: "quiet" },
      `You left the trace at T${here.at}: ${path}. `,
      button("One step back", { class: "link", onclick: () => this.act.undo() }),
      " ",
      button("Back to the trace", { class: "link", onclick: () => this.act.back() }),
    );
  }

  /** @type {(way: Way, taken: boolean) => HTMLElement} */
  way(way, taken) {
    const said = `${words(way.action)}${way.parameters ? ` (${way.parameters})` : ""}`;
    const breaks = way.breaks.length ? `breaks ${way.breaks.join(", ")}` : "";
    const name = [said, taken ? "as the trace does" : "", breaks].filter(Boolean).join(", ");
    return h("li", { class: taken ? "taken" : "" }, [
      button(said, {
        class: "way",
        "aria-label": name,
        onclick: () => (taken ? this.act.go(this.view.here.at + 1) : this.act.take(way)),
      }),
      taken ? h("span", { class: "tag" }, "the trace") : null,
      breaks ? h("span", { class: "tag bad" }, breaks) : null,
    ]);
  }
}

class Against {
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

  /** @returns {Content} */
  draw() {
    const other = this.trace.about.against;
    if (!other) return null;
    const { at } = this.view;
    const turn = other.turns[at];
    const scene = this.trace.drawScene(this.trace.otherValues[at], {
      before: at ? this.trace.otherValues[at - 1] : null,
      changes: turn.apart,
      width: this.view.width,
      label: `The same step under ${other.label}`,
    });
    const parting = other.parts !== null && at === other.parts && !turn.refused;
    const instead = parting
      ? [h("h3", {}, `What ${other.label} does instead`), codeBlock(other.source, turn.apart)]
      : null;
    return [
      this.intro(other),
      this.marks(other),
      h("div", { class: "twin" }, scene, h("div", {}, this.verdict(turn, other, at), instead)),
    ];
  }

  /** @type {(other: Counterfactual) => HTMLElement} */
  intro(other) {
    const { parts } = other;
    const summary = `${other.label}: ${other.summary.replace(/\.$/, "")}. `;
    if (parts === null) {
      const leaves = other.put_off ? ` But not for ever: ${other.put_off}.` : "";
      return h("p", { class: "quiet" }, summary, `The same schedule goes the same way there.${leaves}`);
    }
    const to = button(`T${parts}`, { class: "link", onclick: () => this.act.go(parts) });
    return h("p", { class: "quiet" }, summary, "The same schedule parts at ", to, ".");
  }

  /**
   * A strip of the whole schedule: the same, apart, refused.
   * @type {(other: Counterfactual) => HTMLElement}
   */
  marks(other) {
    const [first, end] = windowOf(this.trace, this.view.at, 40);
    return h(
      "ol",
      { class: "turns", start: first },
      other.turns.slice(first, end + 1).map((turn, k) => {
        const i = first + k;
        const kind = turn.refused ? "refused" : turn.apart.length ? "apart" : "alike";
        const says = { refused: "not possible there", apart: "another state", alike: "the same state" }[kind];
        const marks = `${i === this.view.at ? " now" : ""}${i === other.parts ? " parts" : ""}`;
        const looks = { class: `turn ${kind}${marks}`, title: says, "aria-label": `T${i}: ${says}` };
        return h("li", {}, button(`T${i}`, { ...looks, onclick: () => this.act.go(i) }));
      }),
    );
  }

  /** @type {(turn: Turn, other: Counterfactual, at: number) => Content[]} */
  verdict(turn, other, at) {
    /** @type {Content[]} */
    const lines = [];
    if (turn.refused)
      lines.push(
        h("p", { class: "stopped" }, `${other.label} does not take this step. `, refusal(turn.refused)),
        h("details", {}, h("summary", {}, "The whole reason"), h("ul", { class: "reasons" }, reasonTree(turn.refused))),
      );
    else if (!turn.apart.length) lines.push(h("p", { class: "quiet" }, "So far both designs are in the same state."));
    else
      lines.push(
        h(
          "p",
          { class: at === other.parts ? "stopped" : "quiet" },
          `Here the two differ (left: ${this.trace.about.design}, right: ${other.label}):`,
        ),
        changeTable(turn.apart, new Set()),
      );
    const before = at ? other.turns[at - 1].broken : [];
    const newly = turn.broken.filter((name) => !before.includes(name));
    if (newly.length) lines.push(h("p", { class: "broken" }, `Broken there: ${newly.join(", ")}`));
    else if (at === this.trace.last && !turn.broken.length)
      lines.push(h("p", { class: "kept" }, "✓ Every promise is kept there to the end."));
    return lines;
  }
}
