/** A decision of on-call's as its cards show it, and all that a message says. */
import type { ResolutionFacts } from "../../../src/slack/cards/ops-cards.js";
import { operationOf } from "./views.js";

export const said = (message: { text: string; blocks: readonly object[] }): string =>
  `${message.text}\n${JSON.stringify(message.blocks)}`;

export const resolutionOf = (changes: Partial<ResolutionFacts> = {}): ResolutionFacts => ({
  id: "res_1",
  operationId: operationOf().id,
  verb: "retry",
  state: "applied",
  by: "U_ONC1",
  reason: "not there",
  evidenceRef: "case 7",
  probe: null,
  shownSince: null,
  shownTimes: 0,
  agreedOn: null,
  secondBy: "U_ONC2",
  secondVerdict: "agree",
  secondNote: null,
  refusal: null,
  expiresAt: null,
  createdAt: new Date("2026-11-30T03:00:00Z"),
  decidedAt: new Date("2026-11-30T03:10:00Z"),
  ...changes,
});
