/** Every step of a run, on demand. */

import type { KnownBlock } from "@slack/types";
import { cutText } from "../../domain/text/cut.js";
import { note, ours, theirs } from "../blocks/build.js";
import { LIMITS } from "../limits.js";
import { withoutAddresses } from "../text/addresses.js";
import { escapeWithin, oneLine } from "../text/safe.js";
import { closed, type Modal } from "./forms.js";
import { markerOf, type RunCardView, runTitle, shownProse, stepText } from "./run-card.js";

const INPUT_MAX = 500;
const RESULT_MAX = 1200;
const PROSE_MAX = 1500;

export function runDetails(card: RunCardView): Modal {
  const { run, turns, calls, ticket } = card.view;
  const blocks: KnownBlock[] = [
    ours(`*${runTitle(run.state)}*`),
    ...(run.ending === null ? [] : [theirs(run.ending.detail, 1000)]),
    note(`Run ${run.id}, ticket ${escapeWithin(oneLine(ticket.ref ?? ticket.id), 60).text}`),
  ];
  for (const turn of turns) {
    blocks.push(ours(`*Step ${turn.seq}*`));
    const prose = shownProse(turn);
    if (prose !== "") blocks.push(note(`_${markerOf(run.planner)}_`), theirs(prose, PROSE_MAX));
    for (const call of calls.filter((one) => one.turnId === turn.id)) {
      blocks.push(theirs(stepText(call, card.operations), 600));
      const input = `Asked: ${JSON.stringify(call.input)}`;
      const result = call.result === null ? "" : `\nAnswer: ${call.result}`;
      blocks.push(theirs(withoutAddresses(`${cutText(input, INPUT_MAX)}${cutText(result, RESULT_MAX)}`)));
    }
  }
  const room = LIMITS.blocksPerView - 1;
  return closed(
    "Details of the run",
    blocks.length <= room
      ? blocks
      : [
          ...blocks.slice(0, 3),
          note("_Earlier steps are left out; the trace has them all._"),
          ...blocks.slice(-(room - 4)),
        ],
  );
}
