/** Calls of one turn that are held are judged by what they come to together. */
import type { Tx } from "../db/connect.js";
import type { Judge } from "../domain/ports/judge.js";
import { paymentOf, subjectOf } from "./candidate.js";
import type { LedgerCtx } from "./context.js";
import type { Verdict } from "./judge-candidate.js";
import { type StoredCase, store } from "./prepare-store.js";

/**
 * What two calls of a turn hold together needs whoever may approve the sum: each is judged again with those before it set aside. A
 * sum that nobody may approve leaves each its own answer, for one of them may be denied. Expects the savepoint `turn_tried`, and
 * leaves nothing behind.
 */
export async function judgeBySum(
  tx: Tx,
  ctx: LedgerCtx,
  judge: Judge<Tx>,
  firsts: readonly StoredCase[],
  verdicts: Map<string, Verdict>,
): Promise<void> {
  const isHeld = ({ candidate }: StoredCase): boolean => verdicts.get(candidate.key)?.is === "hold";
  const held = firsts.filter(isHeld);
  if (held.length < 2) return;
  const setAside = new Map<string, bigint>();
  for (const [index, one] of held.entries()) {
    const { candidate, site } = one;
    const judgement = await judge.judge(tx, subjectOf(candidate, site));
    if (judgement.answer === "hold") verdicts.set(candidate.key, { is: "hold", judgement });
    const payment = paymentOf(candidate, site);
    const before = payment === null ? 0n : (setAside.get(payment.id) ?? 0n);
    const fits = payment === null || before + candidate.intent.amountMinor <= payment.left;
    if (index === held.length - 1 || !fits) continue;
    if (payment !== null) setAside.set(payment.id, before + candidate.intent.amountMinor);
    await store(tx, ctx, one, judgement, "PREPARED");
  }
  await tx.sql(undefined, "ROLLBACK TO SAVEPOINT turn_tried");
}
