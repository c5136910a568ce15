/** The database written to as somebody with its own password could: no trigger and no key stands in the way. */
import type { Db } from "../../src/db/connect.js";

/** Runs the statements in one transaction, each with `id` as its only parameter; null: with none. */
export const writeByHand = (db: Db, id: string | null, ...statements: readonly string[]): Promise<void> =>
  db.tx(async (tx) => {
    await tx.sql(undefined, "SET LOCAL session_replication_role = replica");
    for (const statement of statements) await tx.sql(undefined, statement, id === null ? [] : [id]);
  });
