/** On-call at work: slash commands, the cards of the ops channel, and what both say. */
import { buttonLabels } from "../../../src/app/demo/stage.js";
import type { MessageView } from "../../../src/sandbox/slack/control-types.js";
import { answers, readable } from "../../slack/support/see.js";
import type { House } from "./house.js";

export interface OnCall {
  /** Types `/ops TEXT` and waits for the answer. */
  ops(as: string, text: string): Promise<string>;
  /** The newest card of the ops channel that says this. */
  card(says: string): Promise<MessageView>;
  /** As above, once a card with this text says that, too. */
  cardSays(says: string, also: string): Promise<MessageView>;
  /** Presses a button of the newest card that says this and has the button. */
  press(as: string, label: string, says: string): Promise<void>;
  /** Fills the form that opens, and waits until it is gone. */
  fill(as: string, values?: Record<string, string>): Promise<void>;
  /** Everything that stands in the ops channel, for all to read. */
  channel(): string;
}

const FORM = { Reason: "Looked at the provider's dashboard.", Evidence: "case 4711" };

export function onCall({ world, stage }: House): OnCall {
  const { control } = world.slack;
  const messages = (): MessageView[] =>
    control.messages("U_ONC1", "C_OPS").filter(({ ephemeral }) => !ephemeral);
  const newest = (says: string, also = ""): MessageView | undefined =>
    messages().findLast((one) => readable(one).includes(says) && readable(one).includes(also));
  const card = (says: string, also = ""): Promise<MessageView> =>
    stage.until(`a card in the ops channel with "${says}" and "${also}"`, async () => newest(says, also));
  return {
    async ops(as, text) {
      const before = answers(world.slack, as, "C_OPS").length;
      const asked = await control.command({ as, channel: "C_OPS", command: "/ops", text });
      if (!asked.ok) throw new Error(asked.message);
      return stage.until(`the answer to /ops ${text}`, async () => answers(world.slack, as, "C_OPS")[before]);
    },
    card,
    cardSays: card,
    async press(as, label, says) {
      const found = await stage.until(`"${label}" on a card with "${says}"`, async () =>
        messages().findLast((one) => readable(one).includes(says) && buttonLabels(one).includes(label)),
      );
      const pressed = await control.click({ as, at: { channel: found.channel, ts: found.ts }, label });
      if (!pressed.ok) throw new Error(`"${label}" could not be pressed by ${as}: ${pressed.message}`);
    },
    async fill(as, values = FORM) {
      await stage.submitForm(as, values);
      await stage.until(`the form of ${as} to be gone`, async () => control.modals(as).length === 0);
    },
    channel: () => messages().map(readable).join("\n"),
  };
}
