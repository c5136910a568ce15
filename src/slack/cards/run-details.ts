/** Every step of a run, on demand: what the planner said, what it asked for, what came back, what it cost. The trace has it as it was stored. */

import type { KnownBlock } from "@slack/types";
import type { Json } from "../../domain/json.js";
import { isRunEnd } from "../../domain/run.js";
import { cutText } from "../../domain/text/cut.js";
import type { ToolCall, Turn } from "../../runs/index.js";
import { note, ours, theirs } from "../blocks/build.js";
import { LIMITS } from "../limits.js";
import { withoutAddresses } from "../text/addresses.js";
import { readableLines } from "../text/readable.js";
import { clean, escapeWithin, oneLine } from "../text/safe.js";
import { closed, type Modal } from "./forms.js";
import {
  costText,
  markerOf,
  type RunCardView,
  runTitle,
  shownProse,
  stepText,
  toldInWords,
} from "./run-card.js";
import type { OperationFacts } from "./sentences.js";

const ASKED_MAX = 700;
const RESULT_MAX = 1500;
const PROSE_MAX = 1500;

export function runDetails(card: RunCardView): Modal {
  const { run, turns, calls, ticket } = card.view;
  const blocks: KnownBlock[] = [
    ours(`*${runTitle(run.state)}*`),
    ...(run.ending === null ? [] : [theirs(run.ending.detail, 1000)]),
  ];
  const kept = blocks.length;
  for (const turn of turns) {
    blocks.push(ours(`*${[`Step ${turn.seq}`, ...spentOn(turn)].join("*  ·  *")}*`));
    const prose = shownProse(turn);
    if (prose !== "") blocks.push(note(`_${markerOf(run.planner)}_`), theirs(prose, PROSE_MAX));
    for (const call of calls.filter((one) => one.turnId === turn.id)) blocks.push(...callBlocks(call, card));
  }
  const named = escapeWithin(oneLine(ticket.ref ?? ticket.id), 60).text;
  const end = note(`Ticket ${named}. As it was stored: \`countersign trace ${run.id} --out FILE\``);
  const room = LIMITS.blocksPerView - 1;
  return closed("Details of the run", [
    ...(blocks.length <= room
      ? blocks
      : [
          ...blocks.slice(0, kept),
          note("_Earlier steps are left out; the trace has them all._"),
          ...blocks.slice(-(room - kept - 1)),
        ]),
    end,
  ]);
}

/** Money and tokens of one model call; nothing where no model was asked. */
function spentOn({ costMicroUsd, usage }: Turn): string[] {
  const tokens = ([key, word]: readonly [string, string]): string[] => {
    const count = usage[key];
    return typeof count === "number" && count > 0 ? [`${count.toLocaleString("en-GB")} tokens ${word}`] : [];
  };
  const cost = costText(costMicroUsd);
  return [
    ...(cost === null ? [] : [cost]),
    ...tokens(["input_tokens", "in"]),
    ...tokens(["output_tokens", "out"]),
  ];
}

function callBlocks(call: ToolCall, { view, operations }: RunCardView): KnownBlock[] {
  const operation = call.operationId === null ? undefined : operations.get(call.operationId);
  const currency = operation?.currency ?? null;
  const asked = readableLines(withoutUnused(call.input), { currency, without: toldInWords(call.name) });
  return [
    theirs(stepText(call, operations, isRunEnd(view.run.state)), 600),
    ...told("Asked for", asked, ASKED_MAX),
    ...told(
      operation !== undefined && isTakenBack(call, operation)
        ? "Came back then; it does not hold any more"
        : "Came back",
      call.result === null ? [] : resultLines(call.result, currency),
      RESULT_MAX,
    ),
  ];
}

/** What the run was told of its operation, and the operation stands otherwise since. */
function isTakenBack({ resultJson }: ToolCall, operation: OperationFacts): boolean {
  if (typeof resultJson !== "object" || resultJson === null || Array.isArray(resultJson)) return false;
  const { status, code, provider_ref: ref } = resultJson;
  if (typeof status !== "string") return false;
  if (status !== operation.status) return true;
  // The same end once more, on other grounds: confirmed with another reference, or seen by now.
  return (
    (typeof code === "string" && code !== operation.result?.code) ||
    (typeof ref === "string" && ref !== operation.providerRef)
  );
}

function told(label: string, lines: readonly string[], max: number): KnownBlock[] {
  if (lines.length === 0) return [];
  const text = clean(withoutAddresses(lines.join("\n")));
  return text === "" ? [] : [note(`*${label}*`), theirs(cutText(text, max))];
}

/** A tool's schema requires every property; one that its scope does not use says nothing. */
function withoutUnused(input: Json): Json {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return input;
  return Object.fromEntries(
    Object.entries(input).filter(([key, value]) => !(key === "amount_minor" && value === 0)),
  );
}

function resultLines(result: string, currency: string | null): string[] {
  const stored = jsonOf(result);
  return stored === undefined ? [result] : readableLines(stored, { currency });
}

/** Reads answer with JSON, writes with sentences. */
function jsonOf(result: string): Json | undefined {
  if (!/^[[{]/u.test(result)) return undefined;
  try {
    return JSON.parse(result) as Json;
  } catch {
    // A sentence that begins like JSON is a sentence.
    return undefined;
  }
}
