/**
 * One event of an operation as a line of its story: what happened, who did it, on what evidence.
 *
 * 1. Pure and total: an event whose data are not as expected (an older version wrote them, or a text was erased) is still told, with less.
 * 2. Every type of event that the ledger writes has words here; a test goes through them all.
 * 3. Texts are plain: whoever shows them escapes them and makes ids of people into mentions.
 */
import { z } from "zod";
import { elsewhereWords, fieldsWords, unaskedSentence } from "../domain/effect-words.js";
import type { Json } from "../domain/json.js";
import { formatMoney, isCurrency } from "../domain/money.js";
import { stateWords } from "../domain/operation.js";
import { quarantineWords } from "../domain/quarantine-words.js";
import { asSentence } from "../domain/text/sentence.js";
import { refusedSentence } from "./not-safe.js";
import type { EventView, LastLook } from "./types.js";

/** A person by Slack user id, or one of our parts in words ("worker host:12"). */
export type Doer = { readonly person: string } | { readonly part: string };

export interface VoteTold {
  readonly person: Doer;
  readonly verdict: "approved" | "denied";
  /** In which role; null: not recorded. */
  readonly role: string | null;
  readonly at: Date | null;
}

export interface TimelineEntry {
  readonly seq: number | null;
  readonly at: Date;
  readonly what: string;
  readonly by: Doer;
  /** Who else had to agree, and did. */
  readonly second: Doer | null;
  readonly votes: readonly VoteTold[];
  /** What it rests on: the provider's words, a person's reason and evidence, the policy's rules. One sentence each. */
  readonly evidence: readonly string[];
}

/** What stands in the log's place of a person or text that was erased. */
const ERASED = "erased";

/** Tells one event. */
export function timelineEntry(event: EventView): TimelineEntry {
  const data = Data.parse(event.evidence);
  return {
    seq: event.seq,
    at: event.at,
    what: whatHappened(event, data),
    by: doer(event, data),
    // Of a request's end, the second person is who did it.
    second: data.second === null || event.type === "resolution_ended" ? null : personOf(data.second),
    votes: data.votes,
    evidence: evidenceSentences(event, data),
  };
}

const word = z
  .string()
  .nullish()
  .catch(null)
  .transform((text) => text ?? null);

const Effect = z.object({
  ref: z.string(),
  amountMinor: z.number().int().nonnegative().catch(0),
  currency: z.string().catch(""),
  status: z.string().catch(""),
  target: z.string().catch(""),
});

/** An answer to an attempt (`verdict`), a reading of the provider's list (`says`), or what a person named (`reference`). */
const Found = z.object({
  verdict: word,
  says: word,
  code: word,
  detail: word,
  reason: word,
  status: word,
  ref: word,
  amount: z.number().int().nonnegative().catch(0),
  amountMinor: z.number().int().nonnegative().catch(0),
  currency: z.string().catch(""),
  reference: word,
  postcondition: word,
  differs: z.array(z.string()).catch([]),
  replayed: z.boolean().catch(false),
  effect: Effect.nullish().catch(null),
  effects: z.array(Effect).catch([]),
  probe: z.looseObject({}).nullish().catch(null),
});
type Found = z.output<typeof Found>;

const Vote = z
  .object({ person: z.string(), verdict: z.enum(["approve", "deny"]), role: word, at: word })
  .transform(
    ({ person, verdict, role, at }): VoteTold => ({
      person: personOf(person),
      verdict: verdict === "approve" ? "approved" : "denied",
      role,
      at: at === null || Number.isNaN(Date.parse(at)) ? null : new Date(at),
    }),
  );

const Data = z
  .object({
    code: word,
    detail: word,
    worker: word,
    because: word,
    verb: word,
    reason: word,
    second: word,
    resolution: word,
    was: word,
    to: word,
    state: word,
    refusal: z
      .object({ code: z.string(), shown: z.unknown(), other: z.string().optional() })
      .nullish()
      .catch(null),
    ticket: word,
    run: word,
    order: word,
    subscription: word,
    amount: z.number().int().nullish().catch(null),
    currency: z.string().catch(""),
    predecessor: word,
    rules: z.array(z.object({ verdict: word, sentence: z.string() })).catch([]),
    votes: z.array(Vote).catch([]),
    changes: z.array(z.unknown()).catch([]),
    move: z.object({ do: word, why: word, reason: word, detail: word }).nullish().catch(null),
    evidence: z
      .union([Found, z.string().transform((reference) => Found.parse({ reference }))])
      .nullish()
      .catch(null),
  })
  .catch(() => EMPTY);
type Data = z.output<typeof Data>;

const EMPTY: Data = {
  code: null,
  detail: null,
  worker: null,
  because: null,
  verb: null,
  reason: null,
  second: null,
  resolution: null,
  was: null,
  to: null,
  state: null,
  refusal: null,
  ticket: null,
  run: null,
  order: null,
  subscription: null,
  amount: null,
  currency: "",
  predecessor: null,
  rules: [],
  votes: [],
  changes: [],
  move: null,
  evidence: null,
};

function doer({ actor, type }: EventView, data: Data): Doer {
  if (actor.startsWith("slack:") || actor === ERASED) return personOf(actor);
  if (data.worker !== null) return { part: `worker ${data.worker}` };
  const [kind = "", name = ""] = split(actor);
  if (kind === "run") return { part: `the agent, ${name}` };
  if (kind === "cli") return { part: `the command line (${name})` };
  if (kind === "system")
    return { part: OF_EVENT[`${name} ${type}`] ?? PARTS[name] ?? `Countersign (${name})` };
  return { part: actor };
}

const split = (actor: string): [string, string] => {
  const at = actor.indexOf(":");
  return at < 0 ? ["", actor] : [actor.slice(0, at), actor.slice(at + 1)];
};

const PARTS: Readonly<Record<string, string>> = {
  approvals: "Countersign",
  dispatch: "the worker that sent it",
  reconcile: "the reconciler",
  webhook: "Countersign, told by the provider",
};

/** Where the part alone would say something that was not so. */
const OF_EVENT: Readonly<Record<string, string>> = {
  "approvals release": "Countersign, when the votes were complete",
  "dispatch void": "the worker that was to send it",
};

const personOf = (name: string): Doer =>
  name === ERASED ? { part: "a person whose name was erased" } : { person: name.replace(/^slack:/, "") };

function whatHappened(event: EventView, data: Data): string {
  const attempt = event.attempt === null ? "It" : `Attempt ${event.attempt}`;
  switch (event.type) {
    case "prepare":
      return `Asked for${target(data)}; the policy allows it, and the money is set aside.`;
    case "hold":
      return `Asked for${target(data)}; the policy holds it for an approval.`;
    case "release":
      return "Approved: world, policy and voters were compared once more, and the money is set aside.";
    case "deny":
      return data.code === "undone" ? "Taken back before anything was carried out." : "Denied.";
    case "expire":
      return "Nobody decided in time.";
    case "void":
      return "Given up before anything was carried out.";
    case "claim":
      return `${attempt} began: it is sent.`;
    case "resend":
      return data.resolution === null
        ? `${attempt} began: sent again under the same key.`
        : `${attempt} began: sent again under the same key, as a person authorised.`;
    case "settle_confirmed":
      if (!byPerson(data)) return "Confirmed: it happened.";
      return UNSHOWN.has(String(data.evidence?.probe?.["says"]))
        ? "Confirmed on a person's word: the provider did not show it."
        : "Confirmed by a person.";
    case "settle_rejected":
      if (data.evidence?.probe?.["says"] === "committed")
        return "Rejected by a person: it was not made as asked for; what was made instead counts as refunded elsewhere.";
      // Only what proves nothing has a remark of its own.
      if (byPerson(data) && data.detail !== null && data.detail !== "")
        return "Rejected on a person's word: not carried out; the money is free again.";
      return byPerson(data)
        ? "Rejected by a person: it did not happen; the money is free again."
        : "Rejected: it did not happen; the money is free again.";
    case "settle_unknown":
      return event.from === "RECONCILING"
        ? "Still unknown; it is looked at again later."
        : data.code === "lease_expired"
          ? `The worker of ${attempt.toLowerCase()} was lost: the outcome is unknown.`
          : unproven(attempt, data.evidence?.verdict ?? null);
    case "not_executed":
      return "Every attempt is proven not to have happened: it may be sent afresh.";
    case "reconcile":
      if (byPerson(data)) return "Taken from the reconciler for a person's decision.";
      return data.because === "evidence"
        ? "Looked at, because there is news of it."
        : "Looked at, because it was due.";
    case "quarantine":
      if (data.verb === "reopen")
        return `Opened again by a person${data.was === null ? "" : ` (it was ${stateWords(data.was)})`}; its amount counts as spent.`;
      return data.was === null
        ? "Parked for a person."
        : `Opened again by evidence (it was ${stateWords(data.was)}) and parked for a person.`;
    case "reverse":
      return "Taken back by the provider after it had been confirmed.";
    case "join":
      return `Another ticket asks for the same${data.ticket === null ? "" : ` (${data.ticket})`} and waits for it too.`;
    case "handover":
      return `Handed to the oldest ticket that waits${data.to === null ? "" : ` (${data.to})`}.`;
    case "late_answer":
      return `${attempt} was answered after its worker had lost it; kept as evidence.`;
    case "lease_taken_over":
      return "Taken over from a worker whose time was over.";
    case "authorise":
      return "A person authorised sending it again under the same key.";
    case "resolution_proposed":
      return `${VERBS[data.verb ?? ""] ?? "A decision"} was asked for; it waits for a second person.`;
    case "resolution_ended":
      return proposalEnd(data.state);
    case "approval_voided":
      return "Its approval died, because what was shown no longer holds; a new card takes its place.";
    default:
      return event.type.replaceAll("_", " ");
  }
}

/** What the provider said where it showed nothing. */
const UNSHOWN: ReadonlySet<string> = new Set(["absent", "unknown"]);

const VERBS: Readonly<Record<string, string>> = {
  confirm: "Confirm committed",
  reject: "Reject",
  retry: "Authorise retry",
};

function proposalEnd(state: string | null): string {
  switch (state) {
    case "refused":
      return "The second person agreed, and it was refused: nothing was done.";
    case "disagreed":
      return "The second person disagreed: nothing was done.";
    case "expired":
      return "No second person answered in time: nothing was done.";
    case "superseded":
      return "The operation moved before a second person answered: the request is void.";
    default:
      return "The request for a second person ended.";
  }
}

/** Why an answer, or none, left the outcome open. */
function unproven(attempt: string, verdict: string | null): string {
  switch (verdict) {
    case "rejected":
    case "not_executed":
      return `${attempt} was not carried out, but an earlier one may have been: the outcome is unknown.`;
    case "postcondition_failed":
      return `${attempt} did something else than was asked for: it is not counted as done.`;
    case "pending":
      return `${attempt} was accepted and its end is awaited: the outcome is unknown.`;
    default:
      return `${attempt} had no answer that proves anything: the outcome is unknown.`;
  }
}

const byPerson = (data: Data): boolean => data.verb !== null;

function target(data: Data): string {
  const on = data.order ?? data.subscription;
  const amount =
    data.amount == null || data.amount === 0 ? "" : `: ${amountText(data.amount, data.currency)}`;
  return `${amount}${on === null ? "" : `${amount === "" ? ":" : ""} on ${on}`}`;
}

function evidenceSentences(event: EventView, data: Data): string[] {
  const rules =
    event.type === "hold" || event.type === "prepare" ? data.rules.map(({ sentence }) => sentence) : [];
  const person = byPerson(data) && data.reason !== null ? [`Reason: ${data.reason}`] : [];
  const moved = data.move == null ? [] : moveSentences(data.move, data.evidence?.reason ?? null);
  const own = data.detail === null || data.detail === "" ? [] : [asSentence(data.detail)];
  return [
    ...rules,
    ...(data.predecessor === null ? [] : [`It follows ${data.predecessor}.`]),
    ...(data.evidence === null || data.evidence === undefined ? [] : foundSentences(data.evidence)),
    ...person,
    ...refusalSentences(data.refusal),
    ...moved,
    ...own,
  ];
}

/** What the provider showed at the agreement, and why that forbade it. */
function refusalSentences(refusal: Data["refusal"]): string[] {
  if (refusal == null) return [];
  const found = foundSentence(refusal.shown as Json);
  return [...(found === null ? [] : [found]), refusedSentence(refusal.code, refusal.other)];
}

/** Why the reconciler moved it so, where the reading that it rests on does not say the same with amounts. */
function moveSentences(move: NonNullable<Data["move"]>, told: string | null): string[] {
  if (move.reason === "duplicate_effect" || move.reason === "unattributed_effect") return [];
  const detail = move.detail === told ? null : move.detail;
  if (move.reason !== null) return [quarantineWords(`${move.reason}: ${detail ?? ""}`)];
  return [detail, move.why === told ? null : move.why]
    .filter((text) => text !== null)
    .map((text) => WHY[text] ?? asSentence(text));
}

/** Why nothing was sent again, or it was, where the event has a name of ours for it. */
const WHY: Readonly<Record<string, string>> = {
  frozen: "It is not sent again now, because its kind is frozen.",
  key_expired: "It is not sent again, because the life of its key is over.",
  key_is_safe: "Its key is still good, so it may be sent again.",
  not_committed: "Nothing of it happened, so it may be sent again.",
  not_yet: "It is not sent again before its time.",
  guard: "It is not sent again, because its record no longer says what was decided.",
};

/** What a stored reading or answer of the provider says, in one sentence; null: nothing that is known. */
export function foundSentence(stored: Json): string | null {
  const found = Found.safeParse(stored);
  return found.success ? (foundSentences(found.data)[0] ?? null) : null;
}

/** An effect and its state, as one word: two readings that have it in common show the same. */
export const shownEffect = ({ ref, status }: { readonly ref: string; readonly status: string }): string =>
  `${ref} ${status}`;

/** The effect that a stored reading or answer shows, as `shownEffect`; null: none. */
export function effectShown(stored: Json): string | null {
  const found = Found.safeParse(stored);
  if (!found.success) return null;
  const effect = found.data.effect ?? { ref: found.data.ref, status: found.data.status };
  return effect.ref === null || effect.status === null
    ? null
    : shownEffect({ ref: effect.ref, status: effect.status });
}

/** The newest event that rests on a reading of the provider's list. */
export function lastLook(events: readonly EventView[]): LastLook | null {
  for (const event of events.toReversed()) {
    const { evidence } = Data.parse(event.evidence);
    const read = evidence?.says == null ? evidence?.probe : evidence;
    const sentence = read == null ? null : foundSentence(read as Json);
    if (sentence === null) continue;
    const { effect, effects } = Found.parse(read);
    return {
      at: event.at,
      sentence,
      shows: [...(effect == null ? [] : [effect]), ...effects].map(shownEffect),
    };
  }
  return null;
}

function foundSentences(found: Found): string[] {
  const named = found.reference === null ? [] : [`Evidence: ${found.reference}`];
  const probe = found.probe == null ? null : Found.safeParse(found.probe);
  const probed = probe?.success === true ? foundSentences(probe.data) : [];
  const said = found.verdict !== null ? answered(found) : found.says !== null ? shown(found) : stored(found);
  return [...(said === null ? [] : [said]), ...probed, ...named];
}

/** What came back to an attempt. */
function answered(found: Found): string {
  const why = whyNot(found);
  const effect = found.effect == null ? "" : ` ${described(found.effect)}`;
  switch (found.verdict) {
    case "committed":
      return `The provider answered${found.replayed ? " with its stored answer" : ""}:${effect}.`;
    case "postcondition_failed":
      return `The provider answered:${effect}${elsewhereIn(found)}, which is not what was asked for.`;
    case "pending":
      return `The provider accepted${effect}; it is pending.`;
    case "failed_at_provider":
      return `The provider accepted${effect}, and it failed there.${why}`;
    case "rejected":
      return `The provider refused it.${why}`;
    case "not_executed":
      return `It was not carried out.${why}`;
    default:
      return `No usable answer.${why}`;
  }
}

/** In words; the provider's own code stays beside them in brackets, one of ours says nothing more. */
function whyNot({ verdict, code, detail }: Found): string {
  const named = code ?? "";
  const words = detail ?? "";
  if (words === "") return named === "" ? "" : ` ${asSentence(spelled(named))}`;
  const theirs = named !== "" && (verdict === "rejected" || verdict === "failed_at_provider");
  return ` ${asSentence(theirs ? `${words.replace(/\.$/u, "")} (${named})` : words)}`;
}

/** A code as words: with its capital it is a sentence's beginning. */
const spelled = (code: string): string => code.replaceAll("_", " ");

/** What the provider's list showed. */
function shown(found: Found): string {
  const effects = found.effects.map(described).join("; ");
  const effect = effectText(found) ?? "it";
  switch (found.says) {
    case "committed":
      return found.postcondition === "fails"
        ? `The provider shows ${effect}${elsewhereIn(found)}, which differs from what was asked for in ${fieldsWords(found.differs)}.`
        : `The provider shows ${effect}.`;
    case "duplicate":
      return `The provider shows it more than once: ${effects}.`;
    case "pending":
      return `The provider has it pending: ${effect}.`;
    case "failed_at_provider":
      return `The provider shows that it failed there: ${effect}.`;
    case "absent":
      return "The provider shows nothing of it.";
    case "unattributed":
      return `The provider shows what nobody here asked for: ${effects}.`;
    default:
      return unaskedSentence(found.reason ?? found.says ?? "no reason given");
  }
}

/** What the provider told of by itself: an object of its own, or its state. */
function stored(found: Found): string | null {
  if (found.effect != null) return `The provider shows ${described(found.effect)}.`;
  const effect = effectText(found);
  if (effect === null) return found.status === null ? null : `The provider says: ${spelled(found.status)}.`;
  return `The provider says: ${effect}.`;
}

const elsewhereIn = ({ effect, differs }: Found): string =>
  effect == null ? "" : elsewhereWords(effect, differs);

/** The effect of its own, or the one that it is itself; null: neither. */
function effectText(found: Found): string | null {
  if (found.effect != null) return described(found.effect);
  const { ref, amount, amountMinor, currency, status } = found;
  return ref === null
    ? null
    : described({ ref, amountMinor: amount === 0 ? amountMinor : amount, currency, status: status ?? "" });
}

function described({ ref, amountMinor, currency, status }: Omit<z.output<typeof Effect>, "target">): string {
  const amount = amountMinor === 0 ? "" : ` of ${amountText(amountMinor, currency)}`;
  return `${ref}${amount}${status === "" ? "" : ` (${spelled(status)})`}`;
}

const amountText = (amountMinor: number, currency: string): string =>
  isCurrency(currency)
    ? formatMoney({ amountMinor: BigInt(amountMinor), currency })
    : `${amountMinor} ${currency}`;
