// What the reader holds: buttons, scrubber, search.

const ICONS = {
  first: "M3 2h2v12H3z M14 2v12L6 8z",
  before: "M12 2v12L3 8z",
  next: "M4 2v12l9-6z",
  last: "M11 2h2v12h-2z M2 2v12l8-6z",
  stop: "M3 2h4v12H3z M9 2h4v12H9z",
};

class Controls {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    const { trace, view } = app;
    const { last } = trace;
    this.scrub = h("input", { type: "range", min: 0, max: last, step: 1, value: 0, "aria-label": "Step" });
    this.scrub.addEventListener("input", () => {
      app.stop();
      app.rush();
      view.asked = Number(this.scrub.value);
      app.go(Number(this.scrub.value));
    });
    this.place = h("output", { class: "place" });
    this.player = button("Play", { class: "nav wide play", title: "Play (space)", onclick: () => app.play() });
    this.bar = h("div", { class: "bar", role: "group", "aria-label": "Move" }, this.buttons());
    this.all = this.tick((on) => {
      view.allProperties = on;
    });
    this.ask = this.tick((on) => {
      view.asking = on;
      view.asked = null;
    });
    this.switches = [
      trace.about.properties.length ? h("label", {}, this.all, " All promises") : null,
      h("label", {}, this.ask, " Ask before revealing"),
    ];
    this.only = this.tick((on) => {
      view.changedOnly = on;
    });
    this.filter = h("input", { type: "search", placeholder: "filter", "aria-label": "Filter variables" });
    this.filter.addEventListener("input", () => {
      view.filter = this.filter.value;
      app.draw();
    });
    this.tableTools = h("div", { class: "tools" }, h("label", {}, this.only, " Changed only"), this.filter);
    const roles = trace.rolesAt(0);
    const example = roles.has("acked")
      ? `acked - log[${roles.replicas[0]}]`
      : `${trace.about.variables[0]?.name ?? "x"} != 0`;
    this.search = h("input", {
      type: "search",
      placeholder: `Search or watch: a word, or ${example}`,
      "aria-label": "Search text or predicate",
      spellcheck: "false",
    });
    this.note = h("span", { class: "note", role: "status" });
    this.form = h(
      "form",
      {
        class: "search",
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          this.next();
        },
      },
      this.search,
      button("Find", { onclick: () => this.next() }),
      button("Watch", { onclick: () => this.watch() }),
      this.note,
    );
  }

  buttons() {
    const { app } = this;
    const { last } = app.trace;
    /** @type {(path: string, name: string, to: () => number, key: string) => HTMLElement} */
    const go = (path, name, to, key) =>
      button(
        "",
        {
          class: "nav",
          "aria-label": name,
          title: `${name} (${key})`,
          onclick: () => {
            app.stop();
            app.go(to());
          },
        },
        icon(path, 14),
      );
    return [
      this.player,
      go(ICONS.first, "First step", () => 0, "Home"),
      go(ICONS.before, "Step before", () => app.view.at - 1, "←"),
      go(ICONS.next, "Next step", () => app.view.at + 1, "→"),
      go(ICONS.last, "Last step", () => last, "End"),
      button("Next event", {
        class: "nav wide",
        title: `${eventNames(app.trace)} (e)`,
        onclick: () => app.find(true, (i) => app.trace.eventful(i)),
      }),
      this.scrub,
      this.place,
    ];
  }

  /** @type {(act: (on: boolean) => void) => HTMLInputElement} */
  tick(act) {
    const box = h("input", { type: "checkbox" });
    box.addEventListener("change", () => {
      act(box.checked);
      this.app.draw();
    });
    return box;
  }

  /** The next step, from the start again after the end, that says the text or of which the predicate holds. */
  next() {
    const { app } = this;
    const text = this.search.value.trim();
    if (!text) return;
    const test = saysOrHolds(app.trace, text);
    const count = app.trace.last + 1;
    const found = Array.from({ length: count }, (_, k) => (app.view.at + 1 + k) % count).find(test);
    this.note.textContent = found === undefined ? `no step: ${text}` : `T${found}`;
    if (found === undefined) return;
    app.view.asked = found;
    app.go(found);
  }

  watch() {
    const { app } = this;
    const text = this.search.value.trim();
    if (!text) return;
    try {
      watchExpression(text);
      this.note.textContent = "watched in the table";
      if (!app.view.watches.includes(text)) app.view.watches.push(text);
      app.draw();
    } catch (problem) {
      this.note.textContent = problem instanceof Error ? problem.message : String(problem);
    }
  }

  update() {
    const { view, trace, timers } = this.app;
    this.scrub.value = String(view.at);
    this.scrub.setAttribute("aria-valuetext", `T${view.at} of ${trace.last}`);
    this.place.textContent = `T${view.at} / ${trace.last}`;
    const playing = timers.playing !== 0;
    const name = playing ? "Stop" : "Play";
    this.player.setAttribute("aria-pressed", String(playing));
    if (this.player.textContent !== name)
      this.player.replaceChildren(icon(playing ? ICONS.stop : ICONS.next, 13), name);
    this.all.checked = view.allProperties;
    this.ask.checked = view.asking;
    this.only.checked = view.changedOnly;
  }
}

/**
 * Whether a step says the text, or the predicate that the text is holds after it.
 * @type {(trace: Trace, text: string) => (i: number) => boolean}
 */
function saysOrHolds(trace, text) {
  if (/[=<>]|\b(in|not|and|or)\b|\[/.test(text)) {
    try {
      const holds = watchExpression(text);
      return (i) => holds(trace.values(i), i ? trace.values(i - 1) : null) === true;
    } catch {
      // then it is a text like any other
    }
  }
  const word = text.toLowerCase();
  return (i) => {
    const step = trace.step(i);
    const changed = (step?.changes ?? []).map((c) => `${c.path} ${c.before} ${c.after}`);
    const own = step ? [step.action, words(step.action), step.parameters, step.says] : [];
    return [...own, ...changed, ...trace.about.lost[i]].join("\n").toLowerCase().includes(word);
  };
}
