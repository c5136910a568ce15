/** The source of the product as the house rules read it: parsed, without comments. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface SourceFile {
  /** Relative to the root, with slashes. */
  readonly path: string;
  readonly tree: ts.SourceFile;
}

export const parse = (path: string, text: string): SourceFile => ({
  path,
  tree: ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true),
});

/** Every file of src, generated code excepted. */
export function productFiles(): readonly SourceFile[] {
  files ??= readdirSync(join(ROOT, "src"), { recursive: true })
    .map((name) => `src/${String(name).replaceAll("\\", "/")}`)
    .filter((path) => /\.(ts|mjs)$/.test(path) && !path.startsWith("src/db/generated/"))
    .map((path) => parse(path, readFileSync(join(ROOT, path), "utf8")));
  return files;
}

let files: readonly SourceFile[] | undefined;

/** Calls `visit` for every node of the file. */
export function walk(file: SourceFile, visit: (node: ts.Node, line: () => number) => void): void {
  const step = (node: ts.Node): void => {
    visit(node, () => file.tree.getLineAndCharacterOfPosition(node.getStart()).line + 1);
    node.forEachChild(step);
  };
  step(file.tree);
}

/** Texts written in the file: string and template literals, the latter with `…` for what is put in. */
export function texts(file: SourceFile): readonly { readonly text: string; readonly line: number }[] {
  const found: { text: string; line: number }[] = [];
  walk(file, (node, line) => {
    if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node))
      found.push({ text: node.text, line: line() });
    if (ts.isTemplateExpression(node)) {
      const rest = node.templateSpans.map((span) => `…${span.literal.text}`);
      found.push({ text: [node.head.text, ...rest].join(""), line: line() });
    }
  });
  return found;
}
