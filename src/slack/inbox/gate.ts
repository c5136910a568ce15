/**
 * The gate between a receiver and Bolt.
 *
 * 1. Nothing is acknowledged before it is a row; without a database an event is not acknowledged (Slack sends it again) and a click
 *    is answered with "not recorded" (Slack does not), or where that cannot be said not acknowledged either.
 * 2. Whatever Bolt's listeners do or throw, every arrival that was stored is acknowledged exactly once, so that neither the
 *    404 after three seconds nor the second-acknowledgement error can happen (facts/slack §1.2).
 * 3. An acknowledgement that fails is only logged: what depends on it will be delivered again (B11).
 */
import type { App, ReceiverEvent } from "@slack/bolt";
import type { PersonAhead } from "../../approvals/index.js";
import { failpoint } from "../../domain/failpoints.js";
import type { JsonObject } from "../../domain/json.js";
import { nestsDeeperThan } from "../../domain/json-depth.js";
import type { DbFailure } from "../../domain/ports/database.js";
import { storable } from "../../domain/text/storable.js";
import { withinMs } from "../../ops/index.js";
import { clickOf, shortcutOf } from "../listeners/payload.js";
import type { SlackIdentity } from "../settings.js";
import type { SlackContext } from "../types.js";
import { type Arrival, arrivalOf, type InboxKind, personOf } from "./arrival.js";
import { belongsToUs } from "./ours.js";
import { type InboxRow, type Stored, storeArrival } from "./store.js";
import type { TakeBack } from "./take-back.js";

/** What a listener finds in Bolt's context under `countersign`. */
export interface Received {
  /** Null for what is answered without a row (closed forms, options) and for duplicates, whose row is another's. */
  readonly row: InboxRow | null;
  readonly duplicate: boolean;
  /** When it was stored first, also of a duplicate; null: it is not. */
  readonly receivedAt: Date | null;
  readonly arrivedAtMs: number;
  /** Whoever clicked is being read since the arrival; null: nobody needs to be. */
  readonly ahead: PersonAhead | null;
}

/** The transport turns this into a status (HTTP) or leaves the envelope unacknowledged (Socket Mode). */
export class ArrivalRefused extends Error {
  readonly status: number;
  /** Slack may send it again. */
  readonly again: boolean;
  constructor(status: number, message: string, again: boolean) {
    super(message);
    this.name = "ArrivalRefused";
    this.status = status;
    this.again = again;
  }
}

export interface Gate {
  processEvent(event: ReceiverEvent): Promise<void>;
  /** Arrivals that are still being worked on. */
  busy(): number;
}

/** What is stored. */
type Storable = Extract<Arrival, { kind: InboxKind }>;

interface GateDeps {
  readonly takeBack: TakeBack;
  readonly ctx: Pick<SlackContext, "arrivals" | "ids" | "log" | "metrics" | "web" | "config">;
  readonly identity: () => SlackIdentity | null;
  /** A monotonic clock in milliseconds. */
  readonly monotonicMs: () => number;
  readonly app: Pick<App, "processEvent">;
  /** Begins to read the person of an arrival whose handler will ask for them. */
  readonly readAhead: (arrival: Arrival) => PersonAhead | null;
}

/** Slack waits three seconds; a database that needs longer than this is away. */
const STORE_DEADLINE_MS = 2_000;
/** What is left of the three seconds, for the sentence that says so. */
const SAY_DEADLINE_MS = 600;
/** Kinds whose handling goes on in this process, so the row is born with our lease. */
const LEASED: ReadonlySet<InboxKind> = new Set(["action", "view", "command", "shortcut"]);

export const NOT_RECORDED =
  "Countersign cannot reach its database, so nothing was recorded. Please try again in a minute.";

export function createGate(deps: GateDeps): Gate {
  let busy = 0;
  return {
    busy: () => busy,
    processEvent: async (event) => {
      busy += 1;
      try {
        await receive(deps, event);
      } finally {
        busy -= 1;
      }
    },
  };
}

async function receive(deps: GateDeps, raw: ReceiverEvent): Promise<void> {
  const { ctx } = deps;
  const arrivedAtMs = deps.monotonicMs();
  if (nestsDeeperThan(raw.body)) {
    ctx.metrics.refused("too_deep");
    ctx.log.warn({}, "refused an arrival that nests deeper than any of Slack's");
    throw new ArrivalRefused(400, "the payload nests too deep", false);
  }
  // What is read, hashed and stored from here on is the same text.
  const body = storable(raw.body as JsonObject);
  const event = { ...raw, body };
  const arrival = arrivalOf(body, ctx.config.channels);
  const ack = once(deps, event, arrival, arrivedAtMs);

  const identity = deps.identity();
  if (identity === null) throw new ArrivalRefused(503, "Slack has not told us yet who we are", true);
  const belongs = belongsToUs(body, arrival.kind, identity);
  if (!belongs.ok) {
    ctx.metrics.refused(belongs.why);
    ctx.log.warn({ why: belongs.why, kind: arrival.kind }, "refused an arrival that is not for this app");
    throw new ArrivalRefused(403, belongs.why, false);
  }

  switch (arrival.kind) {
    case "noise":
      return ack.run();
    case "rate_limited":
      ctx.log.error(
        { minute: arrival.minute },
        "Slack dropped events of this app: more than it delivers in an hour",
      );
      return ack.run();
    case "unreadable":
      ctx.metrics.refused("unreadable");
      ctx.log.warn({ why: arrival.why }, "acknowledged a payload that could not be read");
      return ack.run();
    case "closed":
    case "options":
      return passOn(deps, event, ack, {
        row: null,
        duplicate: false,
        receivedAt: null,
        arrivedAtMs,
        ahead: null,
      });
    default:
      return record(deps, event, ack, arrival, arrivedAtMs);
  }
}

async function record(
  deps: GateDeps,
  event: ReceiverEvent,
  ack: Ack,
  arrival: Storable,
  arrivedAtMs: number,
): Promise<void> {
  let stored: Stored;
  const storing = storeInTime(deps, event, arrival);
  const ahead = deps.readAhead(arrival);
  try {
    stored = await storing;
  } catch (error) {
    deps.ctx.log.error({ kind: arrival.kind, error: String(error) }, "could not store an arrival");
    return notRecorded(deps, arrival, event.body as JsonObject, ack);
  }
  await failpoint("slack.after_stored");
  const duplicate = stored.outcome === "duplicate";
  if (duplicate && (arrival.kind === "message" || arrival.kind === "event")) return ack.run();
  await passOn(deps, event, ack, {
    row: stored.outcome === "new" ? stored.row : null,
    duplicate,
    receivedAt: stored.outcome === "new" ? stored.row.receivedAt : stored.receivedAt,
    arrivedAtMs,
    ahead,
  });
}

async function storeInTime(deps: GateDeps, event: ReceiverEvent, arrival: Storable): Promise<Stored> {
  const { ctx } = deps;
  const id = ctx.ids.next("inb_");
  const storing = storeArrival(
    { db: ctx.arrivals, config: ctx.config },
    {
      id,
      key: arrival.key,
      kind: arrival.kind,
      body: arrival.stored,
      retryNum: event.retryNum ?? null,
      leased: LEASED.has(arrival.kind),
    },
  );
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), STORE_DEADLINE_MS);
  });
  let first: Stored | "late";
  try {
    first = await Promise.race([storing, late]);
  } catch (error) {
    if (LEASED.has(arrival.kind) && mayHaveHappened(ctx.arrivals.failureOf(error)))
      deps.takeBack.add(id, storing, personOf(arrival.stored));
    throw error;
  } finally {
    clearTimeout(timer);
  }
  if (first !== "late") return first;
  // The person is told that nothing was recorded: a row that still comes into being is taken back. An event is only not
  // acknowledged, so its row may stay.
  if (LEASED.has(arrival.kind)) deps.takeBack.add(id, storing, personOf(arrival.stored));
  else storing.catch(() => undefined);
  throw new Error(`the database took longer than ${STORE_DEADLINE_MS} ms`);
}

/** A database that was lost may have stored it; one that says what is wrong has not. */
const mayHaveHappened = (failure: DbFailure | undefined): boolean =>
  failure === undefined || failure.kind === "connection" || failure.kind === "shutdown";

/** No false acknowledgement: an event comes again, a person reads that nothing was recorded. */
async function notRecorded(deps: GateDeps, arrival: Storable, body: JsonObject, ack: Ack): Promise<void> {
  switch (arrival.kind) {
    case "message":
    case "event":
      throw new ArrivalRefused(503, "the arrival could not be stored", true);
    case "command":
      return ack.run({ response_type: "ephemeral", text: NOT_RECORDED });
    case "view": {
      const block = firstBlock(arrival.stored);
      if (block === null) throw new ArrivalRefused(503, "the form could not be stored", false);
      return ack.run({ response_action: "errors", errors: { [block]: NOT_RECORDED } });
    }
    case "action":
    case "shortcut": {
      const url = body["response_url"];
      // Without a response_url (App Home, global shortcut) only Slack's own error can tell the person.
      if (typeof url !== "string" || !(await saidNotRecorded(deps, arrival, url))) {
        throw new ArrivalRefused(503, "the click could not be stored", false);
      }
      return ack.run();
    }
  }
}

/** True once Slack has the sentence: only then is the click acknowledged, so that whoever cannot be told so sees Slack's own error. */
async function saidNotRecorded({ ctx }: GateDeps, arrival: Storable, url: string): Promise<boolean> {
  const threadTs =
    arrival.kind === "action"
      ? clickOf(arrival.stored)?.place.threadTs
      : shortcutOf(arrival.stored)?.threadTs;
  const said = ctx.web.respond(url, {
    response_type: "ephemeral",
    replace_original: false,
    text: NOT_RECORDED,
    ...(threadTs === undefined || threadTs === null ? {} : { thread_ts: threadTs }),
  });
  const status = await withinMs(SAY_DEADLINE_MS, said).catch((error: unknown) => String(error));
  if (typeof status === "number" && status >= 200 && status < 300) return true;
  ctx.log.warn({ status }, "could not say that nothing was recorded");
  return false;
}

/** Errors are keyed by an input block: the first that has a value. */
function firstBlock(stored: JsonObject): string | null {
  const view = stored["view"] as { state?: { values?: Record<string, unknown> } } | undefined;
  return Object.keys(view?.state?.values ?? {})[0] ?? null;
}

async function passOn(deps: GateDeps, event: ReceiverEvent, ack: Ack, received: Received): Promise<void> {
  try {
    await deps.app.processEvent({
      ...event,
      ack: ack.run,
      customProperties: { ...event.customProperties, countersign: received },
    });
  } catch (error) {
    deps.ctx.log.error({ error: String(error) }, "a listener failed");
  }
  if (!ack.done()) await ack.run();
}

interface Ack {
  run(response?: unknown): Promise<void>;
  done(): boolean;
}

function once(deps: GateDeps, event: ReceiverEvent, arrival: Arrival, arrivedAtMs: number): Ack {
  let done = false;
  return {
    done: () => done,
    run: async (response) => {
      if (done) {
        deps.ctx.log.debug({ kind: arrival.kind }, "already acknowledged");
        return;
      }
      done = true;
      try {
        await event.ack(response);
        deps.ctx.metrics.acknowledged(arrival.kind, deps.monotonicMs() - arrivedAtMs);
      } catch (error) {
        deps.ctx.log.warn(
          { kind: arrival.kind, error: String(error) },
          "an acknowledgement failed; Slack may send it again",
        );
      }
    },
  };
}
