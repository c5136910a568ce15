/**
 * Block constructors that cannot leave Slack's limits. Three kinds of text go in and are told apart by the function, never by its content:
 *
 *  - `ours`: mrkdwn made by this room, already escaped where it holds anything else; `verbatim`, so that Slack links nothing itself.
 *  - `theirs`: text of people, models and shops: always plain_text, cleaned, escaped and cut here.
 *  - labels and titles: short constants.
 */

import type {
  ActionsBlock,
  Button,
  ContextBlock,
  DividerBlock,
  HeaderBlock,
  KnownBlock,
  MrkdwnElement,
  PlainTextElement,
  SectionBlock,
} from "@slack/types";
import { headOf } from "../../domain/text/cut.js";
import { LIMITS } from "../limits.js";
import { CUT_MARK, clean, escapeWithin, oneLine } from "../text/safe.js";

/** A rendered message: what `chat.postMessage` and `chat.update` are given. */
export interface Message {
  /** For notifications, screen readers and clients without blocks: says it all. */
  readonly text: string;
  readonly blocks: readonly KnownBlock[];
}

export function plain(text: string, max: number): PlainTextElement {
  const { text: fitted } = escapeWithin(clean(text), max);
  return { type: "plain_text", text: fitted === "" ? "–" : fitted, emoji: false };
}

export function mrkdwn(text: string): MrkdwnElement {
  return { type: "mrkdwn", text, verbatim: true };
}

export function header(text: string): HeaderBlock {
  return { type: "header", text: plain(oneLine(text), LIMITS.headerText) };
}

export const divider = (): DividerBlock => ({ type: "divider" });

/** Mrkdwn of our own making. Longer than a section may be is a defect of the caller and is cut rather than refused by Slack. */
export function ours(text: string): SectionBlock {
  return { type: "section", text: mrkdwn(cutEscaped(text, LIMITS.sectionText)) };
}

/** Text of somebody else, literally. */
export function theirs(text: string, max: number = LIMITS.sectionText): SectionBlock {
  return { type: "section", text: plain(text, Math.min(max, LIMITS.sectionText)) };
}

export function note(text: string): ContextBlock {
  return { type: "context", elements: [mrkdwn(cutEscaped(text, LIMITS.fieldText))] };
}

/** Small print: our label, and behind it somebody else's text. */
export function attributed(label: string, text: string, max: number): ContextBlock {
  return { type: "context", elements: [mrkdwn(label), plain(text, max)] };
}

export interface Row {
  readonly label: string;
  /** `theirs` is literal; `ours` is mrkdwn (a mention, a date). */
  readonly value: { readonly theirs: string } | { readonly ours: string };
}

const VALUE_MAX = 300;
const ROWS_PER_SECTION = LIMITS.sectionFields / 2;

/** A table of label and value, as sections of fields; labels stand left. */
export function rows(table: readonly Row[]): SectionBlock[] {
  const sections: SectionBlock[] = [];
  for (let at = 0; at < table.length; at += ROWS_PER_SECTION) {
    sections.push({
      type: "section",
      fields: table
        .slice(at, at + ROWS_PER_SECTION)
        .flatMap(({ label, value }) => [
          mrkdwn(`*${label}*`),
          "theirs" in value ? plain(oneLine(value.theirs), VALUE_MAX) : mrkdwn(value.ours),
        ]),
    });
  }
  return sections;
}

export interface ButtonSpec {
  readonly action: string;
  readonly text: string;
  readonly value: string;
  readonly style?: "primary" | "danger";
  /** What a screen reader says after the label (WCAG 2.5.3: the name begins with what is seen); the label alone if left out. */
  readonly says?: string;
}

export function button(spec: ButtonSpec): Button {
  const text = plain(spec.text, LIMITS.buttonText);
  return {
    type: "button",
    action_id: spec.action,
    text,
    value: spec.value,
    ...(spec.style === undefined ? {} : { style: spec.style }),
    ...(spec.says === undefined ? {} : { accessibility_label: nameOf(text.text, spec.says) }),
  };
}

/** Voice control and screen readers find a button by what is written on it. */
function nameOf(label: string, says: string): string {
  const said = escapeWithin(oneLine(says), LIMITS.accessibilityLabel).text;
  if (said.startsWith(label)) return said;
  const room = LIMITS.accessibilityLabel - label.length - 2;
  return room < 1 ? label : `${label}: ${escapeWithin(oneLine(says), room).text}`;
}

export function actions(blockId: string, buttons: readonly ButtonSpec[]): ActionsBlock {
  return { type: "actions", block_id: blockId, elements: buttons.map(button) };
}

/**
 * The message within Slack's limits: the first blocks give way, the last `keep` stay, because they hold the buttons and the end.
 * Text is cut at the end.
 */
export function withinLimits(message: Message, keep: number): Message {
  const text = cutEscaped(message.text, LIMITS.messageText);
  if (message.blocks.length <= LIMITS.blocksPerMessage) return { text, blocks: message.blocks };
  const tail = message.blocks.slice(-keep);
  const head = message.blocks.slice(0, LIMITS.blocksPerMessage - keep - 1);
  return { text, blocks: [...head, note("_Some parts are left out here._"), ...tail] };
}

/** Cuts text that is already escaped, never inside an entity or a `<…>`. */
function cutEscaped(text: string, max: number): string {
  if (text.length <= max) return text;
  const cut = headOf(text, max - CUT_MARK.length).replace(/&[a-z]{0,3}$/u, "");
  const open = cut.lastIndexOf("<");
  return `${open > cut.lastIndexOf(">") ? cut.slice(0, open) : cut}${CUT_MARK}`;
}
