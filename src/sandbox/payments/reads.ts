/** The GET endpoints, and the ways in which a read may be old or untrue. */
import { assertNever } from "../../domain/assert-never.js";
import * as engine from "./engine.js";
import type { Meetings } from "./faults.js";
import type { FormObject } from "./form.js";
import { deterministicId } from "./ids.js";
import type { WireObject } from "./objects.js";
import * as params from "./params.js";
import type { ProviderPromises } from "./promises.js";
import type { RefundRecord } from "./records.js";
import * as store from "./store.js";
import { wireErrors } from "./wire-error.js";

export interface ReadRequest {
  method: string;
  path: string;
  form: FormObject;
  paymentIntent: string | null;
}

/** @throws WireError */
export async function read(
  ctx: engine.EngineContext,
  incoming: ReadRequest,
  met: Meetings["read"],
  readback: ProviderPromises["readback"],
): Promise<WireObject> {
  const lag = typeof readback === "object" ? { lagMs: readback.lagMs } : {};
  const behaviour = { ...lag, ...(await readBehaviour(ctx, incoming, met)) };
  const [resource, id, rest] = incoming.path.split("/").slice(2);
  const silent = readback === "none" && (resource === "refunds" || resource === "subscriptions");
  if (rest !== undefined || silent) throw wireErrors.unknownUrl(incoming.method, incoming.path);
  return readResource(ctx, incoming, resource, id, behaviour);
}

async function readResource(
  ctx: engine.EngineContext,
  incoming: ReadRequest,
  resource: string | undefined,
  id: string | undefined,
  behaviour: engine.ReadBehaviour,
): Promise<WireObject> {
  if (resource === "refunds" && (id === undefined || id === "")) {
    return engine.listRefunds(ctx, params.readListRefunds(incoming.form), behaviour);
  }
  if (id !== undefined && resource === "refunds") {
    const expand = params.readExpandOnly(incoming.form, ["charge", "payment_intent"]);
    return engine.retrieveRefund(ctx, id, expand, behaviour);
  }
  if (id !== undefined && resource === "payment_intents") {
    const expand = params.readExpandOnly(incoming.form, ["latest_charge"]);
    return engine.retrievePaymentIntent(ctx, id, expand);
  }
  if (id !== undefined && resource === "charges") {
    params.readExpandOnly(incoming.form, []);
    return engine.retrieveCharge(ctx, id);
  }
  if (id !== undefined && resource === "subscriptions") {
    params.readExpandOnly(incoming.form, []);
    return engine.retrieveSubscription(ctx, id);
  }
  if (resource === "balance" && id === undefined) {
    return { object: "balance", available: [], pending: [], livemode: false };
  }
  throw wireErrors.unknownUrl(incoming.method, incoming.path);
}

async function readBehaviour(
  ctx: engine.EngineContext,
  incoming: ReadRequest,
  met: Meetings["read"],
): Promise<engine.ReadBehaviour> {
  if (met === null || !incoming.path.startsWith("/v1/refunds")) return {};
  const { fault } = met;
  switch (fault.kind) {
    case "stale_read":
      met.fired();
      return { lagMs: fault.lagMs };
    case "lying_read": {
      if (fault.lie === "hide") {
        met.fired();
        return { hideAll: true };
      }
      const invented = await inventRefund(ctx, incoming.paymentIntent);
      if (invented === null) return {};
      met.fired();
      return { invent: invented };
    }
    default:
      return assertNever(fault, "read fault");
  }
}

/** A refund that never happened, dressed as the answer to the last POST for this payment intent. */
async function inventRefund(
  ctx: engine.EngineContext,
  paymentIntent: string | null,
): Promise<RefundRecord | null> {
  if (paymentIntent === null) return null;
  const asked = await store.listRequests(ctx.db, {
    method: "POST",
    path: "/v1/refunds",
    paymentIntent,
    afterOrdinal: 0,
  });
  const last = asked.at(-1);
  const charge = await store.findCharge(ctx.db, { paymentIntent });
  if (last === undefined || charge === null) return null;
  const wanted = params.readCreateRefund(last.params as FormObject);
  return {
    ordinal: Number.MAX_SAFE_INTEGER,
    id: deterministicId(ctx.seed, "re", `invented|${last.id}`),
    charge: charge.id,
    paymentIntent,
    amount: wanted.amount ?? charge.amount,
    currency: charge.currency,
    status: "succeeded",
    pendingReason: null,
    failureReason: null,
    reason: null,
    metadata: wanted.metadata,
    origin: "api",
    idempotencyKey: last.idempotencyKey,
    createdAtMs: ctx.clock.nowMs(),
  };
}
