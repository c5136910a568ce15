/** The same statements through the bare driver: a pool, named prepared statements one after the other, and nothing else. */
import pg from "pg";
import { PLAN_ONCE } from "../../../db/connect.js";
import { inLanes, type Measured } from "./measure.js";
import type { Owner } from "./premises.js";
import { filled, type Step } from "./record.js";

export async function runBareDriver(
  url: string,
  steps: readonly Step[],
  options: { lanes: number; seconds: number; most: number; owners: readonly Owner[] },
): Promise<Measured> {
  const pool = new pg.Pool({ connectionString: url, max: options.lanes, options: PLAN_ONCE });
  const clients = await Promise.all(Array.from({ length: options.lanes }, () => pool.connect()));
  try {
    return await inLanes(options, async (n, lane) => {
      const client = clients[lane];
      const owner = options.owners[lane];
      if (client === undefined || owner === undefined) throw new Error("more lanes than clients");
      for (const step of steps) {
        if (step.is !== "statement") await client.query(step.is === "begin" ? BEGIN : "COMMIT");
        else {
          const values = step.parameters.map((parameter) => filled(parameter, n, owner));
          await client.query({ name: step.name, text: step.text, values });
        }
      }
    });
  } finally {
    for (const client of clients) client.release();
    await pool.end();
  }
}

export const BEGIN = "BEGIN ISOLATION LEVEL read committed";
