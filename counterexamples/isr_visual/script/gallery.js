// The gallery: every trace of the file with a picture of how it ends, and of each the control: how the same schedule ends
// under the design that mends it. A reader groups them, and filters them by a word.

/** A card: its trace, the words it is found by, and how it is made. @typedef {{ trace: Trace, group: string, words: string, make: () => HTMLElement }} Card */
/** @typedef {(n: number, at?: number) => void} Open */

const THUMB = 380;
const CONTROLS = "Controls";

/** How cards are grouped: by what a trace is, by what its design is of, by design, by promise. @type {{ [by: string]: (t: Trace) => string }} */
const GROUPINGS = {
  kind: (t) => (t.violates ? "Counterexamples" : t.about.property ? "Witnesses" : "Behaviours"),
  family: (t) => t.about.family || "Other models",
  design: (t) => t.about.design || "other programs",
  promise: (t) => t.about.property || "nothing is broken",
};

class Gallery {
  /**
   * @param {Trace[]} traces
   * @param {Open} open
   */
  constructor(traces, open) {
    this.traces = traces;
    this.open = open;
    const families = new Set(traces.map(GROUPINGS.family));
    /** How a reader may group: by family where there are several, and then at first. */
    this.groupings = Object.keys(GROUPINGS).filter((by) => by !== "family" || families.size > 1);
    this.by = families.size > 1 ? "family" : "kind";
    this.word = "";
    this.list = h("div", {});
  }

  draw() {
    const broken = this.traces.every((t) => t.violates);
    const shortest = this.traces.every((t) => t.about.minimality.includes("no shorter"));
    const works = this.traces.every((t) => t.about.design && !t.about.property);
    const about =
      broken && shortest
        ? "Each is the shortest behaviour that breaks a promise. Open one to walk through it."
        : works
          ? "What it looks like when it works: every promise holds in each. Open one to walk through it."
          : "Open one to walk through it.";
    const filter = h("input", {
      type: "search",
      placeholder: "Filter: a word",
      "aria-label": "Filter traces",
      oninput: () => this.refill(this.by, filter.value),
    });
    const choice = h(
      "select",
      { "aria-label": "Group by", onchange: () => this.refill(choice.value, this.word) },
      this.groupings.map((by) => h("option", { value: by, selected: by === this.by }, `by ${by}`)),
    );
    this.refill(this.by, this.word);
    return h(
      "main",
      { class: "gallery" },
      h("header", { class: "gallery-head" }, [
        h("h1", {}, plural(this.traces.length, broken ? "counterexample" : works ? "behaviour" : "trace")),
        h("p", { class: "quiet" }, about),
        h("div", { class: "groups", role: "group", "aria-label": "Filter and group" }, filter, choice),
      ]),
      this.list,
    );
  }

  /** @type {(by: string, word: string) => void} */
  refill(by, word) {
    this.by = by;
    this.word = word;
    const wanted = this.cards().filter((card) => card.words.includes(word.trim().toLowerCase()));
    const groups = Map.groupBy(wanted, (card) => card.group);
    const controls = groups.get(CONTROLS);
    groups.delete(CONTROLS);
    if (controls) groups.set(CONTROLS, controls);
    this.list.replaceChildren(...[...groups].map(([name, cards]) => section(name, cards)));
    if (!wanted.length) this.list.append(h("p", { class: "quiet" }, `No trace says '${word}'.`));
  }

  /** @returns {Card[]} */
  cards() {
    const group = GROUPINGS[this.by];
    const own = this.traces.map((trace, n) => ({
      trace,
      group: group(trace),
      words: foundBy(trace),
      make: () => thumb(trace, () => this.open(n)),
    }));
    const mended = this.traces.flatMap((trace, n) =>
      trace.about.against && trace.drawable
        ? [
            {
              trace,
              group: CONTROLS,
              words: `${trace.about.against.label} ${foundBy(trace)}`.toLowerCase(),
              make: () => control(trace, () => openControl(n, trace, this.open)),
            },
          ]
        : [],
    );
    return [...own, ...mended];
  }
}

/** @type {(trace: Trace) => string} */
const foundBy = ({ title, about }) =>
  [title, about.name, about.family, about.design, about.property, about.case?.tracker.join(" "), about.story.headline]
    .join(" ")
    .toLowerCase();

/** @type {(name: string, cards: Card[]) => HTMLElement} */
const section = (name, cards) =>
  h(
    "section",
    { id: name.toLowerCase().replaceAll(" ", "-"), tabindex: "-1", "aria-label": name },
    h("h2", { class: "group" }, `${name}, ${cards.length}`),
    name === CONTROLS
      ? h(
          "p",
          { class: "quiet" },
          "The same schedules under designs that mend them: what breaks a promise above must be seen to keep it here, ",
          "or the picture above would prove nothing.",
        )
      : null,
    h(
      "ul",
      { class: "cards" },
      cards.map((card) => h("li", {}, card.make())),
    ),
  );

/** @type {(trace: Trace, open: () => void) => HTMLElement} */
function thumb(trace, open) {
  const { about } = trace;
  const told = about.story.sentences.find((sentence) => sentence.part === "cause" || sentence.part === "symptom");
  return h("article", { class: "thumb" }, [
    h("h3", {}, button(trace.title, { class: "open", onclick: open })),
    h(
      "p",
      { class: "quiet" },
      [about.design, about.property, plural(trace.last, "step")].filter(Boolean).join("  ·  "),
    ),
    h("div", { class: "picture", "aria-hidden": "true" }, trace.picture(about.story.breaks ?? trace.last, THUMB)),
    about.case ? h("div", {}, prose(about.case.result)) : told ? h("p", {}, told.text) : null,
  ]);
}

/**
 * How the schedule of a trace ends under the other design, which step it refuses, and whether the promise is kept.
 * @type {(trace: Trace, open: () => void) => HTMLElement}
 */
function control(trace, open) {
  const { about } = trace;
  const against = /** @type {Counterfactual} */ (about.against);
  const refused = against.turns.findIndex((turn) => turn.refused);
  const fails = about.property && against.turns.some((turn) => turn.broken.includes(about.property));
  const same = against.put_off ? `It has to leave this loop: there ${against.put_off}.` : "It does the same.";
  const differs = against.parts === null ? same : `It differs from T${against.parts} on.`;
  const parts = refused > 0 ? `It refuses T${refused}, ${words(trace.step(refused)?.action ?? "")}.` : differs;
  const keeps = about.loop === null ? " is kept to the end." : against.put_off ? " is kept there." : "";
  const kept = fails ? " is broken there, too." : keeps;
  return h("article", { class: "thumb control" }, [
    h("h3", {}, button(`${against.label}: ${trace.title}`, { class: "open", onclick: open })),
    about.property ? h("p", { class: fails ? "broken" : "kept" }, h("code", {}, about.property), kept) : null,
    h(
      "div",
      { class: "picture", "aria-hidden": "true" },
      trace.drawScene(trace.otherValues[trace.last], { width: THUMB }),
    ),
    h("p", {}, parts),
  ]);
}

/** @type {(n: number, trace: Trace, open: Open) => void} */
function openControl(n, trace, open) {
  open(n, trace.last);
  byId("against").scrollIntoView();
}
