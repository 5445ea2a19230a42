// The timeline: one column per state. Events, promises, which steps it took, and who could be elected.

/** @type {{ [event: string]: [string, string] }} */
const EVENT_SIGNS = {
  leader: ["leader", "L"],
  isr: ["in-sync set", "I"],
  role: ["state", "S"],
  vote: ["vote", "V"],
  support: ["support", "V"],
  leaders: ["leader of the quorum", "Q"],
  "high watermark": ["watermark", "W"],
  committed: ["commit", "C"],
  acked: ["acknowledgement", "A"],
  alive: ["up or down", "D"],
  loss: ["loss", "!"],
};
/** @type {{ [role in RoleName]: [string, string] }} */
const ROLE_SIGNS = {
  needed: ["N", "needed: without it all else happens, and the property is not decided"],
  enabling: ["E", "enabling: without it later steps cannot happen"],
  removable: ["R", "removable: it would end alike without it"],
};

/**
 * The events that this trace can have: of what it has no variable of, nothing happens.
 * @type {(trace: Trace) => [string, string][]}
 */
const eventSigns = (trace) =>
  Object.entries(EVENT_SIGNS)
    .filter(([event]) => event === "loss" || trace.rolesAt(0).has(event))
    .map(([_, sign]) => sign);

/** @type {(trace: Trace) => string} */
const eventNames = (trace) =>
  eventSigns(trace)
    .map(([name]) => name)
    .join(", ");

/** What stands in a cell, its class, and what it says. @typedef {[Content, string, string | null] | null} Cell */

class Timeline {
  /**
   * `pick(step, property)` goes to a step, and shows the reason of a property there if one is named.
   * @param {Trace} trace
   * @param {View} view
   * @param {(step: number, property?: string) => void} pick
   */
  constructor(trace, view, pick) {
    this.trace = trace;
    this.view = view;
    this.pick = pick;
    const [first, end] = windowOf(trace, view.at, 40);
    this.first = first;
    this.end = end;
    this.columns = Array.from({ length: this.end - this.first + 1 }, (_, i) => this.first + i);
  }

  /** What the table depends on beside the present step. */
  get key() {
    return [this.first, this.end, this.view.property, this.view.allProperties].join();
  }

  /**
   * Marks the column of the present step in a table that was drawn before.
   * @type {(table: HTMLTableElement) => void}
   */
  mark(table) {
    for (const cell of table.querySelectorAll(".now")) cell.classList.remove("now");
    for (const row of table.rows) row.cells[this.view.at - this.first + 1].classList.add("now");
  }

  draw() {
    const about = this.trace.about,
      rows = [this.head()];
    if (this.trace.drawable) rows.push(this.row("Events", eventNames(this.trace), (i) => this.events(i)));
    for (const p of this.shownProperties()) rows.push(this.property(p));
    const roles = about.steps.some((x) => x.role);
    if (roles)
      rows.push(this.row("Needed?", "N needed, E enabling, R removable: each step tried without", (i) => this.role(i)));
    if (this.trace.drawable) rows.push(...this.replicas());
    if (about.survival.length) rows.push(...this.survival());
    return h(
      "table",
      { class: "timeline" },
      h(
        "caption",
        { class: "unseen" },
        "One column per state; a button in the first column explains the row at the present step",
      ),
      h("tbody", {}, rows),
    );
  }

  /** The property of the trace, all that are ever broken, and on demand the others. */
  shownProperties() {
    const { property, properties } = this.trace.about;
    /** @type {(p: Promised) => boolean} */
    const broken = (p) => !p.kind.startsWith("sometimes") && p.holds.includes(false);
    const wanted = properties.filter((p) => p.name === property || broken(p));
    const others = properties.filter((p) => !wanted.includes(p));
    wanted.sort((a, b) => Number(b.name === property) - Number(a.name === property));
    return this.view.allProperties ? [...wanted, ...others] : wanted;
  }

  head() {
    const loop = this.trace.about.loop;
    return h(
      "tr",
      {},
      h(
        "th",
        { scope: "col" },
        this.columns.length <= this.trace.last ? `T${this.first} to T${this.end} of ${this.trace.last}` : "Step",
      ),
      this.columns.map((i) => {
        const inLoop = loop !== null && i >= loop && (i > loop || loop === this.trace.last);
        const stutter = inLoop && loop === this.trace.last;
        return h(
          "th",
          {
            scope: "col",
            class: inLoop ? "loop" : "",
            onclick: () => this.pick(i),
            title: stutter
              ? "nothing happens any more: this state for ever (stuttering)"
              : inLoop
                ? "part of what repeats for ever"
                : null,
          },
          `T${i}`,
          inLoop ? h("small", {}, stutter ? "stays" : "loop") : null,
        );
      }),
    );
  }

  /**
   * @param {string} name
   * @param {string} title
   * @param {(i: number) => Cell} cell
   * @param {string} [kind]
   */
  row(name, title, cell, kind = "") {
    return h(
      "tr",
      { class: kind },
      h("th", { scope: "row", title }, name),
      this.columns.map((i) => {
        const [content, mark, about] = cell(i) ?? [null, "", null];
        return h("td", { class: mark, title: about, onclick: () => this.pick(i) }, content);
      }),
    );
  }

  /** @type {(i: number) => Cell} */
  events(i) {
    const step = this.trace.step(i);
    if (!step) return null;
    return [
      step.events
        .filter((e) => e in EVENT_SIGNS)
        .map((e) =>
          h("span", { class: `sign ${e === "loss" ? "bad" : ""}`, title: EVENT_SIGNS[e][0] }, EVENT_SIGNS[e][1]),
        ),
      "events",
      step.events.map((e) => EVENT_SIGNS[e]?.[0] ?? e).join(", "),
    ];
  }

  /** @type {(p: Promised) => HTMLTableRowElement} */
  property(p) {
    const chosen = this.view.property === p.name,
      seeks = p.kind.startsWith("sometimes");
    const head = h(
      "th",
      { scope: "row" },
      button(p.name, {
        class: `row-button${chosen ? " chosen" : ""}`,
        "aria-pressed": String(chosen),
        title: p.about.split("\n")[0],
        onclick: () => this.pick(this.view.at, p.name),
      }),
    );
    return h(
      "tr",
      { class: `property${chosen ? " chosen" : ""}` },
      head,
      this.columns.map((i) => {
        const holds = p.holds[i],
          sign = holds === null ? "–" : seeks ? (holds ? "●" : "·") : holds ? "✓" : "✕";
        const mark = holds === null ? "none" : seeks ? (holds ? "reached" : "none") : holds ? "good" : "bad";
        const says =
          holds === null
            ? "about steps: nothing to say of the first state"
            : seeks
              ? holds
                ? "happens here"
                : "does not happen here"
              : holds
                ? "holds"
                : "broken";
        return h(
          "td",
          {
            class: `truth ${mark}`,
            "data-step": i,
            "data-holds": String(holds),
            title: `${p.name}: ${says}`,
            onclick: () => this.pick(i, p.name),
          },
          h("span", { "aria-hidden": "true" }, sign),
          h("span", { class: "unseen" }, says),
        );
      }),
    );
  }

  /** @type {(i: number) => Cell} */
  role(i) {
    const step = this.trace.step(i);
    if (!step || !step.role) return null;
    const [sign, about] = ROLE_SIGNS[step.role];
    return [sign, `role ${step.role}`, step.enables.length ? `${about}: T${step.enables.join(", T")}` : about];
  }

  /**
   * A lane for each replica with what follows from its state: the end of its log, its watermark, and of a leader the
   * maximal ISR, which it must wait for.
   */
  replicas() {
    const first = this.trace.rolesAt(0);
    const waits = first.has("own isr") ? "; as leader, its maximal ISR" : "";
    return first.replicas.map((r) =>
      this.row(`${r}: LEO, HW`, `log end offset and high watermark of ${r}${waits}`, (i) => {
        const roles = this.trace.rolesAt(i);
        const [own, pending] = ["own isr", "pending isr"].map((role) => roles.of(role, r));
        const group = [own, pending].flatMap((names) => (Array.isArray(names) ? names.map(String) : []));
        const end = roles.log(r).length;
        const watermark = roles.watermark(r) ?? "–";
        const leads = roles.leads(r);
        const waits = leads && group.length ? `, it waits for ${inBraces([...new Set(group)].sort())}` : "";
        const about = `${r} ${roles.stateInWords(r)}: LEO ${end}, watermark ${watermark}${waits}`;
        return [`${end}·${watermark}`, `derived ${roles.down(r) ? "down" : leads ? "leads" : ""}`, about];
      }),
    );
  }

  /** Who could lead now, and how many acknowledged records the log of that replica lacks. */
  survival() {
    const names = this.trace.about.survival[0].map((o) => o.replica);
    return names.map((r, k) =>
      this.row(
        `If ${r} led`,
        `could ${r} be elected now, and which acknowledged records would be lost`,
        (i) => this.outcome(this.trace.about.survival[i][k]),
        "survival",
      ),
    );
  }

  /** @type {(o: Outcome) => Cell} */
  outcome(o) {
    const can = o.leads || o.by.length > 0;
    const by = can ? `could be elected (${o.by.map(words).join(", ")})` : "cannot be elected in one step";
    const loses = o.loses.length ? `lacks acknowledged ${o.loses.join(", ")}` : "lacks nothing acknowledged";
    const sign = `${o.leads ? "●" : can ? "○" : ""}${o.loses.length ? `−${o.loses.length}` : ""}`;
    const kind = `fate ${can ? "can" : "cannot"}${o.loses.length ? " loses" : ""}`;
    return [sign || "·", kind, `${o.replica} ${o.leads ? "leads" : by}; it ${loses}`];
  }
}

/** @type {(trace: Trace) => HTMLElement | null} */
function signs(trace) {
  const events = eventSigns(trace).map(([name, sign]) => [sign, name]);
  const roles = Object.values(ROLE_SIGNS).map(([sign, about]) => [sign, about]);
  const fates = [
    ["●", "is elected"],
    ["○", "could be elected in one step"],
    ["−1", "acknowledged records that its log lacks"],
  ];
  const shown = [
    ...(trace.drawable ? events : []),
    ...(trace.about.steps.some((x) => x.role) ? roles : []),
    ...(trace.about.survival.length ? fates : []),
  ];
  return shown.length
    ? h(
        "details",
        { class: "signs" },
        h("summary", {}, "What the signs mean"),
        h(
          "dl",
          {},
          shown.map(([sign, name]) => [h("dt", {}, sign), h("dd", {}, name)]),
        ),
      )
    : null;
}

/**
 * The tree of reasons, what decides indented below what it decides.
 * @type {(reason: Reason) => HTMLElement}
 */
function reasonTree(reason) {
  const values = Object.entries(reason.values);
  const leaf = !reason.because.length;
  return h(
    "li",
    { class: `reason ${reason.holds ? "good" : "bad"}${leaf ? " leaf" : ""}` },
    reason.says ? h("p", { class: "says-rule" }, reason.says) : null,
    h(
      "p",
      {},
      reason.binding ? h("b", { class: "binding" }, `${reason.binding}: `) : null,
      h("code", {}, reason.text),
      h("span", { class: "verdict-word" }, reason.holds ? " holds" : " fails"),
      reason.note ? h("span", { class: "quiet" }, ` — ${reason.note}`) : null,
    ),
    values.length
      ? h(
          "p",
          { class: "witness" },
          values.map(([name, value]) => h("span", {}, h("code", {}, `${name} = ${value}`))),
        )
      : null,
    reason.because.length
      ? h(
          "ul",
          {},
          reason.because.map((part) => reasonTree(part)),
        )
      : null,
  );
}
