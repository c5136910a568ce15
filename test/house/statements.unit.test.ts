/** A connection knows one text under a name: two under one name fail wherever both are asked for on it. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

/** A named statement's name, and what stands for its text: a constant, or the beginning of a literal. */
const NAMED =
  /\b(?:sql|later)(?:<(?:[^<>()]|<[^<>]*>|\([^)]*\))*>)?\(\s*"([a-z][\w.]*)",\s*([A-Za-z_][\w.]*|"[^"]*"|`[^`]*`)/gu;
const CONSTANT = /^[A-Z][A-Z0-9_]*$/u;

const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter(
  (file) => file.endsWith(".ts") && !file.startsWith(path.join("db", "generated")),
);
const named = files.flatMap((file) =>
  [...readFileSync(path.join("src", file), "utf8").matchAll(NAMED)].map(([, name = "", text = ""]) => ({
    file,
    name,
    // Constants of two files may have one name.
    text: CONSTANT.test(text) ? `${file} ${text}` : text.replace(/\s+/gu, " "),
    constant: CONSTANT.test(text) || /^["`]/u.test(text),
  })),
);

test("every named statement is written out or a constant, so that its name has one text", () => {
  expect(named.length).toBeGreaterThan(300);
  expect(named.filter(({ constant }) => !constant)).toEqual([]);
});

test("no two texts have one name", () => {
  const texts = new Map<string, Set<string>>();
  for (const { name, text } of named) texts.set(name, (texts.get(name) ?? new Set()).add(text));
  const clashes = [...texts].filter(([, all]) => all.size > 1).map(([name, all]) => [name, [...all]]);
  expect(clashes).toEqual([]);
});
