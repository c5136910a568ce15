/**
 * One request on the wire, from its idempotency key to the bytes that leave.
 *
 * Idempotency as docs.stripe.com/api/idempotent_requests states it for v1:
 * 1. the answer of a POST is kept under its key once execution began, refusals and 500s included, and replayed with
 *    `Idempotent-Replayed: true`;
 * 2. other parameters or another endpoint under a kept key are refused with `idempotency_error`;
 * 3. a key whose request still runs is refused with 409 and keeps nothing;
 * 4. a request that failed validation keeps nothing;
 * 5. a key older than its life is forgotten: the same key is then a new request.
 */
import { assertNever } from "../../domain/assert-never.js";
import { lateAnswer, meetArrival } from "./arrival.js";
import * as engine from "./engine.js";
import type { Fault, FaultRegistry, Meeting, Meetings } from "./faults.js";
import { canonicalForm, differingKeys, type FormObject } from "./form.js";
import type { WireObject } from "./objects.js";
import * as params from "./params.js";
import type { ProviderPromises } from "./promises.js";
import { read } from "./reads.js";
import {
  type Delivery,
  errorReply,
  garbageReply,
  okReply,
  type Reply,
  replyWith,
  serverErrorReply,
} from "./reply.js";
import * as store from "./store.js";
import { WireError, wireErrors } from "./wire-error.js";

/** A request that passed authentication, with its parameters decoded. */
export interface Incoming {
  method: "GET" | "POST" | "DELETE";
  path: string;
  form: FormObject;
  idempotencyKey: string | null;
  requestId: string;
  paymentIntent: string | null;
  operationId: string | null;
}

export interface PipelineContext extends engine.EngineContext {
  faults: FaultRegistry;
  promises(): ProviderPromises;
  /** Runs work later and outlives the request; flushed when the sandbox stops. */
  later(delayMs: number, work: () => Promise<void>): void;
  /** Waits, but not beyond the stop of the sandbox. */
  pause(delayMs: number): Promise<void>;
}

export interface Pipeline {
  handle(incoming: Incoming): Promise<Delivery>;
}

interface Executed {
  reply: Reply;
  /** An effect was committed by this very request. */
  committed: boolean;
  replayed: boolean;
}

export function createPipeline(ctx: PipelineContext): Pipeline {
  /** Keys whose request still runs, in this process. */
  const inFlight = new Set<string>();

  async function handle(incoming: Incoming): Promise<Delivery> {
    const met = ctx.faults.meet(incoming);
    try {
      const stopped = await meetArrival(met.arrival, async (error) => {
        const key = incoming.method === "POST" ? incoming.idempotencyKey : null;
        if (key === null || (await store.findKey(ctx.db, key)) !== null) return;
        await keep(ctx, ctx.db, incoming, key, error.status, JSON.stringify(error.body));
      });
      if (stopped !== null) return stopped;
      if (incoming.method === "GET")
        return replyWith(
          (
            await guarded(async () => ({
              reply: okReply(await read(ctx, incoming, met.read, ctx.promises().readback)),
              committed: false,
              replayed: false,
            }))
          ).reply,
        );
      return await write(incoming, met);
    } finally {
      met.release();
    }
  }

  async function write(incoming: Incoming, met: Meetings): Promise<Delivery> {
    // Stripe keeps keys for POST only; on DELETE the header is accepted and means nothing.
    const key = incoming.method === "POST" && ctx.promises().keyed ? incoming.idempotencyKey : null;
    if (key !== null && key.length > 255) return replyWith(errorReply(wireErrors.keyTooLong()));
    if (key !== null && inFlight.has(key)) return replyWith(errorReply(wireErrors.keyInUse()));
    if (key !== null) inFlight.add(key);
    let keepInFlight = false;
    const free = (): void => {
      if (key !== null) inFlight.delete(key);
    };
    try {
      if (met.key !== null && key !== null && (await store.forgetKeys(ctx.db, key)) > 0) met.key.fired();
      const run = (): Promise<Executed> => execute(ctx, incoming, key, met);
      const { timing } = met;
      switch (timing?.fault.kind) {
        case undefined:
          return await deliver(ctx, await run(), met);
        case "hang_then_commit": {
          await ctx.pause(timing.fault.delayMs);
          const done = await run();
          if (done.committed) timing.fired();
          return await deliver(ctx, done, met);
        }
        case "late_commit": {
          timing.fired();
          keepInFlight = true;
          ctx.later(
            Math.min(timing.fault.delayMs, ctx.promises().inflightBoundMs ?? Number.POSITIVE_INFINITY),
            async () => {
              try {
                await run();
              } finally {
                free();
              }
            },
          );
          return lateAnswer(timing.fault.answer);
        }
        case "redeliver": {
          const first = await run();
          let last = first;
          for (let copy = 0; copy < timing.fault.copies; copy += 1) last = await run();
          if (first.committed) timing.fired();
          return await deliver(ctx, timing.fault.answer === "first" ? first : last, met);
        }
        default:
          return assertNever(timing as never, "timing fault");
      }
    } finally {
      if (!keepInFlight) free();
    }
  }

  return { handle };
}

/** Looks at the key, then executes, and turns what was thrown on purpose into an answer. */
async function execute(
  ctx: PipelineContext,
  incoming: Incoming,
  key: string | null,
  met: Meetings,
): Promise<Executed> {
  return guarded(async () => {
    if (key !== null) {
      const stored = await store.findKey(ctx.db, key);
      if (stored !== null && stored.createdAtMs + ctx.promises().keyTtlMs > ctx.clock.nowMs()) {
        if (stored.method !== incoming.method || stored.path !== incoming.path)
          throw wireErrors.otherEndpoint();
        if (stored.paramsCanonical !== canonicalForm(incoming.form)) {
          throw wireErrors.otherParameters(differingKeys(stored.params as FormObject, incoming.form));
        }
        return {
          reply: {
            status: stored.status,
            body: stored.body,
            headers: { "idempotent-replayed": "true", "original-request": stored.requestId },
          },
          committed: false,
          replayed: true,
        };
      }
      if (stored !== null) await store.forgetKeys(ctx.db, key);
    }
    try {
      return { reply: okReply(await commit(ctx, incoming, key, met)), committed: true, replayed: false };
    } catch (error) {
      if (error instanceof WireError && error.executed && key !== null) {
        await keep(ctx, ctx.db, incoming, key, error.status, JSON.stringify(error.body));
      }
      throw error;
    }
  });
}

async function guarded(work: () => Promise<Executed>): Promise<Executed> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    return { reply: errorReply(error), committed: false, replayed: false };
  }
}

/** Commits the effect of a POST or DELETE together with the answer that its key keeps. */
async function commit(
  ctx: PipelineContext,
  incoming: Incoming,
  key: string | null,
  met: Meetings,
): Promise<WireObject> {
  const keeps500 = met.answer?.fault.kind === "commit_then_500";
  const effect: engine.EffectContext = {
    idempotencyKey: incoming.idempotencyKey,
    requestId: incoming.requestId,
    origin: "api",
    ...(key === null
      ? {}
      : {
          seal: async (tx: store.Queryable, answer: WireObject) => {
            const failure = wireErrors.serverError();
            await keep(
              ctx,
              tx,
              incoming,
              key,
              keeps500 ? failure.status : 200,
              JSON.stringify(keeps500 ? failure.body : answer),
            );
          },
        }),
  };
  const segments = incoming.path.split("/").slice(2);
  const [resource, id, verb] = segments;
  if (incoming.method === "POST" && resource === "refunds" && id === undefined) {
    return createRefund(ctx, incoming, effect, met.effect);
  }
  if (incoming.method === "POST" && resource === "refunds" && id !== undefined && verb === "cancel") {
    return engine.cancelRefund(ctx, id);
  }
  if (resource === "subscriptions" && id !== undefined && verb === undefined) {
    if (incoming.method === "DELETE") {
      params.checkCancelSubscription(incoming.form);
      return engine.cancelSubscription(ctx, id, effect);
    }
    return engine.updateSubscription(ctx, id, params.readUpdateSubscription(incoming.form), effect);
  }
  throw wireErrors.unknownUrl(incoming.method, incoming.path);
}

async function createRefund(
  ctx: PipelineContext,
  incoming: Incoming,
  effect: engine.EffectContext,
  met: Meetings["effect"],
): Promise<WireObject> {
  const wanted = params.readCreateRefund(incoming.form);
  const { refund, answer } = await engine.createRefund(ctx, wanted, effect, behaviourOf(met?.fault ?? null));
  if (met === null) return answer;
  met.fired();
  if (met.fault.kind === "outcome") {
    const { later } = met.fault;
    if (later !== undefined) {
      ctx.later(later.afterMs, async () => {
        await engine.advanceRefund(ctx, refund.id, { status: later.status });
      });
    }
    return answer;
  }
  return {
    ...answer,
    ...(met.fault.amount === undefined ? {} : { amount: met.fault.amount }),
    ...(met.fault.currency === undefined ? {} : { currency: met.fault.currency }),
    ...(met.fault.paymentIntent === undefined ? {} : { payment_intent: met.fault.paymentIntent }),
  };
}

function behaviourOf(
  fault: Extract<Fault, { kind: "outcome" | "wrong_answer" }> | null,
): engine.RefundBehaviour {
  if (fault === null) return {};
  if (fault.kind === "outcome") {
    return { status: fault.status, pendingReason: fault.pendingReason, failureReason: fault.failureReason };
  }
  if (!fault.persist) return {};
  return {
    ...(fault.amount === undefined ? {} : { amount: fault.amount }),
    ...(fault.currency === undefined ? {} : { currency: fault.currency }),
    ...(fault.paymentIntent === undefined ? {} : { paymentIntent: fault.paymentIntent }),
  };
}

async function keep(
  ctx: PipelineContext,
  db: store.Queryable,
  incoming: Incoming,
  key: string,
  status: number,
  body: string,
): Promise<void> {
  await store.insertKey(db, {
    key,
    method: incoming.method,
    path: incoming.path,
    params: incoming.form,
    paramsCanonical: canonicalForm(incoming.form),
    status,
    body,
    requestId: incoming.requestId,
    createdAtMs: ctx.clock.nowMs(),
  });
}

/** Lets the fault of the answer take effect, where something was committed. */
async function deliver(ctx: PipelineContext, done: Executed, met: Meetings): Promise<Delivery> {
  const { answer } = met;
  if (answer === null || !applies(answer, done)) return replyWith(done.reply);
  answer.fired();
  const { fault } = answer;
  switch (fault.kind) {
    case "commit_then_drop":
      return { kind: "drop", close: fault.close };
    case "commit_then_500":
      return replyWith(serverErrorReply());
    case "commit_then_stall":
      return { kind: "half", reply: done.reply, ending: "silence" };
    case "commit_then_cut":
      return { kind: "half", reply: done.reply, ending: fault.close };
    case "commit_then_hang":
      await ctx.pause(fault.delayMs);
      return replyWith(done.reply);
    case "commit_then_garbage":
      return replyWith(garbageReply(fault.status));
    default:
      return assertNever(fault, "answer fault");
  }
}

function applies(answer: Meeting<NonNullable<Meetings["answer"]>["fault"]>, done: Executed): boolean {
  if (done.committed) return true;
  return done.replayed && "onReplay" in answer.fault && answer.fault.onReplay;
}
