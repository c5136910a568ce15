/**
 * The product: ledger, dispatch and reconciler as a worker runs them. The worker dies where the scenario says; the next one knows
 * what the database knows.
 */
import { drive, processWebhook, sendClaimed, storeWebhook } from "../../dispatch/index.js";
import { armFailpoint } from "../../domain/failpoints.js";
import type { CallId, OperationId } from "../../domain/ids.js";
import { ENDED, type Operation } from "../../domain/operation.js";
import type { PaymentProvider } from "../../domain/ports/payment-provider.js";
import {
  deny,
  expire,
  getOperation,
  listIncidents,
  type Proposal,
  prepareTurn,
  sendAuthorised,
} from "../../ledger/index.js";
import { createWebhookVerifier } from "../../payments/index.js";
import { makeJudge } from "../../policy/index.js";
import { type ReconcileCtx, reconcileOne, sweepOrphans } from "../../reconcile/index.js";
import { providerContract } from "../faults/contracts.js";
import { failpointOf } from "../faults/crash-points.js";
import { CALL_MS } from "../faults/modes.js";
import { CURRENCY } from "../faults/premises.js";
import type { Claim } from "../faults/score.js";
import { CUSTOMER_REF, WEBHOOK_SECRET } from "../faults/world.js";
import { Dead, type Life, lifeHere, newLife } from "../mortal.js";
import { inProcessProduct } from "../product.js";
import type { Arm, Played, Stage } from "./arm.js";
import { brokenRules } from "./our-rules.js";
import type { Owner } from "./owner.js";

/** Far more looks than any episode needs before its time for a person has come. */
const MAX_LOOKS = 60;
const DAY_MS = 24 * 3_600_000;

export function ours(owner: Owner): Arm {
  return { name: "ours", play: (stage) => new Episode(stage, owner).play() };
}

/** One episode: the only state is which worker lives, and what the cards showed. */
class Episode {
  readonly #stage: Stage;
  readonly #owner: Owner;
  readonly #cards = new Set<string>();
  #life: Life;
  #workers = 0;
  #crashed: boolean;
  #firstTryOver = false;

  constructor(stage: Stage, owner: Owner) {
    this.#stage = stage;
    this.#owner = owner;
    this.#life = newLife(stage.world.db);
    this.#crashed = stage.scenario.crash === "none";
  }

  async play(): Promise<Played> {
    const { world, mode, armed } = this.#stage;
    const disarm = this.#armCrash();
    if (mode.webhooks === true) await world.onWebhook((body, signature) => this.#hear(body, signature));
    try {
      const id = await this.#prepare();
      if (mode.unauthorised === undefined) await this.#workUntilOver(id);
      else await this.#withoutAuthority(id, mode.unauthorised);
      if (armed.afterEnd !== undefined) {
        await armed.afterEnd();
        await this.#workUntilOver(id);
      }
      return await this.#played(id);
    } finally {
      disarm();
      await world.onWebhook(null);
      if (!this.#life.dead) void this.#life.die();
    }
  }

  /** One worker's context; a new one after a death. */
  #context(): ReconcileCtx {
    const { world, mode, scenario } = this.#stage;
    if (this.#life.dead) this.#life = newLife(world.db);
    this.#workers += 1;
    return inProcessProduct({
      db: this.#life.db,
      ids: world.ports.ids,
      clock: world.ports.clock,
      log: world.ports.log,
      provider: this.#provider(),
      verifyWebhook: createWebhookVerifier(WEBHOOK_SECRET),
      refundContract: providerContract(scenario.contract).ledger,
      providerTimeoutMs: mode.timeoutMs ?? CALL_MS,
      worker: `w${this.#workers}`,
      onCard: (subject) => void this.#cards.add(`${subject.kind}:${subject.id}`),
    });
  }

  /** The adapter, with a connection that may be refused and a release that may word requests anew. */
  #provider(): PaymentProvider {
    const { world, mode, armed } = this.#stage;
    const reworded = mode.rebuilt === true && this.#firstTryOver;
    return {
      ...world.provider,
      buildRequest: (operation) => {
        const request = world.provider.buildRequest(operation);
        return reworded ? { ...request, params: { ...request.params, reason: "duplicate" } } : request;
      },
      execute: (operation, request, options) => {
        const wire = armed.refusesConnection?.() === true ? world.unreachable : world.provider;
        return wire.execute(operation, request, options);
      },
    };
  }

  #armCrash(): () => void {
    const failpoint = failpointOf(this.#stage.scenario.crash);
    if (failpoint === null) return () => {};
    let disarm = (): void => {};
    const arm = (): void => {
      disarm = armFailpoint(failpoint, () => {
        if (lifeHere() !== this.#life) return arm();
        this.#crashed = true;
        return this.#life.die();
      });
    };
    arm();
    return () => disarm();
  }

  async #prepare(): Promise<OperationId> {
    const { scenario } = this.#stage;
    if (scenario.crash === "prepare.before_commit") {
      await this.#propose(dieInTransaction(this.#life)).catch(expectDeath);
      this.#crashed = true;
    }
    const id = await this.#propose(async () => {});
    if (scenario.crash === "prepare.after_commit") {
      void this.#life.die();
      this.#crashed = true;
    }
    return id;
  }

  async #propose(beforeCommit: () => Promise<void>): Promise<OperationId> {
    const ctx = this.#context();
    const proposal = this.#proposal();
    return this.#life.live(() =>
      ctx.db.tx(async (tx) => {
        const [call] = await prepareTurn(tx, ctx, {
          calls: [{ callId: proposal.callId, proposal }],
          judge: makeJudge(),
          onHold: async () => {},
        });
        const right = this.#stage.mode.unauthorised === undefined ? "prepared" : "held";
        if (call?.outcome !== "prepared" && call?.outcome !== "held") {
          throw new Error(`not ${right}: ${call?.outcome ?? "nothing"}`);
        }
        if (call.outcome !== right) throw new Error(`${call.outcome}, ${right} would be right`);
        await beforeCommit();
        return call.operation.id;
      }),
    );
  }

  #proposal(): Proposal {
    const { world, scenario, orderRef, paymentIntent } = this.#stage;
    const callId: CallId = world.ports.ids.next("call_");
    return {
      callId,
      intent: {
        kind: "refund",
        customerRef: CUSTOMER_REF,
        orderRef,
        subscriptionRef: null,
        amountMinor: BigInt(scenario.amountMinor),
        currency: CURRENCY,
        atPeriodEnd: null,
        occurrence: 1,
      },
      landing: { paymentIntent, providerSubscription: null },
      itemRefs: [],
      refundScope: "amount",
      reason: "",
      ...this.#owner,
      filers: ["U_AGENT"],
      bindingConfirmed: true,
    };
  }

  async #workUntilOver(id: OperationId): Promise<void> {
    const { world, armed } = this.#stage;
    for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
      const ctx = this.#context();
      await this.#life.live(() => lookAt(ctx, id)).catch(expectDeath);
      const row = await rowOf(this.#stage, id);
      if (!this.#firstTryOver && row.attempts > 0) {
        this.#firstTryOver = true;
        await armed.beforeRecovery?.();
      }
      if (row.over) return;
      await world.advance(row.dueInMs ?? 1_000);
    }
  }

  /** Workers are woken for it again and again, before the decision and after it; none may send. */
  async #withoutAuthority(id: OperationId, decision: "denied" | "undecided"): Promise<void> {
    const { world } = this.#stage;
    const wakeUps = async (): Promise<void> => {
      const ctx = this.#context();
      await this.#life.live(() => drive(ctx, id)).catch(expectDeath);
      await this.#life.live(() => reconcileOne(ctx, id, "due")).catch(expectDeath);
      await this.#life
        .live(() => sendAuthorised(ctx, { operationId: id, worker: ctx.worker }))
        .catch(expectDeath);
    };
    await wakeUps();
    const ctx = this.#context();
    if (decision === "undecided") await world.advance(DAY_MS);
    const end = decision === "denied" ? deny : expire;
    await ctx.db.tx((tx) =>
      end(tx, ctx, {
        operationId: id,
        actor: decision === "denied" ? "slack:U_SUP1" : "system:approvals",
        code: decision,
        detail: decision === "denied" ? "No." : "Nobody decided in time.",
      }),
    );
    await wakeUps();
  }

  async #hear(body: Buffer, signature: string | undefined): Promise<number> {
    const { world } = this.#stage;
    const ctx = this.#context();
    return this.#life.run(async () => {
      const stored = await storeWebhook(ctx, body, signature, world.ports.clock.now());
      if (!stored.stored) return 400;
      await processWebhook(ctx, stored.eventId);
      return 200;
    });
  }

  async #played(id: OperationId): Promise<Played> {
    const operation = await getOperation(this.#stage.world.db, id);
    if (operation === null) throw new Error("the operation is gone");
    const rules = await brokenRules(this.#stage, operation);
    return {
      claim: this.#claimOf(operation),
      end: operation.status,
      crashed: this.#crashed,
      broken: rules.broken,
      askedBeyond: rules.askedBeyond,
      noticed: () => this.#noticed(id),
    };
  }

  /** The books compared, as a worker does every few minutes; then whether an incident speaks of this operation. */
  async #noticed(id: OperationId): Promise<boolean> {
    const { world } = this.#stage;
    const ctx = this.#context();
    await world.advance(ctx.reconcile.orphanLagMs + 1_000);
    await sweepOrphans(ctx);
    const { rows } = await listIncidents(world.db, { limit: 200 });
    return rows.some((incident) => incident.operationId === id);
  }

  #claimOf(operation: Operation): Claim {
    if (operation.status === "CONFIRMED") return "done";
    if (ENDED.has(operation.status)) return "not_done";
    return operation.status === "QUARANTINED" && this.#cards.has(`quarantine:${operation.id}`)
      ? "person"
      : "open";
  }
}

/** What a wake-up of the operation leads to, by its state. */
async function lookAt(ctx: ReconcileCtx, id: OperationId): Promise<void> {
  const operation = await getOperation(ctx.db, id);
  switch (operation?.status) {
    case "PREPARED":
      await drive(ctx, id);
      return;
    case "DISPATCHED":
    case "OUTCOME_UNKNOWN":
    case "RECONCILING":
      await reconcileOne(ctx, id, "due");
      return;
    case "QUARANTINED": {
      const claimed = await sendAuthorised(ctx, { operationId: id, worker: ctx.worker });
      if (claimed.claimed) await sendClaimed(ctx, claimed);
      else await reconcileOne(ctx, id, "due");
      return;
    }
    default:
      return;
  }
}

interface Row {
  readonly attempts: number;
  readonly over: boolean;
  /** Milliseconds until somebody must look again; null: nobody need. */
  readonly dueInMs: number | null;
}

/** $1 operation. */
const ROW = `
SELECT status, attempts,
  CEIL(EXTRACT(EPOCH FROM (due_at - countersign_now())) * 1000)::int AS due_in_ms
FROM operations WHERE id = $1`;

async function rowOf({ world }: Stage, id: OperationId): Promise<Row> {
  const [row] = await world.db.sql<{
    status: Operation["status"];
    attempts: number;
    due_in_ms: number | null;
  }>("evaluation.row", ROW, [id]);
  if (row === undefined) throw new Error("the operation is gone");
  return {
    attempts: row.attempts,
    over: ENDED.has(row.status) || row.status === "QUARANTINED",
    dueInMs: row.due_in_ms,
  };
}

/** The connection of a dead process breaks, and the database undoes what it had open. */
const dieInTransaction = (life: Life) => async (): Promise<never> => {
  void life.die();
  throw new Dead();
};

function expectDeath(error: unknown): void {
  if (!(error instanceof Dead)) throw error;
}
