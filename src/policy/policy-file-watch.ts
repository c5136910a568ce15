/**
 * The policy file on disk: read at the start, looked at again every second, taken up only when it is valid.
 *
 * The active policy is a row. Each process that watches a file activates what its file says at its start and when the file changes, so
 * a process with an old file does not undo a newer one while it runs, and all processes act under the row. One that starts with an old
 * file puts that in force: who knows the newer one says so, and leaves it to a person which of them is meant.
 */
import { readFile } from "node:fs/promises";
import type { Db } from "../db/connect.js";
import { fileReason } from "../domain/text/file-reason.js";
import { activatePolicy, activeHash, type RecordActivation } from "./active-policy.js";
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
  /** For longer than a start takes, another policy is in force than this file says. Told once for each. */
  readonly onOther?: (hashes: { file: string; inForce: string | null }) => void;
  /** How often that is looked at. */
  readonly compareEveryMs?: number;
  /** The policy could not be activated (database away); tried again at the next look. */
  readonly onError?: (error: unknown) => void;
}

export interface PolicyWatch {
  /** The policy that was activated at the start. */
  readonly loaded: LoadedPolicy;
  /** Looks now instead of at the next second. */
  look(): Promise<void>;
  /** Whether what the file said last, when it was valid, is in force. A sentence for on-call. */
  standing(): Promise<{ readonly ok: boolean; readonly detail: string }>;
  /** Stops looking; waits for a look that is under way. */
  stop(): Promise<void>;
}

/** Loads, activates and watches a policy file. Throws `PolicyFileError` when it is not valid: the start must stop. */
export async function watchPolicyFile(options: WatchPolicyOptions): Promise<PolicyWatch> {
  const loaded = await loadPolicyFile(options.file);
  await activatePolicy(options.db, loaded, options.record);
  let seen = loaded.text;
  let own = loaded.hash;
  let looking: Promise<void> | undefined;
  const compare = comparison(options, () => own);

  const look = async (): Promise<void> => {
    let text: string | undefined;
    try {
      text = await textOf(options.file);
      if (text === seen) return await compare();
      const changed = readPolicyText(text, options.file);
      const { changed: isNew } = await activatePolicy(options.db, changed, options.record);
      seen = text;
      own = changed.hash;
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
    standing: async () => {
      const inForce = await activeHash(options.db);
      return inForce === own
        ? { ok: true, detail: "The policy of this process's file is in force." }
        : {
            ok: false,
            detail: `Another policy is in force (${shortHash(inForce)}) than this process's file says (${shortHash(own)}): a process with another file was started since. Give all of them the file that is meant, and start one of them again.`,
          };
    },
    stop: async () => {
      clearInterval(timer);
      await looking;
    },
  };
}

const COMPARE_EVERY_MS = 60_000;

const shortHash = (hash: string | null): string => hash?.slice(0, 12) ?? "none";

/** Says once of each policy that is in force instead of the file's that it is, when it was so twice in a row. */
function comparison(
  { db, onOther, compareEveryMs = COMPARE_EVERY_MS }: WatchPolicyOptions,
  own: () => string,
): () => Promise<void> {
  let dueAt = 0;
  let before: string | null = own();
  let told: string | null = own();
  return async () => {
    const now = performance.now();
    if (onOther === undefined || now < dueAt) return;
    dueAt = now + compareEveryMs;
    const inForce = await activeHash(db);
    if (inForce === own()) told = inForce;
    else if (inForce === before && inForce !== told) {
      told = inForce;
      onOther({ file: own(), inForce });
    }
    before = inForce;
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
