/** One vocabulary: a fault has the same name on the page, in the stories and in the docs. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { FAULT_WORDS } from "../../src/sandbox/payments/index.js";

const { KINDS } = (await import(
  new URL("../../src/sandbox/page/inspector/faults-payments.js", import.meta.url).href
)) as { KINDS: [id: string, label: string, more: object][] };

it("the page offers every fault of the provider under its one name, details in brackets behind it", () => {
  const offered = KINDS.map(([id, label]) => ({ kind: id.split(":")[0] ?? "", label }));
  expect([...new Set(offered.map((one) => one.kind))].sort()).toEqual(Object.keys(FAULT_WORDS).sort());
  const words = new Map<string, string>(Object.entries(FAULT_WORDS));
  for (const { kind, label } of offered) expect(label.replace(/ \(.*\)$/u, "")).toBe(words.get(kind));
});

it("the docs name every fault by kind and by that name", () => {
  const docs = readFileSync("docs/payments-sandbox.md", "utf8");
  for (const [kind, words] of Object.entries(FAULT_WORDS)) {
    expect(docs).toContain(`\`${kind}\``);
    expect(docs).toContain(`_${words}_`);
  }
  expect(readFileSync("README.md", "utf8")).toContain(`_${FAULT_WORDS.commit_then_drop}_`);
});
