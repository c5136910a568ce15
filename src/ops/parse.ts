/**
 * Reads the words behind `/ops`.
 *
 * People type into Slack, and Slack changes what they type: curly quotes, non-breaking spaces, long dashes, escaped
 * characters, ids inside code marks. All of that is undone here; what is still not a command gets a sentence that names
 * what could not be read, and a whole command to type instead where there is a good guess.
 */

import {
  OPERATION_KINDS,
  OPERATION_STATUSES,
  type OperationKind,
  type OperationStatus,
  stateWords,
} from "../domain/operation.js";
import { cutText } from "../domain/text/cut.js";
import type { FreezeKind, OpsCommand, ParsedCommand, ResolveVerb } from "./types.js";

/** Every verb with what follows it and what it does: the text of help, and the test that nothing is missing there. */
export const OPS_HELP: readonly { readonly usage: string; readonly does: string }[] = [
  { usage: "help", does: "shows this" },
  { usage: "list [status]", does: "operations, newest first, with counts of those that are open" },
  {
    usage: "show ID",
    does: "what it is, what was sent, what is known, what is safe to do now; an order or a reference finds the ids",
  },
  { usage: "events ID", does: "what happened to it, in order" },
  { usage: "confirm ID", does: "say, with evidence, that the provider carried it out" },
  { usage: "reject ID", does: "say, with evidence, that it did not happen and cannot happen any more" },
  { usage: "retry ID", does: "let it be sent again under the same key, where that is safe" },
  { usage: "reopen ID", does: "open again what a person confirmed or rejected by mistake" },
  { usage: "incidents", does: "findings that nobody has closed" },
  { usage: "close INCIDENT", does: "close an incident, with a reason" },
  { usage: "runs", does: "the newest runs and where they stand" },
  { usage: "approvals", does: "what waits for an approval, until when" },
  {
    usage: "freeze [kind] [reason]",
    does: "nothing new is sent (refund, cancel_order, cancel_subscription, or all); to give a reason, name the kind",
  },
  { usage: "thaw [kind]", does: "sending goes on; whoever froze it may need a second person to agree" },
  { usage: "health", does: "database, queue, Slack, payments, and what is due" },
];

const VERBS = [
  "help",
  "list",
  "show",
  "events",
  "confirm",
  "reject",
  "retry",
  "reopen",
  "incidents",
  "close",
  "runs",
  "approvals",
  "freeze",
  "thaw",
  "health",
] as const;
type Verb = (typeof VERBS)[number];

/** What people also call them. */
const OTHER_NAMES: Readonly<Record<string, Verb>> = {
  "": "help",
  "?": "help",
  h: "help",
  ls: "list",
  operations: "list",
  ops: "list",
  get: "show",
  describe: "show",
  log: "events",
  history: "events",
  timeline: "events",
  run: "runs",
  approval: "approvals",
  pending: "approvals",
  resend: "retry",
  undo: "reopen",
  incident: "incidents",
  findings: "incidents",
  stop: "freeze",
  unfreeze: "thaw",
  resume: "thaw",
  status: "health",
};

/** Reads one command. Never throws. */
export function parseOpsCommand(text: string): ParsedCommand {
  const words = wordsOf(text);
  const [first = "", ...rest] = words;
  const verb = verbOf(first);
  if (verb === null) return unknownVerb(first, rest);
  return commandOf(verb, rest, text);
}

function commandOf(verb: Verb, rest: readonly string[], typed: string): ParsedCommand {
  switch (verb) {
    case "help":
    case "runs":
    case "approvals":
    case "incidents":
    case "health":
      return { ok: true, command: { verb } };
    case "list":
      return list(rest);
    case "show":
    case "events":
    case "confirm":
    case "reject":
    case "retry":
    case "reopen":
    case "close":
      return withReference(verb, rest, typed);
    case "freeze":
    case "thaw":
      return freezing(verb, rest);
  }
}

function list(rest: readonly string[]): ParsedCommand {
  if (rest.length === 0) return { ok: true, command: { verb: "list", status: null } };
  const wanted = rest.join("_").toUpperCase();
  const status = statusNamed(wanted);
  if (status !== null) return { ok: true, command: { verb: "list", status } };
  const guess = nearest(wanted, OPERATION_STATUSES);
  return {
    ok: false,
    sentence: `There is no status ${quoted(rest.join(" "))}. A list is narrowed by one status and by nothing else; an order's operations are found by /ops show ORDER. The statuses are ${OPERATION_STATUSES.map(stateWords).join(", ")}.`,
    suggestion: guess === null ? null : `/ops list ${stateWords(guess)}`,
  };
}

/** A state by its name or by what people call it, in any case; null: there is none. */
export function statusNamed(word: string): OperationStatus | null {
  const wanted = word.toUpperCase();
  const known = OPERATION_STATUSES.find((status) => status === wanted);
  return known ?? (Object.hasOwn(STATUS_NAMES, wanted) ? (STATUS_NAMES[wanted] ?? null) : null);
}

const STATUS_NAMES: Readonly<Record<string, OperationStatus>> = {
  UNKNOWN: "OUTCOME_UNKNOWN",
  AWAITING: "AWAITING_APPROVAL",
  HELD: "AWAITING_APPROVAL",
  PENDING: "AWAITING_APPROVAL",
  QUARANTINE: "QUARANTINED",
  SENT: "DISPATCHED",
};

function withReference(
  verb: "show" | "events" | ResolveVerb | "reopen" | "close",
  rest: readonly string[],
  typed: string,
): ParsedCommand {
  const [ref, ...more] = rest;
  const [what, prefix] = verb === "close" ? ["incident", "inc_"] : ["operation", "op_"];
  if (ref === undefined) {
    return {
      ok: false,
      sentence: `${notDone(verb)}Which ${what}? Put its id, or the beginning of it, behind ${verb}.`,
      suggestion: verb === "close" ? "/ops incidents" : `/ops ${verb} ${prefix}…`,
    };
  }
  // An order or a provider's reference stands in an operation's place, written as the shop writes it.
  const isId = verb === "close" || /^op_/iu.test(ref);
  const bad = isId ? unreadable(ref, typed) : null;
  if (bad !== null) {
    return {
      ok: false,
      sentence: `${notDone(verb)}The character ${bad} in ${quoted(ref)} cannot be part of an id.`,
      suggestion: null,
    };
  }
  if (more.length > 0) {
    return {
      ok: false,
      sentence: `${notDone(verb)}Only an id is expected behind ${verb}; ${quoted(more.join(" "))} could not be used.${verb === "show" || verb === "events" ? "" : " The reason is asked for in a form."}`,
      suggestion: `/ops ${verb} ${ref}`,
    };
  }
  return { ok: true, command: { verb, ref } };
}

/** Somebody who types these wants to look; nothing that turns a switch is offered to them. */
const LOOKS: ReadonlySet<string> = new Set(["?", "help", "health", "list", "ls", "show", "state", "status"]);

/** First of all, whoever meant to turn a switch reads that it was not turned. */
const NOT_TURNED = { freeze: "Nothing was frozen.", thaw: "Nothing was thawed." } as const;

/** Who only wanted to look knows that nothing was done. */
const notDone = (verb: "show" | "events" | ResolveVerb | "reopen" | "close"): string =>
  verb === "show" || verb === "events" ? "" : "Nothing was done. ";

function freezing(verb: "freeze" | "thaw", rest: readonly string[]): ParsedCommand {
  const [word, ...more] = rest;
  if (word === undefined) return freezeCommand(verb, "all", null);
  const two = more[0] === undefined ? null : kindOf(`${word}_${more[0]}`);
  if (two !== null) return freezeCommand(verb, two, more.slice(1).join(" "));
  const kind = kindOf(word);
  if (kind !== null) return freezeCommand(verb, kind, more.join(" "));
  if (LOOKS.has(word.toLowerCase())) {
    return {
      ok: false,
      sentence: `${NOT_TURNED[verb]} ${quoted(word)} is no kind of effect.`,
      suggestion: "/ops health",
    };
  }
  const guess = nearest(word.toLowerCase(), ["all", ...OPERATION_KINDS]);
  // A reason without a kind: the person is told the whole command, because a switch is never turned on a guess.
  const meant = verb === "freeze" ? `/ops freeze all ${rest.join(" ")}` : null;
  return {
    ok: false,
    sentence: `${NOT_TURNED[verb]} ${quoted(word)} is no kind of effect. The kinds are ${OPERATION_KINDS.join(", ")}; without one it is all of them.`,
    suggestion: guess === null ? meant : `/ops ${verb} ${guess}`,
  };
}

function freezeCommand(verb: "freeze" | "thaw", kind: FreezeKind, said: string | null): ParsedCommand {
  const reason = said === null || said === "" ? null : said;
  const command: OpsCommand = verb === "freeze" ? { verb, kind, reason } : { verb, kind };
  return { ok: true, command };
}

function kindOf(word: string): FreezeKind | null {
  const plain = word.toLowerCase().replaceAll("-", "_");
  if (plain === "all" || plain === "everything") return "all";
  const single = plain.replace(/s$/, "");
  return OPERATION_KINDS.find((kind: OperationKind) => kind === plain || kind === single) ?? null;
}

function verbOf(word: string): Verb | null {
  const plain = word.toLowerCase();
  const known = VERBS.find((verb) => verb === plain);
  return known ?? (Object.hasOwn(OTHER_NAMES, plain) ? (OTHER_NAMES[plain] ?? null) : null);
}

function unknownVerb(word: string, rest: readonly string[]): ParsedCommand {
  if (/^op_[0-9a-f]*$/i.test(word) && rest.length === 0) {
    return {
      ok: false,
      sentence: "An id alone is no command.",
      suggestion: `/ops show ${word.toLowerCase()}`,
    };
  }
  const bad = unreadable(word);
  const guess = nearest(word.toLowerCase(), VERBS);
  return {
    ok: false,
    sentence:
      bad === null
        ? `Nothing was done. ${quoted(word)} is not a command here. Type /ops help for all of them.`
        : `Nothing was done. The character ${bad} in ${quoted(word)} could not be read. Type /ops help for all commands.`,
    suggestion: guess === null ? null : ["/ops", guess, ...rest].join(" "),
  };
}

/** Everything that stands for a space, a quote or a dash in what Slack and keyboards produce. */
const SPACES = /[\s\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]+/gu;
const INVISIBLE = /[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu;
const QUOTES = /["'`\u00ab\u00bb\u2018-\u201f\u2039\u203a\u300c\u300d\u301d-\u301f\uff02\uff07]/gu;
const DASHES = /[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]/gu;

function wordsOf(text: string): string[] {
  const plain = unescaped(text)
    .normalize("NFKC")
    .replace(INVISIBLE, "")
    .replace(QUOTES, " ")
    .replace(DASHES, "-")
    .replace(SPACES, " ")
    .trim()
    .replace(/^\/?ops\b\s*/i, "");
  return plain
    .split(" ")
    .map((word) => word.replace(/^[[(-]+|[\])\-,;:.]+$/g, ""))
    .filter((word) => word !== "");
}

/** Slack's own escapes, once: `&lt;` for `<`, and links and mentions as what they show. */
function unescaped(text: string): string {
  return text
    .replace(/<([^<>|]*)\|([^<>]*)>/g, "$2")
    .replace(/<([@#!][^<>]*|(?:https?|mailto|tel):[^<>]*)>/g, "$1")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
}

/** The first character that no id holds, as it was typed, ready to show; null: none. */
function unreadable(word: string, typed = word): string | null {
  const read = /[^A-Za-z0-9_]/u.exec(word)?.[0];
  if (read === undefined) return null;
  const found = read === "-" ? (typed.match(DASHES)?.[0] ?? read) : read;
  const code = found.codePointAt(0) ?? 0;
  return `${quoted(found)} (U+${code.toString(16).toUpperCase().padStart(4, "0")})`;
}

const quoted = (text: string): string => `“${cutText(text, 61)}”`;

/** The one candidate that is at most two edits away; null: none, or nothing to compare. */
function nearest(word: string, candidates: readonly string[]): string | null {
  if (word.length < 2) return null;
  const ranked = candidates
    .map((candidate) => ({ candidate, far: distance(word, candidate) }))
    .sort((a, b) => a.far - b.far);
  const [first, second] = ranked;
  if (first === undefined || first.far > Math.min(2, Math.floor(word.length / 2))) return null;
  return second !== undefined && second.far === first.far ? null : first.candidate;
}

/** Levenshtein distance, by single rows. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
