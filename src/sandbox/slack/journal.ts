/** Every request and delivery as it went over the wire, newest last, bounded. */
import type { SandboxClock } from "./clock.js";
import type { JournalEntry } from "./control-types.js";
import type { Hub } from "./hub.js";

/** An entry before it is numbered and dated; distributes over the union. */
export type JournalDraft = JournalEntry extends infer E
  ? E extends JournalEntry
    ? Omit<E, "seq" | "atMs">
    : never
  : never;

const KEPT = 4_000;

export class Journal {
  #entries: JournalEntry[] = [];
  #seq = 0;
  readonly #clock: SandboxClock;
  readonly #hub: Hub;

  constructor(clock: SandboxClock, hub: Hub) {
    this.#clock = clock;
    this.#hub = hub;
  }

  add(draft: JournalDraft): void {
    this.#seq += 1;
    const entry = { ...draft, seq: this.#seq, atMs: this.#clock.now() } as JournalEntry;
    this.#entries.push(entry);
    if (this.#entries.length > KEPT) this.#entries = this.#entries.slice(-KEPT / 2);
    this.#hub.emit({ type: "journal", entry });
  }

  /** Entries with a number above `after`, oldest first. */
  read(after = 0, limit = 500): JournalEntry[] {
    const found = this.#entries.filter((entry) => entry.seq > after);
    return after > 0 ? found.slice(0, limit) : found.slice(-limit);
  }

  clear(): void {
    this.#entries = [];
  }
}
