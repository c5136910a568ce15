/**
 * Plays commands against the real ledger on real Postgres and a provider with books of its own, and looks after each of them.
 *
 * The reference is small: which operations a command may touch, what the provider has done, and what follows from a status for
 * the money. Everything else is compared with it.
 */
import { expect } from "vitest";
import type { Db } from "../../../src/db/connect.js";
import type { AttemptOutcome, ProviderEffect } from "../../../src/domain/evidence.js";
import { holdingOf } from "../../../src/domain/holding.js";
import { judgeListing } from "../../../src/domain/judge-listing.js";
import { ENDED, type Operation, type OperationStatus } from "../../../src/domain/operation.js";
import { recover } from "../../../src/domain/recovery.js";
import * as ledger from "../../../src/ledger/index.js";
import { makeJudge } from "../../../src/policy/index.js";
import { type LedgerWorld, OPEN_POLICY, putRun, refund, usePolicy } from "../../support/ledger-world.js";
import { HOLDING_POLICY, moneyOf, passTime, prepare, REQUEST } from "../scene.js";
import type { Command } from "./commands.js";
import { ModelProvider } from "./provider.js";

const KEY_TTL_MS = 86_400_000;
const CAPTURED = 10_000n;

interface Flying {
  claim: ledger.Claim;
  /** null: not sent yet. */
  outcome: AttemptOutcome | null;
}

export class Episode {
  readonly provider: ModelProvider;
  private readonly ctx: LedgerWorld;
  private readonly flying: Flying[] = [];
  private readonly owners: Awaited<ReturnType<typeof putRun>>[] = [];
  private offsetMs = 0;
  private frozen = false;
  private before = new Map<string, Operation>();

  constructor(ctx: LedgerWorld) {
    this.ctx = ctx;
    this.provider = new ModelProvider(CAPTURED, KEY_TTL_MS, () => Date.now() + this.offsetMs);
  }

  private get db(): Db {
    return this.ctx.db;
  }

  async play(command: Command): Promise<void> {
    const receivedBefore = this.provider.received;
    const attemptsBefore = this.attempts();
    const frozenBefore = this.frozen;
    await this.carryOut(command);
    if (frozenBefore && this.frozen) {
      expect(this.provider.received, "nothing is sent while frozen").toBe(receivedBefore);
      const after = (await this.operations()).reduce((sum, { attempts }) => sum + attempts, 0);
      expect(after, "nothing is claimed or sent again while frozen").toBe(attemptsBefore);
    }
    await this.look(command);
  }

  private attempts(): number {
    return [...this.before.values()].reduce((sum, { attempts }) => sum + attempts, 0);
  }

  private async operations(...states: OperationStatus[]): Promise<Operation[]> {
    const page = await ledger.listOperations(this.db, { limit: 200 });
    return page.rows.filter(({ status }) => states.length === 0 || states.includes(status)).toReversed();
  }

  private async pick(index: number, ...states: OperationStatus[]): Promise<Operation | null> {
    const all = await this.operations(...states);
    return all.length === 0 ? null : (all[index % all.length] ?? null);
  }

  private async carryOut(command: Command): Promise<void> {
    switch (command.do) {
      case "propose":
        return this.propose(command);
      case "one_attempt":
        return this.oneAttempt(command);
      case "next_attempt":
        return this.nextAttempt(command);
      case "repeat":
      case "further":
        return this.again(command);
      case "release":
        return this.release(command.pick);
      case "deny":
      case "expire":
      case "void":
        return this.end(command.do, command.pick);
      case "abandon":
        return this.abandon(command.pick);
      case "claim":
        return this.claim(command.pick);
      case "send":
        return this.send(command);
      case "answer":
        return this.answer(command.pick);
      case "crash":
        this.take(command.pick);
        return;
      case "renew": {
        const flight = this.flying[command.pick % Math.max(1, this.flying.length)];
        if (flight !== undefined) await ledger.renewLease(this.ctx, leaseOf(flight.claim));
        return;
      }
      case "arrive": {
        const { inTheAir } = this.provider;
        const [operation] = inTheAir.splice(command.pick % Math.max(1, inTheAir.length), 1);
        if (operation !== undefined) this.provider.arrive(operation, "succeeded");
        return;
      }
      case "reconcile":
        return this.reconcile(command.limit);
      case "pending_ends":
      case "bank_returns":
        return this.providerChanges(command);
      case "webhook":
        return this.webhook(command.pick);
      case "by_hand":
        this.provider.byHand(BigInt(command.pounds) * 100n);
        return;
      case "elsewhere":
        return this.elsewhere();
      case "resolve":
        return this.resolve(command);
      case "send_authorised": {
        const operation = await this.pick(command.pick, "QUARANTINED");
        if (operation === null) return;
        const sent = await ledger.sendAuthorised(this.ctx, { operationId: operation.id, worker: "w" });
        if (sent.claimed) this.flying.push({ claim: sent, outcome: null });
        return;
      }
      case "time":
        this.offsetMs += command.ms;
        await passTime(this.db, command.ms);
        if (command.ms >= KEY_TTL_MS) this.provider.dropWhatIsInTheAir();
        return;
      case "freeze":
        await ledger.freeze(this.ctx, { kind: "refund", by: "U_ONC1", reason: "test" });
        this.frozen = true;
        return;
      case "thaw":
        await ledger.thaw(this.ctx, { kind: "refund", by: "U_ONC2" });
        this.frozen = false;
        return;
    }
  }

  private async propose(command: { pounds: number; held: boolean }): Promise<void> {
    await usePolicy(this.db, command.held ? HOLDING_POLICY : OPEN_POLICY);
    const owner = await putRun(this.db);
    this.owners.push(owner);
    const [call] = await prepare(this.ctx, refund(owner, BigInt(command.pounds) * 100n));
    const answers = command.held
      ? ["held", "same", "insufficient"]
      : ["prepared", "same", "insufficient", "held"];
    expect(answers).toContain(call?.outcome);
  }

  /** A whole first attempt, with the latest prepared operation. */
  private async oneAttempt(command: Extract<Command, { do: "one_attempt" }>): Promise<void> {
    await this.propose({ pounds: command.pounds, held: false });
    const waiting = await this.operations("PREPARED");
    const operation = waiting.at(-1);
    if (operation === undefined) return;
    const claim = await ledger.claim(this.ctx, { operation, worker: "w", request: REQUEST });
    if (!claim.claimed) return;
    this.flying.push({ claim, outcome: null });
    const unsent = this.flying.filter(({ outcome }) => outcome === null);
    await this.send({ do: "send", pick: unsent.length - 1, mode: command.mode });
    await this.answer(this.flying.length - 1);
  }

  /** A reconciler looks at an open outcome; what it sends again is answered at once. */
  private async nextAttempt(command: Extract<Command, { do: "next_attempt" }>): Promise<void> {
    const operation = await this.pick(command.pick, "OUTCOME_UNKNOWN");
    if (operation === null) return;
    const because = { operationId: operation.id, worker: "r", because: "evidence" } as const;
    const taken = await ledger.takeForReconcile(this.ctx, because);
    if (taken === null) return;
    const flying = this.flying.length;
    await this.decide(taken);
    if (this.flying.length === flying) return;
    const unsent = this.flying.filter(({ outcome }) => outcome === null);
    await this.send({ do: "send", pick: unsent.length - 1, mode: command.mode });
    await this.answer(this.flying.length - 1);
  }

  private async again(command: { do: "repeat" | "further"; pick: number }): Promise<void> {
    const operation = await this.pick(command.pick);
    if (operation === null || operation.occurrence > 1) return;
    const owner = await putRun(this.db);
    this.owners.push(owner);
    const proposal = refund(owner, operation.amountMinor);
    const further = { askedBy: "U_AGENT", of: operation.id };
    const [call] = await prepare(this.ctx, command.do === "further" ? { ...proposal, further } : proposal);
    const mayHaveEffect = holdingOf(operation.status) !== "none" || operation.status === "REVERSED";
    if (command.do === "repeat" && mayHaveEffect) {
      expect(call, "what may have an effect is never made twice").toMatchObject({
        outcome: "same",
        operation: { id: operation.id },
      });
    }
    if (command.do === "further")
      expect(["held", "same", "refused", "insufficient"]).toContain(call?.outcome);
  }

  private async release(index: number): Promise<void> {
    const operation = await this.pick(index, "AWAITING_APPROVAL");
    if (operation === null) return;
    await this.db.tx((tx) =>
      ledger.prepareTurn(tx, this.ctx, {
        calls: [
          {
            callId: this.ctx.ids.next("call_"),
            operationId: operation.id,
            bindingConfirmed: true,
            approval: {
              approvalId: this.ctx.ids.next("apr_"),
              approvedBy: ["U_SUP1"],
              accepts: async (_tx, { judgement }) =>
                judgement.answer === "refuse" ? { holds: false, changes: [] } : { holds: true },
            },
          },
        ],
        judge: makeJudge(),
        onHold: async () => {},
      }),
    );
  }

  private async end(how: "deny" | "expire" | "void", index: number): Promise<void> {
    const operation = await this.pick(index);
    if (operation === null) return;
    const act = { deny: ledger.deny, expire: ledger.expire, void: ledger.voidOperation }[how];
    const result = await this.db.tx((tx) =>
      act(tx, this.ctx, { operationId: operation.id, actor: "slack:U_SUP1", code: how, detail: how }),
    );
    const allowed = how === "expire" ? ["AWAITING_APPROVAL"] : ["AWAITING_APPROVAL", "PREPARED"];
    expect(result.moved).toBe(allowed.includes(operation.status));
  }

  private async abandon(index: number): Promise<void> {
    const owner = this.owners[index % Math.max(1, this.owners.length)];
    if (owner === undefined) return;
    await this.db.tx(async (tx) => {
      await ledger.abandon(tx, this.ctx, { runId: owner.runId, actor: `run:${owner.runId}` });
      await tx.sql(undefined, "UPDATE runs SET state = 'cancelled' WHERE id = $1", [owner.runId]);
    });
  }

  private async claim(index: number): Promise<void> {
    const operation = await this.pick(index, "PREPARED");
    if (operation === null) return;
    const claim = await ledger.claim(this.ctx, { operation, worker: "w", request: REQUEST });
    if (claim.claimed) this.flying.push({ claim, outcome: null });
    else if (claim.why === "key_expired") await this.end("void", index);
  }

  private take(index: number): Flying | null {
    const [flight] = this.flying.splice(index % Math.max(1, this.flying.length), 1);
    return flight ?? null;
  }

  private async send(command: Extract<Command, { do: "send" }>): Promise<void> {
    const waiting = this.flying.filter(({ outcome }) => outcome === null);
    const flight = waiting[command.pick % Math.max(1, waiting.length)];
    if (flight === undefined) return;
    const check = await ledger.checkSend(this.ctx, leaseOf(flight.claim));
    flight.outcome = check.ok
      ? this.provider.send(flight.claim.operation, command.mode)
      : { verdict: "not_executed", code: "send_refused", detail: check.code, retryAfterMs: null };
  }

  private async answer(index: number): Promise<void> {
    const flight = this.take(index);
    if (flight?.outcome == null) return;
    await ledger.settle(this.ctx, {
      operationId: flight.claim.operation.id,
      leaseToken: flight.claim.leaseToken,
      attempt: flight.claim.attempt,
      outcome: flight.outcome,
      operation: flight.claim.operation,
    });
  }

  private async evidenceFor(operation: Operation) {
    const listing = this.provider.list();
    const refs = listing.read === "complete" ? listing.effects.map(({ ref }) => ref) : [];
    return judgeListing(operation, listing, await ledger.listingContext(this.db, operation, refs));
  }

  private async reconcile(limit: number): Promise<void> {
    for (const taken of await ledger.takeDue(this.ctx, { worker: "r", limit })) await this.decide(taken);
  }

  private async decide(taken: ledger.Taken): Promise<void> {
    const { operation } = taken;
    const evidence = await this.evidenceFor(operation);
    const move = recover({
      contract: this.ctx.contracts.refund,
      evidence,
      attempts: taken.attempts,
      now: taken.now,
      firstClaimedAt: operation.firstClaimedAt,
      lastSendEndedAt: taken.lastSendEndedAt,
      unknownSince: operation.unknownSince ?? taken.now,
      quarantineAfterMs: this.ctx.timing.quarantineAfterMs,
      timeoutMs: this.ctx.timing.providerTimeoutMs,
      marginMs: this.ctx.timing.sendMarginMs,
      maxAttempts: 6,
      endedBefore: taken.endedBefore,
    });
    const lease = { operationId: operation.id, leaseToken: taken.leaseToken };
    if (move.do !== "send_again") {
      await ledger.settleReconcile(this.ctx, { ...lease, evidence, move });
      return;
    }
    this.assertNothingUnexplained(operation);
    const again = await ledger.resend(this.ctx, { ...lease, worker: "r", evidence: { says: "absent" } });
    if (again.claimed) this.flying.push({ claim: again, outcome: null });
    else
      await ledger.settleReconcile(this.ctx, { ...lease, evidence, move: { do: "later", why: again.why } });
  }

  /** What a person did by hand since our first attempt could be this very refund: then nothing may be sent again. */
  private assertNothingUnexplained(operation: Operation): void {
    const since = operation.firstClaimedAt?.getTime() ?? Number.POSITIVE_INFINITY;
    const byHand = this.provider
      .alive(null)
      .filter((effect) => effect.amountMinor === operation.amountMinor && effect.createdAt.getTime() > since);
    expect(byHand, `${operation.id} is sent again`).toEqual([]);
  }

  private async providerChanges(
    command: Extract<Command, { do: "pending_ends" | "bank_returns" }>,
  ): Promise<void> {
    const wanted = command.do === "pending_ends" ? "pending" : "succeeded";
    const effects = this.provider.effects.filter(
      ({ status, operationId }) => status === wanted && operationId !== null,
    );
    const effect = effects[command.pick % Math.max(1, effects.length)];
    if (effect === undefined) return;
    const well = command.do === "pending_ends" && command.well;
    const changed = this.provider.change(effect, well ? "succeeded" : "failed");
    await this.tell(changed);
  }

  private async webhook(index: number): Promise<void> {
    const effect = this.provider.effects[index % Math.max(1, this.provider.effects.length)];
    if (effect !== undefined) await this.tell(effect);
  }

  /** A webhook about an effect, judged as the dispatcher judges it. */
  private async tell(effect: ProviderEffect): Promise<void> {
    const operation = (await this.operations()).find(({ id }) => id === effect.operationId);
    if (operation === undefined) return;
    const evidence: ledger.NewEvidence = {
      operationId: operation.id,
      source: "webhook",
      providerRef: effect.ref,
      dedupeKey: `effect:${effect.ref}:${effect.status}:${effect.amountMinor}`,
      payload: { ref: effect.ref, status: effect.status },
    };
    const about = {
      operationId: operation.id,
      actor: "system:webhook",
      evidence,
      detail: "told by the provider",
    } as const;
    const dead = effect.status === "failed";
    if (operation.status === "CONFIRMED" && dead && effect.ref === operation.providerRef) {
      await ledger.reverse(this.ctx, { ...about, code: "declined" });
    } else if (operation.status === "REJECTED" && !dead) {
      await ledger.contradict(this.ctx, about);
    } else {
      await this.db.tx((tx) => ledger.recordEvidence(tx, this.ctx, evidence));
      const taken = await ledger.takeForReconcile(this.ctx, {
        operationId: operation.id,
        worker: "r",
        because: "due",
      });
      if (taken !== null) await this.decide(taken);
    }
  }

  private async elsewhere(): Promise<void> {
    await ledger.recordElsewhere(this.ctx, { paymentIntent: "pi_1", listed: this.provider.alive(null) });
  }

  private async resolve(command: Extract<Command, { do: "resolve" }>): Promise<void> {
    const operation = await this.pick(command.pick, "OUTCOME_UNKNOWN", "RECONCILING", "QUARANTINED");
    if (operation === null) return;
    // A person who confirms has seen the effect; without one they do not.
    const probe = await this.evidenceFor(operation);
    if (command.verb === "confirm" && probe.says !== "committed") return;
    // Nobody closes as not executed what is still on its way: that is what the evidence is for.
    if (command.verb === "reject" && this.provider.inTheAir.some(({ id }) => id === operation.id)) return;
    const asked = await ledger.resolve(this.ctx, {
      operationId: operation.id,
      expectedVersion: operation.version,
      verb: command.verb,
      by: "U_ONC1",
      reason: "test",
      evidenceRef: "test",
      probe,
      needsSecond: false,
      secondWithinMs: 3_600_000,
    });
    if (asked.outcome !== "needs_second") return;
    await ledger.secondResolve(this.ctx, {
      resolutionId: asked.resolution.id,
      by: "U_ONC2",
      verdict: command.agree ? "agree" : "disagree",
      note: null,
      probe,
    });
  }

  /** After every command. */
  private async look(command: Command): Promise<void> {
    const operations = await this.operations();
    const money = { reserved: 0n, refunded: 0n };
    for (const operation of operations) {
      const holding = holdingOf(operation.status);
      if (holding !== "none") money[holding] += operation.amountMinor;
      const effects = this.provider.alive(operation.id);
      expect(effects.length, `${operation.id} took effect once at most`).toBeLessThanOrEqual(1);
      if (operation.status === "CONFIRMED" && this.before.get(operation.id)?.status !== "CONFIRMED") {
        const states = this.provider.effects
          .filter(({ operationId }) => operationId === operation.id)
          .map(({ status }) => status);
        expect(states, `${operation.id} was confirmed`).toContain("succeeded");
      }
      if (holding === "none") {
        const open = this.provider.mayStillCommit(operation);
        expect(open, `${operation.status} although what was sent may still commit`).toBe(false);
      }
      if (effects.length > 0) {
        const known = holding !== "none" || operation.status === "REJECTED";
        expect(known, `${operation.status} although ${effects[0]?.ref} exists`).toBe(true);
      }
      const earlier = this.before.get(operation.id);
      if (earlier !== undefined && ENDED.has(earlier.status) && earlier.status !== operation.status) {
        expect(["webhook", "answer", "pending_ends", "bank_returns"]).toContain(command.do);
      }
    }
    const actual = await moneyOf(this.db);
    expect({ reserved: actual.reserved, refunded: actual.refunded }).toEqual(money);
    expect(actual.counted).toBe(money.reserved + money.refunded);
    const overdrawn = actual.reserved + actual.refunded + actual.elsewhere > actual.captured;
    if (overdrawn) {
      const kinds = (await ledger.listIncidents(this.db, { limit: 200 })).rows.map(({ kind }) => kind);
      expect(kinds, "a plan that no longer holds is an incident").toContain("overdrawn");
    }
    this.before = new Map(operations.map((operation) => [operation.id, operation]));
  }

  /** At the end: everybody is told everything, machines do what they can, and the books agree. */
  async settleDown(): Promise<void> {
    await this.play({ do: "thaw" });
    for (const operation of this.provider.inTheAir.splice(0)) this.provider.arrive(operation, "succeeded");
    for (const effect of this.provider.effects.filter(({ status }) => status === "pending")) {
      this.provider.change(effect, "succeeded");
    }
    for (let round = 0; round < 12; round += 1) {
      while (this.flying.length > 0) {
        await this.play({ do: "send", pick: 0, mode: "ok" });
        await this.play({ do: "answer", pick: 0 });
      }
      await this.play({ do: "time", ms: 600_000 });
      await this.play({ do: "reconcile", limit: 50 });
      for (const pick of this.provider.effects.keys()) await this.play({ do: "webhook", pick });
    }
    for (const operation of await this.operations()) {
      const alive = this.provider.alive(operation.id).length;
      expect(["DISPATCHED", "OUTCOME_UNKNOWN", "RECONCILING"], operation.id).not.toContain(operation.status);
      if (operation.status === "CONFIRMED") expect(alive, `${operation.id} is confirmed`).toBe(1);
      else if (operation.status !== "QUARANTINED")
        expect(alive, `${operation.id} ${operation.status}`).toBe(0);
    }
    await ledger.sealBlocks(this.db);
    expect((await ledger.verifyAudit(this.db)).broken).toEqual([]);
  }
}

const leaseOf = (claim: ledger.Claim): ledger.LeaseRef => ({
  operationId: claim.operation.id,
  leaseToken: claim.leaseToken,
});
