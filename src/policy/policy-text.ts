/** Reads a policy file's text (YAML or JSON) into a policy; every problem with its line and reason. */
import { isMap, isNode, isScalar, isSeq, LineCounter, type ParsedNode, parseDocument } from "yaml";
import { sha256Hex } from "../domain/canonical.js";
import { CountersignError } from "../domain/errors.js";
import type { Policy } from "../domain/policy/policy.js";
import { parsePolicyFile, policyHash } from "../domain/policy/policy-file.js";

export interface LoadedPolicy {
  readonly policy: Policy;
  /** SHA-256 over the canonical parsed policy: its identity, whatever its comments say. */
  readonly hash: string;
  /** SHA-256 over the text as it was read. */
  readonly textHash: string;
  readonly text: string;
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
  constructor(file: string, problems: readonly PolicyFileProblem[], cause?: unknown) {
    super("bad_policy_file", problems.map((problem) => problemText(file, problem)).join("\n"), { cause });
    this.name = "PolicyFileError";
    this.problems = problems;
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
  if (broken.length > 0) {
    throw new PolicyFileError(
      file,
      broken.map(({ pos: [start], message }) => ({ ...place(lines, start), path: "", reason: message })),
    );
  }
  const parsed = parsePolicyFile(contentOf(document, file));
  if (!parsed.ok) {
    const problems = parsed.problems.map(({ path, message }) => {
      const offset = offsetOf(document.contents, path);
      const at = offset === null ? { line: null, column: null } : place(lines, offset);
      return { ...at, path: path.join("."), reason: message };
    });
    throw new PolicyFileError(file, problems);
  }
  return { policy: parsed.policy, hash: policyHash(parsed.policy), textHash: sha256Hex(text), text };
}

/** Aliases are refused beyond a small number: a short file could otherwise unfold without end. */
function contentOf(document: ReturnType<typeof parseDocument>, file: string): unknown {
  try {
    return document.toJS({ maxAliasCount: 20 });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new PolicyFileError(file, [{ line: null, column: null, path: "", reason }], error);
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
