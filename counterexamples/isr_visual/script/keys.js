// Keys: what each does, the list of them, and which of them a field keeps for itself.

const KEYS = [
  ["→ or n", "next step"],
  ["← or p", "step before"],
  ["Home, End", "first, last step"],
  ["e, E", "next, previous event"],
  ["space", "play, stop"],
  ["x", "to the cause"],
  ["b", "to the step that breaks the promise"],
  ["u", "next step that the search finds"],
  ["1 2 3", "to scene, lanes, table"],
  ["w", "to what else could happen"],
  ["Esc", "back to the trace"],
  ["c", "only what changed"],
  ["/", "search"],
  ["a", "ask before revealing"],
  ["s", "save the scene as SVG"],
  ["i", "save the trace as ITF"],
  ["l", "copy a link"],
  ["t", "light or dark"],
  ["g", "gallery"],
  ["?", "these keys"],
];

/** @type {() => HTMLDialogElement} */
function keysHelp() {
  const help = h(
    "dialog",
    { class: "help", "aria-label": "Keys" },
    h("h2", {}, "Keys"),
    h(
      "dl",
      {},
      KEYS.map(([key, does]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, does)]),
    ),
    button("Close", { class: "primary", onclick: () => help.close() }),
  );
  return help;
}

/** @type {(app: App, event: KeyboardEvent) => void} */
function keyPressed(app, event) {
  if (!app.openTrace || event.ctrlKey || event.metaKey || event.altKey || app.help.open) return;
  const target = /** @type {HTMLElement} */ (event.target);
  const type = target instanceof HTMLInputElement ? target.type : "";
  const typing = target.matches?.("input, textarea, select");
  const range = type === "range";
  const ticking = type === "checkbox" && event.key.length === 1 && event.key !== " ";
  if (typing && !range && !ticking) {
    if (event.key === "Escape") {
      event.preventDefault(); // which would empty a search field
      target.blur();
    }
    return;
  }
  if (event.key === " " && target.matches?.("button, summary, a, pre, [role=region]")) return;
  const act = actsOfKeys(app)[event.key];
  if (!act || (range && /^(Arrow|Home|End)/.test(event.key))) return;
  event.preventDefault();
  if (event.repeat) app.rush();
  if (event.key !== " ") app.stop();
  act();
}

/** @type {(app: App) => { [key: string]: () => void }} */
function actsOfKeys(app) {
  const { view, trace } = app;
  /** @type {(id: string) => () => void} */
  const focus = (id) => () => {
    const node = document.getElementById(id);
    node?.focus({ preventScroll: true });
    node?.scrollIntoView({ block: "nearest" });
  };
  const next = () => app.go(view.at + 1);
  const back = () => (view.trail.length ? app.undo() : app.go(view.at - 1));
  /** @type {(forward: boolean) => () => void} */
  const event = (forward) => () => app.find(forward, (i) => trace.eventful(i));
  const { breaks, cause } = trace.about.story;
  return {
    ArrowRight: next,
    n: next,
    ArrowLeft: back,
    p: back,
    Home: () => app.go(0),
    End: () => app.go(trace.last),
    e: event(true),
    E: event(false),
    " ": () => app.play(),
    x: () => app.go(cause ?? breaks ?? trace.last),
    b: () => app.go(breaks ?? trace.last),
    u: () => app.controls.next(),
    1: focus("scene"),
    2: focus("lanes"),
    3: focus("variables"),
    w: focus("whatif"),
    Escape: () => app.go(view.at),
    c: () => {
      view.changedOnly = !view.changedOnly;
      app.draw();
    },
    "/": () => app.controls.search.focus(),
    a: () => {
      view.asking = !view.asking;
      view.asked = null;
      app.draw();
      app.say(view.asking ? "Asks before revealing." : "Reveals at once.");
    },
    s: () => saveScene(trace, view.at),
    i: () => saveItf(trace),
    l: () => app.copyLink(),
    t: () => app.turnTheme(),
    g: () => {
      if (app.gathers) app.openGallery();
    },
    "?": () => app.help.showModal(),
  };
}
