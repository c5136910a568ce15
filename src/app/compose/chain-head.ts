/** Once a day the head of the sealed chain is said in the ops channel: a witness outside the database. */
import type { LedgerCtx } from "../../ledger/index.js";

/** Posts today's head unless somebody has; nothing while nothing is sealed. Days are UTC. */
export async function tellChainHead(ctx: Pick<LedgerCtx, "db" | "notices">): Promise<void> {
  await ctx.db.tx(async (tx) => {
    const [head] = await tx.sql<{ seq: bigint; hash: string; day: string }>(
      "app.chain_head",
      `SELECT seq, hash, to_char(countersign_now() AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day
         FROM audit_blocks ORDER BY seq DESC LIMIT 1`,
    );
    if (head === undefined) return;
    await ctx.notices.ops(tx, {
      key: `chain-head:${head.day}`,
      message: { type: "chain_head", seq: String(head.seq), hash: head.hash },
    });
  });
}
