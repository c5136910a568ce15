/**
 * The policy file on disk: read at the start, looked at again every second, taken up only when it is valid.
 *
 * The active policy is a row. Each process that watches a file activates what its file says when the file changes, so a
 * process with an old file does not undo a newer one, and all processes act under the row.
 */
import { readFile } from "node:fs/promises";
import type { Db } from "../db/connect.js";
import { fileReason } from "../domain/text/file-reason.js";
import { activatePolicy, type RecordActivation } from "./active-policy.js";
import { type LoadedPolicy, PolicyFileError, readPolicyText } from "./policy-text.js";

/** A changed file counts within 5 s (CONTRACT §4): one look a second leaves room for a slow disk and a slow database. */
const LOOK_EVERY_MS = 1_000;
/** A policy is a page of text; more is a mistake in the variable. */
const MAX_FILE_BYTES = 1_048_576;

/** Reads and checks a policy file. Throws `PolicyFileError` with line and reason. */
export async function loadPolicyFile(file: string): Promise<LoadedPolicy> {
  return readPolicyText(await textOf(file), file);
}

export interface WatchPolicyOptions {
  readonly db: Db;
  readonly file: string;
  readonly everyMs?: number;
  /** Tells the audit log which policy is in force. */
  readonly record?: RecordActivation;
  /** A changed file was taken up. */
  readonly onActivated?: (loaded: LoadedPolicy) => void;
  /** A changed file is not valid and was not taken up; the policy before it stays. Told once for each such text. */
  readonly onInvalid?: (error: PolicyFileError) => void;
  /** The policy could not be activated (database away); tried again at the next look. */
  readonly onError?: (error: unknown) => void;
}

export interface PolicyWatch {
  /** The policy that was activated at the start. */
  readonly loaded: LoadedPolicy;
  /** Looks now instead of at the next second. */
  look(): Promise<void>;
  /** Stops looking; waits for a look that is under way. */
  stop(): Promise<void>;
}

/** Loads, activates and watches a policy file. Throws `PolicyFileError` when it is not valid: the start must stop. */
export async function watchPolicyFile(options: WatchPolicyOptions): Promise<PolicyWatch> {
  const loaded = await loadPolicyFile(options.file);
  await activatePolicy(options.db, loaded, options.record);
  let seen = loaded.text;
  let looking: Promise<void> | undefined;

  const look = async (): Promise<void> => {
    let text: string | undefined;
    try {
      text = await textOf(options.file);
      if (text === seen) return;
      const changed = readPolicyText(text, options.file);
      const { changed: isNew } = await activatePolicy(options.db, changed, options.record);
      seen = text;
      if (isNew) options.onActivated?.(changed);
    } catch (error) {
      if (!(error instanceof PolicyFileError)) {
        options.onError?.(error);
        return;
      }
      // An unreadable file has no text: it counts as one text of its own, and is told once too.
      if (seen !== (text ?? UNREADABLE)) options.onInvalid?.(error);
      seen = text ?? UNREADABLE;
    }
  };
  const lookOnce = (): Promise<void> => {
    looking ??= look().finally(() => {
      looking = undefined;
    });
    return looking;
  };
  const timer = setInterval(() => void lookOnce(), options.everyMs ?? LOOK_EVERY_MS);
  timer.unref();
  return {
    loaded,
    look: lookOnce,
    stop: async () => {
      clearInterval(timer);
      await looking;
    },
  };
}

/** No text can be this: YAML has no NUL. */
const UNREADABLE = "\u0000";

async function textOf(file: string): Promise<string> {
  try {
    const bytes = await readFile(file);
    if (bytes.length > MAX_FILE_BYTES) throw new Error("the file is larger than 1 MiB");
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    const reason =
      code === "ENOENT"
        ? "there is no such file; name the policy file in POLICY_FILE"
        : `cannot be read: ${fileReason(error)}`;
    throw new PolicyFileError(file, [{ line: null, column: null, path: "", reason }], {
      cause: error,
      unreadable: code !== undefined,
    });
  }
}
