/** Reads a policy file's text (YAML or JSON) into a policy; every problem with its line and reason. */
import { isMap, isNode, isScalar, isSeq, LineCounter, type ParsedNode, parseDocument } from "yaml";
import { sha256Hex } from "../domain/canonical.js";
import { CountersignError } from "../domain/errors.js";
import type { PolicyProblem } from "../domain/policy/file-checks.js";
import { impossibleIds } from "../domain/policy/file-checks.js";
import type { Policy } from "../domain/policy/policy.js";
import { parsePolicyFile, policyHash, withValue } from "../domain/policy/policy-file.js";

export interface LoadedPolicy {
  readonly policy: Policy;
  /** SHA-256 over the canonical parsed policy: its identity, whatever its comments say. */
  readonly hash: string;
  /** SHA-256 over the text as it was read. */
  readonly textHash: string;
  readonly text: string;
  /** Where in the text a path of keys stands. */
  readonly placeOf: PlaceOf;
}

export interface PolicyFileProblem {
  /** From 1; null where no line can be named (the file cannot be read, or is empty). */
  readonly line: number | null;
  readonly column: number | null;
  /** Keys from the root, like `kinds.refund.auto.GBP`; empty for the whole file. */
  readonly path: string;
  readonly reason: string;
}

/** The policy file cannot be read or is not valid. The message names file, line and reason of each problem. */
export class PolicyFileError extends CountersignError {
  readonly problems: readonly PolicyFileProblem[];
  /** The file itself is missing or cannot be read: nothing is known of what it says. */
  readonly unreadable: boolean;
  constructor(
    file: string,
    problems: readonly PolicyFileProblem[],
    { cause, unreadable = false }: { cause?: unknown; unreadable?: boolean } = {},
  ) {
    super("bad_policy_file", problems.map((problem) => problemText(file, problem)).join("\n"), { cause });
    this.name = "PolicyFileError";
    this.problems = problems;
    this.unreadable = unreadable;
  }
}

/** `policy.yaml, line 12: kinds.refund.auto.GBP must not be negative` */
export function problemText(file: string, problem: PolicyFileProblem): string {
  const where = problem.line === null ? file : `${file}, line ${problem.line}`;
  return `${where}: ${problem.path === "" ? "" : `${problem.path} `}${problem.reason}`;
}

/** Reads the text of a policy file. Throws `PolicyFileError`; `file` is only for its message. */
export function readPolicyText(text: string, file: string): LoadedPolicy {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, strict: true });
  const broken = [...document.errors, ...document.warnings];
  const problems = broken.map(
    ({ pos: [start], code, message }): PolicyFileProblem => ({
      ...place(lines, start),
      path: "",
      reason: code === "DUPLICATE_KEY" ? `${message}; there twice: ${wordAt(text, start)}` : message,
    }),
  );
  // A key that is there twice leaves the rest readable; after any other of YAML's mistakes what follows would be a guess.
  if (broken.some(({ code }) => code !== "DUPLICATE_KEY")) throw new PolicyFileError(file, problems);
  const content = contentOf(document, file);
  const placeOf = placeIn(document.contents, lines);
  const parsed = parsePolicyFile(content);
  const ids = impossibleIds(content).map((problem) => withValue(content, problem));
  const found = parsed.ok ? ids : withoutRepeats([...parsed.problems, ...ids]);
  for (const { path, message } of found) {
    problems.push({ ...placeOf(path), path: path.join("."), reason: message });
  }
  if (!parsed.ok || problems.length > 0) throw new PolicyFileError(file, problems.sort(byPlace));
  const { policy } = parsed;
  return { policy, hash: policyHash(policy), textHash: sha256Hex(text), text, placeOf };
}

const wordAt = (text: string, offset: number): string => /^[^\s:,}]*/.exec(text.slice(offset))?.[0] ?? "";

type PlaceOf = (path: readonly (string | number)[]) => Pick<PolicyFileProblem, "line" | "column">;

const placeIn =
  (root: ParsedNode | null, lines: LineCounter): PlaceOf =>
  (path) => {
    const offset = offsetOf(root, path);
    return offset === null ? { line: null, column: null } : place(lines, offset);
  };

/** One place is told once: what the schema says of it comes first. */
function withoutRepeats(problems: readonly PolicyProblem[]): PolicyProblem[] {
  const seen = new Set<string>();
  return problems.filter(({ path }) => {
    const place = JSON.stringify(path);
    return !seen.has(place) && seen.add(place);
  });
}

const byPlace = (a: PolicyFileProblem, b: PolicyFileProblem): number =>
  (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);

/** Aliases are refused beyond a small number: a short file could otherwise unfold without end. */
function contentOf(document: ReturnType<typeof parseDocument>, file: string): unknown {
  try {
    return document.toJS({ maxAliasCount: 20 });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new PolicyFileError(file, [{ line: null, column: null, path: "", reason }], { cause: error });
  }
}

function place(lines: LineCounter, offset: number): { line: number; column: number } {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(line, 1), column: Math.max(col, 1) };
}

/** Where the innermost part of `path` that is in the file begins: its key, or the element of its list. */
function offsetOf(root: ParsedNode | null, path: readonly (string | number)[]): number | null {
  let node: unknown = root;
  let offset = root?.range[0] ?? null;
  for (const part of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
      if (pair === undefined) return offset;
      if (isNode(pair.key)) offset = pair.key.range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node) && typeof part === "number") {
      node = node.items[part];
      if (isNode(node)) offset = node.range?.[0] ?? offset;
    } else return offset;
  }
  return offset;
}
