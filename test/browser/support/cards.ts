/** Blocks that the tests of the page look at. */
import type { KnownBlock, ModalView } from "@slack/types";

const plain = (text: string) => ({ type: "plain_text" as const, text });

export const card = (more: KnownBlock[] = []): KnownBlock[] => [
  { type: "header", text: plain("Approval needed: refund") },
  {
    type: "section",
    fields: [
      { type: "mrkdwn", text: "*Amount*\n£180.00 GBP" },
      { type: "mrkdwn", text: "*Asked by*\n<@U_AGENT>" },
    ],
  },
  {
    type: "actions",
    block_id: "decide",
    elements: [
      {
        type: "button",
        action_id: "approve",
        style: "primary",
        text: plain("Approve £180.00"),
        confirm: {
          title: plain("Approve this refund?"),
          text: plain("It goes back once."),
          confirm: plain("Yes, approve"),
          deny: plain("Not yet"),
        },
      },
      { type: "button", action_id: "deny", style: "danger", text: plain("Deny") },
      {
        type: "static_select",
        action_id: "reason",
        placeholder: plain("Reason"),
        options: [
          { text: plain("Damaged"), value: "damaged" },
          { text: plain("Late"), value: "late" },
        ],
      },
    ],
  },
  ...more,
];

export const form = (title: string): ModalView => ({
  type: "modal",
  callback_id: "deny",
  title: plain(title),
  submit: plain("Deny it"),
  close: plain("Back"),
  blocks: [
    {
      type: "input",
      block_id: "note",
      label: plain("Note"),
      hint: plain("The filer reads it."),
      element: { type: "plain_text_input", action_id: "text", multiline: true, max_length: 300 },
    },
    {
      type: "input",
      block_id: "kind",
      optional: true,
      label: plain("Kind"),
      element: {
        type: "static_select",
        action_id: "kind",
        options: [{ text: plain("Fraud"), value: "fraud" }],
      },
    },
    {
      type: "actions",
      block_id: "more",
      elements: [{ type: "button", action_id: "push", text: plain("One more form") }],
    },
  ],
});
