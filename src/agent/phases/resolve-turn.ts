/**
 * Phase "resolve turn": every call is parsed, checked against the ticket's scope and, if it would change anything, put to the
 * gate together with its siblings. If one of them is held, none runs.
 */

import { sha256Hex } from "../../domain/canonical.js";
import { failpoint } from "../../domain/failpoints.js";
import type { OperationId } from "../../domain/ids.js";
import type { Tx } from "../../domain/ports/database.js";
import type { Claim } from "../../ledger/index.js";
import {
  decideCall,
  finishCall,
  getTicket,
  giveBack,
  moveTurn,
  type RunView,
  setRunning,
  type Ticket,
  type ToolCall,
  type Turn,
} from "../../runs/index.js";
import type { AgentCtx, PerCall, Proposal } from "../ports.js";
import { type Scope, scopeOf } from "../scope.js";
import { isWriteCall, type WriteCall } from "../tools/catalogue.js";
import { type ParsedCall, parseCall } from "../tools/parse.js";
import { computeWrite, type Refused } from "../tools/writes.js";
import { applyAnswer } from "./apply.js";
import { APPROVAL_RELOOK_MS, type Driven, GO_ON, type PhaseOutcome, park } from "./phase.js";

interface Read {
  call: ToolCall;
  parsed: ParsedCall;
}

export async function resolveTurn(ctx: AgentCtx, driven: Driven, turn: Turn): Promise<PhaseOutcome> {
  const { view, lease } = driven;
  const calls = view.calls
    .filter((call) => call.turnId === turn.id && call.state !== "done")
    .map((call): Read => ({ call, parsed: parseCall(call.name, call.input) }));
  if (calls.some(isWrite) && scopeOf(view.ticket).kind === "unbound") {
    await ctx.db.tx((tx) => ctx.notices.touch(tx, { kind: "binding", id: view.ticket.id }));
    return park(ctx, driven, { to: "awaiting_binding", dueInMs: null, clock: "stops" });
  }
  if (calls.some(isWrite) && view.ticket.binding === "unconfirmed" && view.run.state === "running") {
    // Give the filer a moment: a confirmation spares the supervisor a card. The question names what waits for it.
    await ctx.db.tx((tx) => ctx.notices.touch(tx, { kind: "binding", id: view.ticket.id }));
    return park(ctx, driven, { to: "awaiting_binding", dueInMs: ctx.confirmGraceMs, clock: "stops" });
  }
  const held = await ctx.db.tx(async (tx) => {
    const isHeld = await decideAll(tx, ctx, driven, turn, calls);
    await failpoint("agent.after_turn_prepared");
    if (view.run.state !== "running") await setRunning(tx, lease);
    await moveTurn(tx, lease, { turnId: turn.id, to: isHeld ? "held" : "released" });
    if (isHeld) {
      await giveBack(tx, lease, { to: "awaiting_approval", dueInMs: APPROVAL_RELOOK_MS, clock: "stops" });
    }
    await ctx.notices.touch(tx, { kind: "run", id: lease.runId });
    return isHeld;
  });
  await failpoint(held ? "agent.after_turn_held" : "agent.after_turn_released");
  return held ? { goOn: false, parked: "awaiting_approval" } : GO_ON;
}

const isWrite = ({ parsed }: Read): boolean => parsed.ok && isWriteCall(parsed.call);

/** Answers what code can answer at once, puts the writes to the gate. True: something is held. */
async function decideAll(
  tx: Tx,
  ctx: AgentCtx,
  driven: Driven,
  turn: Turn,
  calls: readonly Read[],
): Promise<boolean> {
  const { view } = driven;
  // Read again inside the transaction: the filer may have changed the customer since.
  const ticket = (await getTicket(tx, view.ticket.id)) ?? view.ticket;
  const scope = scopeOf(ticket);
  const proposals: { call: ToolCall; proposal: Proposal }[] = [];
  for (const { call, parsed } of calls) {
    if (!parsed.ok) {
      await answer(tx, call, { rule: "input", sentence: parsed.sentence }, "invalid");
      continue;
    }
    if (!isWriteCall(parsed.call)) {
      await decideCall(tx, {
        callId: call.id,
        state: "ready",
        decision: "allowed",
        decisionDetail: null,
        operationId: null,
      });
      continue;
    }
    const proposal = await propose(tx, ctx, { view, turn, ticket, scope }, call, parsed.call);
    if ("sentence" in proposal) await answer(tx, call, proposal, "refused");
    else proposals.push({ call, proposal });
  }
  // Alone in its turn it is sent next: nothing comes between the claim and the sending.
  const sendNext = calls.length === 1;
  return proposals.length > 0 && (await putToGate(tx, ctx, driven, turn, { proposals, sendNext }));
}

const answer = (
  tx: Tx,
  call: ToolCall,
  { rule, sentence }: Refused,
  decision: "invalid" | "refused",
): Promise<boolean> =>
  finishCall(tx, {
    callId: call.id,
    result: sentence,
    resultJson: { refused_by: rule },
    isError: true,
    decision,
  });

interface Where {
  view: RunView;
  turn: Turn;
  ticket: Ticket;
  scope: Scope;
}

/** The proposal as code computes it, or what refuses it. */
async function propose(
  tx: Tx,
  ctx: AgentCtx,
  { view, turn, ticket, scope }: Where,
  call: ToolCall,
  write: WriteCall,
): Promise<Proposal | Refused> {
  if (scope.kind === "unbound") {
    return {
      rule: "no_customer",
      sentence: "Nobody is bound to this ticket: nothing can be changed. Nothing was done.",
    };
  }
  const further = furtherOf(call);
  const lookedUp = view.run.planner === "code" ? null : lookedUpBefore(view, turn);
  const computed = await computeWrite(ctx, tx, { scope, lookedUp }, write);
  if (!computed.ok) return computed;
  return {
    callId: call.id,
    intent: computed.intent,
    landing: computed.landing,
    itemRefs: computed.itemRefs,
    refundScope: computed.refundScope,
    reason: computed.reason,
    runId: view.run.id,
    ticketId: ticket.id,
    ticketTextHash: sha256Hex(ticket.text),
    filers: ticket.filers,
    bindingConfirmed: scope.confirmed,
    ...(further === null ? {} : { further }),
  };
}

/** Only code writes this, on a person's click. */
function furtherOf(call: ToolCall): { askedBy: string; of: OperationId } | null {
  const detail = call.decisionDetail?.["further"];
  if (typeof detail !== "object" || detail === null || Array.isArray(detail)) return null;
  const { askedBy, of } = detail;
  return typeof askedBy === "string" && typeof of === "string" ? { askedBy, of: of as OperationId } : null;
}

/** Orders that get_order has shown in an earlier turn, in capitals. */
function lookedUpBefore(view: RunView, turn: Turn): Set<string> {
  const earlier = new Set(view.turns.filter((one) => one.seq < turn.seq).map((one) => one.id));
  const found = new Set<string>();
  for (const call of view.calls) {
    if (call.name !== "get_order" || call.isError !== false || !earlier.has(call.turnId)) continue;
    const shown = call.resultJson;
    if (typeof shown !== "object" || shown === null || Array.isArray(shown)) continue;
    const order = shown["order"];
    if (typeof order !== "object" || order === null || Array.isArray(order)) continue;
    const reference = order["reference"];
    if (typeof reference === "string") found.add(reference.toUpperCase());
  }
  return found;
}

async function putToGate(
  tx: Tx,
  ctx: AgentCtx,
  { view, claims }: Driven,
  turn: Turn,
  asked: { proposals: readonly { call: ToolCall; proposal: Proposal }[]; sendNext: boolean },
): Promise<boolean> {
  const { proposals, sendNext } = asked;
  const answers = await ctx.gate.prepare(tx, {
    runId: view.run.id,
    turnId: turn.id,
    ticketId: view.ticket.id,
    proposals: proposals.map(({ proposal }) => proposal),
    sendNext,
  });
  const byCall = new Map<string, PerCall>(answers.map((one) => [one.callId, one]));
  for (const { call, proposal } of proposals) {
    const given = byCall.get(call.id);
    if (given === undefined) throw new Error(`the gate did not answer ${call.id}`);
    await applyAnswer(tx, ctx, view, { call, answer: given, proposal });
    if (given.outcome === "prepared") keepClaim(tx, claims, given.claim);
    if (given.outcome === "refused") tx.afterCommit(() => ctx.forbidden("policy"));
  }
  return answers.some((one) => one.outcome === "held");
}

/** Once it is committed; undone, there is no claim. */
function keepClaim(tx: Tx, claims: Driven["claims"], claim: Claim | null): void {
  if (claim !== null) tx.afterCommit(() => claims.set(claim.operation.id, claim));
}
