import type { CardKind } from "./render-subject.js";

/** A row of `slack_cards` under our lease. */
export interface CardRow {
  readonly id: string;
  readonly kind: CardKind;
  readonly subject_id: string;
  readonly slot: string;
  readonly channel_id: string;
  readonly thread_ts: string | null;
  readonly message_ts: string | null;
  readonly wanted_version: bigint;
  readonly shown_hash: string | null;
  readonly state: "live" | "replaced" | "lost";
  readonly attempt_at: Date | null;
  readonly paced: boolean;
  readonly plain: boolean;
  readonly failures: number;
  readonly lease_token: bigint;
}
