/**
 * The least that sends nothing without a record and records what came of it: one row, committed before the call and changed after
 * it, by the bare driver. No policy, no reservation, no totals, no events. What every other arm does, it does on top of this.
 */
import pg from "pg";
import { Pool } from "undici";
import { inLanes, type Measured } from "./measure.js";
import { AMOUNT_MINOR, paymentIntent } from "./premises.js";

export interface Floor {
  run(options: { lanes: number; seconds: number; most: number }): Promise<Measured>;
  /** Rows whose call was answered and recorded. */
  recorded(): Promise<number>;
  close(): Promise<void>;
}

const TABLE = `CREATE TABLE intents (id text PRIMARY KEY, payment_intent text NOT NULL, amount_minor bigint NOT NULL,
  status text NOT NULL, answer text) WITH (fillfactor = 80)`;
/** $1 id, $2 payment, $3 minor units. */
const INTEND =
  "INSERT INTO intents (id, payment_intent, amount_minor, status) VALUES ($1, $2, $3, 'SENDING')";
/** $1 id, $2 answer. */
const RECORD = "UPDATE intents SET status = 'DONE', answer = $2 WHERE id = $1 AND status = 'SENDING'";

/** Makes its table on the database of `url`, which has none of that name. */
export async function openFloor(url: string, apiUrl: string, lanes: number): Promise<Floor> {
  const pool = new pg.Pool({ connectionString: url, max: lanes });
  await pool.query(TABLE);
  const http = new Pool(apiUrl, { connections: 64 });
  let rounds = 0;
  return {
    run: async (options) => {
      rounds += 1;
      const round = rounds;
      return inLanes(options, async (n) => {
        const id = `${round}:${n}`;
        await pool.query({ name: "intend", text: INTEND, values: [id, paymentIntent(n), AMOUNT_MINOR] });
        const answer = await http.request({
          method: "POST",
          path: "/v1/refunds",
          headers: { "content-type": "application/x-www-form-urlencoded" },
          body: `payment_intent=${paymentIntent(n)}&amount=${AMOUNT_MINOR}`,
        });
        await pool.query({ name: "record", text: RECORD, values: [id, await answer.body.text()] });
      });
    },
    recorded: async () => {
      const { rows } = await pool.query("SELECT count(*)::int AS n FROM intents WHERE status = 'DONE'");
      return Number((rows[0] as { n: number } | undefined)?.n ?? 0);
    },
    close: async () => {
      await pool.end();
      await http.close();
    },
  };
}
