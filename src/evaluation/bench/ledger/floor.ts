/**
 * The least that sends nothing without a record and records what came of it: one row, committed before the call and changed after
 * it, by the bare driver. No policy, no reservation, no totals, no events. What every other arm does, it does on top of this. The call
 * between the two is a bare request, or the product's own adapter with the provider's library.
 */
import { randomUUID } from "node:crypto";
import pg from "pg";
import { Pool } from "undici";
import type { Operation } from "../../../domain/operation.js";
import type { PaymentProvider } from "../../../domain/ports/payment-provider.js";
import { inLanes, type Measured } from "./measure.js";
import { AMOUNT_MINOR, paymentIntent } from "./premises.js";

export interface Floor {
  run(options: { lanes: number; seconds: number; most: number }): Promise<Measured>;
  /** Rows whose call was answered and recorded. */
  recorded(): Promise<number>;
  close(): Promise<void>;
}

/** The call for order `n`, once; `id` is the row's. Resolves to what is recorded of its answer. */
export interface Calls {
  ask(n: number, id: string): Promise<string>;
  close(): Promise<void>;
}

const CALL_MS = 10_000;

/** A bare request on a kept connection. */
export function bareCalls(apiUrl: string): Calls {
  const http = new Pool(apiUrl, { connections: 64 });
  return {
    ask: async (n) => {
      const answer = await http.request({
        method: "POST",
        path: "/v1/refunds",
        headers: { "content-type": "application/x-www-form-urlencoded" },
        body: `payment_intent=${paymentIntent(n)}&amount=${AMOUNT_MINOR}`,
      });
      return answer.body.text();
    },
    close: () => http.close(),
  };
}

/** By the product's adapter; `like` lends what its requests do not name. */
export function adapterCalls(provider: PaymentProvider & { close(): Promise<void> }, like: Operation): Calls {
  return {
    ask: async (n, id) => {
      const operation: Operation = { ...like, id: `op_${id}`, paymentIntent: paymentIntent(n) };
      const outcome = await provider.execute(operation, provider.buildRequest(operation), {
        idempotencyKey: id,
        timeoutMs: CALL_MS,
        beforeSend: async () => {},
      });
      if (outcome.verdict !== "committed") throw new Error(`the stub answered ${outcome.verdict}`);
      return outcome.effect.ref;
    },
    close: () => provider.close(),
  };
}

const TABLE = `CREATE TABLE IF NOT EXISTS intents (id text PRIMARY KEY, payment_intent text NOT NULL, amount_minor bigint NOT NULL,
  status text NOT NULL, answer text) WITH (fillfactor = 80)`;
/** $1 id, $2 payment, $3 minor units. */
const INTEND =
  "INSERT INTO intents (id, payment_intent, amount_minor, status) VALUES ($1, $2, $3, 'SENDING')";
/** $1 id, $2 answer. */
const RECORD = "UPDATE intents SET status = 'DONE', answer = $2 WHERE id = $1 AND status = 'SENDING'";

/** Makes its table on the database of `url`, where it has none. */
export async function openFloor(url: string, calls: Calls, lanes: number): Promise<Floor> {
  const pool = new pg.Pool({ connectionString: url, max: lanes });
  await pool.query(TABLE);
  const mine = randomUUID();
  let rounds = 0;
  return {
    run: async (options) => {
      rounds += 1;
      const round = rounds;
      return inLanes(options, async (n) => {
        const id = `${mine}-${round}-${n}`;
        await pool.query({ name: "intend", text: INTEND, values: [id, paymentIntent(n), AMOUNT_MINOR] });
        const answer = await calls.ask(n, id);
        await pool.query({ name: "record", text: RECORD, values: [id, answer] });
      });
    },
    recorded: async () => {
      const { rows } = await pool.query("SELECT count(*)::int AS n FROM intents WHERE status = 'DONE'");
      return Number((rows[0] as { n: number } | undefined)?.n ?? 0);
    },
    close: async () => {
      await pool.end();
      await calls.close();
    },
  };
}
