/** Keeps the workspace in a JSON file, so that a restarted demo shows the old messages. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { isObject } from "./blocks/check.js";
import type { SandboxClock } from "./clock.js";
import type { WorkspaceData } from "./model.js";

const WRITE_AFTER_MS = 250;

/** The stored workspace, or null when there is none. Throws, with the path, when the file is there and unreadable. */
export function readStored(path: string): WorkspaceData | null {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (isObject(error) && error["code"] === "ENOENT") return null;
    throw error;
  }
  const parsed: unknown = JSON.parse(text);
  if (!isObject(parsed) || parsed["version"] !== 1) {
    throw new Error(`${path} is not a workspace of this sandbox; remove it to start with a fresh one`);
  }
  return parsed as unknown as WorkspaceData;
}

/** Writes soon after a change, all or nothing (a temporary file, then a rename). */
export class Store {
  readonly #path: string;
  readonly #clock: SandboxClock;
  readonly #read: () => WorkspaceData;
  #cancel: (() => void) | null = null;

  constructor(path: string, clock: SandboxClock, read: () => WorkspaceData) {
    this.#path = path;
    this.#clock = clock;
    this.#read = read;
    mkdirSync(dirname(path), { recursive: true });
  }

  dirty(): void {
    this.#cancel ??= this.#clock.timeout(WRITE_AFTER_MS, () => this.flush());
  }

  flush(): void {
    this.#cancel?.();
    this.#cancel = null;
    const temporary = `${this.#path}.tmp`;
    writeFileSync(temporary, JSON.stringify(this.#read()));
    renameSync(temporary, this.#path);
  }
}
