// The shapes of what the page is given (isr_visual/document.py) and of what its parts say to each other.

type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
type Plain = string | Plain[] | { [key: string]: Plain };
/** What a watched expression comes to: as a state has it, or a truth. */
type Watched = any;
/** Variables of a state by name, as ITF expressions. */
type Values = { [name: string]: Json };
type Change = { path: string; before: string; after: string };
type Reason = {
  text: string;
  says: string;
  holds: boolean;
  binding: string;
  note: string;
  values: { [name: string]: string };
  because: Reason[];
};
type Source = { file: string; line: number; text: string; helpers: string[] };
type Step = {
  step: number;
  action: string;
  parameters: string;
  actor: string;
  peer: string;
  says: string;
  events: string[];
  changes: Change[];
  role: "" | RoleName;
  enables: number[];
};
type RoleName = "needed" | "enabling" | "removable";
type Promised = {
  name: string;
  kind: string;
  about: string;
  source: Source;
  holds: (boolean | null)[];
  reasons: (number | null)[];
};
type Arrow = {
  kind: string;
  text: string;
  source: string;
  target: string;
  sent: number;
  taken: number | null;
  lost: boolean;
};
type Outcome = { replica: string; leads: boolean; by: string[]; loses: string[] };
type Turn = { values: Values; refused: Reason | null; apart: Change[]; broken: string[] };
type Counterfactual = {
  design: string;
  label: string;
  summary: string;
  parts: number | null;
  put_off: string;
  source: Source | null;
  turns: Turn[];
};
type Mail = {
  variable: string;
  questions: { [status: string]: string };
  answers: { [status: string]: string };
  to: string;
  fields: { [status: string]: { [label: string]: string } };
};
type RoleTable = { scene: { [role: string]: [string, string[]] }; mail: Mail[]; seen: string };
type Sentence = { step: number | null; part: string; text: string };
type Case = {
  title: string;
  tracker: string[];
  result: string;
  why_fails: string;
  why_missed: string;
  fix: string;
  fixed_by: string;
  command: string;
};
type About = {
  schema: string;
  name: string;
  digest: string;
  mismatch: string;
  design: string;
  family: string;
  summary: string;
  model_hash: string;
  property: string;
  kind: string;
  verdict: string;
  promise: string;
  bounds: { [name: string]: Json };
  changed: string[];
  minimality: string;
  loop: number | null;
  anywhere: boolean;
  case: Case | null;
  todo: { says: string; commands: { what: string; text: string }[] } | null;
  story: { headline: string; breaks: number | null; cause: number | null; sentences: Sentence[] };
  variables: { name: string; type: string; about: string }[];
  steps: Step[];
  lost: string[][];
  actions: { [name: string]: Source };
  helpers: { [name: string]: Source };
  properties: Promised[];
  reasons: Reason[];
  lanes: string[];
  arrows: Arrow[];
  survival: Outcome[][];
  states: State[];
  model: string;
  against: Counterfactual | null;
  roles: RoleTable;
  mermaid: string;
  plantuml: string;
};

// the model, running

type Value = number | boolean | Value[];
type State = any[];
type ModelType = { kind: string; low?: number; prefix?: string; members?: string[]; key?: ModelType; of?: ModelType };
type Model = {
  variables: [string, ModelType][];
  actions: [string, [string, ModelType][], (state: State) => [Value[], State][]][];
  promises: [string, string, (state: State, after?: State) => boolean][];
};
/** A step that is possible; `breaks`: the promises that held before it. */
type Way = { action: string; parameters: string; to: State; breaks: string[] };

// drawing

type Attribute = string | number | boolean | null | undefined;
/** An SVG element as data: drawn by the page as an element, by the command line as text. */
type Shape = { tag: string; attributes: { [name: string]: Attribute }; parts: Part[] };
type Part = Shape | string | null;
type Message = { kind: string; key: string; asks: boolean; other: string; text: string; said: string[] };
type SceneOptions = { before?: Values | null; changes?: Change[]; cells?: number; width?: number; label?: string };

// the page

type Content = Node | string | number | null | undefined | false | Content[];
type Attributes = { [name: string]: Attribute | ((event: any) => void) };
/** The state that is shown, on the trace or off it. */
type Here = {
  branch: boolean;
  at: number;
  off: number;
  values: Values;
  before: Values | null;
  changes: Change[];
  lost: string[];
  broken: string[];
  action: string;
  parameters: string;
  actor: string;
  peer: string;
  says: string;
  role: "" | RoleName;
};
type View = {
  at: number;
  trail: Way[];
  property: string | null;
  hidden: Set<string>;
  pinned: Set<string>;
  changedOnly: boolean;
  filter: string;
  allProperties: boolean;
  allWays: boolean;
  watches: string[];
  asking: boolean;
  asked: number | null;
  width: number;
  here: Here;
};
/** Where an address leads. `foreign`: to a trace that is not here; `beyond`: the step that the trace does not have. */
type Link = {
  n: number;
  at: number;
  property: string | null;
  way: string;
  model: string | null;
  trace: string | null;
  foreign: boolean;
  beyond: string | null;
};
type Acts = {
  go: (step: number) => void;
  take: (way: Way) => void;
  back: () => void;
  undo: () => void;
  allWays: () => void;
  pin: (name: string) => void;
  hide: (name: string) => void;
  showAll: () => void;
  unwatch: (text: string) => void;
};

/** The code of the models of this page, by the name that a document gives. */
declare const MODELS: { [name: string]: () => Model };

interface Window {
  insync: App;
}
