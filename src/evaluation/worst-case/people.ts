/** People who look at every card and decide by the throw of a die: what reaches them is theirs to answer, and is remembered. */
import { type ApprovalsContext, decide, listPending } from "../../approvals/index.js";
import type { Approval } from "../../domain/approval.js";
import { sha256Hex } from "../../domain/canonical.js";
import type { Db } from "../../domain/ports/database.js";
import { type Random, seededRandom } from "../faults/random.js";
import { APPROVERS } from "../people.js";
import type { Approved } from "./count.js";

/** So many cards of a hundred are approved, so many denied; the others are left to expire. */
const APPROVE_PERCENT = 55;
const DENY_PERCENT = 25;
const CARDS = 200;

export interface DecidingPeople {
  /** Looks at every card that nobody has looked at. Returns how many clicks counted. */
  lookAtCards(): Promise<number>;
  readonly approved: Approved[];
}

/** The die of a card falls the same way in every run with the same seed, whenever the card comes. */
const dieOf = ({ binding }: Approval, seed: number): Random => {
  const about = `${seed} ${binding.orderRef ?? binding.subscriptionRef} ${binding.amountMinor} ${binding.occurrence}`;
  return seededRandom(Number.parseInt(sha256Hex(about).slice(0, 8), 16));
};

export function decidingPeople(db: Db, approvals: ApprovalsContext, seed: number): DecidingPeople {
  const lookedAt = new Set<string>();
  const approved: Approved[] = [];
  const votes = new Map<string, string[]>();

  const click = async (approval: Approval, userId: string, verdict: "approve" | "deny"): Promise<boolean> => {
    const answer = await decide(approvals, {
      approvalId: approval.id,
      cardVersion: approval.cardVersion,
      userId,
      verdict,
      ...(verdict === "deny" ? { note: "Not this one." } : {}),
    });
    if (verdict === "deny" || (answer.outcome !== "recorded" && answer.outcome !== "approved")) {
      return answer.outcome === "denied";
    }
    const by = [...(votes.get(approval.id) ?? []), userId];
    votes.set(approval.id, by);
    if (answer.outcome === "approved") approved.push(shownOn(approval, by));
    return true;
  };

  return {
    approved,
    lookAtCards: async () => {
      const { approvals: listed } = await listPending(db, { limit: CARDS });
      let counted = 0;
      for (const { approval } of listed.filter((one) => !lookedAt.has(one.approval.id))) {
        lookedAt.add(approval.id);
        const random = dieOf(approval, seed);
        const draw = random.between(1, 100);
        if (draw > APPROVE_PERCENT + DENY_PERCENT) continue;
        const verdict = draw <= APPROVE_PERCENT ? "approve" : "deny";
        // Everybody tries, those who may not as well.
        for (const userId of random.shuffled(APPROVERS)) {
          if (await click(approval, userId, verdict)) counted += 1;
        }
      }
      return counted;
    },
  };
}

const shownOn = ({ binding }: Approval, by: readonly string[]): Approved => ({
  operationId: binding.operationId,
  kind: binding.kind,
  target: binding.orderRef ?? binding.subscriptionRef ?? "?",
  amountMinor: Number(binding.amountMinor),
  currency: binding.currency,
  by,
});
