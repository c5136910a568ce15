/** Time, chance, the environment and the console are reached through named files only; everything else gets them as ports. */
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { parse, productFiles, type SourceFile, walk } from "./source.js";

const RULES = {
  "process.env": { allowed: [/^src\/config\/parse\.ts$/], instead: "src/config" },
  // Stand-ins for the provider have clocks of their own.
  "Date.now": {
    allowed: [/^src\/sandbox\/\w+\/clock\.ts$/, /^src\/evaluation\/bench\/ledger\/provider-stub\.mjs$/],
    instead: "the Clock port",
  },
  "new Date()": { allowed: [/^src\/app\/system\.ts$/], instead: "the Clock port" },
  "Math.random": { allowed: [], instead: "the Ids port" },
  console: { allowed: [/^src\/app\/output\.ts$/], instead: "the Logger port, or the command line's output" },
} satisfies Record<string, { allowed: readonly RegExp[]; instead: string }>;
type Rule = keyof typeof RULES;

function uses(file: SourceFile): readonly { readonly rule: Rule; readonly line: number }[] {
  const found: { rule: Rule; line: number }[] = [];
  walk(file, (node, line) => {
    if (
      ts.isNewExpression(node) &&
      node.expression.getText() === "Date" &&
      (node.arguments ?? []).length === 0
    ) {
      found.push({ rule: "new Date()", line: line() });
    }
    if (!ts.isPropertyAccessExpression(node) && !ts.isElementAccessExpression(node)) return;
    const owner = node.expression.getText().replace(/^globalThis\./, "");
    const name = ts.isPropertyAccessExpression(node)
      ? node.name.text
      : node.argumentExpression.getText().slice(1, -1);
    if (owner === "console") found.push({ rule: "console", line: line() });
    const dotted = `${owner}.${name}`;
    if (dotted === "process.env" || dotted === "Date.now" || dotted === "Math.random")
      found.push({ rule: dotted, line: line() });
  });
  return found;
}

const offences = (files: readonly SourceFile[]): readonly string[] =>
  files.flatMap((file) =>
    uses(file)
      .filter(({ rule }) => !RULES[rule].allowed.some((place) => place.test(file.path)))
      .map(({ rule, line }) => `${file.path}:${line} uses ${rule}; take ${RULES[rule].instead}`),
  );

describe("time, chance, environment, console", () => {
  it("are reached only in the named files", () => {
    const files = productFiles();
    expect(files.length).toBeGreaterThan(100);
    expect(offences(files)).toEqual([]);
  });

  it("the rule sees each of them, however it is written, and is not fooled by comments or texts", () => {
    const planted = parse(
      "src/agent/planted.ts",
      `// Date.now() in a comment
       const text = "process.env and Math.random";
       const a = process.env["X"]; const b = process["env"]; const c = globalThis.Date.now();
       const d = new Date(); const e = new Date(0); const f = Math.random(); console.log(f);`,
    );
    expect(offences([planted])).toHaveLength(6);
  });
});
