/** The product's way from an intent to CONFIRMED, on the ledger's own functions: prepare, claim, settle. */
import { sendClaimed } from "../../../dispatch/index.js";
import type { Operation } from "../../../domain/operation.js";
import { prepareTurn, settle } from "../../../ledger/index.js";
import { makeJudge } from "../../../policy/index.js";
import type { ReconcileCtx } from "../../../reconcile/index.js";
import { AMOUNT_MINOR, CURRENCY, effectRef, type Owner, paymentIntent, proposalFor } from "./premises.js";

const judge = makeJudge();

/** `wire`: the provider is really asked, through dispatch; else its answer is made up here and nothing is called. */
export type Asking = "nobody" | "wire";

/** Takes operation `n` from an intent to CONFIRMED. Throws when it ends otherwise. */
export async function carryOut(
  ctx: ReconcileCtx,
  n: number,
  owner: Owner,
  asking: Asking,
): Promise<Operation> {
  const callId = ctx.ids.next("call_");
  const proposal = proposalFor(n, owner, callId);
  const [call] = await ctx.db.tx((tx) =>
    prepareTurn(tx, ctx, {
      calls: [{ callId, proposal }],
      judge,
      onHold: async () => {},
      claim: { worker: ctx.worker, buildRequest: (material) => ctx.provider.buildRequest(material) },
    }),
  );
  if (call?.outcome !== "prepared") throw new Error(`not prepared: ${JSON.stringify(call?.outcome)}`);
  const claimed = call.claim;
  if (claimed === null) throw new Error("not claimed");
  if (asking === "wire") return confirmed(await sendClaimed(ctx, claimed));
  const { operation } = claimed;
  const settled = await settle(ctx, {
    operationId: operation.id,
    leaseToken: claimed.leaseToken,
    attempt: claimed.attempt,
    operation,
    outcome: {
      verdict: "committed",
      requestId: null,
      replayed: false,
      effect: {
        ref: effectRef(n),
        kind: "refund",
        target: paymentIntent(n),
        amountMinor: BigInt(AMOUNT_MINOR),
        currency: CURRENCY,
        status: "succeeded",
        pendingReason: null,
        failureReason: null,
        operationId: operation.id,
        createdAt: operation.createdAt,
      },
    },
  });
  return confirmed(settled.operation);
}

function confirmed(operation: Operation): Operation {
  if (operation.status !== "CONFIRMED") throw new Error(`${operation.id} ended as ${operation.status}`);
  return operation;
}
