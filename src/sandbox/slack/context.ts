/** What every part of the sandbox works on. One object a sandbox; `reset` replaces the content of its fields. */
import type { SandboxClock } from "./clock.js";
import type { SettingsView } from "./control-types.js";
import type { Faults } from "./faults.js";
import type { Hub } from "./hub.js";
import type { Journal } from "./journal.js";
import type { AppInfo, JsonObject, Message, Team, View, WorkspaceData } from "./model.js";
import type { SeededIds } from "./seeded-ids.js";

export interface Trigger {
  user: string;
  issuedMs: number;
  used: boolean;
  /** The view from which the interaction came, if any. */
  viewId: string | null;
}

export interface ResponseUrl {
  user: string;
  channel: string;
  /** The message that was clicked, if any. */
  messageTs: string | null;
  issuedMs: number;
  uses: number;
}

/** How the rest of the sandbox reaches the app; the dispatcher implements it. */
export interface AppDelivery {
  /** Sends an Events API event, with its retries. Returns when the last attempt has ended. */
  event(inner: JsonObject, options?: { channel?: string }): Promise<boolean>;
  /** Sends an interactive payload or a slash command and waits for its acknowledgement. */
  interaction(kind: "interactive" | "slash_commands", type: string, payload: JsonObject): Promise<AckResult>;
}

export type AckResult =
  | { acked: true; body: unknown }
  | { acked: false; error: "operation_timeout" | "dispatch_failed" | "not_connected" };

export interface SandboxContext {
  readonly team: Team;
  readonly app: AppInfo;
  readonly tokens: { bot: string; app: string; signingSecret: string; verification: string };
  /** `http://127.0.0.1:4010`, no slash at the end. */
  baseUrl: string;
  readonly clock: SandboxClock;
  ids: SeededIds;
  data: WorkspaceData;
  readonly hub: Hub;
  readonly journal: Journal;
  readonly faults: Faults;
  settings: SettingsView;
  requestUrl: string | null;
  ephemerals: Message[];
  /** Bottom of the stack first. */
  modals: Map<string, View[]>;
  triggers: Map<string, Trigger>;
  responseUrls: Map<string, ResponseUrl>;
  /** Scheduled messages by id. */
  scheduled: Map<string, { channel: string; postAtMs: number; cancel: () => void; text: string }>;
  delivery: AppDelivery;
  /** Counts work under way, for `idle`. */
  readonly work: WorkCount;
  /** The workspace must be stored again. */
  dirty: () => void;
}

/** Counts what is under way; `idle` resolves at zero. */
export class WorkCount {
  #count = 0;
  #waiting: (() => void)[] = [];

  async run<T>(task: () => Promise<T>): Promise<T> {
    this.#count += 1;
    try {
      return await task();
    } finally {
      this.#count -= 1;
      if (this.#count === 0) for (const wake of this.#waiting.splice(0)) wake();
    }
  }

  idle(): Promise<void> {
    if (this.#count === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
