/** How a message is read, and what must hold of every one of them. */
import { expect } from "vitest";
import type { Message } from "../../../src/slack/blocks/build.js";
import { LIMITS } from "../../../src/slack/limits.js";
import { clean } from "../../../src/slack/text/safe.js";

interface TextObject {
  readonly type: "mrkdwn" | "plain_text";
  readonly text: string;
  readonly verbatim?: boolean;
}

function texts(value: unknown): TextObject[] {
  if (Array.isArray(value)) return value.flatMap(texts);
  if (typeof value !== "object" || value === null) return [];
  const record = value as Record<string, unknown>;
  if (
    (record["type"] === "mrkdwn" || record["type"] === "plain_text") &&
    typeof record["text"] === "string"
  ) {
    return [record as unknown as TextObject];
  }
  return Object.values(record).flatMap(texts);
}

/** No control sequence of Slack's that we did not make, and nothing that hides or reorders text. `mayMention`: whom it may ping. */
export function harmless(message: Message, mayMention: readonly string[]): void {
  for (const { type, text, verbatim } of [
    ...texts(message.blocks),
    { type: "mrkdwn", text: message.text, verbatim: true } as const,
  ]) {
    expect(text).not.toMatch(/\p{Surrogate}/u);
    expect(text).not.toMatch(
      /[\u202A-\u202E\u2066-\u2069\u200B-\u200F\u2060\uFEFF\u00AD]|[\u{E0000}-\u{E007F}]/u,
    );
    expect(text.replace(/&(?:amp|lt|gt);/gu, "")).not.toContain("&");
    if (type === "plain_text") {
      expect(text).not.toMatch(/[<>]/u);
      continue;
    }
    expect(verbatim).toBe(true);
    for (const [, inside = ""] of text.matchAll(/<([^<>]*)>/gu)) {
      if (inside.startsWith("@")) expect(mayMention).toContain(inside.slice(1));
      else expect(inside).toMatch(/^!date\^\d+\^\{date_short_pretty\} \{time\}\|[^<>|]+ UTC$/u);
    }
    expect(text.replace(/<[^<>]*>/gu, "")).not.toMatch(/[<>]/u);
  }
}

export function withinLimits({ text, blocks }: Message): void {
  expect(text.length).toBeGreaterThan(0);
  expect(text.length).toBeLessThanOrEqual(4000);
  expect(blocks.length).toBeLessThanOrEqual(LIMITS.blocksPerMessage);
  const ids = blocks.flatMap((block) => (block.block_id === undefined ? [] : [block.block_id]));
  expect(new Set(ids).size).toBe(ids.length);
  for (const block of blocks) {
    switch (block.type) {
      case "header":
        bounded(block.text.text, LIMITS.headerText);
        break;
      case "section":
        if (block.text !== undefined) bounded(block.text.text, LIMITS.sectionText);
        expect(block.fields?.length ?? 0).toBeLessThanOrEqual(LIMITS.sectionFields);
        for (const field of block.fields ?? []) bounded(field.text, LIMITS.fieldText);
        break;
      case "context":
        expect(block.elements.length).toBeLessThanOrEqual(LIMITS.contextElements);
        for (const { text: part } of texts(block)) bounded(part, LIMITS.sectionText);
        break;
      case "actions":
        for (const { text: label } of texts(block)) bounded(label, LIMITS.buttonText);
        for (const element of block.elements) {
          if (!("accessibility_label" in element)) continue;
          const said = element.accessibility_label ?? "x";
          bounded(said, LIMITS.accessibilityLabel);
          // WCAG 2.5.3: the name begins with what is written on the button.
          expect(said.startsWith(texts(element)[0]?.text ?? "?")).toBe(true);
        }
        break;
      default:
        throw new Error(`a card has a block of the kind ${block.type}`);
    }
  }
}

function bounded(text: string, max: number): void {
  expect(text.length).toBeGreaterThan(0);
  expect(text.length).toBeLessThanOrEqual(max);
}

export const decode = (text: string): string =>
  text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
export const one = (text: string): string => clean(text).replace(/\s+/gu, " ").trim();
/** As long a beginning as the row holds; escaped text is cut, so its length counts. */
export function cut(text: string): unknown {
  const escaped = text.replace(
    /[&<>]/gu,
    (character) => `&${character === "&" ? "amp" : character === "<" ? "lt" : "gt"};`,
  );
  return clean(escaped).length <= 300 ? clean(text).replace(/\s+/gu, " ") : expect.stringMatching(/ …$/u);
}

/** Label → values of every row with that label. */
export function table(message: Message): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const block of message.blocks) {
    if (block.type !== "section" || block.fields === undefined) continue;
    for (let at = 0; at < block.fields.length; at += 2) {
      const label = block.fields[at]?.text.replaceAll("*", "") ?? "";
      found.set(label, [...(found.get(label) ?? []), decode(block.fields[at + 1]?.text ?? "")]);
    }
  }
  return found;
}

export function buttons(message: Message): string[] {
  return message.blocks.flatMap((block) =>
    block.type === "actions" ? texts(block).map(({ text }) => decode(text)) : [],
  );
}

export function values(message: Message): string[] {
  return message.blocks.flatMap((block) =>
    block.type === "actions"
      ? block.elements.flatMap((element) =>
          "value" in element && typeof element.value === "string" ? [element.value] : [],
        )
      : [],
  );
}
