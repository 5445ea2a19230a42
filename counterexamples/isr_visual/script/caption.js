// Beside the picture: who did what, and what is lost or broken by it; before a step, what happens now.

/**
 * Above the picture. `back` leads from a way of the reader's own to the trace.
 * @type {(trace: Trace, here: Here, back: () => void) => Content}
 */
function caption(trace, here, back) {
  const what = here.action
    ? words(here.action)
    : here.at === 0
      ? trace.about.anywhere
        ? "somewhere"
        : "start"
      : plural(here.changes.length, "change");
  const where = here.branch ? `T${here.at} + ${here.off}` : `T${here.at}`;
  const off = here.branch ? h("p", { class: "off" }, offTrace(here, back)) : null;
  return [
    off,
    h(
      "p",
      { class: "caption-line" },
      h("b", {}, where),
      ` ${what}`,
      here.parameters ? h("code", {}, here.parameters) : null,
    ),
    here.lost.map((line) =>
      h("p", { class: litClass("loss", false) + (line.startsWith("LOST") ? "" : " unavailable") }, line),
    ),
    here.broken.length ? h("p", { class: "broken" }, "Broken by this step: ", here.broken.join(", ")) : null,
  ];
}

/** @type {(here: Here, back: () => void) => Content} */
const offTrace = (here, back) => [
  `What if: not the trace, but ${plural(here.off, "step")} off it. `,
  button("Back to the trace", { class: "link", onclick: back }),
];

/**
 * In place of the next step, for whoever wants to be asked; null where nobody is.
 * @type {(trace: Trace, view: View, reveal: (step: number) => void) => Content}
 */
function question(trace, view, reveal) {
  const { asked, at, asking } = view;
  if (!asking || asked !== at + 1) return null;
  return h(
    "div",
    { class: "question" },
    h("p", { class: "eyebrow" }, `before T${asked}`),
    h("h2", { class: "action-name" }, "What happens now?"),
    h("p", { class: "says" }, questionAbout(trace, asked)),
    button("Reveal", { class: "primary", onclick: () => reveal(asked) }),
  );
}
