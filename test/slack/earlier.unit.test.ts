/** What a card says of the same wish before: when it was asked for and what became of it, each once. */
import { expect, test } from "vitest";
import type { EarlierOperation } from "../../src/domain/approval.js";
import { approvalCard } from "../../src/slack/cards/approval-card.js";
import { approvalViewOf, TOM_REFUND } from "./support/views.js";

const asked: EarlierOperation = {
  operationId: "op_1",
  status: "CONFIRMED",
  amountMinor: 18_000n,
  currency: "GBP",
  at: "2026-11-29T10:00:00Z",
  denied: null,
};
const denied = { by: "U_FIN2", at: "2026-11-29T10:02:00Z", note: null };

const shown = (earlier: EarlierOperation): string => {
  const view = approvalViewOf({ ...TOM_REFUND, state: "PENDING", operationStatus: "AWAITING_APPROVAL" });
  const binding = { ...view.approval.binding, earlier: [earlier] };
  const card = JSON.stringify(approvalCard({ ...view, approval: { ...view.approval, binding } }));
  return /• £180\.00 GBP, asked for .*?(?=\\n|")/u.exec(card)?.[0] ?? card;
};

test("one that was carried out", () => {
  expect(shown(asked)).toMatch(/^• £180\.00 GBP, asked for <!date\^1795946400\^.*10:00 UTC>, confirmed$/u);
});

test("one that was denied says so once, with who and when", () => {
  expect(shown({ ...asked, status: "DENIED", denied })).toMatch(
    /^• £180\.00 GBP, asked for <!date\^1795946400\^.*10:00 UTC>, denied by <@U_FIN2>, <!date\^1795946520\^.*10:02 UTC>$/u,
  );
});
