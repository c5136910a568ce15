/** The name of each fault in words: on the page, in the stories, in the docs the same. */
import type { FaultKind } from "./faults.js";

export const FAULT_WORDS: Readonly<Record<FaultKind, string>> = {
  drop_before_commit: "Breaks before anything happens",
  rate_limited: "Answers 429",
  key_in_use: "Answers 409, key in use",
  idempotency_error: "Same key, other parameters",
  refuse: "Refuses for good",
  read_down: "Reads fail",
  forget_key: "Forgets the idempotency key first",
  hang_then_commit: "Waits, then commits and answers",
  late_commit: "Breaks, commits later",
  redeliver: "The request arrives twice",
  outcome: "Accepts, the outcome comes later",
  wrong_answer: "Another amount than asked",
  commit_then_drop: "Commits, the answer is lost",
  commit_then_500: "Commits, answers 500",
  commit_then_stall: "Commits, half an answer, then silence",
  commit_then_cut: "Commits, half an answer, then cut",
  commit_then_hang: "Commits, answers too late",
  commit_then_garbage: "Commits, the answer is no JSON",
  stale_read: "Reads lag behind",
  lying_read: "Reads lie",
};
