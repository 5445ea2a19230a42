// The head of the page and the story: who did what, which step was the cause, where it showed, what mends it.

/** What a part of the story is called. @type {{ [part: string]: string }} */
const PARTS = { stake: "", alone: "", event: "", cause: "cause", late: "too late", symptom: "breaks", mend: "mend" };

const HALF_MOON = "M8 1a7 7 0 100 14A7 7 0 008 1zm0 2v10A5 5 0 018 3z";

/** @type {(path: string, size: number) => SVGElement} */
const icon = (path, size) =>
  s(
    "svg",
    { viewBox: "0 0 16 16", width: size, height: size, "aria-hidden": "true" },
    s("path", { class: "icon", d: path }),
  );

/** @type {(app: App, trace: Trace) => HTMLElement} */
function heading(app, trace) {
  const { about } = trace;
  /** @type {(text: string, act: () => void) => HTMLElement} */
  const item = (text, act) =>
    h(
      "li",
      {},
      button(text, {
        class: "menu-item",
        onclick: () => {
          act();
          menu.open = false;
        },
      }),
    );
  const menu = h(
    "details",
    { class: "menu" },
    h("summary", { class: "nav wide" }, "Export"),
    h("ul", {}, [
      item("Scene as SVG", () => saveScene(trace, app.view.at)),
      item("Trace as ITF", () => saveItf(trace)),
      item("Link to this step", () => app.copyLink()),
      about.mermaid ? item("Mermaid diagram", () => save(`${about.name}.mmd`, "text/plain", about.mermaid)) : null,
      about.plantuml ? item("PlantUML diagram", () => save(`${about.name}.puml`, "text/plain", about.plantuml)) : null,
      item("Contact sheet, to print", () => window.print()),
    ]),
  );
  const facts = [
    about.verdict
      ? h("span", { class: litClass("verdict", false) + (trace.violates ? " bad" : "") }, about.verdict)
      : null,
    about.design ? h("span", {}, "design ", h("b", {}, about.design)) : null,
    about.property ? h("span", {}, "promise ", h("b", {}, about.property)) : null,
    h("span", {}, plural(trace.last, "step")),
    about.case?.tracker.length ? h("span", {}, about.case.tracker.join(", ")) : null,
    about.model_hash ? h("span", { class: "hash" }, "model ", h("code", {}, about.model_hash)) : null,
  ];
  return h(
    "header",
    { class: "top" },
    h("div", { class: "titles" }, h("h1", {}, trace.title), h("p", { class: "facts" }, facts)),
    h("div", { class: "top-tools" }, [
      app.gathers ? button("All traces", { class: "nav wide", onclick: () => app.openGallery() }) : null,
      menu,
      button(
        "",
        {
          class: "nav",
          "aria-label": "Light or dark",
          title: "Light or dark (t)",
          onclick: () => app.turnTheme(),
        },
        icon(HALF_MOON, 15),
      ),
      button("?", { class: "nav", "aria-label": "Keys", title: "Keys (?)", onclick: () => app.help.showModal() }),
    ]),
  );
}

/** The story, with the sentence of the present step marked. */
class StoryPanel {
  /**
   * @param {Trace} trace
   * @param {View} view
   * @param {(step: number) => void} go
   */
  constructor(trace, view, go) {
    this.trace = trace;
    this.view = view;
    this.go = go;
  }

  /** @returns {Content} */
  draw() {
    const { story } = this.trace.about;
    const ending = this.forEver();
    if (!story.sentences.length && !ending) return this.atWork();
    return h("ol", { class: "story" }, [
      story.sentences.map((sentence) => this.sentence(sentence)),
      ending ? h("li", {}, ending) : null,
    ]);
  }

  /** @type {(sentence: Sentence) => HTMLElement} */
  sentence({ step, part, text }) {
    const now = step !== null && step === this.view.at && !this.view.here.branch;
    const name = PARTS[part];
    const tag = name ? h("span", { class: `part ${part}` }, name) : null;
    if (step === null)
      return h(
        "li",
        { class: part },
        h("p", { class: "when" }, tag),
        h("p", {}, text, this.trace.about.against ? [" ", this.sideBySide()] : null),
      );
    return h(
      "li",
      { class: `${part}${now ? " now" : ""}`, "aria-current": now ? "step" : null },
      h("p", { class: "when" }, button(`T${step}`, { class: "link", onclick: () => this.go(step) }), tag),
      h("p", {}, text),
    );
  }

  sideBySide() {
    return button("Side by side", {
      class: "link",
      onclick: () => document.getElementById("against")?.scrollIntoView(),
    });
  }

  /** Of a trace in which nothing is promised to break: what to do with it. */
  atWork() {
    const { about } = this.trace;
    if (!about.design)
      return h("p", { class: "quiet" }, "Another program wrote this trace. Walk through it, or play it.");
    return [
      h("p", {}, `${about.design}: ${about.summary}`),
      h("p", { class: "quiet" }, "No promise is broken here. Play it, or take another step below."),
    ];
  }

  /**
   * How a behaviour goes on that never ends, which is what breaks a promise about the future.
   * @returns {Content}
   */
  forEver() {
    const { loop, kind } = this.trace.about;
    const { last } = this.trace;
    if (loop === null) return null;
    /** @type {(i: number) => HTMLElement} */
    const to = (i) => button(`T${i}`, { class: "link", onclick: () => this.go(i) });
    const so = kind === "eventually" ? ", and what was promised never comes." : ".";
    if (loop === last) return [to(last), " for ever: nothing happens any more", so];
    if (same(this.trace.values(loop), this.trace.values(last)))
      return [to(last), " is ", to(loop), " again: what happened since then happens for ever", so];
    return ["Then ", to(loop), " again, for ever", so];
  }
}

/**
 * What people wrote of a case and the rule that would have stopped it, in words and then as it stands in the model.
 * @type {(trace: Trace, go: (step: number) => void) => HTMLElement | null}
 */
function background(trace, go) {
  const { about } = trace;
  const { against } = about;
  const known = about.case;
  /** @type {Content[]} */
  const parts = [];
  if (known) parts.push(h("div", {}, h("h3", {}, "What happened"), prose(known.result)));
  if (known) parts.push(h("div", {}, h("h3", {}, "Why it fails"), prose(known.why_fails)));
  const rule = known?.fix ? prose(known.fix) : [];
  const refused = against?.turns.findIndex((turn) => turn.refused) ?? -1;
  const reason = against?.turns[refused]?.refused;
  if (against && reason)
    rule.push(
      h("p", {}, [
        h("b", {}, against.label),
        " refuses ",
        button(`T${refused}`, { class: "link", onclick: () => go(refused) }),
        ` ${words(trace.step(refused)?.action ?? "")}: `,
        refusal(reason),
      ]),
    );
  if (rule.length) parts.push(h("div", {}, h("h3", {}, "Which rule stops it"), rule));
  else if (known)
    parts.push(h("div", {}, h("h3", {}, "Which rule stops it"), h("p", {}, "None: the setting means this.")));
  if (about.todo)
    parts.push(
      h("div", { class: "todo" }, [
        h("h3", {}, "What to do now"),
        h("p", {}, about.todo.says),
        about.todo.commands.map(({ what, text }) => h("p", {}, `${what}: `, h("code", {}, text))),
      ]),
    );
  if (about.minimality) parts.push(h("p", { class: "quiet" }, `This trace: ${about.minimality}.`));
  return parts.length ? h("div", { class: "background" }, parts) : null;
}

/**
 * The innermost condition that fails: its rule in words where it has a name, then the formula with its values.
 * @type {(reason: Reason, says?: string) => Content}
 */
function refusal(reason, says = "") {
  const rule = reason.says || says;
  const inner = reason.because.find((part) => !part.holds);
  if (inner) return refusal(inner, rule);
  const values = Object.entries(reason.values).map(([name, value]) => `${name} = ${value}`);
  return [
    rule ? `${rule.replace(/\.$/, "")}: ` : "",
    h("code", {}, reason.text),
    " fails",
    values.length ? [", for ", h("code", {}, values.join(", "))] : "",
    ".",
  ];
}

/** @type {(roles: Roles) => HTMLElement} */
function legend(roles) {
  const signs = [
    ["striped", "in this log only"],
    ["fine", "copied to another log"],
    ["solid", "known here to be committed"],
    ...(roles.has("acked") ? [["ticked", "acknowledged"]] : []),
    ...(roles.has("consumed") ? [["seen-mark", "read by a consumer"]] : []),
    ["missing", "promised, but missing"],
    ["ringed", "changed in this step"],
  ];
  return h(
    "ul",
    { class: "legend" },
    signs.map(([kind, text]) => h("li", {}, h("i", { class: `key ${kind}`, "aria-hidden": "true" }), text)),
  );
}
