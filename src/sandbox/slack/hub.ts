/**
 * Change notices inside the sandbox. A notice names what changed and carries no content: readers look the content up when
 * they render it for a person, so a replayed notice can never show something that is no longer there.
 */
import type { ActError, JournalEntry } from "./control-types.js";

export type Change =
  | { type: "message"; channel: string; ts: string }
  | { type: "ephemeral"; user: string; channel: string; ts: string }
  | { type: "message_deleted"; channel: string; ts: string; onlyFor: string | null }
  | { type: "channel"; channel: string }
  | { type: "read"; user: string; channel: string }
  | { type: "modals"; user: string }
  | { type: "home"; user: string }
  | { type: "people" }
  | { type: "toast"; user: string; error: ActError; message: string }
  | { type: "notify"; users: string[]; channel: string; ts: string; text: string }
  | { type: "connection" }
  | { type: "journal"; entry: JournalEntry }
  | { type: "faults" }
  | { type: "reset" };

/** Notices kept for readers that reconnect. More than this behind: read the state again. */
const KEPT = 5_000;

export class Hub {
  #seq = 0;
  #kept: { seq: number; change: Change }[] = [];
  readonly #listeners = new Set<(change: Change, seq: number) => void>();

  get seq(): number {
    return this.#seq;
  }

  emit(change: Change): void {
    this.#seq += 1;
    this.#kept.push({ seq: this.#seq, change });
    if (this.#kept.length > KEPT) this.#kept = this.#kept.slice(-KEPT / 2);
    for (const listener of this.#listeners) listener(change, this.#seq);
  }

  /** What came after `seq`, or null when that is no longer known. */
  since(seq: number): { seq: number; change: Change }[] | null {
    const first = this.#kept[0]?.seq ?? this.#seq + 1;
    if (seq < first - 1 || seq > this.#seq) return null;
    return this.#kept.filter((entry) => entry.seq > seq);
  }

  listen(listener: (change: Change, seq: number) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
