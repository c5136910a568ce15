/**
 * Phase "call model": reserve, call once, store the reply before anything of it runs. What fails is not repeated here: the run
 * is given back with a due time.
 */
import { sha256Hex } from "../../domain/canonical.js";
import { failpoint } from "../../domain/failpoints.js";
import type { Json } from "../../domain/json.js";
import {
  failReservation,
  giveBack,
  type NewCall,
  type NewTurn,
  recordTurn,
  reserveCall,
  setRunning,
} from "../../runs/index.js";
import { buildConversation } from "../history.js";
import type { ModelPrice, PlannerFailure, PlannerReply, PlannerRequest } from "../planner.js";
import type { AgentCtx } from "../ports.js";
import { systemPrompt } from "../prompt.js";
import { TOOL_DEFINITIONS } from "../tools/catalogue.js";
import { endForBudget, endNow } from "./finish.js";
import { type Driven, GO_ON, type PhaseOutcome } from "./phase.js";

/** Characters of a request for one input token, on the safe side: used before the call, corrected after it. */
const CHARS_PER_TOKEN = 3;
const MICRO = 1_000_000n;
/** A wait of the service's choosing gets this much on top, so that it is really over. */
const RETRY_AFTER_SLACK_MS = 100;

export async function callModel(
  ctx: AgentCtx,
  driven: Driven,
  { larger }: { larger: boolean },
): Promise<PhaseOutcome> {
  const { lease, view } = driven;
  const { settings } = ctx;
  if (view.run.state !== "running") await setRunning(ctx.db, lease);
  const { messages, newNotes } = buildConversation(view);
  const request: Omit<PlannerRequest, "signal"> = {
    system: systemPrompt(await ctx.policyHelp()),
    tools: TOOL_DEFINITIONS,
    messages,
    maxTokens: larger ? settings.largerOutputTokens : settings.maxOutputTokens,
    deadlineMs: settings.callDeadlineMs,
  };
  const seq = (view.turns.at(-1)?.seq ?? 0) + 1;
  const text = JSON.stringify([request.system, request.tools, messages]);
  const reservation = await reserveCall(ctx.db, lease, {
    estimateMicroUsd: costOf(settings.price, Math.ceil(text.length / CHARS_PER_TOKEN), request.maxTokens),
    dailyMaxMicroUsd: settings.dailyMaxMicroUsd,
    turnSeq: seq,
    noteIds: newNotes.map((note) => note.id),
  });
  if (!reservation.ok) return endForBudget(ctx, driven, reservation);
  await failpoint("agent.before_model_call");
  const answer = await ctx.planner.plan({ ...request, signal: driven.signal });
  await failpoint("agent.after_model_reply");
  if (!answer.ok) return onFailure(ctx, driven, answer.failure);
  await ctx.db.tx(async (tx) => {
    await recordTurn(
      tx,
      ctx,
      lease,
      turnOf(answer.reply, { seq, price: settings.price, hash: sha256Hex(text) }),
    );
    await ctx.notices.touch(tx, { kind: "run", id: lease.runId });
  });
  await failpoint("agent.after_turn_recorded");
  return GO_ON;
}

/** Millionths of a dollar, rounded up. */
function costOf(price: ModelPrice | null, inputTokens: number, outputTokens: number): bigint {
  if (price === null) return 0n;
  const total = BigInt(inputTokens) * price.inputMicroUsd + BigInt(outputTokens) * price.outputMicroUsd;
  return (total + MICRO - 1n) / MICRO;
}

function turnOf(
  reply: PlannerReply,
  { seq, price, hash }: { seq: number; price: ModelPrice | null; hash: string },
): NewTurn {
  const calls = reply.stopReason === "tool_use" ? callsOf(reply) : [];
  const { inputTokens, outputTokens, raw } = reply.usage;
  return {
    seq,
    state: calls.length > 0 ? "recorded" : "final",
    content: reply.content,
    stopReason: reply.stopReason,
    stopDetails: reply.stopDetails,
    model: reply.model,
    usage: raw,
    inputTokens,
    outputTokens,
    costMicroUsd: costOf(price, inputTokens, outputTokens),
    requestHash: hash,
    calls,
  };
}

/** The calls of a reply in their order; none at all if they could not be answered one by one. */
function callsOf(reply: PlannerReply): NewCall[] {
  const blocks = reply.content.filter((block) => block.type === "tool_use");
  const ids = blocks.map((block) => block["id"]);
  const answerable = ids.every((id) => typeof id === "string" && id !== "");
  if (!answerable || new Set(ids).size < ids.length) return [];
  return blocks.map((block) => {
    const id = String(block["id"]);
    const problem = reply.malformed.get(id);
    return {
      toolUseId: id,
      name: typeof block["name"] === "string" ? block["name"] : "",
      input: (block["input"] ?? null) as Json,
      ...(problem === undefined
        ? {}
        : { refusal: { decision: "invalid" as const, result: `${problem} Nothing was done.` } }),
    };
  });
}

/** No reply: later, with the time stored in the row, or never. */
async function onFailure(ctx: AgentCtx, driven: Driven, failure: PlannerFailure): Promise<PhaseOutcome> {
  const { lease, view } = driven;
  if (failure.next === "give_up") {
    await ctx.db.tx((tx) => failReservation(tx, lease, { billed: false }));
    return endNow(ctx, driven, { state: "failed", code: failure.code, detail: failure.detail });
  }
  const { failures } = await ctx.db.tx((tx) => failReservation(tx, lease, { billed: failure.billed }));
  ctx.log.warn({ runId: lease.runId, code: failure.code, failures }, "the model call brought no reply");
  const delay = backoffMs(ctx, failures, failure.retryAfterMs);
  const left = view.run.deadlineMs - view.run.activeMs;
  if (failures >= ctx.settings.maxFailures || delay > left) {
    const why =
      delay > left
        ? `It asked to wait ${Math.ceil(delay / 1000)} s, longer than this run has left.`
        : `It failed ${failures} times in a row.`;
    return endNow(ctx, driven, {
      state: "failed",
      code: "model_unavailable",
      detail: `The model could not be reached. ${failure.detail} ${why}`,
    });
  }
  await ctx.db.tx(async (tx) => {
    await giveBack(tx, lease, { to: "queued", dueInMs: delay, clock: "runs" });
    await ctx.notices.touch(tx, { kind: "run", id: lease.runId });
  });
  return { goOn: false, parked: "queued" };
}

/** Doubling with jitter up to the cap; never shorter than what the service asked for. */
function backoffMs(ctx: AgentCtx, failures: number, retryAfterMs: number | null): number {
  const step = Math.min(ctx.settings.retryMaxMs, ctx.settings.retryBaseMs * 2 ** Math.min(failures - 1, 20));
  const jittered = Math.ceil(step * (0.75 + 0.25 * ctx.ids.random()));
  return retryAfterMs === null ? jittered : Math.max(jittered, retryAfterMs + RETRY_AFTER_SLACK_MS);
}
